//! The `/v1` API: a folder a resource, with its rules (`mod.rs`), HTTP (`routes.rs`) and SQL (`store.rs`).

pub mod account;
pub mod alerts;
pub mod analytics;
pub mod annotations;
pub mod api_keys;
pub mod apps;
pub mod audit;
pub mod batches;
pub mod benchmarks;
pub mod billing;
pub mod buckets;
pub mod clusters;
pub mod collections;
pub mod connections;
pub mod copying;
pub mod discovery;
pub mod documents;
pub mod evaluations;
pub mod events;
pub mod exports;
pub mod features;
pub mod health;
pub mod inference;
pub mod interactions;
pub mod manifest;
pub mod marketplace;
pub mod migrations;
pub mod namespaces;
pub mod notifications;
pub mod objects;
pub mod organizations;
pub mod public;
pub mod publishing;
pub mod quickstart;
pub mod removal;
pub mod retrievers;
pub mod secrets;
pub mod snapshots;
pub mod syncs;
pub mod tasks;
pub mod taxonomies;
pub mod templates;
pub mod triggers;
pub mod uploads;
pub mod usage;
pub mod users;
pub mod webhooks;

use axum::Router;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    error::{ApiError, Result},
    jobs::Claim,
};

/// Every operation.
pub fn router() -> Router<App> {
    operations().split_for_parts().0
}

/// Every operation, with the description of the API that its annotations make where [`crate::openapi::document`] asks.
pub fn operations() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(account::router())
        .merge(alerts::router())
        .merge(analytics::router())
        .merge(annotations::router())
        .merge(api_keys::router())
        .merge(apps::router())
        .merge(audit::router())
        .merge(batches::router())
        .merge(benchmarks::router())
        .merge(billing::router())
        .merge(crate::blob::router())
        .merge(buckets::router())
        .merge(clusters::router())
        .merge(collections::extractors_router())
        .merge(collections::router())
        .merge(connections::router())
        .merge(discovery::router())
        .merge(documents::router())
        .merge(evaluations::router())
        .merge(events::router())
        .merge(features::router())
        .merge(health::router())
        .merge(inference::router())
        .merge(interactions::router())
        .merge(exports::router())
        .merge(manifest::router())
        .merge(marketplace::router())
        .merge(migrations::router())
        .merge(namespaces::router())
        .merge(notifications::router())
        .merge(objects::router())
        .merge(organizations::router())
        .merge(public::router())
        .merge(publishing::router())
        .merge(quickstart::router())
        .merge(retrievers::router())
        .merge(secrets::router())
        .merge(snapshots::router())
        .merge(syncs::router())
        .merge(tasks::router())
        .merge(taxonomies::router())
        .merge(templates::router())
        .merge(triggers::router())
        .merge(uploads::router())
        .merge(usage::router())
        .merge(users::router())
        .merge(webhooks::router())
}

/// Runs a claimed piece of work that is not a chunk of a batch.
///
/// # Errors
/// The work fails, or this version does not know its kind.
pub async fn run_task(app: &App, claim: &Claim) -> Result<()> {
    match claim.kind.as_str() {
        copying::COPY => copying::run(app, claim).await?,
        collections::archiving::MOVE => collections::archiving::run(app, claim).await?,
        exports::EXPORT => return exports::run(app, claim).await,
        documents::reembedding::REEMBED => return documents::reembedding::run(app, claim).await,
        // It ends its task itself, with what the action made.
        triggers::RUN => return triggers::run(app, claim).await,
        syncs::LOOK => return syncs::run(app, claim).await,
        clusters::RUN => return clusters::run(app, claim).await,
        taxonomies::APPLY => return taxonomies::run(app, claim).await,
        kind if alerts::runs(kind) => alerts::run(app, claim).await?,
        // It may wait for its batches.
        migrations::MIGRATE => return migrations::run(app, claim).await,
        notifications::letters::LETTER => notifications::letters::run(app, claim).await?,
        kind if snapshots::runs(kind) => snapshots::run(app, claim).await?,
        benchmarks::REPLAY => return benchmarks::run(app, claim).await,
        evaluations::EVALUATE => return evaluations::run(app, claim).await,
        apps::deploys::DEPLOY => apps::building::run(app, claim).await?,
        batches::callbacks::CALL => batches::callbacks::run(app, claim).await?,
        kind if removal::runs(kind) => removal::run(app, claim).await?,
        // It may wait for others.
        removal::REMOVE_FILES => return removal::remove_files(app, claim).await,
        kind => {
            return Err(ApiError::bad_request(
                "",
                format!("this version cannot do work of the kind {kind}"),
            ));
        }
    }
    tasks::succeed(app, claim, Vec::new()).await
}

/// Ends a claimed piece of work that cannot be done.
///
/// # Errors
/// The lease was lost, or the database fails.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    if claim.kind == copying::COPY {
        copying::give_up(app, claim, reason).await?;
    }
    if claim.kind == collections::archiving::MOVE {
        collections::archiving::give_up(app, claim).await?;
    }
    if claim.kind == clusters::RUN {
        clusters::give_up(app, claim, reason).await?;
    }
    if claim.kind == taxonomies::APPLY {
        taxonomies::give_up(app, claim, reason).await?;
    }
    if claim.kind == notifications::letters::LETTER {
        notifications::letters::give_up(app, claim).await?;
    }
    if claim.kind == migrations::MIGRATE {
        migrations::give_up(app, claim, reason).await?;
    }
    if claim.kind == exports::EXPORT {
        exports::give_up(app, claim, reason).await?;
    }
    if snapshots::runs(&claim.kind) {
        snapshots::give_up(app, claim, reason).await?;
    }
    if alerts::runs(&claim.kind) {
        alerts::give_up(app, claim, reason).await?;
    }
    if claim.kind == benchmarks::REPLAY {
        benchmarks::give_up(app, claim, reason).await?;
    }
    if claim.kind == evaluations::EVALUATE {
        evaluations::give_up(app, claim, reason).await?;
    }
    if claim.kind == apps::deploys::DEPLOY {
        apps::building::give_up(app, claim, reason).await?;
    }
    if claim.kind == syncs::LOOK {
        syncs::give_up(app, claim, reason).await?;
    }
    if claim.kind == triggers::RUN {
        triggers::fail(app, claim, reason).await?;
    }
    tasks::fail(app, claim, reason).await
}
