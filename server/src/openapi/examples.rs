//! One example of every operation, in the order of a story: each one works on what those before it made. The description of
//! the API shows them, and a test tells the story to a server.

use std::collections::BTreeMap;

use loupe_wire::{Object, Value};
use serde::Deserialize;
use utoipa::openapi::{
    OpenApi, RefOr,
    path::{Operation, ParameterBuilder, ParameterIn},
};

use super::made::operations;

/// The story. `path`, `query` and `body` (or `text`, or the fields of a `form`) are sent; `save` keeps members of the answer for
/// the examples after it, which name them as `{{bucket_id}}`; a `bucket_identifier` or `bucket_id` of a path that says nothing is that one.
pub const STORY: &str = include_str!("examples.json");

#[derive(Debug, Deserialize)]
struct Example {
    operation: String,
    #[serde(default)]
    path: BTreeMap<String, String>,
    #[serde(default)]
    query: Object,
    body: Option<Value>,
    form: Option<Value>,
    text: Option<String>,
}

/// Shows the first example of each operation.
pub(super) fn add(document: &mut OpenApi) {
    let story: Vec<Example> =
        serde_json::from_str(STORY).expect("a part of the program that a test reads");
    let mut examples = BTreeMap::new();
    for example in story {
        examples.entry(example.operation.clone()).or_insert(example);
    }
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            if let Some(example) = examples.get(&format!("{method} {path}")) {
                show(example, operation);
            }
        }
    }
}

fn show(example: &Example, operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(described) = parameter else {
            continue;
        };
        let name = described.name.as_str();
        let value = match described.parameter_in {
            ParameterIn::Path => {
                let given = example.path.get(name).map(|text| filled(text));
                Some(given.unwrap_or_else(|| sample(name)).into())
            }
            ParameterIn::Query => example.query.get(name).cloned(),
            _ => None,
        };
        if value.is_some() {
            let described = ParameterBuilder::from(described.clone());
            *parameter = RefOr::T(described.example(value).build());
        }
    }
    let sent = example.body.as_ref().or(example.form.as_ref());
    let body = match (sent, &example.text) {
        (Some(body), _) => serde_json::from_str(&filled(&body.to_string())).ok(),
        (None, text) => text.clone().map(Value::String),
    };
    if let (Some(body), Some(RefOr::T(request))) = (body, operation.request_body.as_mut()) {
        for content in request.content.values_mut() {
            if let RefOr::T(content) = content {
                content.example = Some(body.clone());
            }
        }
    }
}

/// The text with ids where the story has the names of ids.
fn filled(text: &str) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        match after.split_once("}}") {
            // Templates of retrievers look the same, but have a dot.
            Some((name, behind)) if !name.contains('.') => {
                filled.push_str(&sample(name));
                rest = behind;
            }
            _ => {
                filled.push_str("{{");
                rest = after;
            }
        }
    }
    filled + rest
}

/// What an id looks like.
fn sample(name: &str) -> String {
    let kind = name.trim_end_matches("_identifier").trim_end_matches("_id");
    let prefix = match kind {
        "namespace" => "ns_",
        "bucket" => "bkt_",
        "object" | "lamp" => "obj_",
        "collection" | "passages" | "shelves" => "col_",
        "document" => "doc_",
        "retriever" | "shelf_retriever" => "ret_",
        "taxonomy" | "spare_taxonomy" => "tax_",
        "cluster" => "clust_",
        "run" => "run_",
        "batch" | "draft" | "sketch" => "btch_",
        "upload" | "second" => "upl_",
        "execution" => "exec_",
        "key" | "window_key" => "key_",
        "audit" => "aud_",
        "task" => return "5d0f6a0e-52c8-4a53-9d39-0f6d3a3f7a1c".into(),
        _ => return name.to_owned(),
    };
    format!("{prefix}7Qm2Zk41Xw9LcT0bRfVd")
}
