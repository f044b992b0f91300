//! What the audit log is told of apps, which belong to the organization, and of their people. Nothing of what an owner keeps
//! in an app is told whole: its variables may be secrets.

use loupe_wire::{AuditAction, ResourceType, Value};
use serde_json::json;

use super::Hosted;
use crate::{
    auth::Caller,
    db::Tx,
    error::Result,
    v1::audit::{self, Change, PartOf},
};

/// Something happened to an app; `about` tells the rest.
pub(super) async fn app(
    tx: &mut Tx,
    caller: &Caller,
    (app_id, change): (&str, &str),
    about: Value,
    now: i64,
) -> Result<()> {
    let mut changes = json!({"change": change, "app_id": app_id});
    if let (Some(all), Value::Object(about)) = (changes.as_object_mut(), about) {
        all.extend(about);
    }
    audit::record_part(tx, caller, PartOf::Organization, changes, now).await
}

/// Changes an app; answers with its name and the members that are others then.
pub(super) fn changed(hosted: &mut Hosted, change: impl FnOnce(&mut Hosted)) -> Value {
    let before = hosted.clone();
    change(hosted);
    json!({"slug": hosted.slug, "members": audit::changed_members(&before, hosted)})
}

/// Something happened to somebody who signs in to an app.
pub(super) async fn person(
    tx: &mut Tx,
    caller: &Caller,
    (app_id, user_id): (&str, &str),
    action: AuditAction,
    role: Option<(&str, &str)>,
    now: i64,
) -> Result<()> {
    let mut changes = json!({"app_id": app_id});
    if let Some((before, after)) = role {
        changes["role"] = json!({"before": before, "after": after});
    }
    let change = Change {
        action,
        resource: (ResourceType::User, user_id),
        changes,
    };
    audit::record(tx, caller, change, now).await
}
