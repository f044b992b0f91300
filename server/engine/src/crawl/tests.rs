//! Crawls of sites that are made up here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::StatusCode;

use super::*;
use crate::embed::{EmbedError, ImageEncoder, Result as Embedded, TextEncoder};
use crate::web::{Ask, WebError};

/// A status, headers and a body.
type Given = (u16, Vec<(&'static str, String)>, String);

/// Answers by address. The first of several is given once, the last for good.
#[derive(Default)]
struct Site {
    pages: Mutex<HashMap<String, Vec<Given>>>,
    asked: Mutex<Vec<String>>,
    cookies: Mutex<Vec<Option<String>>>,
}

impl Site {
    fn page(self, path: &str, body: &str) -> Self {
        self.answer(path, 200, &[("content-type", "text/html")], body)
    }

    fn answer(self, path: &str, status: u16, headers: &[(&'static str, &str)], body: &str) -> Self {
        let headers = headers
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        let url = Url::parse("https://a.example/")
            .unwrap()
            .join(path)
            .unwrap();
        let mut pages = self.pages.lock().unwrap();
        pages
            .entry(url.into())
            .or_default()
            .push((status, headers, body.to_owned()));
        drop(pages);
        self
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Web for Site {
    async fn ask(&self, ask: Ask) -> std::result::Result<Answer, WebError> {
        self.asked.lock().unwrap().push(ask.url.clone());
        let cookie = ask
            .headers
            .get("cookie")
            .map(|value| value.to_str().unwrap().to_owned());
        self.cookies.lock().unwrap().push(cookie);
        let url = Url::parse(&ask.url).unwrap();
        if url.path().starts_with("/endless/") {
            let number: u64 = url.path()[9..].parse().unwrap_or(0);
            let body = format!(
                "<p>The {number} day of endless days.</p><a href='/endless/{}'>next</a><a href='/endless/{}'>then</a>",
                number + 1,
                number + 1_000
            );
            return Ok(answer(url, 200, &[], body));
        }
        let mut pages = self.pages.lock().unwrap();
        let Some(found) = pages.get_mut(url.as_str()) else {
            return Ok(answer(url, 404, &[], String::new()));
        };
        let (status, headers, body) = match found.len() {
            1 => found[0].clone(),
            _ => found.remove(0),
        };
        if status == 0 {
            return Err(WebError::Refused(body));
        }
        Ok(answer(url, status, &headers, body))
    }
}

fn answer(url: Url, status: u16, sent: &[(&'static str, String)], body: String) -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "text/html".parse().unwrap());
    for (name, value) in sent {
        headers.insert(*name, value.parse().unwrap());
    }
    Answer {
        status: StatusCode::from_u16(status).unwrap(),
        url,
        headers,
        body: Bytes::from(body),
    }
}

/// A model that finds two texts near that both speak of boats.
#[derive(Clone)]
struct Boats;

#[async_trait]
impl TextEncoder for Boats {
    fn output(&self) -> &str {
        "boats"
    }

    fn dims(&self) -> usize {
        2
    }

    async fn embed(&self, texts: Vec<String>) -> Embedded<Vec<Vec<f32>>> {
        let vector = |text: &String| match text.to_lowercase().contains("boat") {
            true => vec![1.0, 0.0],
            false => vec![0.0, 1.0],
        };
        Ok(texts.iter().map(vector).collect())
    }
}

#[async_trait]
impl Encoders for Boats {
    async fn text(&self, _: &str) -> Embedded<Arc<dyn TextEncoder>> {
        Ok(Arc::new(self.clone()))
    }

    async fn image(&self, _: &str) -> Embedded<Arc<dyn ImageEncoder>> {
        Err(EmbedError::Unavailable("no pictures".into()))
    }
}

fn rules() -> Rules {
    Rules {
        depth: 5,
        pages: 50,
        time: Duration::from_secs(20),
        goal: None,
        model: "boats".into(),
        include: Vec::new(),
        exclude: Vec::new(),
        delay: Duration::ZERO,
        retries: 0,
        retry_base: Duration::from_millis(1),
        retry_longest: Duration::from_millis(5),
        retry_after: true,
        cookies: true,
        challenges: true,
        headers: HeaderMap::new(),
        pictures: false,
    }
}

async fn crawl(site: &Site, rules: &Rules) -> Result<Vec<Page>> {
    Ok(crawled(site, rules).await?.pages)
}

async fn crawled(site: &Site, rules: &Rules) -> Result<Crawled> {
    let extraction = Extraction::in_process();
    let crawler = Crawler {
        web: site,
        extraction: &extraction,
        encoders: &Boats,
    };
    crawler.run(rules, "https://a.example/").await
}

#[tokio::test]
async fn a_crawl_says_whether_pages_may_have_been_missed() {
    let site = |links: &[&str]| {
        Site::default()
            .page("/", &paragraph("home", links))
            .page("/a", &paragraph("apples", &[]))
            .answer("/busy", 503, &[], "")
            .answer("/later", 429, &[("retry-after", "3600")], "")
    };
    let patient = Rules {
        retries: 3,
        retry_longest: Duration::from_secs(3_600),
        ..rules()
    };
    for (links, rules, missed) in [
        (vec!["/a", "/gone"], rules(), false),
        (vec!["/busy", "/a"], rules(), true),
        (vec!["/later", "/a"], patient, true),
        // What it was told not to read it does not miss.
        (
            vec!["/a", "/busy"],
            Rules {
                pages: 2,
                ..rules()
            },
            false,
        ),
    ] {
        let found = crawled(&site(&links), &rules).await.unwrap();
        assert_eq!((found.cut_short, found.pages.len()), (missed, 2));
        assert_eq!(found.left, usize::from(rules.pages == 2), "{links:?}");
    }
}

fn paths(pages: &[Page]) -> Vec<String> {
    pages
        .iter()
        .map(|page| page.url.path().to_owned())
        .collect()
}

fn paragraph(words: &str, links: &[&str]) -> String {
    let links: String = links
        .iter()
        .map(|link| format!("<a href='{link}'>to {link}</a> "))
        .collect();
    format!(
        "<!doctype html><title>{words}</title><body><p>This page tells of {words} and no other thing.</p>{links}"
    )
}

#[tokio::test]
async fn a_site_is_read_breadth_first_and_every_page_once() {
    let site = Site::default()
        .page(
            "/",
            &paragraph(
                "the harbour",
                &[
                    "/b",
                    "/a?utm_source=x",
                    "https://z.example/",
                    "/photo.jpg",
                    "mailto:x@y.example",
                ],
            ),
        )
        .page("/a", &paragraph("apples", &["/", "/a#top", "/deep", "/b"]))
        .page("/b", &paragraph("bees", &["/a", "/twin", "/same"]))
        .page("/deep", &paragraph("the deep", &["/deeper"]))
        .page("/deeper", &paragraph("the deeper", &[]))
        .page(
            "/twin",
            &format!(
                "<link rel=canonical href='/a'>{}",
                paragraph("apples in print", &[])
            ),
        )
        .page("/same", &paragraph("bees", &["/a", "/twin", "/same"]));
    let found = crawl(
        &site,
        &Rules {
            depth: 2,
            ..rules()
        },
    )
    .await
    .unwrap();
    assert_eq!(paths(&found), ["/", "/b", "/a", "/deep"]);
    assert_eq!(found[3].depth, 2);
    assert_eq!(found[3].parent.as_ref().unwrap().path(), "/a");
    assert_eq!(found[1].file.title.as_deref(), Some("bees"));
    let asked = site.asked();
    for never in [
        "https://z.example/",
        "https://a.example/photo.jpg",
        "https://a.example/deeper",
    ] {
        assert!(!asked.iter().any(|url| url == never), "{never}");
    }
    let mut once = asked.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), asked.len(), "{asked:?}");
    let found = crawl(
        &site,
        &Rules {
            depth: 0,
            ..rules()
        },
    )
    .await
    .unwrap();
    assert_eq!(paths(&found), ["/"]);
    let few = Rules {
        pages: 2,
        ..rules()
    };
    assert_eq!(crawl(&site, &few).await.unwrap().len(), 2);
}

#[tokio::test]
async fn endless_links_and_endless_twins_come_to_an_end() {
    let site = Site::default().page("/", &paragraph("days", &["/endless/1"]));
    let rules = Rules {
        pages: 20,
        depth: 10,
        ..rules()
    };
    let found = crawl(&site, &rules).await.unwrap();
    assert_eq!(found.len(), 20);
    // Pages that say the same under ever new addresses.
    let links: Vec<String> = (0..100)
        .map(|number| format!("/?session={number}"))
        .collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let mut site = Site::default().page("/", &paragraph("one thing", &links));
    for link in &links {
        site = site.page(link, &paragraph("one thing", &links));
    }
    let found = crawl(&site, &Rules { pages: 5, ..rules }).await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(site.asked().len() <= 5 * 4 + 51, "{}", site.asked().len());
}

#[tokio::test]
async fn what_a_site_forbids_is_not_asked() {
    let links = ["/open", "/private/x", "/hidden", "/unfollowed"];
    let site = Site::default()
        .page("/robots.txt", "User-agent: *\nDisallow: /private/\n")
        .page("/", &paragraph("a start", &links))
        .page("/open", &paragraph("open things", &[]))
        .page("/private/x", &paragraph("private things", &[]))
        .page(
            "/hidden",
            &format!(
                "<meta name=robots content=noindex>{}",
                paragraph("hidden things", &["/behind"])
            ),
        )
        .page("/behind", &paragraph("what is behind", &[]))
        .page(
            "/unfollowed",
            &format!(
                "<meta name=loupe content=nofollow>{}",
                paragraph("an end", &["/never"])
            ),
        )
        .page("/never", &paragraph("never", &[]));
    let found = crawl(&site, &rules()).await.unwrap();
    assert_eq!(paths(&found), ["/", "/open", "/unfollowed", "/behind"]);
    assert!(
        !site
            .asked()
            .iter()
            .any(|url| url.contains("private") || url.contains("never"))
    );

    let closed = Site::default()
        .page("/robots.txt", "User-agent: loupe\nDisallow: /\n")
        .page("/", &paragraph("a start", &[]));
    let error = crawl(&closed, &rules()).await.unwrap_err();
    assert!(
        error
            .message
            .contains("robots.txt of https://a.example forbids /"),
        "{error}"
    );
    let broken = Site::default()
        .answer("/robots.txt", 503, &[], "")
        .page("/", &paragraph("a start", &[]));
    let error = crawl(&broken, &rules()).await.unwrap_err();
    assert_eq!(error.kind, crate::extract::ErrorKind::Transient, "{error}");
    assert_eq!(broken.asked(), ["https://a.example/robots.txt"]);
}

#[tokio::test]
async fn redirects_are_hops_of_their_own() {
    let site = Site::default()
        .answer("/", 301, &[("location", "https://www.a.example/start")], "")
        .page(
            "https://www.a.example/start",
            &paragraph("a start", &["/away", "/round", "/moved", "/secret"]),
        )
        .answer(
            "https://www.a.example/away",
            302,
            &[("location", "https://z.example/")],
            "",
        )
        .answer(
            "https://www.a.example/round",
            302,
            &[("location", "/round")],
            "",
        )
        .answer(
            "https://www.a.example/moved",
            308,
            &[("location", "/new?utm_medium=x")],
            "",
        )
        .page(
            "https://www.a.example/new?utm_medium=x",
            &paragraph("new things", &[]),
        )
        .answer(
            "https://www.a.example/secret",
            302,
            &[("location", "https://www.a.example/inside")],
            "",
        )
        .answer(
            "https://www.a.example/inside",
            0,
            &[],
            "the address is private",
        );
    let found = crawl(&site, &rules()).await.unwrap();
    let urls: Vec<&str> = found.iter().map(|page| page.url.as_str()).collect();
    assert_eq!(
        urls,
        ["https://www.a.example/start", "https://www.a.example/new"]
    );
    assert!(
        !site
            .asked()
            .iter()
            .any(|url| url.starts_with("https://z.example"))
    );
    let refused = Site::default().answer("/", 0, &[], "the address is private");
    let error = crawl(&refused, &rules()).await.unwrap_err();
    assert!(error.message.contains("the address is private"), "{error}");
}

#[tokio::test]
async fn a_busy_site_is_asked_again_and_told_its_cookies() {
    let site = Site::default()
        .answer("/", 503, &[("retry-after", "0")], "")
        .answer(
            "/",
            200,
            &[("set-cookie", "session=1; Path=/")],
            &paragraph("a start", &["/next"]),
        )
        .page("/next", &paragraph("what is next", &[]));
    let patient = Rules {
        retries: 2,
        ..rules()
    };
    assert_eq!(crawl(&site, &patient).await.unwrap().len(), 2);
    let cookies = site.cookies.lock().unwrap().clone();
    assert_eq!(cookies.last().unwrap().as_deref(), Some("session=1"));
    let gone = Site::default().answer("/", 503, &[], "");
    let error = crawl(&gone, &patient).await.unwrap_err();
    assert!(error.message.ends_with("answers 503"), "{error}");
    assert_eq!(gone.asked().len(), 4, "the rules, and three tries");
}

#[tokio::test]
async fn links_that_sound_like_the_goal_come_first() {
    let start = "<p>This page leads to many others of this site.</p><a href=/x>Cars and more</a><a href=/y>Boats for hire</a><a href=/z>Planes</a>";
    let site = Site::default()
        .page("/", start)
        .page("/x", &paragraph("cars", &[]))
        .page("/y", &paragraph("boats", &[]))
        .page("/z", &paragraph("planes", &[]));
    let rules = Rules {
        goal: Some("boats".into()),
        pages: 2,
        ..rules()
    };
    assert_eq!(paths(&crawl(&site, &rules).await.unwrap()), ["/", "/y"]);
}

#[tokio::test]
async fn a_crawl_ends_in_time_with_what_it_has() {
    let site = Site::default()
        .page("/", &paragraph("a start", &["/next"]))
        .page("/next", &paragraph("what is next", &[]));
    let rules = Rules {
        delay: Duration::from_secs(30),
        time: Duration::from_millis(500),
        ..rules()
    };
    let begun = std::time::Instant::now();
    assert_eq!(paths(&crawl(&site, &rules).await.unwrap()), ["/"]);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn pages_that_say_nothing_are_told_apart() {
    let scripts = Site::default().page(
        "/",
        "<!doctype html><div id=app></div><script src=/x.js></script>",
    );
    let error = crawl(&scripts, &rules()).await.unwrap_err();
    assert!(error.message.contains("made by scripts"), "{error}");
    let asks = Site::default().page("/", "<p>Are you human?</p><div class=h-captcha></div>");
    let error = crawl(&asks, &rules()).await.unwrap_err();
    assert!(error.message.contains("proof of being human"), "{error}");
    let taken = Rules {
        challenges: false,
        ..rules()
    };
    assert_eq!(crawl(&asks, &taken).await.unwrap().len(), 1);
    let other = crawl(&Site::default(), &rules()).await.unwrap_err();
    assert!(other.message.ends_with("answers 404"), "{other}");
}
