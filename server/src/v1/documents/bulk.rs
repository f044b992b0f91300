//! Writing many documents at once, and finding which.

use std::collections::HashSet;

use loupe_engine::{
    filter::Filter,
    store::{Document, ListQuery, WithVectors},
};
use loupe_wire::{
    BatchDocumentUpdate, BatchDocumentUpdateResult, BatchUpdateDocumentsRequest,
    CollectionResponse, NamespaceOperation, Object, Value,
};

use super::{
    checking::{Checks, words},
    editing::change,
    may,
    sight::Sight,
    writing::save,
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
    let many = Many {
        app,
        scope,
        collection: &collection,
        sight: &sight,
        at: app.clock().now().to_rfc3339(),
        checks: Checks::of(&collection)?,
    };
    if let Some(updates) = request.updates {
        return many.set_each(updates).await;
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
    many.set_matching(filter, &data).await
}

/// Documents of one collection that are changed by one request.
struct Many<'a> {
    app: &'a App,
    scope: &'a Scope<Write>,
    collection: &'a CollectionResponse,
    sight: &'a Sight,
    at: String,
    checks: Option<Checks>,
}

impl Many<'_> {
    /// The document with its members set, unless the collection's schema refuses that: then it stays as it is.
    fn changed(&self, before: &Document, data: Object) -> Result<Document, String> {
        let mut document = before.clone();
        change(&mut document, data, false, &self.at);
        match &self.checks {
            Some(checks) => match checks.admit(&mut document) {
                Ok(()) => Ok(document),
                Err(faults) => Err(words(&faults)),
            },
            None => Ok(document),
        }
    }

    fn is_writable(&self, document: &Document) -> bool {
        may(&self.scope.caller, document, NamespaceOperation::WriteData)
    }

    async fn save(&self, documents: Vec<Document>) -> Result<()> {
        match documents.is_empty() {
            true => Ok(()),
            false => save(self.app, self.scope, self.collection, documents).await,
        }
    }

    /// Sets members of each document that is named.
    async fn set_each(
        &self,
        updates: Vec<BatchDocumentUpdate>,
    ) -> Result<Vec<BatchDocumentUpdateResult>> {
        let ids: Vec<String> = updates
            .iter()
            .map(|update| update.document_id.clone())
            .collect();
        let mut documents = self.sight.get(self.app, &ids, WithVectors::Yes).await?;
        documents.retain(|one| self.is_writable(one));
        let (mut results, mut written) = (Vec::with_capacity(updates.len()), HashSet::new());
        for update in updates {
            let id = update.document_id;
            let Some(document) = documents.iter_mut().find(|one| one.document_id == id) else {
                results.push(result(&id, Some("document not found")));
                continue;
            };
            match self.changed(document, update.update_data) {
                Ok(changed) => {
                    *document = changed;
                    results.push(result(&id, None));
                    written.insert(id);
                }
                Err(reason) => results.push(result(&id, Some(&reason))),
            }
        }
        documents.retain(|one| written.contains(&one.document_id));
        self.save(documents).await?;
        Ok(results)
    }

    /// Sets the same members of all documents that match, page by page.
    async fn set_matching(
        &self,
        filter: Option<Filter>,
        data: &Object,
    ) -> Result<Vec<BatchDocumentUpdateResult>> {
        let (mut results, mut cursor) = (Vec::new(), None);
        loop {
            let query = ListQuery {
                filter: filter.clone(),
                limit: 500,
                cursor,
                vectors: WithVectors::Yes,
                ..Default::default()
            };
            let page = self.sight.list(self.app, query).await?;
            let mut documents = page.documents;
            documents.retain(|one| self.is_writable(one));
            documents.retain_mut(|document| {
                let changed = self.changed(document, data.clone());
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
            self.save(documents).await?;
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(results),
            }
        }
    }
}

/// What became of one document.
fn result(id: &str, error: Option<&str>) -> BatchDocumentUpdateResult {
    BatchDocumentUpdateResult {
        document_id: id.to_owned(),
        success: error.is_none(),
        error: error.map(ToOwned::to_owned),
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
