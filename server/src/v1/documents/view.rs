//! A document as callers read it: user fields beside the ids, system fields under `_internal`.

use std::{collections::BTreeMap, sync::Arc};

use loupe_engine::store::Document;
use loupe_wire::{Object, Value};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::files;
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    pub presigned_urls: bool,
    pub vectors: bool,
    pub vector_names: VectorNames,
    /// Only these members beside the ids.
    pub select: Option<Vec<String>>,
}

impl Shape {
    fn selects(&self, name: &str) -> bool {
        let select = self.select.as_ref();
        select.is_none_or(|members| members.iter().any(|member| member == name))
    }

    /// Whether the answer makes this member, whatever the document has under its name.
    fn makes(&self, name: &str) -> bool {
        match name {
            // A document is found by its ids: a source's field of that name must not stand in their place.
            "document_id" | "collection_id" | "document_blobs" => true,
            "_vectors" => self.vector_names != VectorNames::No,
            "vectors" => self.vectors,
            _ => false,
        }
    }

    /// Whether the store has to be asked for vectors.
    pub fn needs_vectors(&self) -> bool {
        self.vectors || self.vector_names != VectorNames::No
    }
}

/// A document as an answer shows it, written without a copy of its fields.
#[derive(Debug)]
pub struct Shown {
    document: Document,
    /// The blobs with addresses, if those were asked for.
    presigned: Option<Vec<Value>>,
    /// Members that tell such addresses.
    addresses: Vec<(&'static str, String)>,
    shape: Arc<Shape>,
}

impl Shown {
    /// The document in this shape.
    pub fn new(app: &App, document: Document, shape: Arc<Shape>) -> Self {
        let presigned = shape.presigned_urls.then(|| {
            let mut blobs = blobs(&document).to_vec();
            blobs.iter_mut().for_each(|blob| presign(app, blob));
            blobs
        });
        let told = presigned.as_deref();
        Self {
            addresses: told
                .map(|blobs| files::addresses(&document.payload, blobs))
                .unwrap_or_default(),
            document,
            presigned,
            shape,
        }
    }

    /// The document with its ids and blobs.
    pub fn whole(document: Document) -> Self {
        Self {
            document,
            presigned: None,
            addresses: Vec::new(),
            shape: Arc::default(),
        }
    }

    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let payload = &self.document.payload;
        map.serialize_entry("document_id", &self.document.document_id)?;
        map.serialize_entry("collection_id", &self.document.collection_id)?;
        for (name, value) in payload {
            if self.shape.selects(name) && !self.shape.makes(name) {
                map.serialize_entry(name, value)?;
            }
        }
        for (name, address) in &self.addresses {
            if self.shape.selects(name) {
                map.serialize_entry(name, address)?;
            }
        }
        match &self.presigned {
            Some(blobs) => map.serialize_entry("document_blobs", blobs)?,
            None => map.serialize_entry("document_blobs", blobs(&self.document))?,
        }
        if self.shape.vector_names != VectorNames::No {
            let names = self.document.vectors.keys();
            let told: Vec<&String> = names
                .filter(|name| self.shape.vector_names.tells(name))
                .collect();
            map.serialize_entry("_vectors", &told)?;
        }
        if self.shape.vectors {
            let vectors = self.document.vectors.iter();
            let numbers: BTreeMap<&String, Numbers> = vectors
                .map(|(name, vector)| (name, Numbers(vector)))
                .collect();
            map.serialize_entry("vectors", &numbers)?;
        }
        Ok(())
    }
}

/// Written from the text that is kept with the fields, where nothing else was asked for. Only JSON takes that text.
impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if *self.shape != Shape::default() {
            return Members(self).serialize(serializer);
        }
        let Document {
            document_id,
            collection_id,
            payload,
            ..
        } = &self.document;
        let written = payload.written([document_id, collection_id], || {
            serde_json::value::to_raw_value(&Members(self))
        });
        written
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

/// A document, member by member.
struct Members<'a>(&'a Shown);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.0.write(&mut map)?;
        map.end()
    }
}

/// A vector's numbers as those of any other value: every answer has the same digits of them.
struct Numbers<'a>(&'a [f32]);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().copied().map(f64::from))
    }
}

/// References to the blobs that a document was made of.
pub(super) fn blobs(document: &Document) -> &[Value] {
    let internal = document.payload.get("_internal");
    let blobs = internal.and_then(|internal| internal.get("document_blobs"));
    let blobs = blobs.and_then(Value::as_array);
    blobs.map_or(&[], Vec::as_slice)
}

/// The document as an answer shows it, to be changed further.
pub fn view(app: &App, document: Document, shape: &Shape) -> Object {
    let shown = Shown::new(app, document, Arc::new(shape.clone()));
    match serde_json::to_value(Members(&shown)) {
        Ok(Value::Object(shown)) => shown,
        // A map of texts to values is an object.
        _ => Object::new(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(payload: Value) -> Document {
        Document {
            document_id: "doc_1".into(),
            collection_id: "col_1".into(),
            payload: payload.as_object().unwrap().clone().into(),
            vectors: [("shape".to_owned(), vec![0.5, 1.0])].into(),
            keywords: None,
        }
    }

    fn shown(payload: &Value, shape: Shape) -> Value {
        let shown = Shown {
            document: document(payload.clone()),
            presigned: None,
            addresses: Vec::new(),
            shape: Arc::new(shape.clone()),
        };
        let text = serde_json::to_string(&shown).unwrap();
        // No member is written twice.
        for name in ["document_id", "collection_id", "vectors"] {
            assert_eq!(
                text.matches(&format!("\"{name}\":")).count(),
                usize::from(shape.vectors || name != "vectors" || payload.get(name).is_some()),
                "{text}"
            );
        }
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn fields_with_the_names_of_members_are_written_once() {
        let payload = json!({"document_id": "mine", "collection_id": "ours", "document_blobs": "none", "vectors": 1, "_vectors": 2,
            "title": "x"});
        assert_eq!(
            shown(&payload, Shape::default()),
            json!({"document_id": "doc_1", "collection_id": "col_1", "document_blobs": [], "vectors": 1, "_vectors": 2, "title": "x"})
        );
        let all = Shape {
            vectors: true,
            vector_names: VectorNames::All,
            select: Some(vec!["title".into(), "vectors".into()]),
            ..Shape::default()
        };
        assert_eq!(
            shown(&payload, all),
            json!({"document_id": "doc_1", "collection_id": "col_1", "document_blobs": [], "title": "x", "_vectors": ["shape"],
                "vectors": {"shape": [0.5, 1.0]}})
        );
        let blobs = json!({"_internal": {"document_blobs": [{"url": "blob://a"}]}});
        assert_eq!(
            shown(&blobs, Shape::default()),
            json!({"document_id": "doc_1", "collection_id": "col_1", "document_blobs": [{"url": "blob://a"}],
                "_internal": {"document_blobs": [{"url": "blob://a"}]}})
        );
    }

    #[test]
    fn a_vector_has_the_digits_of_any_other_value() {
        let vector = [0.1_f32, -3.3e-7, 1.0];
        let text = serde_json::to_string(&Numbers(&vector)).unwrap();
        assert_eq!(text, json!(vector).to_string());
    }
}
