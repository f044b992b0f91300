//! The organization: what everything else belongs to.

mod clearing;
pub mod rates;
mod routes;
pub mod settings;
mod store;

use loupe_wire::{
    APIKeyModel, AccountTier, AuditAction, OrganizationModelResponse, OrganizationUpdateRequest,
    Permission, ResourceType, UserModel, UserRole, UserStatus, Value,
};

pub use clearing::Clearing;
pub use routes::router;
pub use store::find;

use super::{
    api_keys,
    audit::{self, Change},
    users,
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    id,
};

/// The user that the first key belongs to.
pub const OWNER_EMAIL: &str = "owner@localhost";

/// Makes the organization of a fresh installation with its owner and its protected admin key, and answers the key's
/// secret; `None` when there is an organization already.
pub async fn create_first(app: &App) -> Result<Option<String>> {
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // Processes that start together make one.
                tx.lock("the first organization").await?;
                if store::count(tx).await? > 0 {
                    return Ok(None);
                }
                create(tx, now).await.map(Some)
            })
        })
        .await
}

/// Whoever sits at the data folder may do everything in its organization.
pub async fn local_caller(app: &App) -> Result<Caller> {
    let org_id = store::find_first(app.db()).await?.organization_id;
    Ok(Caller::internal(APIKeyModel {
        key_id: Some("command line".into()),
        organization_id: Some(org_id.clone()),
        internal_id: org_id,
        name: "command line".into(),
        permissions: vec![Permission::Admin],
        ..Default::default()
    }))
}

async fn create(tx: &mut Tx, now: i64) -> Result<String> {
    let at = clock::time(now);
    let organization = OrganizationModelResponse {
        organization_id: id::new("org_"),
        organization_name: "My organization".into(),
        // Whoever runs the server owns its resources: the installation's own organization has no quotas.
        account_type: AccountTier::Enterprise,
        created_at: at,
        updated_at: at,
        ..Default::default()
    };
    store::insert(tx, &organization, now).await?;
    let owner = UserModel {
        user_id: id::new("usr_"),
        organization_id: organization.organization_id.clone(),
        email: OWNER_EMAIL.into(),
        user_name: "Owner".into(),
        role: UserRole::Admin,
        status: UserStatus::Active,
        created_at: at,
        updated_at: at,
        ..Default::default()
    };
    users::insert(tx, &owner, now).await?;
    let (_, secret) = api_keys::mint(
        tx,
        &owner,
        loupe_wire::APIKeyCreateRequest {
            name: "admin".into(),
            description: Some(
                "The organization's own key. It cannot be changed or revoked.".into(),
            ),
            permissions: Some(vec![Permission::Admin]),
            ..Default::default()
        },
        api_keys::Mint {
            kind: crate::auth::key::Kind::Standard,
            protected: true,
            caller: &Caller::system(&organization.organization_id),
            now,
        },
    )
    .await?;
    Ok(secret)
}

/// Changes the organization's settings; a limit that is sent replaces its own alone, and null takes away what was set.
pub async fn update(
    app: &App,
    caller: &Caller,
    sent: Clearing<OrganizationUpdateRequest>,
) -> Result<OrganizationModelResponse> {
    check(&sent.request)?;
    let (caller, state, now) = (caller.clone(), app.clone(), app.clock().micros());
    let changed = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut settings = settings::hold(tx, &caller.org_id).await?;
                let stored = store::find_in(tx, &caller.org_id).await?;
                let before = rates::shown(&state, stored.clone(), &settings);
                let mut organization = stored;
                limit(&mut organization, &mut settings, &sent)?;
                settings::update(tx, &caller.org_id, &settings, now).await?;
                describe(&mut organization, sent);
                organization.updated_at = clock::time(now);
                store::update(tx, &organization, now).await?;
                let organization = rates::shown(&state, organization, &settings);
                let change = Change {
                    action: AuditAction::OrganizationUpdated,
                    resource: (ResourceType::Organization, &caller.org_id),
                    changes: audit::difference(&before, &organization),
                };
                audit::record(tx, &caller, change, now).await?;
                Ok(organization)
            })
        })
        .await?;
    app.limits.forget_tiers();
    Ok(changed)
}

/// What the organization may be asked to be, beyond the limits of the wire type.
fn check(request: &OrganizationUpdateRequest) -> Result<()> {
    let mut faults = Vec::new();
    let mut fault = |member: &str, msg: &str, input: Value| {
        faults.push(Violation::body(&[member], "value_error", msg, input));
    };
    if let Some(name) = request
        .organization_name
        .as_ref()
        .filter(|name| name.trim().is_empty())
    {
        fault(
            "organization_name",
            "an organization has a name",
            name.clone().into(),
        );
    }
    for (member, sent) in [
        ("billing_email", &request.billing_email),
        ("notifications_email", &request.notifications_email),
    ] {
        if let Some(sent) = sent.as_ref().filter(|sent| !users::is_address(sent)) {
            fault(member, users::NO_ADDRESS, sent.clone().into());
        }
    }
    for (member, sent) in [
        ("nsfw_check_enabled", request.nsfw_check_enabled),
        ("nsfw_fail_closed", request.nsfw_fail_closed),
    ] {
        if sent == Some(true) {
            let msg = "this server has no model that looks for what is not safe for work";
            fault(member, msg, true.into());
        }
    }
    faults.extend(unread(request));
    match faults.is_empty() {
        true => Ok(()),
        false => Err(ApiError::Validation(faults)),
    }
}

/// What nothing would read: kept, it would look as if it held.
fn unread(request: &OrganizationUpdateRequest) -> Option<Violation> {
    let asks = request.default_llm_credentials.as_ref();
    if asks.is_some_and(|credentials| !credentials.is_empty()) {
        let msg = "language models are the server's, which has their keys: set [models.language] in its settings";
        let path = ["default_llm_credentials"];
        return Some(Violation::body(&path, "value_error", msg, Value::Null));
    }
    let limits = request.spend_limits.as_ref()?;
    let (member, sent) = [
        (
            "namespace_default_daily_usd",
            limits.namespace_default_daily_usd,
        ),
        (
            "namespace_default_monthly_usd",
            limits.namespace_default_monthly_usd,
        ),
    ]
    .into_iter()
    .find(|(_, sent)| sent.is_some())?;
    let msg =
        "namespaces have no limits of their own: daily_usd and monthly_usd are the organization's";
    Some(Violation::body(
        &["spend_limits", member],
        "value_error",
        msg,
        sent.into(),
    ))
}

/// Takes over what it is called and where it is reached.
fn describe(
    organization: &mut OrganizationModelResponse,
    sent: Clearing<OrganizationUpdateRequest>,
) {
    let Clearing { request, nulls } = sent;
    if let Some(name) = request.organization_name {
        organization.organization_name = name;
    }
    if let Some(metadata) = request.metadata {
        organization.metadata = metadata;
    }
    let was = organization.logo_url.take();
    organization.logo_url = nulls.after("logo_url", request.logo_url, was);
    let was = organization.billing_email.take();
    organization.billing_email = nulls.after("billing_email", request.billing_email, was);
    let (sent, was) = (
        request.notifications_email,
        organization.notifications_email.take(),
    );
    organization.notifications_email = nulls.after("notifications_email", sent, was);
    if let Some(credentials) = request.default_llm_credentials {
        organization.default_llm_credentials = credentials;
    }
}

/// Takes over what it holds itself to.
fn limit(
    organization: &mut OrganizationModelResponse,
    settings: &mut settings::Settings,
    sent: &Clearing<OrganizationUpdateRequest>,
) -> Result<()> {
    if sent.nulls.has("rate_limit_overrides") {
        rates::clear(organization, settings);
    }
    if let Some(overrides) = &sent.request.rate_limit_overrides {
        rates::change(organization, settings, overrides);
    }
    if sent.nulls.has("spend_limits") {
        organization.spend_limits.clear();
    }
    if let Some(limits) = &sent.request.spend_limits {
        let limits = serde_json::to_value(limits).map_err(ApiError::internal)?;
        organization
            .spend_limits
            .extend(limits.as_object().cloned().unwrap_or_default());
    }
    Ok(())
}

/// Puts the organization on a plan.
///
/// # Errors
/// The database does not answer.
pub async fn choose_plan(app: &App, caller: &Caller, tier: AccountTier) -> Result<()> {
    let (caller, now) = (caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // Its settings may be changed just now, and are written as a whole.
                settings::hold(tx, &caller.org_id).await?;
                let mut organization = store::find_in(tx, &caller.org_id).await?;
                let before = organization.clone();
                organization.account_type = tier;
                organization.requires_plan = false;
                organization.updated_at = clock::time(now);
                store::update(tx, &organization, now).await?;
                let change = Change {
                    action: AuditAction::OrganizationUpdated,
                    resource: (ResourceType::Organization, &caller.org_id),
                    changes: audit::difference(&before, &organization),
                };
                audit::record(tx, &caller, change, now).await
            })
        })
        .await?;
    app.limits.forget_tiers();
    Ok(())
}
