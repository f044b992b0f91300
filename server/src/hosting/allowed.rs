//! What of the API visitors of an app may call: what reads, or what its owner opened, and never what nobody may open.

use axum::http::Method;
use loupe_wire::{ApiAllowRule, Permission};

use crate::auth::table::{Access, Row, TABLE};

/// What visitors may call where the owner says nothing: reading and searching.
const READING: [&str; 20] = [
    "GET /v1/retrievers",
    "POST /v1/retrievers/list",
    "GET /v1/retrievers/{retriever_id}",
    "POST /v1/retrievers/{retriever_id}/execute",
    "GET /v1/collections",
    "POST /v1/collections/list",
    "GET /v1/collections/{collection_identifier}",
    "GET /v1/collections/{collection_identifier}/documents",
    "POST /v1/collections/{collection_identifier}/documents/list",
    "GET /v1/collections/{collection_identifier}/documents/{document_id}",
    "POST /v1/collections/{collection_identifier}/documents/aggregate",
    "POST /v1/collections/{collection_identifier}/documents/distinct",
    "GET /v1/documents/{document_id}",
    "POST /v1/documents/batch-get",
    "POST /v1/documents/list",
    "GET /v1/marketplace/catalog",
    "GET /v1/marketplace/catalog/{public_name}",
    "GET /v1/marketplace/catalog/{public_name}/config",
    "GET /v1/marketplace/catalog/{public_name}/template",
    "POST /v1/marketplace/catalog/{public_name}/execute",
];

/// Beginnings of operations that an owner may open, and pieces of those that nobody may.
const OPEN: [&str; 4] = [
    "/v1/retrievers",
    "/v1/collections",
    "/v1/documents",
    "/v1/marketplace",
];
const CLOSED: [&str; 3] = ["api-keys", "publish", "/acl"];

/// What takes stages: a visitor would say which databases are read, which services are asked and what is spent.
const OF_STAGES: [&str; 3] = [
    "POST /v1/retrievers",
    "POST /v1/retrievers/execute",
    "POST /v1/retrievers/{retriever_id}/clone",
];

/// Whether these rules open an operation at a path; without any, what reads is open.
pub(super) fn is_open(rules: &[ApiAllowRule], row: &Row, method: &Method, path: &str) -> bool {
    if rules.is_empty() {
        return READING.contains(&row.operation);
    }
    may_be_opened(row) && (rules.iter()).any(|rule| fits(rule, method.as_str(), path, is))
}

/// Whether a rule lets through this method and path, by what makes a name of its pattern one of the path.
fn fits(rule: &ApiAllowRule, method: &str, path: &str, is: fn(&str, &str) -> bool) -> bool {
    let takes = |name: &String| name == "*" || name.eq_ignore_ascii_case(method);
    let pattern = rule.pattern.strip_prefix("/v1").unwrap_or(&rule.pattern);
    let pattern = pattern.strip_prefix("/api").unwrap_or(pattern);
    let path = path.strip_prefix("/v1").unwrap_or(path);
    (rule.methods.is_empty() || rule.methods.iter().any(takes)) && matches(pattern, path, is)
}

/// The levels of the operations that visitors may call by these rules: what they do, the owner does.
pub fn levels(rules: &[ApiAllowRule]) -> Vec<Permission> {
    let asks = |level: &Permission| {
        let rows = TABLE.iter();
        let rows = rows.filter(|row| rules.iter().any(|rule| opens(rule, row)));
        let mut asked = rows.map(|row| match row.access {
            Access::Level(level) => level,
            Access::Public | Access::AnyKey | Access::Execute => Permission::Read,
        });
        *level == Permission::Read || asked.any(|asked| asked == *level)
    };
    [Permission::Read, Permission::Write, Permission::Delete]
        .into_iter()
        .filter(asks)
        .collect()
}

/// Whether visitors may call anything at all by this rule.
pub fn opens_something(rule: &ApiAllowRule) -> bool {
    TABLE.iter().any(|row| opens(rule, row))
}

/// Whether a rule opens an operation for some of what its path may name.
fn opens(rule: &ApiAllowRule, row: &Row) -> bool {
    let stands = |wanted: &str, name: &str| is(wanted, name) || name.starts_with('{');
    let parts = row.operation.split_once(' ');
    may_be_opened(row) && parts.is_some_and(|(method, path)| fits(rule, method, path, stands))
}

fn may_be_opened(row: &Row) -> bool {
    if OF_STAGES.contains(&row.operation) {
        return false;
    }
    let Some((_, path)) = row.operation.split_once(' ') else {
        return false;
    };
    let open = OPEN.iter().any(|start| {
        path.strip_prefix(start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    open && !CLOSED.iter().any(|piece| path.contains(piece))
        && row.access != Access::Level(Permission::Admin)
}

/// `*` stands for one name, `**` at the end for all that follows.
fn matches(pattern: &str, path: &str, is: fn(&str, &str) -> bool) -> bool {
    let mut names = path.split('/');
    for wanted in pattern.split('/') {
        if wanted == "**" {
            return names.next().is_some_and(|name| !name.is_empty());
        }
        match names.next() {
            Some(name) if is(wanted, name) => {}
            _ => return false,
        }
    }
    names.next().is_none()
}

/// Whether a name of a pattern is this name of a path.
fn is(wanted: &str, name: &str) -> bool {
    wanted == name || (wanted == "*" && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, path, expected) in [
            ("/retrievers/*/execute", "/retrievers/ret_1/execute", true),
            (
                "/retrievers/*/execute",
                "/retrievers/ret_1/execute/x",
                false,
            ),
            ("/retrievers/*/execute", "/retrievers//execute", false),
            ("/documents/**", "/documents/a/b", true),
            ("/documents/**", "/documents", false),
            ("/documents/**", "/documents/", false),
            ("/documents", "/documents", true),
            ("/doc*", "/documents", false),
        ] {
            assert_eq!(matches(pattern, path, is), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn no_rule_opens_keys_people_or_pages() {
        let everything = [ApiAllowRule {
            methods: Vec::new(),
            pattern: "/**".into(),
        }];
        let (mut open, mut closed) = (0, 0);
        for row in TABLE {
            let (method, path) = row.operation.split_once(' ').unwrap();
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let allowed = is_open(&everything, row, &method, "/v1/anything");
            let data = OPEN.iter().any(|start| path.starts_with(start));
            assert!(!allowed || data, "{} is open", row.operation);
            assert!(
                !allowed || !(path.contains("api-keys") || path.contains("publish")),
                "{} is open",
                row.operation
            );
            assert!(
                !allowed || !OF_STAGES.contains(&row.operation),
                "{} is open",
                row.operation
            );
            if allowed { open += 1 } else { closed += 1 }
        }
        assert!(open > 30 && closed > 120, "{open} open, {closed} closed");
        for operation in READING.iter().chain(&OF_STAGES) {
            assert!(
                TABLE.iter().any(|row| row.operation == *operation),
                "{operation}"
            );
        }
    }

    #[test]
    fn rules_ask_for_the_levels_of_what_they_open() {
        use Permission::{Delete, Read, Write};
        for (methods, pattern, expected) in [
            (&["POST"][..], "/retrievers/*/execute", &[Read][..]),
            // As the id of a benchmark the last word is one that is deleted.
            (&[], "/retrievers/*/execute", &[Read, Delete]),
            (&["GET"], "/**", &[Read]),
            (&["post"], "/collections/films/documents", &[Read, Write]),
            (&["DELETE"], "/collections/*", &[Read, Delete]),
            (&["*"], "/v1/documents/*", &[Read, Write]),
            (&[], "/api/collections/**", &[Read, Write, Delete]),
            (&["DELETE"], "/organizations/**", &[Read]),
        ] {
            let rule = ApiAllowRule {
                methods: methods.iter().map(ToString::to_string).collect(),
                pattern: pattern.into(),
            };
            assert_eq!(levels(&[rule]), expected, "{methods:?} {pattern}");
        }
    }

    #[test]
    fn rules_that_open_nothing_are_known() {
        for (methods, pattern, opens) in [
            (&["get"][..], "/documents/doc_1", true),
            (&[], "/retrievers/*/execute", true),
            (&[], "/v1/collections/films/documents", true),
            (&["DELETE"], "/marketplace/catalog", false),
            (&["PUT"], "/retrievers/*/execute", false),
            (&[], "/organizations/**", false),
            (&["POST"], "/retrievers/*/publish", false),
            (&["POST"], "/retrievers", false),
            (&[], "/collection/films", false),
        ] {
            let rule = ApiAllowRule {
                methods: methods.iter().map(ToString::to_string).collect(),
                pattern: pattern.into(),
            };
            assert_eq!(opens_something(&rule), opens, "{methods:?} {pattern}");
        }
    }
}
