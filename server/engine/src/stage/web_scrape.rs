//! `web_scrape`: the text of the page that each document names, and of pages that it leads to where asked. Pages are read
//! through the guarded client and decoded, like every file of strangers, in a process of their own.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use loupe_wire::{StageCategory, Value};
use serde_json::json;
use url::Url;

use super::api_call::{MAX_CALLS, NoAnswer, ON_ERROR, settle};
use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, Member, member};
use super::working::{Row, Working};
use super::{Definition, RunError};
use crate::crawl::address::{bare, is_taken, join};
use crate::extract::{Claim, Decoded, ErrorKind, Extraction, Want};
use crate::template::render_text;
use crate::web::{Answer, Ask, Web};

/// Bytes of a page.
const MOST: u64 = 10 << 20;
/// Pages that one stage reads, of all documents together.
const MOST_PAGES: usize = 200;
/// Characters of a page that are kept.
const MOST_CHARACTERS: usize = 200_000;
/// Links of one page that are looked at.
const MOST_LINKS: usize = 500;

const PATTERNS: &[Member] = &[
    member(
        "include",
        Kind::Texts,
        "[]",
        "Addresses that may be read, `*` for any text; every one where not given",
    ),
    member(
        "exclude",
        Kind::Texts,
        "[]",
        "Addresses that are not read, `*` for any text",
    ),
];

pub(crate) static DEFINITION: Definition = Definition {
    id: "web_scrape",
    aliases: &[],
    category: StageCategory::Enrich,
    icon: "scan-text",
    about: "Reads the page that each document names, and pages that it leads to, and keeps their text",
    members: &[
        member(
            "url",
            Kind::Template,
            "",
            "The address, with the document in it; what `url_field` holds where not given",
        ),
        member(
            "url_field",
            Kind::Text,
            r#""metadata.url""#,
            "Dot path of the address",
        ),
        member(
            "output_field",
            Kind::Text,
            r#""web_content""#,
            "Where the page goes: url, title, content, and further pages as `pages`",
        ),
        member(
            "strategy",
            Kind::Choice(&["auto", "static"]),
            r#""auto""#,
            "Pages are read as they are sent; scripts are not run",
        ),
        member(
            "timeout",
            Kind::Integer(1, 60),
            "10",
            "Seconds that one page may take",
        ),
        member(
            "include_html",
            Kind::Boolean,
            "false",
            "Whether the page comes as it was sent, too",
        ),
        member(
            "min_content_length",
            Kind::Integer(100, i64::MAX),
            "500",
            "Characters below which a page is marked as `thin`",
        ),
        member(
            "batch_size",
            Kind::Integer(1, 20),
            "5",
            "Documents whose pages are read at once",
        ),
        member(
            "max_depth",
            Kind::Integer(0, 5),
            "0",
            "Links that are followed one after the other",
        ),
        member(
            "max_pages",
            Kind::Integer(1, 100),
            "10",
            "Most pages of one document, where links are followed",
        ),
        member(
            "same_domain_only",
            Kind::Boolean,
            "true",
            "Whether only links to the first page's own domain are followed",
        ),
        member(
            "url_patterns",
            Kind::Object(PATTERNS),
            "{}",
            "Which addresses are read at all, the first page's too",
        ),
        member(
            "delay_between_requests",
            Kind::Number(0.0, 5.0),
            "0.5",
            "Seconds between two pages of one document",
        ),
        ON_ERROR,
    ],
};

/// What is asked of every page.
struct Reader {
    web: Arc<dyn Web>,
    extraction: Extraction,
    timeout: Duration,
    delay: Duration,
    html: bool,
    least: usize,
    depth: usize,
    pages: usize,
    own_domain: bool,
    include: Vec<String>,
    exclude: Vec<String>,
}

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let mut rows = at.rows(set).await?;
    let rest = rows.split_off(rows.len().min(MAX_CALLS));
    if !rest.is_empty() {
        at.warn(format!(
            "stage `{}`: only the pages of the first {MAX_CALLS} documents were read",
            at.stage
        ));
        at.capped("documents", rows.len() + rest.len(), MAX_CALLS);
    }
    let reader = Arc::new(reader(at, p, rows.len())?);
    let urls: Vec<Result<String, String>> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| address(at, p, row, index))
        .collect();
    let work = urls.into_iter().map(|url| {
        let reader = reader.clone();
        async move { reader.crawl(&url.map_err(NoAnswer::lasting)?).await }
    });
    let at_once = at.batch.unwrap_or(p.count("batch_size").unwrap_or(5));
    let all = futures::stream::iter(work)
        .buffered(at_once)
        .collect::<Vec<_>>();
    let answers = at.away(all).await;
    let mut out = settle(at, p, rows, answers)?;
    out.extend(rest);
    Ok(Working::Rows(out))
}

fn reader(at: &mut Execution, p: &Parameters, documents: usize) -> Result<Reader, RunError> {
    let (Some(web), Some(extraction)) = (at.run.web.clone(), at.run.outside.extraction.clone())
    else {
        return Err(RunError::Invalid(format!(
            "stage `{}`: pages of the web are not read here",
            at.stage
        )));
    };
    let depth = p.count("max_depth").unwrap_or(0);
    let wanted = if depth == 0 {
        1
    } else {
        p.count("max_pages").unwrap_or(10)
    };
    let pages = wanted.min((MOST_PAGES / documents.max(1)).max(1));
    if pages < wanted {
        at.warn(format!(
            "stage `{}`: {pages} pages of each document were read: {MOST_PAGES} are the most of one stage",
            at.stage
        ));
    }
    let patterns = p.object("url_patterns");
    Ok(Reader {
        web,
        extraction,
        timeout: Duration::from_secs(p.count("timeout").unwrap_or(10) as u64),
        delay: Duration::from_secs_f64(p.number("delay_between_requests").unwrap_or(0.5)),
        html: p.flag("include_html"),
        least: p.count("min_content_length").unwrap_or(500),
        depth,
        pages,
        own_domain: p.flag("same_domain_only"),
        include: patterns.texts("include"),
        exclude: patterns.texts("exclude"),
    })
}

fn address(at: &Execution, p: &Parameters, row: &Row, index: usize) -> Result<String, String> {
    let text = match p.text("url") {
        Some(template) => render_text(&template, &at.context_of(row, index)).map_err(|e| e.0)?,
        None => {
            let field = p.word("url_field");
            let found = row.at(&field).and_then(Value::as_str);
            found
                .ok_or_else(|| format!("it has no address at `{field}`"))?
                .to_owned()
        }
    };
    Ok(text.trim().to_owned())
}

impl Reader {
    /// The page, and under `pages` those that it leads to. Only the first one has to be readable.
    async fn crawl(&self, first: &str) -> Result<Value, NoAnswer> {
        let first = Url::parse(first)
            .map_err(|_| NoAnswer::lasting(format!("`{first}` is not an address")))?;
        let (mut page, links) = self.page(first.clone()).await?;
        // It may have led elsewhere, as from `example.com` to `www.example.com`: that is its domain then.
        let own = address_of(&page);
        let host = own.as_ref().and_then(Url::host_str).map(str::to_owned);
        let mut seen: HashSet<_> = std::iter::once(first).chain(own).map(bare).collect();
        let mut open: VecDeque<(usize, Url)> = VecDeque::new();
        let mut add = |links: Vec<Url>, depth: usize, open: &mut VecDeque<(usize, Url)>| {
            if depth > self.depth {
                return;
            }
            for link in links {
                let near = !self.own_domain || link.host_str() == host.as_deref();
                if near && self.takes(&link) && seen.insert(bare(link.clone())) {
                    open.push_back((depth, link));
                }
            }
        };
        add(links, 1, &mut open);
        let mut more = Vec::new();
        // What is asked for counts, not what answers well: a page may name a thousand that do not.
        for _ in 1..self.pages {
            let Some((depth, link)) = open.pop_front() else {
                break;
            };
            tokio::time::sleep(self.delay).await;
            let Ok((page, links)) = self.page(link).await else {
                continue;
            };
            let is_near = address_of(&page).is_some_and(|at| at.host_str() == host.as_deref());
            if is_near || !self.own_domain {
                more.push(page);
                add(links, depth + 1, &mut open);
            }
        }
        if self.depth > 0 {
            page["pages"] = Value::Array(more);
        }
        Ok(page)
    }

    fn takes(&self, url: &Url) -> bool {
        is_taken(&self.include, &self.exclude, url)
    }

    async fn page(&self, url: Url) -> Result<(Value, Vec<Url>), NoAnswer> {
        if !self.takes(&url) {
            let reason = format!("`url_patterns` leave out `{url}`");
            return Err(NoAnswer::lasting(reason));
        }
        let ask = Ask {
            timeout: self.timeout,
            max_bytes: MOST,
            ..Ask::get(url)
        };
        let answer = self.web.ask(ask).await?;
        if !answer.status.is_success() {
            return Err(NoAnswer::of_status(&answer));
        }
        if !self.takes(&answer.url) {
            let reason = format!("it leads to `{}`, which is left out", answer.url);
            return Err(NoAnswer::lasting(reason));
        }
        let sent = self
            .html
            .then(|| String::from_utf8_lossy(&answer.body).into_owned());
        let (mut told, links) = self.read(answer).await?;
        if let Some(sent) = sent {
            told["html"] = json!(start(&sent));
        }
        Ok((told, links))
    }

    /// What the page says, and where it leads.
    async fn read(&self, answer: Answer) -> Result<(Value, Vec<Url>), NoAnswer> {
        let mime = answer.headers.get("content-type");
        let claim = Claim {
            mime: mime
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
            ..Claim::default()
        };
        let decoded = self.extraction.decode(Want::Page, claim, answer.body).await;
        let decoded = decoded.map_err(|error| match error.kind {
            ErrorKind::Transient | ErrorKind::Away => NoAnswer::from(error.to_string()),
            ErrorKind::Permanent | ErrorKind::Resource => NoAnswer::lasting(error.to_string()),
        });
        let (file, links) = match decoded? {
            Decoded::Page(page) => {
                let base = page
                    .base
                    .as_deref()
                    .and_then(|base| join(&answer.url, base));
                let base = base.unwrap_or_else(|| answer.url.clone());
                let links = page.links.iter().take(MOST_LINKS);
                let links: Vec<Url> = links.filter_map(|link| join(&base, &link.href)).collect();
                let file = page.text;
                let file = file.ok_or_else(|| NoAnswer::lasting("the page holds no text"))?;
                (file, links)
            }
            Decoded::Text(file) => (file, Vec::new()),
            Decoded::Picture(_) => {
                return Err(NoAnswer::lasting("the address leads to a picture"));
            }
        };
        let content = file.pages.join("\n\n");
        let kept = start(&content);
        let mut told = json!({"url": answer.url.as_str(), "title": file.title, "content": kept});
        if kept.len() < content.len() {
            told["truncated"] = json!(true);
        }
        if content.chars().count() < self.least {
            told["thin"] = json!(true);
        }
        Ok((told, links))
    }
}

/// Where a page was read.
fn address_of(page: &Value) -> Option<Url> {
    Url::parse(page["url"].as_str()?).ok()
}

/// The first characters of a text.
fn start(text: &str) -> &str {
    let end = text.char_indices().nth(MOST_CHARACTERS);
    end.map_or(text, |(end, _)| &text[..end])
}
