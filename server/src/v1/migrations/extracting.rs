//! Extracting anew: objects come into the new namespace, batches are made over them, and the task looks at these from time to
//! time until they have ended. Where it stands is in the migration's stage, so that whoever goes on with it begins there.

use std::{collections::BTreeSet, time::Duration};

use futures::FutureExt as _;
use loupe_wire::{GetMigrationResponse, MigrationStage, MigrationType, SubmitBatchRequest, Value};
use sha2::{Digest, Sha256};

use super::{
    MIGRATIONS, is_over,
    objects::{self, Brought},
    running::{change, is_wanted, note, tell, wanted},
    stages,
    work::{Refill, Step, Work},
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    clock,
    db::Tx,
    error::{ApiError, Result},
    jobs::Claim,
    v1::{
        batches::{self, Again, Bucketful, Standing, store::groups},
        buckets::BUCKETS,
        copying,
    },
};

/// Where a migration notes the batches whose failed objects it had tried once more.
const RETRIED: &str = "retried_batches";

/// How long the batches go on until they are looked at again: a twentieth of the time that it took so far.
const SOON: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(30);

/// By this its batches over a bucket are found.
fn group_id(migration_id: &str, bucket_id: &str) -> String {
    let digest = hex::encode(Sha256::digest(format!("{migration_id}/{bucket_id}")));
    let digest: String = digest.chars().take(20).collect();
    format!("grp_{digest}")
}

fn group_ids(work: &Work, refill: &Refill) -> Vec<String> {
    let ids = refill.read.iter();
    ids.map(|id| group_id(&work.migration_id, id)).collect()
}

fn target(claim: &Claim) -> &str {
    claim.namespace_id.as_deref().unwrap_or_default()
}

/// Goes on with it as far as it can; safe to repeat.
///
/// # Errors
/// A store or the database fails, or all objects did.
pub(super) async fn run(app: &App, claim: &Claim, work: &Work, refill: &Refill) -> Result<Step> {
    let Some(migration) = wanted(app, claim, &work.migration_id).await? else {
        return stop(app, claim, work, refill).await;
    };
    let stage = migration.progress.current_stage;
    let is_first = matches!(stage, None | Some(MigrationStage::NamespaceSetup));
    if is_first && !set_up(app, claim, work, refill).await? {
        return stop(app, claim, work, refill).await;
    }
    look(app, claim, work, refill, &migration).await
}

/// Brings along what batches are made over, and what no batch could make; false once nobody wants it.
async fn set_up(app: &App, claim: &Claim, work: &Work, refill: &Refill) -> Result<bool> {
    let id = work.migration_id.as_str();
    tell(app, claim, &work.copy, "cloning", None).await?;
    let noted = |done: i64| async move {
        let at = Some(app.clock().now());
        note(app, claim, id, move |migration| {
            stages::set_up(migration, done, at)
        })
        .await
    };
    let brought = objects::bring(app, claim, (work, refill), noted).await?;
    if matches!(brought, Brought::Stopped) {
        return Ok(false);
    }
    let counted = (refill.objects + 1..).zip(&work.copy.collections);
    for (done, (from, to)) in counted {
        let wanted = || is_wanted(app, claim, id).boxed();
        copying::fill(app, claim, &work.copy, (from, to), &wanted).await?;
        let (from, at) = (from.clone(), Some(app.clock().now()));
        let goes_on = note(app, claim, id, move |migration| {
            stages::set_up(migration, done, at);
            stages::copied(migration, &from);
        });
        if !goes_on.await? {
            return Ok(false);
        }
    }
    begin_batches(app, claim, work, refill).await
}

/// Leaves the buckets to be split into batches, once; false if nobody wants that any more.
async fn begin_batches(app: &App, claim: &Claim, work: &Work, refill: &Refill) -> Result<bool> {
    let mut buckets = Vec::with_capacity(refill.read.len());
    for bucket_id in &refill.read {
        let objects = groups::count_objects(app.db(), target(claim), bucket_id).await?;
        if objects > 0 {
            buckets.push(Bucketful {
                group_id: group_id(&work.migration_id, bucket_id),
                org_id: claim.org_id.clone(),
                namespace_id: target(claim).to_owned(),
                bucket_id: bucket_id.clone(),
                actor: refill.actor.clone(),
                size: refill.batch_size,
                objects,
            });
        }
    }
    let (org_id, id, now) = (
        claim.org_id.clone(),
        work.migration_id.clone(),
        app.clock().micros(),
    );
    let begun = app
        .db()
        .write(move |tx| Box::pin(async move { begin(tx, (&org_id, &id), buckets, now).await }))
        .await;
    app.work.notify_waiters();
    match begun {
        Err(error) if error.is_not_found() => Ok(false),
        begun => begun,
    }
}

async fn begin(
    tx: &mut Tx,
    (org_id, id): (&str, &str),
    buckets: Vec<Bucketful>,
    now: i64,
) -> Result<bool> {
    // Whoever cancels it holds it, too: no batches come behind that.
    let migration = MIGRATIONS.hold(tx, org_id, id).await?.data.0;
    if is_over(migration.status) {
        return Ok(false);
    }
    // A worker that lost its lease may be late.
    if migration.progress.current_stage != Some(MigrationStage::NamespaceSetup) {
        return Ok(true);
    }
    for bucket in buckets {
        batches::begin(tx, bucket, now).await?;
    }
    let at = Some(clock::time(now));
    change(tx, org_id, id, now, |migration| {
        stages::begin_batches(migration, at);
        Ok(())
    })
    .await?;
    Ok(true)
}

/// Looks how far the batches are, and ends the migration when they have ended.
async fn look(
    app: &App,
    claim: &Claim,
    work: &Work,
    refill: &Refill,
    migration: &GetMigrationResponse,
) -> Result<Step> {
    let ids = group_ids(work, refill);
    let mut standing = batches::standing(app, target(claim), &ids).await?;
    let tried = refill.retry_failed
        && standing.splitting == 0
        && retry(app, claim, work, &standing, migration).await?;
    if tried {
        standing = batches::standing(app, target(claim), &ids).await?;
    }
    let (seen, at) = (standing.clone(), Some(app.clock().now()));
    let goes_on = note(app, claim, &work.migration_id, move |migration| {
        stages::look(migration, &seen, at);
    });
    if !goes_on.await? {
        return stop(app, claim, work, refill).await;
    }
    match tried || !standing.is_over() {
        true => Ok(Step::Waits(pause(app, migration))),
        false => finish(app, claim, work, standing).await,
    }
}

fn pause(app: &App, migration: &GetMigrationResponse) -> Duration {
    let took = migration.started_at.map(|at| app.clock().now() - at);
    let took = took.and_then(|took| took.to_std().ok());
    (took.unwrap_or_default() / 20).clamp(SOON, LATE)
}

/// Has objects of ended batches that failed tried once more; whether some are, or have to wait for that.
async fn retry(
    app: &App,
    claim: &Claim,
    work: &Work,
    standing: &Standing,
    migration: &GetMigrationResponse,
) -> Result<bool> {
    let tried = migration.additional_data.get(RETRIED);
    let tried = tried.and_then(Value::as_array).into_iter().flatten();
    let tried: BTreeSet<&str> = tried.filter_map(Value::as_str).collect();
    let caller = Caller::system(&claim.org_id);
    let scope: Scope<Write> = Scope::internal(caller, target(claim).to_owned());
    let mut again = false;
    for batch_id in &standing.failures {
        if tried.contains(batch_id.as_str()) {
            continue;
        }
        let failed = Again::Failed {
            tier: -1,
            error_type: String::new(),
        };
        let ask = SubmitBatchRequest::default();
        match batches::queue(app, &scope, "", batch_id, ask, failed).await {
            Ok(_) => again = true,
            // It was submitted a moment ago.
            Err(error) if error.wait().is_some() => {
                again = true;
                continue;
            }
            Err(error) if error.is_callers() => {
                tracing::warn!(%error, batch_id, "what failed of a migration's batch is not tried again");
            }
            Err(error) => return Err(error),
        }
        let batch_id = batch_id.clone();
        note(app, claim, &work.migration_id, move |migration| {
            let all = migration
                .additional_data
                .entry(RETRIED)
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(all) = all {
                all.push(batch_id.into());
            }
        })
        .await?;
    }
    Ok(again)
}

async fn finish(app: &App, claim: &Claim, work: &Work, standing: Standing) -> Result<Step> {
    if standing.objects > 0 && standing.done == 0 {
        let why = stages::failures(&standing).unwrap_or_default();
        return Err(ApiError::conflict("", why));
    }
    tell(app, claim, &work.copy, "ready", None).await?;
    let at = Some(app.clock().now());
    note(app, claim, &work.migration_id, move |migration| {
        stages::end(migration, &standing, at);
    })
    .await?;
    Ok(Step::Done)
}

const CANCELED: &str = "the migration was canceled";

/// Leaves the new namespace as what was canceled, and its batches.
async fn stop(app: &App, claim: &Claim, work: &Work, refill: &Refill) -> Result<Step> {
    tell(app, claim, &work.copy, "failed", Some(CANCELED)).await?;
    for group_id in group_ids(work, refill) {
        let owner = (claim.org_id.as_str(), target(claim));
        batches::halt(app, owner, &group_id, CANCELED).await?;
    }
    Ok(Step::Done)
}

/// Cancels the batches of a migration that was given up. What has ended stays as it ended.
///
/// # Errors
/// The database fails.
pub(super) async fn give_up(
    app: &App,
    claim: &Claim,
    work: &Work,
    refill: &Refill,
    reason: &str,
) -> Result<()> {
    let ids = group_ids(work, refill);
    if batches::standing(app, target(claim), &ids).await?.is_over() {
        return Ok(());
    }
    for group_id in ids {
        let owner = (claim.org_id.as_str(), target(claim));
        batches::halt(app, owner, &group_id, reason).await?;
    }
    Ok(())
}

/// Cancels the batches of a migration that was canceled, at once: its task would when it looks at them next.
///
/// # Errors
/// The database fails.
pub(super) async fn cancel(
    app: &App,
    org_id: &str,
    migration: &GetMigrationResponse,
) -> Result<()> {
    let target = migration.additional_data.get("target_namespace_id");
    let (MigrationType::ReExtract, Some(target)) = (
        migration.config.migration_type,
        target.and_then(Value::as_str),
    ) else {
        return Ok(());
    };
    for bucket in BUCKETS.all(app.db(), target).await? {
        let group_id = group_id(&migration.migration_id, &bucket.id);
        batches::halt(app, (org_id, target), &group_id, CANCELED).await?;
    }
    Ok(())
}
