//! Files that a request names by their address: `http` and `https` through the guarded client, `s3` through a storage
//! connection. They are kept as they come, in flat memory; those of a storage may stay there, and are read once to be known.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use loupe_engine::web::Ask;
use loupe_wire::{CreateBlobRequest, Object, Value};
use reqwest::header::{self, HeaderMap};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use super::blobs::{CONNECTION, Reading, default_mime, given_name};
use crate::{
    app::App,
    blob::{LINK, safe_name, shown_name},
    error::{ApiError, Result},
    id,
    v1::connections::{self, Link},
};

/// A file that is kept under its object already.
pub struct Fetched {
    pub blob_id: String,
    pub key: String,
    pub filename: String,
    pub mime: String,
    pub size: u64,
    pub sha256: String,
    /// Where it came from, without what may be secret in an address.
    pub from: String,
    /// What it is read through where it stays at its source.
    pub connection_id: Option<String>,
}

/// Time without a byte, where nobody waits for the answer.
const IDLE: Duration = Duration::from_secs(60);

/// Bytes a second that a file has to bring at least, where nobody waits for the answer: half a gigabyte takes a quarter of
/// an hour at most.
const SLOWEST: u64 = 512 << 10;

/// How long a file may take.
#[derive(Debug, Clone, Copy)]
pub enum Patience {
    /// The answer has to leave before the request is cut off.
    Request(Duration),
    /// Nobody waits: as long as bytes come.
    Work,
}

impl Patience {
    /// That of a request of this server.
    pub fn of_request(app: &App) -> Self {
        let seconds = app.config().limits.request_seconds.saturating_sub(5).max(1);
        Self::Request(Duration::from_secs(seconds))
    }

    /// From the question to the last byte of a file of this size.
    const fn whole(self, size: u64) -> Duration {
        match self {
            Self::Request(whole) => whole,
            Self::Work => Duration::from_secs(IDLE.as_secs() + size / SLOWEST),
        }
    }

    /// To the next piece.
    const fn idle(self) -> Duration {
        match self {
            Self::Request(whole) => whole,
            Self::Work => IDLE,
        }
    }
}

/// Objects of one request whose files are kept or fetched at once, where nobody says how many.
const PREPARED: usize = 8;

/// Files at once, of which each may fill three parts of what the blob store is sent.
const MOST_AT_ONCE: usize = 16;

/// How the files of many objects are fetched.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub at_once: usize,
    pub patience: Patience,
}

impl Pace {
    /// As long as a request may take.
    pub fn of_request(app: &App) -> Self {
        Self {
            at_once: PREPARED,
            patience: Patience::of_request(app),
        }
    }

    /// Of work that nobody waits for, so many files at once.
    pub fn of_work(at_once: Option<i64>) -> Self {
        let at_once = at_once.and_then(|count| usize::try_from(count).ok());
        Self {
            at_once: at_once.unwrap_or(PREPARED).clamp(1, MOST_AT_ONCE),
            patience: Patience::Work,
        }
    }
}

fn late(after: Duration) -> ApiError {
    let seconds = after.as_secs();
    let message = format!("the file did not arrive within {seconds} seconds: upload it instead");
    ApiError::bad_request("", message)
}

type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// A file's head, and its bytes as they come.
struct Found {
    name: Option<String>,
    mime: Option<String>,
    /// As the answer announces it.
    size: Option<u64>,
    pieces: Pieces,
    /// Leads back to it, in a storage.
    link: Option<Link>,
}

/// Whether the text is an address that files are fetched from.
pub fn is_address(text: &str) -> bool {
    ["http://", "https://", "s3://"]
        .iter()
        .any(|scheme| text.starts_with(scheme))
}

/// Fetches the file and keeps it under its object.
///
/// # Errors
/// The address is refused, does not answer with a file, or takes longer than it may.
pub async fn fetch(
    reading: Reading<'_>,
    request: &CreateBlobRequest,
    address: &str,
) -> Result<Fetched> {
    let Reading { app, patience, .. } = reading;
    let url = Url::parse(address)
        .map_err(|error| ApiError::bad_request("", format!("this is no address: {error}")))?;
    let (begun, limit) = (Instant::now(), app.config().limits.upload_bytes);
    let head = async {
        match url.scheme() {
            "s3" => from_s3(reading, request, address).await,
            _ => from_web(app, &url, patience.whole(limit)).await,
        }
    };
    let head = timeout(patience.idle(), head).await;
    let mut found = head.unwrap_or_else(|_| Err(late(patience.idle())))?;
    let size = found.size.map_or(limit, |size| size.min(limit));
    found.pieces = in_time(found.pieces, begun, patience.whole(size), patience.idle());
    keep(reading, request, &url, found).await
}

/// The same bytes, as long as they come in time. One that is late is a fault of the stream, so that what was kept of it goes.
fn in_time(pieces: Pieces, begun: Instant, whole: Duration, idle: Duration) -> Pieces {
    let deadline = begun + whole;
    let next = move |mut pieces: Pieces| async move {
        let now = Instant::now();
        // A piece that is there already would be taken at any time.
        if now >= deadline {
            return Err(late(whole));
        }
        let next = timeout_at(deadline.min(now + idle), pieces.try_next()).await;
        let piece = next.unwrap_or_else(|_| Err(late(whole.min(idle))))?;
        Ok(piece.map(|piece| (piece, pieces)))
    };
    Box::pin(futures::stream::try_unfold(pieces, next))
}

async fn from_web(app: &App, url: &Url, patience: Duration) -> Result<Found> {
    let ask = Ask {
        max_bytes: app.config().limits.upload_bytes,
        timeout: patience,
        ..Ask::get(url.as_str())
    };
    let opened = app.outbound().open(ask).await?;
    if !opened.status.is_success() {
        let message = format!("the address answers {}", opened.status.as_u16());
        return Err(ApiError::bad_request("", message));
    }
    let text = |name| opened.headers.get(name)?.to_str().ok();
    let mime = text(header::CONTENT_TYPE).map(|mime| essence(mime).to_owned());
    let size = text(header::CONTENT_LENGTH).and_then(|size| size.parse().ok());
    let name = disposition(&opened.headers).or_else(|| last_segment(&opened.url));
    let pieces = futures::stream::try_unfold(opened, |mut opened| async move {
        let piece = opened.next().await?;
        Ok(piece.map(|piece| (piece, opened)))
    });
    Ok(Found {
        name,
        mime,
        size,
        pieces: Box::pin(pieces),
        link: None,
    })
}

async fn from_s3(
    reading: Reading<'_>,
    request: &CreateBlobRequest,
    address: &str,
) -> Result<Found> {
    let Reading { app, scope, .. } = reading;
    let member = |metadata: &Object| metadata.get(CONNECTION)?.as_str().map(ToOwned::to_owned);
    let named = request.metadata.as_ref().and_then(member);
    let for_s3 = connections::for_s3(app, &scope.caller, named.as_deref());
    let (connection_id, access) = for_s3.await?;
    // A key is what stands there, letter by letter: nothing in it is an escape.
    let place = address
        .strip_prefix("s3://")
        .and_then(|rest| rest.split_once('/'));
    let Some((bucket, key)) = place.filter(|(bucket, key)| !bucket.is_empty() && !key.is_empty())
    else {
        return Err(ApiError::bad_request("", "the address is s3://BUCKET/KEY"));
    };
    let opened = access.open(app.outbound(), bucket, key).await?;
    connections::note_use(app, &scope.caller.org_id, &connection_id, None).await;
    if opened.size > app.config().limits.upload_bytes {
        let limit = app.config().limits.upload_bytes;
        let message = format!("the file is larger than {limit} bytes");
        return Err(ApiError::payload_too_large("", message));
    }
    Ok(Found {
        name: key.rsplit('/').next().map(ToOwned::to_owned),
        mime: opened
            .content_type
            .as_deref()
            .map(|mime| essence(mime).to_owned()),
        size: Some(opened.size),
        pieces: opened.pieces,
        link: Some(Link {
            org_id: scope.caller.org_id.clone(),
            connection_id,
            bucket: bucket.to_owned(),
            key: key.to_owned(),
        }),
    })
}

async fn keep(
    reading: Reading<'_>,
    request: &CreateBlobRequest,
    url: &Url,
    found: Found,
) -> Result<Fetched> {
    let app = reading.app;
    let filename = match (given_name(request), found.name) {
        (Some(given), _) => shown_name(given),
        (None, Some(name)) => shown_name(&name),
        (None, None) => request.property.clone(),
    };
    let own = request.metadata.as_ref();
    let own = own.and_then(|metadata| metadata.get("mime_type")?.as_str().map(ToOwned::to_owned));
    let said = own.or(found.mime.filter(|mime| mime != "application/octet-stream"));
    let guess = || {
        mime_guess::from_path(&filename)
            .first_raw()
            .map(ToOwned::to_owned)
    };
    let mime = said.or_else(guess);
    let blob_id = id::new("blob_");
    let stays = request.canonicalize_source == Some(false);
    let link = found.link.filter(|_| stays);
    let below = match &link {
        Some(_) => id::new(LINK),
        None => blob_id.clone(),
    };
    let key = format!("{}/{below}/{}", reading.folder, safe_name(&filename));
    let check = |_: u64, sha256: &str| match &request.checksum {
        Some(checksum) if !super::blobs::is_sha256(checksum, sha256) => {
            Err(ApiError::bad_request("", "the file has another sha256"))
        }
        _ => Ok(()),
    };
    let (size, sha256) = match &link {
        Some(link) => stay(app, &key, link, found.pieces, check).await?,
        None => {
            let limit = app.config().limits.upload_bytes;
            let kept = app.blobs().put_stream(&key, found.pieces, limit, check);
            let kept = kept.await?;
            (kept.size, kept.sha256)
        }
    };
    let mut from = url.clone();
    from.set_query(None);
    from.set_fragment(None);
    Ok(Fetched {
        blob_id,
        key,
        mime: mime.unwrap_or_else(|| default_mime(request.r#type).to_owned()),
        filename,
        size,
        sha256,
        from: from.into(),
        connection_id: link.map(|link| link.connection_id),
    })
}

/// Reads a file that stays where it is, and keeps what leads there; answers size and SHA-256 in hex.
async fn stay(
    app: &App,
    key: &str,
    link: &Link,
    mut pieces: Pieces,
    check: impl FnOnce(u64, &str) -> Result<()>,
) -> Result<(u64, String)> {
    let (mut hash, mut size) = (Sha256::new(), 0_u64);
    while let Some(piece) = pieces.try_next().await? {
        size += piece.len() as u64;
        hash.update(&piece);
    }
    let sha256 = hex::encode(hash.finalize());
    check(size, &sha256)?;
    app.blobs().put(key, link.seal(app.vault())?).await?;
    Ok((size, sha256))
}

fn essence(mime: &str) -> &str {
    mime.split(';').next().unwrap_or_default().trim()
}

/// The name that an answer gives its file.
fn disposition(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::CONTENT_DISPOSITION)?.to_str().ok()?;
    let mut parts = text.split(';').map(str::trim);
    let name = parts.find_map(|part| part.strip_prefix("filename="))?;
    let name = name.trim_matches('"');
    (!name.is_empty()).then(|| name.to_owned())
}

fn last_segment(url: &Url) -> Option<String> {
    let last = url.path_segments()?.next_back()?;
    let name = percent_decoded(last);
    (!name.is_empty()).then_some(name)
}

/// `%20` and the like as what they stand for.
fn percent_decoded(text: &str) -> String {
    // A pair of a form whose name is empty: the one decoder that is at hand, which reads a plus as a blank.
    let text = text.replace('+', "%2B");
    let mut pairs = url::form_urlencoded::parse(text.as_bytes());
    pairs
        .next()
        .map(|(name, _)| name.into_owned())
        .unwrap_or_default()
}

/// A fault of a file's address, at its place in the request.
pub fn fault(index: usize, error: &ApiError) -> ApiError {
    let path = ["blobs", &index.to_string(), "data"];
    let message = error.message();
    crate::error::Violation::body(&path, "value_error", message, Value::Null).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_answer_or_the_address() {
        let url = Url::parse("https://example.com/a/my%20file+1.pdf?token=secret").unwrap();
        assert_eq!(last_segment(&url).unwrap(), "my file+1.pdf");
        assert_eq!(
            last_segment(&Url::parse("https://example.com/").unwrap()),
            None
        );
        for (said, name) in [
            ("attachment; filename=\"a b.pdf\"", Some("a b.pdf")),
            ("inline; filename=x.png; size=3", Some("x.png")),
            ("attachment", None),
            ("attachment; filename=\"\"", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_DISPOSITION, said.parse().unwrap());
            assert_eq!(disposition(&headers).as_deref(), name, "{said}");
        }
    }
}
