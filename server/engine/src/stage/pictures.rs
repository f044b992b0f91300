//! Pictures that language models look at: files of documents, and what a stage tells the address of.

use std::collections::HashMap;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use loupe_wire::Value;
use serde_json::json;

use super::execution::{Execution, offload};
use super::working::Row;
use super::{RunError, Searchable, language, query};
use crate::embed::{EmbedError, remote::jpeg};
use crate::extract::{Claim, Decoded, Want};
use crate::store::WithVectors;

/// Bytes of a file that is looked at.
const MAX_BYTES: u64 = 20 << 20;
/// Pictures that one stage looks at, and that are read at once.
const MOST: usize = 100;
const AT_ONCE: usize = 4;
/// Files that stand for a document, best first: what was cut out for it, what it was made of, a small copy.
const ROLES: [&str; 3] = ["processed", "source", "thumbnail"];
/// How what is told of a picture begins that is in no file of its document.
const ELSEWHERE: [&str; 3] = ["https://", "http://", "data:"];

/// The files of a namespace.
#[async_trait]
pub trait Files: Send + Sync + 'static {
    /// The bytes of the file that documents name by this address, or a sentence saying why there are none.
    async fn read(&self, url: &str, most: u64) -> Result<Bytes, String>;
}

/// A picture that is wanted for a row: by an address, as data, or by the name of a file of its document, any where empty.
pub(super) struct Wanted {
    pub row: usize,
    pub told: String,
}

/// The pictures as small JPEGs, in the order in which they are wanted. One that cannot be read is none, and told.
pub(super) async fn read(
    at: &mut Execution,
    rows: &[Row],
    wanted: &[Wanted],
) -> Result<Vec<Option<Bytes>>, RunError> {
    if !language::model(at)?.sees_pictures() {
        return Err(RunError::Embed(EmbedError::Unavailable(format!(
            "stage `{}`: the configured language model does not look at pictures; set `models.language.pictures` of the server",
            at.stage
        ))));
    }
    if wanted.len() > MOST {
        at.warn(format!(
            "stage `{}`: only {MOST} of {} pictures were looked at",
            at.stage,
            wanted.len()
        ));
    }
    let looked_at = &wanted[..wanted.len().min(MOST)];
    let files = files_of(at, rows, looked_at).await?;
    let found = read_all(at, rows, looked_at, &files).await;
    let mut pictures = Vec::with_capacity(wanted.len());
    for one in found {
        pictures.push(one.unwrap_or_else(|reason| {
            at.warn(format!(
                "stage `{}`: a picture was not looked at: {reason}",
                at.stage
            ));
            None
        }));
    }
    let count = pictures.iter().flatten().count() as u64;
    let before = at.report.metadata.get("pictures").and_then(Value::as_u64);
    let count = before.unwrap_or(0) + count;
    at.report.metadata.insert("pictures".into(), json!(count));
    pictures.resize(wanted.len(), None);
    Ok(pictures)
}

/// The files of the documents as they are stored: a stage before may have written anything into a row.
async fn files_of(
    at: &Execution,
    rows: &[Row],
    wanted: &[Wanted],
) -> Result<HashMap<String, Vec<Value>>, RunError> {
    let is_file = |one: &&Wanted| !ELSEWHERE.iter().any(|start| one.told.starts_with(start));
    let of_files = wanted.iter().filter(is_file);
    let ids = of_files.filter_map(|one| rows.get(one.row).map(Row::id));
    let mut ids: Vec<String> = ids.filter(|id| !id.is_empty()).map(str::to_owned).collect();
    ids.sort();
    ids.dedup();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let all = at.run.collections.iter().chain(&at.run.references);
    let all: Vec<Searchable> = all.cloned().collect();
    let reach = at.reach_of(&all);
    let found = at.run.store.get(&reach, &ids, WithVectors::No).await?;
    let files = found.into_iter().map(|document| {
        let internal = document.payload.get("_internal");
        let files = internal.and_then(|internal| internal.get("document_blobs")?.as_array());
        (document.document_id, files.cloned().unwrap_or_default())
    });
    Ok(files.collect())
}

async fn read_all(
    at: &Execution,
    rows: &[Row],
    wanted: &[Wanted],
    files: &HashMap<String, Vec<Value>>,
) -> Vec<Result<Option<Bytes>, String>> {
    let work = wanted.iter().map(|one| {
        let own = rows.get(one.row).and_then(|row| files.get(row.id()));
        read_one(at, own.map(Vec::as_slice).unwrap_or_default(), &one.told)
    });
    // Collected first: a stream over borrowing closures is no future of its own for every lifetime.
    let work: Vec<_> = work.collect();
    futures::stream::iter(work)
        .buffered(AT_ONCE)
        .collect()
        .await
}

/// None where the document has no such picture.
async fn read_one(at: &Execution, files: &[Value], told: &str) -> Result<Option<Bytes>, String> {
    let bytes: Bytes = if told.starts_with("https://") || told.starts_with("http://") {
        let read = query::fetched(at, told).await;
        read.map_err(|error| error.to_string())?.into()
    } else if told.starts_with("data:") {
        query::decode(told).ok_or("it is not base64")?.into()
    } else {
        let Some(url) = file(files, told) else {
            return Ok(None);
        };
        let store = at.run.outside.files.as_ref();
        let store = store.ok_or("files are not read here")?;
        store.read(url, MAX_BYTES).await?
    };
    small(at, bytes).await.map(Some)
}

/// The address of a document's picture of that name, or of the one that stands best for it.
fn file<'a>(files: &'a [Value], name: &str) -> Option<&'a str> {
    let mut pictures = files.iter().filter(|one| {
        let kind = one["content_type"].as_str();
        kind.is_some_and(|kind| kind.starts_with("image/"))
    });
    let found = match name.is_empty() {
        false => pictures.find(|one| is(one, "field", name) || is(one, "role", name)),
        true => {
            let pictures: Vec<&Value> = pictures.collect();
            let of_role = |role: &&str| pictures.iter().find(|one| is(one, "role", role)).copied();
            ROLES.iter().find_map(of_role)
        }
    };
    found?["url"].as_str()
}

fn is(one: &Value, member: &str, word: &str) -> bool {
    one[member].as_str() == Some(word)
}

/// The picture, decoded in a process of its own, as a JPEG of 512 pixels at most.
async fn small(at: &Execution, bytes: Bytes) -> Result<Bytes, String> {
    let extraction = at.run.outside.extraction.as_ref();
    let extraction = extraction.ok_or("pictures are not decoded here")?;
    let want = Want::Picture {
        thumbnail: false,
        large: false,
    };
    let decoded = extraction.decode(want, Claim::default(), bytes).await;
    let Decoded::Picture(picture) = decoded.map_err(|error| error.to_string())? else {
        return Err("the file is not a picture".into());
    };
    let made = offload(move || jpeg(&picture.pixels)).await;
    let made = made.map_err(|error| error.to_string())?;
    made.map(Bytes::from).map_err(|error| error.to_string())
}
