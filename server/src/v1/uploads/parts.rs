//! Files that are sent in parts: to the bucket itself where callers go there, else to this server. Which parts there are is
//! asked of where they are, so that a caller goes on where it was, also after a restart.

use loupe_wire::{NamespaceOperation, TaskStatusEnum, UploadPart, UploadParts, UploadResponse};

use super::{check_waiting, store};
use crate::{
    app::App,
    auth::{Scope, Write},
    blob::Held,
    error::{ApiError, Result},
};

/// Bytes of a part, all but the last one; more for files that would have too many.
const SIZE: u64 = 8 << 20;
/// A bucket lists no more at once.
const MOST: u64 = 1_000;

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    /// From 1.
    number: u64,
    first: u64,
    size: u64,
}

/// Bytes of each part of a file but the last one. The same file is divided in the same way each time.
fn part_size(total: u64) -> u64 {
    total.div_ceil(MOST).next_multiple_of(1 << 20).max(SIZE)
}

fn spans(total: u64) -> Vec<Span> {
    let size = part_size(total);
    let count = total.div_ceil(size);
    let span = |number: u64| {
        let first = number * size;
        Span {
            number: number + 1,
            first,
            size: size.min(total - first),
        }
    };
    (0..count).map(span).collect()
}

/// The size that was announced, without which nobody can tell where the parts are.
fn announced(upload: &UploadResponse) -> Result<u64> {
    let size = upload.file_size_bytes.and_then(|size| size.try_into().ok());
    size.ok_or_else(|| {
        let message = "a file is sent in parts if its file_size_bytes was announced";
        ApiError::bad_request("", message)
    })
}

/// Where each part of an upload's file goes, and which are there.
pub async fn addresses(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    upload_id: &str,
) -> Result<UploadParts> {
    let operation = NamespaceOperation::WriteData;
    let (_, upload) = super::find(app, scope, bucket, upload_id, operation).await?;
    let namespace_id = &scope.namespace_id;
    let key = super::arrival(&upload);
    check_waiting(app, &key).await?;
    let total = announced(&upload)?;
    let left = (upload.expires_at - app.clock().now()).num_seconds();
    let left = u64::try_from(left).unwrap_or(0).max(1);
    let begun = begin(app, namespace_id, &upload.upload_id, &key).await?;
    let parts = match &begun {
        Some((id, held)) => direct(app, &key, (id.as_str(), held.as_slice()), total, left),
        None => through(app, &key, &upload, total, left).await?,
    };
    Ok(UploadParts {
        upload_id: upload.upload_id,
        part_size_bytes: signed(part_size(total)),
        parts,
        expires_at: upload.expires_at,
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Addresses of the bucket.
fn direct(
    app: &App,
    key: &str,
    (id, held): (&str, &[Held]),
    total: u64,
    ttl: u64,
) -> Vec<UploadPart> {
    let address = |span: Span| UploadPart {
        presigned_url: app.blobs().part_url(key, id, span.number, ttl),
        is_there: is_there(held, span),
        ..part(span)
    };
    spans(total).into_iter().map(address).collect()
}

/// The address of this server, with what it is told of each part.
async fn through(
    app: &App,
    key: &str,
    upload: &UploadResponse,
    total: u64,
    ttl: u64,
) -> Result<Vec<UploadPart>> {
    let blobs = app.blobs();
    // What was refused is sent again.
    let is_whole = upload.status == TaskStatusEnum::Pending
        && blobs
            .head(key)
            .await?
            .is_some_and(|file| file.size == total);
    let sent = blobs.sent_parts(key).await?;
    let url = blobs.signed_put_url(key, ttl);
    let address = |span: Span| {
        let range = format!(
            "bytes {}-{}/{total}",
            span.first,
            span.first + span.size - 1
        );
        UploadPart {
            presigned_url: Some(url.clone()),
            headers: [("Content-Range".to_owned(), range)].into(),
            is_there: is_whole || sent.contains(&(span.first, span.size)),
            ..part(span)
        }
    };
    Ok(spans(total).into_iter().map(address).collect())
}

fn part(span: Span) -> UploadPart {
    UploadPart {
        part_number: signed(span.number),
        first_byte: signed(span.first),
        last_byte: signed(span.first + span.size - 1),
        ..UploadPart::default()
    }
}

fn is_there(held: &[Held], span: Span) -> bool {
    let same = |part: &Held| part.number == span.number && part.size == span.size;
    held.iter().any(same)
}

/// By what the bucket knows the parts, with those that are there; none where callers do not go to a bucket.
async fn begin(
    app: &App,
    namespace_id: &str,
    upload_id: &str,
    key: &str,
) -> Result<Option<(String, Vec<Held>)>> {
    let blobs = app.blobs();
    if blobs.origin().is_none() {
        return Ok(None);
    }
    if let Some(id) = store::parts_id(app.db(), namespace_id, upload_id).await? {
        match blobs.held_parts(key, &id).await? {
            Some(held) => return Ok(Some((id, held))),
            // The bucket cleans up what takes too long.
            None => forget(app, namespace_id, upload_id, &id).await?,
        }
    }
    let Some(id) = blobs.begin_in_parts(key).await? else {
        return Ok(None);
    };
    let (space, upload, begun) = (namespace_id.to_owned(), upload_id.to_owned(), id.clone());
    let kept = app.db().write(move |tx| {
        Box::pin(async move { store::begin_parts(tx, &space, &upload, &begun).await })
    });
    if kept.await? {
        return Ok(Some((id, Vec::new())));
    }
    // Another request was faster.
    blobs.drop_parts(key, &id).await?;
    match store::parts_id(app.db(), namespace_id, upload_id).await? {
        Some(id) => Ok(Some((id, Vec::new()))),
        None => Err(super::confirming::taken()),
    }
}

async fn forget(app: &App, namespace_id: &str, upload_id: &str, id: &str) -> Result<()> {
    let (namespace_id, upload_id, id) =
        (namespace_id.to_owned(), upload_id.to_owned(), id.to_owned());
    app.db()
        .write(move |tx| {
            Box::pin(async move { store::end_parts(tx, &namespace_id, &upload_id, &id).await })
        })
        .await
}

/// Makes the file of an upload of its parts, where it was sent to a bucket in such. `s3_key` is where it arrives.
///
/// # Errors
/// Parts are missing, and the file was not sent whole either.
pub(super) async fn join(app: &App, namespace_id: &str, upload: &UploadResponse) -> Result<()> {
    let (upload_id, key) = (&upload.upload_id, &upload.s3_key);
    let Some(id) = store::parts_id(app.db(), namespace_id, upload_id).await? else {
        return Ok(());
    };
    if let Some(held) = app.blobs().held_parts(key, &id).await? {
        let spans = spans(announced(upload)?);
        let mut missing = spans.iter().filter(|span| !is_there(&held, **span));
        if let Some(first) = missing.next() {
            if app.blobs().head(key).await?.is_some() {
                return Ok(());
            }
            let (missing, all) = (1 + missing.count(), spans.len());
            let message = format!(
                "the file has not arrived: {missing} of its {all} parts are missing, the first is part {}",
                first.number
            );
            return Err(ApiError::bad_request("", message));
        }
        match app.blobs().join_parts(key, &id, held).await {
            // A confirmation that was cut off had made the file.
            Err(error) if error.is_not_found() => {}
            joined => joined?,
        }
    }
    forget(app, namespace_id, upload_id, &id).await
}

/// Removes the parts of a file that will not be made.
pub(super) async fn abandon(app: &App, namespace_id: &str, upload: &UploadResponse) -> Result<()> {
    let upload_id = &upload.upload_id;
    let Some(id) = store::parts_id(app.db(), namespace_id, upload_id).await? else {
        return Ok(());
    };
    let key = super::arrival(upload);
    app.blobs().drop_parts(&key, &id).await?;
    forget(app, namespace_id, upload_id, &id).await
}

/// Removes the parts of all files of a bucket that were not made; of the whole namespace where it is empty.
///
/// # Errors
/// The database or the file store does not answer; safe to repeat.
pub async fn abandon_all(app: &App, namespace_id: &str, bucket_id: &str) -> Result<()> {
    loop {
        let uploads = store::in_parts(app.db(), namespace_id, bucket_id).await?;
        if uploads.is_empty() {
            return Ok(());
        }
        for upload in &uploads {
            abandon(app, namespace_id, upload).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_divided_into_parts_that_every_bucket_takes() {
        let span = |number, first, size| Span {
            number,
            first,
            size,
        };
        assert_eq!(spans(1), [span(1, 0, 1)]);
        assert_eq!(spans(SIZE), [span(1, 0, SIZE)]);
        assert_eq!(spans(SIZE + 5), [span(1, 0, SIZE), span(2, SIZE, 5)]);
        // The largest file that a bucket has.
        let large = 5 << 40;
        let parts = spans(large);
        assert!(parts.len() as u64 <= MOST, "{}", parts.len());
        assert_eq!(parts.iter().map(|part| part.size).sum::<u64>(), large);
    }
}
