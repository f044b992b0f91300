//! What a release carries, and how it is linked: functions with the same code are kept once, relocations are packed, symbols left out (the
//! profile's `strip` leaves them in), together a third of its size; and what every request runs through lies side by side.

/// What `end2end/bench/order.py` found on the hot paths. Spread over the whole binary these few thousand functions lie in more pages
/// than the processor knows the addresses of; together they take a fifth off a request. Names that are not there any more (another
/// compiler, other dependencies) only cost that.
const ORDER: &str = "hot-functions.txt";

/// The description of the API that a release carries, packed.
fn pack_description() -> std::io::Result<()> {
    const DESCRIPTION: &str = "../openapi.json";
    println!("cargo::rerun-if-changed={DESCRIPTION}");
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    let file = std::fs::File::create(std::path::Path::new(&folder).join("openapi.json.gz"))?;
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    std::io::copy(&mut std::fs::File::open(DESCRIPTION)?, &mut packed)?;
    packed.finish().map(drop)
}

/// The wire types, of whose sources the description reads their limits.
fn collect_wire_types() -> std::io::Result<()> {
    const TYPES: &str = "wire/src";
    println!("cargo::rerun-if-changed={TYPES}");
    let files = std::fs::read_dir(TYPES)?.map(|file| Ok(file?.path()));
    let mut files = files.collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "rs"));
    files.sort();
    let texts = files.iter().map(std::fs::read_to_string);
    let texts = texts.collect::<std::io::Result<String>>()?;
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    std::fs::write(std::path::Path::new(&folder).join("wire.txt"), texts)
}

fn main() {
    if std::env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_none() {
        pack_description().expect("the description of the API can be read");
    } else {
        collect_wire_types().expect("the wire types can be read");
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ORDER}");
    println!("cargo::rerun-if-env-changed=LOUPE_SYMBOLS");
    // A release that was compiled before the console was built is compiled again with it.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rerun-if-changed=../dist/web/manifest.json");
    }
    let var = |name| std::env::var(name).unwrap_or_default();
    // The words below are lld's, and others refuse some of them: whoever names a linker in RUSTFLAGS gets what that one does by itself.
    let flags = var("CARGO_ENCODED_RUSTFLAGS");
    let is_lld = !["fuse-ld=", "linker-features=", "linker-flavor="]
        .iter()
        .any(|named| flags.contains(named));
    // The linker of this target is lld, which comes with the toolchain; a debug build is not worth its time.
    if var("PROFILE") == "release" && var("TARGET") == "x86_64-unknown-linux-gnu" && is_lld {
        let strip = match var("LOUPE_SYMBOLS").as_str() {
            "" => "--strip-all",
            // For tools that ask what a function is called.
            _ => "--strip-debug",
        };
        let order = format!(
            "--symbol-ordering-file={}/{ORDER}",
            var("CARGO_MANIFEST_DIR")
        );
        let flags = [
            "--icf=safe",
            "-zpack-relative-relocs",
            "--no-warn-symbol-ordering",
            &order,
            strip,
        ];
        for flag in flags {
            println!("cargo::rustc-link-arg-bins=-Wl,{flag}");
        }
    }
}
