//! Writing many documents at once, and finding which.

use loupe_engine::store::{ListQuery, WithVectors};
use loupe_wire::{
    BatchDocumentUpdateResult, BatchUpdateDocumentsRequest, NamespaceOperation, Value,
};

use super::{
    may,
    writing::{change, save},
};
use crate::{
    app::App,
    auth::{Delete, Scope, Write},
    error::{Result, Violation},
    list::parse_filter,
    v1::collections,
};

/// Sets members of many documents: each its own, or one set on all that match.
pub async fn update_many(
    app: &App,
    scope: &Scope<Write>,
    collection: &str,
    request: BatchUpdateDocumentsRequest,
) -> Result<Vec<BatchDocumentUpdateResult>> {
    let collection =
        collections::known(app, scope, collection, NamespaceOperation::WriteData).await?;
    let reach = scope.reach(collection.collection_id.iter().cloned().collect());
    let at = app.clock().now().to_rfc3339();
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
        let mut documents = app.store().get(&reach, &ids, WithVectors::Yes).await?;
        documents.retain(|one| may(&scope.caller, one, NamespaceOperation::WriteData));
        let mut results = Vec::with_capacity(updates.len());
        for update in updates {
            match documents
                .iter_mut()
                .find(|document| document.document_id == update.document_id)
            {
                Some(document) => {
                    change(document, update.update_data, false, &at);
                    results.push(result(&update.document_id, None));
                }
                None => results.push(result(&update.document_id, Some("document not found"))),
            }
        }
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
        let page = app.store().list(&reach, query).await?;
        let mut documents = page.documents;
        documents.retain(|one| may(&scope.caller, one, NamespaceOperation::WriteData));
        documents
            .iter_mut()
            .for_each(|document| change(document, data.clone(), false, &at));
        results.extend(
            documents
                .iter()
                .map(|document| result(&document.document_id, None)),
        );
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
    let collection =
        collections::known(app, scope, collection, NamespaceOperation::DeleteData).await?;
    let reach = scope.reach(vec![collection.id.clone()]);
    let filter = parse_filter(filter, "filters")?;
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let query = ListQuery {
            filter: Some(filter.clone()),
            limit: 1000,
            cursor,
            ..Default::default()
        };
        let page = app.store().list(&reach, query).await?;
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
