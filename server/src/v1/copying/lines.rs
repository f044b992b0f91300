//! Where copies come from: from the copies of what their patterns came from, under the ids that processing would give.

use std::{collections::BTreeMap, iter};

use loupe_engine::store::{Document, document_id};
use loupe_wire::Value;

/// Source id and the id of its copy, of every collection that is copied.
type Ids = BTreeMap<String, String>;

/// A collection and a document of it.
type Place = (String, String);

/// The id of a document's copy in this collection and, where it was made of other documents, the lineage of the copy.
pub(super) fn of(document: &Document, to: &str, ids: &Ids) -> (String, Option<Value>) {
    match Line::read(document) {
        Some(line) => {
            let (id, lineage) = line.copied(to, ids);
            (id, Some(lineage))
        }
        None => (copied_id(to, document), None),
    }
}

/// The documents that led to one, as its lineage tells of them.
struct Line<'d> {
    lineage: &'d Value,
    /// The place of the first one.
    head: &'d str,
    /// Their collections and ids, the first one first.
    steps: Vec<(&'d str, &'d str)>,
    /// Which part of each the next one is; the last part is the document itself.
    parts: Vec<&'d str>,
}

impl<'d> Line<'d> {
    /// None for what was made of an object or written by a caller, and for what cannot be read.
    fn read(document: &'d Document) -> Option<Self> {
        let lineage = document.payload.get("_internal")?.get("lineage")?;
        let text = |member: &str| lineage.get(member)?.as_str();
        if text("source_type")? != "collection" {
            return None;
        }
        let step = |one: &'d Value| {
            let text = |member: &str| one.get(member)?.as_str();
            Some((text("collection_id")?, text("document_id")?))
        };
        let chain = lineage.get("chain")?.as_array()?;
        let steps: Vec<(&str, &str)> = chain.iter().map(step).collect::<Option<_>>()?;
        let (_, source) = steps.last()?;
        if text("source_document_id")? != *source {
            return None;
        }
        let mut head = text("path")?;
        let mut parts = Vec::with_capacity(steps.len());
        let later = steps.iter().skip(1).map(|(collection, _)| *collection);
        let later: Vec<&str> = later.chain([document.collection_id.as_str()]).collect();
        for collection in later.into_iter().rev() {
            let (before, part) = head.rsplit_once(&format!("/{collection}/"))?;
            head = before;
            parts.push(part);
        }
        parts.reverse();
        Some(Self {
            lineage,
            head,
            steps,
            parts,
        })
    }

    fn copied(&self, to: &str, ids: &Ids) -> (String, Value) {
        let mut line: Vec<Place> = Vec::with_capacity(self.steps.len());
        let parts = iter::once("").chain(self.parts.iter().copied());
        for ((collection, old), part) in self.steps.iter().zip(parts) {
            let place = match (ids.get(*collection), line.last()) {
                // It stays what it is.
                (None, _) => ((*collection).to_owned(), (*old).to_owned()),
                (Some(own), None) => (own.clone(), self.first_id(own, old)),
                (Some(own), Some((_, before))) => (own.clone(), document_id(own, before, part)),
            };
            line.push(place);
        }
        let source = line.last().map_or("", |(_, id)| id.as_str());
        let part = self.parts.last().copied().unwrap_or_default();
        (document_id(to, source, part), self.told(to, &line))
    }

    /// The id of the first document's copy in this collection.
    fn first_id(&self, collection_id: &str, old: &str) -> String {
        let text = |member: &str| self.lineage.get(member).and_then(Value::as_str);
        let bucket = text("root_bucket_id").unwrap_or_default();
        let object = text("root_object_id").unwrap_or_default();
        match self.head.strip_prefix(&format!("{bucket}/{object}/")) {
            Some(part) if !object.is_empty() => document_id(collection_id, object, part),
            _ => document_id(collection_id, old, "copy"),
        }
    }

    /// The lineage of the copy in this collection.
    fn told(&self, to: &str, line: &[Place]) -> Value {
        let mut told = self.lineage.clone();
        let mut path = self.head.to_owned();
        if let (Some((_, old)), Some((_, first))) = (self.steps.first(), line.first()) {
            if told["root_document_id"].as_str() == Some(*old) {
                told["root_document_id"] = first.as_str().into();
            }
            // What a caller wrote has no place but its own.
            if path == *old {
                path.clone_from(first);
            }
        }
        if let Some((collection, source)) = line.last() {
            told["source_collection_id"] = collection.as_str().into();
            told["source_document_id"] = source.as_str().into();
        }
        let chain = told["chain"].as_array_mut();
        for (step, (collection, id)) in chain.into_iter().flatten().zip(line) {
            step["collection_id"] = collection.as_str().into();
            step["document_id"] = id.as_str().into();
        }
        let later = line
            .iter()
            .skip(1)
            .map(|(collection, _)| collection.as_str());
        for (collection, part) in later.chain([to]).zip(&self.parts) {
            path = format!("{path}/{collection}/{part}");
        }
        told["path"] = path.into();
        told
    }
}

/// The id that processing would give: a part of an object keeps its place. What a caller wrote is named after its source.
fn copied_id(collection_id: &str, document: &Document) -> String {
    let lineage = document
        .payload
        .get("_internal")
        .and_then(|internal| internal.get("lineage"));
    let text = |member: &str| {
        lineage
            .and_then(|lineage| lineage.get(member)?.as_str())
            .unwrap_or_default()
    };
    // The document of a tier before stands for the object.
    let (path, from) = (text("path"), text("source_document_id"));
    let own = format!("/{}/", document.collection_id);
    if let ("collection", Some((_, part))) = (text("source_type"), path.rsplit_once(&own)) {
        return document_id(collection_id, from, part);
    }
    let (bucket, object) = (text("root_bucket_id"), text("root_object_id"));
    match path.strip_prefix(&format!("{bucket}/{object}/")) {
        Some(part) if !object.is_empty() => document_id(collection_id, object, part),
        _ => document_id(collection_id, &document.document_id, "copy"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(collection_id: &str, internal: Value) -> Document {
        Document {
            document_id: "doc_1".into(),
            collection_id: collection_id.into(),
            payload: json!({ "_internal": internal })
                .as_object()
                .cloned()
                .unwrap()
                .into(),
            ..Default::default()
        }
    }

    fn ids(pairs: &[(&str, &str)]) -> Ids {
        let pairs = pairs.iter();
        pairs
            .map(|(old, new)| ((*old).to_owned(), (*new).to_owned()))
            .collect()
    }

    #[test]
    fn a_copy_has_the_id_that_processing_would_give() {
        let lineage = json!({"root_bucket_id": "bkt_1", "root_object_id": "obj_1", "path": "bkt_1/obj_1/text/3"});
        let copied = |internal: Value, to: &str| of(&document("col_1", internal), to, &Ids::new());
        let made = copied(json!({ "lineage": lineage }), "col_2");
        assert_eq!(made, (document_id("col_2", "obj_1", "text/3"), None));
        let written = json!({"lineage": {"path": null}});
        let (id, _) = copied(written.clone(), "col_2");
        assert_eq!(id, document_id("col_2", "doc_1", "copy"));
        assert_ne!(id, copied(written, "col_3").0);
    }

    /// A document of the third tier, over one of an object.
    fn third() -> Document {
        let page = document_id("pages", "obj_1", "text/0");
        let pair = document_id("pairs", &page, "text/1");
        let lineage = json!({
            "source_type": "collection", "root_bucket_id": "bkt_1", "root_object_id": "obj_1", "root_document_id": page,
            "source_object_id": "obj_1", "source_document_id": pair, "source_collection_id": "pairs",
            "path": "bkt_1/obj_1/text/0/pairs/text/1/copies/0", "tier": 2,
            "chain": [{"collection_id": "pages", "document_id": page}, {"collection_id": "pairs", "document_id": pair}],
        });
        document("copies", json!({ "lineage": lineage }))
    }

    #[test]
    fn a_copy_comes_from_copies() {
        let all = ids(&[("pages", "p"), ("pairs", "q"), ("copies", "c")]);
        let (id, lineage) = of(&third(), "c", &all);
        let page = document_id("p", "obj_1", "text/0");
        let pair = document_id("q", &page, "text/1");
        assert_eq!(id, document_id("c", &pair, "0"));
        let expected = json!({
            "source_type": "collection", "root_bucket_id": "bkt_1", "root_object_id": "obj_1", "root_document_id": page,
            "source_object_id": "obj_1", "source_document_id": pair, "source_collection_id": "q",
            "path": "bkt_1/obj_1/text/0/q/text/1/c/0", "tier": 2,
            "chain": [{"collection_id": "p", "document_id": page}, {"collection_id": "q", "document_id": pair}],
        });
        assert_eq!(lineage, Some(expected));
        // Alone, it comes from what its pattern comes from.
        let alone = third();
        let (id, lineage) = of(&alone, "c", &ids(&[("copies", "c")]));
        let before = &alone.payload.get("_internal").unwrap()["lineage"];
        let pair = before["source_document_id"].as_str().unwrap();
        assert_eq!(id, document_id("c", pair, "0"));
        let lineage = lineage.unwrap();
        assert_eq!(lineage["chain"], before["chain"]);
        assert_eq!(lineage["path"], "bkt_1/obj_1/text/0/pairs/text/1/c/0");
    }

    #[test]
    fn what_was_made_of_somebodys_document_comes_from_its_copy() {
        let lineage = json!({
            "source_type": "collection", "root_object_id": null, "root_bucket_id": null, "root_document_id": "doc_0",
            "source_document_id": "doc_0", "source_collection_id": "notes", "path": "doc_0/cut/text/2",
            "chain": [{"collection_id": "notes", "document_id": "doc_0"}],
        });
        let cut = document("cut", json!({ "lineage": lineage }));
        let (id, lineage) = of(&cut, "c", &ids(&[("notes", "n"), ("cut", "c")]));
        let note = document_id("n", "doc_0", "copy");
        assert_eq!(id, document_id("c", &note, "text/2"));
        let lineage = lineage.unwrap();
        for member in ["root_document_id", "source_document_id"] {
            assert_eq!(lineage[member], note.as_str(), "{member}");
        }
        assert_eq!(lineage["path"], format!("{note}/c/text/2"));
        // A line that cannot be read stays as it is.
        let mut strange = cut;
        strange.collection_id = "elsewhere".into();
        assert_eq!(of(&strange, "c", &Ids::new()).1, None);
    }
}
