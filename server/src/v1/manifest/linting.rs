//! Advice about a manifest: what works and could be better.

use std::collections::HashSet;

use indexmap::IndexMap;
use loupe_wire::{LintResponse, LintResult, LintSeverity, Value};

use super::{
    document::{Fault, Manifest, Resource},
    kinds::Kind,
    placeholders, references,
};

/// Members whose values let whoever knows them speak for somebody.
const SECRETS: [&str; 8] = [
    "api_key",
    "password",
    "token",
    "access_token",
    "authorization",
    "signing_secret",
    "webhook_url",
    "client_secret",
];

/// What is advised, without the rules that are skipped. What is wrong is told before, under the rule `invalid`.
pub fn lint(manifest: &Manifest, skipped: &[String]) -> LintResponse {
    let mut results: Vec<LintResult> = manifest.faults.iter().map(fault).collect();
    whole(manifest, &mut results);
    for one in &manifest.resources {
        described(one, &mut results);
        literal_secrets(one, &mut results);
        ids(one, &mut results);
        inputs(one, &mut results);
    }
    unread(manifest, &mut results);
    results.retain(|one| !skipped.contains(&one.code));
    let mut summary: IndexMap<String, i64> = IndexMap::new();
    for (name, severity) in [
        ("error", LintSeverity::Error),
        ("warning", LintSeverity::Warning),
        ("info", LintSeverity::Info),
    ] {
        let count = results
            .iter()
            .filter(|one| one.severity == severity)
            .count();
        summary.insert(name.into(), i64::try_from(count).unwrap_or(i64::MAX));
    }
    LintResponse {
        valid: manifest.faults.is_empty(),
        results,
        summary,
    }
}

fn fault(fault: &Fault) -> LintResult {
    LintResult {
        code: "invalid".into(),
        severity: LintSeverity::Error,
        message: fault.message.clone(),
        location: fault.place(),
        suggestion: "mend it: a manifest with errors is not applied".into(),
        fix_example: None,
    }
}

fn advice(
    (code, severity): (&str, LintSeverity),
    location: &[String],
    (message, suggestion): (String, &str),
) -> LintResult {
    LintResult {
        code: code.into(),
        severity,
        message,
        location: location.join("."),
        suggestion: suggestion.into(),
        fix_example: None,
    }
}

fn whole(manifest: &Manifest, results: &mut Vec<LintResult>) {
    if manifest.name.is_none() {
        results.push(LintResult {
            fix_example: Some("metadata:\n  name: films".into()),
            ..advice(
                ("missing-manifest-name", LintSeverity::Info),
                &["metadata".to_owned(), "name".to_owned()],
                (
                    "the manifest has no name".into(),
                    "name it: the change feed tells it",
                ),
            )
        });
    }
    let unused = manifest.parameters.iter();
    for one in unused.filter(|one| !manifest.used.contains(&one.name)) {
        let message = format!("nothing uses the parameter '{}'", one.name);
        results.push(advice(
            ("unused-parameter", LintSeverity::Warning),
            &["parameters".to_owned(), one.name.clone()],
            (
                message,
                "leave it out, or write ${{ parameters.NAME }} where it belongs",
            ),
        ));
    }
}

fn described(one: &Resource, results: &mut Vec<LintResult>) {
    if one.said.contains_key("description") {
        return;
    }
    let message = format!("the {} '{}' has no description", one.kind.name(), one.name);
    results.push(advice(
        ("missing-description", LintSeverity::Info),
        &one.path,
        (message, "say what it is for"),
    ));
}

fn literal_secrets(one: &Resource, results: &mut Vec<LintResult>) {
    fn walk(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    path.push(name.clone());
                    let is_secret = SECRETS.contains(&name.to_ascii_lowercase().as_str());
                    match member.as_str() {
                        Some(text) if is_secret && !text.contains("{{") && !text.is_empty() => {
                            found.push(path.clone());
                        }
                        _ => walk(member, path, found),
                    }
                    path.pop();
                }
            }
            Value::Array(items) => {
                for (place, item) in items.iter().enumerate() {
                    path.push(place.to_string());
                    walk(item, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(
        &Value::Object(one.said.clone()),
        &mut one.path.to_vec(),
        &mut found,
    );
    for path in found {
        let name = path.last().cloned().unwrap_or_default();
        results.push(LintResult {
            fix_example: Some(format!("{name}: \"{}\"", placeholders::secret("NAME"))),
            ..advice(
                ("literal-secret", LintSeverity::Warning),
                &path,
                (
                    "a secret stands in the manifest".into(),
                    "keep it in POST /v1/organizations/secrets, and name it here",
                ),
            )
        });
    }
}

fn ids(one: &Resource, results: &mut Vec<LintResult>) {
    let found = references::of(&one.said).into_iter();
    for reference in found.filter(references::Reference::is_id) {
        let message = format!(
            "{} is an id, which no other installation has",
            reference.name
        );
        results.push(advice(
            ("id-reference", LintSeverity::Warning),
            &one.at(&reference.path),
            (message, "name it by its name"),
        ));
    }
}

/// Stages that fill in what the retriever does not ask for.
fn inputs(one: &Resource, results: &mut Vec<LintResult>) {
    if one.kind != Kind::Retriever {
        return;
    }
    let stages = one
        .said
        .get("stages")
        .map(Value::to_string)
        .unwrap_or_default();
    let asked = one.said.get("input_schema").and_then(Value::as_object);
    let mut told = HashSet::new();
    for piece in stages.split("INPUT.").skip(1) {
        let end = piece.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = &piece[..end.unwrap_or(piece.len())];
        let declared = asked.is_some_and(|asked| asked.contains_key(name));
        if !name.is_empty() && !declared && told.insert(name.to_owned()) {
            let message = format!("stages fill in the input '{name}', which is not declared");
            results.push(LintResult {
                fix_example: Some(format!(
                    "input_schema:\n  {name}: {{type: text, required: true}}"
                )),
                ..advice(
                    ("undeclared-input", LintSeverity::Warning),
                    &one.at(&["input_schema".to_owned()]),
                    (message, "declare it in input_schema"),
                )
            });
        }
    }
}

/// Buckets that no collection reads, and collections that nothing searches.
fn unread(manifest: &Manifest, results: &mut Vec<LintResult>) {
    let read: HashSet<(&str, String, String)> = manifest
        .resources
        .iter()
        .flat_map(|one| {
            let of = references::of(&one.said).into_iter();
            of.map(|found| (found.to, one.namespace.clone(), found.name))
        })
        .collect();
    for one in &manifest.resources {
        let (code, suggestion) = match one.kind {
            Kind::Bucket => ("unread-bucket", "let a collection read it"),
            Kind::Collection => ("unsearched-collection", "let a retriever search it"),
            _ => continue,
        };
        let key = (one.kind.name(), one.namespace.clone(), one.name.clone());
        if !read.contains(&key) {
            let message = format!(
                "nothing in the manifest reads the {} '{}'",
                one.kind.name(),
                one.name
            );
            results.push(advice(
                (code, LintSeverity::Info),
                &one.path,
                (message, suggestion),
            ));
        }
    }
}
