//! A document as callers read it: user fields beside the ids, system fields under `_internal`.

use loupe_engine::store::Document;
use loupe_wire::{Object, Value};
use serde_json::json;

use crate::app::App;

/// Presigned addresses live this long at least.
const LINK_SECONDS: u64 = 3600;

/// Which vector names to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum VectorNames {
    #[default]
    No,
    All,
    Only(Vec<String>),
}

impl VectorNames {
    /// `true`, `false`, or a comma list of names.
    pub fn parse(text: Option<&str>) -> Self {
        match text.map(str::trim) {
            None | Some("" | "false") => Self::No,
            Some("true") => Self::All,
            Some(names) => Self::Only(
                names
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .collect(),
            ),
        }
    }

    /// From a body: a boolean, a list, or the text of the query.
    pub fn from_value(value: Option<&Value>) -> Self {
        match value {
            Some(Value::Bool(true)) => Self::All,
            Some(Value::String(text)) => Self::parse(Some(text)),
            Some(Value::Array(names)) => Self::Only(
                names
                    .iter()
                    .filter_map(Value::as_str)
                    .map(ToOwned::to_owned)
                    .collect(),
            ),
            _ => Self::No,
        }
    }

    fn tells(&self, name: &str) -> bool {
        match self {
            Self::No => false,
            Self::All => true,
            Self::Only(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

/// What an answer shows of a document.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    pub presigned_urls: bool,
    pub vectors: bool,
    pub vector_names: VectorNames,
    /// Only these members beside the ids.
    pub select: Option<Vec<String>>,
}

impl Shape {
    /// Whether the store has to be asked for vectors.
    pub fn needs_vectors(&self) -> bool {
        self.vectors || self.vector_names != VectorNames::No
    }
}

/// The document as an answer shows it.
pub fn view(app: &App, document: Document, shape: &Shape) -> Object {
    let mut shown = Object::new();
    shown.insert("document_id".into(), document.document_id.into());
    shown.insert("collection_id".into(), document.collection_id.into());
    let mut blobs = document
        .payload
        .get("_internal")
        .and_then(|internal| internal.get("document_blobs"))
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if shape.presigned_urls {
        blobs.iter_mut().for_each(|blob| presign(app, blob));
    }
    for (name, value) in document.payload {
        if shape
            .select
            .as_ref()
            .is_none_or(|members| members.contains(&name))
        {
            shown.insert(name, value);
        }
    }
    shown.insert("document_blobs".into(), blobs.into());
    if shape.vector_names != VectorNames::No {
        let names: Vec<&String> = document
            .vectors
            .keys()
            .filter(|name| shape.vector_names.tells(name))
            .collect();
        shown.insert("_vectors".into(), json!(names));
    }
    if shape.vectors {
        shown.insert("vectors".into(), json!(document.vectors));
    }
    shown
}

/// Adds a fresh address to a blob reference, or says why there is none.
pub fn presign(app: &App, blob: &mut Value) {
    let Some(key) = blob
        .get("url")
        .and_then(Value::as_str)
        .and_then(|url| url.strip_prefix("blob://"))
    else {
        return;
    };
    let filename = blob.get("filename").and_then(Value::as_str);
    let url = app.blobs().steady_get_url(key, filename, LINK_SECONDS);
    blob["presigned_url"] = url.into();
}
