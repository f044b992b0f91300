//! Files that come in parts. Each part is a file of its own until all are there, so that an upload that broke off goes on
//! where it was, in any process and after a restart, and parts may come side by side.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream::BoxStream};
use object_store::{ObjectStore, ObjectStoreExt};

use super::{Blobs, Kept, failed, parse, too_large};
use crate::error::{ApiError, Result};

/// Parts of one file.
const MOST: usize = 10_000;

/// What `Content-Range` says of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// `bytes 0-99/1000`: the first and the last byte, and the size of the whole file.
    Part { first: u64, last: u64, total: u64 },
    /// `bytes */1000`: how much of the file is there.
    Status { total: u64 },
}

impl Asked {
    /// # Errors
    /// It is neither.
    pub fn read(text: &str) -> Result<Self> {
        let read = || {
            let (part, total) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
            let total = total.trim().parse().ok()?;
            if part.trim() == "*" {
                return Some(Self::Status { total });
            }
            let (first, last) = part.split_once('-')?;
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last && last < total).then_some(Self::Part { first, last, total })
        };
        read().ok_or_else(|| {
            let message =
                "Content-Range of an upload is `bytes FIRST-LAST/TOTAL` or `bytes */TOTAL`";
            ApiError::bad_request("", message)
        })
    }

    const fn total(self) -> u64 {
        match self {
            Self::Part { total, .. } | Self::Status { total } => total,
        }
    }
}

/// A part that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    first: u64,
    size: u64,
}

/// Parts that follow one another from the first byte, and the number of bytes in them.
fn chain(parts: &mut [Part]) -> (Vec<Part>, u64) {
    // Of two that begin at the same byte, the longer one.
    parts.sort_by_key(|part| (part.first, std::cmp::Reverse(part.size)));
    let (mut found, mut at) = (Vec::new(), 0);
    for part in parts {
        if part.first == at {
            at += part.size;
            found.push(*part);
        }
    }
    (found, at)
}

fn folder(key: &str) -> String {
    format!("{key}.parts")
}

fn name(key: &str, first: u64) -> String {
    format!("{}/{first:020}", folder(key))
}

impl Blobs {
    /// Keeps a part, or only looks; makes the file of its parts once all are there. 200 then, and 202 with what is there
    /// from the first byte on in `Range` before.
    ///
    /// # Errors
    /// The part is not what its head says, the file is larger than `limit`.
    pub async fn put_part(
        &self,
        key: &str,
        asked: Asked,
        pieces: impl Stream<Item = Result<Bytes>> + Unpin,
        limit: u64,
        checksum: Option<String>,
    ) -> Result<Response> {
        let total = asked.total();
        if total > limit {
            return Err(too_large(limit));
        }
        let (first, last) = match asked {
            Asked::Part { first, last, .. } => (first, last),
            Asked::Status { .. } => return self.tell(key, total).await,
        };
        let part = Part {
            first,
            size: last - first + 1,
        };
        let sent = self.put_one(key, part, pieces, limit, checksum).await?;
        let mut parts = self.parts(key).await?;
        let (found, there) = chain(&mut parts);
        if there >= total {
            return self.join(key, &found, total).await;
        }
        // The last part once more, for the answer to the first one was lost: the file was made of its parts by then.
        if last + 1 == total
            && matches!(parts.as_slice(), [only] if only.first == first)
            && let Some(made) = self.head(key).await?.filter(|made| made.size == total)
            && self.sha256_of(key, Some(first..total)).await? == sent.sha256
        {
            self.delete_all(&folder(key)).await?;
            return Ok(done(&made.etag));
        }
        Ok(more(there))
    }

    /// Keeps a part.
    async fn put_one(
        &self,
        key: &str,
        part: Part,
        pieces: impl Stream<Item = Result<Bytes>> + Unpin,
        limit: u64,
        checksum: Option<String>,
    ) -> Result<Kept> {
        let expected = part.size;
        // Parts that overlap would let one address fill the disk.
        let others = self.parts(key).await?.into_iter();
        let others = others.filter(|other| other.first != part.first);
        if others.map(|other| other.size).sum::<u64>() + expected > limit {
            return Err(too_large(limit));
        }
        let check = move |size: u64, sha256: &str| {
            if size != expected {
                let message =
                    format!("the part has {size} bytes, its Content-Range says {expected}");
                return Err(ApiError::bad_request("", message));
            }
            if checksum.is_some_and(|checksum| checksum != sha256) {
                let message = format!("the part's sha256 is {sha256}, not the one that was sent");
                return Err(ApiError::bad_request("", message));
            }
            Ok(())
        };
        self.put_stream(&name(key, part.first), pieces, expected, check)
            .await
    }

    /// How much of the file is there. It is made of its parts if that was cut off; a file that is there stays as it is.
    async fn tell(&self, key: &str, total: u64) -> Result<Response> {
        let mut parts = self.parts(key).await?;
        let (found, there) = chain(&mut parts);
        match self.head(key).await? {
            Some(made) if parts.is_empty() && made.size == total => Ok(done(&made.etag)),
            Some(made) if parts.is_empty() || made.size != total => Ok(more(there)),
            _ if there < total => Ok(more(there)),
            _ => self.join(key, &found, total).await,
        }
    }

    /// The first byte and the size of each part that is there.
    pub async fn sent_parts(&self, key: &str) -> Result<Vec<(u64, u64)>> {
        let parts = self.parts(key).await?.into_iter();
        Ok(parts.map(|part| (part.first, part.size)).collect())
    }

    async fn parts(&self, key: &str) -> Result<Vec<Part>> {
        let mut listing = self.0.store.list(Some(&parse(&folder(key))?));
        let mut parts = Vec::new();
        while let Some(meta) = listing.try_next().await.map_err(failed)? {
            let first = meta.location.filename().and_then(|name| name.parse().ok());
            parts.extend(first.map(|first| Part {
                first,
                size: meta.size,
            }));
            if parts.len() > MOST {
                let message = format!("a file has at most {MOST} parts: send larger ones");
                return Err(ApiError::bad_request("", message));
            }
        }
        Ok(parts)
    }

    /// The bytes of files one after the other.
    fn joined(self, names: Vec<String>) -> BoxStream<'static, Result<Bytes>> {
        let each = futures::stream::iter(names.into_iter().map(Ok::<_, ApiError>));
        let opened = each.and_then(move |name| {
            let blobs = self.clone();
            async move {
                let found = blobs.0.store.get(&parse(&name)?).await.map_err(failed)?;
                Ok(found.into_stream().map_err(failed))
            }
        });
        opened.try_flatten().boxed()
    }

    /// Makes the file of its parts.
    async fn join(&self, key: &str, parts: &[Part], total: u64) -> Result<Response> {
        let names: Vec<String> = parts.iter().map(|part| name(key, part.first)).collect();
        let pieces = self.clone().joined(names);
        let check = |size: u64, _: &str| match size == total {
            true => Ok(()),
            false => {
                let message = format!("the parts have {size} bytes together, not {total}");
                Err(ApiError::bad_request("", message))
            }
        };
        let made = match self.put_stream(key, pieces, total, check).await {
            Ok(kept) => kept.etag,
            // Another request had the last part at the same time and was faster.
            Err(error) if error.is_not_found() => match self.head(key).await? {
                Some(made) if made.size == total => made.etag,
                _ => return Err(error),
            },
            Err(error) => return Err(error),
        };
        self.delete_all(&folder(key)).await?;
        Ok(done(&made))
    }
}

fn done(etag: &str) -> Response {
    let etag = format!("\"{}\"", etag.trim_matches('"'));
    (StatusCode::OK, [(header::ETAG, etag)]).into_response()
}

fn more(there: u64) -> Response {
    match there.checked_sub(1) {
        Some(last) => {
            let range = format!("bytes=0-{last}");
            (StatusCode::ACCEPTED, [(header::RANGE, range)]).into_response()
        }
        None => StatusCode::ACCEPTED.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_part_says_of_itself_is_read() {
        let part = Asked::Part {
            first: 0,
            last: 99,
            total: 1000,
        };
        assert_eq!(Asked::read("bytes 0-99/1000").unwrap(), part);
        assert_eq!(
            Asked::read("bytes */1000").unwrap(),
            Asked::Status { total: 1000 }
        );
        for wrong in [
            "",
            "bytes 0-99",
            "bytes 99-0/1000",
            "bytes 0-1000/1000",
            "items 0-1/2",
            "bytes -1/2",
            "bytes 0-1/*",
        ] {
            assert!(Asked::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parts_follow_one_another_from_the_first_byte() {
        let part = |first, size| Part { first, size };
        let mut parts = [part(10, 5), part(0, 4), part(0, 10), part(20, 5)];
        assert_eq!(chain(&mut parts), (vec![part(0, 10), part(10, 5)], 15));
        assert_eq!(chain(&mut [part(1, 5)]), (Vec::new(), 0));
    }

    #[tokio::test]
    async fn a_file_that_is_there_stays_whatever_is_asked_or_sent_again() {
        let folder = tempfile::tempdir().unwrap();
        let clock = crate::clock::Clock::default();
        let blobs = Blobs::open(folder.path(), [7; 32], "http://here".into(), clock).unwrap();
        let key = "ns_1/a/x.txt";
        let send = async |asked: &str, bytes: &'static str| {
            let pieces = futures::stream::iter([Ok(Bytes::from(bytes))]);
            let asked = Asked::read(asked).unwrap();
            let answer = blobs.put_part(key, asked, pieces, 100, None).await.unwrap();
            let range = answer.headers().get(header::RANGE);
            let range = range.map(|range| range.to_str().unwrap().to_owned());
            (answer.status().as_u16(), range)
        };
        send("bytes 0-4/10", "first").await;
        assert_eq!(send("bytes 5-9/10", "-last").await, (200, None));
        // The answer was lost.
        assert_eq!(send("bytes 5-9/10", "-last").await, (200, None));
        assert_eq!(send("bytes */10", "").await, (200, None));
        assert_eq!(send("bytes */0", "").await, (202, None));
        assert_eq!(blobs.get(key).await.unwrap(), "first-last");
        // Another file begins: until it is whole, the one before stays, whatever size is asked for.
        assert_eq!(send("bytes 5-9/10", "other").await, (202, None));
        let begun = (202, Some("bytes=0-4".to_owned()));
        assert_eq!(send("bytes 0-4/20", "again").await.0, 202);
        blobs.delete(&name(key, 5)).await.unwrap();
        assert_eq!(send("bytes */5", "").await, begun);
        assert_eq!(blobs.get(key).await.unwrap(), "first-last");
        assert_eq!(send("bytes 5-9/10", "other").await, (200, None));
        assert_eq!(blobs.get(key).await.unwrap(), "againother");
        // An empty file has no part: the question makes it where there is none.
        blobs.delete(key).await.unwrap();
        assert_eq!(send("bytes */0", "").await, (200, None));
        assert_eq!(blobs.get(key).await.unwrap(), "");
    }

    #[tokio::test]
    async fn parts_that_overlap_are_no_way_around_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let clock = crate::clock::Clock::default();
        let blobs = Blobs::open(folder.path(), [7; 32], "http://here".into(), clock).unwrap();
        let put = async |first: u64, last: u64| {
            let bytes = vec![b'x'; usize::try_from(last - first + 1).unwrap()];
            let pieces = futures::stream::iter([Ok(Bytes::from(bytes))]);
            let part = Asked::Part {
                first,
                last,
                total: 10,
            };
            blobs.put_part("ns_1/a/x.txt", part, pieces, 10, None).await
        };
        assert_eq!(put(0, 5).await.unwrap().status(), StatusCode::ACCEPTED);
        assert!(put(3, 9).await.is_err());
        // The same one again, and what is missing.
        assert_eq!(put(0, 5).await.unwrap().status(), StatusCode::ACCEPTED);
        assert_eq!(put(6, 9).await.unwrap().status(), StatusCode::OK);
        assert_eq!(blobs.head("ns_1/a/x.txt").await.unwrap().unwrap().size, 10);
    }
}
