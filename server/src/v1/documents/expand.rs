//! `expand`: related documents under the document that names them, one level deep.

use std::collections::{BTreeMap, BTreeSet};

use loupe_engine::{
    filter::{self, Filter},
    store::{Document, ListQuery, WithVectors},
};
use loupe_wire::{NamespaceOperation, Object, ResourceType, Value};

use super::{Shape, Sight, view};
use crate::{
    app::App,
    auth::{Level, Scope},
    error::{ApiError, Result, Violation},
    v1::objects,
};

/// The word for the object of a bucket that a document comes from.
pub const ROOT: &str = "root_object";

const MAX_REFERENCES: usize = 50;
const MAX_CHILDREN: usize = 100;

/// Resolves each field named in `expand` for the shown documents and puts the answers under `expanded`.
///
/// # Errors
/// More than 50 different references in the fields of one document.
pub async fn expand<L: Level>(
    app: &App,
    scope: &Scope<L>,
    fields: &[String],
    shown: &mut [Object],
) -> Result<()> {
    if fields.is_empty() || shown.is_empty() {
        return Ok(());
    }
    // References lead anywhere in the namespace, but no further than the key's scopes.
    let sight = super::everywhere(app, scope).await?;
    let mut wanted: Vec<BTreeMap<String, Vec<String>>> = Vec::with_capacity(shown.len());
    for document in shown.iter() {
        wanted.push(references(fields, document)?);
    }
    let mut ids: Vec<String> = wanted
        .iter()
        .flat_map(|fields| fields.values().flatten().cloned())
        .collect();
    ids.sort();
    ids.dedup();
    let found = sight.get(app, &ids, WithVectors::No).await?;
    let found: BTreeMap<String, Document> = found
        .into_iter()
        .map(|document| (document.document_id.clone(), document))
        .collect();
    let roots = match fields.iter().any(|field| field == ROOT) {
        true => roots(app, scope, shown).await?,
        false => BTreeMap::new(),
    };
    for (document, wanted) in shown.iter_mut().zip(wanted) {
        let mut expanded = Object::new();
        for field in fields {
            let answer = match field.as_str() {
                "children" => children(app, &sight, document).await?,
                ROOT => {
                    let root = lineage(document, "root_object_id").and_then(|id| roots.get(id));
                    root.cloned().unwrap_or(Value::Null)
                }
                _ => {
                    let ids = wanted.get(field).into_iter().flatten();
                    let related = ids.filter_map(|id| found.get(id));
                    let mut related = related.map(|one| show(app, one));
                    match field == "ancestors" || is_list(document, field) {
                        true => related.collect(),
                        false => related.next().unwrap_or(Value::Null),
                    }
                }
            };
            expanded.insert(field.clone(), answer);
        }
        // Both spellings of the interface carry the same value.
        document.insert("_expanded".into(), Value::Object(expanded.clone()));
        document.insert("expanded".into(), Value::Object(expanded));
    }
    Ok(())
}

/// The objects that the shown documents come from, of buckets that the caller may read. End users read no objects.
async fn roots<L: Level>(
    app: &App,
    scope: &Scope<L>,
    shown: &[Object],
) -> Result<BTreeMap<String, Value>> {
    let mut roots = BTreeMap::new();
    if scope.caller.principal().is_some() {
        return Ok(roots);
    }
    let ids = shown
        .iter()
        .filter_map(|document| lineage(document, "root_object_id"));
    let ids: BTreeSet<String> = ids.map(ToOwned::to_owned).collect();
    let ids: Vec<String> = ids.into_iter().collect();
    let found = objects::store::find_named(app.db(), &scope.namespace_id, &ids).await?;
    let (kind, operation) = (ResourceType::Bucket, NamespaceOperation::ReadData);
    for object in found {
        if scope.caller.covers(kind, &object.bucket_id, operation) {
            let id = object.object_id.clone().unwrap_or_default();
            let shown = serde_json::to_value(&object).map_err(ApiError::internal)?;
            roots.insert(id, shown);
        }
    }
    Ok(roots)
}

fn show(app: &App, document: &Document) -> Value {
    Value::Object(view(app, document.clone(), &Shape::default()))
}

fn lineage<'d>(document: &'d Object, member: &str) -> Option<&'d str> {
    document
        .get("_internal")?
        .get("lineage")?
        .get(member)?
        .as_str()
}

fn is_list(document: &Object, field: &str) -> bool {
    filter::value_at(&Value::Object(document.clone()), field).is_some_and(Value::is_array)
}

/// The documents that each field of one document points to.
fn references(fields: &[String], document: &Object) -> Result<BTreeMap<String, Vec<String>>> {
    let whole = Value::Object(document.clone());
    let (mut wanted, mut named) = (BTreeMap::new(), BTreeSet::new());
    for field in fields {
        let ids: Vec<String> = match field.as_str() {
            "children" | ROOT => continue,
            "parent" => lineage(document, "source_document_id")
                .map(ToOwned::to_owned)
                .into_iter()
                .collect(),
            "ancestors" => chain(document),
            path => {
                let ids = filter::value_at(&whole, path).map(ids_in);
                let ids = each_once(ids.unwrap_or_default());
                named.extend(ids.iter().cloned());
                ids
            }
        };
        if named.len() > MAX_REFERENCES {
            let msg = format!(
                "with '{field}' there are {} different references; at most {MAX_REFERENCES} are expanded",
                named.len()
            );
            return Err(Violation::query("expand", "too_long", msg, field.clone().into()).into());
        }
        wanted.insert(field.clone(), ids);
    }
    Ok(wanted)
}

/// Ids of the documents that lead to this one, the first one first.
pub(super) fn chain(document: &Object) -> Vec<String> {
    let chain = document
        .get("_internal")
        .and_then(|internal| internal.get("lineage"))
        .and_then(|lineage| lineage.get("chain"))
        .and_then(Value::as_array);
    let steps = chain.into_iter().flatten();
    steps
        .filter_map(|step| step.get("document_id").and_then(Value::as_str))
        .map(ToOwned::to_owned)
        .collect()
}

fn ids_in(value: &Value) -> Vec<String> {
    match value {
        Value::String(id) => vec![id.clone()],
        Value::Array(items) => items
            .iter()
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect(),
        Value::Object(reference) => reference
            .get("document_id")
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// Without repetitions, in the order of the first of each.
fn each_once(mut ids: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    ids
}

async fn children(app: &App, sight: &Sight, document: &Object) -> Result<Value> {
    let Some(id) = document.get("document_id").and_then(Value::as_str) else {
        return Ok(Value::Array(Vec::new()));
    };
    let filter = Filter::eq("_internal.lineage.source_document_id", id);
    let query = ListQuery {
        filter: Some(filter),
        limit: MAX_CHILDREN,
        ..Default::default()
    };
    let page = sight.list(app, query).await?;
    Ok(page
        .documents
        .iter()
        .map(|child| show(app, child))
        .collect())
}
