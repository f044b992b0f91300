//! What can be wrong with a manifest beside its shape: names of what is not there, circles, secrets that are missing.

use std::collections::BTreeSet;

use loupe_wire::Value;

use super::{
    document::{Fault, Manifest},
    kinds::Kind,
    order::{self, Step},
    placeholders::{self, Of},
    references,
    state::State,
};

/// Notes what cannot be applied; answers the steps in which the rest can.
pub fn check(manifest: &mut Manifest, state: &State) -> Vec<Step> {
    let mut faults = unresolved(manifest, state);
    if let Some(known) = &state.secrets {
        let missing = missing_secrets(manifest, known);
        faults.extend(missing.into_iter().map(|(path, name)| Fault {
            path,
            ..Fault::new(
                &[],
                "value_error",
                format!("the organization has no secret '{name}'"),
            )
        }));
    }
    let steps = order::steps(&manifest.resources).unwrap_or_else(|circle| {
        faults.extend(circle.into_iter().map(|place| Fault {
            path: manifest.resources[place].path.to_vec(),
            ..Fault::new(
                &[],
                "value_error",
                "it names what is not made before it: resources go round in a circle",
            )
        }));
        Vec::new()
    });
    manifest.faults.extend(faults);
    manifest.find_lines();
    steps
}

/// Names of what is neither in the manifest nor in the organization.
fn unresolved(manifest: &Manifest, state: &State) -> Vec<Fault> {
    let made: BTreeSet<(&str, &str, &str)> = manifest
        .resources
        .iter()
        .map(|one| (one.kind.name(), one.namespace.as_str(), one.name.as_str()))
        .collect();
    let mut faults = Vec::new();
    for one in &manifest.resources {
        let names = state.names_in(&one.namespace);
        for reference in references::of(&one.said) {
            let name = reference.name.as_str();
            let namespace = match reference.to == Kind::Namespace.name() {
                true => name,
                false => one.namespace.as_str(),
            };
            let known = reference.loose
                || names.id(reference.to, name).is_some()
                || made.contains(&(reference.to, namespace, name));
            if !known {
                let message = format!(
                    "there is no {} '{name}', in the manifest or outside",
                    reference.to
                );
                faults.push(Fault {
                    path: one.at(&reference.path),
                    ..Fault::new(&[], "value_error", message)
                });
            }
        }
        let is_there = state.spaces.contains_key(&one.namespace);
        let home = (
            Kind::Namespace.name(),
            one.namespace.as_str(),
            one.namespace.as_str(),
        );
        if !is_there && !made.contains(&home) {
            let message = format!(
                "there is no namespace '{}', in the manifest or outside",
                one.namespace
            );
            faults.push(Fault {
                path: one.at(&["namespace".to_owned()]),
                ..Fault::new(&[], "value_error", message)
            });
        }
    }
    faults
}

/// Secrets that resources ask for and the organization does not have, with the place of the resource.
pub fn missing_secrets(
    manifest: &Manifest,
    known: &BTreeSet<String>,
) -> Vec<(Vec<String>, String)> {
    let mut missing = Vec::new();
    for one in &manifest.resources {
        let mut open = Vec::new();
        let said = Value::Object(one.said.clone());
        placeholders::names(&said, Of::Secrets, &mut open);
        open.sort();
        open.dedup();
        let lacking = open.into_iter().filter(|name| !known.contains(name));
        missing.extend(lacking.map(|name| (one.path.to_vec(), name)));
    }
    missing
}
