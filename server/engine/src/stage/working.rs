//! The working set that stages hand on.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use loupe_wire::{Object, Value};
use serde_json::json;

use super::RunError;
use crate::filter::{Filter, values_at};
use crate::store::{DocStore, Document, ListQuery, Reach, Sort, WithVectors};

/// Most rows that a working set holds.
pub(crate) const MAX_ROWS: usize = 10_000;
/// Rows that one listing asks the store for.
pub(crate) const LIST_PAGE: usize = 1_000;

/// Steps of a path that a stage makes objects of; the rest is the name of the last. What lies deeper could not be written or
/// given up without taking the whole stack.
const MAX_STEPS: usize = 32;

/// Members of a document's lineage that are read by their own names.
const LINEAGE: [&str; 3] = ["source_object_id", "root_object_id", "root_bucket_id"];

/// One row: an object with `document_id`, `collection_id`, `score`, the user's fields and `_internal`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub value: Shared,
}

/// A value that stages, memory and answers hold in common. Whoever changes it has a copy of its own from then on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shared(Arc<Value>);

impl From<Value> for Shared {
    fn from(value: Value) -> Self {
        Self(Arc::new(value))
    }
}

impl From<Object> for Shared {
    fn from(object: Object) -> Self {
        Value::Object(object).into()
    }
}

impl From<Shared> for Value {
    fn from(shared: Shared) -> Self {
        Arc::unwrap_or_clone(shared.0)
    }
}

impl Deref for Shared {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl DerefMut for Shared {
    fn deref_mut(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.0)
    }
}

impl Row {
    pub fn new(document: Document, score: Option<f64>) -> Self {
        let mut row = Object::new();
        row.insert("document_id".into(), json!(document.document_id));
        row.insert("collection_id".into(), json!(document.collection_id));
        if let Some(score) = score {
            row.insert("score".into(), json!(score));
        }
        for (name, value) in document.payload {
            // The system's words win over a user's field of the same name.
            row.entry(name).or_insert(value);
        }
        Row { value: row.into() }
    }

    pub fn id(&self) -> &str {
        self.value
            .get("document_id")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub fn score(&self) -> Option<f64> {
        self.value.get("score").and_then(Value::as_f64)
    }

    /// The first value at a dot path. The objects that documents came from are known by their short names.
    pub fn at(&self, path: &str) -> Option<&Value> {
        self.all_at(path).into_iter().next()
    }

    /// Every value at a dot path; see [`Row::at`].
    pub fn all_at(&self, path: &str) -> Vec<&Value> {
        let found = values_at(&self.value, path);
        if found.is_empty() && LINEAGE.contains(&path) {
            return values_at(&self.value, &format!("_internal.lineage.{path}"));
        }
        found
    }

    /// Sets a member by its dot path, making the objects on the way.
    pub fn set(&mut self, path: &str, value: Value) {
        let mut at = &mut *self.value;
        for step in path.splitn(MAX_STEPS, '.') {
            if !at.is_object() {
                *at = Value::Object(Object::new());
            }
            at = match at.as_object_mut() {
                Some(object) => object.entry(step.to_owned()).or_insert(Value::Null),
                None => return,
            };
        }
        *at = value;
    }
}

/// What the stages so far have left.
#[derive(Debug, Clone)]
pub(crate) enum Working {
    /// Nothing has been read yet: every document in reach that the filter lets through, in this order.
    Unread {
        filter: Option<Filter>,
        sort: Option<Sort>,
    },
    Rows(Vec<Row>),
}

impl Working {
    /// The number of rows read; unread documents count as none.
    pub fn len(&self) -> usize {
        match self {
            Working::Unread { .. } => 0,
            Working::Rows(rows) => rows.len(),
        }
    }

    /// The rows, read from the store where no stage has.
    pub async fn rows(self, store: &dyn DocStore, reach: &Reach) -> Result<Vec<Row>, RunError> {
        match self {
            Working::Rows(rows) => Ok(rows),
            Working::Unread { filter, sort } => list(store, reach, filter, sort, 0, MAX_ROWS).await,
        }
    }
}

/// As [`documents`], as rows.
pub(crate) async fn list(
    store: &dyn DocStore,
    reach: &Reach,
    filter: Option<Filter>,
    sort: Option<Sort>,
    offset: usize,
    limit: usize,
) -> Result<Vec<Row>, RunError> {
    let found = documents(store, reach, filter, sort, offset, limit).await?;
    Ok(found.into_iter().map(|d| Row::new(d, None)).collect())
}

/// Documents in the order of the store, `limit` of them from `offset` on.
pub(crate) async fn documents(
    store: &dyn DocStore,
    reach: &Reach,
    filter: Option<Filter>,
    sort: Option<Sort>,
    offset: usize,
    limit: usize,
) -> Result<Vec<Document>, RunError> {
    let (mut found, mut cursor, mut offset) = (Vec::new(), None, offset);
    while found.len() < limit {
        let query = ListQuery {
            filter: filter.clone(),
            sort: sort.clone(),
            limit: LIST_PAGE.min(limit - found.len()),
            offset,
            cursor: cursor.take(),
            vectors: WithVectors::No,
        };
        let page = store.list(reach, query).await?;
        let empty = page.documents.is_empty();
        found.extend(page.documents);
        // The offset counts from the start; a cursor already stands behind it.
        offset = 0;
        match page.next {
            Some(next) if !empty => cursor = Some(next),
            _ => break,
        }
    }
    Ok(found)
}
