//! Addresses of pages: which are one, which are worth asking, what patterns take.

use url::Url;

/// Longer addresses are traps, or say nothing that a reader could use.
const LONGEST: usize = 2_000;
/// Segments of a path.
const SEGMENTS: usize = 24;
/// How often one segment may be in a path: `/a/b/a/b/a/b/` is a link that goes round.
const REPEATS: usize = 3;

/// Members of a query that tell where a reader came from, not what there is to read.
const TRACKING: &[&str] = &[
    "fbclid", "gclid", "msclkid", "mc_cid", "mc_eid", "yclid", "_ga", "ref_src",
];

/// Endings of files that hold no text.
const FILES: &[&str] = &[
    "7z", "aac", "apk", "avi", "avif", "bin", "bmp", "bz2", "css", "deb", "dmg", "eot", "exe",
    "flac", "gif", "gz", "ico", "iso", "jar", "jpeg", "jpg", "js", "m4a", "m4v", "map", "mjs",
    "mkv", "mov", "mp3", "mp4", "mpeg", "mpg", "msi", "ogg", "otf", "pkg", "png", "rar", "rpm",
    "svg", "tar", "tgz", "tiff", "ttf", "wasm", "wav", "webm", "webp", "wmv", "woff", "woff2",
    "xz", "zip", "zst",
];

/// Endings of files that are read like pages, but are files to whoever looks for them.
const DOCUMENTS: &[&str] = &[
    "csv", "doc", "docx", "epub", "ods", "odt", "pdf", "ppt", "pptx", "rtf", "xls", "xlsb", "xlsx",
];

/// An address without the place on its page.
pub fn bare(mut url: Url) -> String {
    url.set_fragment(None);
    url.into()
}

/// The address that one page has, whatever link leads to it.
pub fn tidy(mut url: Url) -> Url {
    url.set_fragment(None);
    if url.query().is_some() {
        let kept: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(name, _)| !name.starts_with("utm_") && !TRACKING.contains(&name.as_ref()))
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        let all = url.query_pairs().count();
        if kept.is_empty() {
            url.set_query(None);
        } else if kept.len() < all {
            url.query_pairs_mut().clear().extend_pairs(kept);
        }
    }
    url
}

/// The address that a link on a page means; none for what is no page of the web.
pub fn join(base: &Url, link: &str) -> Option<Url> {
    let link = link.trim();
    if link.len() > LONGEST {
        return None;
    }
    let url = base.join(link).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}

/// Whether two addresses are of one site: `www.` in front, and whether the connection is secure, make no difference.
pub fn is_same_site(one: &Url, other: &Url) -> bool {
    let name = |url: &Url| {
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        host.strip_prefix("www.").map(str::to_owned).unwrap_or(host)
    };
    name(one) == name(other) && one.port() == other.port()
}

/// Whether an address looks like one of endlessly many.
pub fn is_trap(url: &Url) -> bool {
    let segments: Vec<&str> = url.path_segments().into_iter().flatten().collect();
    let repeated = |segment: &&str| {
        !segment.is_empty() && segments.iter().filter(|other| other == &segment).count() > REPEATS
    };
    url.as_str().len() > LONGEST || segments.len() > SEGMENTS || segments.iter().any(repeated)
}

fn ending(url: &Url) -> Option<String> {
    let last = url.path_segments()?.next_back()?;
    let (_, ending) = last.rsplit_once('.')?;
    Some(ending.to_ascii_lowercase())
}

/// Whether an address leads to a file without text.
pub fn is_file(url: &Url) -> bool {
    ending(url).is_some_and(|ending| FILES.contains(&ending.as_str()))
}

/// Whether an address leads to something to be downloaded.
pub fn is_asset(url: &Url) -> bool {
    ending(url).is_some_and(|ending| {
        !["css", "js", "mjs", "map"].contains(&ending.as_str())
            && (FILES.contains(&ending.as_str()) || DOCUMENTS.contains(&ending.as_str()))
    })
}

/// Whether the patterns let an address through: one of `include`, where there are any, and none of `exclude`.
pub fn is_taken(include: &[String], exclude: &[String], url: &Url) -> bool {
    let fits = |pattern: &String| fits_address(pattern, url);
    (include.is_empty() || include.iter().any(fits)) && !exclude.iter().any(fits)
}

/// A pattern that begins with `/` is of the path with its query, another of the whole address.
fn fits_address(pattern: &str, url: &Url) -> bool {
    if !pattern.starts_with('/') {
        return fits(pattern, url.as_str());
    }
    fits(pattern, url.path())
        || fits(
            pattern,
            &url[url::Position::BeforePath..url::Position::AfterQuery],
        )
}

/// Whether a text is of a pattern in which `*` stands for any text.
pub fn fits(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn patterns_are_of_paths_or_of_whole_addresses() {
        assert!(fits("https://a.example/*", "https://a.example/x"));
        assert!(fits("*/docs/*.html", "https://a.example/docs/a/b.html"));
        assert!(fits("https://a.example/x", "https://a.example/x"));
        assert!(!fits("https://a.example/x", "https://a.example/xy"));
        assert!(!fits("*.html*.html", "a.html"));
        assert!(!fits(
            "https://a.example/*",
            "https://b.example/?https://a.example/"
        ));
        let page = url("https://a.example/docs/x?page=2");
        let of = |include: &[&str], exclude: &[&str]| {
            let own = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
            is_taken(&own(include), &own(exclude), &page)
        };
        assert!(of(&[], &[]));
        assert!(of(&["/docs/*"], &[]));
        assert!(of(&["/docs/x"], &[]));
        assert!(!of(&["/blog/*"], &[]));
        assert!(!of(&["/docs/*"], &["*page=*"]));
    }

    #[test]
    fn one_page_has_one_address() {
        for (sent, tidied) in [
            ("https://A.example/x#part", "https://a.example/x"),
            ("https://a.example/x?utm_source=mail", "https://a.example/x"),
            (
                "https://a.example/x?b=1&fbclid=z",
                "https://a.example/x?b=1",
            ),
            ("https://a.example/x?b=1&a=2", "https://a.example/x?b=1&a=2"),
            ("https://a.example:443", "https://a.example/"),
        ] {
            assert_eq!(tidy(url(sent)).as_str(), tidied);
        }
        assert!(is_same_site(
            &url("https://www.a.example/"),
            &url("http://a.example/")
        ));
        assert!(!is_same_site(
            &url("https://a.example/"),
            &url("https://b.a.example/")
        ));
        assert!(!is_same_site(
            &url("https://a.example/"),
            &url("https://a.example:8443/")
        ));
    }

    #[test]
    fn traps_files_and_other_schemes_are_known() {
        assert!(is_trap(&url("https://a.example/x/y/x/y/x/y/x/y")));
        assert!(is_trap(&url(&format!(
            "https://a.example/{}",
            "a/".repeat(30)
        ))));
        assert!(!is_trap(&url("https://a.example/2026/11/22/x")));
        assert!(is_file(&url("https://a.example/film.MP4?x=1")));
        assert!(!is_file(&url("https://a.example/paper.pdf")));
        assert!(is_asset(&url("https://a.example/paper.pdf")));
        assert!(!is_asset(&url("https://a.example/style.css")));
        let base = url("https://a.example/x/");
        assert_eq!(
            join(&base, "../y?a=1").unwrap().as_str(),
            "https://a.example/y?a=1"
        );
        assert!(join(&base, "javascript:x()").is_none());
        assert!(join(&base, "mailto:a@b.example").is_none());
        assert!(join(&base, &"x".repeat(3_000)).is_none());
    }
}
