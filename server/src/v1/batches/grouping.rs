//! Buckets that the server itself has split into batches: begun with what else is written, looked at, and stopped.

use loupe_wire::BulkSubmitBatchesRequest;

use super::{
    splitting::{self, MOST, batches_of},
    stopping::cancel,
    store::groups::{self, Group, Wanted},
};
use crate::{
    app::App,
    db::{Json, Tx},
    error::{ApiError, Result},
    id,
};

/// A bucket whose objects are to be processed, whole.
#[derive(Debug, Clone)]
pub struct Bucketful {
    /// Given by whoever asks: it is found by it again.
    pub group_id: String,
    pub org_id: String,
    pub namespace_id: String,
    pub bucket_id: String,
    /// Who wants it.
    pub actor: String,
    /// Objects of a batch.
    pub size: i64,
    /// Objects that it has.
    pub objects: i64,
}

/// Refuses what would be more batches than a bucket is split into.
///
/// # Errors
/// 400 that says how many.
pub fn check_size(objects: i64, size: i64) -> Result<()> {
    match batches_of(objects, size) {
        batches if batches > MOST => {
            let message = format!(
                "that would be {batches} batches of a bucket, and {MOST} are made of one: make them larger"
            );
            Err(ApiError::bad_request("too_many_batches", message))
        }
        _ => Ok(()),
    }
}

/// Leaves a bucket to be split, in the transaction of those who want it; the leader does it.
///
/// # Errors
/// The database fails, or there is a group of this id.
pub async fn begin(tx: &mut Tx, bucket: Bucketful, now: i64) -> Result<()> {
    let request = BulkSubmitBatchesRequest {
        chunk_size: bucket.size,
        ..Default::default()
    };
    let group = Group {
        org_id: bucket.org_id,
        namespace_id: bucket.namespace_id,
        bucket_id: bucket.bucket_id,
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
            actor: bucket.actor,
            until: now,
            bound: bucket.objects,
        }),
        group_id: bucket.group_id,
    };
    // What callers ask for has digests of its own.
    groups::insert(tx, &group, &group.group_id, now).await
}

/// What has become of buckets that are processed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// Those that are being split still.
    pub splitting: usize,
    /// Batches that there will be, those that are made, and those of them that wait or run.
    pub wanted: i64,
    pub batches: i64,
    pub open: usize,
    /// Objects that there are, and what became of them in batches.
    pub objects: i64,
    pub done: i64,
    pub failed: i64,
    pub canceled: i64,
    /// Batches that ended with objects that failed.
    pub failures: Vec<String>,
    /// The first reason of all.
    pub error: Option<String>,
}

impl Standing {
    pub fn is_over(&self) -> bool {
        self.splitting == 0 && self.open == 0
    }

    fn count(&mut self, status: &str, objects: i64) {
        match status {
            "COMPLETED" | "SKIPPED" => self.done += objects,
            "FAILED" => self.failed += objects,
            "CANCELED" => self.canceled += objects,
            _ => {}
        }
    }
}

/// How the groups stand. One that is gone went with its bucket.
///
/// # Errors
/// The database does not answer.
pub async fn standing(app: &App, namespace_id: &str, group_ids: &[String]) -> Result<Standing> {
    let mut standing = Standing::default();
    for group_id in group_ids {
        match groups::find(app.db(), namespace_id, group_id).await {
            Ok(group) => add(app, &mut standing, &group).await?,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(standing)
}

async fn add(app: &App, standing: &mut Standing, group: &Group) -> Result<()> {
    let is_split = group.ended_at > 0;
    let wanted = &group.data.0;
    let size = wanted.request.chunk_size;
    standing.splitting += usize::from(!is_split);
    standing.batches += group.batches;
    let statuses = groups::statuses(app.db(), group).await?;
    if is_split && group.error.is_empty() {
        standing.wanted += group.batches;
        standing.objects += statuses.iter().map(|(_, objects)| objects).sum::<i64>();
    } else {
        standing.wanted += batches_of(wanted.bound, size);
        standing.objects += wanted.bound;
    }
    for (status, objects) in statuses {
        standing.count(&status, objects);
    }
    for (batch_id, _, status, _) in groups::members(app.db(), group).await? {
        match status.as_str() {
            "QUEUED" | "PROCESSING" => standing.open += 1,
            "FAILED" | "COMPLETED_WITH_ERRORS" => standing.failures.push(batch_id),
            _ => {}
        }
    }
    if standing.error.is_none() {
        standing.error = match group.error.is_empty() {
            true => groups::first_error(app.db(), group).await?,
            false => Some(group.error.clone()),
        };
    }
    Ok(())
}

/// Makes no more batches of the group, and cancels those that it made and that have not ended; safe to repeat.
///
/// # Errors
/// The database fails.
pub async fn halt(
    app: &App,
    (org_id, namespace_id): (&str, &str),
    group_id: &str,
    reason: &str,
) -> Result<()> {
    let group = loop {
        let group = match groups::find(app.db(), namespace_id, group_id).await {
            Ok(group) => group,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        if group.ended_at > 0 {
            break group;
        }
        // Nothing, where the leader went on with it meanwhile.
        splitting::give_up(app, group, reason.to_owned()).await?;
    };
    for (batch_id, _, status, _) in groups::members(app.db(), &group).await? {
        if matches!(status.as_str(), "COMPLETED" | "CANCELED" | "DELETED") {
            continue;
        }
        let reason = Some(reason.to_owned());
        match cancel(app, org_id, namespace_id, "", &batch_id, reason).await {
            // It has ended, or is gone.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            canceled => drop(canceled?),
        }
    }
    Ok(())
}
