//! Where resources name each other: by names in a manifest, by ids inside the server.

use std::collections::HashMap;

use loupe_wire::{Object, Value};

use super::kinds::Kind;

/// Members that hold what callers keep there, whatever its members are called.
const FREE: [&str; 6] = [
    "metadata",
    "bucket_schema",
    "input_schema",
    "document_schema",
    "inputs",
    "display_config",
];

/// The types of what is named: those of manifests, and those of the organization that a manifest only names.
const CONNECTION: &str = "connection";
const WEBHOOK: &str = "webhook";

/// What the ids of each type begin with.
const PREFIXES: [(&str, &str); 10] = [
    ("namespace", "ns_"),
    ("bucket", "bkt_"),
    ("collection", "col_"),
    ("retriever", "ret_"),
    ("taxonomy", "tax_"),
    ("cluster", "clust_"),
    ("alert", "alt_"),
    ("trigger", "trg_"),
    (CONNECTION, "conn_"),
    (WEBHOOK, "wh_"),
];

/// One place where a resource names another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// From the resource, such as `source.bucket_ids.0`.
    pub path: Vec<String>,
    /// The type of what is named.
    pub to: &'static str,
    pub name: String,
    /// A value in a filter: whatever it is, it may stand there.
    pub loose: bool,
}

impl Reference {
    /// The member of the resource that it is in.
    pub fn member(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// Whether it is an id that only one installation has.
    pub fn is_id(&self) -> bool {
        let prefix = PREFIXES.iter().find(|(kind, _)| *kind == self.to);
        prefix.is_some_and(|(_, prefix)| {
            let rest = self.name.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.len() >= 16 && rest.chars().all(char::is_alphanumeric))
        })
    }
}

/// Ids by type and name, and names by id.
#[derive(Debug, Clone, Default)]
pub struct Names {
    ids: HashMap<(&'static str, String), String>,
    names: HashMap<String, String>,
}

impl Names {
    pub fn add(&mut self, kind: &'static str, id: &str, name: &str) {
        self.ids.insert((kind, name.to_owned()), id.to_owned());
        self.names.insert(id.to_owned(), name.to_owned());
    }

    pub fn add_connection(&mut self, id: &str, name: &str) {
        self.add(CONNECTION, id, name);
    }

    pub fn add_webhook(&mut self, id: &str, name: &str) {
        self.add(WEBHOOK, id, name);
    }

    /// The id of what is named by its name or its id.
    pub fn id(&self, kind: &'static str, name: &str) -> Option<&String> {
        let key = (kind, name.to_owned());
        self.ids
            .get(&key)
            .or_else(|| self.names.get_key_value(name).map(|(id, _)| id))
    }

    /// Puts ids in place of names.
    pub fn to_ids(&self, members: &mut Object) {
        rename(members, &mut |to, name, _| self.id(to, name).cloned());
    }

    /// Puts names in place of ids.
    pub fn to_names(&self, members: &mut Object) {
        rename(members, &mut |_, id, _| self.names.get(id).cloned());
    }
}

/// Every place where a resource names another.
pub fn of(members: &Object) -> Vec<Reference> {
    let mut found = Vec::new();
    rename(&mut members.clone(), &mut |to, name, (path, loose)| {
        found.push(Reference {
            path: path.to_vec(),
            to,
            name: name.to_owned(),
            loose,
        });
        None
    });
    found
}

/// What is asked of each reference: its type, its text, where it stands and whether anything may stand there. An answer takes
/// its place.
type Visit<'v> = &'v mut dyn FnMut(&'static str, &str, (&[String], bool)) -> Option<String>;

fn rename(members: &mut Object, visit: Visit<'_>) {
    for (name, member) in members.iter_mut() {
        if FREE.contains(&name.as_str()) {
            continue;
        }
        let mut path = vec![name.clone()];
        match to(name) {
            Some(kind) => named(member, (kind, kind == WEBHOOK), &mut path, visit),
            None => walk(member, &mut path, visit),
        }
    }
}

/// What a member of this name refers to.
fn to(member: &str) -> Option<&'static str> {
    // A channel of an alert is a webhook of the organization.
    if member == "channel_id" {
        return Some(WEBHOOK);
    }
    let endings = ["_ids", "_id", "_identifiers", "_identifier"];
    let stem = endings
        .iter()
        .find_map(|ending| member.strip_suffix(ending))?;
    let kinds = Kind::ALL.map(Kind::name);
    let mut kinds = kinds.into_iter().chain([CONNECTION]);
    let is = |kind: &&'static str| {
        let before = stem.strip_suffix(*kind);
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    kinds.find(is)
}

fn walk(value: &mut Value, path: &mut Vec<String>, visit: Visit<'_>) {
    match value {
        Value::Object(members) => {
            // A filter may ask for documents of a collection, say.
            let field = members.get("field").and_then(Value::as_str);
            let asked = field.and_then(|field| to(field.rsplit('.').next().unwrap_or(field)));
            if let Some(map) = members.get_mut("field_map").and_then(Value::as_object_mut) {
                keys(map, path, visit);
            }
            for (name, member) in members.iter_mut() {
                path.push(name.clone());
                match (to(name), asked) {
                    (Some(kind), _) => named(member, (kind, kind == WEBHOOK), path, visit),
                    (None, Some(kind)) if name == "value" => {
                        named(member, (kind, true), path, visit);
                    }
                    _ => walk(member, path, visit),
                }
                path.pop();
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter_mut().enumerate() {
                path.push(place.to_string());
                walk(item, path, visit);
                path.pop();
            }
        }
        _ => {}
    }
}

/// The rules of a collection for each of its sources have these as keys.
fn keys(map: &mut Object, path: &[String], visit: Visit<'_>) {
    let mut path = path.to_vec();
    path.push("field_map".into());
    let old = std::mem::take(map);
    for (name, rules) in old {
        path.push(name.clone());
        let other = visit("collection", &name, (&path, false));
        map.insert(other.unwrap_or(name), rules);
        path.pop();
    }
}

/// A text that names a resource, or a list of such.
fn named(
    value: &mut Value,
    (kind, loose): (&'static str, bool),
    path: &mut Vec<String>,
    visit: Visit<'_>,
) {
    match value {
        // What is filled in later names nothing yet.
        Value::String(text) if text.is_empty() || text.contains("{{") => {}
        Value::String(text) => {
            if let Some(other) = visit(kind, text, (path, loose)) {
                *text = other;
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter_mut().enumerate() {
                path.push(place.to_string());
                named(item, (kind, loose), path, visit);
                path.pop();
            }
        }
        other => walk(other, path, visit),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn members(value: Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn references_are_found_by_the_members_that_hold_them() {
        let resource = members(json!({
            "source": {"bucket_ids": ["a", "b"], "field_map": {"c": []}}, "retriever_id": "{{INPUT.r}}",
            "metadata": {"bucket_id": "not one"}, "document_id": "d",
            "stages": [{"config": {"parameters": {"target_collection_id": "e", "filters": {"field": "_internal.collection_id", "operator": "in", "value": ["f"]}}}}],
        }));
        let found = of(&resource);
        let told: Vec<(String, &str, &str, bool)> = found
            .iter()
            .map(|one| (one.path.join("."), one.to, one.name.as_str(), one.loose))
            .collect();
        let stage = "stages.0.config.parameters";
        assert_eq!(
            told,
            [
                ("source.field_map.c".to_owned(), "collection", "c", false),
                ("source.bucket_ids.0".to_owned(), "bucket", "a", false),
                ("source.bucket_ids.1".to_owned(), "bucket", "b", false),
                (
                    format!("{stage}.target_collection_id"),
                    "collection",
                    "e",
                    false
                ),
                (format!("{stage}.filters.value.0"), "collection", "f", true),
            ]
        );
    }

    #[test]
    fn names_become_ids_and_ids_names() {
        let mut names = Names::default();
        names.add("bucket", "bkt_1", "plots");
        names.add("collection", "col_1", "plots");
        let written = members(
            json!({"source": {"bucket_ids": ["plots"], "field_map": {"plots": []}}, "description": "plots"}),
        );
        let mut resource = written.clone();
        names.to_ids(&mut resource);
        let ids = json!({"source": {"bucket_ids": ["bkt_1"], "field_map": {"col_1": []}}, "description": "plots"});
        assert_eq!(Value::Object(resource.clone()), ids);
        names.to_names(&mut resource);
        assert_eq!(resource, written);
    }
}
