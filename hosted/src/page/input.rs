//! The fields of a page's search form: what the owner declared, or what the retriever's inputs imply.

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use loupe_wire::{
    InputRenderingConfig, RetrieverInputSchemaField, RetrieverInputSchemaFieldType as Kind, Value,
};
use serde_json::json;

use super::{query, text::capitalized};
use crate::Page;

/// Names the page itself uses, and those of a form's own members, which a control of that name would hide from the script; an
/// input of that name gets `input.` before it.
const RESERVED: [&str; 8] = [
    "page", "q", "nonce", "embed", "action", "append", "dataset", "elements",
];

/// What is said of boxes of which one has to be ticked.
pub const CHOOSE: &str = "Choose at least one.";

/// A file of a visitor.
#[derive(Debug, Clone)]
pub struct Upload {
    /// What it is called on the visitor's machine.
    pub name: String,
    /// Its content as retrievers take files: an address of the scheme `data`.
    pub data: String,
    /// What addresses call it while it is kept; script sends it along instead.
    pub held: Option<String>,
}

/// One field of the search form.
#[derive(Debug, Clone)]
pub struct Input {
    /// Name in the retriever's inputs.
    pub name: String,
    /// Name in the address.
    pub param: String,
    /// How it is drawn.
    pub config: InputRenderingConfig,
    /// Values a choice offers.
    pub options: Vec<String>,
    /// What it has where nobody gives anything, as addresses have it.
    pub default: Vec<String>,
    /// The retriever knows no such default: the page has to say it.
    is_own_default: bool,
    /// What the visitor gave, one or several.
    pub values: Vec<String>,
    /// The file that the visitor sent.
    pub file: Option<Upload>,
    /// A form was sent without it.
    pub is_left_open: bool,
    /// What is wrong with it.
    pub error: Option<&'static str>,
}

impl Input {
    /// First value, or nothing.
    pub fn value(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }

    /// What its field holds: what the visitor gave, else what it has by itself.
    pub fn held(&self) -> &[String] {
        match self.is_empty() {
            true => &self.default,
            false => &self.values,
        }
    }

    /// What stands in its field: all its values, where they are typed one beside the other.
    pub fn text(&self) -> String {
        one_text(self.is_typed_list(), self.held())
    }

    /// What stands there by itself.
    pub fn default_text(&self) -> Option<String> {
        let is_some = !self.default.is_empty();
        is_some.then(|| one_text(self.is_typed_list(), &self.default))
    }

    /// Whether it is a box to tick that is ticked by itself.
    pub fn is_ticked(&self) -> bool {
        self.config.field_schema.r#type == Kind::Boolean && self.default == ["true"]
    }

    /// Whether the visitor gave nothing.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.file.is_none()
    }

    /// Whether the retriever does not search without it.
    pub fn is_needed(&self, page: &Page) -> bool {
        let schema = page.input_schema.get(&self.name);
        let is_open =
            schema.is_some_and(|schema| schema.required == Some(true) && schema.default.is_none());
        is_open && self.default.is_empty()
    }

    /// A search that lacks what its retriever needs is not run: the form says what is missing.
    pub fn note_missing(&mut self, page: &Page) {
        if self.is_needed(page) && self.is_empty() && self.error.is_none() {
            self.error = Some("Fill this in.");
        }
    }

    /// A form that was sent without what its owner wants filled in is not searched with, whatever its browser let through.
    pub fn note_left_open(&mut self) {
        let has_own = !self.default.is_empty();
        let optional = !self.config.required || accepts(self).is_some() || has_own;
        if !self.is_left_open || optional || !self.is_empty() || self.error.is_some() {
            return;
        }
        let is_chosen = is_boxes(self);
        self.error = Some(if is_chosen { CHOOSE } else { "Fill this in." });
    }

    pub fn is_list(&self) -> bool {
        self.config.field_schema.r#type == Kind::Array
    }

    /// Whether it is a list of what the visitor types, one beside the other in one field.
    pub fn is_typed_list(&self) -> bool {
        self.is_list() && self.options.is_empty()
    }

    /// Whether a value is none of those that its schema names.
    fn is_outside(&self, values: &[String]) -> bool {
        let named = offered(&self.config.field_schema);
        let named: Vec<String> = named.iter().map(|value| query::read(value)).collect();
        !named.is_empty() && values.iter().any(|value| !named.contains(value))
    }

    /// Its values as the retriever takes them, or what is wrong with them.
    pub fn typed(&self) -> Result<Option<Value>, &'static str> {
        if let Some(file) = &self.file {
            return Ok(Some(json!(file.data)));
        }
        let values = match self.values.is_empty() && self.is_own_default {
            true => &self.default,
            false => &self.values,
        };
        let Some(first) = values.first() else {
            return Ok(None);
        };
        if self.is_outside(values) {
            return Err("Choose one that is offered.");
        }
        let schema = &self.config.field_schema;
        if self.is_list() {
            let kind = schema
                .items
                .as_ref()
                .map_or(Kind::String, |items| items.r#type);
            let values: Result<Vec<Value>, _> =
                values.iter().map(|value| typed(value, kind)).collect();
            return values.map(|values| Some(Value::Array(values)));
        }
        typed(first, schema.r#type).map(Some)
    }
}

fn one_text(is_list: bool, values: &[String]) -> String {
    match is_list {
        true => values.join(", "),
        false => values.first().cloned().unwrap_or_default(),
    }
}

fn typed(text: &str, kind: Kind) -> Result<Value, &'static str> {
    match kind {
        Kind::Integer => text
            .trim()
            .parse::<i64>()
            .map(Value::from)
            .map_err(|_| "Enter a whole number."),
        Kind::Number | Kind::Float => text
            .trim()
            .parse::<f64>()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map(Value::Number)
            .ok_or("Enter a number."),
        Kind::Boolean => Ok(json!(matches!(text, "true" | "on" | "1" | "yes"))),
        Kind::Date => day(text).map(|_| json!(text)).ok_or("Enter a date."),
        Kind::Datetime => moment(text).map(|text| json!(text)).ok_or("Enter a date."),
        Kind::Object => serde_json::from_str::<Value>(text)
            .ok()
            .filter(Value::is_object)
            .ok_or("Write this as a JSON object, such as {\"name\": 1}."),
        _ => Ok(json!(text)),
    }
}

fn day(text: &str) -> Option<NaiveDate> {
    text.parse().ok()
}

/// A moment as retrievers take it. Browsers tell a day, or a day and a time without a zone: that of the server's times.
fn moment(text: &str) -> Option<String> {
    if DateTime::parse_from_rfc3339(text).is_ok() {
        return Some(text.to_owned());
    }
    let moment = day(text)
        .and_then(|day| day.and_hms_opt(0, 0, 0))
        .or_else(|| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").ok())
        .or_else(|| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S").ok())?;
    Some(moment.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Whether an input takes free text.
pub fn is_text(input: &Input) -> bool {
    matches!(
        input.config.input_type.as_str(),
        "text" | "textarea" | "search" | ""
    ) && matches!(input.config.field_schema.r#type, Kind::String | Kind::Text)
}

/// Whether an input is chosen from a list: what its schema does not name, its suggestions do.
pub fn is_choice(config: &InputRenderingConfig) -> bool {
    matches!(config.input_type.as_str(), "select" | "multiselect")
}

/// Whether an input is drawn as boxes to tick, of which browsers can require none.
pub fn is_boxes(input: &Input) -> bool {
    input.config.input_type == "multiselect" && !input.options.is_empty()
}

/// The kinds of files that an input takes, as `accept` names them (any file where it is empty); none where it takes no
/// file.
pub fn accepts(input: &Input) -> Option<&'static str> {
    let drawn = input.config.input_type.as_str();
    match input.config.field_schema.r#type {
        // The owner wants addresses typed.
        _ if drawn == "url" => None,
        Kind::Image => Some("image/*"),
        Kind::Audio => Some("audio/*"),
        Kind::Video => Some("video/*"),
        Kind::Pdf => Some("application/pdf"),
        Kind::Excel => Some(".xlsx,.xls,.csv"),
        Kind::String | Kind::Text if drawn == "image" => Some("image/*"),
        Kind::String | Kind::Text if drawn == "file" => Some(""),
        _ => None,
    }
}

/// The form of a page, nothing filled in.
pub fn inputs_of(page: &Page) -> Vec<Input> {
    let mut configs = page.display_config.inputs.clone();
    if configs.is_empty() {
        configs = page
            .input_schema
            .iter()
            .map(|(name, schema)| implied(name, schema))
            .collect();
    }
    // Only what the retriever declares may be asked.
    configs.retain(|config| {
        page.input_schema.is_empty() || page.input_schema.contains_key(&config.field_name)
    });
    configs.sort_by_key(|config| config.order);
    let inputs = configs.into_iter();
    inputs.map(|config| input_of(page, config)).collect()
}

/// One field of the form, nothing filled in.
fn input_of(page: &Page, mut config: InputRenderingConfig) -> Input {
    let schema = &config.field_schema;
    // Lists of what nobody names are typed.
    let is_typed = schema.r#type == Kind::Array && offered(schema).is_empty();
    if matches!(config.input_type.as_str(), "text" | "") && !is_typed {
        drawn_as(schema).clone_into(&mut config.input_type);
    }
    let name = config.field_name.clone();
    let taken =
        RESERVED.contains(&name.as_str()) || name.starts_with("f.") || name.starts_with("input.");
    let param = match taken {
        true => format!("input.{name}"),
        false => name.clone(),
    };
    let mut options = offered(&config.field_schema);
    if options.is_empty() && is_choice(&config) {
        options = config.suggestions.clone().unwrap_or_default();
    }
    let known = page.input_schema.get(&name);
    let known = known.and_then(|schema| schema.default.as_ref());
    let told = config.field_schema.default.as_ref().or(known);
    let mut input = Input {
        default: told.map(as_values).unwrap_or_default(),
        is_own_default: told != known,
        name,
        param,
        config,
        options,
        values: Vec::new(),
        file: None,
        is_left_open: false,
        error: None,
    };
    // A file is chosen by whoever searches with it.
    if accepts(&input).is_some() {
        input.default.clear();
    }
    input
}

/// A value of a schema, as addresses have it: one or several.
fn as_values(value: &Value) -> Vec<String> {
    let all: Vec<String> = match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().map(as_value).collect(),
        one => vec![as_value(one)],
    };
    let all = all.iter().map(|text| query::read(text));
    all.filter(|text| !text.is_empty()).collect()
}

fn as_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The values that a schema names, as addresses have them.
fn offered(schema: &RetrieverInputSchemaField) -> Vec<String> {
    let own = schema.r#enum.as_ref();
    let of_items = schema
        .items
        .as_ref()
        .and_then(|items| items.r#enum.as_ref());
    own.or(of_items)
        .into_iter()
        .flatten()
        .map(as_value)
        .collect()
}

/// The `input_type` of an input whose owner names none.
pub fn drawn_as(schema: &RetrieverInputSchemaField) -> &'static str {
    match schema.r#type {
        Kind::Array => "multiselect",
        _ if schema.r#enum.as_ref().is_some_and(|all| !all.is_empty()) => "select",
        Kind::Number | Kind::Integer | Kind::Float => "number",
        Kind::Boolean => "boolean",
        Kind::Date | Kind::Datetime => "date",
        Kind::Image | Kind::Audio | Kind::Video | Kind::Pdf | Kind::Excel => "file",
        Kind::Object => "textarea",
        _ => "text",
    }
}

/// Drawing of an input the owner did not configure.
fn implied(name: &str, schema: &RetrieverInputSchemaField) -> InputRenderingConfig {
    let input_type = drawn_as(schema);
    let label = capitalized(&name.replace(['_', '-'], " "));
    InputRenderingConfig {
        field_name: name.to_owned(),
        field_schema: schema.clone(),
        input_type: input_type.to_owned(),
        label,
        required: schema.required.unwrap_or(false),
        ..Default::default()
    }
}
