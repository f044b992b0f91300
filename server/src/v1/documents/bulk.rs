//! Writing many documents at once, and finding which.

use std::collections::{BTreeMap, HashSet};

use loupe_engine::{
    filter::Filter,
    store::{Document, ListQuery, WithVectors, view},
};
use loupe_wire::{
    BatchDocumentUpdate, BatchDocumentUpdateResult, BatchUpdateDocumentsRequest,
    CollectionResponse, NamespaceOperation, Object, Value,
};

use super::{
    checking::{Checks, words},
    editing::{Tries, change},
    may,
    sight::Sight,
    writing::{Beside, CHANGED, save},
};
use crate::{
    app::App,
    auth::{Delete, Scope, Write},
    db::Record,
    error::{Result, Violation},
    list::parse_filter,
    v1::collections,
};

/// Documents of one step, where all that match are meant.
const PAGE: usize = 500;

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
        for (member, is_sent) in [
            ("filters", request.filters.is_some()),
            ("update_data", request.update_data.is_some()),
        ] {
            if is_sent {
                let msg = "send updates, or filters with update_data, not both";
                return Err(Violation::body(&[member], "value_error", msg, Value::Null).into());
            }
        }
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

/// What became of each of some updates.
type Told = Vec<Option<BatchDocumentUpdateResult>>;

/// Documents of one collection that are changed by one request.
struct Many<'a> {
    app: &'a App,
    scope: &'a Scope<Write>,
    collection: &'a Record<CollectionResponse>,
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

    /// Sets members of each document that is named.
    async fn set_each(
        &self,
        updates: Vec<BatchDocumentUpdate>,
    ) -> Result<Vec<BatchDocumentUpdateResult>> {
        let results = self.set(&updates, None).await?.into_iter().zip(updates);
        let told = results.map(|(told, update)| {
            told.unwrap_or_else(|| result(&update.document_id, Some("document not found")))
        });
        Ok(told.collect())
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
                limit: PAGE,
                cursor,
                ..Default::default()
            };
            let page = self.sight.list(self.app, query).await?;
            let updates = page.documents.into_iter().map(|one| BatchDocumentUpdate {
                document_id: one.document_id,
                update_data: data.clone(),
            });
            let updates: Vec<BatchDocumentUpdate> = updates.collect();
            let told = self.set(&updates, filter.as_ref()).await?;
            // What went or changed meanwhile matches no more.
            results.extend(told.into_iter().flatten());
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(results),
            }
        }
    }

    /// Sets members of documents as they are now; answers what became of each update, none where its document is not there, or
    /// is not as the filter says any more. Where other processes go on changing some of them, the others are written without those.
    async fn set(&self, updates: &[BatchDocumentUpdate], filter: Option<&Filter>) -> Result<Told> {
        let mut tries = Tries::new(self.app, self.scope);
        let set = loop {
            let set = self.set_once(updates, filter, &tries).await;
            if let Some(set) = tries.outcome(set) {
                break set;
            }
        };
        match (set, updates) {
            (Err(error), [one]) if error.has_code(CHANGED) => {
                let told = result(&one.document_id, Some(&error.message()));
                Ok(vec![Some(told)])
            }
            (Err(error), many) if error.has_code(CHANGED) => {
                let (first, rest) = many.split_at(many.len() / 2);
                let mut told = Box::pin(self.set(first, filter)).await?;
                told.extend(Box::pin(self.set(rest, filter)).await?);
                Ok(told)
            }
            (set, _) => set,
        }
    }

    async fn set_once(
        &self,
        updates: &[BatchDocumentUpdate],
        filter: Option<&Filter>,
        tries: &Tries<'_>,
    ) -> Result<Told> {
        let ids = updates.iter().map(|update| update.document_id.clone());
        let ids: Vec<String> = ids.collect();
        let turn = self.app.writers.turn(&ids).await;
        let since = tries.since().await?;
        let sight = self.sight;
        let found = sight.current(self.app, &ids, WithVectors::Yes).await?;
        let matcher = filter.map(Filter::matcher);
        let is_meant = |one: &Document| {
            let matcher = matcher.as_ref();
            self.is_writable(one) && matcher.is_none_or(|matcher| matcher.matches(&view(one)))
        };
        let found = found.into_iter().filter(is_meant);
        let mut documents: BTreeMap<String, Document> =
            found.map(|one| (one.document_id.clone(), one)).collect();
        let (mut results, mut written) = (Vec::with_capacity(updates.len()), HashSet::new());
        for update in updates {
            let told = documents.get_mut(&update.document_id).map(|document| {
                let changed = self.changed(document, update.update_data.clone());
                let reason = changed.as_ref().err().map(String::as_str);
                let told = result(&update.document_id, reason);
                if let Ok(changed) = changed {
                    *document = changed;
                    written.insert(update.document_id.clone());
                }
                told
            });
            results.push(told);
        }
        documents.retain(|id, _| written.contains(id));
        if !documents.is_empty() {
            let beside = Beside {
                since: Some(since),
                turn: Some(turn),
                ..Beside::default()
            };
            let spec = collections::spec(self.app, &self.scope.namespace_id, self.collection);
            let documents = documents.into_values().collect();
            save(self.app, self.scope, &spec, documents, beside).await?;
        }
        Ok(results)
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

/// The ids of every document that matches, to be removed.
pub(super) async fn matching(
    app: &App,
    scope: &Scope<Delete>,
    collection: &str,
    filter: &Value,
) -> Result<Vec<String>> {
    let operation = NamespaceOperation::DeleteData;
    let (_, sight) = super::open(app, scope, collection, operation).await?;
    let sent = filter;
    let filter = parse_filter(filter, "filters")?;
    // An empty form is no wish to lose everything.
    if filter.is_trivial() {
        let msg = "a filter without a condition would remove every document: say a condition that all of them meet, if that is meant";
        return Err(Violation::body(&["filters"], "value_error", msg, sent.clone()).into());
    }
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
