//! The queue: rows of the `tasks` table, claimed with a lease, fenced by owner and attempt.

mod admitting;
mod chunk;
mod derived;
mod filling;
mod holding;
mod reading;
mod slicing;
mod stale;
mod store;
mod transforming;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use loupe_engine::ingest::Try;
use loupe_wire::Value;
use tokio::sync::Semaphore;

pub use holding::{is_writing, let_go, object_lease, postpone};
pub use store::{Claim, cancel_children, finish, hand_back, holds, is_held, unfinished};

use self::store::Lane;
use crate::{
    app::App,
    blob,
    error::{ApiError, Result},
    front, hosting, id,
    v1::{
        alerts, annotations, apps, batches, billing, events, exports, interactions, namespaces,
        notifications, publishing, removal, retrievers, syncs, triggers, uploads, webhooks,
    },
};

/// Ends in an error that may pass before work is given up.
const MAX_TRIES: i64 = 3;

/// Seconds before the second try while something is away that is known to come back, such as a database or a model; the third
/// waits four times as long. Whoever starts again within a minute costs no batch.
const AWAY: i64 = 12;

/// The same for what is sent to people: with an hour between most of them, receivers and mail servers have a day to be back.
const MAX_SENDS: i64 = 34;

/// Seconds that something which is away may ask to be left alone.
const LONGEST_ASKED: u64 = 60;

/// Claims before work is given up: a process that is killed again and again is no fault of the work, but work that
/// kills its process is not tried for ever.
const MAX_CLAIMS: i64 = 25;

/// What is done at once of lanes beside the workers'. A crawl keeps what it reads in memory.
const LOOKS: usize = 8;
const CRAWLS: usize = 4;

/// The lease of whoever leads.
const LEADER: &str = "leader";

/// Starts the workers and the leader of this process; they end when the process stops.
pub fn start(app: &App) {
    let owner = id::new("worker_");
    for number in 0..app.config().jobs.workers {
        let (app, owner) = (app.clone(), format!("{owner}/{number}"));
        app.clone().spawn(async move { work(app, owner).await });
    }
    if app.config().jobs.workers > 0 {
        let sends = app.config().outbound.at_once();
        for (lane, name, room) in [
            (Lane::Looks, "looks", LOOKS),
            (Lane::Crawls, "crawls", CRAWLS),
            (Lane::Sends, "sends", sends),
        ] {
            let (app, owner) = (app.clone(), format!("{owner}/{name}"));
            app.clone()
                .spawn(async move { work_beside(app, owner, lane, room).await });
        }
    }
    let leader = app.clone();
    app.spawn(async move { lead(leader, owner).await });
}

/// Frees what a process before this one held. Only the owner of an SQLite database may: it is alone.
///
/// # Errors
/// The database fails.
pub async fn reclaim(app: &App) -> Result<()> {
    if app.db().is_postgres() {
        return Ok(());
    }
    let freed = app
        .db()
        .write(|tx| {
            Box::pin(async move {
                store::drop_leases(tx).await?;
                Ok(store::reclaim(tx).await? + uploads::store::reclaim(tx).await?)
            })
        })
        .await?;
    if freed > 0 {
        tracing::info!(freed, "work that the last process left is done again");
    }
    Ok(())
}

/// One worker: claims what waits, runs it, sleeps when there is nothing.
async fn work(app: App, owner: String) {
    while !app.leaving.is_cancelled() {
        if let Some(claim) = next(&app, &owner, Lane::Work).await {
            run(&app, claim).await;
        }
    }
}

/// Works on a lane that is not the workers', at several things at once.
async fn work_beside(app: App, owner: String, lane: Lane, room: usize) {
    let room = Arc::new(Semaphore::new(room));
    while !app.leaving.is_cancelled() {
        let free = tokio::select! {
            free = room.clone().acquire_owned() => free,
            () = app.leaving.cancelled() => return,
        };
        if let Some(claim) = next(&app, &owner, lane).await {
            let app = app.clone();
            app.clone().spawn(async move {
                run(&app, claim).await;
                drop(free);
            });
        }
    }
}

/// What waits longest in a lane; nothing after a pause without any.
async fn next(app: &App, owner: &str, lane: Lane) -> Option<Claim> {
    let pause = match caught(claim(app, owner, lane)).await {
        Ok(Some(claim)) => return Some(claim),
        // People wait for what is sent to them.
        Ok(None) if lane == Lane::Sends => 500,
        Ok(None) => 1000,
        Err(error) => {
            tracing::warn!(%error, "work could not be claimed");
            2000
        }
    };
    let pause = Duration::from_millis(pause);
    match lane {
        Lane::Work => idle(app, pause).await,
        // Whoever is woken by new work takes it from others that wait for it: that is for those who may do it.
        Lane::Looks | Lane::Crawls | Lane::Sends => tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = app.leaving.cancelled() => {}
        },
    }
    None
}

/// Waits for new work, the pause, or the stop, whatever comes first.
async fn idle(app: &App, pause: Duration) {
    tokio::select! {
        () = app.work.notified() => {}
        () = tokio::time::sleep(pause) => {}
        () = app.leaving.cancelled() => {}
    }
}

async fn claim(app: &App, owner: &str, lane: Lane) -> Result<Option<Claim>> {
    let (owner, now, lease) = (owner.to_owned(), app.clock().micros(), lease(app));
    let share = app.config().outbound.of_organization();
    app.db()
        .write(move |tx| {
            Box::pin(async move { store::claim(tx, &owner, lane, share, now, now + lease).await })
        })
        .await
}

/// Microseconds that a claim holds.
fn lease(app: &App) -> i64 {
    i64::try_from(app.config().jobs.lease_seconds).unwrap_or(60) * 1_000_000
}

/// Runs one claim as what it came of.
async fn run(app: &App, claim: Claim) {
    let cause = claim.cause.clone();
    front::caused(cause, run_held(app, claim)).await;
}

/// Runs one claim with its lease renewed meanwhile. A claim that is lost, or a process that stops, drops the work where
/// it stands: nothing of it is announced, and another worker does it again.
async fn run_held(app: &App, claim: Claim) {
    if claim.attempt - claim.tries > MAX_CLAIMS {
        let reason = "the worker died each time this was tried";
        return give_up(app, &claim, reason, "resource").await;
    }
    let outcome = tokio::select! {
        outcome = caught(perform(app, &claim)) => outcome,
        () = renew(app, &claim) => {
            tracing::warn!(task_id = claim.task_id, "the lease was lost; the work is dropped");
            return;
        }
        () = app.leaving.cancelled() => {
            release(app, &claim).await;
            return;
        }
    };
    let Err(error) = outcome else { return };
    // Canceled, or taken over, and noticed by the work itself: there is nothing of it to end.
    if matches!(store::is_held(app.db(), &claim).await, Ok(false)) {
        tracing::warn!(%error, task_id = claim.task_id, "the lease was lost; the work is dropped");
        return;
    }
    tracing::warn!(%error, task_id = claim.task_id, tries = claim.tries + 1, "work failed");
    if is_endless(&claim, &error) || (error.is_transient() && !is_last_try(&claim)) {
        requeue(app, &claim, pause(&claim, &error)).await;
    } else {
        let kind = if error.is_transient() {
            "transient"
        } else {
            "permanent"
        };
        give_up(app, &claim, &error.message(), kind).await;
    }
}

/// The same work, whose panic is an error that may pass: it costs one try, not the worker.
async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    // The panic's own words are on stderr already.
    done.unwrap_or_else(|_| Err(ApiError::internal("background work panicked")))
}

/// Whether the work is tried until it is done: what is left of a namespace must never be met by whoever is given its id, and what
/// is left of a bucket holds the connection through which its files are kept. Nor does a removal end while the storage of a bucket
/// is away: documents of objects that are gone would be found for good.
fn is_endless(claim: &Claim, error: &ApiError) -> bool {
    let kind = claim.kind.as_str();
    let removes = removal::runs(kind) || kind == removal::REMOVE_FILES;
    let always = matches!(kind, removal::REMOVE_NAMESPACE | removal::REMOVE_BUCKET);
    always || (removes && error.code() == Some(blob::AWAY))
}

/// Microseconds until work that failed is tried again: twice as long after each try, an hour at most. What waits for the same
/// thing to be back comes at different moments, up to half as long again by chance, and not before it is asked to. Where few
/// tries are left to wait with, they are farther apart.
fn pause(claim: &Claim, error: &ApiError) -> i64 {
    let failed = u32::try_from(claim.tries).unwrap_or(0);
    let doubled = 2_i64.pow((failed + 1).min(12)).min(3600) * 1_000_000;
    let Some(seconds) = error.comes_back() else {
        return doubled;
    };
    let pause = match most_tries(claim) == MAX_TRIES && !is_endless(claim, error) {
        true => AWAY * 4_i64.pow(failed.min(2)) * 1_000_000,
        false => doubled,
    };
    let asked = i64::try_from(seconds.min(LONGEST_ASKED)).unwrap_or(0) * 1_000_000;
    pause.max(asked) + rand::random_range(0..=pause / 2)
}

/// What becomes of single objects of a chunk that fail in this try.
fn which_try(claim: &Claim) -> Try {
    match is_last_try(claim) {
        true => Try::Last,
        false => Try::More,
    }
}

/// Whether a failure of this try ends the work.
pub fn is_last_try(claim: &Claim) -> bool {
    claim.tries + 1 >= most_tries(claim)
}

/// How often work is tried in all.
fn most_tries(claim: &Claim) -> i64 {
    let sends = [
        alerts::DELIVER,
        batches::callbacks::CALL,
        notifications::letters::LETTER,
    ];
    let sends = sends.contains(&claim.kind.as_str());
    if sends { MAX_SENDS } else { MAX_TRIES }
}

async fn perform(app: &App, claim: &Claim) -> Result<()> {
    match claim.kind.as_str() {
        batches::CHUNK | batches::CRAWL => chunk::run(app, claim).await,
        _ => crate::v1::run_task(app, claim).await,
    }
}

/// Returns when the lease can no longer be held.
async fn renew(app: &App, claim: &Claim) {
    let lease = lease(app);
    let pause = Duration::from_micros(u64::try_from(lease / 3).unwrap_or(1_000_000));
    loop {
        tokio::time::sleep(pause).await;
        let (claim, until) = (claim.clone(), app.clock().micros() + lease);
        let renewed = app
            .db()
            .write(move |tx| Box::pin(async move { store::renew(tx, &claim, until).await }))
            .await;
        match renewed {
            Ok(true) => {}
            Ok(false) => return,
            // The database may be back before the lease runs out.
            Err(error) => tracing::warn!(%error, "a lease could not be renewed"),
        }
    }
}

/// Hands a claim back so that another worker starts it at once.
async fn release(app: &App, claim: &Claim) {
    let (claim, now) = (claim.clone(), app.clock().micros());
    let released = app
        .db()
        .write(move |tx| Box::pin(async move { store::release(tx, &claim, now).await }))
        .await;
    if let Err(error) = released {
        tracing::warn!(%error, "a lease could not be released");
    }
}

async fn requeue(app: &App, claim: &Claim, pause: i64) {
    let (claim, now) = (claim.clone(), app.clock().micros());
    let requeued = app
        .db()
        .write(move |tx| {
            Box::pin(async move { store::requeue(tx, &claim, now, now + pause).await })
        })
        .await;
    if let Err(error) = requeued {
        tracing::warn!(%error, "work could not be put back; its lease will run out");
    }
}

async fn give_up(app: &App, claim: &Claim, reason: &str, kind: &str) {
    let ended = async {
        match claim.kind.as_str() {
            batches::CHUNK | batches::CRAWL => chunk::give_up(app, claim, reason, kind).await,
            _ => crate::v1::give_up(app, claim, reason).await,
        }
    };
    if let Err(error) = caught(ended).await {
        tracing::error!(%error, task_id = claim.task_id, "failed work could not be ended");
    }
}

/// One process at a time admits batches, moves ended tasks to the archive and ends uploads that nobody confirmed.
async fn lead(app: App, owner: String) {
    let mut swept = 0;
    while !app.leaving.is_cancelled() {
        match hold_lease(&app, LEADER, &owner, 10).await {
            Ok(true) => round(&app, &mut swept).await,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "whether this process leads could not be asked"),
        }
        idle(&app, Duration::from_secs(1)).await;
    }
    // Who does not answer now has lost it soon.
    let _ = drop_lease(&app, LEADER, &owner).await;
}

/// What the leader does each second, and what once a minute. One that fails costs the others nothing.
async fn round(app: &App, swept: &mut i64) {
    step("buckets in batches", batches::split(app)).await;
    step("batches", batches::admit(app)).await;
    step("triggers", triggers::tick(app)).await;
    step("events of triggers", triggers::count_events(app)).await;
    step("syncs", syncs::tick(app)).await;
    step("alerts", alerts::dispatch(app)).await;
    step("alerts by the clock", alerts::tick(app)).await;
    let now = app.clock().micros();
    if now - *swept <= 60_000_000 {
        return;
    }
    *swept = now;
    step("batches that stand still", batches::supervise(app)).await;
    step("ended tasks", async { archive(app).await.map(drop) }).await;
    step("namespaces whose time is over", namespaces::sweep(app)).await;
    step("old uploads", uploads::sweep(app)).await;
    step("old events", events::sweep(app)).await;
    step("old notifications", notifications::sweep(app)).await;
    step("deleted annotations", annotations::sweep(app)).await;
    step("old deliveries", webhooks::sweep(app)).await;
    step("old firings", triggers::sweep(app)).await;
    step("old executions of alerts", alerts::sweep(app)).await;
    step("old interactions", interactions::sweep(app)).await;
    step("old executions", retrievers::sweep(app)).await;
    step("old previews", publishing::sweep(app)).await;
    step("old exports", exports::sweep(app)).await;
    step("old looks of syncs", syncs::sweep(app)).await;
    step("old sessions", hosting::auth::sweep(app)).await;
    step("old bundles", apps::sweep(app)).await;
    apps::begin_recheck(app);
    step("spending budgets", billing::tick(app)).await;
    step("quotas", notifications::quotas::tick(app)).await;
}

async fn step(what: &str, work: impl Future<Output = Result<()>>) {
    if let Err(error) = caught(work).await {
        tracing::warn!(%error, what, "a step of the leader's round failed");
    }
}

/// Takes a named lease for some seconds, or renews it; false while another owner holds it.
///
/// # Errors
/// The database does not answer.
pub async fn hold_lease(app: &App, name: &str, owner: &str, seconds: u64) -> Result<bool> {
    let (name, owner, now) = (name.to_owned(), owner.to_owned(), app.clock().micros());
    let until = now + i64::try_from(seconds).unwrap_or(60) * 1_000_000;
    app.db()
        .write(move |tx| {
            Box::pin(async move { store::hold_lease(tx, &name, &owner, now, until).await })
        })
        .await
}

/// Gives a lease back.
///
/// # Errors
/// The database does not answer.
pub async fn drop_lease(app: &App, name: &str, owner: &str) -> Result<()> {
    let (name, owner) = (name.to_owned(), owner.to_owned());
    app.db()
        .write(move |tx| Box::pin(async move { store::drop_lease(tx, &name, &owner).await }))
        .await
}

/// Moves tasks that ended long enough ago to the archive.
pub async fn archive(app: &App) -> Result<u64> {
    let hours = i64::try_from(app.config().jobs.archive_hours).unwrap_or(24);
    let before = app.clock().micros() - hours * 3_600_000_000;
    app.db()
        .write(move |tx| Box::pin(async move { store::archive(tx, before).await }))
        .await
}

/// A member of a claim's work.
pub fn text<'c>(claim: &'c Claim, member: &str) -> &'c str {
    claim
        .work
        .get(member)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
