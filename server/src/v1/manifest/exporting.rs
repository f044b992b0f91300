//! Writes what is there as a manifest: with names and not ids, and without secrets.

use std::collections::HashSet;

use loupe_engine::extract;
use loupe_wire::{Object, Value};
use serde_json::json;

use super::{
    compare,
    document::VERSION,
    kinds::{Current, Kind},
    placeholders, references,
    state::{Space, State},
    yaml,
};
use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, Result, Violation},
};

/// How much is written of each resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Full,
    /// Names and descriptions.
    Summary,
}

impl Detail {
    /// # Errors
    /// There is no such detail.
    pub fn read(sent: Option<&str>) -> Result<Self> {
        match sent {
            None | Some("full") => Ok(Self::Full),
            Some("summary") => Ok(Self::Summary),
            Some(other) => {
                let message = "a manifest is written in full or as a summary";
                Err(Violation::query("detail", "enum", message, other.into()).into())
            }
        }
    }
}

/// A manifest that was written, and why resources are not in it.
#[derive(Debug)]
pub struct Written {
    pub manifest: Value,
    left_out: Vec<String>,
}

impl Written {
    /// As YAML; what is left out is in comments.
    pub fn yaml(&self) -> String {
        let comments = self
            .left_out
            .iter()
            // A name that has lines goes on in its comment.
            .map(|one| format!("# left out: {}\n", one.replace(['\n', '\r'], " ")));
        comments.collect::<String>() + &yaml::write(&self.manifest)
    }
}

/// Writes namespaces with all they hold, as far as the caller may read it: those that are named, or every one.
///
/// # Errors
/// 404 for a namespace that is not there.
pub async fn export(
    app: &App,
    caller: &Caller,
    named: &[String],
    (name, detail): (&str, Detail),
) -> Result<Written> {
    let mut state = State::everywhere(app, caller).await?;
    let mut all = state.namespaces.clone();
    all.retain(|one| Kind::Namespace.is_readable(caller, &one.id, &one.id));
    let mut wanted: Vec<Current> = Vec::new();
    let mut seen = HashSet::new();
    for name in named.iter().filter(|name| seen.insert(*name)) {
        let found = all.iter().find(|one| one.id == *name || one.name == *name);
        let found = found.ok_or_else(|| ApiError::not_found("namespace", name))?;
        if !wanted.iter().any(|one| one.id == found.id) {
            wanted.push(found.clone());
        }
    }
    if named.is_empty() {
        wanted = all;
        wanted.sort_by(|one, other| one.name.cmp(&other.name));
    }
    let mut sections: Vec<(Kind, Vec<Value>)> = Kind::ALL.map(|kind| (kind, Vec::new())).into();
    let mut left_out = Vec::new();
    for namespace in wanted {
        let name = namespace.name.clone();
        state.open(app, caller, namespace).await?;
        // One at a time is in memory.
        if let Some(space) = state.spaces.remove(&name) {
            write(&space, detail, &mut sections, &mut left_out);
        }
    }
    let mut manifest = Object::new();
    manifest.insert("version".into(), VERSION.into());
    manifest.insert("metadata".into(), json!({ "name": name }));
    let filled = sections.into_iter().filter(|(_, all)| !all.is_empty());
    manifest.extend(filled.map(|(kind, all)| (kind.section().to_owned(), Value::Array(all))));
    Ok(Written {
        manifest: Value::Object(manifest),
        left_out,
    })
}

fn write(
    space: &Space,
    detail: Detail,
    sections: &mut [(Kind, Vec<Value>)],
    left_out: &mut Vec<String>,
) {
    let mut resources: Vec<&Current> = space.resources.iter().collect();
    resources.sort_by(|one, other| one.name.cmp(&other.name));
    for one in std::iter::once(&space.namespace).chain(resources) {
        match entry(space, one, detail) {
            Ok(entry) => {
                let section = sections.iter_mut().find(|(kind, _)| *kind == one.kind);
                if let Some((_, all)) = section {
                    all.push(Value::Object(entry));
                }
            }
            Err(why) => left_out.push(format!("{} {}: {why}", one.kind.name(), json!(one.name))),
        }
    }
}

/// A resource as a manifest says it, or why it cannot be said.
fn entry(space: &Space, one: &Current, detail: Detail) -> Result<Object, String> {
    let mut entry = Object::new();
    entry.insert("name".into(), one.name.clone().into());
    if one.kind != Kind::Namespace {
        let namespace = space.namespace.name.clone();
        entry.insert("namespace".into(), namespace.into());
    }
    let mut data = one.data.clone();
    tidy(one.kind, &mut data);
    space.names.to_names(&mut data);
    for name in one.kind.members() {
        if let Some(value) = data.shift_remove(&name).filter(is_said) {
            entry.insert(name, value);
        }
    }
    if detail == Detail::Summary {
        entry.retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "description"));
        return Ok(entry);
    }
    let batch = entry.get("action_type").and_then(Value::as_str) == Some("batch_rerun");
    if one.kind == Kind::Trigger && batch {
        return Err("it is about one batch".into());
    }
    if let Some(lost) = references::of(&entry)
        .into_iter()
        .find(references::Reference::is_id)
    {
        return Err(format!(
            "its {} names a {} that is not there",
            lost.path.join("."),
            lost.to
        ));
    }
    let label = format!("{}_{}", one.kind.name(), one.name);
    entry.values_mut().for_each(|value| hide(value, &label));
    Ok(entry)
}

fn is_said(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

fn has(data: &Object, name: &str) -> bool {
    data.get(name).is_some_and(is_said)
}

/// Leaves what the server adds to what is said.
fn tidy(kind: Kind, data: &mut Object) {
    for name in kind.untold() {
        data.shift_remove(*name);
    }
    match kind {
        Kind::Collection => {
            // What a collection does that nobody told otherwise.
            data.retain(|name, value| match name.as_str() {
                "schema_validation" => *value != "off",
                "schema_sync_enabled" => *value != true,
                _ => true,
            });
            if let Some(source) = data.get_mut("source").and_then(Value::as_object_mut) {
                source.shift_remove("inherited_bucket_ids");
                source.retain(|_, value| is_said(value));
            }
            let extractor = data.get_mut("feature_extractor");
            if let Some(extractor) = extractor.and_then(Value::as_object_mut) {
                let text = |name: &str| extractor.get(name).and_then(Value::as_str);
                let names = text("feature_extractor_name").zip(text("version"));
                let info = names.and_then(|(name, version)| extract::find(name, version));
                let default = info.map(|info| info.default_parameters());
                if extractor.get("parameters") == default.as_ref() {
                    extractor.shift_remove("parameters");
                }
                extractor.shift_remove("feature_extractor_id");
                if has(extractor, "parameters") {
                    // The same under its other name.
                    extractor.shift_remove("params");
                }
                extractor.retain(|_, value| is_said(value));
            }
        }
        Kind::Retriever => {
            if !has(data, "collection_identifiers")
                && let Some(ids) = data.get("collection_ids").cloned()
            {
                data.insert("collection_identifiers".into(), ids);
            }
            let stages = data.get_mut("stages").and_then(Value::as_array_mut);
            for stage in stages.into_iter().flatten() {
                if let Some(stage) = stage.as_object_mut() {
                    stage.shift_remove("parameters");
                }
            }
        }
        Kind::Cluster if has(data, "source_cluster_ids") => {
            data.shift_remove("collection_ids");
            data.shift_remove("filters");
        }
        Kind::Trigger if data.get("status").is_none_or(|status| status != "paused") => {
            data.shift_remove("status");
        }
        _ => {}
    }
}

/// Puts placeholders where secrets are not shown.
fn hide(value: &mut Value, label: &str) {
    match value {
        Value::String(text) if compare::is_hidden(text) => {
            let plain = |c: char| match c.is_ascii_alphanumeric() {
                true => c.to_ascii_lowercase(),
                false => '_',
            };
            *value = placeholders::secret(&label.chars().map(plain).collect::<String>()).into();
        }
        Value::Array(items) => {
            for (place, item) in items.iter_mut().enumerate() {
                hide(item, &format!("{label}_{place}"));
            }
        }
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                hide(member, &format!("{label}_{name}"));
            }
        }
        _ => {}
    }
}
