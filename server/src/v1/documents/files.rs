//! Files of a document under the names that extractors have for them: answers with fresh addresses have these members beside the
//! fields.

use loupe_engine::store::Document;
use loupe_wire::{Object, Value};

use super::view;

/// One such member.
struct Named<'a> {
    name: &'static str,
    file: &'a Value,
    /// The part of the file that the document is of, as players read it from an address.
    part: String,
}

/// What a document's files are to it. A field of its own wins over them.
fn named<'a>(document: &Object, files: &'a [Value]) -> Vec<Named<'a>> {
    let mut found = Vec::new();
    let mut add = |name: &'static str, file: &'a Value, part: String| {
        if !document.contains_key(name) {
            found.push(Named { name, file, part });
        }
    };
    if let Some(file) = files.iter().find(|file| file["role"] == "thumbnail") {
        add("thumbnail_url", file, String::new());
    }
    let second = |name: &str| document.get(name).and_then(Value::as_f64);
    if let (Some(start), Some(end), Some(file)) = (
        second("start_time"),
        second("end_time"),
        film(document, files),
    ) {
        add("source_video_url", file, String::new());
        add("video_segment_url", file, format!("#t={start},{end}"));
    }
    found
}

/// The film that the document is a segment of: of several, the one of the size that the document tells.
fn film<'a>(document: &Object, files: &'a [Value]) -> Option<&'a Value> {
    let size = document
        .get("_internal")
        .and_then(|internal| internal.get("size_bytes"));
    let films = || {
        files
            .iter()
            .filter(|file| file["role"] == "source" && file["type"] == "video")
    };
    let same = films().find(|film| size.is_some() && film.get("size_bytes") == size);
    same.or_else(|| films().next())
}

/// These members with the addresses of their files; `files` have fresh ones.
pub fn addresses(document: &Object, files: &[Value]) -> Vec<(&'static str, String)> {
    let named = named(document, files).into_iter();
    named
        .filter_map(|one| {
            let address = one.file.get("presigned_url")?.as_str()?;
            Some((one.name, format!("{address}{}", one.part)))
        })
        .collect()
}

/// Whether a member that comes back is what an answer told of the document's files. It is no field: such an address ends.
pub fn is_told(document: &Document, name: &str, sent: &Value) -> bool {
    is_of(&document.payload, view::blobs(document), name, sent)
}

fn is_of(document: &Object, files: &[Value], name: &str, sent: &Value) -> bool {
    let Some(sent) = sent.as_str() else {
        return false;
    };
    named(document, files).iter().any(|one| {
        let key = one.file["url"].as_str();
        let key = key.and_then(|url| url.strip_prefix("blob://"));
        let folder = key.and_then(|key| Some(key.rsplit_once('/')?.0));
        one.name == name && folder.is_some_and(|folder| sent.contains(folder))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_segment_tells_its_own_film() {
        let film = |name: &str, size: u64| {
            json!({"role": "source", "type": "video", "size_bytes": size, "url": format!("blob://ns_1/objects/obj_1/{name}/a.mp4"),
                "presigned_url": format!("http://a/{name}")})
        };
        let files = [
            film("blob_1", 1),
            film("blob_2", 2),
            json!({"role": "thumbnail", "url": "blob://ns_1/documents/col_1/doc_1/thumbnail.jpg", "presigned_url": "http://a/small"}),
        ];
        let segment = json!({"start_time": 0.0, "end_time": 2.5, "_internal": {"size_bytes": 2}});
        let told = addresses(&object(segment.clone()), &files);
        let expected = [
            ("thumbnail_url", "http://a/small"),
            ("source_video_url", "http://a/blob_2"),
            ("video_segment_url", "http://a/blob_2#t=0,2.5"),
        ];
        assert_eq!(
            told,
            expected.map(|(name, address)| (name, address.to_owned()))
        );
        let told =
            |name: &str, sent: &str| is_of(&object(segment.clone()), &files, name, &json!(sent));
        let address = "http://a/v1/blobs/ns_1/documents/col_1/doc_1/thumbnail.jpg?expires=1";
        assert!(told("thumbnail_url", address));
        assert!(!told("title", address) && !told("thumbnail_url", "http://b/own.jpg"));
        // A field of that name is the document's own.
        let own = object(json!({"thumbnail_url": "mine"}));
        assert!(addresses(&own, &files).is_empty());
        assert!(!is_of(&own, &files, "thumbnail_url", &json!(address)));
    }
}
