//! Writing many documents at once, and finding which.

use std::collections::HashSet;

use loupe_engine::store::{Document, ListQuery, WithVectors};
use loupe_wire::{
    BatchDocumentUpdateResult, BatchUpdateDocumentsRequest, NamespaceOperation, Object, Value,
};

use super::{
    checking::{Checks, words},
    may,
    writing::{change, save},
};
use crate::{
    app::App,
    auth::{Delete, Scope, Write},
    error::{Result, Violation},
    list::parse_filter,
};

/// Sets members of many documents: each its own, or one set on all that match.
pub async fn update_many(
    app: &App,
    scope: &Scope<Write>,
    collection: &str,
    request: BatchUpdateDocumentsRequest,
) -> Result<Vec<BatchDocumentUpdateResult>> {
    let operation = NamespaceOperation::WriteData;
    let (collection, sight) = super::open(app, scope, collection, operation).await?;
    let (at, checks) = (app.clock().now().to_rfc3339(), Checks::of(&collection)?);
    // What the collection's schema refuses stays as it is.
    let changed = |before: &Document, data: Object| {
        let mut document = before.clone();
        change(&mut document, data, false, &at);
        match checks.as_ref().map(|checks| checks.admit(&mut document)) {
            Some(Err(faults)) => Err(words(&faults)),
            Some(Ok(())) | None => Ok(document),
        }
    };
    let result = |id: &str, error: Option<&str>| BatchDocumentUpdateResult {
        document_id: id.to_owned(),
        success: error.is_none(),
        error: error.map(ToOwned::to_owned),
    };
    if let Some(updates) = request.updates {
        let ids: Vec<String> = updates
            .iter()
            .map(|update| update.document_id.clone())
            .collect();
        let mut documents = sight.get(app, &ids, WithVectors::Yes).await?;
        documents.retain(|one| may(&scope.caller, one, NamespaceOperation::WriteData));
        let (mut results, mut written) = (Vec::with_capacity(updates.len()), HashSet::new());
        for update in updates {
            let id = update.document_id;
            let Some(document) = documents.iter_mut().find(|one| one.document_id == id) else {
                results.push(result(&id, Some("document not found")));
                continue;
            };
            match changed(document, update.update_data) {
                Ok(changed) => {
                    *document = changed;
                    results.push(result(&id, None));
                    written.insert(id);
                }
                Err(reason) => results.push(result(&id, Some(&reason))),
            }
        }
        documents.retain(|one| written.contains(&one.document_id));
        if !documents.is_empty() {
            save(app, scope, &collection, documents).await?;
        }
        return Ok(results);
    }
    let Some(data) = request.update_data else {
        let msg = "send updates, or filters with update_data";
        return Err(Violation::body(&["updates"], "missing", msg, Value::Null).into());
    };
    let filter = request
        .filters
        .as_ref()
        .map(|filter| parse_filter(&filter.0, "filters"))
        .transpose()?;
    let mut results = Vec::new();
    let mut cursor = None;
    loop {
        let query = ListQuery {
            filter: filter.clone(),
            limit: 500,
            cursor,
            vectors: WithVectors::Yes,
            ..Default::default()
        };
        let page = sight.list(app, query).await?;
        let mut documents = page.documents;
        documents.retain(|one| may(&scope.caller, one, NamespaceOperation::WriteData));
        documents.retain_mut(|document| {
            let changed = changed(document, data.clone());
            let reason = changed.as_ref().err().map(String::as_str);
            results.push(result(&document.document_id, reason));
            match changed {
                Ok(changed) => {
                    *document = changed;
                    true
                }
                Err(_) => false,
            }
        });
        if !documents.is_empty() {
            save(app, scope, &collection, documents).await?;
        }
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(results),
        }
    }
}

/// The ids of every document that matches.
pub(super) async fn matching(
    app: &App,
    scope: &Scope<Delete>,
    collection: &str,
    filter: &Value,
) -> Result<Vec<String>> {
    let operation = NamespaceOperation::DeleteData;
    let (_, sight) = super::open(app, scope, collection, operation).await?;
    let filter = parse_filter(filter, "filters")?;
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let query = ListQuery {
            filter: Some(filter.clone()),
            limit: 1000,
            cursor,
            ..Default::default()
        };
        let page = sight.list(app, query).await?;
        ids.extend(
            page.documents
                .into_iter()
                .map(|document| document.document_id),
        );
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(ids),
        }
    }
}
