//! Pages of a site, found by following links from one address, within bounds that no site can move.

pub mod address;
mod cookies;
mod frontier;
pub mod robots;
mod visitor;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{self, HeaderMap};
use sha2::{Digest, Sha256};
use url::Url;

use crate::{
    embed::{Encoders, Pixels},
    extract::{
        Claim, Decoded, ErrorKind, ExtractError, Extraction, Result, TextFile, Want,
        decode::page::{Code, Image, Link, WebPage},
    },
    web::{Answer, Web},
};
use frontier::{Frontier, Next};
use visitor::Visitor;

/// Text of all pages of one crawl.
const MOST_TEXT: usize = 64 << 20;
/// Pictures of one crawl that are looked at, and that are kept for other pages that show them: 768 KiB each at most.
const MOST_PICTURES: usize = 100;
/// Things of each kind that are told of one page.
const MOST_TOLD: usize = 50;
/// A page that asks for a proof has little else to say.
const CHALLENGE_TEXT: usize = 2_000;

/// What a crawl is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    pub depth: usize,
    pub pages: usize,
    pub time: Duration,
    /// What the caller looks for: links that sound like it come first.
    pub goal: Option<String>,
    /// The model that tells how near a link is to the goal.
    pub model: String,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// Between two requests.
    pub delay: Duration,
    pub retries: u32,
    pub retry_base: Duration,
    pub retry_longest: Duration,
    /// Whether a site that says when to come again is listened to.
    pub retry_after: bool,
    pub cookies: bool,
    /// Whether pages that only ask for a proof of being human are left out.
    pub challenges: bool,
    /// For the first page's own site.
    pub headers: HeaderMap,
    /// Whether the picture of each page is looked at.
    pub pictures: bool,
}

/// A page that was read.
#[derive(Debug, Clone)]
pub struct Page {
    pub url: Url,
    pub depth: usize,
    pub parent: Option<Url>,
    pub file: TextFile,
    pub language: Option<String>,
    pub description: Option<String>,
    pub code: Vec<Code>,
    pub images: Vec<Image>,
    pub assets: Vec<String>,
    pub picture: Option<Arc<Pixels>>,
}

/// What a crawl gave.
#[derive(Debug)]
pub struct Crawled {
    pub pages: Vec<Page>,
    /// Whether there may be pages that were not read this time: a site was busy, or time or requests ran out. What was
    /// read of them before still stands.
    pub cut_short: bool,
    /// Addresses of the site that were found and not read: there were as many pages as are asked for, or the crawl was cut
    /// short.
    pub left: usize,
}

/// What pages are crawled with.
#[derive(Clone, Copy)]
pub struct Crawler<'a> {
    pub web: &'a dyn Web,
    pub extraction: &'a Extraction,
    pub encoders: &'a dyn Encoders,
}

impl Crawler<'_> {
    /// The pages that an address leads to, itself first.
    ///
    /// # Errors
    /// The first page cannot be read. Others that cannot are left out.
    pub async fn run(&self, rules: &Rules, first: &str) -> Result<Crawled> {
        let first = Url::parse(first.trim())
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| ExtractError::permanent(format!("`{first}` is no address of a page")))?;
        let mut crawl = Crawl {
            with: *self,
            rules,
            visitor: Visitor::new(self.web, rules),
            frontier: Frontier::new(rules),
            home: first.clone(),
            texts: HashSet::new(),
            pictures: HashMap::new(),
            pages: Vec::new(),
            bytes: 0,
            missed: false,
        };
        crawl.frontier.begin(&first);
        crawl.first(first).await?;
        crawl.rest().await;
        if crawl.pages.is_empty() {
            let message =
                "the pages hold no text: a site that is made by scripts cannot be read here";
            return Err(ExtractError::permanent(message));
        }
        Ok(Crawled {
            cut_short: crawl.missed,
            left: crawl.frontier.left(),
            pages: crawl.pages,
        })
    }
}

/// One crawl under way.
struct Crawl<'a> {
    with: Crawler<'a>,
    rules: &'a Rules,
    visitor: Visitor<'a>,
    frontier: Frontier<'a>,
    /// A page of the site that is crawled.
    home: Url,
    /// Hashes of the texts that were read: twins are left out.
    texts: HashSet<[u8; 32]>,
    pictures: HashMap<String, Option<Arc<Pixels>>>,
    pages: Vec<Page>,
    bytes: usize,
    /// A page could not be read that may be there.
    missed: bool,
}

/// What came of one address.
struct Read {
    url: Url,
    file: Option<TextFile>,
    page: WebPage,
}

impl Crawl<'_> {
    /// The first page may lead to another site, which is crawled then.
    async fn first(&mut self, url: Url) -> Result<()> {
        let answer = self.visitor.read(&url, &|_| true).await?;
        self.home = answer.url.clone();
        let read = self.understand(answer).await?;
        self.take(read, Next::first(address::tidy(url))).await;
        Ok(())
    }

    async fn rest(&mut self) {
        while self.pages.len() < self.rules.pages && self.bytes < MOST_TEXT {
            let Some(next) = self.frontier.pop() else {
                return;
            };
            if !self.visitor.goes_on() {
                self.missed = true;
                return;
            }
            let (home, rules) = (self.home.clone(), self.rules);
            let may = move |target: &Url| {
                address::is_same_site(&home, target)
                    && address::is_taken(&rules.include, &rules.exclude, target)
            };
            let read = match self.visitor.read(&next.url, &may).await {
                Ok(answer) => self.understand(answer).await,
                Err(error) => Err(error),
            };
            match read {
                Ok(read) => self.take(read, next).await,
                Err(error) => {
                    self.missed |= error.kind == ErrorKind::Transient || self.visitor.is_over;
                    tracing::debug!(%error, url = %next.url, "a page is left out");
                }
            }
        }
    }

    /// What an answer holds, decoded where it can do no harm.
    async fn understand(&self, answer: Answer) -> Result<Read> {
        let mime = answer.headers.get(header::CONTENT_TYPE);
        let name = answer
            .url
            .path_segments()
            .and_then(|mut all| all.next_back());
        let claim = Claim {
            mime: mime.and_then(|mime| mime.to_str().ok()).map(str::to_owned),
            filename: name.filter(|name| name.contains('.')).map(str::to_owned),
            ..Claim::default()
        };
        let challenged = answer.headers.contains_key("cf-mitigated");
        let extraction = self.with.extraction;
        let url = answer.url;
        let decoded = extraction.decode(Want::Page, claim, answer.body).await;
        let place = url.to_string();
        let (file, page) = match decoded.map_err(|error| error.at(&place))? {
            Decoded::Page(mut page) => (page.text.take(), *page),
            Decoded::Text(file) => (Some(file), WebPage::default()),
            Decoded::Picture(_) => {
                let message = format!("{url} is a picture, not a page");
                return Err(ExtractError::permanent(message));
            }
        };
        let short =
            |file: &TextFile| file.pages.iter().map(String::len).sum::<usize>() < CHALLENGE_TEXT;
        let asks = challenged || (page.challenge && file.as_ref().is_none_or(short));
        if self.rules.challenges && asks {
            let message = format!("{url} asks for a proof of being human, which is not given");
            return Err(ExtractError::permanent(message));
        }
        Ok(Read { url, file, page })
    }

    /// Keeps a page that is new, and notes where it leads.
    async fn take(&mut self, read: Read, from: Next) {
        let Read { url, file, page } = read;
        let base = page
            .base
            .as_deref()
            .and_then(|base| address::join(&url, base));
        let base = base.unwrap_or_else(|| url.clone());
        let own = address::tidy(url.clone());
        let said = page
            .canonical
            .as_deref()
            .and_then(|said| address::join(&base, said));
        let said = said
            .filter(|said| address::is_same_site(&self.home, said))
            .map(address::tidy);
        let name = said.unwrap_or_else(|| own.clone());
        // The page itself has been seen by its address; by another name it may have been read before.
        let twin = name != from.url && !self.frontier.meet(&name);
        self.frontier.meet(&own);
        if page.followed {
            self.follow(&base, &own, &page.links, from.depth + 1).await;
        }
        let Some(file) = file.filter(|_| page.indexed && !twin) else {
            return;
        };
        let text = file.pages.join("\n\n");
        if !self.texts.insert(Sha256::digest(text.as_bytes()).into()) {
            return;
        }
        self.bytes += text.len();
        let picture = self.picture(&base, &page).await;
        let page = told(page, &base);
        self.pages.push(Page {
            url: name,
            depth: from.depth,
            parent: from.parent,
            file,
            picture,
            ..page
        });
    }

    async fn follow(&mut self, base: &Url, parent: &Url, links: &[Link], depth: usize) {
        if depth > self.rules.depth {
            return;
        }
        let found = links.iter().filter_map(|link| {
            let url = address::tidy(address::join(base, &link.href)?);
            let followed = address::is_same_site(&self.home, &url)
                && !address::is_trap(&url)
                && !address::is_file(&url)
                && address::is_taken(&self.rules.include, &self.rules.exclude, &url);
            followed.then(|| (url, link.text.clone()))
        });
        let found: Vec<(Url, String)> = found.collect();
        self.frontier
            .add(self.with.encoders, parent, found, depth)
            .await;
    }

    /// The picture that a page shows of itself, else the first on it.
    async fn picture(&mut self, base: &Url, page: &WebPage) -> Option<Arc<Pixels>> {
        if !self.rules.pictures {
            return None;
        }
        let shown = page.images.first().map(|image| image.src.as_str());
        let url = address::join(base, page.picture.as_deref().or(shown)?)?;
        if let Some(known) = self.pictures.get(url.as_str()) {
            return known.clone();
        }
        if self.pictures.len() >= MOST_PICTURES {
            return None;
        }
        let found = match self.visitor.read(&url, &|_| true).await {
            Ok(answer) => {
                let want = Want::Picture {
                    thumbnail: false,
                    large: false,
                };
                let decoded = self
                    .with
                    .extraction
                    .decode(want, Claim::default(), answer.body);
                match decoded.await {
                    Ok(Decoded::Picture(picture)) => Some(Arc::new(picture.pixels)),
                    _ => None,
                }
            }
            Err(_) => None,
        };
        self.pictures.insert(url.into(), found.clone());
        found
    }
}

/// What a page tells besides its text; the members of the crawl are filled in by it.
fn told(page: WebPage, base: &Url) -> Page {
    let full = |link: &str| address::join(base, link).map(String::from);
    let mut assets: Vec<String> = Vec::new();
    for link in &page.links {
        let Some(url) = address::join(base, &link.href).filter(address::is_asset) else {
            continue;
        };
        let url = address::bare(url);
        if assets.len() < MOST_TOLD && !assets.contains(&url) {
            assets.push(url);
        }
    }
    let images = page.images.into_iter().filter_map(|image| {
        let src = full(&image.src)?;
        Some(Image { src, ..image })
    });
    Page {
        url: base.clone(),
        depth: 0,
        parent: None,
        file: TextFile::plain(String::new()),
        language: page.language,
        description: page.description,
        code: page.code,
        images: images.take(MOST_TOLD).collect(),
        assets,
        picture: None,
    }
}

#[cfg(test)]
mod tests;
