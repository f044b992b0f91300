//! Who signs in to hosted apps. A success is a record in the transaction of its session. What fails is counted as the refusals
//! of keys are, so that no stranger fills the log.

use axum::http::HeaderMap;
use loupe_wire::{APIKeyModel, AuditAction, ResourceType, Value};
use serde_json::json;

use super::{Change, record};
use crate::{
    auth::{Caller, Via},
    db::Tx,
    error::Result,
    front,
};

/// Who has not proven to be anybody.
pub(super) const ANONYMOUS: &str = "anonymous";

/// Somebody at the door of an app.
pub struct Stranger<'a> {
    pub org_id: &'a str,
    pub app_id: &'a str,
    /// Method and path of the way in.
    pub way: &'static str,
    pub headers: &'a HeaderMap,
}

impl Stranger<'_> {
    /// What the log tells of a visitor who is nobody yet.
    pub(super) fn stranger(&self) -> Caller {
        self.caller(APIKeyModel {
            key_id: Some(ANONYMOUS.into()),
            ..Default::default()
        })
    }

    /// What the log tells of a visitor who has proven to be this person.
    pub fn person(&self, user_id: &str) -> Caller {
        self.caller(APIKeyModel {
            user_id: user_id.to_owned(),
            ..Default::default()
        })
    }

    fn caller(&self, key: APIKeyModel) -> Caller {
        let mut caller = Caller::internal(APIKeyModel {
            organization_id: Some(self.org_id.to_owned()),
            ..key
        });
        let address = front::address().map(|address| address.to_string());
        // A reason is for those who change something of the organization.
        let via = Via {
            reason: None,
            ..Via::of(self.headers, address.as_deref())
        };
        caller.via = via.into();
        caller
    }
}

/// Records that a person signed in, in the transaction of the session.
pub async fn signed_in(
    tx: &mut Tx,
    person: &Caller,
    (app_id, way): (&str, &str),
    now: i64,
) -> Result<()> {
    let changes = json!({"signed_in": true, "operation": way, "app_id": app_id});
    told(tx, person, AuditAction::UserUpdated, changes, now).await
}

/// Records that a person ended a session, or all of them, in the transaction that ends them.
pub async fn signed_out(
    tx: &mut Tx,
    person: &Caller,
    (app_id, way): (&str, &str),
    everywhere: bool,
    now: i64,
) -> Result<()> {
    let changes = json!({
        "signed_out": true, "everywhere": everywhere, "operation": way, "app_id": app_id,
    });
    told(tx, person, AuditAction::UserUpdated, changes, now).await
}

/// Records that a person made an account, in the transaction that makes it.
pub async fn made(
    tx: &mut Tx,
    person: &Caller,
    (app_id, way): (&str, &str),
    now: i64,
) -> Result<()> {
    let changes = json!({"operation": way, "app_id": app_id});
    told(tx, person, AuditAction::UserCreated, changes, now).await
}

/// Records what a person did with the own account.
async fn told(
    tx: &mut Tx,
    person: &Caller,
    action: AuditAction,
    changes: Value,
    now: i64,
) -> Result<()> {
    let resource = (ResourceType::User, person.key.user_id.as_str());
    let change = Change {
        action,
        resource,
        changes,
    };
    record(tx, person, change, now).await
}
