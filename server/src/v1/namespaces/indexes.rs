//! The indexes of a namespace for vectors of one's own: parameters of the collection that its documents go to.

use loupe_engine::store::check_vector_name;
use loupe_wire::{
    AuditAction, CollectionResponse, NamespaceModel, Object, PassthroughExtractorParams,
    ResourceType, Value, VectorFieldSpec, VectorFieldSpecDistance, reading,
};
use serde_json::json;

use super::{NAMESPACES, push_event};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    v1::{
        audit::{self, Change},
        collections::{self, COLLECTIONS, INFERENCE},
    },
};

/// The collection of a standalone namespace that documents go to where none is named.
pub const OWN: &str = "documents";

/// Indexes of one namespace.
const MOST: usize = 32;
/// Numbers of one vector.
const MOST_NUMBERS: i64 = 65_536;

/// An index as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    pub name: String,
    pub dims: i64,
    pub distance: VectorFieldSpecDistance,
    /// The model by which questions become vectors of it.
    pub service: Option<String>,
}

impl Index {
    /// The index that a request describes; `path` is where.
    ///
    /// # Errors
    /// A name, a number of dimensions or a metric that no index has.
    pub fn read(path: &[&str], name: &str, dims: i64, metric: &str) -> Result<Self> {
        let fault = |member: &str, msg: String, input: Value| {
            let place: Vec<&str> = path.iter().copied().chain([member]).collect();
            ApiError::from(Violation::body(&place, "value_error", msg, input))
        };
        if let Err(msg) = check_vector_name(name) {
            return Err(fault("name", msg, name.into()));
        }
        if !(1..=MOST_NUMBERS).contains(&dims) {
            let msg = format!("a vector has 1 to {MOST_NUMBERS} numbers");
            return Err(fault("dimension", msg, dims.into()));
        }
        let distance = match metric.to_ascii_lowercase().as_str() {
            "cosine" => VectorFieldSpecDistance::Cosine,
            "dot" => VectorFieldSpecDistance::Dot,
            "euclidean" | "euclid" => VectorFieldSpecDistance::Euclidean,
            _ => {
                let msg = "metrics are cosine, dot and euclidean".to_owned();
                return Err(fault("metric", msg, metric.into()));
            }
        };
        Ok(Self {
            name: name.to_owned(),
            dims,
            distance,
            service: None,
        })
    }

    fn spec(&self) -> VectorFieldSpec {
        VectorFieldSpec {
            field: self.name.clone(),
            name: self.name.clone(),
            dimensions: self.dims,
            distance: Some(self.distance),
        }
    }

    /// As namespaces tell of it.
    pub fn told(&self) -> Object {
        let mut told = json!({"name": self.name, "dimension": self.dims, "metric": self.distance});
        if let Some(service) = &self.service {
            told[INFERENCE] = service.as_str().into();
        }
        match told {
            Value::Object(told) => told,
            _ => Object::new(),
        }
    }
}

/// The parameters of a collection with these indexes.
pub fn parameters(indexes: &[Index]) -> Value {
    let parameters = PassthroughExtractorParams {
        vector_fields: indexes.iter().map(Index::spec).collect(),
        ..Default::default()
    };
    serde_json::to_value(parameters).unwrap_or_default()
}

/// Refuses names that are given twice, and more indexes than a namespace has.
///
/// # Errors
/// As said; `member` is the list.
pub fn check_all(member: &str, indexes: &[Index]) -> Result<()> {
    if indexes.len() > MOST {
        let msg = format!("a namespace has at most {MOST} indexes");
        return Err(Violation::body(&[member], "too_long", msg, indexes.len().into()).into());
    }
    for (place, index) in indexes.iter().enumerate() {
        if indexes[..place]
            .iter()
            .any(|other| other.name == index.name)
        {
            let path = [member, &place.to_string(), "name"];
            let msg = "another index has this name";
            return Err(
                Violation::body(&path, "value_error", msg, index.name.as_str().into()).into(),
            );
        }
    }
    Ok(())
}

/// The indexes of a collection that are for vectors of one's own.
pub fn of(collection: &CollectionResponse) -> Vec<Index> {
    let parameters = collection.feature_extractor.parameters.clone();
    let parameters =
        parameters.and_then(|value| reading::from_value::<PassthroughExtractorParams>(&value).ok());
    let specs = parameters.map(|own| own.vector_fields).unwrap_or_default();
    let specs = specs.into_iter();
    specs
        .map(|spec| Index {
            service: collections::inference(collection, &spec.name),
            name: spec.name,
            dims: spec.dimensions,
            distance: spec.distance.unwrap_or(VectorFieldSpecDistance::Cosine),
        })
        .collect()
}

/// Gives the namespace's own collection these indexes in place of those that it has, and says so of the namespace.
///
/// # Errors
/// The database fails, or the namespace went.
pub async fn replace(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    (mut namespace, mut collection): (NamespaceModel, CollectionResponse),
    indexes: &[Index],
    now: i64,
) -> Result<NamespaceModel> {
    let id = namespace.namespace_id.clone().unwrap_or_default();
    let before = namespace.clone();
    collection.feature_extractor.parameters = Some(parameters(indexes));
    let mut described: Vec<_> = collections::indexes(app, &collection)
        .iter()
        .map(collections::vector_index)
        .collect();
    for (index, described) in indexes.iter().zip(&mut described) {
        if let (Some(service), Some(members)) = (&index.service, &mut described.index) {
            members.insert(INFERENCE.to_owned(), service.as_str().into());
        }
    }
    collection.vector_indexes = described;
    collection.updated_at = Some(clock::time(now));
    let collection_id = collection.collection_id.clone().unwrap_or_default();
    COLLECTIONS
        .update(
            tx,
            &id,
            &collection_id,
            &collection.collection_name,
            now,
            &collection,
        )
        .await?;
    namespace.vector_configs = indexes.iter().map(Index::told).collect();
    namespace.updated_at = Some(clock::time(now));
    NAMESPACES
        .update(
            tx,
            &caller.org_id,
            &id,
            &namespace.namespace_name,
            now,
            &namespace,
        )
        .await?;
    let change = Change {
        action: AuditAction::NamespaceUpdated,
        resource: (ResourceType::Namespace, &id),
        changes: audit::difference(&before, &namespace),
    };
    audit::record(tx, caller, change, now).await?;
    let payload = json!({ "collection_id": collection_id });
    push_event(tx, &caller.org_id, &id, "collection.updated", payload, now).await?;
    Ok(namespace)
}
