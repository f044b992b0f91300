//! The files of apps: made smaller once, kept by their content, put together again for a download.

use std::{
    collections::BTreeSet,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::StreamExt;
use loupe_hosted::app::{
    bundle::{LARGEST_ARCHIVE, Packer},
    files::{Asset, Manifest, compresses, type_of},
};
use sha2::{Digest, Sha256};

use crate::{
    app::App,
    auth::key,
    error::{ApiError, Result},
    id,
};

/// A file that was read and made smaller.
pub(super) struct Packed {
    pub path: String,
    pub bytes: Vec<u8>,
    pub br: Option<Vec<u8>>,
    pub gzip: Option<Vec<u8>>,
    pub asset: Asset,
    pub keys: BTreeSet<String>,
}

/// Where a file of an app lies.
pub fn file_key(app_id: &str, hash: &str) -> String {
    format!("apps/{app_id}/files/{hash}")
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(ApiError::internal)?
}

/// A file with its hash and its smaller forms, where they are smaller.
pub(super) fn pack(path: String, bytes: Vec<u8>) -> Packed {
    let kind = type_of(&path);
    let (mut br, mut gzip) = (None, None);
    if bytes.len() > 512 && compresses(&kind) {
        let smaller = |packed: Vec<u8>| (packed.len() * 10 < bytes.len() * 9).then_some(packed);
        br = brotli(&bytes).and_then(smaller);
        gzip = gzipped(&bytes).and_then(smaller);
    }
    let size = |form: &Option<Vec<u8>>| form.as_ref().map(|form| form.len() as u64);
    let asset = Asset {
        hash: hex::encode(Sha256::digest(&bytes)),
        size: bytes.len() as u64,
        br: size(&br),
        gzip: size(&gzip),
        based: kind.starts_with("text/html") && has_base(&bytes),
        r#type: kind,
    };
    Packed {
        path,
        keys: key::find_in(&bytes),
        bytes,
        br,
        gzip,
        asset,
    }
}

fn has_base(page: &[u8]) -> bool {
    page.windows(6)
        .any(|window| window.eq_ignore_ascii_case(b"<base "))
}

/// The smaller form of a file.
pub(crate) fn brotli(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::new();
    // Large files at a middle effort: a deploy is waited for.
    let quality = if bytes.len() > 1 << 20 { 6 } else { 10 };
    let mut writer = brotli::CompressorWriter::new(&mut packed, 1 << 16, quality, 22);
    writer.write_all(bytes).ok()?;
    drop(writer);
    Some(packed)
}

fn gzipped(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    writer.write_all(bytes).ok()?;
    writer.finish().ok()
}

/// Puts a version's files into one archive, and keeps it.
pub(super) async fn archive(app: &App, app_id: &str, files: &Manifest, key: &str) -> Result<()> {
    let local = Local::place(app).await?;
    let path = local.0.clone();
    let mut packer = blocking(move || {
        let file = std::fs::File::create(path).map_err(ApiError::internal)?;
        Ok(Packer::new(file))
    })
    .await?;
    for (path, file) in files {
        let bytes = app.blobs().get(&file_key(app_id, &file.hash)).await?;
        let path = path.clone();
        packer = blocking(move || {
            packer.add(&path, &bytes).map_err(ApiError::internal)?;
            Ok(packer)
        })
        .await?;
    }
    blocking(move || packer.finish().map_err(ApiError::internal)).await?;
    let file = tokio::fs::File::open(&local.0)
        .await
        .map_err(ApiError::internal)?;
    let pieces =
        tokio_util::io::ReaderStream::new(file).map(|piece| piece.map_err(ApiError::internal));
    app.blobs()
        .put_stream(key, pieces, u64::MAX, |_, _| Ok(()))
        .await?;
    Ok(())
}

/// How old a file is that nobody unpacks any more: the process that did was killed.
const LEFT: Duration = Duration::from_secs(6 * 3600);

/// Removes what a process that was killed left. Another process may share the folder: what is new is its own.
async fn tidy(folder: &Path) {
    let Ok(mut files) = tokio::fs::read_dir(folder).await else {
        return;
    };
    while let Ok(Some(file)) = files.next_entry().await {
        let changed = file.metadata().await.and_then(|about| about.modified());
        let age = changed.ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > LEFT)
            && let Err(error) = tokio::fs::remove_file(file.path()).await
        {
            tracing::warn!(%error, "a bundle that a process left behind is still there");
        }
    }
}

/// A bundle on this machine for as long as it is unpacked.
pub(super) struct Local(pub PathBuf);

impl Local {
    async fn place(app: &App) -> Result<Self> {
        let folder = app.config().data.join("unpacking");
        tokio::fs::create_dir_all(&folder)
            .await
            .map_err(ApiError::internal)?;
        tidy(&folder).await;
        Ok(Self(folder.join(id::random_base62(20))))
    }

    pub async fn fetch(app: &App, key: &str) -> Result<Self> {
        let local = Self::place(app).await?;
        app.blobs().get_to(key, &local.0, LARGEST_ARCHIVE).await?;
        Ok(local)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // It may not have been written at all.
        let _ = std::fs::remove_file(&self.0);
    }
}
