//! Addresses of the files of documents that were found.

use std::collections::{BTreeSet, HashMap};

use loupe_engine::store::{Document, Reach, WithVectors};
use loupe_wire::{Object, RetrieverModelOutput, Value};

use super::ready::ready;
use crate::{
    app::App,
    auth::{Level, Scope},
    error::Result,
    v1::{collections, documents},
};

/// Documents of one answer whose files get addresses.
const MOST: usize = 5_000;

/// Puts `document_blobs` with fresh addresses beside the ids; with `inside` also in the documents of groups. What a document's
/// files are is told by the store alone: a stage may have written anything into a row, somebody else's file with it.
///
/// # Errors
/// A store or the database does not answer.
pub(super) async fn presign<L: Level>(
    app: &App,
    scope: &Scope<L>,
    retriever: &RetrieverModelOutput,
    inside: bool,
    rows: &mut [Object],
) -> Result<()> {
    let mut ids = BTreeSet::new();
    for row in &mut *rows {
        each(row, inside, &mut |row| {
            if ids.len() < MOST {
                ids.extend(with_files(row).map(str::to_owned));
            }
        });
    }
    if ids.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = ids.into_iter().collect();
    let reach = reach(app, scope, retriever).await?;
    let found = app.store().get(&reach, &ids, WithVectors::No).await?;
    let files: HashMap<String, Vec<Value>> = found.into_iter().filter_map(files_of).collect();
    for row in rows {
        each(row, inside, &mut |row| {
            if let Some(files) = with_files(row).and_then(|id| files.get(id)) {
                put(app, row, files.clone());
            }
        });
    }
    Ok(())
}

/// Wherever the retriever reads.
async fn reach<L: Level>(
    app: &App,
    scope: &Scope<L>,
    retriever: &RetrieverModelOutput,
) -> Result<Reach> {
    let ready = ready(app, retriever)?;
    let named = collections::searched(app, &scope.namespace_id, &ready.references).await?;
    let named = named.iter().map(|one| one.id.clone());
    let all = retriever.collection_ids.iter().cloned().chain(named);
    Ok(scope.reach(all.collect()))
}

/// A row, and the documents that it gathers.
fn each(row: &mut Object, inside: bool, visit: &mut dyn FnMut(&mut Object)) {
    visit(row);
    let gathered = row.get_mut("documents").filter(|_| inside);
    for one in gathered.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(one) = one.as_object_mut() {
            each(one, inside, visit);
        }
    }
}

/// The id of a row that tells of files.
fn with_files(row: &Object) -> Option<&str> {
    row.get("_internal")?.get("document_blobs")?.as_array()?;
    row.get("document_id")?.as_str()
}

fn files_of(document: Document) -> Option<(String, Vec<Value>)> {
    let files = document.payload.get("_internal")?.get("document_blobs");
    let files = files?.as_array()?.clone();
    Some((document.document_id, files))
}

fn put(app: &App, row: &mut Object, mut files: Vec<Value>) {
    files
        .iter_mut()
        .for_each(|file| documents::presign(app, file));
    for (name, address) in documents::addresses(row, &files) {
        row.insert(name.into(), address.into());
    }
    row.insert("document_blobs".into(), Value::Array(files));
}
