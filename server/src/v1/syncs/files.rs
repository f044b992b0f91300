//! Which files of a storage a bucket follows, and what object becomes of each.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use loupe_wire::{
    BlobType, BucketResponse, BucketSchemaFieldType as Kind, CreateBlobRequest,
    CreateObjectRequest, FieldMappingEntry, FieldSource, FileFilters, MappingEntry, Object,
    ObjectResponse, SchemaMapping, SyncConfigurationModel, Value, reading,
};
use regex::{Regex, RegexBuilder};
use serde_json::json;

use super::store;
use crate::{
    error::{ApiError, Result, Violation},
    v1::connections::Entry,
};

/// What tells of a file which sync brought it.
const SYNC: &str = "sync_config_id";

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;

/// Patterns of one list, and members of one mapping.
const MOST: usize = 100;

/// Ways to change a value that a name gave.
const TRANSFORMS: [&str; 5] = ["lower", "upper", "trim", "integer", "number"];

/// Where files come from: a bucket of the storage, and the folder in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub bucket: String,
    /// Without slashes around it; empty = the whole bucket.
    pub folder: String,
}

impl Source {
    /// `s3://bucket/folder`, or the same without the scheme.
    ///
    /// # Errors
    /// The 422 list when it names no bucket.
    pub fn parse(path: &str) -> Result<Self> {
        let rest = path.strip_prefix("s3://").unwrap_or(path);
        let (bucket, folder) = rest.split_once('/').unwrap_or((rest, ""));
        let named = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if bucket.is_empty() || !bucket.chars().all(named) {
            let msg = "a source is s3://BUCKET or s3://BUCKET/FOLDER";
            return Err(fault(&["source_path"], msg, path.into()));
        }
        Ok(Self {
            bucket: bucket.to_owned(),
            folder: folder.trim_matches('/').to_owned(),
        })
    }

    /// The path of a file below the folder.
    fn below<'p>(&self, path: &'p str) -> &'p str {
        path.strip_prefix(&self.folder)
            .map_or(path, |rest| rest.trim_start_matches('/'))
    }
}

fn fault(path: &[&str], msg: impl Into<String>, sent: Value) -> ApiError {
    Violation::body(path, "value_error", msg, sent).into()
}

/// The filters of a request.
///
/// # Errors
/// The 422 list for what is no filter, or one that this server does not have.
pub fn filters(sent: Option<Object>) -> Result<Option<FileFilters>> {
    let Some(sent) = sent else { return Ok(None) };
    let value = Value::Object(sent);
    let filters: FileFilters = reading::from_value(&value).map_err(|error| {
        fault(
            &["file_filters"],
            format!("these are no filters of files: {error}"),
            value,
        )
    })?;
    if !filters.metadata_filters.is_empty() {
        let msg =
            "storages do not tell metadata with their lists: filter by name, size, age or type";
        let path = ["file_filters", "metadata_filters"];
        return Err(Violation::body(&path, "not_enabled", msg, Value::Null).into());
    }
    Ok(Some(filters))
}

/// What a configuration says of files, compiled.
pub struct Rules {
    source: Source,
    sync_id: String,
    connection_id: String,
    skip_duplicates: bool,
    include: Option<GlobSet>,
    exclude: Option<GlobSet>,
    filters: FileFilters,
    mapping: Vec<(String, Mapped)>,
}

enum Mapped {
    Field(FieldMappingEntry, Option<Regex>),
    Blob {
        property: String,
        kind: BlobType,
        mime: Option<String>,
    },
}

impl Rules {
    /// # Errors
    /// The 422 list for a pattern that cannot be read, a source that this server does not have.
    pub fn read(model: &SyncConfigurationModel) -> Result<Self> {
        let filters = model.file_filters.clone().unwrap_or_default();
        let include = globs("include_patterns", filters.include_patterns.as_deref())?;
        let exclude = globs("exclude_patterns", filters.exclude_patterns.as_deref())?;
        Ok(Self {
            source: Source::parse(&model.source_path)?,
            sync_id: store::id(model).to_owned(),
            connection_id: model.connection_id.clone(),
            skip_duplicates: model.skip_duplicates,
            mapping: mapping(model.schema_mapping.as_ref())?,
            include,
            exclude,
            filters,
        })
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Whether the bucket follows this file.
    pub fn take(&self, file: &Entry) -> bool {
        let path = self.source.below(&file.key);
        let matches = |globs: &Option<GlobSet>, none| {
            globs.as_ref().map_or(none, |globs| globs.is_match(path))
        };
        let filters = &self.filters;
        let size = i64::try_from(file.size).unwrap_or(i64::MAX);
        let types = filters.mime_types.as_deref().unwrap_or_default();
        !path.is_empty()
            && matches(&self.include, true)
            && !matches(&self.exclude, false)
            && filters.min_size_bytes.is_none_or(|least| size >= least)
            && filters.max_size_bytes.is_none_or(|most| size <= most)
            && filters.modified_after.is_none_or(|at| file.modified > at)
            && filters.modified_before.is_none_or(|at| file.modified < at)
            && (types.is_empty() || types.iter().any(|wanted| is_of(&mime(path), wanted)))
    }

    /// The request that makes the object of a file.
    ///
    /// # Errors
    /// A field that has to be there cannot be read from the file's name.
    pub fn request(&self, bucket: &BucketResponse, file: &Entry) -> Result<CreateObjectRequest> {
        let path = self.source.below(&file.key);
        let mut fields = Object::new();
        let mut blobs = Vec::new();
        for (name, mapped) in &self.mapping {
            match mapped {
                Mapped::Field(entry, pattern) => match value(entry, pattern.as_ref(), path) {
                    Some(value) => _ = fields.insert(name.clone(), value),
                    None if entry.required => {
                        let msg = format!("the name of the file gives no '{name}'");
                        return Err(ApiError::bad_request("", msg));
                    }
                    None => {}
                },
                Mapped::Blob {
                    property,
                    kind,
                    mime,
                } => {
                    let kind = of_type(*kind).unwrap_or_else(|| kind_of(path));
                    blobs.push(self.blob(property.clone(), kind, mime.as_deref(), &file.key));
                }
            }
        }
        if blobs.is_empty() {
            let kind = kind_of(path);
            let property = property(bucket, kind)?;
            blobs.push(self.blob(property, kind, None, &file.key));
        }
        let folder = path
            .rsplit_once('/')
            .map(|(folder, _)| format!("/{folder}"));
        Ok(CreateObjectRequest {
            key_prefix: folder,
            blobs: Some(blobs),
            skip_duplicates: self.skip_duplicates,
            extra: fields,
            ..Default::default()
        })
    }

    fn blob(
        &self,
        property: String,
        kind: Kind,
        mime: Option<&str>,
        key: &str,
    ) -> CreateBlobRequest {
        let mut metadata = json!({ "connection_id": self.connection_id, SYNC: self.sync_id });
        if let Some(mime) = mime {
            metadata["mime_type"] = mime.into();
        }
        CreateBlobRequest {
            property,
            r#type: kind,
            data: Some(format!("s3://{}/{key}", self.source.bucket).into()),
            metadata: metadata.as_object().cloned(),
            ..Default::default()
        }
    }
}

/// Takes out of what a caller sends what only a sync says of the files that it brings.
pub fn unmark(request: &mut CreateObjectRequest) {
    for file in request.blobs.iter_mut().flatten() {
        if let Some(metadata) = &mut file.metadata {
            metadata.shift_remove(SYNC);
        }
    }
}

/// The sync that brought the object's files.
pub fn sync_of(object: &ObjectResponse) -> Option<&str> {
    let mut files = object.blobs.iter();
    files.find_map(|file| file.properties.get(SYNC)?.as_str())
}

/// `*` stays within a folder, `**` does not; a pattern without a slash is about the name alone.
fn globs(member: &str, patterns: Option<&[String]>) -> Result<Option<GlobSet>> {
    let Some(patterns) = patterns.filter(|patterns| !patterns.is_empty()) else {
        return Ok(None);
    };
    let refused =
        |error: &str, pattern: &str| fault(&["file_filters", member], error, pattern.into());
    if patterns.len() > MOST {
        return Err(refused("at most 100 patterns", ""));
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let whole = match pattern.contains('/') {
            true => pattern.trim_start_matches('/').to_owned(),
            false => format!("**/{pattern}"),
        };
        let glob = GlobBuilder::new(&whole).literal_separator(true).build();
        set.add(glob.map_err(|error| refused(&error.to_string(), pattern))?);
    }
    let set = set.build();
    Ok(Some(set.map_err(|error| refused(&error.to_string(), ""))?))
}

fn mapping(sent: Option<&SchemaMapping>) -> Result<Vec<(String, Mapped)>> {
    let entries = sent.iter().flat_map(|mapping| &mapping.mappings);
    let read = entries.map(|(name, entry)| {
        let refused = |msg: String| fault(&["schema_mapping", "mappings", name], msg, json!(entry));
        Ok((name.clone(), mapped(entry).map_err(refused)?))
    });
    let read = read.collect::<Result<Vec<_>>>()?;
    if read.len() > MOST {
        let msg = format!("a mapping has at most {MOST} members");
        let sent = read.len().into();
        return Err(fault(&["schema_mapping", "mappings"], msg, sent));
    }
    Ok(read)
}

/// A member of a mapping, or what is wrong with it.
fn mapped(entry: &MappingEntry) -> Result<Mapped, String> {
    match entry {
        MappingEntry::Blob(blob) => match blob.source {
            FieldSource::File(_) => Ok(Mapped::Blob {
                property: blob.blob_property.clone(),
                kind: blob.blob_type,
                mime: blob.mime_type_override.clone(),
            }),
            _ => Err("what becomes a file is the source `file`".into()),
        },
        MappingEntry::Field(field) => {
            let known = |name: &String| TRANSFORMS.contains(&name.as_str());
            if !field.transform.as_ref().is_none_or(known) {
                return Err("a transform is lower, upper, trim, integer or number".into());
            }
            let pattern = match &field.source {
                FieldSource::File(_) => {
                    return Err("a field is no file: its target_type is blob".into());
                }
                FieldSource::FilenameRegex(source) => {
                    let pattern = RegexBuilder::new(&source.pattern)
                        .size_limit(PATTERN_BYTES)
                        .build();
                    let refused = |error| format!("this pattern cannot be read: {error}");
                    Some(pattern.map_err(refused)?)
                }
                _ => None,
            };
            Ok(Mapped::Field(field.clone(), pattern))
        }
    }
}

/// What a file's path gives a field.
fn value(entry: &FieldMappingEntry, pattern: Option<&Regex>, path: &str) -> Option<Value> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let found: Value = match &entry.source {
        FieldSource::Constant(source) => source.value.clone()?,
        FieldSource::FilenameRegex(source) => {
            let found = pattern?.captures(name).map(|captures| {
                // The first group, or all that the pattern found.
                let part = captures.get(1).or_else(|| captures.get(0));
                part.map_or("", |part| part.as_str()).to_owned()
            });
            found.or_else(|| source.default.clone())?.into()
        }
        FieldSource::FolderPath(source) => {
            let mut segments = folder.split('/').filter(|segment| !segment.is_empty());
            match source.segment {
                _ if source.full_path => folder.into(),
                // From the end, as -1 is the folder that the file lies in.
                Some(at) if at < 0 => segments.rev().nth(usize::try_from(-(at + 1)).ok()?)?.into(),
                Some(at) => segments.nth(usize::try_from(at).ok()?)?.into(),
                None => segments.next_back()?.into(),
            }
        }
        FieldSource::File(_) => return None,
    };
    transformed(found, entry.transform.as_deref())
}

fn transformed(found: Value, transform: Option<&str>) -> Option<Value> {
    let (Some(transform), Value::String(text)) = (transform, &found) else {
        return Some(found);
    };
    match transform {
        "lower" => Some(text.to_lowercase().into()),
        "upper" => Some(text.to_uppercase().into()),
        "trim" => Some(text.trim().into()),
        "integer" => text.trim().parse::<i64>().ok().map(Value::from),
        "number" => text.trim().parse::<f64>().ok().map(Value::from),
        _ => None,
    }
}

fn mime(path: &str) -> String {
    mime_guess::from_path(path)
        .first_or_octet_stream()
        .essence_str()
        .to_owned()
}

/// `image/*` is any picture.
fn is_of(mime: &str, wanted: &str) -> bool {
    match wanted.strip_suffix("/*") {
        Some(family) => mime.split('/').next() == Some(family),
        None => mime.eq_ignore_ascii_case(wanted),
    }
}

fn kind_of(path: &str) -> Kind {
    match mime(path) {
        mime if mime.starts_with("image/") => Kind::Image,
        mime if mime.starts_with("video/") => Kind::Video,
        mime if mime.starts_with("audio/") => Kind::Audio,
        mime if mime == "application/pdf" => Kind::Pdf,
        mime if mime.contains("spreadsheet") || mime.contains("excel") => Kind::Excel,
        _ => Kind::Text,
    }
}

const fn of_type(kind: BlobType) -> Option<Kind> {
    match kind {
        BlobType::Auto => None,
        BlobType::Image => Some(Kind::Image),
        BlobType::Video => Some(Kind::Video),
        BlobType::Audio => Some(Kind::Audio),
        BlobType::Text => Some(Kind::Text),
        BlobType::Pdf => Some(Kind::Pdf),
        BlobType::Excel => Some(Kind::Excel),
    }
}

/// The member of the bucket's schema that takes files of this kind; without a schema, `content`.
fn property(bucket: &BucketResponse, kind: Kind) -> Result<String> {
    let schema = bucket.bucket_schema.as_ref();
    let Some(schema) = schema.filter(|schema| !schema.properties.is_empty()) else {
        return Ok("content".into());
    };
    let taking = schema
        .properties
        .iter()
        .find(|(_, field)| field.r#type == kind);
    taking.map(|(name, _)| name.clone()).ok_or_else(|| {
        let kind = crate::v1::tasks::name_of(kind);
        ApiError::bad_request(
            "",
            format!("the bucket's schema has no member for files of the type {kind}"),
        )
    })
}
