//! `input_mappings`: which field or file of an object goes into which input of the extractor.

use loupe_wire::Value;
use serde::Deserialize;

use crate::extract::{ExtractorInfo, Violation};

/// Where one input of the extractor comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum From {
    /// A field's path or a property's name.
    Path(String),
    Literal(Value),
}

/// One input with its source.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mapping {
    pub input: String,
    pub from: From,
    /// Where it stands below `input_mappings`.
    loc: Vec<String>,
}

/// One entry of the list form.
#[derive(Deserialize)]
struct Entry {
    input_key: String,
    /// payload, literal, vector or blob.
    source_type: Option<String>,
    path: Option<String>,
    r#override: Option<Value>,
}

fn fault(loc: Vec<String>, msg: impl Into<String>) -> Violation {
    let msg = msg.into();
    Violation { loc, msg }
}

/// `{"text": "description"}`, `{"text": {"path": …}}` or a list of mappings.
pub(super) fn read(config: Option<&Value>) -> Result<Vec<Mapping>, Violation> {
    match config {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(members)) => {
            let one = |(input, source): (&String, &Value)| {
                let loc = vec![input.clone()];
                let path = source.as_str().or_else(|| source.get("path")?.as_str());
                let Some(path) = path else {
                    return Err(fault(loc, "must be a path, or {\"path\": …}"));
                };
                Ok(Mapping {
                    input: input.clone(),
                    from: From::Path(path.to_owned()),
                    loc,
                })
            };
            members.iter().map(one).collect()
        }
        Some(Value::Array(list)) => list.iter().enumerate().map(entry).collect(),
        Some(_) => {
            let msg = "must be {input: path} or a list of {input_key, path}";
            Err(fault(Vec::new(), msg))
        }
    }
}

fn entry((number, value): (usize, &Value)) -> Result<Mapping, Violation> {
    let loc = vec![number.to_string()];
    let entry = Entry::deserialize(value)
        .map_err(|error| fault(loc.clone(), format!("must be {{input_key, path}}: {error}")))?;
    let literal = entry.source_type.as_deref() == Some("literal");
    let from = match (entry.r#override, entry.path) {
        (Some(value), _) => From::Literal(value),
        (None, Some(path)) if literal => From::Literal(Value::String(path)),
        (None, Some(path)) => From::Path(path),
        (None, None) => return Err(fault(loc, "needs a path, or an override")),
    };
    Ok(Mapping {
        input: entry.input_key,
        from,
        loc,
    })
}

/// The path below the object's own members: `payload.` and `metadata.` in front are words of the interface.
pub(super) fn own(path: &str) -> &str {
    path.strip_prefix("payload.")
        .or_else(|| path.strip_prefix("metadata."))
        .unwrap_or(path)
}

/// Refuses mappings that cannot be read, of an input that the extractor does not have, or from a field that is not
/// `known`. Where each stands is told below `input_mappings`.
///
/// # Errors
/// The first such mapping.
pub fn check_mappings(
    extractor: &ExtractorInfo,
    config: Option<&Value>,
    known: impl Fn(&str) -> Result<(), String>,
) -> Result<(), Violation> {
    for mapping in read(config)? {
        let listed = mapping.loc[0] != mapping.input;
        let at = |member: &str| {
            let member = listed.then(|| member.to_owned());
            mapping.loc.iter().cloned().chain(member).collect()
        };
        let names: Vec<&str> = extractor.inputs.iter().map(|input| input.name).collect();
        if !names.contains(&mapping.input.as_str()) && !names.contains(&"*") {
            let msg = format!(
                "{} has no input '{}'; it has: {}",
                extractor.name,
                mapping.input,
                names.join(", ")
            );
            return Err(fault(at("input_key"), msg));
        }
        if let From::Path(path) = &mapping.from {
            known(own(path)).map_err(|msg| fault(at("path"), msg))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::extract::find;

    fn checked(config: Value) -> Result<(), String> {
        let known = |path: &str| match path {
            "plot" => Ok(()),
            other => Err(format!("no {other}")),
        };
        let info = find("text_extractor", "v1").unwrap();
        check_mappings(info, Some(&config), known)
            .map_err(|fault| format!("{}: {}", fault.loc.join("."), fault.msg))
    }

    #[test]
    fn good_mappings_of_every_form_are_taken() {
        for config in [
            json!(null),
            json!({"text": "plot"}),
            json!({"text": {"path": "payload.plot"}}),
            json!([{"input_key": "text", "path": "plot"}]),
            json!([{"input_key": "text", "source_type": "literal", "path": "any words"}]),
            json!([{"input_key": "text", "override": "any words"}]),
        ] {
            assert_eq!(checked(config.clone()), Ok(()), "{config}");
        }
        let any = find("passthrough_extractor", "v1").unwrap();
        assert!(check_mappings(any, Some(&json!({"all": "plot"})), |_| Ok(())).is_ok());
    }

    #[test]
    fn a_bad_mapping_is_refused_with_its_place() {
        for (config, place) in [
            (
                json!({"txt": "plot"}),
                "txt: text_extractor has no input 'txt'; it has: text",
            ),
            (json!({"text": "story"}), "text: no story"),
            (json!({"text": 3}), "text: must be a path"),
            (
                json!([{"input_key": "text", "path": "plot"}, {"input_key": "image", "path": "plot"}]),
                "1.input_key: ",
            ),
            (
                json!([{"input_key": "text", "path": "story"}]),
                "0.path: no story",
            ),
            (json!([{"input_key": "text"}]), "0: needs a path"),
            (
                json!([{"path": "plot"}]),
                "0: must be {input_key, path}: missing field `input_key`",
            ),
            (json!("plot"), ": must be {input: path}"),
        ] {
            let refused = checked(config.clone()).unwrap_err();
            assert!(refused.starts_with(place), "{config}: {refused}");
        }
    }
}
