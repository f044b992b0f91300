//! A look at a new version before visitors have one: whether the files that its page begins with are there.

use std::cell::RefCell;

use lol_html::{RewriteStrSettings, element, rewrite_str};
use url::Url;

use super::files::{Found, Manifest, find};

/// Bytes of a page that is looked at, and faults that are told.
const LARGEST: usize = 1 << 20;
const MOST: usize = 20;

/// Letters of an address that is told.
const LETTERS: usize = 200;

/// What an app's page loads, by element and attribute.
const LOADED: [(&str, &str); 3] = [("script", "src"), ("link", "href"), ("img", "src")];

/// What the page of an app asks for and the app does not have. Addresses elsewhere are not looked at, nor those that count from
/// where the page itself says.
pub fn faults(page: &str, files: &Manifest) -> Vec<String> {
    if page.len() > LARGEST {
        return Vec::new();
    }
    let is_based = files.get("index.html").is_some_and(|index| index.based);
    let mut faults: Vec<String> = Vec::new();
    for address in addresses(page) {
        let Some(path) = path_of(&address, is_based) else {
            continue;
        };
        if matches!(find(files, &path, false), Found::File(..)) {
            continue;
        }
        let shown: String = path.chars().take(LETTERS).collect();
        let fault = format!("index.html asks for {shown}, which is not among the files");
        if !faults.contains(&fault) && faults.len() < MOST {
            faults.push(fault);
        }
    }
    faults
}

/// The addresses that a browser loads with the page.
fn addresses(page: &str) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let look = element!("script[src], link[href], img[src]", |element| {
        let name = element.tag_name();
        let rel = element.get_attribute("rel").unwrap_or_default();
        let is_loaded = name != "link"
            || rel
                .split_ascii_whitespace()
                .any(|word| ["stylesheet", "modulepreload", "preload", "icon"].contains(&word));
        let attribute = LOADED.iter().find(|(known, _)| *known == name);
        if let Some((_, attribute)) = attribute.filter(|_| is_loaded) {
            found.borrow_mut().extend(element.get_attribute(attribute));
        }
        Ok(())
    });
    let settings = RewriteStrSettings::new().append_element_content_handler(look);
    // What the parser cannot read is served as it is, and not looked at.
    let read = rewrite_str(page, settings);
    match read {
        Ok(_) => found.into_inner(),
        Err(_) => Vec::new(),
    }
}

/// The path of an address within the app; none of one elsewhere, or of one that is no file's.
fn path_of(address: &str, is_based: bool) -> Option<String> {
    let address = address.trim().replace("&amp;", "&");
    let is_absolute = address.starts_with('/') && !address.starts_with("//");
    if address.is_empty() || address.starts_with('#') || (is_based && !is_absolute) {
        return None;
    }
    let app = Url::parse("http://app.invalid/").ok()?;
    let whole = app.join(&address).ok()?;
    let path = whole.path();
    let is_own = whole.origin() == app.origin();
    let is_served = ["/_auth/", "/api/"]
        .iter()
        .any(|start| path.starts_with(start));
    (is_own && !is_served).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::files::Asset;

    fn files(paths: &[&str]) -> Manifest {
        let file = |path: &&str| ((*path).to_owned(), Asset::default());
        paths.iter().map(file).collect()
    }

    #[test]
    fn what_a_page_asks_for_is_there() {
        let page = r##"<!doctype html><head><link rel="stylesheet" href="/assets/main.css?v=1"><link rel=canonical href="/gone">
            <script type="module" src="./assets/a%20b.js"></script><script src="/_auth/sdk.js"></script></head>
            <img src="https://elsewhere.example/x.png"><img src="data:image/png;base64,AA=="><img src="#x"><img src="//cdn.example/x.png">"##;
        let whole = files(&["index.html", "assets/main.css", "assets/a b.js"]);
        assert_eq!(faults(page, &whole), Vec::<String>::new());
        assert_eq!(
            faults(page, &files(&["index.html"])),
            [
                "index.html asks for /assets/main.css, which is not among the files",
                "index.html asks for /assets/a%20b.js, which is not among the files"
            ]
        );
        // Twice is one fault, and there is an end to them.
        let twice = r#"<script src="/a.js"></script><script src="a.js"></script>"#;
        assert_eq!(faults(twice, &files(&["index.html"])).len(), 1);
        let many: String = (0..50)
            .map(|number| format!("<img src=/{number}.png>"))
            .collect();
        assert_eq!(faults(&many, &files(&["index.html"])).len(), MOST);
    }

    #[test]
    fn addresses_that_count_from_elsewhere_are_left_alone() {
        let page =
            r#"<base href="/sub/"><script src="a.js"></script><script src="/b.js"></script>"#;
        let mut files = files(&["index.html"]);
        files.get_mut("index.html").unwrap().based = true;
        assert_eq!(
            faults(page, &files),
            ["index.html asks for /b.js, which is not among the files"]
        );
    }
}
