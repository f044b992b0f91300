//! What the wire types check of what is sent, and what they take for what is left out, told with their members. It is read in
//! their sources: what is told is what is checked, and a limit is written once. Numbers of queries have their limits in words,
//! which are told in figures too.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use loupe_wire::Value;
use serde_json::json;
use utoipa::{
    Number,
    openapi::{
        OpenApi, RefOr, Schema,
        schema::{AllOfBuilder, Object},
    },
};

use super::made::operations;

/// The sources of the wire types, one after the other, as the build script found them.
const SOURCES: &str = include_str!(concat!(env!("OUT_DIR"), "/wire.txt"));

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// A member of a wire type.
#[derive(Debug, Default)]
struct Member {
    name: String,
    /// As the source has it.
    kind: String,
    /// Whether limits of what it holds are checked too.
    nested: bool,
    /// Least and most: of the number, the characters, the items.
    least: Option<f64>,
    most: Option<f64>,
    pattern: Option<String>,
    /// What is taken where it is left out, as the source has it.
    default: Option<String>,
}

/// Members of wire types, by the types' names.
static TYPES: LazyLock<BTreeMap<String, Vec<Member>>> = LazyLock::new(types);

fn types() -> BTreeMap<String, Vec<Member>> {
    let (mut types, mut current) = (BTreeMap::<String, Vec<Member>>::new(), None);
    let mut attributes = String::new();
    for line in SOURCES.lines() {
        let text = line.trim();
        if let Some(rest) = line.strip_prefix("pub struct ") {
            let name = rest.split(|char: char| !char.is_alphanumeric()).next();
            current = text
                .ends_with('{')
                .then(|| name.unwrap_or_default().to_owned());
            attributes.clear();
        } else if line == "}" {
            current = None;
        } else if text.starts_with("//") {
            // Words for people.
        } else if let (Some(of), Some(rest)) = (&current, text.strip_prefix("pub ")) {
            if let Some((name, kind)) = rest.split_once(": ") {
                let member = member(name, kind, &attributes);
                types.entry(of.clone()).or_default().push(member);
            }
            attributes.clear();
        } else if current.is_some() {
            attributes += text;
        }
    }
    types
}

fn member(name: &str, kind: &str, attributes: &str) -> Member {
    let part = |before: &str, after: &str| between(attributes, before, after);
    let bounds = part("range(", ")").or_else(|| part("length(", ")"));
    let bounds = bounds.unwrap_or_default();
    let bound = |name: &str| {
        let mut bounds = bounds.split(',').filter_map(|bound| bound.split_once('='));
        let (_, figure) = bounds.find(|(found, _)| found.trim() == name)?;
        figure.trim().replace('_', "").parse().ok()
    };
    let plain = attributes.contains("serde(default,") || attributes.contains("serde(default)");
    let kind = kind.trim_end_matches(',');
    Member {
        name: part("rename = \"", "\"")
            .unwrap_or(name.trim_start_matches("r#"))
            .to_owned(),
        nested: attributes.contains("nested"),
        least: bound("min"),
        most: bound("max"),
        pattern: part("crate::patterns::", ")").and_then(pattern),
        default: part("default = \"crate::defaults::", "\"")
            .and_then(default)
            .or_else(|| (plain && kind == "bool").then(|| "false".to_owned())),
        kind: kind.to_owned(),
    }
}

/// What stands between two words.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(between, _)| between)
}

/// The text of a pattern of the wire types.
fn pattern(name: &str) -> Option<String> {
    let (_, rest) = SOURCES.split_once(&format!("pub static {name}:"))?;
    between(rest, "Regex::new(r\"", "\")").map(ToOwned::to_owned)
}

/// What a function of the defaults answers, as its source has it.
fn default(name: &str) -> Option<String> {
    let line = SOURCES.lines().find_map(|line| {
        let rest = line.trim().strip_prefix(name)?;
        rest.starts_with([':', ' ']).then_some(rest)
    });
    let (_, value) = line?.split_once(" = ")?;
    Some(value.trim_end_matches(';').to_owned())
}

/// The types that are read of bodies, with those that they hold: those that are checked, or all of them.
fn sent(document: &OpenApi, checked: bool) -> BTreeSet<&'static str> {
    let described = serde_json::to_value(&document.paths).unwrap_or_default();
    let operations = described.as_object().into_iter().flatten();
    let operations = operations.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    let bodies = operations.map(|(_, operation)| operation["requestBody"].to_string());
    let bodies = bodies.collect::<String>();
    let named = |name: &str| bodies.contains(&format!("#/components/schemas/{name}\""));
    let mut waiting: Vec<&str> = (TYPES.keys().map(String::as_str))
        .filter(|name| named(name))
        .collect();
    let mut found = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        if !found.insert(name) {
            continue;
        }
        for member in TYPES[name]
            .iter()
            .filter(|member| member.nested || !checked)
        {
            let words = member.kind.split(|char: char| !char.is_alphanumeric());
            let held = words.filter_map(|word| TYPES.get_key_value(word));
            waiting.extend(held.map(|(name, _)| name.as_str()));
        }
    }
    found
}

/// Tells limits and defaults with the members of what is sent.
pub(super) fn add(document: &mut OpenApi) {
    let (checked, all) = (sent(document, true), sent(document, false));
    let Some(components) = document.components.as_mut() else {
        return;
    };
    let known = components.schemas.clone();
    for name in all {
        let Some(RefOr::T(schema)) = components.schemas.get_mut(name) else {
            continue;
        };
        for member in &TYPES[name] {
            let Some(property) = property(schema, &member.name) else {
                continue;
            };
            if checked.contains(name) {
                limit(member, property);
            }
            if let Some(value) = member
                .default
                .as_deref()
                .and_then(|text| value(text, &known))
            {
                take(value, property);
            }
        }
    }
}

/// Tells the limits of numbers that queries take.
pub(super) fn add_of_queries(document: &mut OpenApi) {
    let items = document.paths.paths.values_mut();
    for item in items {
        for (_, operation) in operations(item) {
            for parameter in operation.parameters.iter_mut().flatten() {
                if let RefOr::T(parameter) = parameter
                    && let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
                    && is_number(schema)
                {
                    let about = parameter.description.as_deref().unwrap_or_default();
                    let said = Said::of(about);
                    schema.minimum = schema.minimum.take().or(said.least.map(number));
                    schema.maximum = schema.maximum.take().or(said.most.map(number));
                    schema.default = schema.default.take().or(said.default.map(figure));
                }
            }
        }
    }
}

fn is_number(schema: &Object) -> bool {
    let kind = json!(schema.schema_type).to_string();
    kind.contains("integer") || kind.contains("number")
}

fn is_text(schema: &Object) -> bool {
    json!(schema.schema_type).to_string().contains("string")
}

/// What words say of a number: `1 to 1000, default 50`, `from 0`.
#[derive(Debug, Default, PartialEq)]
struct Said {
    least: Option<f64>,
    most: Option<f64>,
    default: Option<f64>,
}

impl Said {
    fn of(words: &str) -> Self {
        let words = words.to_lowercase();
        let words = words.split_whitespace();
        let words: Vec<&str> = words
            .map(|word| word.trim_matches([',', '.', ';', ':']))
            .collect();
        let mut said = Self::default();
        for two in words.windows(2) {
            let after = two[1].parse().ok();
            match two[0] {
                "from" => said.least = said.least.or(after),
                "default" => said.default = said.default.or(after),
                _ => {}
            }
        }
        for three in words.windows(3) {
            if let ([_, "to", _], Ok(least), Ok(most)) = (three, three[0].parse(), three[2].parse())
            {
                (said.least, said.most) = (said.least.or(Some(least)), said.most.or(Some(most)));
            }
        }
        said
    }
}

/// A member of a type, or of a part of it.
fn property<'s>(schema: &'s mut Schema, name: &str) -> Option<&'s mut RefOr<Schema>> {
    match schema {
        Schema::Object(object) => object.properties.get_mut(name),
        Schema::AllOf(all) => all.items.iter_mut().find_map(|part| match part {
            RefOr::T(Schema::Object(object)) => object.properties.get_mut(name),
            _ => None,
        }),
        _ => None,
    }
}

fn limit(member: &Member, property: &mut RefOr<Schema>) {
    // What the type itself says of a member stays: some are checked by rules.
    fn set<T>(place: &mut Option<T>, bound: Option<T>) {
        if bound.is_some() {
            *place = bound;
        }
    }
    let size = |bound: Option<f64>| bound.map(|bound| bound as usize);
    let (least, most) = (member.least, member.most);
    match property {
        RefOr::T(Schema::Array(array)) => {
            set(&mut array.min_items, size(least));
            set(&mut array.max_items, size(most));
        }
        RefOr::T(Schema::Object(object)) if is_number(object) => {
            set(&mut object.minimum, least.map(number));
            set(&mut object.maximum, most.map(number));
        }
        RefOr::T(Schema::Object(object)) if is_text(object) => {
            set(&mut object.min_length, size(least));
            set(&mut object.max_length, size(most));
            set(&mut object.pattern, member.pattern.clone());
        }
        RefOr::T(Schema::Object(object)) => {
            set(&mut object.min_properties, size(least));
            set(&mut object.max_properties, size(most));
        }
        _ => {}
    }
}

/// A bound as the description has it: whole where it is.
fn number(bound: f64) -> Number {
    match bound.fract() == 0.0 && bound.abs() < 1e15 {
        true => Number::Int(bound as isize),
        false => Number::Float(bound),
    }
}

/// The same as a value.
fn figure(bound: f64) -> Value {
    json!(number(bound))
}

/// Tells what is taken for a member that is left out.
fn take(value: Value, property: &mut RefOr<Schema>) {
    match property {
        RefOr::T(Schema::Object(object)) => object.default = Some(value),
        RefOr::T(Schema::Array(array)) => array.default = Some(value),
        RefOr::T(Schema::OneOf(one)) => one.default = Some(value),
        // A reference says nothing else: it becomes a part of what does.
        RefOr::Ref(reference) => {
            let about = Some(reference.description.clone()).filter(|about| !about.is_empty());
            reference.description.clear();
            let all = AllOfBuilder::new()
                .item(RefOr::Ref(reference.clone()))
                .description(about)
                .default(Some(value));
            *property = RefOr::T(Schema::AllOf(all.build()));
        }
        RefOr::T(_) => {}
    }
}

/// A value that the source has, as JSON has it.
fn value(text: &str, schemas: &Schemas) -> Option<Value> {
    let digits = text.replace('_', "");
    if let Ok(value) = serde_json::from_str(text).or_else(|_| serde_json::from_str(&digits)) {
        return Some(value);
    }
    // crate::UserRole::Member
    let (name, case) = text.strip_prefix("crate::")?.split_once("::")?;
    let RefOr::T(Schema::Object(object)) = schemas.get(name)? else {
        return None;
    };
    let plain = |text: &str| text.replace(['_', '-', ' '], "").to_lowercase();
    let words = object.enum_values.iter().flatten();
    let mut words = words.filter(|word| word.as_str().map(plain) == Some(plain(case)));
    words.next().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-40: what is sent can be made of the description alone.
    #[test]
    fn limits_that_are_checked_are_described() {
        let document = super::super::document();
        let checked = sent(&document, true);
        assert!(checked.len() > 100, "{} types are sent", checked.len());
        let described = serde_json::to_value(&document).unwrap();
        let mut count = 0;
        for name in checked {
            let schema = &described["components"]["schemas"][name];
            let parts = schema["allOf"]
                .as_array()
                .into_iter()
                .flatten()
                .chain([schema]);
            let parts: Vec<&Value> = parts.collect();
            for member in &TYPES[name] {
                let limits = (member.least, member.most, &member.pattern);
                if limits == (None, None, &None) {
                    continue;
                }
                let mut told = parts.iter().map(|part| &part["properties"][&member.name]);
                let told = told.find(|told| told.is_object());
                let told =
                    told.unwrap_or_else(|| panic!("{name}.{} is not described", member.name));
                let figure = |names: [&str; 3]| names.iter().find_map(|name| told[name].as_f64());
                let pair = (
                    figure(["minimum", "minLength", "minItems"]).or(told["minProperties"].as_f64()),
                    figure(["maximum", "maxLength", "maxItems"]).or(told["maxProperties"].as_f64()),
                );
                assert_eq!(
                    pair,
                    (member.least, member.most),
                    "{name}.{}: {told}",
                    member.name
                );
                assert_eq!(
                    told["pattern"].as_str(),
                    member.pattern.as_deref(),
                    "{name}.{}",
                    member.name
                );
                count += 1;
            }
        }
        assert!(count > 200, "{count} members have limits");
    }

    #[test]
    fn numbers_of_queries_have_their_limits_in_figures() {
        let said = Said::of("Page size, 1 to 1000, default 50; wins over `page_size`.");
        assert_eq!(
            said,
            Said {
                least: Some(1.0),
                most: Some(1000.0),
                default: Some(50.0)
            }
        );
        assert_eq!(
            Said::of("From 0."),
            Said {
                least: Some(0.0),
                ..Said::default()
            }
        );
        // A moment has none.
        const BARE: [&str; 1] = ["expires"];
        let described = serde_json::to_value(super::super::document()).unwrap();
        let mut count = 0;
        for (path, item) in described["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    let kind = parameter["schema"]["type"].to_string();
                    let name = parameter["name"].as_str().unwrap_or_default();
                    let asks = parameter["in"] == "query" && !BARE.contains(&name);
                    if asks && (kind.contains("integer") || kind.contains("number")) {
                        assert!(
                            parameter["schema"]["minimum"].is_number(),
                            "{method} {path} {name}: {parameter}"
                        );
                        count += 1;
                    }
                }
            }
        }
        assert!(count > 150, "{count} numbers");
    }

    #[test]
    fn what_is_left_out_is_told() {
        let described = serde_json::to_value(super::super::document()).unwrap();
        let member = |name: &str, member: &str| {
            described["components"]["schemas"][name]["properties"][member].clone()
        };
        let role = member("UserCreateRequest", "role");
        assert_eq!(
            (&role["default"], role["allOf"][0]["$ref"].is_string()),
            (&json!("member"), true)
        );
        let name = member("APIKeyCreateRequest", "name");
        assert_eq!(
            (&name["minLength"], &name["maxLength"]),
            (&json!(1), &json!(100))
        );
        let note = member("APIKeyCreateRequest", "note");
        assert_eq!(
            (&note["minLength"], &note["maxLength"]),
            (&Value::Null, &json!(500))
        );
        let cap = member("APIKeyCreateRequest", "rate_limit_override");
        assert_eq!(
            (&cap["minimum"], &cap["maximum"]),
            (&json!(1), &Value::Null)
        );
        let limit = member("ListTriggersRequest", "limit");
        assert_eq!(
            (&limit["default"], &limit["minimum"], &limit["maximum"]),
            (&json!(50), &json!(1), &json!(1000))
        );
    }
}
