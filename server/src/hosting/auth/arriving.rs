//! How somebody becomes a person of an app, whatever way they come: who may, what they are called, and what the log is told.

use super::{
    Asked,
    session::place,
    store::{self, Place, Profile, User},
};
use crate::{
    auth::Caller,
    db::Tx,
    error::{ApiError, Result},
    id,
    v1::{apps, audit},
};

/// The role of those who were not given another.
const ROLE: &str = "org:member";

/// Somebody who may become a person of an app.
pub(super) struct Arriving {
    pub place: Place,
    /// As the audit log tells them, under the id that they have then.
    person: Caller,
    way: &'static str,
    /// Only those come who were invited.
    is_closed: bool,
}

impl Arriving {
    /// Whoever sends this request.
    pub fn of(asked: &Asked<'_>) -> Self {
        Self {
            place: place(asked.site),
            person: asked.visitor().person(&id::new("eu_")),
            way: asked.way,
            is_closed: is_closed(asked),
        }
    }

    /// Makes the person, with the role that waited for the address; nobody where only those come who were invited, and this address
    /// was not. An address that is not `proven` finds nothing: no role, no invitation, no account.
    pub async fn admit(
        &self,
        tx: &mut Tx,
        proven: Option<String>,
        profile: Profile,
        now: i64,
    ) -> Result<Option<User>> {
        let role = match &proven {
            Some(email) => store::invited(tx, &self.place, email).await?,
            None => None,
        };
        if self.is_closed && role.is_none() {
            return Ok(None);
        }
        let user_id = self.person.key.user_id.clone();
        let user = User {
            email: proven.unwrap_or_else(|| user_id.clone()),
            user_id,
            created_at: now,
            profile: Profile {
                role: role.unwrap_or_else(|| ROLE.into()),
                ..profile
            },
        };
        store::insert(tx, &self.place, &user).await?;
        audit::made(tx, &self.person, (&self.place.app_id, self.way), now).await?;
        Ok(Some(user))
    }
}

/// Whether only those make an account who were invited.
pub(super) fn is_closed(asked: &Asked<'_>) -> bool {
    apps::check::is_by_invitation(&asked.site.hosted)
}

/// What whoever was not invited is told, once they have proven who they are.
pub(super) fn not_invited() -> ApiError {
    ApiError::forbidden(
        "sign_up_closed",
        "Only people who were invited have an account here. Ask whoever runs this app for an invitation.",
    )
}
