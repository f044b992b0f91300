//! What is said of a file before its bytes.

use serde_json::{Value, json};

use crate::{api::Problem, part::Dropped, record::Record};

/// What is said of a file before its bytes, and their media type.
pub(super) fn announcement(
    one: &Dropped,
    schema: Option<&Record>,
) -> Result<(Value, String), Problem> {
    let (file, name) = (&one.file, one.file.name());
    let kind = kind_of(&file.type_(), &name);
    let media = match file.type_() {
        media if media.is_empty() => "application/octet-stream".to_owned(),
        media => media,
    };
    let mut body =
        json!({"filename": name, "content_type": media, "file_size_bytes": file.size() as i64});
    if one.path != name {
        body["metadata"] = json!({"path": one.path});
    }
    if let Some(schema) = schema {
        let property = property_for(schema, kind).ok_or_else(|| {
            Problem::local(format!(
                "this bucket has no field of type {kind}, which this file needs"
            ))
        })?;
        body["blob_property"] = property.into();
        body["blob_type"] = kind.into();
    }
    Ok((body, media))
}

/// The type that a file's media type stands for.
fn kind_of(media: &str, name: &str) -> &'static str {
    match media {
        m if m.starts_with("image/") => "image",
        m if m.starts_with("video/") => "video",
        m if m.starts_with("audio/") => "audio",
        "application/pdf" => "pdf",
        m if m.contains("spreadsheet") || m.contains("excel") => "excel",
        _ if name.to_lowercase().ends_with(".pdf") => "pdf",
        _ => "text",
    }
}

/// The field of the bucket that takes files of this kind, if one does.
fn property_for(schema: &Record, kind: &str) -> Option<String> {
    schema
        .record("properties")
        .members()
        .into_iter()
        .find(|(_, field)| field.text("type") == kind)
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use loupe_wire::BucketSchema;

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn a_file_goes_to_the_field_of_its_kind() {
        let schema: BucketSchema = serde_json::from_value(
            json!({"properties": {"title": {"type": "string"}, "photo": {"type": "image"}}}),
        )
        .expect("a schema");
        let schema = sent(&schema);
        assert_eq!(
            property_for(&schema, kind_of("image/png", "a.png")).as_deref(),
            Some("photo")
        );
        assert_eq!(
            property_for(&schema, kind_of("application/pdf", "a.pdf")),
            None
        );
        assert_eq!(kind_of("", "notes.md"), "text");
    }
}
