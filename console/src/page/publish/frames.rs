//! The sites whose frames may show a page, as the form has them: every one, those that are named, or none.

use serde_json::Value;

use super::draft::put;
use crate::record::{items, plain};

/// Every site without the member, none where it is empty.
const SITES: [&str; 3] = ["extensions", "embed", "frame_ancestors"];

/// How the places of what is refused begin.
const PLACE: &str = "extensions.embed.frame_ancestors";

/// Puts what a configuration says into the form.
pub fn read(display: &Value, form: &mut Value) {
    let sites = display.pointer("/extensions/embed/frame_ancestors");
    if let Some(Value::Array(sites)) = sites {
        let manner = if sites.is_empty() { "none" } else { "listed" };
        form["framing"] = manner.into();
        form["sites"] = sites.clone().into();
    }
}

/// Puts what the form says into a configuration.
pub fn write(form: &Value, all: &mut Value) {
    let sites = match form["framing"].as_str() {
        None => None,
        Some("listed") => Some(form["sites"].as_array().cloned().unwrap_or_default()),
        Some(_) => Some(Vec::new()),
    };
    put(all, &SITES, sites.map(Value::Array));
}

/// What is wrong with the sites that are named. The server takes them all, and lets the wrong ones show nothing.
pub fn fault(form: &Value) -> Option<(String, String)> {
    if form["framing"] != "listed" {
        return None;
    }
    let mut sites = items(&form["sites"]).into_iter().map(|site| plain(&site.0));
    let wrong = sites.find(|site| !is_site(site))?;
    let what = format!("'{wrong}' is no site such as https://www.example.com");
    Some(("sites".to_owned(), what))
}

/// Where a place of the configuration is in the form, if it is one of these.
pub fn in_form(place: &str) -> Option<String> {
    place.starts_with(PLACE).then(|| "sites".to_owned())
}

/// Whether it is the address of a site, or `https://*.example.com` for all beneath one.
fn is_site(text: &str) -> bool {
    let host = text.strip_prefix("https://");
    let Some(host) = host.or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let host = host.strip_prefix("*.").unwrap_or(host);
    let host = host.strip_suffix('/').unwrap_or(host);
    let spelled = |c: char| c.is_alphanumeric() || "-.:[]".contains(c);
    !host.is_empty() && host.chars().all(spelled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a configuration says after a change in the form.
    fn sent(display: &Value, change: impl FnOnce(&mut Value)) -> Value {
        let (mut form, mut all) = (json!({}), display.clone());
        read(display, &mut form);
        change(&mut form);
        write(&form, &mut all);
        all
    }

    #[test]
    fn frames_are_for_every_site_for_some_or_for_none() {
        let named = json!(["https://shop.example", "https://*.example.com"]);
        let some = json!({"extensions": {"embed": {"frame_ancestors": named, "other": 1}}});
        let none = json!({"extensions": {"embed": {"frame_ancestors": []}}});
        let all = json!({"extensions": {"facets": ["year"]}});
        for as_it_was in [&some, &none, &all, &json!({"title": "x"})] {
            assert_eq!(sent(as_it_was, |_| ()), *as_it_was);
        }
        let open = sent(&some, |form| form["framing"] = Value::Null);
        assert_eq!(open, json!({"extensions": {"embed": {"other": 1}}}));
        // What was written of sites is nobody's where none may.
        let shut = sent(&some, |form| form["framing"] = "none".into());
        assert_eq!(shut["extensions"]["embed"]["frame_ancestors"], json!([]));
        // Nor may every site where they are still to be named.
        let unnamed = sent(&all, |form| form["framing"] = "listed".into());
        let embed = json!({"frame_ancestors": []});
        assert_eq!(unnamed["extensions"]["embed"], embed);
        let chosen = sent(&none, |form| {
            form["framing"] = "listed".into();
            form["sites"] = named.clone();
        });
        let embed = json!({"frame_ancestors": named});
        assert_eq!(chosen, json!({"extensions": {"embed": embed}}));
    }

    #[test]
    fn what_is_no_site_is_told_beside_the_sites() {
        for (site, is) in [
            ("https://shop.example", true),
            ("https://Shop.Example:8443/", true),
            ("https://*.example.com", true),
            ("http://[::1]:3000", true),
            ("shop.example", false),
            ("*", false),
            ("https://", false),
            ("https://a.example/path", false),
            ("https://a.example; script-src *", false),
            ("javascript://x", false),
        ] {
            assert_eq!(is_site(site), is, "{site}");
        }
        let mut form = json!({"framing": "listed", "sites": ["https://a.example", "shop.example"]});
        let (place, what) = fault(&form).expect("a fault");
        assert_eq!(place, "sites");
        assert!(what.starts_with("'shop.example' is no site"), "{what}");
        form["framing"] = "none".into();
        assert_eq!(fault(&form), None);
        let refused = in_form("extensions.embed.frame_ancestors.0");
        assert_eq!(refused.as_deref(), Some("sites"));
        assert_eq!(in_form("extensions.template.card"), None);
    }
}
