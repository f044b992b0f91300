//! People of the organization.

mod routes;
mod store;

use loupe_wire::{UserCreateRequest, UserModel, UserStatus, UserUpdateRequest};

pub use routes::router;
pub use store::{find, find_in, insert, list};

use crate::{
    app::App,
    clock,
    error::{ApiError, Result, Violation},
    id,
};

pub async fn create(app: &App, org_id: &str, request: UserCreateRequest) -> Result<UserModel> {
    let well_formed = request
        .email
        .split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
    if !well_formed || request.email.len() > 254 || request.email.contains(char::is_whitespace) {
        return Err(Violation::body(
            &["email"],
            "value_error",
            "this is not an e-mail address",
            request.email.into(),
        )
        .into());
    }
    let (org_id, now) = (org_id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let at = clock::time(now);
                let user = UserModel {
                    user_id: id::new("usr_"),
                    organization_id: org_id,
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
                Ok(user)
            })
        })
        .await
}

pub async fn update(
    app: &App,
    org_id: &str,
    email: &str,
    request: UserUpdateRequest,
) -> Result<UserModel> {
    let (org_id, email, now) = (org_id.to_owned(), email.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut user = store::find_in(tx, &org_id, &email).await?;
                user.user_name = request.user_name.unwrap_or(user.user_name);
                user.avatar_url = request.avatar_url.or(user.avatar_url);
                user.role = request.role.unwrap_or(user.role);
                user.status = request.status.unwrap_or(user.status);
                user.metadata = request.metadata.unwrap_or(user.metadata);
                user.updated_at = clock::time(now);
                store::update(tx, &user, now).await?;
                Ok(user)
            })
        })
        .await
}
