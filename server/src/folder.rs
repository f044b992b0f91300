//! The data folder's lock: one process owns a folder at a time.

use std::{
    fs::{File, OpenOptions},
    path::Path,
};

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};

/// Whether a process owns the data folder now.
///
/// # Errors
/// The lock cannot be looked at.
pub fn is_in_use(folder: &Path) -> anyhow::Result<bool> {
    Ok(folder.join("lock").exists() && try_lock(folder)?.is_none())
}

/// Makes this process the one owner of a data folder, for as long as the answer lives.
///
/// # Errors
/// Another process owns it.
pub fn lock(folder: &Path) -> anyhow::Result<File> {
    try_lock(folder)?.with_context(|| {
        format!(
            "another Loupe uses the data folder {}: stop it, or set LOUPE_DATA to another folder",
            folder.display()
        )
    })
}

fn try_lock(folder: &Path) -> anyhow::Result<Option<File>> {
    let path = folder.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    let taken = flock(&file, FlockOperation::NonBlockingLockExclusive).is_err();
    Ok((!taken).then_some(file))
}
