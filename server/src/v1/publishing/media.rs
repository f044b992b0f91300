//! The file that a document was made of: what visitors of a page play, or open at the place that was found. They get it where
//! the object's field that holds it is among the exposed ones.

use loupe_hosted::{Media, MediaKind};
use loupe_wire::{Object, Value};

/// The file of a document whose files have addresses, with the place that the document is of it.
pub fn of(exposed: &[String], document: &Object) -> Option<Media> {
    let internal = document.get("_internal");
    let files = document.get("document_blobs")?.as_array()?;
    let mut files: Vec<&Value> = files
        .iter()
        .filter(|file| is_shown(exposed, file))
        .collect();
    // What was made for it comes before what it was made of, and that before the object's other files.
    let own = internal.and_then(|internal| internal.get("mime_type"));
    files.sort_by_key(|file| (file["role"] != "processed", own != file.get("content_type")));
    let file = files.first()?;
    let place = |name: &str| {
        let told = internal.and_then(|internal| internal.get("metadata")?.get(name));
        document.get(name).or(told)
    };
    let second = |name: &str| {
        let second = place(name).and_then(Value::as_f64);
        second.filter(|second| second.is_finite() && *second > 0.0)
    };
    Some(Media {
        kind: kind(file)?,
        url: file.get("presigned_url")?.as_str()?.to_owned(),
        start: second("start_time"),
        end: second("end_time"),
        page: place("page_number").and_then(Value::as_u64),
        parts: Vec::new(),
    })
}

/// The address of the picture that a document was made of, as large as it is.
pub fn original(exposed: &[String], document: &Object) -> Option<String> {
    let internal = document.get("_internal");
    let own = |member: &str| internal.and_then(|internal| internal.get(member));
    let files = document.get("document_blobs")?.as_array()?;
    // Thumbnails are small ones of what is here.
    let pictures = files.iter().filter(|file| {
        is_picture(file) && file["role"] != "thumbnail" && is_exposed(exposed, file)
    });
    // Of several of its kind it is the one of its size.
    let picture = pictures.min_by_key(|file| {
        let is_other = |of_document: &str, of_file: &str| own(of_document) != file.get(of_file);
        (
            is_other("mime_type", "content_type"),
            is_other("size_bytes", "size_bytes"),
        )
    })?;
    Some(picture.get("presigned_url")?.as_str()?.to_owned())
}

/// As [`original`], of a document that was made of a picture: what stands for a film or a text is no small one of another.
pub fn whole(exposed: &[String], document: &Object) -> Option<String> {
    let own = document.get("_internal")?.get("mime_type")?.as_str()?;
    if !own.starts_with("image/") {
        return None;
    }
    original(exposed, document)
}

/// Fields of a document's object that hold recordings and PDFs.
pub(super) fn fields(document: &Object) -> Vec<String> {
    let internal = document.get("_internal");
    let files = internal.and_then(|internal| internal.get("document_blobs")?.as_array());
    let mut names: Vec<String> = Vec::new();
    for file in files.into_iter().flatten() {
        let name = file.get("field").and_then(Value::as_str);
        let name = name.filter(|name| kind(file).is_some() && !names.iter().any(|one| one == name));
        names.extend(name.map(ToOwned::to_owned));
    }
    names
}

fn is_shown(exposed: &[String], file: &Value) -> bool {
    kind(file).is_some() && is_exposed(exposed, file)
}

fn is_exposed(exposed: &[String], file: &Value) -> bool {
    let name = file.get("field").and_then(Value::as_str);
    name.is_some_and(|name| exposed.iter().any(|field| field == name))
}

fn is_picture(file: &Value) -> bool {
    let content_type = file.get("content_type").and_then(Value::as_str);
    content_type.is_some_and(|content_type| content_type.starts_with("image/"))
}

fn kind(file: &Value) -> Option<MediaKind> {
    let content_type = file.get("content_type")?.as_str()?;
    match content_type.split(['/', ';']).next()? {
        "video" => Some(MediaKind::Video),
        "audio" => Some(MediaKind::Audio),
        _ => content_type
            .starts_with("application/pdf")
            .then_some(MediaKind::Pdf),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_file_is_shown_where_its_field_is() {
        let film = json!({"field": "film", "role": "source", "content_type": "video/mp4", "presigned_url": "/film"});
        let script = json!({"field": "script", "role": "source", "content_type": "application/pdf", "presigned_url": "/script"});
        let thumbnail = json!({"field": "thumbnail", "role": "thumbnail", "content_type": "image/webp", "presigned_url": "/small"});
        let document = object(json!({
            "start_time": 12.5, "document_blobs": [thumbnail, script, film],
            "_internal": {"mime_type": "video/mp4", "document_blobs": [thumbnail, script, film]},
        }));
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(of(&names(&["title", "thumbnail"]), &document).is_none());
        let found = of(&names(&["film", "script"]), &document).unwrap();
        assert_eq!(
            (found.kind, found.url.as_str(), found.start),
            (MediaKind::Video, "/film", Some(12.5))
        );
        let found = of(&names(&["script"]), &document).unwrap();
        assert_eq!(found.kind, MediaKind::Pdf);
        assert_eq!(fields(&document), ["script", "film"]);
    }

    #[test]
    fn a_picture_is_opened_where_its_field_is_shown() {
        let picture = |field: &str, role: &str, kind: &str| json!({"field": field, "role": role, "content_type": kind, "presigned_url": format!("/{field}")});
        let document = object(json!({
            "document_blobs": [picture("small", "thumbnail", "image/webp"), picture("cover", "source", "image/png"),
                picture("scan", "source", "image/jpeg"), picture("film", "source", "video/mp4")],
            "_internal": {"mime_type": "image/jpeg"},
        }));
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            original(&names, &document)
        };
        assert_eq!(of(&["cover", "scan"]).as_deref(), Some("/scan"));
        assert_eq!(of(&["cover"]).as_deref(), Some("/cover"));
        assert_eq!(of(&["small", "film", "title"]), None);
        assert_eq!(whole(&["scan".into()], &document).as_deref(), Some("/scan"));
        let mut film = document.clone();
        film.insert("_internal".into(), json!({"mime_type": "video/mp4"}));
        assert_eq!(whole(&["scan".into()], &film), None);
    }
}
