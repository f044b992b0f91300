//! The bytes of a file: in memory where they are few, else in a file of this machine.

use std::fs::File;
use std::io::{BufRead, BufReader, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::Result;
use super::media::disk;

/// What a file is, its beginning and its end tell: the names in an archive stand at the end.
const SAMPLE: u64 = 64 << 10;

/// Where folders are made; the system's own place where nothing else is said.
static ROOT: OnceLock<PathBuf> = OnceLock::new();

/// A folder of this machine, gone with its last use. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Folder(Arc<TempDir>);

impl Folder {
    /// # Errors
    /// The disk fails.
    pub fn new() -> std::io::Result<Self> {
        let mut folder = tempfile::Builder::new();
        folder.prefix("loupe-extract-");
        // Where that has gone, it was of a server that this process has stopped.
        let within = ROOT.get().and_then(|root| folder.tempdir_in(root).ok());
        let folder = within.map_or_else(|| folder.tempdir(), Ok)?;
        Ok(Self(Arc::new(folder)))
    }

    /// Makes all folders of this process in `root`, which is emptied: what is in it was left by one that was killed. The first
    /// call counts.
    ///
    /// # Errors
    /// The disk fails.
    pub fn work_in(root: &Path) -> std::io::Result<()> {
        // Files are named to programs that run elsewhere.
        let root = std::path::absolute(root)?;
        match std::fs::remove_dir_all(&root) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::create_dir_all(&root)?;
        ROOT.get_or_init(|| root);
        Ok(())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The bytes of a file. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Data(Kept);

#[derive(Debug, Clone)]
enum Kept {
    Memory(Bytes),
    Disk(Arc<OnDisk>),
}

#[derive(Debug)]
struct OnDisk {
    path: PathBuf,
    size: u64,
    /// The first and the last [`SAMPLE`] bytes.
    sample: Vec<u8>,
    /// Stays as long as its file is used.
    _folder: Folder,
}

/// Where the bytes of a file are.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    Memory(&'a Bytes),
    Disk(&'a Path),
}

impl Data {
    /// A file of `folder`.
    ///
    /// # Errors
    /// The file is not there, or the disk fails.
    pub async fn on_disk(folder: &Folder, name: &str) -> std::io::Result<Self> {
        let path = folder.path().join(name);
        let mut file = tokio::fs::File::open(&path).await?;
        let size = file.metadata().await?.len();
        let mut sample = Vec::new();
        (&mut file).take(SAMPLE).read_to_end(&mut sample).await?;
        let end = size.saturating_sub(SAMPLE).max(sample.len() as u64);
        file.seek(SeekFrom::Start(end)).await?;
        file.take(SAMPLE).read_to_end(&mut sample).await?;
        Ok(Self(Kept::Disk(Arc::new(OnDisk {
            path,
            size,
            sample,
            _folder: folder.clone(),
        }))))
    }

    pub fn place(&self) -> Place<'_> {
        match &self.0 {
            Kept::Memory(bytes) => Place::Memory(bytes),
            Kept::Disk(file) => Place::Disk(&file.path),
        }
    }

    pub fn len(&self) -> usize {
        match &self.0 {
            Kept::Memory(bytes) => bytes.len(),
            Kept::Disk(file) => usize::try_from(file.size).unwrap_or(usize::MAX),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Enough of the bytes to tell what the file is: all where they are in memory, else the beginning and the end.
    pub fn sample(&self) -> &[u8] {
        match &self.0 {
            Kept::Memory(bytes) => bytes,
            Kept::Disk(file) => &file.sample,
        }
    }

    /// The bytes from the first on. Blocking.
    pub(crate) fn reader(&self) -> std::io::Result<Box<dyn BufRead + '_>> {
        let reader: Box<dyn BufRead + '_> = match &self.0 {
            Kept::Memory(bytes) => Box::new(&bytes[..]),
            Kept::Disk(file) => Box::new(BufReader::new(File::open(&file.path)?)),
        };
        Ok(reader)
    }

    /// All bytes in memory. Blocking.
    pub(super) fn whole(&self) -> std::io::Result<Bytes> {
        match &self.0 {
            Kept::Memory(bytes) => Ok(bytes.clone()),
            Kept::Disk(file) => std::fs::read(&file.path).map(Bytes::from),
        }
    }

    /// Makes it a file at `path`, for as long as this lives: one on the disk is not copied.
    pub(super) async fn put(&self, path: &Path) -> Result<()> {
        match &self.0 {
            Kept::Memory(bytes) => tokio::fs::write(path, bytes).await,
            Kept::Disk(file) => tokio::fs::symlink(&file.path, path).await,
        }
        .map_err(disk)
    }
}

macro_rules! in_memory {
    ($($bytes:ty),*) => {
        $(impl From<$bytes> for Data {
            fn from(bytes: $bytes) -> Self {
                Self(Kept::Memory(Bytes::from(bytes)))
            }
        })*
    };
}

in_memory!(Bytes, Vec<u8>, String, &'static str, &'static [u8]);

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[tokio::test]
    async fn a_file_on_the_disk_is_told_by_its_ends_and_stays_while_it_is_used() {
        let folder = Folder::new().unwrap();
        let path = folder.path().join("a");
        let mut bytes = vec![b'.'; 300 << 10];
        bytes[..5].copy_from_slice(b"begin");
        let end = bytes.len() - 3;
        bytes[end..].copy_from_slice(b"end");
        std::fs::write(&path, &bytes).unwrap();
        std::fs::write(folder.path().join("small"), "few").unwrap();
        let small = Data::on_disk(&folder, "small").await.unwrap();
        assert_eq!((small.sample(), small.len()), (&b"few"[..], 3));
        let data = Data::on_disk(&folder, "a").await.unwrap();
        drop((folder, small));
        assert_eq!(data.len(), bytes.len());
        assert!(data.sample().starts_with(b"begin") && data.sample().ends_with(b"end"));
        assert_eq!(data.sample().len(), 128 << 10);
        let mut read = Vec::new();
        data.reader().unwrap().read_to_end(&mut read).unwrap();
        assert!(read == bytes && data.whole().unwrap() == bytes);
        drop(data);
        assert!(!path.exists(), "nobody needs it any more");
    }
}
