//! Hosted apps: front ends that organizations bring, served each on its own origin.

mod auth_config;
mod bearers;
pub mod building;
mod changes;
pub mod check;
pub mod deploys;
mod domains;
mod embedding;
mod hosted;
mod insight;
mod noted;
pub mod packing;
mod people;
mod place;
pub mod public;
mod routes;
pub mod store;
mod unified;
mod versions;

use loupe_wire::{AppListItem, AppResponse, CreateAppRequest, ListAppsResponse, UpdateAppRequest};
use serde_json::json;

pub use auth_config::{forget_clear_keys, has_passkeys, has_sign_in, renew_password};
pub use bearers::{has_bearers, key_name};
pub use deploys::sweep;
pub use domains::{begin_recheck, mailed, recheck};
pub use embedding::Embedding;
pub use hosted::{Environment, Hosted, Page};
pub use place::named;
pub use public::keep_interaction;
pub use routes::router;
pub use store::APPS;

use crate::{
    app::App,
    auth::Caller,
    clock,
    db::{Record, Tx},
    error::{ApiError, Result},
    id,
    v1::retrievers::cast,
};

/// Apps of one organization.
pub const MOST: i64 = 100;

/// The variable that names the namespace of an app's API.
pub const NAMESPACE: &str = "LOUPE_NAMESPACE";

/// Where visitors go, and where owners try things first.
pub const PRODUCTION: &str = "production";
/// As above.
pub const STAGING: &str = "staging";

/// The name of a version's files.
pub fn asset_prefix(app_id: &str, version: i64) -> String {
    format!("apps/{app_id}/v{version}")
}

/// Keeps a new app. Nothing is served before its first deploy.
pub async fn create(
    app: &App,
    caller: &Caller,
    namespace_id: Option<String>,
    request: CreateAppRequest,
) -> Result<AppResponse> {
    check::slug(&request.slug)?;
    check::size(&request)?;
    let secret = request.password_secret_name.as_deref();
    let auth = check::with_secret(app, caller, request.auth_config, secret, false).await?;
    let auth_config = check::auth(app, caller, auth, None).await?;
    let build = request.build_config.as_ref();
    check::build(build)?;
    let namespace_id = place::kept(app, &caller.org_id, namespace_id).await?;
    check::authority(app, caller, build, namespace_id.as_deref()).await?;
    let now = app.clock().micros();
    let hosted = Hosted {
        app_id: id::new("app_"),
        slug: request.slug,
        is_active: request.is_active,
        namespace_id,
        auth_config,
        build_config: request.build_config,
        monitoring_config: request.monitoring_config,
        draft: Page {
            meta: request.meta,
            template: request.template,
            sections: request.sections.unwrap_or_default(),
            custom_html: request.custom_html,
            hero: request.hero,
            theme: request.theme.unwrap_or_default(),
            seo: request.seo,
            stats: request.stats.unwrap_or_default(),
            featured_gallery: request.featured_gallery,
            tabs: request.tabs.unwrap_or_default(),
        },
        created_by: caller.key.user_id.clone(),
        created_at: clock::time(now),
        updated_at: clock::time(now),
        ..Default::default()
    };
    let (kept, by) = (hosted.clone(), caller.clone());
    app.db()
        .write(move |tx| Box::pin(async move { insert(tx, &by, &kept, now).await }))
        .await?;
    app.hosting.forget();
    told(app, &caller.org_id, &hosted).await
}

async fn insert(tx: &mut Tx, caller: &Caller, hosted: &Hosted, now: i64) -> Result<()> {
    let org_id = caller.org_id.as_str();
    if APPS.count_in(tx, org_id).await? >= MOST {
        let message = format!("an organization has at most {MOST} apps: remove one first");
        return Err(ApiError::conflict("", message).with("limit", MOST));
    }
    check::is_free(tx, org_id, &hosted.slug, &hosted.app_id).await?;
    let (id, slug) = (&hosted.app_id, &hosted.slug);
    APPS.insert(tx, org_id, id, slug, now, hosted).await?;
    noted::app(
        tx,
        caller,
        (id, "app_created"),
        json!({ "slug": slug }),
        now,
    )
    .await
}

/// What a list may be narrowed by.
#[derive(Debug, Default)]
pub struct Wanted {
    pub limit: i64,
    pub offset: i64,
    pub template: Option<String>,
    pub slug: Option<String>,
    pub search: Option<String>,
}

/// The organization's apps that match, newest first.
pub async fn list(app: &App, caller: &Caller, wanted: &Wanted) -> Result<ListAppsResponse> {
    let needle = wanted.search.as_ref().map(|search| search.to_lowercase());
    let matches = |hosted: &Hosted| {
        let template = &hosted.draft.template;
        wanted.template.as_ref().is_none_or(|one| one == template)
            && wanted.slug.as_ref().is_none_or(|slug| *slug == hosted.slug)
            && needle.as_ref().is_none_or(|needle| {
                let meta = &hosted.draft.meta;
                hosted.slug.contains(needle.as_str())
                    || meta.title.to_lowercase().contains(needle)
                    || meta
                        .description
                        .as_ref()
                        .is_some_and(|text| text.to_lowercase().contains(needle))
            })
    };
    let records = APPS.all(app.db(), &caller.org_id).await?;
    let all: Vec<Hosted> = records
        .into_iter()
        .map(|record| record.data.0)
        .filter(matches)
        .collect();
    let domains = store::domains_of_all(app.db(), &caller.org_id).await?;
    let window = |number: i64| usize::try_from(number).unwrap_or(0);
    let page = all.iter().skip(window(wanted.offset));
    let view = |hosted: &Hosted| -> Result<AppListItem> {
        let own: Vec<_> = domains
            .iter()
            .filter(|domain| domain.app_id == hosted.app_id)
            .cloned()
            .collect();
        cast(&hosted.view(app, &own)?)
    };
    Ok(ListAppsResponse {
        results: page
            .take(window(wanted.limit))
            .map(view)
            .collect::<Result<_>>()?,
        total_count: i64::try_from(all.len()).unwrap_or(i64::MAX),
        limit: wanted.limit,
        offset: wanted.offset,
        max_apps: Some(MOST),
    })
}

/// One app of the caller's organization, by id or slug.
pub async fn find(app: &App, caller: &Caller, app_id: &str) -> Result<Record<Hosted>> {
    APPS.find(app.db(), &caller.org_id, app_id).await
}

/// One app with its newest versions.
pub async fn get(app: &App, caller: &Caller, app_id: &str) -> Result<AppResponse> {
    let record = find(app, caller, app_id).await?;
    let mut view = told(app, &caller.org_id, &record.data.0).await?;
    view.versions = versions::newest(app, &caller.org_id, &record.id).await?;
    Ok(view)
}

/// An app with all that is known of it alone.
async fn told(app: &App, org_id: &str, hosted: &Hosted) -> Result<AppResponse> {
    let domains = store::domains(app.db(), org_id, &hosted.app_id).await?;
    let mut view = hosted.view(app, &domains)?;
    view.warnings = check::warnings(app, hosted);
    let warning = place::warning(app, org_id, hosted).await?;
    view.warnings.extend(warning);
    if let Some(production) = view.environments.get_mut(PRODUCTION) {
        let previous = versions::previous(app, org_id, hosted).await?;
        production["previous_version"] = previous.into();
    }
    Ok(view)
}

/// Changes an app. What is about access holds at once; what visitors see, after it was published.
pub async fn update(
    app: &App,
    caller: &Caller,
    namespace_id: Option<String>,
    app_id: &str,
    mut request: UpdateAppRequest,
    dry_run: bool,
) -> Result<AppResponse> {
    check::size(&request)?;
    if let Some(slug) = &request.slug {
        check::slug(slug)?;
    }
    let before = find(app, caller, app_id).await?;
    // What was not sent is left as it is by then.
    let auth = check::changed_auth(app, caller, &mut request, &before).await?;
    check::changed_build(app, caller, namespace_id.as_ref(), &request, &before).await?;
    let seen = check::Seen {
        auth: auth.is_some().then(|| before.auth_config.clone()),
        build: (request.build_config.is_some()).then(|| before.build_config.clone()),
    };
    let (org_id, id, now) = (caller.org_id.clone(), before.id, app.clock().micros());
    let publish = request.publish;
    let change = move |hosted: &mut Hosted| {
        if let Some(auth) = auth {
            hosted.auth_config = auth;
        }
        hosted.namespace_id = namespace_id.or(hosted.namespace_id.take());
        hosted.change(request);
    };
    if dry_run {
        let mut hosted = before.data.0;
        change(&mut hosted);
        return tried(app, &org_id, &hosted).await;
    }
    let (by, owner) = (caller.clone(), org_id.clone());
    let hosted = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut hosted = APPS.hold(tx, &owner, &id).await?.data.0;
                seen.is_still(&hosted)?;
                let about = noted::changed(&mut hosted, change);
                if publish {
                    versions::publish(tx, &owner, &mut hosted, by.actor(), "", now).await?;
                }
                save(tx, &owner, &mut hosted, now).await?;
                noted::app(tx, &by, (&id, "app_updated"), about, now).await?;
                Ok(hosted)
            })
        })
        .await?;
    app.hosting.forget();
    told(app, &org_id, &hosted).await
}

/// What a change would make of an app; refused as the change itself would be.
async fn tried(app: &App, org_id: &str, hosted: &Hosted) -> Result<AppResponse> {
    let (owner, slug, id) = (
        org_id.to_owned(),
        hosted.slug.clone(),
        hosted.app_id.clone(),
    );
    app.db()
        .write(move |tx| Box::pin(async move { check::is_free(tx, &owner, &slug, &id).await }))
        .await?;
    told(app, org_id, hosted).await
}

/// Writes an app that was changed in this transaction.
async fn save(tx: &mut Tx, org_id: &str, hosted: &mut Hosted, now: i64) -> Result<()> {
    hosted.updated_at = clock::time(now);
    check::is_free(tx, org_id, &hosted.slug, &hosted.app_id).await?;
    let before = APPS.find_in(tx, org_id, &hosted.app_id).await?.name;
    if before != hosted.slug {
        give_up(tx, org_id, &before, hosted, now).await?;
    }
    APPS.update(tx, org_id, &hosted.app_id, &hosted.slug, now, hosted)
        .await
}

/// An app answers to this name no more. What it served there may live on in browsers: the name stays its organization's, and leads to
/// the app for a while.
async fn give_up(tx: &mut Tx, org_id: &str, slug: &str, hosted: &Hosted, now: i64) -> Result<()> {
    if hosted.last_version == 0 {
        return Ok(());
    }
    store::keep_slug(tx, (org_id, &hosted.app_id), slug, now).await
}

/// Shows visitors what the owner has edited.
pub async fn publish(
    app: &App,
    caller: &Caller,
    app_id: &str,
    message: String,
) -> Result<AppResponse> {
    let (by, id, now) = (caller.clone(), app_id.to_owned(), app.clock().micros());
    let hosted = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let org_id = &by.org_id;
                let mut hosted = APPS.hold(tx, org_id, &id).await?.data.0;
                versions::publish(tx, org_id, &mut hosted, by.actor(), &message, now).await?;
                save(tx, org_id, &mut hosted, now).await?;
                let about = json!({"slug": hosted.slug, "version": hosted.last_version});
                noted::app(tx, &by, (&hosted.app_id, "app_published"), about, now).await?;
                Ok(hosted)
            })
        })
        .await?;
    app.hosting.forget();
    told(app, &caller.org_id, &hosted).await
}

/// Removes an app with its files, its users and all that is known of them.
pub async fn delete(app: &App, caller: &Caller, app_id: &str) -> Result<()> {
    let record = find(app, caller, app_id).await?;
    let (by, id) = (caller.clone(), record.id.clone());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let org_id = &by.org_id;
                let hosted = APPS.hold(tx, org_id, &id).await?.data.0;
                give_up(tx, org_id, &hosted.slug, &hosted, now).await?;
                APPS.delete(tx, org_id, &id).await?;
                let about = json!({ "slug": hosted.slug });
                noted::app(tx, &by, (&id, "app_deleted"), about, now).await?;
                store::delete_all_of(tx, org_id, &id).await
            })
        })
        .await?;
    app.hosting.forget();
    // Nothing names the files any more; what a crash leaves of them is only space.
    app.blobs().delete_all(&format!("apps/{}", record.id)).await
}

/// A member of the environment variables that this server reads.
pub fn variable<'h>(hosted: &'h Hosted, name: &str) -> Option<&'h str> {
    let build = hosted.build_config.as_ref()?;
    build.env_vars.get(name).map(String::as_str)
}
