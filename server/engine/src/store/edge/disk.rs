//! The guard of the disk: the engine maps its files into memory, where a full disk kills the process.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::{Result, StoreError};

/// What a file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub free: u64,
    pub total: u64,
}

/// Looks at the file system that holds a path.
pub type Probe = Arc<dyn Fn(&Path) -> io::Result<Space> + Send + Sync>;

/// Asks the operating system.
pub fn system_probe() -> Probe {
    Arc::new(|path| {
        let stat = rustix::fs::statvfs(path)?;
        Ok(Space {
            free: stat.f_bavail * stat.f_frsize,
            total: stat.f_blocks * stat.f_frsize,
        })
    })
}

/// Refuses writes when too little is free.
pub struct Disk {
    pub dir: PathBuf,
    pub probe: Probe,
    pub min_free_bytes: u64,
    pub min_free_share: f64,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl Disk {
    /// Room for documents?
    pub fn check_write(&self) -> Result<()> {
        self.check(1)
    }

    /// Room for a delete? It needs little and is the way out, so it may go on for longer.
    pub fn check_delete(&self) -> Result<()> {
        self.check(4)
    }

    fn check(&self, part: u64) -> Result<()> {
        let space = (self.probe)(&self.dir).map_err(|error| {
            StoreError::Unavailable(format!("the free disk space is unknown: {error}"))
        })?;
        let share = (space.total as f64 * self.min_free_share) as u64;
        if space.free < self.min_free_bytes.max(share) / part {
            return Err(StoreError::DiskFull);
        }
        Ok(())
    }
}
