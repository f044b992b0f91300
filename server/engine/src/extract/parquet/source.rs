//! The bytes of a file, from any place on.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Result, WORK, broken, too_large};
use crate::extract::{Data, Place};

#[derive(Debug)]
pub struct Source<'a> {
    kept: Kept<'a>,
    /// Bytes that may be read and unpacked yet.
    left: Cell<u64>,
}

#[derive(Debug)]
enum Kept<'a> {
    Memory(&'a [u8]),
    Disk(File),
}

impl<'a> Source<'a> {
    pub fn open(data: &'a Data) -> Result<Self> {
        let kept = match data.place() {
            Place::Memory(bytes) => Kept::Memory(bytes),
            Place::Disk(path) => Kept::Disk(File::open(path)?),
        };
        let left = Cell::new(WORK);
        Ok(Self { kept, left })
    }

    /// Counts bytes that are read or unpacked.
    pub fn spend(&self, bytes: u64) -> Result<()> {
        let left = self.left.get().checked_sub(bytes);
        let left = left.ok_or_else(|| too_large("the unpacked content", WORK))?;
        self.left.set(left);
        Ok(())
    }

    pub fn read(&self, at: u64, length: u64) -> Result<Vec<u8>> {
        self.spend(length)?;
        let length = usize::try_from(length).map_err(|_| broken("it ends too early"))?;
        match &self.kept {
            Kept::Memory(bytes) => {
                let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
                let found = rest.and_then(|rest| rest.get(..length));
                found.map(<[u8]>::to_vec)
            }
            // Nobody asks for what lies behind its end.
            Kept::Disk(file) => {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, at)?;
                Some(bytes)
            }
        }
        .ok_or_else(|| broken("it ends too early"))
    }
}
