//! Who signs in to hosted apps. A success is a record in the transaction of its session. What fails is counted as the refusals
//! of keys are, so that no stranger fills the log.

use axum::http::HeaderMap;
use loupe_wire::{APIKeyModel, AuditAction, ResourceType};
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
pub struct Visitor<'a> {
    pub org_id: &'a str,
    pub app_id: &'a str,
    /// Method and path of the way in.
    pub way: &'static str,
    pub headers: &'a HeaderMap,
}

impl Visitor<'_> {
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
    let change = Change {
        action: AuditAction::UserUpdated,
        resource: (ResourceType::User, &person.key.user_id),
        changes: json!({"signed_in": true, "operation": way, "app_id": app_id}),
    };
    record(tx, person, change, now).await
}
