//! One crawl's requests, one after the other: what a site forbids is not asked, every hop is checked anew, failures that may
//! pass are tried again, and all of it ends in time.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::{
    StatusCode,
    header::{self, HeaderMap},
};
use tokio::time::Instant;
use url::Url;

use super::{
    Rules,
    cookies::Cookies,
    robots::{AGENT, Robots},
};
use crate::{
    extract::{ExtractError, Result},
    web::{Answer, Ask, Web, WebError},
};

/// Redirects of one page.
const HOPS: usize = 3;
/// Bytes of a page, and of a site's rules.
const MOST: u64 = 10 << 20;
const MOST_RULES: u64 = 1 << 20;
/// From the first lookup to the last byte of one answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a site says about crawlers.
enum Door {
    Rules(Robots),
    /// Its rules cannot be read: nothing of it is.
    Closed(ExtractError),
}

pub struct Visitor<'a> {
    web: &'a dyn Web,
    rules: &'a Rules,
    deadline: Instant,
    /// The site that the crawl began at: what the caller wants to be sent goes nowhere else.
    home: Option<Url>,
    doors: HashMap<String, Door>,
    cookies: Cookies,
    last: Option<Instant>,
    /// Requests that are left.
    left: usize,
    /// Something was not asked for, because the crawl's time or its requests would not do.
    pub is_over: bool,
}

impl<'a> Visitor<'a> {
    pub fn new(web: &'a dyn Web, rules: &'a Rules) -> Self {
        Self {
            web,
            rules,
            deadline: Instant::now() + rules.time,
            home: None,
            doors: HashMap::new(),
            cookies: Cookies::default(),
            last: None,
            // Twins, dead links and pictures are asked for, too.
            left: rules.pages * 4 + 50,
            is_over: false,
        }
    }

    /// Whether there is time, and requests are left, for more.
    pub fn goes_on(&self) -> bool {
        self.left > 0 && Instant::now() < self.deadline
    }

    /// What an address answers, redirects followed as far as `may` lets them.
    ///
    /// # Errors
    /// The site forbids it, the address is refused or does not answer well, or the crawl's time is over.
    pub async fn read(
        &mut self,
        first: &Url,
        may: &(dyn Fn(&Url) -> bool + Sync),
    ) -> Result<Answer> {
        if self.home.is_none() {
            self.home = Some(first.clone());
        }
        let mut url = first.clone();
        for _ in 0..=HOPS {
            self.enter(&url).await?;
            let answer = self.ask_patiently(&url).await?;
            let Some(target) = redirect(&answer) else {
                return good(answer);
            };
            if !may(&target) {
                let message = format!("{url} leads to {target}, which is not followed");
                return Err(ExtractError::permanent(message));
            }
            url = target;
        }
        let message = format!("{first} redirects more than {HOPS} times");
        Err(ExtractError::permanent(message))
    }

    /// Refuses what the site's rules forbid.
    async fn enter(&mut self, url: &Url) -> Result<()> {
        let site = url.origin().ascii_serialization();
        if !self.doors.contains_key(&site) {
            let door = self.knock(&site).await;
            self.doors.insert(site.clone(), door);
        }
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        match self.doors.get(&site) {
            Some(Door::Rules(robots)) if robots.allows(path) => Ok(()),
            Some(Door::Closed(error)) => Err(error.clone()),
            _ => Err(ExtractError::permanent(format!(
                "the robots.txt of {site} forbids {path}"
            ))),
        }
    }

    /// Reads the rules of a site. One without any allows everything; one that cannot tell them allows nothing.
    async fn knock(&mut self, site: &str) -> Door {
        self.left = self.left.saturating_sub(1);
        let ask = Ask {
            max_bytes: MOST_RULES,
            timeout: PATIENCE.min(self.remaining()),
            ..Ask::get(format!("{site}/robots.txt"))
        };
        let closed = |message: String, transient: bool| {
            let message = format!("the robots.txt of {site} cannot be read: {message}");
            Door::Closed(match transient {
                true => ExtractError::transient(message),
                false => ExtractError::permanent(message),
            })
        };
        match self.web.ask(ask).await {
            Ok(answer) if answer.status.is_success() => {
                let text = String::from_utf8_lossy(&answer.body);
                Door::Rules(Robots::parse(&text, AGENT))
            }
            Ok(answer)
                if answer.status.is_server_error()
                    || answer.status == StatusCode::TOO_MANY_REQUESTS =>
            {
                closed(format!("it answers {}", answer.status), true)
            }
            Ok(_) => Door::Rules(Robots::default()),
            Err(error) => closed(error.to_string(), error.is_transient()),
        }
    }

    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn over(&mut self) -> ExtractError {
        self.is_over = true;
        let seconds = self.rules.time.as_secs();
        ExtractError::resource(match self.left {
            0 => "too many requests gave nothing new".to_owned(),
            _ => format!("the crawl took longer than its crawl_timeout of {seconds} seconds"),
        })
    }

    /// Waits, unless the crawl would be over before.
    async fn wait(&mut self, time: Duration) -> Result<()> {
        if time >= self.remaining() {
            return Err(self.over());
        }
        tokio::time::sleep(time).await;
        Ok(())
    }

    /// One request, again while what is wrong may pass.
    async fn ask_patiently(&mut self, url: &Url) -> Result<Answer> {
        let mut tries = 0;
        loop {
            let found = self.ask(url).await?;
            let pause = match &found {
                Ok(answer) if is_busy(answer.status) => self.asked_to_wait(&answer.headers),
                Ok(_) => return found.map_err(|error| failed(url, &error)),
                Err(error) if error.is_transient() => None,
                Err(_) => return found.map_err(|error| failed(url, &error)),
            };
            if tries >= self.rules.retries {
                return found.map_err(|error| failed(url, &error));
            }
            let doubled = self.rules.retry_base * 2_u32.saturating_pow(tries.min(16));
            tries += 1;
            let pause = pause.unwrap_or(doubled).min(self.rules.retry_longest);
            self.wait(pause).await?;
        }
    }

    async fn ask(&mut self, url: &Url) -> Result<std::result::Result<Answer, WebError>> {
        self.rest(url).await?;
        if !self.goes_on() {
            return Err(self.over());
        }
        self.left -= 1;
        let ask = Ask {
            headers: self.headers(url),
            redirects: 0,
            max_bytes: MOST,
            timeout: PATIENCE.min(self.remaining()),
            ..Ask::get(url.as_str())
        };
        let found = self.web.ask(ask).await;
        self.last = Some(Instant::now());
        if let Ok(answer) = &found
            && self.rules.cookies
        {
            self.cookies.keep(url, &answer.headers);
        }
        Ok(found)
    }

    /// Keeps the distance to the request before that the caller and the site want.
    async fn rest(&mut self, url: &Url) -> Result<()> {
        let site = url.origin().ascii_serialization();
        let wanted = match self.doors.get(&site) {
            Some(Door::Rules(robots)) => robots.delay.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let wanted = wanted.max(self.rules.delay);
        let since = self.last.map_or(wanted, |last| last.elapsed());
        match wanted.checked_sub(since) {
            Some(rest) if !rest.is_zero() => self.wait(rest).await,
            _ => Ok(()),
        }
    }

    fn headers(&self, url: &Url) -> HeaderMap {
        let at_home = |home: &Url| home.origin() == url.origin();
        let mut headers = match &self.home {
            Some(home) if at_home(home) => self.rules.headers.clone(),
            _ => HeaderMap::new(),
        };
        if self.rules.cookies
            && let Some(cookies) = self.cookies.of(url)
        {
            headers.entry(header::COOKIE).or_insert(cookies);
        }
        headers
    }

    fn asked_to_wait(&self, headers: &HeaderMap) -> Option<Duration> {
        let said = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
        let seconds = said.trim().parse::<u64>().ok()?;
        self.rules.retry_after.then(|| Duration::from_secs(seconds))
    }
}

fn is_busy(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

fn redirect(answer: &Answer) -> Option<Url> {
    if !answer.status.is_redirection() {
        return None;
    }
    let target = answer.headers.get(header::LOCATION)?.to_str().ok()?;
    answer.url.join(target).ok()
}

/// An answer with something in it.
fn good(answer: Answer) -> Result<Answer> {
    let status = answer.status;
    if status.is_success() {
        return Ok(answer);
    }
    let message = format!("{} answers {}", answer.url, status.as_u16());
    Err(match is_busy(status) {
        true => ExtractError::transient(message),
        false => ExtractError::permanent(message),
    })
}

fn failed(url: &Url, error: &WebError) -> ExtractError {
    let message = format!("{url}: {error}");
    match error {
        WebError::TooLarge(_) => ExtractError::resource(message),
        error if error.is_transient() => ExtractError::transient(message),
        _ => ExtractError::permanent(message),
    }
}
