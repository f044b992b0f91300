//! The view of a page for frames of other sites: the search without what is around it.

use axum::{
    extract::{Path, RawQuery, State},
    http::{HeaderMap, StatusCode, Uri},
    response::Response,
};
use url::Url;

use super::{Shared, View, missing, open, reply, search};
use crate::{Host, Page, Visitor};

/// Sites of one page.
const MOST: usize = 50;

/// Who may show the page in a frame, as `frame-ancestors` of a policy: the sites of `extensions.embed.frame_ancestors`,
/// everybody without it, and nobody else where the page has a password, for a frame has no cookies of its own.
pub fn ancestors(page: &Page) -> String {
    if page.is_protected {
        return "'self'".to_owned();
    }
    let extensions = page.display_config.extensions.as_ref();
    let listed = extensions.and_then(|all| all.get("embed")?.get("frame_ancestors")?.as_array());
    let Some(listed) = listed else {
        return "*".to_owned();
    };
    let sites = listed.iter().filter_map(|site| origin(site.as_str()?));
    let sites: Vec<String> = sites.take(MOST).collect();
    format!("'self' {}", sites.join(" ")).trim_end().to_owned()
}

/// An origin such as `https://www.example.com`, or `https://*.example.com`; nothing else gets into a policy.
pub fn origin(site: &str) -> Option<String> {
    let (scheme, rest) = site.split_once("://")?;
    let (star, host) = match rest.strip_prefix("*.") {
        Some(host) => ("*.", host),
        None => ("", rest),
    };
    let url = Url::parse(&format!("{scheme}://{host}")).ok()?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty();
    let port = url.port().map(|port| format!(":{port}"));
    let host = url.host_str()?;
    // A semicolon may be part of a host, and would begin another rule.
    let spelled = |c: char| c.is_ascii_alphanumeric() || "-.:[]".contains(c);
    (plain && host.chars().all(spelled)).then(|| {
        format!(
            "{}://{star}{host}{}",
            url.scheme(),
            port.unwrap_or_default()
        )
    })
}

pub async fn embedded(
    State(host): Shared,
    Path(public_name): Path<String>,
    RawQuery(raw): RawQuery,
    visitor: Visitor,
    address: Uri,
    headers: HeaderMap,
) -> Response {
    match open(&*host, &public_name, &visitor, &address).await {
        Ok(page) => search(&*host, &page, &visitor, raw, View::Frame, &headers).await,
        Err(reply) => closed(&*host, *reply),
    }
}

/// What a frame shows where there is no page: the notice that everybody reads. Under the policy of any other page browsers
/// would show an error of their own in its place.
pub fn closed(host: &dyn Host, told: Response) -> Response {
    if told.status() != StatusCode::NOT_FOUND {
        return told;
    }
    let mut document = missing(host);
    document.ancestors = Some("*".to_owned());
    reply::page(
        StatusCode::NOT_FOUND,
        document,
        reply::Cache::Never,
        &HeaderMap::new(),
    )
}

#[cfg(test)]
mod tests {
    use super::origin;

    #[test]
    fn only_origins_get_into_a_policy() {
        for (site, kept) in [
            ("https://shop.example", Some("https://shop.example")),
            (
                "https://Shop.Example:8443",
                Some("https://shop.example:8443"),
            ),
            ("https://*.example.com", Some("https://*.example.com")),
            ("http://127.0.0.1:3000", Some("http://127.0.0.1:3000")),
            ("shop.example", None),
            ("*", None),
            ("https://a.example/path", None),
            ("https://a.example; script-src *", None),
            ("https://a.example https://b.example", None),
            ("https://a.example;script-src", None),
            ("javascript://x", None),
            ("https://me@a.example", None),
        ] {
            assert_eq!(origin(site).as_deref(), kept, "{site}");
        }
    }
}
