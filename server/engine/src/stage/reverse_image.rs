//! `external_reverse_image`: pages that show a picture or one like it, from a search service that the operator configures.

use std::time::Duration;

use loupe_wire::{Object, StageCategory, Value};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::around::Metered;
use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, member};
use super::web_search::{ask_json, misconfigured, refused, unanswered};
use super::working::{Row, Working};
use super::{Definition, RunError};
use crate::embed::EmbedError;
use crate::embed::http::Trouble;

/// The service, which speaks as SerpApi does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReverseImageConfig {
    /// The address up to, and without, `/search.json`.
    #[serde(default = "serpapi")]
    pub url: String,
    pub api_key: SecretString,
}

fn serpapi() -> String {
    "https://serpapi.com".to_owned()
}

/// Asks the configured service.
pub struct ReverseImage {
    config: ReverseImageConfig,
    client: reqwest::Client,
}

impl ReverseImage {
    pub fn new(config: ReverseImageConfig, client: reqwest::Client) -> Self {
        Self { config, client }
    }

    async fn find(&self, picture: &Url, p: &Parameters) -> Result<Vec<Value>, Trouble> {
        let address = format!("{}/search.json", self.config.url.trim_end_matches('/'));
        let mut url = Url::parse(&address).map_err(misconfigured)?;
        url.query_pairs_mut()
            .append_pair("engine", &p.word("engine"))
            .append_pair("url", picture.as_str())
            .append_pair("api_key", self.config.api_key.expose_secret());
        let request = self.client.get(url).timeout(Duration::from_secs(30));
        let answer = ask_json(request).await?;
        if let Some(error) = answer.get("error").and_then(Value::as_str) {
            return Err(refused(format!("the search service refused: {error}")));
        }
        let found = answer.get("visual_matches").and_then(Value::as_array);
        let mut found = found
            .cloned()
            .ok_or_else(|| refused("the search service's answer has no visual matches"))?;
        found.truncate(p.count("top_k").unwrap_or(20));
        Ok(found)
    }
}

pub(crate) static DEFINITION: Definition = Definition {
    id: "external_reverse_image",
    aliases: &[],
    category: StageCategory::Apply,
    icon: "image-search",
    about: "Adds pages that show a picture or one like it, found by the service that the server is configured with",
    members: &[
        member(
            "image_url",
            Kind::Text,
            r#""{{INPUT.image_url}}""#,
            "Address of the picture, which the service must be able to read",
        ),
        member(
            "provider",
            Kind::Choice(&["serpapi"]),
            r#""serpapi""#,
            "The service's way to be asked",
        ),
        member(
            "engine",
            Kind::Choice(&["google_lens"]),
            r#""google_lens""#,
            "What the service searches with",
        ),
        member("top_k", Kind::Integer(1, 100), "20", "Most pages"),
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
    let Some(service) = at.run.outside.reverse_image.clone() else {
        return Err(RunError::Embed(EmbedError::Unavailable(format!(
            "stage `{}`: no search by picture is configured; set `reverse_image` of the server",
            at.stage
        ))));
    };
    let written = p.word("image_url");
    let picture = Url::parse(written.trim())
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"));
    let picture = picture.ok_or_else(|| {
        RunError::Invalid(format!(
            "stage `{}`: `{written}` is no address of a picture",
            at.stage
        ))
    })?;
    at.spend(Metered::WebSearches, 1)?;
    let found = at.away(service.find(&picture, p)).await;
    let found = found.map_err(|trouble| unanswered(at, trouble))?;
    at.report
        .metadata
        .insert("pages".into(), json!(found.len()));
    let pages = found.iter().enumerate();
    rows.extend(pages.map(|(rank, page)| row(rank, page)));
    Ok(Working::Rows(rows))
}

/// A page as a row, named by its address.
fn row(rank: usize, page: &Value) -> Row {
    let of = |name: &str| page.get(name).cloned().unwrap_or(Value::Null);
    let link = of("link");
    let mut row = Object::new();
    let id = format!("web:{}", link.as_str().unwrap_or_default());
    row.insert("document_id".into(), json!(id));
    row.insert("collection_id".into(), json!("web"));
    row.insert("score".into(), json!(1.0 / (rank as f64 + 1.0)));
    row.insert("url".into(), link);
    for name in ["title", "thumbnail", "image", "price"] {
        row.insert(name.into(), of(name));
    }
    row.insert("site".into(), of("source"));
    row.insert("source".into(), json!("reverse_image"));
    Row { value: row.into() }
}
