//! Which file of an app answers a path, and with which headers.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::{Deserialize, Serialize};

use super::headers::FILE as HEADERS;

/// A file as a version has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asset {
    /// SHA-256 of its bytes, in hex.
    pub hash: String,
    /// Bytes.
    pub size: u64,
    /// Content type.
    pub r#type: String,
    /// Bytes of its forms that are compressed already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub br: Option<u64>,
    /// As above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gzip: Option<u64>,
    /// A page that says from where its addresses count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub based: bool,
}

/// Files by path.
pub type Manifest = BTreeMap<String, Asset>;

/// What answers a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'m> {
    /// This file.
    File(&'m str, &'m Asset),
    /// The app's page: the path is one that the app itself knows.
    App(&'m str, &'m Asset),
    /// The folder's own address ends with a slash.
    Folder,
    /// Nothing; maybe the app has a page that says so.
    Nothing(Option<(&'m str, &'m Asset)>),
}

/// Finds what answers `raw`, the path of the request as it was sent. A browser that goes to an address gets the app's page
/// where there is no file; whatever else asks hears that there is none. Files with a page that says so (`404.html`) are no app
/// that finds its way by the address: then browsers get that page, as at other hosts.
pub fn find<'m>(manifest: &'m Manifest, raw: &str, navigates: bool) -> Found<'m> {
    // What says how files are served is none of them.
    let get = |path: &str| {
        let file = manifest.get_key_value(path);
        file.filter(|_| path != HEADERS)
            .map(|(path, file)| (path.as_str(), file))
    };
    let says_so = get("404.html");
    let missing = Found::Nothing(says_so);
    let Some(path) = decode(raw) else {
        return missing;
    };
    let index = if path.is_empty() || path.ends_with('/') {
        get(&format!("{path}index.html"))
    } else {
        get(&path).or_else(|| get(&format!("{path}.html")))
    };
    if let Some((path, file)) = index {
        return Found::File(path, file);
    }
    if get(&format!("{path}/index.html")).is_some() {
        return Found::Folder;
    }
    match get("index.html") {
        Some((path, file)) if navigates && says_so.is_none() => Found::App(path, file),
        _ => missing,
    }
}

/// The path without its first slash and its percent signs; none when it is one that no file has.
pub(super) fn decode(raw: &str) -> Option<String> {
    let raw = raw.strip_prefix('/')?;
    let mut path = String::with_capacity(raw.len());
    let last = raw.matches('/').count();
    for (number, name) in raw.split('/').enumerate() {
        let name = percent(name)?;
        let odd = name.contains(|c: char| matches!(c, '/' | '\\') || c.is_control());
        if odd || matches!(name.as_str(), "." | "..") || (name.is_empty() && number < last) {
            return None;
        }
        if number > 0 {
            path.push('/');
        }
        path.push_str(&name);
    }
    Some(path)
}

fn percent(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let value = digit(rest.next())? * 16 + digit(rest.next())?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a browser goes to an address with this request.
pub fn navigates(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let wants_page = text(header::ACCEPT).is_some_and(|accept| accept.contains("text/html"));
    let mode = text(HeaderName::from_static("sec-fetch-mode"));
    wants_page && mode.is_none_or(|mode| mode == "navigate")
}

/// Whether a browser asks for something before anybody wants to see it.
pub fn is_ahead(headers: &HeaderMap) -> bool {
    let says = |name: &'static str| {
        let value = headers.get(HeaderName::from_static(name));
        let value = value.and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.contains("prefetch") || value.contains("preview"))
    };
    says("sec-purpose") || says("purpose") || says("x-moz")
}

/// The type that a path's ending tells.
pub fn type_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    // Devices ask for it by this name without an ending, and take it as nothing else.
    if name == "apple-app-site-association" {
        return "application/json".to_owned();
    }
    let ending = name.rsplit_once('.');
    let ending = ending.map_or(String::new(), |(_, ending)| ending.to_ascii_lowercase());
    let kind = match ending.as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "xml" => "application/xml",
        "txt" | "md" => "text/plain; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "mp4" | "m4v" => "video/mp4",
        "webm" => "video/webm",
        "mov" => "video/quicktime",
        "ogv" => "video/ogg",
        "mp3" => "audio/mpeg",
        "m4a" => "audio/mp4",
        "aac" => "audio/aac",
        "flac" => "audio/flac",
        "ogg" | "oga" | "opus" => "audio/ogg",
        "wav" => "audio/wav",
        "m3u8" => "application/vnd.apple.mpegurl",
        "mpd" => "application/dash+xml",
        "geojson" => "application/geo+json",
        "jsonld" => "application/ld+json",
        "gltf" => "model/gltf+json",
        "glb" => "model/gltf-binary",
        "rss" => "application/rss+xml",
        "atom" => "application/atom+xml",
        "ics" => "text/calendar; charset=utf-8",
        "pdf" => "application/pdf",
        "vtt" => "text/vtt; charset=utf-8",
        _ => "application/octet-stream",
    };
    kind.to_owned()
}

/// Whether a file of this type becomes smaller.
pub fn compresses(kind: &str) -> bool {
    kind.starts_with("text/")
        || matches!(
            kind,
            "application/json"
                | "application/manifest+json"
                | "application/geo+json"
                | "application/ld+json"
                | "application/xml"
                | "application/rss+xml"
                | "application/atom+xml"
                | "model/gltf+json"
                | "application/wasm"
                | "image/svg+xml"
                | "image/x-icon"
                | "font/ttf"
                | "font/otf"
        )
}

/// What goes with a file whatever part of it is answered.
pub fn headers(path: &str, asset: &Asset, etag: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let html = asset.r#type.starts_with("text/html");
    let cache = if html || !is_fingerprinted(path) {
        "no-cache"
    } else {
        "public, max-age=31536000, immutable"
    };
    set(&mut headers, header::CONTENT_TYPE, &asset.r#type);
    set(&mut headers, header::CACHE_CONTROL, cache);
    set(&mut headers, header::ETAG, etag);
    if !html {
        set(&mut headers, header::ACCEPT_RANGES, "bytes");
    }
    if asset.r#type == "application/octet-stream" {
        set(&mut headers, header::CONTENT_DISPOSITION, "attachment");
    }
    let policy = if asset.r#type == "image/svg+xml" {
        // A drawing that is opened by itself runs nothing.
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
    } else if asset.based {
        "object-src 'none'; base-uri 'self'; frame-ancestors 'none'"
    } else {
        "object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
    };
    set(&mut headers, header::CONTENT_SECURITY_POLICY, policy);
    common(&mut headers);
    headers
}

/// What goes with every answer of an app's host, checked once.
static COMMON: [(HeaderName, HeaderValue); 5] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("strict-origin-when-cross-origin"),
    ),
    (header::VARY, HeaderValue::from_static("accept-encoding")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin-allow-popups"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Says what goes with every answer of an app's host.
pub fn common(headers: &mut HeaderMap) {
    headers.reserve(COMMON.len());
    for (name, value) in &COMMON {
        headers.insert(name, value.clone());
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // Types and tags are made of fixed words and hex.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Letters of the hashes that bundlers write in all letters and digits.
const HASH: usize = 8;

/// Whether the name tells of the content, so that it never changes: `index-4f2a9c1b.js`, `index-BxK3z9Qa.js`. Words with a number
/// behind them are none (`style-version2.css`): what is taken for a hash wrongly is stale for a year, what is not is asked about.
pub fn is_fingerprinted(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let Some((stem, _)) = name.rsplit_once('.') else {
        return false;
    };
    let hash = stem.rsplit(['-', '.']).next().unwrap_or_default();
    let any = |is: fn(&u8) -> bool| hash.as_bytes().iter().any(is);
    let all = |is: fn(&u8) -> bool| hash.as_bytes().iter().all(is);
    let digit = any(u8::is_ascii_digit);
    let hex = all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
    let mixed = hash.len() == HASH
        && all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && any(u8::is_ascii_uppercase)
        && hash
            .trim_end_matches(|last: char| last.is_ascii_digit())
            .contains(|inner: char| inner.is_ascii_digit());
    hash.len() >= HASH
        && hash.len() < stem.len()
        && digit
        && any(u8::is_ascii_alphabetic)
        && (hex || mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        [
            "index.html",
            "about.html",
            "docs/index.html",
            "assets/a b.js",
            "ü.txt",
            HEADERS,
        ]
        .into_iter()
        .map(|path| (path.to_owned(), Asset::default()))
        .collect()
    }

    fn found(raw: &str, navigates: bool) -> String {
        match find(&manifest(), raw, navigates) {
            Found::File(path, _) => path.to_owned(),
            Found::App(path, _) => format!("app {path}"),
            Found::Folder => "folder".into(),
            Found::Nothing(_) => "nothing".into(),
        }
    }

    #[test]
    fn paths_find_their_files() {
        for (raw, file) in [
            ("/", "index.html"),
            ("/index.html", "index.html"),
            ("/about", "about.html"),
            ("/docs/", "docs/index.html"),
            ("/docs", "folder"),
            ("/assets/a%20b.js", "assets/a b.js"),
            ("/%C3%BC.txt", "ü.txt"),
            ("/assets/missing.js", "nothing"),
            ("/films/7", "nothing"),
            ("/_headers", "nothing"),
            ("/%5fheaders", "nothing"),
        ] {
            assert_eq!(found(raw, false), file, "{raw}");
        }
        assert_eq!(found("/films/7", true), "app index.html");
        let mut site = manifest();
        site.insert("404.html".into(), Asset::default());
        for navigates in [true, false] {
            let missing = find(&site, "/films/7", navigates);
            assert!(matches!(missing, Found::Nothing(Some(("404.html", _)))));
            let about = find(&site, "/about", navigates);
            assert!(matches!(about, Found::File("about.html", _)));
        }
    }

    #[test]
    fn odd_spellings_find_nothing() {
        let mut count = 0;
        for start in ["", "/assets", "/docs", "/x"] {
            for dots in [
                "..",
                "%2e%2e",
                "%2E.",
                ".%2e",
                "..%2f..",
                "..%5c",
                "..\\",
                "%2e%2e%2f",
                ".",
                "%00",
                "..;",
            ] {
                for end in [
                    "/index.html",
                    "/../index.html",
                    "%2findex.html",
                    "//index.html",
                    "/etc/passwd",
                ] {
                    let raw = format!("{start}/{dots}{end}");
                    // An own file, or nothing; here no spelling is one of a file.
                    assert_eq!(found(&raw, false), "nothing", "{raw}");
                    count += 1;
                }
            }
        }
        assert!(count >= 200, "{count}");
        for raw in [
            "//",
            "//index.html",
            "/docs//",
            "/%",
            "/%4",
            "/%zz",
            "/%ff",
            "",
            "index.html",
            "/index.html%00",
        ] {
            assert_eq!(found(raw, false), "nothing", "{raw}");
        }
    }

    #[test]
    fn types_are_told_by_the_ending() {
        for (path, kind) in [
            ("a/Main.JS", "text/javascript; charset=utf-8"),
            ("a.b/song.m4a", "audio/mp4"),
            ("places.geojson", "application/geo+json"),
            ("feed.rss", "application/rss+xml"),
            ("a.b/noending", "application/octet-stream"),
            (".well-known/apple-app-site-association", "application/json"),
            ("setup.exe", "application/octet-stream"),
        ] {
            assert_eq!(type_of(path), kind, "{path}");
        }
        assert!(compresses("application/geo+json") && !compresses("audio/mp4"));
    }

    #[test]
    fn only_browsers_that_go_somewhere_navigate() {
        let headers = |accept: &str, mode: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert("accept", accept.parse().unwrap());
            if let Some(mode) = mode {
                headers.insert("sec-fetch-mode", mode.parse().unwrap());
            }
            navigates(&headers)
        };
        assert!(headers("text/html,*/*", Some("navigate")));
        assert!(headers("text/html", None));
        assert!(!headers("text/html", Some("cors")));
        assert!(!headers("*/*", Some("no-cors")));
    }

    #[test]
    fn only_names_with_a_hash_are_kept_for_good() {
        for (path, kept) in [
            ("assets/index-4f2a9c1b.js", true),
            ("main.8d3f1a2b9c.css", true),
            ("assets/index-BxK3z9Qa.js", true),
            ("chunk-QX7M2K4J.js", true),
            ("style-version2.css", false),
            ("style-Version2.css", false),
            ("logo-original2024.svg", false),
            ("photos-holiday12.jpg", false),
            ("index.html", false),
            ("app-Navigation.js", false),
            ("report-20240101.js", false),
            ("4f2a9c1b.js", false),
            ("logo.svg", false),
        ] {
            assert_eq!(is_fingerprinted(path), kept, "{path}");
        }
    }
}
