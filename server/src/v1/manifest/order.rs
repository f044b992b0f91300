//! In which order resources are made: what is named is there before who names it.

use std::collections::{HashMap, HashSet};

use super::{document::Resource, kinds::Kind, references};

/// One step: a resource as a whole, or without members that name what is not there yet, and those afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Make { place: usize, without: Vec<String> },
    Finish { place: usize, members: Vec<String> },
}

/// The steps of a manifest, or the places of resources that name each other in a circle.
///
/// # Errors
/// There is such a circle, and no member of it can be set afterwards.
pub fn steps(resources: &[Resource]) -> Result<Vec<Step>, Vec<usize>> {
    let needs = needs(resources);
    let (mut made, mut steps, mut finishing) = (HashSet::new(), Vec::new(), Vec::new());
    let mut left: Vec<usize> = (0..resources.len()).collect();
    while !left.is_empty() {
        let lacks = |need: &(String, usize)| !made.contains(&need.1);
        let ready = left
            .iter()
            .position(|place| !needs[*place].iter().any(lacks));
        let at = match ready {
            Some(at) => at,
            None => left
                .iter()
                .position(|place| {
                    // Whether what it lacks may be set after it was made.
                    let changeable = resources[*place].kind.changeable();
                    let mut lacking = needs[*place].iter().filter(|need| lacks(need));
                    lacking.all(|(member, _)| changeable.contains(member))
                })
                .ok_or_else(|| left.clone())?,
        };
        let place = left.remove(at);
        let lacking = needs[place].iter().filter(|need| lacks(need));
        let without: Vec<String> = lacking.map(|(member, _)| member.clone()).collect();
        made.insert(place);
        if !without.is_empty() {
            finishing.push(Step::Finish {
                place,
                members: without.clone(),
            });
        }
        steps.push(Step::Make { place, without });
    }
    steps.extend(finishing);
    Ok(steps)
}

/// By which member each resource needs which others of the manifest.
pub fn needs(resources: &[Resource]) -> Vec<Vec<(String, usize)>> {
    let named = |one: &Resource| (one.kind.name(), one.namespace.clone(), one.name.clone());
    let places: HashMap<_, usize> = resources
        .iter()
        .enumerate()
        .map(|(place, one)| (named(one), place))
        .collect();
    let needs = |(own, one): (usize, &Resource)| {
        let namespace = &one.namespace;
        let found = references::of(&one.said).into_iter().map(|reference| {
            let member = reference.member().to_owned();
            // Namespaces are in no other.
            let within = match reference.to == Kind::Namespace.name() {
                true => reference.name.clone(),
                false => namespace.clone(),
            };
            (member, (reference.to, within, reference.name))
        });
        let home = (Kind::Namespace.name(), namespace.clone(), namespace.clone());
        found
            .chain([(String::new(), home)])
            .filter_map(|(member, key)| Some((member, *places.get(&key)?)))
            .filter(|(_, place)| *place != own)
            .collect()
    };
    resources.iter().enumerate().map(needs).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn resource(kind: Kind, name: &str, said: Value) -> Resource {
        Resource {
            kind,
            name: name.into(),
            namespace: "n".into(),
            path: [kind.section().into(), "0".into()],
            said: said.as_object().cloned().unwrap(),
        }
    }

    #[test]
    fn what_is_named_is_made_first_and_circles_are_closed_afterwards() {
        let resources = [
            resource(
                Kind::Bucket,
                "b",
                json!({"ingest_filter": {"retriever_id": "r"}}),
            ),
            resource(
                Kind::Retriever,
                "r",
                json!({"collection_identifiers": ["c"]}),
            ),
            resource(
                Kind::Collection,
                "c",
                json!({"source": {"bucket_ids": ["b"]}}),
            ),
            resource(Kind::Namespace, "n", json!({})),
        ];
        let make = |place| Step::Make {
            place,
            without: vec![],
        };
        let filter = vec!["ingest_filter".to_owned()];
        let expected = vec![
            make(3),
            Step::Make {
                place: 0,
                without: filter.clone(),
            },
            make(2),
            make(1),
            Step::Finish {
                place: 0,
                members: filter,
            },
        ];
        assert_eq!(steps(&resources), Ok(expected));
        let circle = [
            resource(
                Kind::Collection,
                "a",
                json!({"source": {"collection_ids": ["b"]}}),
            ),
            resource(
                Kind::Collection,
                "b",
                json!({"source": {"collection_ids": ["a"]}}),
            ),
        ];
        assert_eq!(steps(&circle), Err(vec![0, 1]));
    }
}
