//! A whole bucket in batches. What is asked for is written down at once, and the leader splits the bucket page by page: each
//! step is one transaction, so whoever dies meanwhile loses and doubles nothing, and no more than a page is in memory.

use std::time::{Duration, Instant};

use loupe_engine::filter::Filter;
use loupe_wire::{
    BatchModel, BulkSubmitBatchesRequest, BulkSubmitBatchesResponse, BulkSubmittedBatch,
    CollectionResponse, NamespaceOperation, TaskStatusEnum,
};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    bucket_id, store,
    store::groups::{self, Group, Member, Wanted},
    submitting::{Submission, write},
    tiers,
};
use crate::{
    app::App,
    auth::{Scope, Write},
    clock,
    db::{Json, Tx},
    error::{ApiError, Result, Violation},
    id,
    limits::quota,
    list::{self, Walk},
    v1::{buckets::BUCKETS, collections::COLLECTIONS, objects, tasks::name_of},
};

/// Batches that one call makes.
pub(super) const MOST: i64 = 10_000;
const TOO_MANY: &str = "one call makes 10000: send a larger chunk_size, or max_objects";

/// Objects of one step.
const PAGE: i64 = 1_000;

/// How long the leader is at one bucket before it looks after the rest of its work.
const TURN: Duration = Duration::from_millis(500);

/// How long a request waits for its bucket to be split, and how often it looks.
const LONGEST: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);

/// Microseconds that groups are kept.
const KEPT: i64 = 30 * 86_400_000_000;

/// Splits a bucket, or what of it matches the filter, into batches and queues each. The same request again, while one of its
/// batches waits or runs, answers those. One that takes long is answered before its end, with the most that it can come to.
///
/// # Errors
/// A filter that cannot be read, collections that are not there or not filled, more than batches or the tier may have. With a
/// filter that turns out while the bucket is split: then the batches made so far stay, and the answer tells why it ended.
pub(super) async fn bulk_submit(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    mut request: BulkSubmitBatchesRequest,
) -> Result<BulkSubmitBatchesResponse> {
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::ExecuteJob).await?;
    if let Some(filters) = &request.filters {
        list::parse_filter(&filters.0, "filters")?;
    }
    for identifier in request.collection_ids.iter_mut().flatten() {
        let (db, namespace_id) = (app.db(), &scope.namespace_id);
        let found = COLLECTIONS.known(db, namespace_id, identifier).await?;
        identifier.clone_from(&found.id);
    }
    let there = groups::count_objects(app.db(), &scope.namespace_id, &bucket_id).await?;
    let bound = there.min(request.max_objects.unwrap_or(i64::MAX));
    if bound == 0 {
        return Ok(BulkSubmitBatchesResponse {
            batch_group_id: id::new("grp_"),
            chunk_size: request.chunk_size,
            ..Default::default()
        });
    }
    check(app, scope, &bucket_id, &request, bound).await?;
    let group_id = begin(app, scope, &bucket_id, request, bound).await?;
    app.work.notify_waiters();
    let group = settle(app, &scope.namespace_id, &group_id).await?;
    let members = groups::members(app.db(), &group).await?;
    Ok(answer(&group, members))
}

/// How many batches so many objects are.
pub(super) fn batches_of(objects: i64, chunk: i64) -> i64 {
    objects / chunk + i64::from(objects % chunk > 0)
}

/// Refuses what no batch could be made of.
async fn check(
    app: &App,
    scope: &Scope<Write>,
    bucket_id: &str,
    request: &BulkSubmitBatchesRequest,
    bound: i64,
) -> Result<()> {
    let chunk = request.chunk_size;
    let most = i64::try_from(app.config().limits.batch_objects).unwrap_or(i64::MAX);
    let fault = |kind: &str, msg: String| Violation::body(&["chunk_size"], kind, msg, chunk.into());
    if chunk > most {
        let msg = format!("a batch has at most {most} objects");
        return Err(fault("less_than_equal", msg).into());
    }
    // How many objects a filter takes is known once all were looked at.
    let batches = batches_of(bound, chunk);
    if batches > MOST && request.filters.is_none() {
        let msg = format!("that would be {batches} batches, and {TOO_MANY}");
        return Err(fault("value_error", msg).into());
    }
    quota::check_work(app, &scope.caller).await?;
    let largest = usize::try_from(chunk.min(bound)).unwrap_or(usize::MAX);
    quota::check_batch(app, &scope.caller, largest).await?;
    let named = request.collection_ids.as_ref();
    tiers::of_bucket(app, &scope.namespace_id, bucket_id, named).await?;
    Ok(())
}

/// Writes down what is to be split, unless the same is under way.
async fn begin(
    app: &App,
    scope: &Scope<Write>,
    bucket_id: &str,
    request: BulkSubmitBatchesRequest,
    bound: i64,
) -> Result<String> {
    let now = app.clock().micros();
    let asked = json!({ "bucket_id": bucket_id, "request": request });
    let digest = hex::encode(Sha256::digest(asked.to_string()));
    let group = Group {
        group_id: id::new("grp_"),
        org_id: scope.caller.org_id.clone(),
        namespace_id: scope.namespace_id.clone(),
        bucket_id: bucket_id.to_owned(),
        seen_at: 0,
        seen_id: String::new(),
        batch_id: id::new("btch_"),
        held: 0,
        objects: 0,
        batches: 0,
        steps: 0,
        ended_at: 0,
        error: String::new(),
        data: Json(Wanted {
            request,
            actor: scope.caller.actor().to_owned(),
            until: now,
            bound,
        }),
    };
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let (namespace_id, bucket_id) = (&group.namespace_id, &group.bucket_id);
                // Of two at once, the second one finds the group of the first.
                BUCKETS.hold(tx, namespace_id, bucket_id).await?;
                if let Some(same) = groups::find_same(tx, namespace_id, bucket_id, &digest).await? {
                    return Ok(same);
                }
                groups::sweep(tx, namespace_id, now - KEPT).await?;
                groups::insert(tx, &group, &digest, now).await?;
                Ok(group.group_id)
            })
        })
        .await
}

/// The group once it is split, or as far as it is after a while.
async fn settle(app: &App, namespace_id: &str, group_id: &str) -> Result<Group> {
    let start = Instant::now();
    loop {
        let group = groups::find(app.db(), namespace_id, group_id).await?;
        if group.ended_at > 0 || start.elapsed() > LONGEST || app.leaving.is_cancelled() {
            return Ok(group);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn answer(group: &Group, members: Vec<Member>) -> BulkSubmitBatchesResponse {
    let wanted = &group.data.0;
    let chunk = wanted.request.chunk_size;
    let most = batches_of(wanted.bound, chunk);
    let is_whole = group.ended_at > 0 && group.error.is_empty();
    let (total_objects, total_batches) = match is_whole {
        true => (group.objects, group.batches),
        false => (wanted.bound, most),
    };
    let mut batches: Vec<BulkSubmittedBatch> = members
        .into_iter()
        .map(
            |(batch_id, object_count, status, place)| BulkSubmittedBatch {
                batch_id,
                status,
                object_count,
                queue_position: (place > 0).then_some(place),
                ..Default::default()
            },
        )
        .collect();
    let mut failed = 0;
    if !group.error.is_empty() {
        failed = (most - group.batches).max(1);
        batches.push(BulkSubmittedBatch {
            batch_id: group.batch_id.clone(),
            status: name_of(TaskStatusEnum::Failed),
            error: Some(group.error.clone()),
            ..Default::default()
        });
    }
    BulkSubmitBatchesResponse {
        batch_group_id: group.group_id.clone(),
        total_objects,
        total_batches,
        submitted: group.batches,
        failed,
        chunk_size: chunk,
        batches,
    }
}

/// Goes on with the buckets that are being split. Called by the leader alone.
///
/// # Errors
/// The database does not answer.
pub async fn split(app: &App) -> Result<()> {
    for mut group in groups::list_open(app.db()).await? {
        let Err(error) = work(app, &mut group).await else {
            continue;
        };
        if error.is_callers() {
            give_up(app, group, error.message()).await?;
        } else {
            let group_id = group.group_id;
            tracing::warn!(%error, group_id, "a bucket could not be split into batches; it is tried again");
        }
    }
    Ok(())
}

/// Splits one bucket for a while.
async fn work(app: &App, group: &mut Group) -> Result<()> {
    let start = Instant::now();
    let request = &group.data.0.request;
    let filter = request.filters.as_ref();
    let filter = filter.map(|filter| list::parse_filter(&filter.0, "filters"));
    let filter = filter.transpose()?;
    let (namespace_id, bucket_id) = (&group.namespace_id, &group.bucket_id);
    let named = request.collection_ids.as_ref();
    let tiers = tiers::of_bucket(app, namespace_id, bucket_id, named).await?;
    while group.ended_at == 0 && start.elapsed() < TURN {
        let page = read(app, group, filter.as_ref()).await?;
        match step(app, group, page, tiers.clone()).await? {
            Some(after) => *group = after,
            // Another process leads.
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Objects that come next.
struct Page {
    ids: Vec<String>,
    /// The last object that was looked at.
    seen: (i64, String),
    is_last: bool,
}

/// How many objects the batch that is being filled takes yet, one at least.
fn room(group: &Group) -> i64 {
    let wanted = &group.data.0;
    let in_batch = wanted.request.chunk_size - group.held;
    let most = wanted.request.max_objects.unwrap_or(i64::MAX);
    in_batch.min(most - group.objects - group.held).max(1)
}

async fn read(app: &App, group: &Group, filter: Option<&Filter>) -> Result<Page> {
    let room = room(group);
    let mut page = Page {
        ids: Vec::new(),
        seen: (group.seen_at, group.seen_id.clone()),
        is_last: false,
    };
    let Some(filter) = filter else {
        let found = groups::page(app.db(), group, room.min(PAGE)).await?;
        page.is_last = found.is_empty();
        for (object_id, at) in found {
            page.seen = (at, object_id.clone());
            page.ids.push(object_id);
        }
        return Ok(page);
    };
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let (namespace_id, bucket_id) = (&group.namespace_id, &group.bucket_id);
    let walk = Walk::oldest(Some(filter));
    // What was seen may lie before the first object that can match.
    let mark = page.seen.clone().max(walk.start());
    let found = objects::listing::piece(app.db(), namespace_id, bucket_id, &walk, mark).await?;
    page.is_last = found.is_empty();
    for (object, (at, object_id)) in found {
        if at > group.data.0.until {
            page.is_last = true;
            break;
        }
        page.seen = (at, object_id.clone());
        if objects::shelving::is_shelved(object.status) {
            continue;
        }
        let members = serde_json::to_value(object).map_err(ApiError::internal)?;
        if filter.matches(&members) {
            page.ids.push(object_id);
        }
        if page.ids.len() == room {
            break;
        }
    }
    Ok(page)
}

/// Puts a page into the batch that is being filled, and queues that when it is full or nothing comes after; none when
/// somebody else went on meanwhile.
async fn step(
    app: &App,
    group: &Group,
    page: Page,
    tiers: Vec<Vec<CollectionResponse>>,
) -> Result<Option<Group>> {
    let (before, now) = (group.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !groups::hold(tx, &before).await? {
                    return Ok(None);
                }
                let mut group = before;
                group.steps += 1;
                group.held += groups::fill(tx, &group, &page.ids, now).await?;
                (group.seen_at, group.seen_id) = page.seen;
                let request = &group.data.0.request;
                let most = request.max_objects.unwrap_or(i64::MAX);
                let is_over = page.is_last || group.objects + group.held >= most;
                let is_full = group.held >= request.chunk_size;
                if group.held > 0 && (is_over || is_full) {
                    queue(tx, &mut group, tiers, now).await?;
                }
                if is_over {
                    group.ended_at = now;
                }
                groups::update(tx, &group).await?;
                Ok(Some(group))
            })
        })
        .await
}

/// Makes a batch of what was gathered, queues it and begins the next one.
async fn queue(
    tx: &mut Tx,
    group: &mut Group,
    tiers: Vec<Vec<CollectionResponse>>,
    now: i64,
) -> Result<()> {
    let (org_id, namespace_id) = (&group.org_id, &group.namespace_id);
    if group.batches >= MOST {
        let message = format!("the filter takes more objects than fit: {TOO_MANY}");
        return Err(ApiError::bad_request("", message));
    }
    // Removed meanwhile, perhaps.
    BUCKETS.find_in(tx, namespace_id, &group.bucket_id).await?;
    let request = &group.data.0.request;
    let of_group = json!({ "batch_group_id": group.group_id });
    let batch = BatchModel {
        batch_id: Some(group.batch_id.clone()),
        bucket_id: group.bucket_id.clone(),
        namespace_id: Some(namespace_id.clone()),
        status: TaskStatusEnum::Draft,
        dedup_strategy: request.dedup_strategy,
        collection_ids: request.collection_ids.clone(),
        internal_metadata: of_group.as_object().cloned(),
        created_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        ..Default::default()
    };
    store::insert(tx, org_id, &batch, now).await?;
    let submission = Submission {
        tiers,
        objects: group.held,
        sample: groups::sample(tx, &group.batch_id).await?,
        actor: group.data.0.actor.clone(),
        webhook_url: None,
        is_forced: false,
    };
    write(tx, org_id, namespace_id, batch, submission, now).await?;
    groups::insert_member(tx, group).await?;
    group.objects += group.held;
    group.batches += 1;
    group.held = 0;
    group.batch_id = id::new("btch_");
    Ok(())
}

/// Ends a group that cannot be split any further; the batches that it made stay.
pub(super) async fn give_up(app: &App, group: Group, why: String) -> Result<()> {
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !groups::hold(tx, &group).await? {
                    return Ok(());
                }
                groups::drop_held(tx, &group).await?;
                let ended = Group {
                    held: 0,
                    ended_at: now,
                    error: why,
                    ..group
                };
                groups::update(tx, &ended).await
            })
        })
        .await
}
