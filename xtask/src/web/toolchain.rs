//! Which compiler makes WebAssembly: the one in use, the one in use with its target added, or Debian's.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::say;

/// The only target.
pub const TARGET: &str = "wasm32-unknown-unknown";

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const RUSTUP_LIMIT: Duration = Duration::from_secs(120);

/// A way to build for [`TARGET`].
pub enum Toolchain {
    /// The toolchain that runs this program has the target.
    Installed,
    /// Debian's compiler builds the standard library from its source package.
    Debian { linker: PathBuf },
}

impl Toolchain {
    /// Finds one, in the order of least surprise.
    pub fn find(target_dir: &Path) -> Result<Self> {
        if has_target() {
            say("compiler: the installed one, which has the wasm target");
            return Ok(Self::Installed);
        }
        // Where adding the target failed before (no network), it is not tried again on every build.
        let remembered = target_dir.join("debian-toolchain");
        if !remembered.exists() {
            say("the wasm target is not installed: rustup target add (at most two minutes)");
            if add_target() && has_target() {
                return Ok(Self::Installed);
            }
        }
        match debian() {
            Some(toolchain) => {
                say("compiler: Debian's rustc-web with the standard library from rust-web-src");
                std::fs::create_dir_all(target_dir)?;
                std::fs::write(&remembered, "")?;
                Ok(toolchain)
            }
            None => {
                std::fs::remove_file(&remembered).ok();
                bail!(
                    "no compiler for {TARGET}: run `rustup target add {TARGET}`, or on Debian \
                     `apt-get install rustc-web cargo-web rust-web-src lld-19` (1.96 or newer)"
                )
            }
        }
    }

    /// A `cargo rustc` ready for its arguments: what follows `--` is for the program alone, not for what it is made of.
    pub fn cargo(&self) -> Command {
        match self {
            Self::Installed => {
                let mut cargo =
                    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
                cargo.arg("rustc");
                cargo
            }
            Self::Debian { linker } => {
                let mut cargo = Command::new(DEBIAN_CARGO);
                for name in ["RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH", "CARGO"] {
                    cargo.env_remove(name);
                }
                // Empty, not absent: absent would fall back to the wrapper of .cargo/config.toml, which is for the host.
                cargo.env("RUSTC_WRAPPER", "");
                cargo
                    .env("RUSTC", DEBIAN_RUSTC)
                    .env("RUSTDOC", "/usr/bin/rustdoc")
                    .env("RUSTC_BOOTSTRAP", "1");
                cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
                cargo.args(["rustc", "-Z", "build-std=std,panic_abort"]);
                cargo
            }
        }
    }
}

fn has_target() -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(out) = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
    else {
        return false;
    };
    let dir = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
    // The folder's name is printed whether or not anything is in it.
    std::fs::read_dir(dir).is_ok_and(|mut entries| {
        entries.any(|e| e.is_ok_and(|e| e.file_name().to_string_lossy().starts_with("libcore")))
    })
}

fn add_target() -> bool {
    let child = Command::new("rustup")
        .args(["target", "add", TARGET])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    child.is_ok_and(|child| succeeds_within(child, RUSTUP_LIMIT))
}

fn succeeds_within(mut child: Child, limit: Duration) -> bool {
    let started = Instant::now();
    while started.elapsed() < limit {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(100)),
            Err(_) => break,
        }
    }
    // It may have ended meanwhile; either way nothing of it is left running.
    let _ = child.kill();
    let _ = child.wait();
    false
}

fn debian() -> Option<Toolchain> {
    let version = Command::new(DEBIAN_RUSTC).arg("--version").output().ok()?;
    let minor = minor_version(&String::from_utf8_lossy(&version.stdout))?;
    let sysroot = Command::new(DEBIAN_RUSTC)
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
    let source = sysroot.join("lib/rustlib/src/rust/library/std");
    let linker = ["/usr/bin/wasm-ld-19", "/usr/bin/wasm-ld"]
        .map(PathBuf::from)
        .into_iter()
        .find(|p| p.exists())?;
    let usable = minor >= 96 && Path::new(DEBIAN_CARGO).exists() && source.exists();
    usable.then_some(Toolchain::Debian { linker })
}

fn minor_version(text: &str) -> Option<u32> {
    text.strip_prefix("rustc 1.")?
        .split('.')
        .next()?
        .parse()
        .ok()
}

/// Runs `command` with its output shown and fails when it does.
pub fn run(mut command: Command, what: &str) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("starting {what}"))?;
    if !status.success() {
        bail!("{what} failed ({status})");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_the_compilers_own_line() {
        assert_eq!(
            minor_version("rustc 1.96.0 (ac68faa20 2026-05-25)"),
            Some(96)
        );
        assert_eq!(minor_version("clang 19"), None);
    }

    #[test]
    fn a_command_that_hangs_is_stopped() {
        let child = Command::new("sleep")
            .arg("30")
            .spawn()
            .expect("sleep exists");
        let started = Instant::now();
        assert!(!succeeds_within(child, Duration::from_millis(200)));
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}
