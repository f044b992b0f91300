//! What is filled in of a key: read from one that is there, sent, and told in a sentence.

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{record::Record, text};

/// A level, what it is called, what a person may expect of it, what is sent: a level contains the ones below.
pub const LEVELS: [(&str, &str, &str, &[&str]); 4] = [
    (
        "read",
        "Read",
        "List, open and search. Changes nothing.",
        &["read"],
    ),
    (
        "write",
        "Write",
        "Also upload, process, create and change.",
        &["read", "write"],
    ),
    (
        "delete",
        "Delete",
        "Also remove files, collections and retrievers.",
        &["read", "write", "delete"],
    ),
    (
        "admin",
        "Admin",
        "Everything, with users, keys and settings.",
        &["admin"],
    ),
];

pub const EXPIRIES: [(&str, &str); 5] = [
    ("", "Never"),
    ("7", "In 7 days"),
    ("30", "In 30 days"),
    ("90", "In 90 days"),
    ("365", "In a year"),
];

/// As [`EXPIRIES`], of a key that has its end already.
pub const NEW_EXPIRIES: [(&str, &str); 6] = [
    ("", "As it is"),
    (NEVER, "Never"),
    ("7", "In 7 days"),
    ("30", "In 30 days"),
    ("90", "In 90 days"),
    ("365", "In a year"),
];

const NEVER: &str = "never";

/// What a key can be held to, the commonest first.
pub const RESOURCES: [&str; 15] = [
    "namespace",
    "bucket",
    "collection",
    "retriever",
    "document",
    "taxonomy",
    "cluster",
    "alert",
    "annotation",
    "webhook",
    "storage_connection",
    "secret",
    "user",
    "api_key",
    "organization",
];

pub const OPERATIONS: [&str; 13] = [
    "read_data",
    "write_data",
    "delete_data",
    "execute_retriever",
    "create_retriever",
    "delete_retriever",
    "execute_job",
    "cancel_job",
    "create_cluster",
    "modify_cluster",
    "delete_cluster",
    "modify_infrastructure",
    "manage_permissions",
];

/// A resource that the key is held to.
#[derive(Clone, Copy)]
pub struct Scope {
    pub at: usize,
    pub kind: RwSignal<String>,
    pub id: RwSignal<String>,
    pub operations: RwSignal<Vec<&'static str>>,
}

impl Scope {
    pub fn new(at: usize, kind: String, id: String, operations: Vec<&'static str>) -> Self {
        Self {
            at,
            kind: RwSignal::new(kind),
            id: RwSignal::new(id),
            operations: RwSignal::new(operations),
        }
    }

    /// One of a key that is there.
    fn of(at: usize, one: &Record) -> Self {
        Self::new(
            at,
            one.text("resource_type"),
            one.text("resource_id"),
            operations(one),
        )
    }
}

/// The operations that a resource of a key is there for.
fn operations(one: &Record) -> Vec<&'static str> {
    let held = one.strings("operations");
    let all = OPERATIONS.into_iter();
    all.filter(|operation| held.iter().any(|held| held == operation))
        .collect()
}

/// A resource as it is sent.
fn resource(kind: String, id: &str, operations: Vec<&'static str>) -> Value {
    let mut scope = json!({"resource_type": kind, "resource_id": id.trim()});
    if !operations.is_empty() {
        scope["operations"] = operations.into();
    }
    scope
}

/// What would be sent of a key as it is.
fn unchanged(key: &Record) -> Value {
    let scopes = key.list("scopes").into_iter().map(|one| {
        let id = one.text("resource_id");
        resource(one.text("resource_type"), &id, operations(&one))
    });
    json!({
        "name": key.text("name").trim(),
        "description": key.text("description").trim(),
        "permissions": permissions(level(key)),
        "scopes": scopes.collect::<Vec<_>>(),
        "allowed_origins": key.strings("allowed_origins"),
        "rate_limit_override": key.int("rate_limit_override"),
        "expires_at": key.opt("expires_at"),
    })
}

fn permissions(level: &str) -> Option<&'static [&'static str]> {
    LEVELS.iter().find(|one| one.0 == level).map(|one| one.3)
}

/// What is filled in.
#[derive(Clone, Copy)]
pub struct Draft {
    pub name: RwSignal<String>,
    pub note: RwSignal<String>,
    pub level: RwSignal<&'static str>,
    pub days: RwSignal<String>,
    pub scopes: RwSignal<Vec<Scope>>,
    pub origins: RwSignal<String>,
    pub cap: RwSignal<String>,
    pub principal: RwSignal<String>,
}

fn empty() -> RwSignal<String> {
    RwSignal::new(String::new())
}

fn list(typed: &str) -> Vec<&str> {
    let all = typed.split([',', '\n', ' ']).map(str::trim);
    all.filter(|one| !one.is_empty()).collect()
}

impl Draft {
    pub fn new() -> Self {
        Self {
            name: empty(),
            note: empty(),
            level: RwSignal::new("read"),
            days: empty(),
            scopes: RwSignal::new(Vec::new()),
            origins: empty(),
            cap: empty(),
            principal: empty(),
        }
    }

    pub fn clear(self) {
        for text in [
            self.name,
            self.note,
            self.days,
            self.origins,
            self.cap,
            self.principal,
        ] {
            text.set(String::new());
        }
        self.level.set("read");
        self.scopes.set(Vec::new());
    }

    fn scopes(self) -> Vec<Value> {
        let all = self
            .scopes
            .get()
            .into_iter()
            .filter(|one| !one.id.get().trim().is_empty());
        all.map(|one| resource(one.kind.get(), &one.id.get(), one.operations.get()))
            .collect()
    }

    /// Fills in what a key is.
    pub fn fill(self, key: &Record) {
        self.clear();
        self.name.set(key.text("name"));
        self.note.set(key.text("description"));
        self.level.set(level(key));
        self.origins.set(key.strings("allowed_origins").join(", "));
        let cap = key.int("rate_limit_override");
        self.cap
            .set(cap.map(|cap| cap.to_string()).unwrap_or_default());
        let scopes = key.list("scopes").into_iter().enumerate();
        self.scopes
            .set(scopes.map(|(at, one)| Scope::of(at, &one)).collect());
    }

    /// What of a key changes: what was emptied is taken away, what is as it was may have been changed by somebody else meanwhile and
    /// is not sent. What a retriever's key may do is fixed.
    pub fn change(self, key: &Record, fixed: bool) -> Value {
        let mut body = self.body();
        body["description"] = self.note.get().trim().into();
        body["allowed_origins"] = list(&self.origins.get()).into();
        if body.get("rate_limit_override").is_none() {
            body["rate_limit_override"] = Value::Null;
        }
        body["scopes"] = self.scopes().into();
        if self.days.get() == NEVER {
            body["expires_at"] = Value::Null;
        }
        let was = unchanged(key);
        let is_fixed = |member: &str| fixed && matches!(member, "scopes" | "permissions");
        if let Some(members) = body.as_object_mut() {
            members.retain(|member, value| was[member.as_str()] != *value && !is_fixed(member));
        }
        body
    }

    /// What is sent; members that say nothing are left out.
    pub fn body(self) -> Value {
        let permissions = permissions(self.level.get());
        let mut body = json!({"name": self.name.get().trim(), "permissions": permissions});
        for (member, text) in [("description", self.note), ("principal_id", self.principal)] {
            if !text.get().trim().is_empty() {
                body[member] = text.get().trim().into();
            }
        }
        if let Ok(days) = self.days.get().parse::<f64>() {
            body["expires_at"] = text::before(-days).into();
        }
        match self.cap.get().trim() {
            "" => {}
            // What is no whole number is refused: left out, it would take the cap away.
            typed => {
                let cap = typed.parse::<i64>();
                body["rate_limit_override"] = cap.map_or_else(|_| typed.into(), Value::from);
            }
        }
        let (scopes, origins) = (self.scopes(), self.origins.get());
        if !scopes.is_empty() {
            body["scopes"] = scopes.into();
        }
        if !list(&origins).is_empty() {
            body["allowed_origins"] = list(&origins).into();
        }
        body
    }
}

/// The strongest level of a key: it contains the others.
pub fn level(key: &Record) -> &'static str {
    let held = key.strings("permissions");
    let level = LEVELS
        .iter()
        .rev()
        .find(|one| held.iter().any(|held| held == one.0));
    level.map_or("read", |one| one.0)
}

/// The key in a sentence, from what would be sent.
pub fn sentence(body: &Value) -> String {
    let can = match level(&Record(body.clone())) {
        "admin" => "do everything, with users, keys and settings",
        "delete" => "read, change and remove",
        "write" => "read and change",
        _ => "read and search",
    };
    let name = |scope: &Value| {
        let (kind, id) = (
            text::words(scope["resource_type"].as_str().unwrap_or("")),
            scope["resource_id"].as_str().unwrap_or(""),
        );
        let named = match id.strip_suffix('*') {
            Some("") => format!("every {kind}"),
            Some(start) => format!("every {kind} that starts with {start}"),
            None => format!("the {kind} {id}"),
        };
        let only = scope["operations"].as_array().into_iter().flatten();
        let only: Vec<_> = only.filter_map(Value::as_str).map(text::words).collect();
        match only.is_empty() {
            true => named,
            false => format!("{named} (only: {})", only.join(", ")),
        }
    };
    let within = body["scopes"].as_array().filter(|all| !all.is_empty());
    let within = within.map(|all| all.iter().map(name).collect::<Vec<_>>().join(" and "));
    let mut out = format!(
        "This key can {can}, in {}",
        within.unwrap_or_else(|| "the whole organization".into())
    );
    if let Some(id) = body["principal_id"].as_str() {
        out += &format!(", but sees only documents that {id} owns or was granted");
    }
    let origins = body["allowed_origins"].as_array();
    if let Some(all) = origins.filter(|all| !all.is_empty()) {
        let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
        out += &format!(", from pages of {}", all.join(", "));
    }
    if let Some(cap) = body["rate_limit_override"].as_i64() {
        out += &format!(", at most {} a minute", text::counted(cap, "time", "times"));
    }
    match body["expires_at"].as_str() {
        Some(at) => out += &format!(", until {}.", text::moment(at)),
        None => out += ", until it is revoked.",
    }
    out
}

#[cfg(test)]
mod tests {
    use loupe_wire::{NamespaceOperation, ResourceType};

    use super::*;

    #[test]
    fn a_key_is_told_in_a_sentence() {
        let wide = json!({"permissions": ["read", "write"]});
        assert_eq!(
            sentence(&wide),
            "This key can read and change, in the whole organization, until it is revoked."
        );
        let narrow = json!({"permissions": ["read"], "scopes": [{"resource_type": "bucket", "resource_id": "raw-*"}, {"resource_type": "namespace", "resource_id": "ns_1"}],
            "allowed_origins": ["https://a.example"], "rate_limit_override": 1200, "expires_at": "2026-12-01T10:00:00Z", "principal_id": "ann"});
        assert_eq!(
            sentence(&narrow),
            "This key can read and search, in every bucket that starts with raw- and the namespace ns_1, but sees only documents that ann owns or was \
             granted, from pages of https://a.example, at most 1,200 times a minute, until 2026-12-01 10:00."
        );
        let only = json!({"permissions": ["delete"], "allowed_origins": [], "scopes": [
            {"resource_type": "storage_connection", "resource_id": "*", "operations": ["read_data", "execute_job"]}]});
        assert_eq!(
            sentence(&only),
            "This key can read, change and remove, in every storage connection (only: read data, execute job), until it is revoked."
        );
    }

    #[test]
    fn what_a_key_can_be_held_to_exists() {
        for kind in RESOURCES {
            serde_json::from_value::<ResourceType>(kind.into()).expect("a kind of the API");
        }
        for operation in OPERATIONS {
            serde_json::from_value::<NamespaceOperation>(operation.into())
                .expect("an operation of the API");
        }
    }

    #[test]
    fn a_key_is_filled_in_and_changed() {
        let owner = Owner::new();
        owner.set();
        let scope = json!({"resource_type": "cluster", "resource_id": "clust_*", "operations": ["execute_job"]});
        let key = json!({"name": "ci", "description": "builds", "permissions": ["read", "write"], "scopes": [scope],
            "allowed_origins": ["https://a.example"], "rate_limit_override": 60, "expires_at": "2026-12-01T10:00:00Z"});
        let draft = Draft::new();
        let key = Record(key);
        draft.fill(&key);
        draft.level.set("admin");
        draft.cap.set("61".into());
        draft.scopes.with(|all| all[0].id.set("clust_1".into()));
        let mut narrow = scope.clone();
        narrow["resource_id"] = "clust_1".into();
        let some = json!({"permissions": ["admin"], "rate_limit_override": 61, "scopes": [narrow]});
        assert_eq!(draft.change(&key, false), some);
        for emptied in [draft.note, draft.origins, draft.cap] {
            emptied.set(String::new());
        }
        draft.days.set(NEVER.into());
        let fixed = json!({"description": "", "allowed_origins": [], "rate_limit_override": null, "expires_at": null});
        assert_eq!(draft.change(&key, true), fixed);
    }

    #[test]
    fn what_is_as_it_was_is_not_sent() {
        let owner = Owner::new();
        owner.set();
        let scope = json!({"resource_type": "bucket", "resource_id": "bkt_1", "operations": ["write_data", "read_data"]});
        for key in [
            json!({"name": "ci", "permissions": ["write"]}),
            json!({"name": "ci", "description": "builds", "permissions": ["write", "read"], "scopes": [scope], "allowed_origins": ["https://a.example"],
                "rate_limit_override": 60, "expires_at": "2026-12-01T10:00:00Z"}),
        ] {
            let (draft, key) = (Draft::new(), Record(key));
            draft.fill(&key);
            assert_eq!(draft.change(&key, false), json!({}));
            assert!(sentence(&key.0).starts_with("This key can read and change, in "));
            draft.name.set("ci-2".into());
            assert_eq!(draft.change(&key, false), json!({"name": "ci-2"}));
        }
        let (draft, key) = (
            Draft::new(),
            Record(json!({"name": "ci", "permissions": ["read"]})),
        );
        draft.fill(&key);
        draft.days.set(NEVER.into());
        assert_eq!(draft.change(&key, false), json!({}));
    }

    #[test]
    fn a_body_says_only_what_was_filled_in() {
        let owner = Owner::new();
        owner.set();
        let draft = Draft::new();
        draft.name.set(" ci ".into());
        assert_eq!(draft.body(), json!({"name": "ci", "permissions": ["read"]}));
        draft
            .origins
            .set("https://a.example, https://b.example".into());
        draft.cap.set("60".into());
        assert_eq!(
            draft.body()["allowed_origins"],
            json!(["https://a.example", "https://b.example"])
        );
        assert_eq!(draft.body()["rate_limit_override"], 60);
        draft.cap.set("1e3".into());
        assert_eq!(draft.body()["rate_limit_override"], "1e3");
    }
}
