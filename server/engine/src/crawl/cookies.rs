//! What sites want to be told again: names and values for one host, while one crawl lasts.

use std::collections::{BTreeMap, HashMap};

use reqwest::header::{self, HeaderMap, HeaderValue};
use url::Url;

/// Cookies of one host, and bytes of one.
const MOST: usize = 50;
const LONGEST: usize = 4_096;

#[derive(Debug, Default)]
pub struct Cookies {
    hosts: HashMap<String, BTreeMap<String, Cookie>>,
}

#[derive(Debug)]
struct Cookie {
    value: String,
    /// Never over a connection that others can read.
    secure: bool,
    path: String,
}

impl Cookies {
    /// Keeps what an answer sets, for its own host alone.
    pub fn keep(&mut self, url: &Url, headers: &HeaderMap) {
        let Some(host) = url.host_str() else { return };
        for text in headers.get_all(header::SET_COOKIE) {
            let Some(text) = text.to_str().ok().filter(|text| text.len() <= LONGEST) else {
                continue;
            };
            let mut members = text.split(';').map(str::trim);
            let Some((name, value)) = members.next().and_then(|first| first.split_once('=')) else {
                continue;
            };
            let mut cookie = Cookie {
                value: value.trim().to_owned(),
                secure: false,
                path: "/".to_owned(),
            };
            let mut gone = false;
            for member in members {
                let (key, value) = member.split_once('=').unwrap_or((member, ""));
                match key.to_ascii_lowercase().as_str() {
                    "secure" => cookie.secure = true,
                    "path" if value.starts_with('/') => value.clone_into(&mut cookie.path),
                    "max-age" => gone = value.parse::<i64>().is_ok_and(|seconds| seconds <= 0),
                    _ => {}
                }
            }
            let kept = self.hosts.entry(host.to_owned()).or_default();
            if gone {
                kept.remove(name.trim());
            } else if kept.len() < MOST || kept.contains_key(name.trim()) {
                kept.insert(name.trim().to_owned(), cookie);
            }
        }
    }

    /// What a request to the address tells its host.
    pub fn of(&self, url: &Url) -> Option<HeaderValue> {
        let kept = self.hosts.get(url.host_str()?)?;
        let told: Vec<String> = kept
            .iter()
            .filter(|(_, cookie)| !cookie.secure || url.scheme() == "https")
            .filter(|(_, cookie)| is_below(url.path(), &cookie.path))
            .map(|(name, cookie)| format!("{name}={}", cookie.value))
            .collect();
        (!told.is_empty())
            .then(|| HeaderValue::from_str(&told.join("; ")).ok())
            .flatten()
    }
}

fn is_below(path: &str, of: &str) -> bool {
    let rest = path.strip_prefix(of);
    rest.is_some_and(|rest| rest.is_empty() || of.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_goes_back_to_its_own_host_and_path_only() {
        let url = |text: &str| Url::parse(text).unwrap();
        let mut cookies = Cookies::default();
        let mut headers = HeaderMap::new();
        for text in [
            "a=1; Path=/",
            "b=2; Secure; HttpOnly",
            "c=3; Path=/shop; Domain=example",
            "no cookie",
        ] {
            headers.append(header::SET_COOKIE, text.parse().unwrap());
        }
        cookies.keep(&url("https://a.example/x"), &headers);
        assert_eq!(cookies.of(&url("https://a.example/")).unwrap(), "a=1; b=2");
        assert_eq!(
            cookies.of(&url("http://a.example/shop/x")).unwrap(),
            "a=1; c=3"
        );
        assert_eq!(
            cookies.of(&url("http://a.example/shopping")).unwrap(),
            "a=1"
        );
        assert_eq!(cookies.of(&url("https://b.example/")), None);
        let mut headers = HeaderMap::new();
        headers.append(header::SET_COOKIE, "a=; Max-Age=0".parse().unwrap());
        cookies.keep(&url("https://a.example/x"), &headers);
        assert_eq!(cookies.of(&url("https://a.example/")).unwrap(), "b=2");
    }
}
