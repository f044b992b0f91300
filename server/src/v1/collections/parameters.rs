//! What each extractor may be told, as a JSON schema: the types that its parameters are read as, the bounds of
//! numbers, and what is taken where nothing is said.

use std::{collections::BTreeMap, sync::LazyLock};

use loupe_engine::extract::{self, ExtractorInfo, registry::Extractor};
use loupe_wire::{
    DocumentGraphExtractorParams, ImageExtractorParams, MultimodalExtractorParams, Object,
    PassthroughExtractorParams, TextExtractorParams, TranscodingExtractorParams,
    UniversalExtractorParams, Value, WebScraperExtractorParams,
};
use serde_json::json;
use utoipa::ToSchema;

/// The least and the most of numbers, by extractor and parameter.
const BOUNDS: &str = r#"{
    "text_extractor": {"chunk_size": [1, 10000], "chunk_overlap": [0, 5000], "segment_length_seconds": [30, 600]},
    "face_identity_extractor": {"min_face_size": [10, 200], "detection_threshold": [0.0, 1.0],
        "max_faces_per_image": [1, null], "quality_threshold": [0.0, 1.0], "max_video_length": [1, 300],
        "video_sampling_fps": [0.1, 60.0], "video_deduplication_threshold": [0.0, 1.0]},
    "document_graph_extractor": {"vertical_threshold": [1.0, 100.0], "horizontal_threshold": [1.0, 200.0],
        "min_text_length": [1, 500], "base_confidence": [0.0, 1.0], "min_confidence_for_vlm": [0.0, 1.0],
        "render_dpi": [72, 300], "thumbnail_dpi": [36, 150]},
    "web_scraper": {"max_depth": [0, 10], "max_pages": [1, 500], "crawl_timeout": [10, 3600],
        "chunk_size": [1, 10000], "chunk_overlap": [0, 5000], "max_retries": [0, 10],
        "retry_base_delay": [0.1, 30.0], "retry_max_delay": [1.0, 300.0], "rotate_proxy_every_n_requests": [0, 1000],
        "youtube_max_videos": [1, 5000], "youtube_backfill_months": [1, 60], "youtube_request_sleep": [0.0, 30.0],
        "delay_between_requests": [0.0, 60.0]},
    "colbert_extractor": {"chunk_size": [1, 10000], "chunk_overlap": [0, 5000]},
    "audio_fingerprint_extractor": {"segment_duration_sec": [1.0, 30.0], "segment_hop_sec": [0.5, 15.0],
        "max_audio_length_sec": [1.0, 600.0]},
    "gemini_multifile_extractor": {"output_dimensionality": [256, 3072]},
    "universal_extractor": {"output_dimensionality": [256, 3072], "max_video_segments": [1, 50],
        "max_document_pages": [1, 200], "max_file_download_mb": [1, 1024], "max_concurrency": [1, 32]},
    "scrolling_text_extractor": {"fps": [1.0, 30.0], "strip_height": [10, 200], "min_shift_px": [0.5, 20.0],
        "consistency_ratio": [0.3, 1.0], "pad": [0, 50], "max_static_frames": [1, 12]},
    "transcoding_extractor": {"crf": [0, 51], "max_resolution": [144, 4320]}
}"#;

const COMPONENT: &str = "#/components/schemas/";

/// Types within types that are followed: parameters have no more.
const DEPTH: usize = 8;

/// The schema of an extractor's parameters.
pub(super) fn schema(info: &ExtractorInfo) -> Object {
    static ALL: LazyLock<BTreeMap<&'static str, Object>> = LazyLock::new(|| {
        let bounds: Value = serde_json::from_str(BOUNDS).unwrap_or_default();
        let all = extract::catalogue().iter();
        all.map(|info| (info.name, of(info, &bounds))).collect()
    });
    ALL.get(info.name).cloned().unwrap_or_default()
}

fn of(info: &ExtractorInfo, bounds: &Value) -> Object {
    let defaults = info.default_parameters();
    let mut properties = match info.extractor {
        Extractor::Text => read::<TextExtractorParams>(),
        Extractor::Document => read::<DocumentGraphExtractorParams>(),
        Extractor::Image => read::<ImageExtractorParams>(),
        Extractor::Passthrough => read::<PassthroughExtractorParams>(),
        Extractor::Multimodal => read::<MultimodalExtractorParams>(),
        Extractor::Universal => read::<UniversalExtractorParams>(),
        Extractor::Transcoding => read::<TranscodingExtractorParams>(),
        Extractor::Scraper => read::<WebScraperExtractorParams>(),
        Extractor::Absent => told_by(&defaults),
    };
    let own = json!({"type": "string", "enum": [info.name]});
    properties.insert("extractor_type".into(), own);
    for (name, property) in &mut properties {
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        let bound = |at: usize| bounds.pointer(&format!("/{}/{name}/{at}", info.name));
        let told = [
            ("default", defaults.get(name)),
            ("minimum", bound(0)),
            ("maximum", bound(1)),
        ];
        for (word, value) in told {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                property.insert(word.to_owned(), value.clone());
            }
        }
    }
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    match schema {
        Value::Object(schema) => schema,
        _ => Object::new(),
    }
}

/// The properties of a type, whole in themselves.
fn read<T: ToSchema>() -> Object {
    let mut named = Vec::new();
    T::schemas(&mut named);
    let named: BTreeMap<String, Value> = named
        .into_iter()
        .filter_map(|(name, schema)| Some((name, serde_json::to_value(schema).ok()?)))
        .collect();
    let mut schema = serde_json::to_value(T::schema()).unwrap_or_default();
    inline(&mut schema, &named, DEPTH);
    match schema.get_mut("properties").map(Value::take) {
        Some(Value::Object(properties)) => properties,
        _ => Object::new(),
    }
}

/// Writes types where they are named.
fn inline(schema: &mut Value, named: &BTreeMap<String, Value>, depth: usize) {
    let name = schema.get("$ref").and_then(Value::as_str);
    let name = name.and_then(|address| address.strip_prefix(COMPONENT));
    let found = name.map(|name| named.get(name).cloned().unwrap_or_else(|| json!({})));
    let depth = match found {
        Some(_) if depth == 0 => return,
        Some(found) => {
            *schema = found;
            depth - 1
        }
        None => depth,
    };
    match schema {
        Value::Object(members) => {
            for member in members.values_mut() {
                inline(member, named, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                inline(item, named, depth);
            }
        }
        _ => {}
    }
}

/// The properties of what is told of by its defaults alone.
fn told_by(defaults: &Value) -> Object {
    let kind = |value: &Value| match value {
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        _ => "string",
    };
    let all = defaults.as_object().into_iter().flatten();
    all.map(|(name, value)| (name.clone(), json!({"type": kind(value)})))
        .collect()
}
