//! Files that callers send to a bucket in parts, each to an address of its own. The bucket keeps the parts until the file is
//! made of them; it is asked which there are.

use http::Method;
use object_store::multipart::{MultipartStore as _, PartId};

use super::{Blobs, Place, elsewhere::is_elsewhere, failed, parse, s3::Bucket};
use crate::error::{ApiError, Result};

/// Seconds for which the address is good that this server asks for parts at.
const LOOK: u64 = 60;

/// A part that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// From 1.
    pub number: u64,
    pub size: u64,
    etag: String,
}

impl Blobs {
    /// The bucket that has the file, whether or not callers go there themselves.
    fn bucket(&self, key: &str) -> Option<&Bucket> {
        match &self.0.place {
            Place::Bucket { bucket, .. } if !is_elsewhere(key) => Some(bucket),
            _ => None,
        }
    }

    /// Begins a file in parts; answers by what the bucket knows it. None where callers do not go to a bucket.
    pub async fn begin_in_parts(&self, key: &str) -> Result<Option<String>> {
        let Some(bucket) = self.direct_for(key) else {
            return Ok(None);
        };
        let begun = bucket.folder().create_multipart(&parse(key)?).await;
        begun.map(Some).map_err(failed)
    }

    /// An address that takes one part for `ttl` seconds.
    pub fn part_url(&self, key: &str, id: &str, number: u64, ttl: u64) -> Option<String> {
        let query = vec![
            ("partNumber", number.to_string()),
            ("uploadId", id.to_owned()),
        ];
        self.direct_for(key)?.sign(Method::PUT, key, ttl, query)
    }

    /// The parts that are there; none where the bucket knows no such file, for it is whole or was given up.
    pub async fn held_parts(&self, key: &str, id: &str) -> Result<Option<Vec<Held>>> {
        let Some(bucket) = self.bucket(key) else {
            return Ok(None);
        };
        let query = vec![("uploadId", id.to_owned())];
        let Some(address) = bucket.sign(Method::GET, key, LOOK, query) else {
            return Err(away());
        };
        match bucket.ask(&address).await {
            Ok(found) => Ok(found.map(|list| read(&list))),
            Err(error) => {
                tracing::error!(%error, "the parts of a file could not be listed");
                Err(away())
            }
        }
    }

    /// Makes the file of these parts.
    pub async fn join_parts(&self, key: &str, id: &str, mut held: Vec<Held>) -> Result<()> {
        let Some(bucket) = self.bucket(key) else {
            return Ok(());
        };
        held.sort_by_key(|part| part.number);
        let parts = held.into_iter().map(|part| PartId {
            content_id: part.etag,
        });
        let (key, id) = (parse(key)?, id.to_owned());
        let joined = bucket
            .folder()
            .complete_multipart(&key, &id, parts.collect());
        joined.await.map(drop).map_err(failed)
    }

    /// Removes the parts of a file that will not be made; that they are gone already is as well.
    pub async fn drop_parts(&self, key: &str, id: &str) -> Result<()> {
        let Some(bucket) = self.bucket(key) else {
            return Ok(());
        };
        let (key, id) = (parse(key)?, id.to_owned());
        match bucket.folder().abort_multipart(&key, &id).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}

fn away() -> ApiError {
    ApiError::unavailable("", "the file store is not available").retry_after(2)
}

/// The parts in a list of the bucket's, which is made by a program and has no other form.
fn read(list: &str) -> Vec<Held> {
    let parts = list.split("<Part>").skip(1);
    let held = parts.filter_map(|part| {
        let text = |start: &str| {
            let (_, rest) = part.split_once(start)?;
            rest.split_once("</").map(|(text, _)| text.trim())
        };
        Some(Held {
            number: text("<PartNumber>")?.parse().ok()?,
            size: text("<Size>")?.parse().ok()?,
            etag: text("<ETag>")?
                .replace("&quot;", "\"")
                .replace("&#34;", "\""),
        })
    });
    held.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_from_the_list_of_a_bucket() {
        let list = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListPartsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Bucket>files</Bucket><MaxParts>1000</MaxParts>
  <Part><PartNumber>2</PartNumber><LastModified>2026-11-21T10:00:00.000Z</LastModified><ETag>&quot;b1&quot;</ETag><Size>8388608</Size></Part>
  <Part>
    <PartNumber>3</PartNumber>
    <ETag>"c2"</ETag>
    <Size>17</Size>
  </Part>
  <Owner><ID>1</ID></Owner>
</ListPartsResult>"#;
        let part = |number, size, etag: &str| Held {
            number,
            size,
            etag: etag.into(),
        };
        let expected = [part(2, 8_388_608, "\"b1\""), part(3, 17, "\"c2\"")];
        assert_eq!(read(list), expected);
        assert!(read("<ListPartsResult></ListPartsResult>").is_empty());
    }
}
