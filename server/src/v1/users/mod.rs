//! People of the organization.

mod routes;
mod store;

use loupe_wire::{
    AuditAction, NamespaceOperation, ResourceType, UserCreateRequest, UserModel, UserStatus,
    UserUpdateRequest,
};
use serde_json::json;

pub use routes::router;
pub use store::{find, find_by_id, find_by_id_in, find_in, insert, list_ever};

use super::{
    api_keys, apps,
    audit::{self, Change},
    organizations::Clearing,
    templates,
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    error::{ApiError, Result, Violation},
    id,
};

/// People of the organization that the key's scopes cover.
pub async fn seen(app: &App, caller: &Caller) -> Result<Vec<UserModel>> {
    let mut users = store::list(app.db(), &caller.org_id).await?;
    let (kind, operation) = (ResourceType::User, NamespaceOperation::ReadData);
    users.retain(|user| caller.covers(kind, &user.user_id, operation));
    let mut uses = api_keys::last_uses(app, &caller.org_id).await?;
    for user in &mut users {
        user.last_login_at = uses.remove(&user.user_id);
    }
    Ok(users)
}

/// With the last use of the user's keys, which is kept with them.
async fn with_last_use(app: &App, mut user: UserModel) -> Result<UserModel> {
    let mut uses = api_keys::last_uses(app, &user.organization_id).await?;
    user.last_login_at = uses.remove(&user.user_id);
    Ok(user)
}

/// One of them.
pub async fn get(app: &App, caller: &Caller, email: &str) -> Result<UserModel> {
    let user = store::find(app.db(), &caller.org_id, email).await?;
    let (kind, operation) = (ResourceType::User, NamespaceOperation::ReadData);
    caller.allow(kind, &user.user_id, operation)?;
    with_last_use(app, user).await
}

/// Whether the key's scopes let it manage this user.
fn allow(caller: &Caller, user_id: &str) -> Result<()> {
    caller.allow(
        ResourceType::User,
        user_id,
        NamespaceOperation::ManagePermissions,
    )
}

/// What is said of a text that is no e-mail address.
pub const NO_ADDRESS: &str = "this is not an e-mail address";

/// Whether a text can be an e-mail address at all.
pub fn is_address(text: &str) -> bool {
    let halves = text.split_once('@');
    halves.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
        && text.len() <= 254
        && !text.contains(char::is_whitespace)
}

pub async fn create(app: &App, caller: &Caller, request: UserCreateRequest) -> Result<UserModel> {
    allow(caller, "*")?;
    if !is_address(&request.email) {
        let sent = request.email.into();
        return Err(Violation::body(&["email"], "value_error", NO_ADDRESS, sent).into());
    }
    let (caller, now) = (caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let at = clock::time(now);
                let user = UserModel {
                    user_id: id::new("usr_"),
                    organization_id: caller.org_id.clone(),
                    email: request.email.to_lowercase(),
                    user_name: request.user_name,
                    avatar_url: request.avatar_url,
                    role: request.role,
                    status: request.status.unwrap_or(UserStatus::Active),
                    metadata: request.metadata.unwrap_or_default(),
                    created_at: at,
                    updated_at: at,
                    last_login_at: None,
                };
                if store::find_in(tx, &user.organization_id, &user.email)
                    .await
                    .is_ok()
                {
                    let message = format!("a user with the address {} exists already", user.email);
                    return Err(ApiError::already_exists("name_taken", message));
                }
                store::insert(tx, &user, now).await?;
                let change = Change {
                    action: AuditAction::UserCreated,
                    resource: (ResourceType::User, &user.user_id),
                    changes: json!({ "email": user.email, "role": user.role, "status": user.status }),
                };
                audit::record(tx, &caller, change, now).await?;
                Ok(user)
            })
        })
        .await
}

/// Changes a user. Suspending one revokes the keys held, for good.
pub async fn update(
    app: &App,
    caller: &Caller,
    email: &str,
    sent: Clearing<UserUpdateRequest>,
) -> Result<UserModel> {
    let (caller, email, now) = (caller.clone(), email.to_owned(), app.clock().micros());
    let (user, hashes) = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                api_keys::hold(tx, &caller.org_id).await?;
                let before = store::find_in(tx, &caller.org_id, &email).await?;
                allow(&caller, &before.user_id)?;
                let user = changed(before.clone(), sent, now);
                store::update(tx, &user, now).await?;
                let change = Change {
                    action: AuditAction::UserUpdated,
                    resource: (ResourceType::User, &user.user_id),
                    changes: audit::difference(&before, &user),
                };
                audit::record(tx, &caller, change, now).await?;
                let hashes = if user.status == UserStatus::Suspended {
                    api_keys::revoke_all_of_user(tx, &caller, &user.user_id, now).await?
                } else {
                    Vec::new()
                };
                Ok((user, hashes))
            })
        })
        .await?;
    api_keys::forget(app, &hashes);
    with_last_use(app, user).await
}

fn changed(mut user: UserModel, sent: Clearing<UserUpdateRequest>, now: i64) -> UserModel {
    let Clearing { request, nulls } = sent;
    user.avatar_url = nulls.after("avatar_url", request.avatar_url, user.avatar_url);
    user.user_name = request.user_name.unwrap_or(user.user_name);
    user.role = request.role.unwrap_or(user.role);
    user.status = request.status.unwrap_or(user.status);
    user.metadata = request.metadata.unwrap_or(user.metadata);
    user.updated_at = clock::time(now);
    user
}

/// Removes a user and revokes the keys held. What the user made stays. Without `force` one whose keys live apps have in them is
/// kept.
pub async fn delete(app: &App, caller: &Caller, email: &str, force: bool) -> Result<()> {
    let embedding = apps::Embedding::read(app, &caller.org_id).await?;
    let (caller, email, now) = (caller.clone(), email.to_owned(), app.clock().micros());
    let hashes = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                api_keys::hold(tx, &caller.org_id).await?;
                let user = store::find_in(tx, &caller.org_id, &email).await?;
                allow(&caller, &user.user_id)?;
                if !force {
                    let id = &user.user_id;
                    api_keys::check_unembedded_of_user(tx, &caller, id, &embedding).await?;
                }
                let hashes = api_keys::revoke_all_of_user(tx, &caller, &user.user_id, now).await?;
                templates::forget_user(tx, &caller.org_id, &user.user_id).await?;
                store::delete(tx, &user, now).await?;
                let change = Change {
                    action: AuditAction::UserDeleted,
                    resource: (ResourceType::User, &user.user_id),
                    changes: json!({ "email": user.email }),
                };
                audit::record(tx, &caller, change, now).await?;
                Ok(hashes)
            })
        })
        .await?;
    api_keys::forget(app, &hashes);
    Ok(())
}
