//! The texts that documents are found by, as far as they hold them: what extractors read and wrote down.

use loupe_wire::{Object, Value};

use super::Params;
use super::multimodal::MultimodalParams;

impl Params {
    /// The fields that hold what text indexes have a document by, the first of these groups that has any; none where documents
    /// do not hold it, such as what names of files and labels say of a picture.
    pub fn stored_texts(&self) -> Vec<Vec<&'static str>> {
        match self {
            Self::Text(_) | Self::Document(_) => vec![vec!["text"]],
            Self::Scraper(_) => vec![vec!["content"]],
            Self::Multimodal(params) => of_media(params),
            Self::Universal(params) => of_media(&params.media),
            Self::Image(_) | Self::Passthrough(_) | Self::Transcoding(_) => Vec::new(),
        }
    }

    /// The text that a document with these fields is embedded by, put together as it was when it was made.
    pub fn stored_text(&self, fields: &Object) -> Option<String> {
        let text = |name: &&str| {
            let text = fields.get(*name).and_then(Value::as_str)?.trim();
            (!text.is_empty()).then_some(text)
        };
        self.stored_texts().into_iter().find_map(|group| {
            let texts: Vec<&str> = group.iter().filter_map(text).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        })
    }
}

/// What was said, seen and written, in the order of [`super::multimodal::tell`]; a field that the extractor does not write may be
/// anybody's.
fn of_media(params: &MultimodalParams) -> Vec<Vec<&'static str>> {
    let mut words = vec!["transcription"];
    words.extend(params.describe.is_some().then_some("description"));
    words.extend(params.ocr.then_some("ocr_text"));
    vec![words, vec!["text"]]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::extract::{Outputs, find};

    fn text(extractor: &str, parameters: serde_json::Value) -> Option<String> {
        let fields = json!({"text": " a text ", "content": "a page", "transcription": "said", "description": "seen", "ocr_text": ""});
        let info = find(extractor, "v1")?;
        let params = info.check_params(&parameters, &Outputs::builtin()).ok()?;
        params.stored_text(fields.as_object()?)
    }

    #[test]
    fn a_document_is_embedded_by_what_its_extractor_wrote() {
        let none = json!({});
        for (extractor, parameters, expected) in [
            ("text_extractor", none.clone(), Some("a text")),
            ("document_graph_extractor", none.clone(), Some("a text")),
            ("web_scraper", none.clone(), Some("a page")),
            ("multimodal_extractor", none.clone(), Some("said")),
            (
                "multimodal_extractor",
                json!({"run_video_description": true, "run_ocr": true}),
                Some("said\nseen"),
            ),
            ("image_extractor", none.clone(), None),
            ("passthrough_extractor", none, None),
        ] {
            let found = text(extractor, parameters);
            assert_eq!(found.as_deref(), expected, "{extractor}");
        }
    }
}
