//! Parameters of the interface behind which there is nothing here. A collection that asks for another value than the default
//! is refused when it is made; one that was made before goes on as it did.

use loupe_wire::Value;

use super::registry::{Extractor, ExtractorInfo, Params, Violation};

const LAYOUT: &str = "the layout of pages is not looked for here: there is one object, the page";
const CORRECTION: &str = "no model corrects the text of pages here: it is kept as it was read";
const CDN: &str = "files are served by this server itself: there is no CDN";
const TASK: &str = "documents are embedded as documents and questions as questions: their models are told no other task";
const WRITING: &str =
    "of what a model is told of its writing only temperature and max_output_tokens are";
const VIDEOS: &str = "videos of platforms are not fetched here, nor their captions";
const PROXIES: &str =
    "pages are asked for directly, so that every address is checked: there are no proxies";
const CONCURRENCY: &str =
    "how many files are read at once is set for the whole server, by whoever runs it";

/// The parameters of an extractor, members of objects after a slash, each with what is not there.
const fn unbuilt(extractor: Extractor) -> &'static [(&'static str, &'static str)] {
    match extractor {
        Extractor::Document => &[
            ("layout_detector", LAYOUT),
            ("vertical_threshold", LAYOUT),
            ("horizontal_threshold", LAYOUT),
            ("base_confidence", CORRECTION),
            ("min_confidence_for_vlm", CORRECTION),
            ("vlm_provider", CORRECTION),
            ("vlm_model", CORRECTION),
        ],
        Extractor::Image => &[("use_cdn", CDN)],
        Extractor::Multimodal => &[
            ("use_cdn", CDN),
            ("task_type", TASK),
            ("embedding_task", TASK),
            ("generation_config/candidate_count", WRITING),
            ("generation_config/top_p", WRITING),
            ("generation_config/video_fps", WRITING),
            ("generation_config/response_mime_type", WRITING),
            ("generation_config/response_schema", WRITING),
        ],
        Extractor::Universal => &[("task_type", TASK), ("max_concurrency", CONCURRENCY)],
        Extractor::Text => &[("embedding_task", TASK), ("segment_length_seconds", VIDEOS)],
        Extractor::Scraper => &[
            ("rotate_proxy_every_n_requests", PROXIES),
            ("youtube_max_videos", VIDEOS),
            ("youtube_backfill_months", VIDEOS),
            ("youtube_show_filter", VIDEOS),
            ("youtube_format_ladder", VIDEOS),
            ("youtube_cookies_path", VIDEOS),
            ("youtube_request_sleep", VIDEOS),
        ],
        Extractor::Passthrough | Extractor::Transcoding | Extractor::Absent => &[],
    }
}

/// Words that are embedded, and the parameter that finds them.
const WORDS: &[(&str, &str)] = &[
    ("run_transcription_embedding", "run_transcription"),
    ("run_ocr_embedding", "run_ocr"),
    ("run_description_embedding", "run_video_description"),
];

impl ExtractorInfo {
    /// Refuses what nothing would come of. `params` are what was read of `sent`.
    ///
    /// # Errors
    /// The parameter, and what is not there.
    pub fn check_built(&self, sent: &Value, params: &Params) -> Result<(), Violation> {
        let defaults = self.default_parameters();
        for (path, msg) in unbuilt(self.extractor) {
            let pointer = format!("/{path}");
            let default = defaults.pointer(&pointer).unwrap_or(&Value::Null);
            match sent.pointer(&pointer) {
                None | Some(Value::Null) => {}
                // What is done anyway.
                Some(Value::String(task))
                    if path.ends_with("_task")
                        && task.eq_ignore_ascii_case("retrieval_document") => {}
                Some(wanted) if is_same(wanted, default) => {}
                Some(_) => {
                    return Err(Violation {
                        loc: path.split('/').map(str::to_owned).collect(),
                        msg: (*msg).to_owned(),
                    });
                }
            }
        }
        check_thumbnails(sent)?;
        check_words(sent)?;
        check_goal(sent)?;
        check_dimensions(sent, &defaults, params)
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() < f64::EPSILON,
        _ => one == other,
    }
}

/// Only the document extractor has the parameter.
fn check_thumbnails(sent: &Value) -> Result<(), Violation> {
    match sent.get("thumbnail_mode").and_then(Value::as_str) {
        None | Some("both" | "full_page") => Ok(()),
        Some(_) => Err(Violation::new(
            "thumbnail_mode",
            "thumbnails are of whole pages here (\"both\" or \"full_page\"): pages are not cut into segments",
        )),
    }
}

/// Only the multimodal extractor has the parameters.
fn check_words(sent: &Value) -> Result<(), Violation> {
    let asks = |name: &str| sent.get(name).and_then(Value::as_bool) == Some(true);
    match WORDS
        .iter()
        .find(|(embeds, finds)| asks(embeds) && !asks(finds))
    {
        None => Ok(()),
        Some((embeds, finds)) => {
            let msg = format!("there would be no words to embed: {finds} is off");
            Err(Violation::new(embeds, msg))
        }
    }
}

/// Only the scraper has the parameters: a goal that no page is chosen by.
fn check_goal(sent: &Value) -> Result<(), Violation> {
    let text = |name: &str| sent.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("crawl_goal").trim().is_empty() || text("crawl_mode") == "semantic" {
        return Ok(());
    }
    let msg = "pages are chosen by it with crawl_mode semantic alone";
    Err(Violation::new("crawl_goal", msg))
}

/// The default is that of the interface; other numbers must be those of an index that the collection gets.
fn check_dimensions(sent: &Value, defaults: &Value, params: &Params) -> Result<(), Violation> {
    const NAME: &str = "output_dimensionality";
    let Some(wanted) = sent.get(NAME).filter(|wanted| !wanted.is_null()) else {
        return Ok(());
    };
    let sizes = params.indexes().iter().map(|index| index.dims);
    let given = |size: usize| wanted.as_u64() == u64::try_from(size).ok();
    if is_same(wanted, &defaults[NAME]) || sizes.clone().any(given) {
        return Ok(());
    }
    let sizes: Vec<String> = sizes.map(|size| size.to_string()).collect();
    let msg = format!(
        "vectors have as many dimensions as their models give, here {}",
        sizes.join(" and ")
    );
    Err(Violation::new(NAME, msg))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::extract::{Outputs, catalogue, find};

    fn check(name: &str, sent: Value) -> Result<(), String> {
        let info = find(name, "v1").unwrap();
        let params = info.check_params(&sent, &Outputs::builtin()).unwrap();
        info.check_built(&sent, &params)
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn defaults_that_are_sent_stay_good() {
        let mut seen = 0;
        for info in catalogue() {
            if info.extractor == Extractor::Absent {
                continue;
            }
            seen += 1;
            let all = info.default_parameters();
            assert_eq!(check(info.name, all), Ok(()), "{}", info.name);
            assert_eq!(check(info.name, json!({})), Ok(()), "{}", info.name);
            assert_eq!(check(info.name, Value::Null), Ok(()), "{}", info.name);
        }
        assert_eq!(seen, 8);
        // Numbers in another form, what is switched off, and what is there.
        for (name, sent) in [
            (
                "document_graph_extractor",
                json!({"vertical_threshold": 15, "use_vlm_correction": false, "use_layout_detection": false,
                       "fast_mode": true, "thumbnail_mode": "full_page", "render_dpi": 300}),
            ),
            (
                "multimodal_extractor",
                json!({"output_dimensionality": 1280, "generation_config": {"temperature": 0.5},
                       "run_ocr": true, "run_ocr_embedding": true, "embedding_task": null}),
            ),
            (
                "web_scraper",
                json!({"generate_code_embeddings": false, "youtube_mode": "off", "youtube_download_videos": false,
                       "rotate_proxy_on_error": false, "crawl_mode": "semantic", "crawl_goal": "prices"}),
            ),
            (
                "text_extractor",
                json!({"extract_captions": false, "segment_length_seconds": 120}),
            ),
        ] {
            assert_eq!(check(name, sent.clone()), Ok(()), "{name}: {sent}");
        }
    }

    #[test]
    fn what_nothing_would_come_of_is_refused() {
        for (name, sent, place) in [
            (
                "document_graph_extractor",
                json!({"layout_detector": "docling"}),
                "layout_detector: the layout",
            ),
            (
                "document_graph_extractor",
                json!({"vlm_model": "another"}),
                "vlm_model: no model corrects",
            ),
            (
                "document_graph_extractor",
                json!({"thumbnail_mode": "segment"}),
                "thumbnail_mode: ",
            ),
            ("image_extractor", json!({"use_cdn": true}), "use_cdn: "),
            (
                "text_extractor",
                json!({"embedding_task": "clustering"}),
                "embedding_task: ",
            ),
            (
                "multimodal_extractor",
                json!({"output_dimensionality": 768}),
                "output_dimensionality: vectors have as many dimensions as their models give, here 1280 and 384",
            ),
            (
                "multimodal_extractor",
                json!({"generation_config": {"top_p": 0.1}}),
                "generation_config.top_p: ",
            ),
            (
                "multimodal_extractor",
                json!({"run_ocr_embedding": true}),
                "run_ocr_embedding: there would be no words to embed: run_ocr is off",
            ),
            (
                "universal_extractor",
                json!({"max_concurrency": 8}),
                "max_concurrency: ",
            ),
            (
                "text_extractor",
                json!({"segment_length_seconds": 60}),
                "segment_length_seconds: videos",
            ),
            (
                "web_scraper",
                json!({"youtube_show_filter": "news"}),
                "youtube_show_filter: videos",
            ),
            (
                "web_scraper",
                json!({"rotate_proxy_every_n_requests": 5}),
                "rotate_proxy_every_n_requests: ",
            ),
            (
                "web_scraper",
                json!({"crawl_goal": "prices"}),
                "crawl_goal: pages are chosen",
            ),
        ] {
            let refused = check(name, sent.clone()).unwrap_err();
            assert!(refused.starts_with(place), "{name}: {sent}: {refused}");
        }
    }
}
