//! Bundles: zip archives that strangers made. Everything is checked before the first byte is unpacked, and counted again
//! while unpacking: what an archive says of itself is a claim.

mod paths;
#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom, Write},
};

use zip::{ZipArchive, ZipWriter, result::ZipResult, write::SimpleFileOptions};

pub use paths::{check_names, check_path};
use paths::{is_litter, shown, without_common_folder};

/// What a bundle may hold.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Files.
    pub files: usize,
    /// Bytes of all files.
    pub total: u64,
    /// Bytes of one file.
    pub file: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files: 5_000,
            total: 200 << 20,
            file: 25 << 20,
        }
    }
}

/// Bytes of an archive that is looked at at all.
pub const LARGEST_ARCHIVE: u64 = 100 << 20;

/// How much larger than its archive a bundle may be, once it is larger than [`FREE`].
const RATIO: u64 = 100;
const FREE: u64 = 10 << 20;

/// Why a bundle is refused; the text is for its owner.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BundleError(String);

pub(super) fn refuse<T>(why: impl Into<String>) -> Result<T, BundleError> {
    Err(BundleError(why.into()))
}

/// Where a file lies in the archive and where it is to be served.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Path from the app's root, without a slash at the start.
    pub path: String,
    index: usize,
    size: u64,
}

/// An archive whose list of files was accepted.
pub struct Bundle {
    archive: ZipArchive<BufReader<File>>,
    entries: Vec<Entry>,
    limits: Limits,
    unpacked: u64,
}

impl Bundle {
    /// Reads the list of files and checks all of it.
    ///
    /// # Errors
    /// What is wrong with the bundle.
    pub fn open(mut file: File, limits: Limits) -> Result<Self, BundleError> {
        let size = file.metadata().map_err(unreadable)?.len();
        if size > LARGEST_ARCHIVE {
            return refuse(format!("the bundle is larger than {LARGEST_ARCHIVE} bytes"));
        }
        check_end(&mut file, size, limits.files)?;
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(unreadable)?;
        // The library knows files by their names, and keeps the last of a name: others may see another one.
        if archive.has_duplicate_names() {
            return refuse("the bundle has the same file twice");
        }
        let mut entries = list(&mut archive, size, limits)?;
        entries = without_common_folder(entries);
        check_names(entries.iter().map(|entry| entry.path.as_str()))?;
        Ok(Self {
            archive,
            entries,
            limits,
            unpacked: 0,
        })
    }

    /// The files, in the order of the archive.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Begins to count for another reading of the files.
    pub fn begin(&mut self) {
        self.unpacked = 0;
    }

    /// One file, whole.
    ///
    /// # Errors
    /// It is damaged, or larger than it says.
    pub fn read(&mut self, number: usize) -> Result<Vec<u8>, BundleError> {
        let Some(entry) = self.entries.get(number) else {
            return refuse("the bundle has no such file");
        };
        let mut bytes = Vec::with_capacity(usize::try_from(entry.size).unwrap_or(0));
        let file = self.archive.by_index(entry.index).map_err(unreadable)?;
        file.take(entry.size + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > entry.size {
            return refuse(format!("{} is larger than the bundle says", entry.path));
        }
        self.unpacked += bytes.len() as u64;
        if self.unpacked > self.limits.total {
            return refuse(too_large(self.limits.total));
        }
        Ok(bytes)
    }
}

/// Files going into an archive, as they are: most of them are small already.
pub struct Packer(ZipWriter<File>);

impl Packer {
    /// An archive in this file.
    pub fn new(file: File) -> Self {
        Self(ZipWriter::new(file))
    }

    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, path: &str, bytes: &[u8]) -> ZipResult<()> {
        let options =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        self.0.start_file(path, options)?;
        Ok(self.0.write_all(bytes)?)
    }

    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> ZipResult<()> {
        self.0.finish().map(drop)
    }
}

fn unreadable(error: impl std::fmt::Display) -> BundleError {
    BundleError(format!(
        "the bundle cannot be read as a zip archive: {error}"
    ))
}

fn too_large(limit: u64) -> String {
    format!("the bundle's files are larger than {limit} bytes together")
}

/// Looks at the archive's own count before a library makes room for it: a million empty files are refused here.
fn check_end(file: &mut File, size: u64, most: usize) -> Result<(), BundleError> {
    const END: &[u8] = b"PK\x05\x06";
    const LARGE: &[u8] = b"PK\x06\x07";
    // The record, the longest comment behind it, the one of large archives before it, and what the library looks at beyond.
    let tail = size.min(22 + 65_535 + 20 + 64);
    file.seek(SeekFrom::Start(size - tail))
        .map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(tail)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    if bytes.windows(4).any(|window| window == LARGE) {
        return refuse("the bundle is an archive of the large kind (zip64): use a smaller one");
    }
    let mut found = false;
    for (at, _) in bytes
        .windows(4)
        .enumerate()
        .filter(|(_, window)| *window == END)
    {
        let Some(count) = bytes.get(at + 10..at + 12) else {
            continue;
        };
        found = true;
        if usize::from(u16::from_le_bytes([count[0], count[1]])) > most.saturating_mul(2) {
            return refuse(format!("the bundle has more than {most} files"));
        }
    }
    if !found {
        return refuse("the bundle is no zip archive, or was cut off");
    }
    Ok(())
}

/// Every file's claim, checked. Folders and what file managers leave behind are passed over.
fn list(
    archive: &mut ZipArchive<BufReader<File>>,
    size: u64,
    limits: Limits,
) -> Result<Vec<Entry>, BundleError> {
    const KIND: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    const FOLDER: u32 = 0o040_000;
    let (mut entries, mut total) = (Vec::new(), 0_u64);
    for index in 0..archive.len() {
        let file = archive.by_index_raw(index).map_err(unreadable)?;
        let Ok(name) = std::str::from_utf8(file.name_raw()) else {
            return refuse("a file of the bundle has a name that is not UTF-8");
        };
        let kind = file.unix_mode().map_or(0, |mode| mode & KIND);
        if !matches!(kind, 0 | REGULAR | FOLDER) {
            return refuse(format!("{} is a link or a device, not a file", shown(name)));
        }
        if file.encrypted() {
            return refuse(format!("{} is encrypted", shown(name)));
        }
        let path = name.trim_end_matches('/');
        check_path(path).map_err(|why| BundleError(format!("{} {why}", shown(name))))?;
        if name.ends_with('/') || kind == FOLDER || is_litter(path) {
            continue;
        }
        if entries.len() == limits.files {
            return refuse(format!("the bundle has more than {} files", limits.files));
        }
        if file.size() > limits.file {
            let most = limits.file;
            return refuse(format!("{} is larger than {most} bytes", shown(name)));
        }
        total = total.saturating_add(file.size());
        if total > limits.total {
            return refuse(too_large(limits.total));
        }
        entries.push(Entry {
            path: path.to_owned(),
            index,
            size: file.size(),
        });
    }
    if total > FREE && total / RATIO > size {
        return refuse("the bundle unpacks to more than a hundred times its size");
    }
    if entries.is_empty() {
        return refuse("the bundle has no files");
    }
    Ok(entries)
}
