//! The head: what search engines, link previews and browsers read.

use std::ops::RangeInclusive;

use leptos::prelude::*;
use loupe_wire::{DisplayConfig, Object, SEOConfig};
use serde_json::{Value, json};

use super::input::{inputs_of, is_text};
use super::preview;
use super::query::encode;
use super::text::{safe_url, truncate};
use super::theme::Theme;
use crate::{Hit, Page};

/// Built files the head links to; those that were not built are left out.
#[derive(Debug, Clone, Default)]
pub struct Assets {
    pub style: Option<String>,
    pub script: Option<String>,
    pub icon: Option<String>,
}

/// Everything a head is made of.
#[derive(Debug, Clone, Default)]
pub struct Head {
    pub title: String,
    pub description: Option<String>,
    pub canonical: Option<String>,
    pub robots: String,
    pub og_type: String,
    pub image: Option<(String, String)>,
    /// Whether the picture is the one that is drawn here, whose size is known.
    pub is_drawn: bool,
    pub site_name: Option<String>,
    pub locale: Option<String>,
    pub twitter: Vec<(&'static str, String)>,
    pub keywords: Option<String>,
    pub author: Option<String>,
    pub icon: Option<String>,
    pub json_ld: Vec<Value>,
}

/// What schema.org has search engines read of a page that searches.
fn web_site(page: &Page, address: &str, description: Option<&str>) -> Value {
    let mut site = json!({
        "@context": "https://schema.org",
        "@type": "WebSite",
        "name": page.display_config.title,
        "url": address
    });
    // Without an input for words there is nothing that these would search for.
    if inputs_of(page).iter().any(is_text) {
        site["potentialAction"] = json!({
            "@type": "SearchAction",
            "target": { "@type": "EntryPoint", "urlTemplate": format!("{address}?q={{search_term_string}}") },
            "query-input": "required name=search_term_string"
        });
    }
    if let Some(description) = description {
        site["description"] = json!(description);
    }
    site
}

impl Head {
    /// Head of a view that tells nothing: refused, missing, protected.
    pub fn bare(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            robots: "noindex, nofollow".to_owned(),
            ..Self::default()
        }
    }

    /// Head of a page. Addresses that carry a query stay out of the index.
    pub fn of_page(page: &Page, base_url: &str, asked: bool, words: &str) -> Self {
        let display = &page.display_config;
        let seo = display.seo.clone().unwrap_or_default();
        let title = seo
            .meta_title
            .clone()
            .filter(|title| !title.trim().is_empty())
            .unwrap_or_else(|| display.title.clone());
        let description = seo
            .meta_description
            .clone()
            .or_else(|| display.description.clone());
        let address = format!("{base_url}/r/{}", encode(&page.public_name));
        let canonical = seo
            .canonical_url
            .as_deref()
            .and_then(safe_url)
            .filter(|url| url.starts_with("http"))
            .unwrap_or_else(|| address.clone());
        let robots = if page.is_protected {
            "noindex, nofollow".to_owned()
        } else if asked {
            "noindex, follow".to_owned()
        } else {
            robots(&seo.robots)
        };
        let mut site = web_site(page, &address, description.as_deref());
        let logo = seo.logo_url.as_deref().or(display.logo_url.as_deref());
        if let Some(logo) = logo.and_then(safe_url) {
            let origin = if logo.starts_with('/') { base_url } else { "" };
            site["image"] = json!(format!("{origin}{logo}"));
        }
        let mut json_ld = vec![site];
        if let Some(data) = &seo.structured_data {
            json_ld.push(own_data(
                data.r#type.as_str(),
                &data.additional_properties,
                display,
                &address,
            ));
        }
        let heading = if words.is_empty() {
            title
        } else {
            format!("{} · {title}", truncate(words, 60))
        };
        Self {
            title: heading,
            canonical: Some(canonical),
            robots,
            json_ld,
            ..Self::common(page, &seo, base_url, description)
        }
    }

    /// Head of an item's page.
    pub fn of_item(
        page: &Page,
        base_url: &str,
        hit: &Hit,
        title: &str,
        text: Option<&str>,
        has_picture: bool,
    ) -> Self {
        let display = &page.display_config;
        let seo = display.seo.clone().unwrap_or_default();
        let list = format!("{base_url}/r/{}", encode(&page.public_name));
        let address = format!("{list}/item/{}", encode(&hit.document_id));
        let description =
            text.map(|text| truncate(&text.split_whitespace().collect::<Vec<_>>().join(" "), 160));
        // The address of the picture's own file is signed and does not last.
        let picture = has_picture.then(|| format!("{address}/picture"));
        let mut work = json!({
            "@context": "https://schema.org", "@type": "CreativeWork", "name": title, "url": address,
            "isPartOf": { "@type": "WebSite", "name": display.title, "url": list }
        });
        if let Some(text) = &description {
            work["description"] = json!(text);
        }
        if let Some(picture) = &picture {
            work["thumbnailUrl"] = json!(picture);
        }
        let trail = json!({
            "@context": "https://schema.org", "@type": "BreadcrumbList",
            "itemListElement": [
                { "@type": "ListItem", "position": 1, "name": display.title, "item": list },
                { "@type": "ListItem", "position": 2, "name": title, "item": address }
            ]
        });
        let common = Self::common(page, &seo, base_url, description);
        Self {
            title: format!("{} · {}", truncate(title, 60), display.title),
            canonical: Some(address),
            robots: if page.is_protected {
                "noindex, nofollow".to_owned()
            } else {
                robots(&seo.robots)
            },
            og_type: "article".to_owned(),
            is_drawn: common.is_drawn && !has_picture,
            image: picture
                .map(|url| (url, title.to_owned()))
                .or(common.image.clone()),
            json_ld: vec![work, trail],
            ..common
        }
    }

    fn common(page: &Page, seo: &SEOConfig, base_url: &str, description: Option<String>) -> Self {
        let display = &page.display_config;
        let image = seo.og_image_url.as_deref().and_then(safe_url);
        // Whoever shows links has no password, so there is no picture for a page that has one.
        let is_drawn = image.is_none() && !page.is_protected;
        let image = image.or_else(|| is_drawn.then(|| preview::address(page, base_url)));
        let absolute = |url: String| {
            if url.starts_with('/') {
                format!("{base_url}{url}")
            } else {
                url
            }
        };
        let alt = seo
            .og_image_alt
            .clone()
            .unwrap_or_else(|| display.title.clone());
        let handle = |handle: &Option<String>| handle.clone().filter(|handle| !handle.is_empty());
        let card = if seo.twitter_card == "summary" || image.is_none() {
            "summary"
        } else {
            "summary_large_image"
        };
        let mut twitter = vec![("twitter:card", card.to_owned())];
        twitter.extend(handle(&seo.twitter_site).map(|value| ("twitter:site", value)));
        twitter.extend(handle(&seo.twitter_creator).map(|value| ("twitter:creator", value)));
        let icon = seo.favicon_url.as_deref().and_then(safe_url).or_else(|| {
            super::icon::decode(display.icon_base64.as_deref()?)?;
            Some(format!("/r/{}/icon", encode(&page.public_name)))
        });
        Self {
            og_type: if seo.og_type.is_empty() {
                "website".to_owned()
            } else {
                seo.og_type.clone()
            },
            image: image.map(|url| (absolute(url), alt)),
            is_drawn,
            site_name: Some(seo.site_name.clone()).filter(|name| !name.is_empty()),
            locale: Some(seo.locale.clone()).filter(|locale| locale.len() < 16),
            keywords: Some(seo.keywords.join(", ")).filter(|keywords| !keywords.is_empty()),
            author: seo.author.clone(),
            description,
            twitter,
            icon,
            ..Self::default()
        }
    }

    /// The list of results as data, for pages that may be indexed.
    pub fn add_list(&mut self, base_url: &str, items: &[(String, String)]) {
        let elements: Vec<Value> = items.iter().enumerate()
            .map(|(index, (name, path))| json!({ "@type": "ListItem", "position": index + 1, "name": name, "url": format!("{base_url}{path}") }))
            .collect();
        if !elements.is_empty() {
            self.json_ld.push(json!({ "@context": "https://schema.org", "@type": "ItemList", "itemListElement": elements }));
        }
    }

    /// The language of the document: the one of the owner's locale where it names one, else that of the interface.
    pub fn language(&self) -> String {
        let named = self.locale.as_deref().and_then(language);
        named.unwrap_or_else(|| "en".to_owned())
    }

    /// The elements.
    pub fn view(self, theme: &Theme, nonce: &str, assets: Assets) -> AnyView {
        let named = |name: &'static str, content: Option<String>| {
            content.map(|content| view! { <meta name=name content=content/> })
        };
        let graph = |name: &'static str, content: Option<String>| {
            content.map(|content| {
                leptos::html::meta()
                    .attr("property", name)
                    .attr("content", content)
            })
        };
        let (image, alt) = self.image.unzip();
        let twitter_image = image.clone();
        let size = |pixels: u32| self.is_drawn.then(|| pixels.to_string());
        let (width, height) = (size(preview::WIDTH), size(preview::HEIGHT));
        let data = self.json_ld.iter()
            .map(|data| view! { <script type="application/ld+json" nonce=nonce.to_owned() inner_html=json_in_html(data)></script> })
            .collect_view();
        let twitter = self
            .twitter
            .into_iter()
            .map(|(name, content)| view! { <meta name=name content=content/> })
            .collect_view();
        let indexable = self.canonical.is_some();
        view! {
            <meta charset="utf-8"/>
            <meta name="viewport" content="width=device-width, initial-scale=1"/>
            <title>{self.title.clone()}</title>
            {named("description", self.description.clone())}
            <meta name="robots" content=self.robots/>
            {named("keywords", self.keywords)}
            {named("author", self.author)}
            {named("theme-color", theme.frame_color.clone())}
            {named("color-scheme", Some(theme.scheme.attribute().unwrap_or("light dark").to_owned()))}
            {self.canonical.clone().map(|url| view! { <link rel="canonical" href=url/> })}
            {indexable.then(|| view! {
                {graph("og:title", Some(self.title))}
                {graph("og:type", Some(self.og_type))}
            })}
            {graph("og:description", self.description)}
            {graph("og:url", self.canonical)}
            {graph("og:image", image)}
            {graph("og:image:width", width)}
            {graph("og:image:height", height)}
            {graph("og:image:alt", alt)}
            {named("twitter:image", twitter_image)}
            {graph("og:site_name", self.site_name)}
            {graph("og:locale", self.locale)}
            {twitter}
            <link rel="icon" href=self.icon.or(assets.icon).unwrap_or_else(|| "data:,".to_owned())/>
            {assets.style.map(|url| view! { <link rel="stylesheet" href=url/> })}
            <style nonce=nonce.to_owned() inner_html=theme.css.clone()></style>
            {assets.script.map(|url| view! { <script type="module" src=url nonce=nonce.to_owned()></script> })}
            {data}
        }
        .into_any()
    }
}

fn own_data(kind: &str, extra: &Object, display: &DisplayConfig, address: &str) -> Value {
    let mut data = Object::new();
    data.insert("@context".to_owned(), json!("https://schema.org"));
    data.insert("@type".to_owned(), json!(kind));
    data.insert("name".to_owned(), json!(display.title));
    data.insert("url".to_owned(), json!(address));
    data.extend(extra.clone());
    Value::Object(data)
}

/// A locale as HTML names languages: `de_DE` is `de-DE`. None for what is no plain tag of BCP 47: a language, then perhaps a
/// script, a region and variants.
fn language(locale: &str) -> Option<String> {
    let tag = locale.replace('_', "-");
    let mut parts = tag.split('-').peekable();
    if !parts.next().is_some_and(|part| is_letters(part, 2..=3)) {
        return None;
    }
    parts.next_if(|part| is_letters(part, 4..=4));
    parts.next_if(|part| is_region(part));
    parts.all(is_variant).then(|| tag.clone())
}

fn is_letters(part: &str, lengths: RangeInclusive<usize>) -> bool {
    lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn is_region(part: &str) -> bool {
    is_letters(part, 2..=2) || (part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_variant(part: &str) -> bool {
    let is_long = (5..=8).contains(&part.len());
    let is_dated = part.len() == 4 && part.starts_with(|first: char| first.is_ascii_digit());
    (is_long || is_dated) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Only directives that search engines know; anything else means the default.
fn robots(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    let directives: Vec<String> = text.split(',').filter_map(directive).collect();
    if directives.is_empty() {
        "index, follow".to_owned()
    } else {
        directives.join(", ")
    }
}

fn directive(word: &str) -> Option<String> {
    const KNOWN: [&str; 12] = [
        "index",
        "noindex",
        "follow",
        "nofollow",
        "none",
        "all",
        "noarchive",
        "nosnippet",
        "noimageindex",
        "notranslate",
        "indexifembedded",
        "nositelinkssearchbox",
    ];
    let word = word.trim();
    if KNOWN.contains(&word) {
        return Some(word.to_owned());
    }
    let (name, value) = word.split_once(':')?;
    let (name, value) = (name.trim(), value.trim());
    let is_sound = match name {
        "max-snippet" | "max-video-preview" => value.parse::<i32>().is_ok(),
        "max-image-preview" => ["none", "standard", "large"].contains(&value),
        _ => false,
    };
    is_sound.then(|| format!("{name}:{value}"))
}

/// JSON that cannot end its element: the characters HTML looks at become escapes.
fn json_in_html(data: &Value) -> String {
    data.to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn robots_are_told_what_they_know() {
        for (said, told) in [
            ("NoIndex, nofollow", "noindex, nofollow"),
            (
                "index, max-snippet: -1, max-image-preview:large",
                "index, max-snippet:-1, max-image-preview:large",
            ),
            ("max-image-preview:\"><script>", "index, follow"),
            ("max-snippet:many, follow", "follow"),
            ("", "index, follow"),
        ] {
            assert_eq!(robots(said), told, "{said}");
        }
    }

    #[test]
    fn a_locale_names_a_language() {
        for (locale, told) in [
            ("de_DE", Some("de-DE")),
            ("fr", Some("fr")),
            ("zh_Hant_TW", Some("zh-Hant-TW")),
            ("es-419", Some("es-419")),
            ("de_CH_1901", Some("de-CH-1901")),
            ("de_DE.UTF-8", None),
            ("C", None),
            ("de_", None),
            ("\"><script>", None),
            ("", None),
        ] {
            assert_eq!(language(locale).as_deref(), told, "{locale}");
        }
    }
}
