//! Which documents a key's scopes let it see or change: those of whole collections, and those that scopes of documents name.

use std::sync::Arc;

use loupe_engine::{
    filter::{Condition, Filter, Operator},
    store::{self, Document, ListPage, ListQuery, Reach, WithVectors},
};
use loupe_wire::{CollectionResponse, NamespaceOperation, ResourceType, Value};

use super::others;
use crate::{
    app::App,
    auth::{Caller, Level, Scope},
    db::Record,
    error::Result,
    v1::collections::{self, COLLECTIONS, lifecycle},
};

/// What the id of every document begins with, also of one that is yet to be made.
const ANY: &str = "doc_";

/// Documents in reach, for one kind of operation.
#[derive(Debug, Clone)]
pub struct Sight {
    pub reach: Reach,
    /// What scopes leave of the reach; nothing where they cover its collections.
    only: Option<Filter>,
    operation: NamespaceOperation,
}

impl Sight {
    /// A filter of the request, and what the scopes leave.
    pub fn filter(&self, asked: Option<Filter>) -> Option<Filter> {
        match (asked, self.only.clone()) {
            (Some(asked), Some(only)) => Some(asked.and(only)),
            (asked, only) => asked.or(only),
        }
    }

    /// Whether the scopes do not cover the collections themselves.
    pub fn is_narrow(&self) -> bool {
        self.only.is_some()
    }

    /// Whether the scopes cover a document of the reach.
    ///
    /// # Errors
    /// 403 if not.
    pub fn check(&self, caller: &Caller, document: &Document) -> Result<()> {
        self.allow(caller, &document.document_id)
    }

    /// Whether the scopes cover documents that are yet to be made.
    ///
    /// # Errors
    /// 403 if not.
    pub fn check_new(&self, caller: &Caller) -> Result<()> {
        self.allow(caller, ANY)
    }

    /// The scopes that the sight was narrowed to, for work that goes on after the request: [`of_patterns`] makes the same of
    /// them. Nothing where the scopes cover the collections themselves.
    pub fn patterns(&self, caller: &Caller) -> Option<Vec<String>> {
        let named = caller.patterns(ResourceType::Document, self.operation);
        self.is_narrow()
            .then(|| named.map(ToOwned::to_owned).collect())
    }

    fn allow(&self, caller: &Caller, id: &str) -> Result<()> {
        match self.is_narrow() {
            true => caller.allow(ResourceType::Document, id, self.operation),
            false => Ok(()),
        }
    }

    /// The documents of these ids that the scopes cover.
    ///
    /// # Errors
    /// The store fails.
    pub async fn get(
        &self,
        app: &App,
        ids: &[String],
        vectors: WithVectors,
    ) -> Result<Vec<Document>> {
        let found = app.store().get(&self.reach, ids, vectors).await?;
        Ok(self.covered(found))
    }

    /// As [`Sight::get`], as they were journalled last: for whoever changes them.
    ///
    /// # Errors
    /// The store or the database fails.
    pub(super) async fn current(
        &self,
        app: &App,
        ids: &[String],
        vectors: WithVectors,
    ) -> Result<Vec<Document>> {
        let found = others::current(app, &self.reach, ids, vectors).await?;
        Ok(self.covered(found))
    }

    fn covered(&self, mut found: Vec<Document>) -> Vec<Document> {
        if let Some(only) = &self.only {
            let matcher = only.matcher();
            found.retain(|document| matcher.matches(&store::view(document)));
        }
        found
    }

    /// A page of the documents that the scopes cover.
    ///
    /// # Errors
    /// The store fails.
    pub async fn list(&self, app: &App, mut query: ListQuery) -> Result<ListPage> {
        query.filter = self.filter(query.filter);
        Ok(app.store().list(&self.reach, query).await?)
    }

    /// How many documents the scopes cover.
    ///
    /// # Errors
    /// The store fails.
    pub async fn count(&self, app: &App, filter: Option<Filter>) -> Result<u64> {
        let filter = self.filter(filter);
        Ok(app.store().count(&self.reach, filter.as_ref()).await?)
    }
}

/// A collection, and what of it the key's scopes let it see or change.
///
/// # Errors
/// There is no such collection, or 403 where the scopes cover neither it nor any document.
pub async fn open<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<(Arc<Record<CollectionResponse>>, Sight)> {
    let found = match operation {
        NamespaceOperation::ReadData => collections::readable(app, scope, identifier).await,
        _ => collections::known(app, scope, identifier, operation).await,
    };
    let (collection, only) = match found {
        Err(error) if error.has_code("scope_denied") => {
            let Some(only) = named(&scope.caller, operation) else {
                return Err(error);
            };
            let known = COLLECTIONS.known(app.db(), &scope.namespace_id, identifier);
            match known.await {
                // The signal of annotations, which no document of a collection is in.
                Err(unknown) if unknown.is_not_found() => return Err(error),
                known => (known?, Some(only)),
            }
        }
        found => (found?, None),
    };
    let reach = scope.reach(vec![collection.id.clone()]);
    let sight = Sight {
        reach,
        only,
        operation,
    };
    Ok((collection, sight))
}

/// What the key's scopes let it see of every collection of the namespace, but those whose documents are put away.
///
/// # Errors
/// The database does not answer.
pub async fn everywhere<L: Level>(app: &App, scope: &Scope<L>) -> Result<Sight> {
    let all = COLLECTIONS.all(app.db(), &scope.namespace_id).await?;
    let (kind, operation) = (ResourceType::Collection, NamespaceOperation::ReadData);
    let here = all.into_iter().filter(|one| !lifecycle::is_away(one));
    let (mut ids, others): (Vec<String>, Vec<String>) = here
        .map(|record| record.id)
        .partition(|id| scope.caller.covers(kind, id, operation));
    let named = named(&scope.caller, operation).filter(|_| !others.is_empty());
    let only = named.map(|named| {
        let whole: Vec<Value> = ids.iter().map(|id| Value::from(id.as_str())).collect();
        ids.extend(others);
        if whole.is_empty() {
            return named;
        }
        let whole = Filter::leaf("collection_id", Operator::In, Value::Array(whole));
        Filter::Any(vec![whole, named])
    });
    let reach = scope.reach(ids);
    Ok(Sight {
        reach,
        only,
        operation,
    })
}

/// The documents that scopes of this operation name; nothing where they name none.
fn named(caller: &Caller, operation: NamespaceOperation) -> Option<Filter> {
    of_patterns(caller.patterns(ResourceType::Document, operation))
}

/// The documents of these ids and beginnings of ids; nothing where there are none of either.
pub fn of_patterns<'p>(patterns: impl Iterator<Item = &'p str>) -> Option<Filter> {
    let (mut ids, mut any) = (Vec::new(), Vec::new());
    for pattern in patterns {
        match pattern.strip_suffix('*') {
            None => ids.push(Value::from(pattern)),
            // Every id begins so; told as what it is, it needs no look at each of them.
            Some(prefix) if ANY.starts_with(prefix) => any.push(Filter::All(Vec::new())),
            Some(prefix) => any.push(Filter::Leaf(Condition {
                field: "document_id".into(),
                operator: Operator::StartsWith,
                value: prefix.into(),
                case_sensitive: true,
            })),
        }
    }
    if !ids.is_empty() {
        any.push(Filter::leaf("document_id", Operator::In, Value::Array(ids)));
    }
    (!any.is_empty()).then_some(Filter::Any(any))
}
