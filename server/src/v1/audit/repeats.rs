//! What is done again and again and what the audit log is told of all the same: what keys are refused, which keys have ended,
//! whom hosted apps do not sign in and, where the organization wants that, what keys read. The first of its kind is written
//! within seconds; the same key with the same thing again is counted, and told of once an hour: a flood of requests is no
//! flood of records.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use axum::http::{Method, Uri};
use loupe_wire::{AuditAction, AuditEventResponse, ResourceType};
use serde_json::json;

use super::{Change, Stranger, event, store};
use crate::{
    app::App,
    auth::{Caller, Visitor},
    error::{Refused, Result},
    front,
};

const HOUR: i64 = 3600 * 1_000_000;
/// Different things of one key, or of all strangers at one app, that are told apart; the others are one.
const MOST: usize = 100;
/// Records of one transaction.
const TOGETHER: usize = 500;

/// Records on their way to the log, by organization and key, or app of strangers.
#[derive(Default)]
pub struct Repeats(Mutex<HashMap<(String, String), HashMap<What, Tally>>>);

/// What happened.
#[derive(PartialEq, Eq, Hash)]
struct What {
    operation: String,
    resource: String,
    /// Why it was refused; nothing for a read.
    code: Option<&'static str>,
    /// The network that strangers come from, those with a key that has ended among them; other keys are told apart wherever
    /// they are. Of what an app does for its visitors, who it is.
    from: String,
}

struct Tally {
    event: AuditEventResponse,
    /// Since the last record.
    waiting: i64,
    last: i64,
    told: Option<i64>,
}

/// Counts one refusal.
pub fn refused(app: &App, caller: &Caller, method: &Method, path: (&str, &Uri), refused: Refused) {
    let (template, uri) = path;
    let (kind, resource) = resource(template, uri.path(), &caller.org_id);
    let what = What {
        operation: format!("{method} {template}"),
        resource,
        code: Some(refused.0),
        from: of_visitor(caller),
    };
    let noted = Noted {
        caller,
        who: caller.actor(),
        action: AuditAction::PermissionDenied,
        kind,
        app_id: None,
    };
    note(app, noted, what);
}

/// Counts one request with a key that has ended, whatever it asked for.
pub fn turned_away(app: &App, caller: &Caller, code: &'static str) {
    let what = What {
        operation: "authenticate".into(),
        resource: caller.actor().to_owned(),
        code: Some(code),
        from: front::network(front::address()),
    };
    let noted = Noted {
        caller,
        who: caller.actor(),
        action: AuditAction::PermissionDenied,
        kind: ResourceType::ApiKey,
        app_id: None,
    };
    note(app, noted, what);
}

/// Counts one try to sign in to an app that failed. All strangers of an app together leave as many records as one key.
pub fn not_signed_in(app: &App, visitor: &Stranger<'_>, user_id: Option<&str>, code: &'static str) {
    let what = What {
        operation: visitor.way.to_owned(),
        resource: user_id.unwrap_or("*").to_owned(),
        code: Some(code),
        from: front::network(front::address()),
    };
    let noted = Noted {
        caller: &visitor.stranger(),
        who: visitor.app_id,
        action: AuditAction::PermissionDenied,
        kind: ResourceType::User,
        app_id: Some(visitor.app_id),
    };
    note(app, noted, what);
}

/// Counts one read, of what the log has a word for.
pub fn read(app: &App, caller: &Caller, method: &Method, path: (&str, &Uri)) {
    let (template, uri) = path;
    let (kind, resource) = read_resource(template, uri.path(), &caller.org_id);
    let action = match kind {
        ResourceType::Namespace => AuditAction::NamespaceAccessed,
        ResourceType::Bucket => AuditAction::BucketAccessed,
        ResourceType::Collection => AuditAction::CollectionAccessed,
        ResourceType::Retriever if template.ends_with("/execute") => AuditAction::RetrieverQueried,
        ResourceType::Retriever => AuditAction::RetrieverAccessed,
        ResourceType::Cluster => AuditAction::ClusterAccessed,
        ResourceType::Taxonomy => AuditAction::TaxonomyAccessed,
        ResourceType::Alert => AuditAction::AlertAccessed,
        ResourceType::Secret => AuditAction::SecretAccessed,
        _ => return,
    };
    let what = What {
        operation: format!("{method} {template}"),
        resource,
        code: None,
        from: of_visitor(caller),
    };
    let noted = Noted {
        caller,
        who: caller.actor(),
        action,
        kind,
        app_id: None,
    };
    note(app, noted, what);
}

/// Who of the visitors of an app it is.
fn of_visitor(caller: &Caller) -> String {
    match &caller.via.visitor {
        Some(Visitor::Known(visitor)) => visitor.clone(),
        Some(Visitor::Anybody) => front::network(front::address()),
        None => String::new(),
    }
}

/// Whom and what a tally is about, besides what tells it apart.
struct Noted<'a> {
    caller: &'a Caller,
    /// Id of the key, or of the app of strangers.
    who: &'a str,
    action: AuditAction,
    kind: ResourceType,
    app_id: Option<&'a str>,
}

fn note(app: &App, noted: Noted<'_>, mut what: What) {
    let now = app.clock().micros();
    let who = (noted.caller.org_id.clone(), noted.who.to_owned());
    let mut all = app.repeats.0.lock().unwrap_or_else(PoisonError::into_inner);
    let of_key = all.entry(who).or_default();
    let together = of_key.len() >= MOST && !of_key.contains_key(&what);
    if together {
        what.operation = "*".into();
        what.resource = "*".into();
        what.from = String::new();
    }
    if let Some(tally) = of_key.get_mut(&what) {
        tally.waiting += 1;
        tally.last = now;
        return;
    }
    let (status, mut changes) = match what.code {
        Some(code) => ("denied", json!({"operation": what.operation, "code": code})),
        None => ("success", json!({"operation": what.operation})),
    };
    if let Some(app_id) = noted.app_id {
        changes["app_id"] = app_id.into();
    }
    let change = Change {
        action: noted.action,
        resource: (noted.kind, &what.resource),
        changes,
    };
    let mut event = event(noted.caller, &change, status, now);
    if together {
        // They may come from everywhere, and be anybody.
        (event.ip_address, event.user_agent) = (None, None);
        if noted.caller.via.visitor.is_some() {
            (event.actor_id, event.actor_type) = (super::ANONYMOUS.into(), super::ANONYMOUS.into());
        }
    }
    let tally = Tally {
        event,
        waiting: 1,
        last: now,
        told: None,
    };
    of_key.insert(what, tally);
}

/// What a read is of: documents belong to their collection.
fn read_resource(template: &str, path: &str, org_id: &str) -> (ResourceType, String) {
    let documents = template.split_once("/documents");
    let template = documents.map_or(template, |(collection, _)| collection);
    resource(template, path, org_id)
}

/// The last resource that a path names, and its kind.
fn resource(template: &str, path: &str, org_id: &str) -> (ResourceType, String) {
    let mut found = (ResourceType::Organization, org_id.to_owned());
    let mut pieces = template.split('/').zip(path.split('/')).peekable();
    while let Some((noun, _)) = pieces.next() {
        let kind = match noun {
            "users" => ResourceType::User,
            "api-keys" => ResourceType::ApiKey,
            "namespaces" => ResourceType::Namespace,
            "buckets" => ResourceType::Bucket,
            "collections" => ResourceType::Collection,
            "documents" => ResourceType::Document,
            "retrievers" => ResourceType::Retriever,
            "secrets" => ResourceType::Secret,
            "clusters" => ResourceType::Cluster,
            "taxonomies" => ResourceType::Taxonomy,
            "alerts" => ResourceType::Alert,
            _ => continue,
        };
        let id = pieces
            .next_if(|(name, _)| name.starts_with('{'))
            .map_or("*", |(_, id)| id);
        found = (kind, id.chars().take(200).collect());
    }
    found
}

/// Writes what is due: what was not told of yet, and what has waited an hour; everything at the end of the process.
pub async fn flush(app: &App, end: bool) -> Result<()> {
    let due = due(app, end);
    if due.is_empty() {
        return Ok(());
    }
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for (org_id, event, now) in due {
                    store::insert(tx, &org_id, &event, now).await?;
                }
                Ok(())
            })
        })
        .await
}

fn due(app: &App, end: bool) -> Vec<(String, AuditEventResponse, i64)> {
    let now = app.clock().micros();
    let mut all = app.repeats.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut due = Vec::new();
    for ((org_id, _), of_key) in all.iter_mut() {
        for tally in of_key.values_mut() {
            let is_due = end || tally.told.is_none_or(|told| now - told >= HOUR);
            if tally.waiting == 0 || !is_due || due.len() >= TOGETHER {
                continue;
            }
            let mut event = tally.event.clone();
            event.audit_id = crate::id::new("aud_");
            event.timestamp = Some(crate::clock::time(tally.last));
            if let Some(changes) = event.changes.as_mut() {
                let counted = if event.status == "denied" {
                    "refusals"
                } else {
                    "reads"
                };
                changes[counted] = tally.waiting.into();
            }
            due.push((org_id.clone(), event, tally.last));
            (tally.waiting, tally.told) = (0, Some(now));
        }
        of_key.retain(|_, tally| tally.waiting > 0 || now - tally.last < HOUR);
    }
    all.retain(|_, of_key| !of_key.is_empty());
    due
}

#[cfg(test)]
mod tests {
    use loupe_wire::ResourceType;

    use super::resource;

    #[test]
    fn the_last_resource_of_a_path_is_what_was_refused() {
        for (template, path, kind, id) in [
            (
                "/v1/organizations",
                "/v1/organizations",
                ResourceType::Organization,
                "org_1",
            ),
            ("/v1/buckets", "/v1/buckets", ResourceType::Bucket, "*"),
            (
                "/v1/buckets/{bucket_identifier}/objects",
                "/v1/buckets/bkt_1/objects",
                ResourceType::Bucket,
                "bkt_1",
            ),
            (
                "/v1/collections/{c}/documents/{d}/acl",
                "/v1/collections/col_1/documents/doc_2/acl",
                ResourceType::Document,
                "doc_2",
            ),
            (
                "/v1/collections/{c}/documents/list",
                "/v1/collections/col_1/documents/list",
                ResourceType::Document,
                "*",
            ),
            (
                "/v1/organizations/users/{u}/api-keys/{k}",
                "/v1/organizations/users/a@b/api-keys/robot",
                ResourceType::ApiKey,
                "robot",
            ),
        ] {
            assert_eq!(
                resource(template, path, "org_1"),
                (kind, id.to_owned()),
                "{template}"
            );
        }
    }
}
