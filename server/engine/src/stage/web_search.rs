//! `external_web_search`: pages of the web beside the documents, from a search service that the operator configures.

use std::time::Duration;

use chrono::NaiveDate;
use loupe_wire::{Object, StageCategory, Value};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

use super::around::Metered;
use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, member};
use super::working::{Row, Working};
use super::{Definition, RunError};
use crate::embed::EmbedError;
use crate::embed::http::{RETRY_WAIT, Trouble, retry_after};

/// Bytes of the service's answer.
const MOST: usize = 10 << 20;

/// How the service is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebSearchProtocol {
    /// `POST {url}/search` with `query` and `numResults`, as Exa has it.
    Exa,
    /// `GET {url}/search?format=json&q=`, as SearXNG has it.
    Searxng,
}

/// The search service.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSearchConfig {
    pub protocol: WebSearchProtocol,
    /// The address up to, and without, `/search`.
    pub url: String,
    #[serde(default)]
    pub api_key: Option<SecretString>,
}

/// Asks the configured service.
pub struct WebSearch {
    config: WebSearchConfig,
    client: reqwest::Client,
}

impl WebSearch {
    pub fn new(config: WebSearchConfig, client: reqwest::Client) -> Self {
        Self { config, client }
    }

    /// The pages found, as the service tells them, of that day or later.
    async fn find(
        &self,
        query: &str,
        p: &Parameters,
        since: Option<NaiveDate>,
    ) -> Result<Found, Trouble> {
        let address = format!("{}/search", self.config.url.trim_end_matches('/'));
        let count = p.count("num_results").unwrap_or(10);
        let request = match self.config.protocol {
            WebSearchProtocol::Exa => {
                let mut body = json!({"query": query, "numResults": count, "useAutoprompt": p.flag("use_autoprompt")});
                for (ours, theirs) in [
                    ("start_published_date", "startPublishedDate"),
                    ("category", "category"),
                ] {
                    if let Some(text) = p.text(ours) {
                        body[theirs] = json!(text);
                    }
                }
                if p.flag("include_text") {
                    body["contents"] = json!({"text": true});
                }
                let request = self.client.post(&address).json(&body);
                match &self.config.api_key {
                    Some(key) => request.header("x-api-key", key.expose_secret()),
                    None => request,
                }
            }
            WebSearchProtocol::Searxng => {
                let mut url = url::Url::parse(&address).map_err(misconfigured)?;
                url.query_pairs_mut()
                    .append_pair("format", "json")
                    .append_pair("q", query);
                if let Some(category) = p.text("category") {
                    url.query_pairs_mut().append_pair("categories", &category);
                }
                let request = self.client.get(url);
                match &self.config.api_key {
                    Some(key) => request.bearer_auth(key.expose_secret()),
                    None => request,
                }
            }
        };
        let answer = ask_json(request.timeout(Duration::from_secs(20))).await?;
        let results = answer.get("results").and_then(Value::as_array).cloned();
        let results =
            results.ok_or_else(|| refused("the search service's answer has no results"))?;
        let mut found = Found {
            pages: results,
            undated: 0,
        };
        // The other protocol has the service do it.
        if let (WebSearchProtocol::Searxng, Some(since)) = (self.config.protocol, since) {
            found
                .pages
                .retain(|page| published(page).is_none_or(|day| day >= since));
            let shown = found.pages.iter().take(count);
            found.undated = shown.filter(|page| published(page).is_none()).count();
        }
        found.pages.truncate(count);
        Ok(found)
    }
}

/// What a service found.
struct Found {
    pages: Vec<Value>,
    /// Those of them that were to be of some day or later and tell none.
    undated: usize,
}

/// The day of a moment as ISO 8601 has it.
fn day(text: &str) -> Option<NaiveDate> {
    text.trim().get(..10)?.parse().ok()
}

/// The day that a page tells as its own.
fn published(page: &Value) -> Option<NaiveDate> {
    let told = page
        .get("publishedDate")
        .or_else(|| page.get("published_date"));
    day(told?.as_str()?)
}

/// Trouble that lasts until somebody sees to it.
pub(super) fn refused(reason: impl Into<String>) -> Trouble {
    Trouble::Lasting(EmbedError::Refused(reason.into()))
}

/// The address that the operator gave is none; it is not repeated, for it may hold the service's key.
pub(super) fn misconfigured(error: url::ParseError) -> Trouble {
    refused(format!(
        "the address of the search service is misconfigured: {error}"
    ))
}

/// Why a stage has no answer of a search service.
pub(super) fn unanswered(at: &Execution, trouble: Trouble) -> RunError {
    match trouble {
        Trouble::Passing(reason, _) => RunError::Away(format!("stage `{}`: {reason}", at.stage)),
        Trouble::Lasting(error) => error.into(),
    }
}

/// The JSON that a search service answers, within bounds; asked once more where the trouble may pass. Errors name no address:
/// it may hold the service's key.
pub(super) async fn ask_json(request: reqwest::RequestBuilder) -> Result<Value, Trouble> {
    let again = request.try_clone();
    match (ask_once(request).await, again) {
        (Err(Trouble::Passing(_, wait)), Some(again)) => {
            tokio::time::sleep(wait).await;
            ask_once(again).await
        }
        (told, _) => told,
    }
}

async fn ask_once(request: reqwest::RequestBuilder) -> Result<Value, Trouble> {
    let broken = |error: reqwest::Error| -> Trouble {
        let reason = error.without_url();
        let told = format!("the search service cannot be reached: {reason}");
        Trouble::Passing(told, RETRY_WAIT)
    };
    let mut answer = request.send().await.map_err(broken)?;
    let status = answer.status();
    if !status.is_success() {
        let told = format!("the search service answered {status}");
        return Err(match status.as_u16() {
            429 | 500..=599 => Trouble::Passing(told, retry_after(answer.headers())),
            400 | 413 | 414 | 422 => Trouble::Lasting(EmbedError::Invalid(told)),
            _ => refused(told),
        });
    }
    let mut bytes = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(broken)? {
        bytes.extend_from_slice(&part);
        if bytes.len() > MOST {
            let told = format!("the search service answered with more than {MOST} bytes");
            return Err(refused(told));
        }
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        refused(format!(
            "the search service's answer is not understood: {error}"
        ))
    })
}

pub(crate) static DEFINITION: Definition = Definition {
    id: "external_web_search",
    aliases: &[],
    category: StageCategory::Apply,
    icon: "globe",
    about: "Adds pages of the web, found by the search service that the server is configured with",
    members: &[
        member(
            "query",
            Kind::Text,
            r#""{{INPUT.query}}""#,
            "What is searched for",
        ),
        member("num_results", Kind::Integer(1, 100), "10", "Most pages"),
        member(
            "use_autoprompt",
            Kind::Boolean,
            "true",
            "Whether the service may say the query in its own way",
        ),
        member(
            "start_published_date",
            Kind::Text,
            "",
            "Only pages of this day or later, such as 2026-01-31; those that tell no day stay where the service does not choose by it",
        ),
        member(
            "category",
            Kind::Text,
            "",
            "Only pages of this kind, in the words of the service",
        ),
        member(
            "include_text",
            Kind::Boolean,
            "true",
            "Whether pages come with their text",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    // What nobody has read stays unread: the pages alone are the answer then.
    let mut rows = match set {
        Working::Unread { .. } => Vec::new(),
        read => at.rows(read).await?,
    };
    let Some(service) = at.run.web_search.clone() else {
        return Err(RunError::Embed(EmbedError::Unavailable(format!(
            "stage `{}`: no web search is configured; set `web_search` of the server",
            at.stage
        ))));
    };
    let query = p.word("query");
    if query.trim().is_empty() {
        return Err(RunError::Invalid(format!(
            "stage `{}`: the query is empty",
            at.stage
        )));
    }
    let since = since(at, p)?;
    at.spend(Metered::WebSearches, 1)?;
    let found = at.away(service.find(&query, p, since)).await;
    let Found { pages, undated } = found.map_err(|trouble| unanswered(at, trouble))?;
    if undated > 0 {
        at.warn(format!(
            "stage `{}`: {undated} pages tell no day of their own and may be older than `start_published_date`",
            at.stage
        ));
    }
    at.report
        .metadata
        .insert("pages".into(), json!(pages.len()));
    let has_text = p.flag("include_text");
    let pages = pages.iter().enumerate();
    rows.extend(pages.map(|(rank, page)| row(rank, page, has_text)));
    Ok(Working::Rows(rows))
}

/// The first day that pages may be of.
fn since(at: &Execution, p: &Parameters) -> Result<Option<NaiveDate>, RunError> {
    let Some(written) = p
        .text("start_published_date")
        .filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    day(&written).map(Some).ok_or_else(|| {
        RunError::Invalid(format!(
            "stage `{}`: `start_published_date` is a day such as 2026-01-31, not `{written}`",
            at.stage
        ))
    })
}

/// A page as a row: named by its address, so that later stages can tell pages apart.
fn row(rank: usize, page: &Value, has_text: bool) -> Row {
    let text = |names: &[&str]| {
        let found = names
            .iter()
            .find_map(|name| page.get(*name).filter(|v| !v.is_null()));
        found.cloned().unwrap_or(Value::Null)
    };
    let mut row = Object::new();
    let url = text(&["url"]);
    row.insert(
        "document_id".into(),
        json!(format!("web:{}", url.as_str().unwrap_or_default())),
    );
    row.insert("collection_id".into(), json!("web"));
    let given = text(&["score"]);
    let score = given.as_f64().unwrap_or(1.0 / (rank as f64 + 1.0));
    row.insert("score".into(), json!(score));
    row.insert("url".into(), url);
    row.insert("title".into(), text(&["title"]));
    let content = match has_text {
        true => text(&["text", "content", "snippet"]),
        false => Value::Null,
    };
    row.insert("content".into(), content);
    row.insert(
        "published_date".into(),
        text(&["publishedDate", "published_date"]),
    );
    row.insert("source".into(), json!("web"));
    Row { value: row.into() }
}
