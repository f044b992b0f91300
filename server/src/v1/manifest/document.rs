//! A manifest as it is read: its grammar, its parameters, and the resources that it describes.

mod parameters;

use std::collections::{HashMap, HashSet};

use loupe_wire::{ManifestParameterSpec, Object, Value};

use self::parameters::{unfit, unusable};
use super::{
    kinds::Kind,
    placeholders::{self, Of},
    yaml::{self, Text},
};
use crate::{
    body,
    error::{ApiError, Violation},
};

/// The version of the grammar.
pub const VERSION: &str = "1.0";

/// A manifest that works.
pub const EXAMPLE: &str = include_str!("example.yaml");

/// What is told of a parameter without a value.
pub const NEEDS_VALUE: &str = "this parameter needs a value";

/// What is told of names that the server would change.
const BLANKS: &str = "begins or ends with blanks: leave them out";

/// Bytes of a manifest, and resources in it.
pub const MOST_BYTES: usize = 512 << 10;
const MOST_RESOURCES: usize = 500;

/// What is wrong in a manifest, and where.
#[derive(Debug, Clone)]
pub struct Fault {
    pub path: Vec<String>,
    pub kind: String,
    pub message: String,
    pub line: Option<usize>,
}

impl Fault {
    pub fn new(path: &[&str], kind: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.iter().map(|piece| (*piece).to_owned()).collect(),
            kind: kind.into(),
            message: message.into(),
            line: None,
        }
    }

    /// Where it is, as a person looks for it.
    pub fn place(&self) -> String {
        let path = self.path.join(".");
        match (self.line, path.is_empty()) {
            (Some(line), true) => format!("line {line}"),
            (Some(line), false) => format!("line {line}, {path}"),
            (None, true) => "manifest".into(),
            (None, false) => path,
        }
    }

    pub fn sentence(&self) -> String {
        format!("{}: {}", self.place(), self.message)
    }
}

/// The 422 list of faults.
pub fn refuse(faults: Vec<Fault>) -> ApiError {
    let violations = faults.into_iter().map(|fault| {
        let pieces = fault.path.iter().map(String::as_str);
        let path: Vec<&str> = std::iter::once("manifest_file").chain(pieces).collect();
        let message = match fault.line {
            Some(line) => format!("line {line}: {}", fault.message),
            None => fault.message.clone(),
        };
        Violation::body(&path, &fault.kind, message, Value::Null)
    });
    ApiError::Validation(violations.collect())
}

/// A resource that a manifest describes.
#[derive(Debug, Clone)]
pub struct Resource {
    pub kind: Kind,
    pub name: String,
    /// The name of the namespace that it is in; of a namespace, its own.
    pub namespace: String,
    /// Where it stands, such as `buckets.0`.
    pub path: [String; 2],
    /// What is said of it, beside its names.
    pub said: Object,
}

impl Resource {
    /// The path of a part of it.
    pub fn at(&self, inside: &[String]) -> Vec<String> {
        self.path.iter().chain(inside).cloned().collect()
    }
}

/// A manifest, as far as it could be read.
#[derive(Debug, Default)]
pub struct Manifest {
    pub name: Option<String>,
    pub parameters: Vec<ManifestParameterSpec>,
    /// Parameters that some part of it uses.
    pub used: HashSet<String>,
    pub resources: Vec<Resource>,
    pub faults: Vec<Fault>,
    text: Option<Text>,
}

impl Manifest {
    /// Reads a text with the values of its parameters. What is wrong is in `faults`.
    pub fn read(text: &str, values: &Object) -> Self {
        let mut manifest = Self::default();
        if text.len() > MOST_BYTES {
            let message = format!("a manifest has at most {MOST_BYTES} bytes");
            manifest.faults.push(Fault::new(&[], "too_long", message));
            return manifest;
        }
        match yaml::read(text) {
            Ok(text) => {
                let members = text.value.as_object().cloned();
                manifest.text = Some(text);
                match members {
                    Some(members) => manifest.take(members, values),
                    None => manifest.fault(&[], "dict_type", "a manifest is a mapping of sections"),
                }
            }
            Err(fault) => manifest.faults.push(Fault {
                line: Some(fault.line),
                ..Fault::new(&[], "yaml_invalid", fault.message)
            }),
        }
        manifest.find_lines();
        manifest
    }

    fn fault(&mut self, path: &[&str], kind: &str, message: impl Into<String>) {
        self.faults.push(Fault::new(path, kind, message));
    }

    /// Tells the lines of faults that are at a path.
    pub fn find_lines(&mut self) {
        for fault in &mut self.faults {
            let text = self.text.as_ref();
            fault.line = fault
                .line
                .or_else(|| text.and_then(|text| text.line(&fault.path)));
        }
    }

    fn take(&mut self, mut members: Object, values: &Object) {
        let version = members.shift_remove("version");
        let is_known = match &version {
            Some(Value::String(text)) => text == VERSION || text == "1",
            Some(Value::Number(number)) => number.as_f64() == Some(1.0),
            _ => false,
        };
        match version {
            None => self.fault(
                &["version"],
                "missing",
                format!("say version: \"{VERSION}\""),
            ),
            Some(_) if is_known => {}
            Some(_) => {
                let message = format!("this server reads manifests of version {VERSION}");
                self.fault(&["version"], "value_error", message);
            }
        }
        self.take_metadata(members.shift_remove("metadata"));
        self.take_parameters(members.shift_remove("parameters"));
        let values = self.values(values);
        let mut sections = Value::Object(members);
        self.fill(&mut sections, &values);
        if let Value::Object(sections) = sections {
            self.take_sections(sections);
        }
    }

    fn take_metadata(&mut self, sent: Option<Value>) {
        match sent {
            None | Some(Value::Null) => {}
            Some(Value::Object(members)) => {
                let name = members.get("name").and_then(Value::as_str);
                self.name = name.map(str::to_owned);
            }
            Some(_) => self.fault(&["metadata"], "dict_type", "metadata is a mapping"),
        }
    }

    fn take_parameters(&mut self, sent: Option<Value>) {
        let sent = match sent {
            None | Some(Value::Null) => return,
            Some(Value::Array(sent)) => sent,
            Some(_) => return self.fault(&["parameters"], "list_type", "parameters are a list"),
        };
        for (place, one) in sent.into_iter().enumerate() {
            let place = place.to_string();
            match body::from_value::<ManifestParameterSpec>(one, None) {
                Ok(spec) => match unusable(&spec, &self.parameters) {
                    None => self.parameters.push(spec),
                    Some(why) => self.fault(&["parameters", &place], "value_error", why),
                },
                Err(error) => self.take_error(&["parameters".into(), place], error),
            }
        }
    }

    /// Notes the faults of a part.
    pub fn take_error(&mut self, path: &[String], error: ApiError) {
        match error {
            ApiError::Validation(violations) => {
                for violation in violations {
                    let inside = violation.loc.into_iter().skip(1);
                    self.faults.push(Fault {
                        path: path.iter().cloned().chain(inside).collect(),
                        kind: violation.kind,
                        message: violation.msg,
                        line: None,
                    });
                }
            }
            other => self.faults.push(Fault {
                path: path.to_vec(),
                kind: "value_error".into(),
                message: other.message(),
                line: None,
            }),
        }
    }

    /// The value of every parameter: the one that was sent, else its default.
    fn values(&mut self, sent: &Object) -> Object {
        let mut values = Object::new();
        for spec in self.parameters.clone() {
            let value = sent.get(&spec.name).or(spec.default.as_ref());
            let why = match value {
                None if spec.required => Some(NEEDS_VALUE.to_owned()),
                None => None,
                Some(value) => unfit(&spec, value),
            };
            if let Some(why) = why {
                self.fault(&["parameters", &spec.name], "value_error", why);
            }
            values.insert(spec.name, value.cloned().unwrap_or(Value::Null));
        }
        for name in sent.keys().filter(|name| !values.contains_key(*name)) {
            let message = "the manifest has no such parameter";
            self.faults.push(Fault::new(
                &["parameters", name],
                "extra_forbidden",
                message,
            ));
        }
        values
    }

    fn fill(&mut self, sections: &mut Value, values: &Object) {
        let mut open = Vec::new();
        placeholders::names(sections, Of::Parameters, &mut open);
        let sizes = values.iter();
        let sizes: HashMap<&String, usize> = sizes
            .map(|(name, value)| (name, value.to_string().len()))
            .collect();
        let added: usize = open.iter().filter_map(|name| sizes.get(name)).sum();
        self.used = open.into_iter().collect();
        let mut unknown: Vec<&String> = self.used.iter().collect();
        unknown.retain(|name| !values.contains_key(*name));
        unknown.sort();
        let faults = unknown.into_iter().map(|name| {
            let message = format!("a part names the parameter '{name}', which is not declared");
            Fault::new(&["parameters"], "value_error", message)
        });
        self.faults.extend(faults);
        // A value may be long, and stand in many places.
        let weighed = match added > MOST_BYTES {
            true => Err(format!(
                "the values that are filled in have at most {MOST_BYTES} bytes in all"
            )),
            false => {
                placeholders::fill(sections, Of::Parameters, values);
                yaml::weigh(sections)
            }
        };
        if let Err(message) = weighed {
            self.fault(&[], "too_long", message);
            *sections = Value::Null;
        }
    }

    fn take_sections(&mut self, mut sections: Object) {
        let mut found = Vec::new();
        for kind in Kind::ALL {
            match sections.shift_remove(kind.section()) {
                None | Some(Value::Null) => {}
                Some(Value::Array(items)) => found.extend(
                    items
                        .into_iter()
                        .enumerate()
                        .map(|(place, item)| (kind, place, item)),
                ),
                Some(_) => self.fault(&[kind.section()], "list_type", "a section is a list"),
            }
        }
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.section()).collect();
        for name in sections.keys() {
            let message = format!("there is no such section; there are {}", known.join(", "));
            self.faults
                .push(Fault::new(&[name], "extra_forbidden", message));
        }
        if found.len() > MOST_RESOURCES {
            let message = format!("a manifest has at most {MOST_RESOURCES} resources");
            return self.fault(&[], "too_long", message);
        }
        let only = only_namespace(&found);
        for (kind, place, item) in found {
            self.take_resource(kind, place, item, only.as_deref());
        }
    }

    fn take_resource(&mut self, kind: Kind, place: usize, item: Value, only: Option<&str>) {
        let path = [kind.section().to_owned(), place.to_string()];
        let Value::Object(mut said) = item else {
            let message = "a resource is a mapping of its members";
            return self.fault(&[&path[0], &path[1]], "dict_type", message);
        };
        let (name, namespace) = match names(kind, &mut said, only) {
            Ok(names) => names,
            Err(fault) => {
                let path = path.iter().cloned().chain(fault.path).collect();
                return self.faults.push(Fault { path, ..fault });
            }
        };
        if kind == Kind::Bucket
            && let Some(schema) = said.shift_remove("schema")
        {
            said.entry("bucket_schema").or_insert(schema);
        }
        said.retain(|_, member| !member.is_null());
        let twin = self
            .resources
            .iter()
            .find(|one| (one.kind, &one.name, &one.namespace) == (kind, &name, &namespace));
        if let Some(twin) = twin {
            let message = format!("{} is called the same", twin.path.join("."));
            return self.fault(&[&path[0], &path[1], "name"], "value_error", message);
        }
        match checked(kind, &name, &said) {
            Ok(said) => self.resources.push(Resource {
                kind,
                name,
                namespace,
                path,
                said,
            }),
            Err(error) => self.take_error(&path, error),
        }
    }
}

/// What is said of a resource, if it may be said.
fn checked(kind: Kind, name: &str, said: &Object) -> Result<Object, ApiError> {
    let members = kind.members();
    let unknown = said.keys().filter(|name| !members.contains(name));
    let violations: Vec<Violation> = unknown
        .map(|name| {
            let msg = format!(
                "a {} has no such member; it has {}",
                kind.name(),
                members.join(", ")
            );
            Violation::body(&[name], "extra_forbidden", msg, Value::Null)
        })
        .collect();
    if !violations.is_empty() {
        return Err(ApiError::Validation(violations));
    }
    let mut said = kind.check(name, said)?;
    let source = said.get_mut("source").and_then(Value::as_object_mut);
    if let (Kind::Collection, Some(source)) = (kind, source) {
        // As the server keeps it.
        if let (Some(one), false) = (
            source.get("collection_id").cloned(),
            source.contains_key("collection_ids"),
        ) {
            source.shift_remove("collection_id");
            source.insert("collection_ids".into(), vec![one].into());
        }
    }
    Ok(said)
}

/// The one namespace that a manifest describes, if it is one.
fn only_namespace(found: &[(Kind, usize, Value)]) -> Option<String> {
    let mut all = found.iter().filter(|(kind, ..)| *kind == Kind::Namespace);
    let (Some((.., only)), None) = (all.next(), all.next()) else {
        return None;
    };
    let name = only.get("name").or_else(|| only.get("namespace_name"))?;
    name.as_str().map(str::to_owned)
}

/// The name of a resource, and that of its namespace.
fn names(kind: Kind, said: &mut Object, only: Option<&str>) -> Result<(String, String), Fault> {
    let name = take_text(said, "name").or_else(|| take_text(said, kind.name_member()));
    let Some(name) = name else {
        return Err(Fault::new(&["name"], "missing", "give it a name"));
    };
    if !kind.keeps_blanks() && has_blanks(&name) {
        let message = format!("a {} has no name that {BLANKS}", kind.name());
        return Err(Fault::new(&["name"], "value_error", message));
    }
    if kind == Kind::Namespace {
        return Ok((name.clone(), name));
    }
    match (take_text(said, "namespace"), only) {
        (Some(named), _) if has_blanks(&named) => {
            let message = format!("a namespace has no name that {BLANKS}");
            Err(Fault::new(&["namespace"], "value_error", message))
        }
        (Some(named), _) => Ok((name, named)),
        (None, Some(only)) => Ok((name, only.to_owned())),
        (None, None) => {
            let message = "name the namespace that it is in";
            Err(Fault::new(&["namespace"], "missing", message))
        }
    }
}

fn has_blanks(name: &str) -> bool {
    name.trim() != name
}

/// A text as it is written: names that differ by blanks are different ones.
fn take_text(members: &mut Object, name: &str) -> Option<String> {
    match members.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => {
            let text = text.clone();
            members.shift_remove(name);
            Some(text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
