//! The people of an app, for its owner: who signed in, who may do what, who was asked to come.

use axum::extract::{Path, State};
use loupe_wire::{
    AppInvitationResponse, AppUserResponse, AuditAction, GenericDeleteResponse, InviteUserRequest,
    ListInvitationsResponse, ListUsersResponse, SignInTestResponse, UpdateRoleRequest,
};
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{Hosted, noted, store};
use crate::{
    app::App,
    auth::{Admin, Caller, Org},
    body::Body,
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    hosting::{
        self,
        auth::{
            User, address,
            store::{self as people, Place},
        },
    },
    id,
    json::Json,
    list::Params,
    mail,
    openapi::routes,
};

/// People that are listed.
const LISTED: i64 = 10_000;

/// The status of an invitation of somebody who is there.
const ACCEPTED: &str = "accepted";

/// Invitations that wait.
const INVITED: i64 = 1_000;

async fn place(app: &App, caller: &Caller, app_id: &str) -> Result<(Place, Hosted)> {
    let record = super::find(app, caller, app_id).await?;
    let place = Place {
        org_id: caller.org_id.clone(),
        app_id: record.id,
    };
    Ok((place, record.data.0))
}

fn told(app_id: &str, user: User) -> AppUserResponse {
    let shown = user.shown_email();
    let last = user.profile.signed_in.as_ref();
    AppUserResponse {
        membership_id: format!("{app_id}/{}", user.user_id),
        email: (!shown.is_empty()).then(|| shown.to_owned()),
        email_verified: (!user.has_proven()).then_some(false),
        last_signed_in_at: last.map(|last| clock::time(last.at).to_rfc3339()),
        last_signed_in_with: last.map(|last| last.way.clone()),
        user_id: user.user_id,
        name: user.profile.name,
        avatar_url: user.profile.avatar_url,
        role: user.profile.role,
        joined_at: Some(clock::time(user.created_at).to_rfc3339()),
    }
}

/// Everybody who signed in, the first ones first; those of whose address or name `search` is a part.
pub async fn list(
    app: &App,
    caller: &Caller,
    app_id: &str,
    query: UsersQuery,
) -> Result<ListUsersResponse> {
    let (limit, offset) = (query.limit.unwrap_or(LISTED), query.offset.unwrap_or(0));
    if !(1..=LISTED).contains(&limit) {
        let msg = "must be between 1 and 10000";
        return Err(Violation::query("limit", "range", msg, limit.into()).into());
    }
    if offset < 0 {
        let msg = "must be at least 0";
        return Err(Violation::query("offset", "range", msg, offset.into()).into());
    }
    let (place, _) = place(app, caller, app_id).await?;
    let page = (limit, offset);
    let (users, total) = match query.search.as_deref().unwrap_or_default().trim() {
        "" => people::list(app.db(), &place, page).await?,
        part => people::search(app.db(), &place, part, page).await?,
    };
    Ok(ListUsersResponse {
        total,
        users: users
            .into_iter()
            .map(|user| told(&place.app_id, user))
            .collect(),
    })
}

/// Roles are the owner's own words.
fn check_role(role: &str) -> Result<()> {
    let good = role
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b":_-.".contains(&byte));
    if good {
        return Ok(());
    }
    let message = "a role has letters, digits and : _ - .";
    Err(Violation::body(&["role"], "value_error", message, role.into()).into())
}

/// Gives somebody a role.
pub async fn set_role(
    app: &App,
    caller: &Caller,
    app_id: &str,
    user_id: &str,
    role: String,
) -> Result<AppUserResponse> {
    check_role(&role)?;
    let (place, _) = place(app, caller, app_id).await?;
    let (here, id, now) = (place.clone(), user_id.to_owned(), app.clock().micros());
    let by = caller.clone();
    let changed = app
        .db()
        .write(move |tx| Box::pin(async move { give_role(tx, &by, &here, &id, role, now).await }))
        .await?;
    let changed = changed.ok_or_else(|| ApiError::not_found("user", user_id))?;
    Ok(told(&place.app_id, changed))
}

/// The person with the new role; nobody without such a person.
async fn give_role(
    tx: &mut Tx,
    caller: &Caller,
    place: &Place,
    user_id: &str,
    role: String,
    now: i64,
) -> Result<Option<User>> {
    let Some(mut user) = people::hold(tx, place, user_id).await? else {
        return Ok(None);
    };
    let before = std::mem::replace(&mut user.profile.role, role);
    people::update(tx, place, &user, now).await?;
    let (who, roles) = (
        (place.app_id.as_str(), user_id),
        (before.as_str(), user.profile.role.as_str()),
    );
    noted::person(tx, caller, who, AuditAction::UserUpdated, Some(roles), now).await?;
    Ok(Some(user))
}

/// Removes somebody from the app, signed out everywhere.
pub async fn remove(app: &App, caller: &Caller, app_id: &str, user_id: &str) -> Result<()> {
    let (place, _) = place(app, caller, app_id).await?;
    let (by, id, now) = (caller.clone(), user_id.to_owned(), app.clock().micros());
    let removed = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let removed = people::delete(tx, &place, &id).await?;
                if removed {
                    let who = (place.app_id.as_str(), id.as_str());
                    noted::person(tx, &by, who, AuditAction::UserDeleted, None, now).await?;
                }
                Ok(removed)
            })
        })
        .await?;
    if removed {
        Ok(())
    } else {
        Err(ApiError::not_found("user", user_id))
    }
}

/// Whether people could sign in.
pub async fn test_sign_in(app: &App, caller: &Caller, app_id: &str) -> Result<SignInTestResponse> {
    let (place, hosted) = place(app, caller, app_id).await?;
    let providers = hosting::auth::inspect(app, &place.org_id, &hosted).await;
    Ok(SignInTestResponse {
        app_id: place.app_id,
        success: providers.iter().all(|one| one.success),
        providers,
    })
}

fn invitation(row: store::Invitation) -> AppInvitationResponse {
    AppInvitationResponse {
        invitation_id: row.invitation_id,
        email_address: row.email,
        role: row.role,
        status: row.status,
        created_at: Some(clock::time(row.created_at).to_rfc3339()),
    }
}

/// Asks somebody to come: the role waits for the address, or is that of whoever has it from now on.
pub async fn invite(
    app: &App,
    caller: &Caller,
    app_id: &str,
    request: InviteUserRequest,
) -> Result<AppInvitationResponse> {
    check_role(&request.role)?;
    let email = address(&request.email_address).ok_or_else(|| {
        let message = "this is no e-mail address";
        let sent = request.email_address.as_str().into();
        Violation::body(&["email_address"], "value_error", message, sent)
    })?;
    let (place, hosted) = place(app, caller, app_id).await?;
    if !super::has_sign_in(hosted.auth_config.as_ref()) {
        let message =
            "nobody signs in to this app: let people sign in first, by the mode of auth_config";
        return Err(ApiError::conflict("no_sign_in", message));
    }
    let row = store::Invitation {
        invitation_id: id::new("inv_"),
        email: email.clone(),
        role: request.role,
        status: "pending".into(),
        created_at: app.clock().micros(),
    };
    let domains = store::domains(app.db(), &place.org_id, &place.app_id).await?;
    let by = caller.clone();
    let row = app
        .db()
        .write(move |tx| Box::pin(async move { keep_invitation(tx, &by, &place, row).await }))
        .await?;
    let name = &hosted.page().meta.title;
    let (what, page) = match row.status == ACCEPTED {
        true => ("You have an account already: sign in", "sign-in"),
        false => ("Make your account with this address", "sign-up"),
    };
    let home = super::mailed(app, &hosted.slug, &domains);
    let text = format!("You are invited to {name}. {what} at\n\n{home}/_auth/{page}\n");
    mail::send(app, &email, &format!("You are invited to {name}"), text);
    Ok(invitation(row))
}

/// Keeps the invitation. Who came already has the role at once: nothing waits.
async fn keep_invitation(
    tx: &mut Tx,
    caller: &Caller,
    place: &Place,
    mut row: store::Invitation,
) -> Result<store::Invitation> {
    if let Some(user) = people::by_email_in(tx, place, &row.email).await? {
        let (role, now) = (row.role.clone(), row.created_at);
        give_role(tx, caller, place, &user.user_id, role, now).await?;
        row.status = ACCEPTED.into();
    } else if store::count_invitations(tx, place).await? >= INVITED {
        let message = format!("an app has at most {INVITED} invitations that wait");
        return Err(ApiError::conflict("", message).with("limit", INVITED));
    }
    store::insert_invitation(tx, place, &row).await?;
    let about = json!({"invitation_id": row.invitation_id, "role": row.role});
    let change = (place.app_id.as_str(), "app_user_invited");
    noted::app(tx, caller, change, about, row.created_at).await?;
    Ok(row)
}

/// Everybody who was asked to come.
pub async fn invitations(
    app: &App,
    caller: &Caller,
    app_id: &str,
) -> Result<ListInvitationsResponse> {
    let (place, _) = place(app, caller, app_id).await?;
    let rows = store::invitations(app.db(), &place).await?;
    Ok(ListInvitationsResponse {
        total: i64::try_from(rows.len()).unwrap_or(i64::MAX),
        invitations: rows.into_iter().map(invitation).collect(),
    })
}

/// Takes an invitation back.
pub async fn uninvite(app: &App, caller: &Caller, app_id: &str, invitation_id: &str) -> Result<()> {
    let (place, _) = place(app, caller, app_id).await?;
    let (by, id, now) = (
        caller.clone(),
        invitation_id.to_owned(),
        app.clock().micros(),
    );
    let removed = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let removed = store::delete_invitation(tx, &place, &id).await?;
                if removed {
                    let change = (place.app_id.as_str(), "app_invitation_withdrawn");
                    noted::app(tx, &by, change, json!({ "invitation_id": id }), now).await?;
                }
                Ok(removed)
            })
        })
        .await?;
    if removed {
        Ok(())
    } else {
        Err(ApiError::not_found("invitation", invitation_id))
    }
}

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_app_users))
        .routes(routes!(remove_user))
        .routes(routes!(set_user_role))
        .routes(routes!(invite_user))
        .routes(routes!(list_invitations))
        .routes(routes!(delete_invitation))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UsersQuery {
    /// 1 to 10000, which is the default.
    limit: Option<i64>,
    /// From 0.
    offset: Option<i64>,
    /// A part of an address or a name.
    search: Option<String>,
}

/// Everybody who signed in to an app, the first ones first.
#[utoipa::path(get, path = "/v1/apps/{app_id}/users", tag = "apps", params(UsersQuery), responses((status = 200, body = ListUsersResponse)))]
async fn list_app_users(
    State(app): State<App>,
    org: Org<Admin>,
    Path(app_id): Path<String>,
    Params(query): Params<UsersQuery>,
) -> Result<Json<ListUsersResponse>> {
    list(&app, &org.caller, &app_id, query).await.map(Json)
}

/// Removes somebody from an app, signed out everywhere.
#[utoipa::path(delete, path = "/v1/apps/{app_id}/users/{user_id}", tag = "apps", responses((status = 200, body = GenericDeleteResponse)))]
async fn remove_user(
    State(app): State<App>,
    org: Org<Admin>,
    Path((app_id, user_id)): Path<(String, String)>,
) -> Result<Json<GenericDeleteResponse>> {
    remove(&app, &org.caller, &app_id, &user_id).await?;
    Ok(Json(GenericDeleteResponse {
        message: "the user is removed".into(),
        ..Default::default()
    }))
}

/// Gives somebody a role.
#[utoipa::path(patch, path = "/v1/apps/{app_id}/users/{user_id}/role", tag = "apps", request_body = UpdateRoleRequest, responses((status = 200, body = AppUserResponse)))]
async fn set_user_role(
    State(app): State<App>,
    org: Org<Admin>,
    Path((app_id, user_id)): Path<(String, String)>,
    Body(request): Body<UpdateRoleRequest>,
) -> Result<Json<AppUserResponse>> {
    set_role(&app, &org.caller, &app_id, &user_id, request.role)
        .await
        .map(Json)
}

/// Asks somebody to come: a mail goes out, and the role waits for the address.
#[utoipa::path(post, path = "/v1/apps/{app_id}/users/invite", tag = "apps", request_body = InviteUserRequest, responses((status = 200, body = AppInvitationResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn invite_user(
    State(app): State<App>,
    org: Org<Admin>,
    Path(app_id): Path<String>,
    Body(request): Body<InviteUserRequest>,
) -> Result<Json<AppInvitationResponse>> {
    invite(&app, &org.caller, &app_id, request).await.map(Json)
}

/// Everybody who was asked to come.
#[utoipa::path(get, path = "/v1/apps/{app_id}/users/invitations", tag = "apps", responses((status = 200, body = ListInvitationsResponse)))]
async fn list_invitations(
    State(app): State<App>,
    org: Org<Admin>,
    Path(app_id): Path<String>,
) -> Result<Json<ListInvitationsResponse>> {
    invitations(&app, &org.caller, &app_id).await.map(Json)
}

/// Takes an invitation back.
#[utoipa::path(delete, path = "/v1/apps/{app_id}/users/invitations/{invitation_id}", tag = "apps", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_invitation(
    State(app): State<App>,
    org: Org<Admin>,
    Path((app_id, invitation_id)): Path<(String, String)>,
) -> Result<Json<GenericDeleteResponse>> {
    uninvite(&app, &org.caller, &app_id, &invitation_id).await?;
    Ok(Json(GenericDeleteResponse {
        message: "the invitation is taken back".into(),
        ..Default::default()
    }))
}
