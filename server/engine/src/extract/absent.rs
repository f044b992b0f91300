//! Extractors of the interface that this server cannot run, with the reason: the catalogue tells of them all.

use loupe_wire::Value;
use serde_json::json;

use super::needs::Need;
use super::registry::{Extractor, ExtractorInfo, Input};

const fn info(
    name: &'static str,
    id: &'static str,
    description: &'static str,
    category: &'static str,
    inputs: &'static [Input],
    needs: &'static [Need],
) -> ExtractorInfo {
    ExtractorInfo {
        extractor: Extractor::Absent,
        name,
        version: "v1",
        feature_extractor_id: id,
        description,
        category,
        icon: "box",
        inputs,
        outputs: &[],
        position_fields: &[],
        needs,
        gains: &[],
    }
}

const fn input(name: &'static str, types: &'static [&'static str]) -> Input {
    Input { name, types }
}

pub const FACE_IDENTITY: ExtractorInfo = info(
    "face_identity_extractor",
    "face_identity_extractor_v1",
    "Faces in pictures and films, one vector each.",
    "image",
    &[
        input("image", &["image"]),
        input("video", &["video"]),
        input("video_frame", &["image"]),
    ],
    &[Need::Never(
        "the models that find and compare faces (SCRFD, ArcFace) are not part of this server, and no usual \
         endpoint offers them",
    )],
);

pub const COLBERT: ExtractorInfo = info(
    "colbert_extractor",
    "colbert_extractor_v1",
    "Texts with one vector for every word.",
    "text",
    &[input("text", &["text", "string"])],
    &[Need::Never(
        "one vector for every word needs a multi-vector index, which this server does not have",
    )],
);

pub const COLQWEN: ExtractorInfo = info(
    "colqwen_extractor",
    "colqwen_extractor_v1",
    "Pictures and pages of PDFs with one vector for every patch.",
    "document",
    &[input("image", &["image"]), input("pdf", &["pdf"])],
    &[Need::Never(
        "one vector for every patch needs a multi-vector index, which this server does not have",
    )],
);

pub const AUDIO_FINGERPRINT: ExtractorInfo = info(
    "audio_fingerprint_extractor",
    "audio_fingerprint_extractor_v1",
    "Pieces of sound that are found again by how they sound.",
    "audio",
    &[input("audio", &["audio"]), input("video", &["video"])],
    &[Need::Never(
        "the model that compares sounds is not part of this server, and no usual endpoint offers it",
    )],
);

pub const GEMINI_MULTIFILE: ExtractorInfo = info(
    "gemini_multifile_extractor",
    "gemini_multifile_extractor_v1",
    "One vector for several files together.",
    "general",
    &[input("files", &["any"])],
    &[Need::Never(
        "one vector for several files needs the endpoint of that model, which this server does not speak to",
    )],
);

pub const SCROLLING_TEXT: ExtractorInfo = info(
    "scrolling_text_extractor",
    "scrolling_text_extractor_v1",
    "Texts that move through a film, such as credits.",
    "video",
    &[input("video", &["video"])],
    &[Need::Never(
        "texts that move are not put together by this server yet",
    )],
);

/// The parameters of the interface when nothing is set.
pub(super) fn default_parameters(name: &str) -> Value {
    match name {
        "face_identity_extractor" => json!({
            "extractor_type": name, "detection_model": "scrfd_2.5g", "min_face_size": 20,
            "detection_threshold": 0.5, "normalize_embeddings": true, "enable_quality_scoring": true,
            "max_video_length": 60, "video_sampling_fps": 1.0, "video_deduplication": true,
            "video_deduplication_threshold": 0.8, "output_mode": "per_face", "include_face_crops": true,
            "include_source_frame_thumbnail": false, "store_detection_metadata": true,
        }),
        "colbert_extractor" => {
            json!({"extractor_type": name, "chunk_size": 300, "chunk_overlap": 0})
        }
        "colqwen_extractor" => {
            json!({"extractor_type": name, "enable_thumbnails": true, "use_cdn": false})
        }
        "audio_fingerprint_extractor" => json!({
            "extractor_type": name, "segment_duration_sec": 5.0, "segment_hop_sec": 2.5, "sample_rate": 48000,
            "normalize_embeddings": true, "max_audio_length_sec": 120.0,
        }),
        "gemini_multifile_extractor" => json!({
            "extractor_type": name, "output_dimensionality": 3072, "task_type": "RETRIEVAL_DOCUMENT",
            "input_key": "files",
        }),
        "scrolling_text_extractor" => json!({
            "extractor_type": name, "fps": 5.0, "strip_height": 40, "min_shift_px": 2.0,
            "consistency_ratio": 0.6, "pad": 8, "static_ocr": true, "max_static_frames": 4,
        }),
        _ => json!({}),
    }
}
