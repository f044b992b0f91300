//! `expand`: related documents under the document that names them, one level deep.

use std::collections::BTreeMap;

use loupe_engine::{
    filter::{self, Filter},
    store::{Document, ListQuery, Reach, WithVectors},
};
use loupe_wire::{Object, Value};

use super::{Shape, view};
use crate::{
    app::App,
    auth::{Level, Scope},
    error::{Result, Violation},
};

const MAX_REFERENCES: usize = 50;
const MAX_CHILDREN: usize = 100;

/// Resolves each field named in `expand` for the shown documents and puts the answers under `expanded`.
///
/// # Errors
/// More than 50 references in one field.
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
    let reach = super::anywhere::everywhere(app, scope).await?;
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
    let found = app.store().get(&reach, &ids, WithVectors::No).await?;
    let found: BTreeMap<String, Document> = found
        .into_iter()
        .map(|document| (document.document_id.clone(), document))
        .collect();
    for (document, wanted) in shown.iter_mut().zip(wanted) {
        let mut expanded = Object::new();
        for field in fields {
            let answer = if field == "children" {
                children(app, &reach, document).await?
            } else {
                let ids = wanted.get(field).cloned().unwrap_or_default();
                let related: Vec<Value> = ids
                    .iter()
                    .filter_map(|id| found.get(id))
                    .map(|one| show(app, one))
                    .collect();
                match (field.as_str(), is_list(document, field)) {
                    ("ancestors", _) | (_, true) => Value::Array(related),
                    _ => related.into_iter().next().unwrap_or(Value::Null),
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
    let mut wanted = BTreeMap::new();
    for field in fields {
        let ids: Vec<String> = match field.as_str() {
            "children" => continue,
            "parent" => lineage(document, "source_document_id")
                .map(ToOwned::to_owned)
                .into_iter()
                .collect(),
            // The root is an object of a bucket unless the chain says it is a document.
            "root_object" | "ancestors" => chain(document),
            path => filter::value_at(&whole, path)
                .map(ids_in)
                .unwrap_or_default(),
        };
        if ids.len() > MAX_REFERENCES {
            let msg = format!(
                "'{field}' holds {} references; at most {MAX_REFERENCES} are expanded",
                ids.len()
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

async fn children(app: &App, reach: &Reach, document: &Object) -> Result<Value> {
    let Some(id) = document.get("document_id").and_then(Value::as_str) else {
        return Ok(Value::Array(Vec::new()));
    };
    let filter = Filter::eq("_internal.lineage.source_document_id", id);
    let query = ListQuery {
        filter: Some(filter),
        limit: MAX_CHILDREN,
        ..Default::default()
    };
    let page = app.store().list(reach, query).await?;
    Ok(page
        .documents
        .iter()
        .map(|child| show(app, child))
        .collect())
}
