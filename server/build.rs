//! How the release binary is linked: functions with the same code are kept once, relocations are packed, symbols left out (the
//! profile's `strip` leaves them in). Together they are a third of its size.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A release that was compiled before the console was built is compiled again with it.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rerun-if-changed=../dist/web/manifest.json");
    }
    let var = |name| std::env::var(name).unwrap_or_default();
    // The linker of this target is lld, which comes with the toolchain; a debug build is not worth its time.
    if var("PROFILE") == "release" && var("TARGET") == "x86_64-unknown-linux-gnu" {
        for flag in ["--icf=safe", "-zpack-relative-relocs", "--strip-all"] {
            println!("cargo::rustc-link-arg-bins=-Wl,{flag}");
        }
    }
}
