//! Names of the owner's own for an app: noted first, proven by a record in the DNS, served from then on.

use axum::extract::{Path, State};
use loupe_wire::{AddDomainRequest, DomainResponse, GenericDeleteResponse, ListDomainsResponse};
use serde_json::json;
use url::Host;
use utoipa_axum::router::OpenApiRouter;

use super::{
    noted,
    store::{self, ACTIVE, Domain, PENDING},
};
use crate::{
    app::App,
    auth::{Caller, Delete, Org, Read, Write},
    body::Body,
    db::Tx,
    error::{ApiError, Result, Violation},
    hosting, id,
    json::Json,
    openapi::routes,
    outbound::names,
};

/// Domains of one app.
const MOST: usize = 20;

const DAY: i64 = 86_400_000_000;

/// How long a record may be gone before its domain has to be proven anew: name servers and their owners err.
const PATIENCE: i64 = 7 * DAY;

/// How long after its record was last there a domain is named in mails: what is in them signs people in.
const FRESH: i64 = 2 * DAY;

/// Records that are asked for in one round.
const ROUND: i64 = 20;

/// The label of the record that proves a domain: `_loupe-verify.www.example.com TXT "loupe-domain-…"`.
const LABEL: &str = "_loupe-verify";

/// What a record of proof says.
fn token() -> String {
    id::new("loupe-domain-")
}

impl Domain {
    fn told(&self, app: &App, slug: &str) -> DomainResponse {
        let config = self.config(app, slug);
        DomainResponse {
            domain: config.domain,
            status: self.status.clone(),
            verification_token: config.verification_token,
            cname_target: config.cname_target,
            is_primary: config.is_primary,
            verified_at: config.verified_at.map(|at| at.to_rfc3339()),
        }
    }
}

/// A domain as browsers send it: lower case, without a dot at its end, other alphabets as `xn--`.
fn name(app: &App, sent: &str) -> Result<String> {
    let fault = |message: &str| Violation::body(&["domain"], "value_error", message, sent.into());
    let host = Host::parse(sent.trim().trim_end_matches('.'));
    let Ok(Host::Domain(name)) = host else {
        return Err(fault("a domain is a name such as www.example.com").into());
    };
    let good = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    // A record of proof has to fit before it.
    if name.len() + LABEL.len() + 1 > 253 || !name.contains('.') || !name.split('.').all(good) {
        return Err(fault("a domain is a name such as www.example.com").into());
    }
    if app.hosting.is_own(&name) {
        return Err(fault("this name is the server's own").into());
    }
    Ok(name)
}

/// The address that mails of an app name: its first domain while that is proven day by day, else its name below the domain of
/// all apps. Never the host of a request, which is the word of whoever sent it.
pub fn mailed(app: &App, slug: &str, domains: &[Domain]) -> String {
    let since = app.clock().micros() - FRESH;
    let own = domains
        .iter()
        .find(|one| one.is_primary && one.status == ACTIVE && one.seen_at > since);
    match own {
        Some(domain) => hosting::url_of_domain(app, &domain.domain),
        None => hosting::url(app, slug),
    }
}

/// Begins to ask for the records of proven domains. Nobody waits for it: name servers may be slow to answer.
pub fn begin_recheck(app: &App) {
    let state = app.clone();
    app.spawn(async move {
        if let Err(error) = recheck(&state).await {
            tracing::warn!(%error, "the records of domains could not be asked for");
        }
    });
}

/// Asks for the records of proven domains, each once a day: a name that somebody else has now must not go on being the app's.
///
/// # Errors
/// The database does not answer.
pub async fn recheck(app: &App) -> Result<()> {
    let now = app.clock().micros();
    let due = store::unchecked(app.db(), now - DAY, ROUND).await?;
    let asked = due.into_iter().map(|domain| async move {
        let is_there = has_record(app, &domain.2, &domain.3).await.ok();
        if is_there == Some(false) {
            tracing::warn!(domain = %domain.2, "the record that proves a domain is gone");
        }
        (domain, is_there)
    });
    let asked = futures::future::join_all(asked).await;
    if asked.is_empty() {
        return Ok(());
    }
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for (domain, is_there) in &asked {
                    store::checked(tx, domain, *is_there, now, now - PATIENCE).await?;
                }
                Ok(())
            })
        })
        .await?;
    app.hosting.forget();
    Ok(())
}

/// Whether the record that proves a domain is there.
async fn has_record(app: &App, domain: &str, token: &str) -> Result<bool> {
    let record = format!("{LABEL}.{domain}");
    let texts = names::texts(app.config().apps.resolver, &record)
        .await
        .map_err(|error| {
            tracing::warn!(%record, %error, "a record of proof could not be asked for");
            let message = format!("no name server answered for {record}: try again in a moment");
            ApiError::unavailable("dns_unavailable", message)
        })?;
    Ok(texts.iter().any(|text| text.trim() == token))
}

/// The app's domains, the first one first.
pub async fn list(app: &App, caller: &Caller, app_id: &str) -> Result<ListDomainsResponse> {
    let hosted = super::find(app, caller, app_id).await?;
    let domains = store::domains(app.db(), &caller.org_id, &hosted.id).await?;
    let told = domains.iter().map(|one| one.told(app, &hosted.slug));
    Ok(ListDomainsResponse {
        total: i64::try_from(domains.len()).unwrap_or(i64::MAX),
        domains: told.collect(),
    })
}

/// Notes a domain. It serves nothing before it is proven. One that the app has already becomes its first one where that is
/// asked for.
pub async fn add(
    app: &App,
    caller: &Caller,
    app_id: &str,
    request: AddDomainRequest,
) -> Result<DomainResponse> {
    let name = name(app, &request.domain)?;
    let hosted = super::find(app, caller, app_id).await?;
    let domain = Domain {
        app_id: hosted.id.clone(),
        domain: name,
        status: PENDING.into(),
        token: token(),
        is_primary: request.is_primary,
        created_at: app.clock().micros(),
        verified_at: 0,
        seen_at: 0,
    };
    let by = caller.clone();
    let kept = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let now = domain.created_at;
                let kept = keep(tx, &by.org_id, domain).await?;
                let about = json!({"domain": kept.domain, "is_primary": kept.is_primary});
                noted::app(tx, &by, (&kept.app_id, "app_domain_added"), about, now).await?;
                Ok(kept)
            })
        })
        .await?;
    app.hosting.forget();
    Ok(kept.told(app, &hosted.slug))
}

/// The domain as the app has it then.
async fn keep(tx: &mut Tx, org_id: &str, domain: Domain) -> Result<Domain> {
    let known = store::domains_in(tx, org_id, &domain.app_id).await?;
    let count = known.len();
    let old = known.into_iter().find(|one| one.domain == domain.domain);
    if old.is_some() && !domain.is_primary {
        let message = format!("the app has the domain '{}' already", domain.domain);
        return Err(ApiError::already_exists("domain_taken", message));
    }
    if old.is_none() && count >= MOST {
        let message = format!("an app has at most {MOST} domains: remove one first");
        return Err(ApiError::conflict("", message).with("limit", MOST));
    }
    if domain.is_primary {
        store::set_primary(tx, org_id, &domain).await?;
    }
    match old {
        Some(old) => Ok(Domain {
            is_primary: true,
            ..old
        }),
        None => {
            store::insert_domain(tx, org_id, &domain).await?;
            Ok(domain)
        }
    }
}

async fn find(app: &App, caller: &Caller, app_id: &str, domain: &str) -> Result<(String, Domain)> {
    let hosted = super::find(app, caller, app_id).await?;
    let wanted = domain.trim_end_matches('.').to_lowercase();
    let domains = store::domains(app.db(), &caller.org_id, &hosted.id).await?;
    let found = domains.into_iter().find(|one| one.domain == wanted);
    let found = found.ok_or_else(|| ApiError::not_found("domain", domain))?;
    Ok((hosted.slug.clone(), found))
}

/// Looks for the record that proves a domain; from then on it serves the app. Who proves a domain that another app has
/// serves it instead of that one: the record was made last by whoever has the domain now.
pub async fn verify(
    app: &App,
    caller: &Caller,
    app_id: &str,
    domain: &str,
) -> Result<DomainResponse> {
    let (slug, mut domain) = find(app, caller, app_id, domain).await?;
    if domain.status == ACTIVE {
        return Ok(domain.told(app, &slug));
    }
    if !has_record(app, &domain.domain, &domain.token).await? {
        return Ok(domain.told(app, &slug));
    }
    domain.status = ACTIVE.into();
    domain.verified_at = app.clock().micros();
    let (by, proven) = (caller.clone(), domain.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                store::release_domain(tx, &proven.domain, &token()).await?;
                if !store::prove_domain(tx, &by.org_id, &proven).await? {
                    return Err(ApiError::not_found("domain", &proven.domain));
                }
                let change = (proven.app_id.as_str(), "app_domain_proven");
                let about = json!({ "domain": proven.domain });
                noted::app(tx, &by, change, about, proven.verified_at).await
            })
        })
        .await?;
    app.hosting.forget();
    Ok(domain.told(app, &slug))
}

/// Removes a domain: the app answers there no more.
pub async fn remove(app: &App, caller: &Caller, app_id: &str, domain: &str) -> Result<()> {
    let (_, found) = find(app, caller, app_id, domain).await?;
    let (by, now) = (caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                store::delete_domain(tx, &by.org_id, &found).await?;
                let about = json!({ "domain": found.domain });
                noted::app(tx, &by, (&found.app_id, "app_domain_removed"), about, now).await
            })
        })
        .await?;
    app.hosting.forget();
    Ok(())
}

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_app_domains, add_app_domain))
        .routes(routes!(delete_app_domain))
        .routes(routes!(verify_app_domain))
}

/// Names of the owner's own that an app has, with what each waits for.
#[utoipa::path(get, path = "/v1/apps/{app_id}/domains", tag = "apps", responses((status = 200, body = ListDomainsResponse)))]
async fn list_app_domains(
    State(app): State<App>,
    org: Org<Read>,
    Path(app_id): Path<String>,
) -> Result<Json<ListDomainsResponse>> {
    list(&app, &org.caller, &app_id).await.map(Json)
}

/// Notes a domain for an app; sent again with `is_primary`, one that it has becomes its first address. It is proven by a TXT record of `_loupe-verify.{domain}` that is the `verification_token`, and
/// led here by a CNAME record to `cname_target`.
#[utoipa::path(post, path = "/v1/apps/{app_id}/domains", tag = "apps", request_body = AddDomainRequest, responses((status = 200, body = DomainResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn add_app_domain(
    State(app): State<App>,
    org: Org<Write>,
    Path(app_id): Path<String>,
    Body(request): Body<AddDomainRequest>,
) -> Result<Json<DomainResponse>> {
    add(&app, &org.caller, &app_id, request).await.map(Json)
}

/// Removes a domain: the app answers there no more.
#[utoipa::path(delete, path = "/v1/apps/{app_id}/domains/{domain}", tag = "apps", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_app_domain(
    State(app): State<App>,
    org: Org<Delete>,
    Path((app_id, domain)): Path<(String, String)>,
) -> Result<Json<GenericDeleteResponse>> {
    remove(&app, &org.caller, &app_id, &domain).await?;
    Ok(Json(GenericDeleteResponse {
        message: "the domain is removed".into(),
        ..Default::default()
    }))
}

/// Looks for the record that proves a domain. It stays `pending` until the record is there, and is `active` from then on.
#[utoipa::path(post, path = "/v1/apps/{app_id}/domains/{domain}/verify", tag = "apps", responses((status = 200, body = DomainResponse), (status = 503, body = loupe_wire::ErrorResponse)))]
async fn verify_app_domain(
    State(app): State<App>,
    org: Org<Write>,
    Path((app_id, domain)): Path<(String, String)>,
) -> Result<Json<DomainResponse>> {
    verify(&app, &org.caller, &app_id, &domain).await.map(Json)
}
