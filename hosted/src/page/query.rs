//! The address of a page: what the visitor asked, and the addresses of what could be asked next.

use indexmap::IndexMap;
use loupe_wire::{Object, RetrieverInputSchemaFieldType as Kind, Value};
use serde_json::json;

use super::{
    held,
    input::{Input, Upload, accepts, inputs_of, is_boxes, is_text},
    look::Look,
};
use crate::{Page, SearchRequest};

const LONGEST_VALUE: usize = 2_000;
const MOST_VALUES: usize = 50;
const TOO_MANY: &str = "Choose at most 50.";
/// Names and values of one address.
const MOST_PAIRS: usize = 200;
/// Pages of results, however many there are.
pub const LAST_PAGE: u32 = 500;
/// Listings go no deeper, so that no page beyond is offered or asked for.
pub const DEEPEST: u32 = 10_000;

/// What the visitor asked.
#[derive(Debug, Clone)]
pub struct Query {
    /// Path of the page, `/r/{public_name}`.
    pub home: String,
    /// Where its searches go: the page itself, or its view for frames of other sites.
    pub path: String,
    /// The form.
    pub inputs: Vec<Input>,
    /// Chosen facet values by field, in the order of the address.
    pub filters: IndexMap<String, Vec<String>>,
    /// Fields that may be filtered.
    pub facets: Vec<String>,
    /// More was chosen than is searched with.
    pub has_too_many: bool,
    /// Page number, from 1.
    pub page: u32,
    /// `q` asks for words, and no input takes any.
    pub is_stray: bool,
}

/// The path of a page.
pub fn home(page: &Page) -> String {
    format!("/r/{}", encode(&page.public_name))
}

/// Where a search is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Page,
    /// In a frame of another site.
    Frame,
}

/// A value as it is read of an address.
pub fn read(value: &str) -> String {
    let letters = value.trim().chars();
    // Lines of what has lines.
    let letters = letters.filter(|c| !c.is_control() || *c == '\n');
    letters.take(LONGEST_VALUE).collect()
}

/// What an address gives, by name, as far as anything is read of it.
fn given(raw: &str) -> IndexMap<String, Vec<String>> {
    let mut given: IndexMap<String, Vec<String>> = IndexMap::new();
    for (name, value) in url::form_urlencoded::parse(raw.as_bytes()).take(MOST_PAIRS) {
        let value = read(&value);
        let values = given.entry(name.into_owned()).or_default();
        // One more than are taken: who gives too many is told.
        if !value.is_empty() && values.len() <= MOST_VALUES && !values.contains(&value) {
            values.push(value);
        }
    }
    given
}

/// The values that an address chooses of the fields that the page offers.
fn filters_of(
    given: &IndexMap<String, Vec<String>>,
    facets: &[String],
) -> IndexMap<String, Vec<String>> {
    let named = given
        .iter()
        .filter_map(|(name, values)| Some((name.strip_prefix("f.")?, values)));
    let offered = named
        .filter(|(field, values)| !values.is_empty() && facets.iter().any(|facet| facet == field));
    let own = offered.map(|(field, values)| (field.to_owned(), values.clone()));
    own.collect()
}

/// What is typed into one field for several values: between commas, or one a line.
fn parts(values: &[String]) -> Vec<String> {
    let parts = values.iter().flat_map(|text| text.split([',', '\n']));
    let mut all: Vec<String> = Vec::new();
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        if all.len() <= MOST_VALUES && !all.iter().any(|one| one == part) {
            all.push(part.to_owned());
        }
    }
    all
}

/// Notes what is to be filled in. A form sends what was left open as nothing: with nothing else in it the page is as it is
/// without it, unless boxes are to be ticked, which browsers let through.
fn note_open(
    inputs: &mut [Input],
    given: &IndexMap<String, Vec<String>>,
    is_asked: bool,
    page: &Page,
) {
    for input in &mut *inputs {
        input.is_left_open = given.get(&input.param).is_some_and(Vec::is_empty);
    }
    let is_unticked = |one: &Input| one.is_left_open && one.config.required && is_boxes(one);
    if is_asked || inputs.iter().any(is_unticked) {
        inputs.iter_mut().for_each(Input::note_left_open);
    }
    if is_asked {
        inputs.iter_mut().for_each(|input| input.note_missing(page));
    }
}

impl Query {
    /// Whether it is shown in a frame of another site.
    pub fn is_framed(&self) -> bool {
        self.path != self.home
    }

    /// Reads the address. Undeclared names are ignored; a filter on a field the page does not offer as a facet is too,
    /// so that nobody can ask about fields they may not see.
    pub fn read(page: &Page, look: &Look, raw: &str, view: View) -> Self {
        let mut given = given(raw);
        let mut inputs = inputs_of(page);
        // `q` is the short name of the first text, so that one address works for every page.
        let words = given.get("q").cloned();
        let first = inputs.iter().find(|input| is_text(input));
        let is_stray = first.is_none() && words.as_ref().is_some_and(|words| !words.is_empty());
        if let Some((first, words)) = first.zip(words) {
            given.entry(first.param.clone()).or_insert(words);
        }
        for input in &mut inputs {
            let values = given.get(&input.param).cloned().unwrap_or_default();
            if accepts(input).is_some() {
                // What stands there under a file's name is what it is called, unless it is kept.
                let held = values.first();
                let held = held.and_then(|name| held::find(&page.public_name, name));
                let held = held.transpose();
                input.error = held.as_ref().err().copied();
                input.file = held.unwrap_or_default();
                continue;
            }
            input.values = match input.is_typed_list() {
                true => parts(&values),
                // What is ticked by itself was there to be unticked.
                false
                    if values.is_empty()
                        && given.contains_key(&input.param)
                        && input.is_ticked() =>
                {
                    vec!["false".to_owned()]
                }
                false => values,
            };
            input.error = match input.is_list() && input.values.len() > MOST_VALUES {
                true => Some(TOO_MANY),
                false => input.typed().err(),
            };
        }
        let facets = if look.filters {
            facets_of(page)
        } else {
            Vec::new()
        };
        let mut filters = filters_of(&given, &facets);
        // What is beyond is not read: nobody is shown what was found by less than they chose.
        let mut pairs = url::form_urlencoded::parse(raw.as_bytes());
        let is_full = |values: &Vec<String>| values.len() > MOST_VALUES;
        let has_too_many = pairs.nth(MOST_PAIRS).is_some() || filters.values().any(is_full);
        let all = filters.values_mut();
        all.for_each(|values| values.truncate(MOST_VALUES));
        let is_asked = !filters.is_empty() || inputs.iter().any(|input| !input.is_empty());
        note_open(&mut inputs, &given, is_asked, page);
        let number = given
            .get("page")
            .and_then(|values| values.first()?.parse().ok())
            .unwrap_or(1);
        let last = (DEEPEST / look.page_size.max(1)).clamp(1, LAST_PAGE);
        let home = home(page);
        Self {
            path: match view {
                View::Page => home.clone(),
                View::Frame => format!("{home}/embed"),
            },
            home,
            inputs,
            filters,
            facets,
            has_too_many,
            page: u32::clamp(number, 1, last),
            is_stray,
        }
    }

    /// Whether anything was asked at all.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.inputs.iter().all(Input::is_empty)
    }

    /// The input that names the document whose like is asked for, where one does.
    pub fn reference(&self) -> Option<&Input> {
        let is_reference =
            |input: &&Input| input.config.field_schema.r#type == Kind::DocumentReference;
        let mut inputs = self.inputs.iter().filter(is_reference);
        inputs.find(|input| !input.is_empty())
    }

    /// Whether the form takes files.
    pub fn takes_files(&self) -> bool {
        self.inputs.iter().any(|input| accepts(input).is_some())
    }

    /// The file that is searched with: no lasting address stands for such a search.
    pub fn file(&self) -> Option<&Upload> {
        self.inputs.iter().find_map(|input| input.file.as_ref())
    }

    /// Takes in a file for the input of this name in the form, or what is wrong with it.
    pub fn attach(&mut self, param: &str, file: Result<Upload, &'static str>) {
        let takes = |input: &&mut Input| input.param == param && accepts(input).is_some();
        if let Some(input) = self.inputs.iter_mut().find(takes) {
            match file {
                Ok(file) => {
                    input.file = Some(file);
                    input.error = None;
                    // By now something is asked.
                    self.inputs.iter_mut().for_each(Input::note_left_open);
                }
                Err(fault) => input.error = Some(fault),
            }
        }
    }

    /// Whether some value cannot be what its input wants, or there are too many.
    pub fn has_errors(&self) -> bool {
        self.has_too_many || self.inputs.iter().any(|input| input.error.is_some())
    }

    /// The search to run.
    pub fn request(&self, page_size: u32) -> SearchRequest {
        let leaves: Vec<Value> = self
            .filters
            .iter()
            .map(|(field, values)| {
                let values = values.iter().flat_map(|value| facet_values(value));
                let values: Vec<Value> = values.collect();
                json!({ "field": field, "operator": "in", "value": values })
            })
            .collect();
        SearchRequest {
            inputs: self.values(|_| true),
            filters: (!leaves.is_empty()).then(|| json!({ "AND": leaves })),
            page: self.page,
            page_size,
            facets: self.facets.clone(),
            is_beside: false,
        }
    }

    /// Values by input name, without files: what is told of a search is short.
    pub fn told(&self) -> Object {
        self.values(|input| input.file.is_none())
    }

    fn values(&self, keep: impl Fn(&Input) -> bool) -> Object {
        self.inputs
            .iter()
            .filter(|input| keep(input))
            .filter_map(|input| Some((input.name.clone(), input.typed().ok()??)))
            .collect()
    }

    /// Texts of the query, for the heading and the marks.
    pub fn words(&self) -> String {
        let texts: Vec<&str> = self
            .inputs
            .iter()
            .filter(|input| is_text(input))
            .map(Input::value)
            .filter(|text| !text.is_empty())
            .collect();
        texts.join(" ")
    }

    /// Address of another page of the same query.
    pub fn at_page(&self, page: u32) -> String {
        self.address(&self.path, |_| true, |_, _| true, page)
    }

    /// Address without one input.
    pub fn without_input(&self, name: &str) -> String {
        self.address(&self.path, |input| input.name != name, |_, _| true, 1)
    }

    /// Address without one value of a filter.
    pub fn without_filter(&self, field: &str, value: &str) -> String {
        self.address(
            &self.path,
            |_| true,
            |name, given| !(name == field && given == value),
            1,
        )
    }

    /// Address without any filter.
    pub fn without_filters(&self) -> String {
        self.address(&self.path, |_| true, |_, _| false, 1)
    }

    /// Address with one more value of a filter.
    pub fn with_filter(&self, field: &str, value: &str) -> String {
        let mut next = self.clone();
        next.filters
            .entry(field.to_owned())
            .or_default()
            .push(value.to_owned());
        next.at_page(1)
    }

    /// Address with one input set and nothing else.
    pub fn only(&self, input: &Input, value: &str) -> String {
        let pairs = [(input.param.clone(), value.to_owned())];
        join(&self.path, &pairs)
    }

    /// The address that others are given: the page itself, also from a frame of another site.
    pub fn shared(&self) -> String {
        let lasts = |input: &Input| input.file.is_none();
        self.address(&self.home, lasts, |_, _| true, self.page)
    }

    /// Address of an item, with the way back to these results where there is one.
    pub fn item(&self, document_id: &str) -> String {
        let path = format!("{}/item/{}", self.home, encode(document_id));
        if self.file().is_some_and(|file| file.held.is_none()) {
            return path;
        }
        self.address(&path, |_| true, |_, _| true, self.page)
    }

    fn address(
        &self,
        path: &str,
        keep_input: impl Fn(&Input) -> bool,
        keep_filter: impl Fn(&str, &str) -> bool,
        page: u32,
    ) -> String {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for input in self.inputs.iter().filter(|input| keep_input(input)) {
            let held = input.file.iter().filter_map(|file| file.held.as_ref());
            let values = input.values.iter().chain(held);
            pairs.extend(values.map(|value| (input.param.clone(), value.clone())));
        }
        for (field, values) in &self.filters {
            let kept = values.iter().filter(|value| keep_filter(field, value));
            pairs.extend(kept.map(|value| (format!("f.{field}"), value.clone())));
        }
        if page > 1 {
            pairs.push(("page".to_owned(), page.to_string()));
        }
        join(path, &pairs)
    }
}

fn join(path: &str, pairs: &[(String, String)]) -> String {
    if pairs.is_empty() {
        return path.to_owned();
    }
    format!("{path}?{}", joined(pairs))
}

/// The pairs as the query of an address.
pub fn joined(pairs: &[(String, String)]) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// One path segment, percent-encoded.
pub fn encode(segment: &str) -> String {
    // The form encoding is right for a segment but for the space.
    url::form_urlencoded::byte_serialize(segment.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

/// What the text of an address may stand for in a document: itself, or the number or the truth value that is written so.
fn facet_values(text: &str) -> Vec<Value> {
    let own = json!(text);
    // As JSON writes it: no other spelling is on a link.
    let other = serde_json::from_str::<Value>(text).ok();
    let other = other.filter(|value| value.is_number() || value.is_boolean());
    [own].into_iter().chain(other).collect()
}

/// Fields offered as facets: those of `extensions.facets`, else the lists and truth values among the exposed ones.
fn facets_of(page: &Page) -> Vec<String> {
    use loupe_wire::FieldFormatType::{Array, Boolean};
    let display = &page.display_config;
    let listed = display
        .extensions
        .as_ref()
        .and_then(|extensions| extensions.get("facets")?.as_array());
    if let Some(listed) = listed {
        return listed
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| display.exposed_fields.iter().any(|field| field == name))
            .map(str::to_owned)
            .take(12)
            .collect();
    }
    display
        .exposed_fields
        .iter()
        .filter(|name| {
            display
                .field_config
                .get(*name)
                .is_some_and(|config| matches!(config.format, Array | Boolean))
        })
        .take(12)
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests;
