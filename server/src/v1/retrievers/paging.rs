//! Members that the page of a request does not have. What pages have depends on their method, which is known only once all of one is
//! read: so it is looked at before.

use loupe_wire::Value;
use serde_json::json;

use crate::{
    error::{ApiError, Result, Violation},
    tolerance::{Ignored, Unknown},
};

/// What a page has beside its `method`.
const MEMBERS: [(&str, &[&str]); 4] = [
    ("offset", &["page_size", "page_number"]),
    ("cursor", &["limit", "cursor"]),
    ("scroll", &["limit", "scroll_id", "scroll_ttl"]),
    ("keyset", &["limit", "after"]),
];

/// Refuses members of `pagination` that no page of its method has, or notes them where they are passed over. `place` is where it stands
/// in the whole body.
///
/// # Errors
/// 422 with the members that there are.
pub(super) fn check(body: &Value, place: &[&str], ignored: Option<&Ignored>) -> Result<()> {
    let page = body.get("pagination").and_then(Value::as_object);
    let Some(page) = page else { return Ok(()) };
    let method = page.get("method").and_then(Value::as_str);
    // A method that is none is told where the page is read.
    let Some((_, members)) = MEMBERS.iter().find(|(name, _)| Some(*name) == method) else {
        return Ok(());
    };
    let accepted: Vec<&str> = std::iter::once("method")
        .chain(members.iter().copied())
        .collect();
    let unknown = page
        .iter()
        .filter(|(key, _)| !accepted.contains(&key.as_str()));
    let mut violations = Vec::new();
    for (key, value) in unknown {
        let path: Vec<&str> = place.iter().copied().chain([key.as_str()]).collect();
        match ignored {
            Some(ignored) => ignored.add(Unknown {
                path: path.join("."),
                accepted: accepted.iter().map(ToString::to_string).collect(),
            }),
            None => {
                let msg = format!(
                    "extra inputs are not permitted; accepted keys: {}",
                    accepted.join(", ")
                );
                let mut one = Violation::body(&path, "extra_forbidden", msg, value.clone());
                one.ctx = json!({ "accepted": accepted });
                violations.push(one);
            }
        }
    }
    match violations.is_empty() {
        true => Ok(()),
        false => Err(ApiError::Validation(violations)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loupe_wire::{RetrieverPagination, reading};

    #[test]
    fn the_members_are_those_that_pages_are_read_by() {
        for (method, members) in MEMBERS {
            let page: RetrieverPagination =
                reading::from_value(&json!({"method": method})).unwrap();
            let told = serde_json::to_value(page).unwrap();
            for key in told.as_object().unwrap().keys() {
                assert!(
                    key == "method" || members.contains(&key.as_str()),
                    "{method}: {key}"
                );
            }
            let good = json!({"pagination": {"method": method, members[0]: 1}});
            assert!(check(&good, &["pagination"], None).is_ok());
        }
        let stray = json!({"pagination": {"method": "offset", "cursor": "x", "page_size": 3}});
        let Err(ApiError::Validation(faults)) = check(&stray, &["pagination"], None) else {
            panic!("a page by number has no cursor");
        };
        assert_eq!(faults[0].loc, ["body", "pagination", "cursor"]);
        assert!(faults[0].msg.ends_with("method, page_size, page_number"));
    }
}
