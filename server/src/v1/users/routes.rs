use axum::extract::{Path, State};
use loupe_wire::{
    GenericSuccessResponse, UserCreateRequest, UserListResponse, UserModel, UserRole, UserStatus,
    UserUpdateRequest,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Admin, Org, Read},
    body::Body,
    error::{ApiError, Result},
    json::Json,
    list::{self, Params},
    openapi::routes,
    v1::organizations::Clearing,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_users, create_user))
        .routes(routes!(get_user, update_user, delete_user))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct UsersQuery {
    /// How many to pass over, from 0, default 0.
    skip: Option<i64>,
    /// 1 to 1000, default 50.
    limit: Option<i64>,
    role: Option<UserRole>,
    status: Option<UserStatus>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct RemoveQuery {
    /// Removes a user whose keys live apps have in them.
    force: Option<bool>,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for UsersQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self> {
        list::query(parts).await
    }
}

/// Users of the organization.
#[utoipa::path(get, path = "/v1/organizations/users", tag = "users", params(UsersQuery), responses((status = 200, body = UserListResponse)))]
async fn list_users(
    State(app): State<App>,
    org: Org<Read>,
    query: UsersQuery,
) -> Result<Json<UserListResponse>> {
    let skip = list::within("skip", query.skip, 0, (0, i64::MAX))?;
    let limit = list::within("limit", query.limit, 50, (1, 1000))?;
    let mut users = super::seen(&app, &org.caller).await?;
    users.retain(|user| {
        query.role.is_none_or(|role| role == user.role)
            && query.status.is_none_or(|status| status == user.status)
    });
    let total = i64::try_from(users.len()).unwrap_or(i64::MAX);
    let window = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    let results = users
        .into_iter()
        .skip(window(skip))
        .take(window(limit))
        .collect();
    Ok(Json(UserListResponse {
        results,
        total,
        skip,
        limit,
    }))
}

/// Adds a user.
#[utoipa::path(post, path = "/v1/organizations/users", tag = "users", request_body = UserCreateRequest, responses((status = 200, body = UserModel), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn create_user(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<UserCreateRequest>,
) -> Result<Json<UserModel>> {
    super::create(&app, &org.caller, request).await.map(Json)
}

/// One user.
#[utoipa::path(get, path = "/v1/organizations/users/{user_email}", tag = "users", responses((status = 200, body = UserModel)))]
async fn get_user(
    State(app): State<App>,
    org: Org<Read>,
    Path(email): Path<String>,
) -> Result<Json<UserModel>> {
    super::get(&app, &org.caller, &email).await.map(Json)
}

/// Changes a user. Suspending one revokes the keys held, for good.
#[utoipa::path(patch, path = "/v1/organizations/users/{user_email}", tag = "users", request_body = UserUpdateRequest, responses((status = 200, body = UserModel)))]
async fn update_user(
    State(app): State<App>,
    org: Org<Admin>,
    Path(email): Path<String>,
    sent: Clearing<UserUpdateRequest>,
) -> Result<Json<UserModel>> {
    super::update(&app, &org.caller, &email, sent)
        .await
        .map(Json)
}

/// Removes a user and revokes the keys held, for good. What the user made stays. Refused while live apps have such a key in them,
/// with what was found, unless forced.
#[utoipa::path(delete, path = "/v1/organizations/users/{user_email}", tag = "users", params(RemoveQuery), responses((status = 200, body = GenericSuccessResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn delete_user(
    State(app): State<App>,
    org: Org<Admin>,
    Path(email): Path<String>,
    Params(query): Params<RemoveQuery>,
) -> Result<Json<GenericSuccessResponse>> {
    super::delete(&app, &org.caller, &email, query.force.unwrap_or(false)).await?;
    Ok(Json(GenericSuccessResponse {
        message: "the user was removed".into(),
        success: true,
    }))
}
