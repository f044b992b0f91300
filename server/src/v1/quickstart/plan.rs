//! What the demo is made of: requests as a caller would send them.

use serde_json::json;

use loupe_wire::Value;

/// Fields of an object that its documents keep.
const KEPT: [&str; 9] = [
    "title",
    "description",
    "category",
    "kind",
    "tags",
    "also_called",
    "name_de",
    "name_es",
    "name_fr",
];

const TEXT_FEATURE: &str = "loupe://text_extractor@v1/all_minilm_l6_v2_v1";
const PICTURE_FEATURE: &str = "loupe://image_extractor@v1/efficientnet_lite0_v1";

pub fn namespace() -> Value {
    json!({
        "namespace_name": super::NAME,
        "description": "A picture book to try Loupe with: pictures from Tux Paint, words from WordNet. Delete it whenever you like.",
    })
}

pub fn bucket() -> Value {
    let text = |description: &str| json!({"type": "text", "description": description});
    let list = |description: &str| json!({"type": "array", "items": {"type": "string"}, "description": description});
    json!({
        "bucket_name": "picture-book",
        "description": "One object a thing: a picture and what it is called.",
        "unique_key": {"fields": ["slug"]},
        "bucket_schema": {"properties": {
            "slug": {"type": "string", "required": true, "description": "Name of the object, once in the bucket"},
            "picture": {"type": "image", "required": true, "description": "What it looks like"},
            "title": {"type": "string", "required": true, "description": "What it is called"},
            "description": text("What it is"),
            "words": text("Everything that is said of it, for the text vector"),
            "category": {"type": "string", "description": "The chapter that it is in"},
            "kind": {"type": "string", "description": "The next wider word"},
            "tags": list("Wider words, the nearest first"),
            "also_called": list("Other names"),
            "name_de": {"type": "string", "description": "In German"},
            "name_es": {"type": "string", "description": "In Spanish"},
            "name_fr": {"type": "string", "description": "In French"},
        }},
    })
}

fn kept(fields: &[&str]) -> Value {
    fields
        .iter()
        .map(|field| json!({"source_path": field}))
        .collect()
}

/// Found by words.
pub fn texts(bucket_id: &str) -> Value {
    json!({
        "collection_name": "picture-book-texts",
        "description": "A text vector and the keywords of each thing; the documents show its picture.",
        "source": {"type": "bucket", "bucket_ids": [bucket_id]},
        "feature_extractor": {
            "feature_extractor_name": "text_extractor", "version": "v1",
            "input_mappings": {"text": "words"},
            "field_passthrough": kept(&KEPT),
        },
    })
}

/// Found by pictures.
pub fn pictures(bucket_id: &str) -> Value {
    json!({
        "collection_name": "picture-book-pictures",
        "description": "A picture vector of each thing, with labels, colour and thumbnail.",
        "source": {"type": "bucket", "bucket_ids": [bucket_id]},
        "feature_extractor": {
            "feature_extractor_name": "image_extractor", "version": "v1",
            "input_mappings": {"image": "picture"},
            "field_passthrough": kept(&KEPT),
        },
    })
}

/// Words by meaning and by letter; without words a hand of pictures by chance, unless a document is given as an example.
pub fn retriever(texts: &str) -> Value {
    json!({
        "retriever_name": "picture-book-search",
        "description": "Finds things by what they are, in your own words.",
        "collection_identifiers": [texts],
        "input_schema": {
            "query": {"type": "text", "description": "Try “an animal that lives in the water”", "required": false},
            "similar_to": {"type": "document_reference", "description": "A document whose like is wanted", "required": false},
        },
        "stages": [{
            "stage_name": "search",
            "stage_type": "filter",
            "config": {"stage_id": "feature_search", "parameters": {
                "searches": [
                    {
                        "feature_uri": TEXT_FEATURE, "query": {"input_mode": "text", "value": "{{INPUT.query}}"},
                        "top_k": 240, "min_score": 0.25, "weight": 0.06,
                        "on_empty": "{{ 'skip' if INPUT.similar_to else 'random' }}",
                    },
                    {
                        // Names and words by letter, the first few only: "a" and "the" are in every description.
                        "feature_uri": TEXT_FEATURE, "query": {"input_mode": "text", "value": "{{INPUT.query}}"},
                        "lexical": true, "top_k": 6, "min_score": 0.25, "weight": 0.04, "on_empty": "skip",
                    },
                    {
                        "feature_uri": TEXT_FEATURE, "top_k": 24, "weight": 1.0, "on_empty": "skip", "optional": true,
                        "query": {"input_mode": "document", "document_ref": {"document_id": "{{INPUT.similar_to}}"}},
                    },
                ],
                "fusion": "rrf",
                "final_top_k": 240,
                "facets": [{"key": "category", "limit": 12}],
            }},
        }],
    })
}

/// Pictures like one that is sent, or like one that is there.
pub fn picture_retriever(pictures: &str) -> Value {
    json!({
        "retriever_name": "picture-book-by-picture",
        "description": "Finds things that look like a picture.",
        "collection_identifiers": [pictures],
        "input_schema": {
            "picture": {"type": "image", "description": "A picture as base64 text", "required": false},
            "similar_to": {"type": "document_reference", "description": "A document whose like is wanted", "required": false},
        },
        "stages": [{
            "stage_name": "search",
            "stage_type": "filter",
            "config": {"stage_id": "feature_search", "parameters": {
                "searches": [
                    {
                        "feature_uri": PICTURE_FEATURE, "top_k": 24, "on_empty": "skip", "optional": true,
                        "query": {"input_mode": "content", "value": "{{INPUT.picture}}"},
                    },
                    {
                        "feature_uri": PICTURE_FEATURE, "top_k": 24, "on_empty": "skip", "optional": true,
                        "query": {"input_mode": "document", "document_ref": {"document_id": "{{INPUT.similar_to}}"}},
                    },
                ],
                "final_top_k": 24,
            }},
        }],
    })
}

pub fn publication(public_name: &str) -> Value {
    json!({
        "display_name": "Picture book",
        "public_name": public_name,
        "description": "Two hundred things with their pictures.",
        "include_metadata": true,
        "category": "demo",
        "display_config": display(),
    })
}

fn display() -> Value {
    let list = |label: &str| json!({"format": "array", "format_options": {"label": label, "separator": ", "}});
    let text = |label: &str| json!({"format": "text", "format_options": {"label": label}});
    json!({
        "title": "Picture book",
        "description": "Animals, plants, tools and planets. Ask in your own words: the page understands what you mean, and finds names in four languages.",
        "template_type": "media-search",
        "theme": {
            "primary_color": "#b4530a", "secondary_color": "#0f766e", "font_family": "system-ui, sans-serif",
            "background_color": "#fffdf8", "text_color": "#1f1a14", "border_radius": "12px",
            "card_style": "bordered", "card_hover_effect": "lift",
        },
        "layout": {"mode": "grid", "columns": 4, "gap": "16px"},
        "inputs": [{
            "field_name": "query", "field_schema": {"type": "text"}, "input_type": "text", "label": "Search the picture book",
            "placeholder": "A planet with rings", "order": 0,
            "suggestions": ["a big cat", "lives in the sea", "something to make music with", "a planet with rings", "tools for a carpenter", "ein Frosch"],
        }, {
            "field_name": "similar_to", "field_schema": {"type": "document_reference"}, "input_type": "text",
            "label": "Similar to", "order": 1,
        }],
        "exposed_fields": KEPT,
        "field_config": {
            "category": text("Chapter"), "kind": text("Kind"), "tags": list("Kinds"), "also_called": list("Also called"),
            "name_de": text("German"), "name_es": text("Spanish"), "name_fr": text("French"),
        },
        "components": {
            "show_filters": true,
            "result_card": {
                "thumbnail_aspect_ratio": "4/3", "thumbnail_fit": "contain", "title_field": "title",
                "card_fields": ["kind"], "modal_fields": ["category", "tags", "also_called", "name_de", "name_es", "name_fr"],
                "truncate_description": 110, "show_find_similar": true,
            },
        },
        "extensions": {"facets": ["category"], "color_scheme": "auto"},
        "external_links": [
            {"name": "Tux Paint", "url": "https://tuxpaint.org/"},
            {"name": "WordNet", "url": "https://wordnet.princeton.edu/"},
        ],
    })
}
