//! Books (EPUB) to one page for each part, in reading order.

use std::collections::HashMap;

use loupe_wire::Object;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use serde_json::json;

use super::archive::{self, Archive};
use super::{Format, Gaps, MAX_TEXT_BYTES, TextFile, html};
use crate::extract::{ExtractError, Result, dropped::UNREADABLE};

/// Parts of one book.
const MAX_PARTS: usize = 2_000;

/// What the package file of a book tells.
#[derive(Default)]
struct Package {
    title: Option<String>,
    author: Option<String>,
    language: Option<String>,
    /// Path of each part by its id.
    files: HashMap<String, String>,
    /// Ids in reading order.
    order: Vec<String>,
}

pub fn decode(mut archive: Archive<'_>) -> Result<TextFile> {
    let container = archive::text(&mut archive, "META-INF/container.xml")?;
    let path = package_path(&container).ok_or_else(broken)?;
    let package = package(&archive::text(&mut archive, &path)?)?;
    if package.order.len() > MAX_PARTS {
        return Err(ExtractError::resource(format!(
            "the book has {} parts; the limit is {MAX_PARTS}",
            package.order.len()
        )));
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let (mut pages, mut length, mut gaps) = (Vec::new(), 0, Gaps::default());
    for file in package.order.iter().filter_map(|id| package.files.get(id)) {
        // A part that is missing or broken costs only itself.
        let Ok(part) = archive::text(&mut archive, &join(folder, file)) else {
            gaps.dropped.add_pages(UNREADABLE, 1);
            continue;
        };
        let page = html::body(&part).unwrap_or_default();
        if page.is_empty() && html::depth(&part) > html::MAX_DEPTH {
            gaps.dropped.add_pages(UNREADABLE, 1);
        }
        length += page.len();
        if length > MAX_TEXT_BYTES {
            return Err(ExtractError::resource(format!(
                "the book holds more than {} MiB of text, which is the limit",
                MAX_TEXT_BYTES >> 20
            )));
        }
        if !page.is_empty() {
            pages.push(page);
        }
    }
    if pages.is_empty() {
        return Err(ExtractError::permanent("the book holds no text"));
    }
    let told = [("author", package.author), ("language", package.language)];
    let told = told.into_iter();
    let info: Object = told
        .filter_map(|(name, value)| Some((name.to_owned(), json!(value?))))
        .collect();
    Ok(TextFile {
        format: Format::Book,
        title: package.title,
        pages,
        info,
        gaps,
    })
}

fn broken() -> ExtractError {
    ExtractError::permanent("the book is broken: its contents cannot be read")
}

/// The address of a part below the package's folder, without its fragment and its escapes.
fn join(folder: &str, file: &str) -> String {
    let file = file.split('#').next().unwrap_or(file);
    let file = url::form_urlencoded::parse(file.replace('+', "%2B").as_bytes())
        .map(|(name, _)| name.into_owned())
        .next()
        .unwrap_or_default();
    let mut steps: Vec<&str> = folder.split('/').filter(|step| !step.is_empty()).collect();
    for step in file.split('/') {
        match step {
            ".." => drop(steps.pop()),
            "." | "" => {}
            step => steps.push(step),
        }
    }
    steps.join("/")
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok()??;
    let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
    Some(value.into_owned())
}

fn package_path(container: &str) -> Option<String> {
    let mut reader = Reader::from_str(container);
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) | Event::Empty(element)
                if element.local_name().as_ref() == "rootfile" =>
            {
                return attribute(&element, "full-path");
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

fn package(xml: &str) -> Result<Package> {
    let mut reader = Reader::from_str(xml);
    let mut package = Package::default();
    loop {
        match reader.read_event().map_err(|_| broken())? {
            Event::Start(element) => {
                let name = element.local_name().as_ref().to_owned();
                let place = match name.as_str() {
                    "title" => &mut package.title,
                    "creator" => &mut package.author,
                    "language" => &mut package.language,
                    _ => {
                        package.note(&element);
                        continue;
                    }
                };
                let text = reader.read_text(element.name()).map_err(|_| broken())?;
                let text = quick_xml::escape::unescape(&text).map_err(|_| broken())?;
                let text = text.trim();
                if place.is_none() && !text.is_empty() {
                    *place = Some(text.to_owned());
                }
            }
            Event::Empty(element) => package.note(&element),
            Event::Eof => return Ok(package),
            _ => {}
        }
    }
}

impl Package {
    fn note(&mut self, element: &BytesStart<'_>) {
        match element.local_name().as_ref() {
            "item" => {
                let found = attribute(element, "id").zip(attribute(element, "href"));
                self.files.extend(found);
            }
            "itemref" => self.order.extend(attribute(element, "idref")),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_from_the_folder_of_the_package() {
        assert_eq!(join("OEBPS", "text/one.xhtml#two"), "OEBPS/text/one.xhtml");
        assert_eq!(join("a/b", "../c%20d+e.xhtml"), "a/c d+e.xhtml");
        assert_eq!(join("", "./one.html"), "one.html");
        assert_eq!(join("a", "../../../etc/passwd"), "etc/passwd");
    }
}
