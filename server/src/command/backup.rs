//! `loupe backup`: a copy of the data folder that a server can be started on.

use std::{
    fs::{self, File},
    os::{fd::AsFd, unix::fs::PermissionsExt},
    path::Path,
};

use anyhow::Context;
use rustix::fs::{SeekFrom, seek};

use crate::{boot, config::Config, folder};

/// What the database's own copy replaces, and what belongs to a running process.
const LEFT_OUT: [&str; 5] = ["lock", "loupe.db", "loupe.db-wal", "loupe.db-shm", "work"];

pub async fn run(config: Config, to: &Path) -> anyhow::Result<()> {
    boot::log(&config);
    let from = config.data.clone();
    anyhow::ensure!(from.is_dir(), "there is no data folder {}", from.display());
    let lock = folder::lock(&from)?;
    prepare(&from, to)?;
    let has_database = !config.is_postgres();
    let (source, target) = (from.clone(), to.to_owned());
    let bytes = tokio::task::spawn_blocking(move || {
        if has_database {
            copy_database(&source.join("loupe.db"), &target.join("loupe.db"))?;
        }
        let bytes = copy_folder(&source, &target, &LEFT_OUT)?;
        // One call for everything that was written, instead of one a file.
        rustix::fs::syncfs(File::open(&target)?.as_fd())?;
        anyhow::Ok(bytes)
    })
    .await??;
    drop(lock);
    println!(
        "{} was copied to {} ({} MB and the database).",
        from.display(),
        to.display(),
        bytes / 1_000_000
    );
    if config.is_postgres() {
        println!(
            "The PostgreSQL database is not in it: back it up with pg_dump now, before a server is started."
        );
    }
    if !config.blobs.url.is_empty() {
        println!(
            "The files in {} are not in it: copy them with a tool of that store, or keep versions there.",
            config.blobs.url
        );
    }
    Ok(())
}

/// The target is new or empty, and not inside of what is copied.
fn prepare(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make the folder {}", to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o700))?;
    anyhow::ensure!(
        !to.canonicalize()?.starts_with(from.canonicalize()?),
        "{} lies inside of the data folder: name another place",
        to.display()
    );
    let is_empty = fs::read_dir(to)?.next().is_none();
    anyhow::ensure!(is_empty, "{} is not empty: name a new folder", to.display());
    Ok(())
}

/// One consistent file, whatever the journal of the original holds.
fn copy_database(from: &Path, to: &Path) -> anyhow::Result<()> {
    let database = rusqlite::Connection::open(from)
        .with_context(|| format!("cannot open {}", from.display()))?;
    database
        .execute("VACUUM INTO ?1", [to.to_string_lossy()])
        .context("cannot copy the database")?;
    Ok(())
}

/// Copies a folder's files and folders, and answers how many bytes were written.
fn copy_folder(from: &Path, to: &Path, left_out: &[&str]) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if left_out.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir_all(&target)?;
            bytes += copy_folder(&source, &target, &[])?;
        } else if kind.is_file() {
            bytes += copy_file(&source, &target)
                .with_context(|| format!("cannot copy {}", source.display()))?;
        }
    }
    Ok(bytes)
}

/// Copies what a file holds and keeps its holes: files of vectors reserve far more than they use.
fn copy_file(from: &Path, to: &Path) -> anyhow::Result<u64> {
    let mut source = File::open(from)?;
    let about = source.metadata()?;
    let mut target = File::create_new(to)?;
    target.set_len(about.len())?;
    target.set_permissions(about.permissions())?;
    let (mut at, mut bytes) = (0, 0);
    while at < about.len() {
        let data = match seek(&source, SeekFrom::Data(at)) {
            Ok(data) => data,
            // Nothing but a hole until the end.
            Err(rustix::io::Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let hole = seek(&source, SeekFrom::Hole(data))?;
        seek(&source, SeekFrom::Start(data))?;
        seek(&target, SeekFrom::Start(data))?;
        let part = std::io::Read::take(&mut source, hole - data);
        bytes += std::io::copy(&mut { part }, &mut target)?;
        at = hole;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{io::Write, os::unix::fs::MetadataExt};

    use super::*;

    #[test]
    fn holes_stay_holes_and_data_stays_data() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("b"));
        let mut file = File::create(&from).unwrap();
        file.set_len(64 << 20).unwrap();
        seek(&file, SeekFrom::Start(32 << 20)).unwrap();
        file.write_all(b"in the middle").unwrap();
        file.sync_all().unwrap();
        copy_file(&from, &to).unwrap();
        assert_eq!(fs::read(&from).unwrap(), fs::read(&to).unwrap());
        assert!(fs::metadata(&to).unwrap().blocks() * 512 < 8 << 20);
    }

    #[test]
    fn a_backup_is_never_put_into_what_it_copies_or_over_something() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("backup");
        let error = prepare(folder.path(), &inside).unwrap_err().to_string();
        assert!(error.contains("inside of the data folder"), "{error}");
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("file"), "x").unwrap();
        let error = prepare(folder.path(), other.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("not empty"), "{error}");
    }
}
