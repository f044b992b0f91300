//! How a document lies in an engine: which reserved fields a point has, and what may be written at all.
//!
//! | field | holds | index |
//! | --- | --- | --- |
//! | `_s` | namespace and collection | keyword, `is_tenant` |
//! | `_d` | the document's payload | |
//! | `_a` | whom `_internal._acl` lets see the document | keyword |
//! | `_k` | the text of keyword search | text, BM25 |
//! | `_t` | hashes of the facts filters ask for, see [`super::pushdown`] | integer, lookup |

use std::collections::{BTreeMap, BTreeSet, HashMap};

use loupe_wire::{Object, Value};
use uuid::Uuid;

use super::pushdown;
use super::shards::{Cond, Found, Point};
use super::{CollectionSpec, Document, Payload, Reach, Result, StoreError};

pub const SCOPE: &str = "_s";
pub const DOCUMENT: &str = "_d";
pub const KEYWORDS: &str = "_k";
pub const TERMS: &str = "_t";
pub const ACL: &str = "_a";

/// Among those who may see a document: everybody. Names of principals have a `=` before them.
const EVERYBODY: &str = "*";

/// Between namespace and collection: no id contains it.
const SEPARATOR: char = '\u{1f}';

/// The value of the reserved scope field.
pub fn scope(namespace_id: &str, collection_id: &str) -> String {
    format!("{namespace_id}{SEPARATOR}{collection_id}")
}

/// The scopes of a reach.
pub fn scopes(reach: &Reach) -> Vec<String> {
    let of = |id: &String| scope(&reach.namespace_id, id);
    reach.collection_ids.iter().map(of).collect()
}

/// The condition on the principal, for keys of end users.
pub fn principal(reach: &Reach) -> Option<Cond> {
    let principal = reach.principal.as_ref()?;
    Some(Cond::Keyword {
        path: ACL,
        any: vec![format!("={principal}"), EVERYBODY.to_owned()],
    })
}

/// Whom a document's access list lets see it; nothing when it has none.
fn acl(payload: &Object) -> Option<Value> {
    let acl = payload.get("_internal")?.get("_acl")?;
    let mut names = BTreeSet::new();
    for list in ["owner", "read", "write"].map(|key| acl.get(key)) {
        match list {
            Some(Value::String(one)) => {
                names.insert(format!("={one}"));
            }
            Some(Value::Array(many)) => {
                names.extend(
                    many.iter()
                        .filter_map(Value::as_str)
                        .map(|one| format!("={one}")),
                );
            }
            _ => {}
        }
    }
    if acl.get("public") == Some(&Value::Bool(true)) {
        names.insert(EVERYBODY.to_owned());
    }
    (!names.is_empty()).then(|| names.into_iter().map(Value::String).collect())
}

/// The condition that every access carries.
pub fn reach(reach: &Reach) -> Cond {
    let scoped = Cond::Keyword {
        path: SCOPE,
        any: scopes(reach),
    };
    match principal(reach) {
        Some(principal) => scoped.and(principal),
        None => scoped,
    }
}

/// [`reach`] for a point at hand.
pub fn reaches(reach: &Reach, found: &Found) -> bool {
    let scope = found.scope.as_deref();
    let Some((namespace, collection)) = scope.and_then(|scope| scope.split_once(SEPARATOR)) else {
        return false;
    };
    if namespace != reach.namespace_id || !reach.collection_ids.iter().any(|id| id == collection) {
        return false;
    }
    let Some(principal) = &reach.principal else {
        return true;
    };
    let internal = found.payload.get("_internal");
    let Some(acl) = internal.and_then(|internal| internal.get("_acl")) else {
        return false;
    };
    let names = |key: &str| match acl.get(key) {
        Some(Value::String(one)) => one == principal,
        Some(Value::Array(many)) => many.iter().any(|one| one.as_str() == Some(principal)),
        _ => false,
    };
    acl.get("public") == Some(&Value::Bool(true))
        || ["owner", "read", "write"].into_iter().any(names)
}

/// The point id of a document id; nothing when it has not the form of one.
pub fn point_id(document_id: &str) -> Option<Uuid> {
    let digits = document_id.strip_prefix("doc_")?;
    let plain = digits.len() == 32
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if plain {
        Uuid::try_parse(digits).ok()
    } else {
        None
    }
}

/// The inverse of [`point_id`].
pub fn document_id(id: Uuid) -> String {
    format!("doc_{}", id.simple())
}

/// What filters see of a document: its payload with `document_id` and `collection_id` at the top level.
pub fn view(document: &Document) -> Value {
    let mut view = Object::from(document.payload.clone());
    view.insert(
        "document_id".to_owned(),
        Value::String(document.document_id.clone()),
    );
    view.insert(
        "collection_id".to_owned(),
        Value::String(document.collection_id.clone()),
    );
    Value::Object(view)
}

/// Calls `look` with the [`view`] of a document, which is whole again afterwards. Copies nothing that nobody else holds.
pub fn viewed<T>(document: &mut Document, look: impl FnOnce(&Value) -> T) -> T {
    let mut fields = Object::from(std::mem::take(&mut document.payload));
    let ids = [
        ("document_id", &document.document_id),
        ("collection_id", &document.collection_id),
    ];
    let own = ids.map(|(name, id)| fields.insert(name.to_owned(), Value::String(id.clone())));
    let view = Value::Object(fields);
    let seen = look(&view);
    if let Value::Object(mut fields) = view {
        for ((name, _), own) in ids.into_iter().zip(own).rev() {
            match own {
                Some(own) => fields.insert(name.to_owned(), own),
                None => fields.shift_remove(name),
            };
        }
        document.payload = fields.into();
    }
    seen
}

/// Documents as points, the last of equal ids. Everything is checked before anything is written.
pub fn points(collection: &CollectionSpec, documents: Vec<Document>) -> Result<Vec<Point>> {
    if collection.namespace_id.contains(SEPARATOR) || collection.collection_id.contains(SEPARATOR) {
        return Err(StoreError::Invalid(
            "an id must not contain a control character".to_owned(),
        ));
    }
    let mut points = Vec::with_capacity(documents.len());
    let mut places: HashMap<Uuid, usize> = HashMap::with_capacity(documents.len());
    for document in documents {
        let point = point(collection, document)?;
        match places.get(&point.id) {
            Some(&place) => points[place] = point,
            None => {
                places.insert(point.id, points.len());
                points.push(point);
            }
        }
    }
    Ok(points)
}

fn point(collection: &CollectionSpec, mut document: Document) -> Result<Point> {
    let Some(id) = point_id(&document.document_id) else {
        return Err(StoreError::Invalid(format!(
            "document id {:?} is not doc_ with 32 lower-case hex digits",
            document.document_id
        )));
    };
    if document.collection_id != collection.collection_id {
        return Err(StoreError::Invalid(format!(
            "document {} is of collection {:?}, not {:?}",
            document.document_id, document.collection_id, collection.collection_id
        )));
    }
    for (name, vector) in &document.vectors {
        check_vector(collection, &document.document_id, name, vector)?;
    }
    let terms = viewed(&mut document, pushdown::terms);
    let acl = acl(&document.payload);
    let mut payload = Object::new();
    payload.insert(
        SCOPE.to_owned(),
        Value::String(scope(&collection.namespace_id, &collection.collection_id)),
    );
    payload.insert(DOCUMENT.to_owned(), document.payload.into());
    if let Some(acl) = acl {
        payload.insert(ACL.to_owned(), acl);
    }
    if let Some(text) = document.keywords.take().filter(|text| !text.is_empty()) {
        payload.insert(KEYWORDS.to_owned(), Value::String(text));
    }
    payload.insert(
        TERMS.to_owned(),
        terms.into_iter().map(Value::from).collect(),
    );
    Ok(Point {
        id,
        payload,
        vectors: document.vectors,
    })
}

fn check_vector(
    collection: &CollectionSpec,
    document_id: &str,
    name: &str,
    vector: &[f32],
) -> Result<()> {
    let Some(spec) = collection.vectors.iter().find(|spec| spec.name == name) else {
        return Err(StoreError::Invalid(format!(
            "document {document_id}: the collection has no vector index {name:?}"
        )));
    };
    if vector.len() != spec.dims {
        return Err(StoreError::Invalid(format!(
            "document {document_id}: vector {name:?} has {} dimensions, its index {}",
            vector.len(),
            spec.dims
        )));
    }
    finite(vector).map_err(|at| {
        StoreError::Invalid(format!(
            "document {document_id}: vector {name:?} is not a finite number at {at}"
        ))
    })
}

/// The place of the first NaN or infinity, as an error.
pub fn finite(vector: &[f32]) -> std::result::Result<(), usize> {
    vector
        .iter()
        .position(|x| !x.is_finite())
        .map_or(Ok(()), Err)
}

/// A point's payload taken apart; without a scope when it was not read, or is not in our layout.
pub fn found(point: Point) -> Found {
    let mut payload = point.payload;
    let scope = match payload.get(SCOPE) {
        Some(Value::String(scope)) => Some(scope.as_str().into()),
        _ => None,
    };
    let keywords = match payload.remove(KEYWORDS) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let (scope, payload) = match payload.remove(DOCUMENT) {
        Some(Value::Object(fields)) => (scope, fields.into()),
        _ => (None, Payload::default()),
    };
    Found {
        id: point.id,
        scope,
        payload,
        keywords,
        vectors: point.vectors,
    }
}

/// What was read as a document; nothing when it is not in our layout. Whoever asks for the vectors has it whole, with the text of
/// keyword search: a maker's words need not be in the payload.
pub fn document(found: Found, vectors: bool) -> Option<Document> {
    let collection_id = found.scope.as_deref()?.split_once(SEPARATOR)?.1.to_owned();
    Some(Document {
        document_id: document_id(found.id),
        collection_id,
        payload: found.payload,
        vectors: if vectors {
            found.vectors
        } else {
            BTreeMap::new()
        },
        keywords: found.keywords.filter(|_| vectors),
    })
}
