//! `web_scraper`: the pages of a site, found by following links from an address, whole or in chunks.

use std::collections::HashSet;
use std::time::Duration;

use loupe_wire::{
    ChunkStrategy, CrawlMode, DocumentIdStrategy, Object, RenderStrategy, TextSplitStrategy,
    WebScraperExtractorParams, YoutubeMode,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::needs::Need;
use super::registry::{
    Extractor, ExtractorInfo, Field, IMAGE_OUTPUT, IndexInfo, Input, Outputs, Source, TEXT_OUTPUT,
    Violation, index, read, within,
};
use super::shape::Shape;
use super::split::{Chunk, Limit, Split, split};
use super::text::language;
use super::{ExtractError, Part};
use crate::crawl::{Page, Rules};

/// The models of the interface, where endpoints answer for them.
const E5_OUTPUT: &str = "intfloat__multilingual_e5_large_instruct";
const SIGLIP_OUTPUT: &str = "google__siglip_base_patch16_224";

/// Documents of one crawl, and the bytes of their texts.
const LIMIT: Limit = Limit {
    chunks: 20_000,
    bytes: 128 << 20,
};
/// Patterns of one list, and headers.
const MOST_PATTERNS: usize = 100;
const MOST_HEADERS: usize = 50;

pub const INFO: ExtractorInfo = ExtractorInfo {
    extractor: Extractor::Scraper,
    name: "web_scraper",
    version: "v1",
    feature_extractor_id: "web_scraper_v1",
    description: "Web pages, found by following links of one site from an address: as far as its robots.txt lets, each \
                  page once, as it is sent (no browser runs its scripts), with a text vector and one of its picture. \
                  Pages of code have no vectors of their own, nor has how a page is laid out: \
                  generate_code_embeddings and generate_structure_embeddings change nothing. Videos are not read.",
    category: "web",
    icon: "globe",
    inputs: &[Input {
        name: "url",
        types: &["string", "text"],
    }],
    outputs: &[
        Field {
            name: "content",
            kind: "string",
            description: "The text of the page or chunk, as Markdown.",
        },
        Field {
            name: "title",
            kind: "string",
            description: "The title of the page, when it has one.",
        },
        Field {
            name: "page_url",
            kind: "string",
            description: "The address of the page, the one that it says it has.",
        },
        Field {
            name: "code_blocks",
            kind: "array",
            description: "Code on the page, as {language, code}; of its first chunk.",
        },
        Field {
            name: "images",
            kind: "array",
            description: "Pictures on the page, as {src, alt}; of its first chunk.",
        },
        Field {
            name: "asset_links",
            kind: "array",
            description: "Files that the page links to; of its first chunk.",
        },
        Field {
            name: "chunk_index",
            kind: "integer",
            description: "Position in the page, from 0.",
        },
        Field {
            name: "total_chunks",
            kind: "integer",
            description: "Chunks of the page.",
        },
        Field {
            name: "crawl_depth",
            kind: "integer",
            description: "Links that lead from the address to the page.",
        },
        Field {
            name: "parent_url",
            kind: "string",
            description: "The page that links to it; not of the first.",
        },
        Field {
            name: "labels",
            kind: "array",
            description: "What the page's picture shows, most likely first.",
        },
    ],
    position_fields: &["chunk_index"],
    needs: &[],
    gains: &[Need::Language],
};

const KNOWN: &[&str] = &[
    "extractor_type",
    "max_depth",
    "max_pages",
    "crawl_timeout",
    "crawl_mode",
    "crawl_goal",
    "render_strategy",
    "include_patterns",
    "exclude_patterns",
    "chunk_strategy",
    "chunk_size",
    "chunk_overlap",
    "document_id_strategy",
    "generate_text_embeddings",
    "generate_code_embeddings",
    "generate_image_embeddings",
    "generate_structure_embeddings",
    "response_shape",
    "llm_provider",
    "llm_model",
    "llm_api_key",
    "max_retries",
    "retry_base_delay",
    "retry_max_delay",
    "respect_retry_after",
    "proxies",
    "rotate_proxy_on_error",
    "rotate_proxy_every_n_requests",
    "captcha_service_provider",
    "captcha_service_api_key",
    "detect_captcha",
    "persist_cookies",
    "custom_headers",
    "youtube_mode",
    "youtube_max_videos",
    "youtube_backfill_months",
    "youtube_show_filter",
    "youtube_download_videos",
    "youtube_format_ladder",
    "youtube_cookies_path",
    "youtube_request_sleep",
    "delay_between_requests",
];

#[derive(Debug, Clone, PartialEq)]
pub struct ScraperParams {
    pub(crate) rules: Rules,
    split: Split,
    ids: DocumentIdStrategy,
    /// What a language model is to find in each document.
    pub(crate) shape: Option<Shape>,
    /// Another model of the configured endpoint.
    pub(crate) llm_model: Option<String>,
    pub(super) indexes: Vec<IndexInfo>,
}

pub(super) fn check(object: &Object, outputs: &Outputs) -> Result<ScraperParams, Violation> {
    let params: WebScraperExtractorParams = read(object, KNOWN)?;
    check_numbers(&params)?;
    refuse_absent(&params)?;
    let indexes = indexes(&params, outputs)?;
    let text = indexes
        .iter()
        .find(|index| index.source == Source::TextModel);
    let goal = match params.crawl_mode {
        CrawlMode::Deterministic => None,
        CrawlMode::Semantic => Some(goal(&params)?),
    };
    let seconds = Duration::from_secs_f64;
    let rules = Rules {
        depth: number(params.max_depth),
        pages: number(params.max_pages).max(1),
        time: Duration::from_secs(params.crawl_timeout.unsigned_abs()),
        goal,
        model: text
            .map_or(TEXT_OUTPUT, |index| index.output.as_str())
            .to_owned(),
        include: patterns("include_patterns", params.include_patterns)?,
        exclude: patterns("exclude_patterns", params.exclude_patterns)?,
        delay: seconds(params.delay_between_requests),
        retries: u32::try_from(params.max_retries).unwrap_or(0),
        retry_base: seconds(params.retry_base_delay),
        retry_longest: seconds(params.retry_max_delay),
        retry_after: params.respect_retry_after,
        cookies: params.persist_cookies,
        challenges: params.detect_captcha,
        headers: headers(params.custom_headers.unwrap_or_default())?,
        pictures: params.generate_image_embeddings,
    };
    Ok(ScraperParams {
        rules,
        split: Split {
            by: by(params.chunk_strategy),
            size: number(params.chunk_size).max(1),
            overlap: number(params.chunk_overlap),
        },
        ids: params.document_id_strategy,
        shape: Shape::read(params.response_shape.as_ref())?,
        llm_model: params.llm_model,
        indexes,
    })
}

fn number(value: i64) -> usize {
    usize::try_from(value).unwrap_or(0)
}

fn check_numbers(params: &WebScraperExtractorParams) -> Result<(), Violation> {
    within("max_depth", params.max_depth, 0, 10)?;
    within("max_pages", params.max_pages, 1, 500)?;
    within("crawl_timeout", params.crawl_timeout, 10, 3_600)?;
    within("chunk_size", params.chunk_size, 1, 10_000)?;
    within("chunk_overlap", params.chunk_overlap, 0, 5_000)?;
    within("max_retries", params.max_retries, 0, 10)?;
    within("retry_base_delay", params.retry_base_delay, 0.1, 30.0)?;
    within("retry_max_delay", params.retry_max_delay, 1.0, 300.0)?;
    within(
        "rotate_proxy_every_n_requests",
        params.rotate_proxy_every_n_requests,
        0,
        1_000,
    )?;
    within("youtube_max_videos", params.youtube_max_videos, 1, 5_000)?;
    within(
        "youtube_backfill_months",
        params.youtube_backfill_months,
        1,
        60,
    )?;
    within(
        "youtube_request_sleep",
        params.youtube_request_sleep,
        0.0,
        30.0,
    )?;
    within(
        "delay_between_requests",
        params.delay_between_requests,
        0.0,
        60.0,
    )?;
    if params.chunk_strategy != ChunkStrategy::None && params.chunk_overlap >= params.chunk_size {
        return Err(Violation::new(
            "chunk_overlap",
            "must be less than chunk_size",
        ));
    }
    Ok(())
}

/// What this server cannot do is refused where it is asked for by name.
fn refuse_absent(params: &WebScraperExtractorParams) -> Result<(), Violation> {
    if params.render_strategy == RenderStrategy::Javascript {
        return Err(Violation::new(
            "render_strategy",
            "no browser runs the scripts of pages here: they are read as they are sent (\"static\" or \"auto\")",
        ));
    }
    if params
        .proxies
        .as_ref()
        .is_some_and(|proxies| !proxies.is_empty())
    {
        return Err(Violation::new(
            "proxies",
            "pages are asked for directly, so that every address is checked: there are no proxies",
        ));
    }
    let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    if given(&params.captcha_service_provider) || given(&params.captcha_service_api_key) {
        return Err(Violation::new(
            "captcha_service_provider",
            "proofs of being human are not given: such pages are left out",
        ));
    }
    if params.youtube_mode == YoutubeMode::Force {
        return Err(Violation::new(
            "youtube_mode",
            "videos are not fetched by this server",
        ));
    }
    Ok(())
}

fn goal(params: &WebScraperExtractorParams) -> Result<String, Violation> {
    let goal = params
        .crawl_goal
        .as_deref()
        .map(str::trim)
        .unwrap_or_default();
    if goal.is_empty() || goal.chars().count() > 2_000 {
        let msg = "say in words what is looked for, in at most 2000 characters: crawl_mode is \"semantic\"";
        return Err(Violation::new("crawl_goal", msg));
    }
    Ok(goal.to_owned())
}

fn patterns(field: &str, given: Option<Vec<String>>) -> Result<Vec<String>, Violation> {
    let given = given.unwrap_or_default();
    if given.len() > MOST_PATTERNS {
        return Err(Violation::new(
            field,
            format!("at most {MOST_PATTERNS} patterns"),
        ));
    }
    for pattern in &given {
        let expression =
            pattern.starts_with('^') || pattern.ends_with('$') || pattern.contains('\\');
        if expression || pattern.is_empty() || pattern.len() > 1_000 {
            let msg = "a pattern is an address, or a path that begins with /, in which * stands for any text; it is no regular expression";
            return Err(Violation::new(field, msg));
        }
    }
    Ok(given)
}

fn headers(given: indexmap::IndexMap<String, String>) -> Result<HeaderMap, Violation> {
    let refuse = |msg: String| Violation::new("custom_headers", msg);
    if given.len() > MOST_HEADERS {
        return Err(refuse(format!("at most {MOST_HEADERS} headers")));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let parsed = (HeaderName::try_from(&name), HeaderValue::try_from(&value));
        let (Ok(name), Ok(mut value)) = parsed else {
            return Err(refuse(format!("{name} is no header, or its value none")));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn by(strategy: ChunkStrategy) -> TextSplitStrategy {
    match strategy {
        ChunkStrategy::None => TextSplitStrategy::None,
        ChunkStrategy::Sentences => TextSplitStrategy::Sentences,
        ChunkStrategy::Paragraphs => TextSplitStrategy::Paragraphs,
        ChunkStrategy::Words => TextSplitStrategy::Words,
        ChunkStrategy::Characters => TextSplitStrategy::Characters,
    }
}

/// The larger models of the interface where endpoints answer for them, the built-in ones elsewhere.
fn indexes(
    params: &WebScraperExtractorParams,
    outputs: &Outputs,
) -> Result<Vec<IndexInfo>, Violation> {
    let mut indexes = Vec::new();
    for (field, wanted, source, larger, own) in [
        (
            "generate_text_embeddings",
            params.generate_text_embeddings,
            Source::TextModel,
            E5_OUTPUT,
            TEXT_OUTPUT,
        ),
        (
            "generate_image_embeddings",
            params.generate_image_embeddings,
            Source::ImageModel,
            SIGLIP_OUTPUT,
            IMAGE_OUTPUT,
        ),
    ] {
        if !wanted {
            continue;
        }
        let output = match outputs.find(larger, source) {
            Some(_) => larger,
            None => own,
        };
        let found = index(&INFO, output, source, outputs);
        indexes.push(found.map_err(|msg| Violation::new(field, msg))?);
    }
    Ok(indexes)
}

/// The address that a small file holds.
pub(crate) fn address(bytes: &[u8]) -> super::Result<&str> {
    let text = std::str::from_utf8(bytes).ok().map(str::trim);
    text.filter(|text| text.len() <= 2_000)
        .ok_or_else(|| ExtractError::permanent("the file does not hold the address of a page"))
}

/// The parts of all pages. `source` tells the addresses of one object apart.
pub(crate) fn parts(
    params: &ScraperParams,
    source: &str,
    pages: Vec<Page>,
) -> super::Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut keys = HashSet::new();
    let mut left = LIMIT;
    for (number, page) in pages.into_iter().enumerate() {
        let chunks = split(&page.file.pages, params.split, left).map_err(|_| LIMIT.passed())?;
        left.chunks -= chunks.len();
        let bytes: usize = chunks.iter().map(|chunk| chunk.text.len()).sum();
        left.bytes = left.bytes.saturating_sub(bytes);
        // The same words twice are one document where the words are its name.
        let new = of_page(params, source, number, page, chunks).into_iter();
        parts.extend(new.filter(|part| keys.insert(part.key.clone())));
    }
    Ok(parts)
}

fn of_page(
    params: &ScraperParams,
    source: &str,
    number: usize,
    mut page: Page,
    chunks: Vec<Chunk>,
) -> Vec<Part> {
    let total = chunks.len();
    let detected = language(&page.file.pages);
    let picture = page.picture.take();
    let mut parts: Vec<Part> = chunks
        .into_iter()
        .enumerate()
        .map(|(position, chunk)| {
            let key = key(params.ids, number, &page, position, &chunk);
            let mut part = part(&page, chunk, (position, total));
            part.key = format!("{source}/{key}");
            let language = page.language.as_ref().or(detected.as_ref());
            if let Some(language) = language {
                part.metadata.insert("language".to_owned(), json!(language));
            }
            part
        })
        .collect();
    if let Some(first) = parts.first_mut() {
        first.pixels = picture;
        for (name, list) in [
            ("code_blocks", json!(page.code)),
            ("images", json!(page.images)),
            ("asset_links", json!(page.assets)),
        ] {
            first.fields.insert(name.to_owned(), list);
        }
    }
    parts
}

/// What a part is known by when the site is crawled again.
fn key(
    ids: DocumentIdStrategy,
    number: usize,
    page: &Page,
    position: usize,
    chunk: &Chunk,
) -> String {
    let hash = |text: &str| hex::encode(&Sha256::digest(text.as_bytes())[..16]);
    match ids {
        DocumentIdStrategy::Url => format!("{}/{position}", hash(page.url.as_str())),
        DocumentIdStrategy::Position => format!("{number}/{position}"),
        DocumentIdStrategy::Content => hash(&chunk.text),
    }
}

fn part(page: &Page, chunk: Chunk, (position, total): (usize, usize)) -> Part {
    let mut part = Part::default();
    let fields = &mut part.fields;
    fields.insert("content".to_owned(), json!(chunk.text));
    fields.insert("page_url".to_owned(), json!(page.url.as_str()));
    fields.insert("chunk_index".to_owned(), json!(position));
    fields.insert("total_chunks".to_owned(), json!(total));
    fields.insert("crawl_depth".to_owned(), json!(page.depth));
    if let Some(parent) = &page.parent {
        fields.insert("parent_url".to_owned(), json!(parent.as_str()));
    }
    let title = page.file.title.as_deref().map(str::trim);
    if let Some(title) = title.filter(|title| !title.is_empty()) {
        part.extras.insert("title".to_owned(), json!(title));
        part.keywords.push(title.to_owned());
    }
    if let Some(description) = &page.description {
        part.metadata
            .insert("description".to_owned(), json!(description));
    }
    part.metadata.extend(page.file.info.clone());
    part.keywords.push(chunk.text.clone());
    part.text = Some(chunk.text);
    part
}
