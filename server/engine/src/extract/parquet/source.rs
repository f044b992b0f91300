//! The bytes of a file, from any place on.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Result, broken};
use crate::extract::{Data, Place};

#[derive(Debug)]
pub enum Source<'a> {
    Memory(&'a [u8]),
    Disk(File),
}

impl<'a> Source<'a> {
    pub fn open(data: &'a Data) -> Result<Self> {
        Ok(match data.place() {
            Place::Memory(bytes) => Self::Memory(bytes),
            Place::Disk(path) => Self::Disk(File::open(path)?),
        })
    }

    pub fn read(&self, at: u64, length: u64) -> Result<Vec<u8>> {
        let length = usize::try_from(length).map_err(|_| broken("it ends too early"))?;
        match self {
            Self::Memory(bytes) => {
                let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
                let found = rest.and_then(|rest| rest.get(..length));
                found.map(<[u8]>::to_vec)
            }
            // Nobody asks for what lies behind its end.
            Self::Disk(file) => {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, at)?;
                Some(bytes)
            }
        }
        .ok_or_else(|| broken("it ends too early"))
    }
}
