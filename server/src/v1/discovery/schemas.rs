//! What namespaces are made of, read off the description of the API: nothing here can say otherwise than the requests do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use loupe_wire::{ManifestSchemaDiscovery, Object, Value};
use serde_json::json;

use crate::{openapi, v1::manifest};

/// A type of resource, the operation that makes one, and the types that are made before it.
const TYPES: [(&str, &str, &[&str]); 9] = [
    ("namespace", "/v1/namespaces", &[]),
    ("bucket", "/v1/buckets", &["namespace"]),
    ("collection", "/v1/collections", &["namespace", "bucket"]),
    ("retriever", "/v1/retrievers", &["collection"]),
    ("taxonomy", "/v1/taxonomies", &["collection", "retriever"]),
    ("cluster", "/v1/clusters", &["collection"]),
    ("webhook", "/v1/organizations/webhooks", &[]),
    ("alert", "/v1/alerts", &["retriever", "webhook"]),
    (
        "trigger",
        "/v1/triggers",
        &["collection", "retriever", "taxonomy", "cluster"],
    ),
];

const STEPS: [&str; 8] = [
    "GET /v1/discovery/schema: choose an extractor and stages from the catalogues",
    "POST /v1/namespaces: its id is the header X-Namespace of everything after it",
    "POST /v1/buckets with the members that its objects have, then POST /v1/collections over it",
    "POST /v1/buckets/{bucket_identifier}/objects, or uploads for files",
    "POST /v1/buckets/{bucket_identifier}/batches with auto_submit, then GET /v1/batches/{batch_id} until it has ended",
    "POST /v1/retrievers with stages over the collections, then POST /v1/retrievers/{retriever_id}/execute",
    "what is refused with 422 names the member and the reason: mend it and send it again",
    "or all of it in one file, as example_manifest: POST /v1/manifest/validate, then POST /v1/manifest/apply",
];

const COMPONENT: &str = "#/components/schemas/";

/// Everything but the catalogues, which depend on what the server is configured for.
pub(super) fn all() -> &'static ManifestSchemaDiscovery {
    static ALL: LazyLock<ManifestSchemaDiscovery> = LazyLock::new(|| {
        let text = openapi::text();
        let document: Value = serde_json::from_slice(&text).unwrap_or_default();
        let schema = |path: &str| schema(&document, path);
        let named = |(name, path, _): &(&str, &str, _)| Some(((*name).to_owned(), schema(path)?));
        ManifestSchemaDiscovery {
            manifest_version: manifest::VERSION.into(),
            example_manifest: Some(manifest::EXAMPLE.into()),
            resource_types: TYPES.iter().map(|(name, ..)| (*name).to_owned()).collect(),
            schemas: TYPES.iter().filter_map(named).collect(),
            dependency_graph: TYPES
                .iter()
                .map(|(name, _, before)| {
                    let before = before.iter().map(|one| (*one).to_owned());
                    ((*name).to_owned(), before.collect())
                })
                .collect(),
            examples: TYPES
                .iter()
                .filter_map(|(name, path, _)| Some(((*name).to_owned(), example(&document, path)?)))
                .collect(),
            authoring_loop: STEPS.map(ToOwned::to_owned).to_vec(),
            ..Default::default()
        }
    });
    &ALL
}

fn body<'d>(document: &'d Value, path: &str) -> Option<&'d Value> {
    let operation = document.get("paths")?.get(path)?.get("post")?;
    operation
        .get("requestBody")?
        .get("content")?
        .get("application/json")
}

/// The schema of what is sent to make one, with all that it refers to.
fn schema(document: &Value, path: &str) -> Option<Value> {
    let mut root = body(document, path)?.get("schema")?.clone();
    let mut named = BTreeSet::new();
    point(&mut root, &mut named);
    let (mut defs, mut missing) = (BTreeMap::new(), named);
    while let Some(name) = missing.pop_first() {
        let mut schema = document
            .pointer(&format!("/components/schemas/{name}"))?
            .clone();
        let mut named = BTreeSet::new();
        point(&mut schema, &mut named);
        defs.insert(name, schema);
        missing.extend(named.into_iter().filter(|name| !defs.contains_key(name)));
    }
    let defs: Object = defs.into_iter().collect();
    root.as_object_mut()?.insert("$defs".into(), json!(defs));
    Some(root)
}

/// Lets references lead to the schema's own definitions, and notes their names.
fn point(schema: &mut Value, named: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            for (member, value) in members {
                match value {
                    Value::String(address) if member == "$ref" => {
                        if let Some(name) = address.strip_prefix(COMPONENT) {
                            named.insert(name.to_owned());
                            *address = format!("#/$defs/{name}");
                        }
                    }
                    other => point(other, named),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| point(item, named)),
        _ => {}
    }
}

/// The example of the description, as it is sent.
fn example(document: &Value, path: &str) -> Option<String> {
    let content = body(document, path)?;
    Some(content.get("example")?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_schema_that_is_whole_and_an_example() {
        let all = all();
        for (name, ..) in TYPES {
            let schema = &all.schemas[name];
            let text = schema.to_string();
            assert!(!text.contains(COMPONENT), "{name}");
            for piece in text.split("\"#/$defs/").skip(1) {
                let to = piece.split('"').next().unwrap_or_default();
                assert!(schema["$defs"].get(to).is_some(), "{name}: {to}");
            }
            let example: Value = serde_json::from_str(&all.examples[name]).unwrap();
            assert!(example.is_object(), "{name}");
        }
        // Nothing is made before what it names.
        let order: Vec<&String> = all.dependency_graph.keys().collect();
        for (place, before) in all.dependency_graph.values().enumerate() {
            assert!(before.iter().all(|one| order[..place].contains(&one)));
        }
    }
}
