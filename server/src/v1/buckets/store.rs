use loupe_wire::{BatchStatistics, BucketListStats, BucketResponse, StorageStatistics};

use crate::{args, clock, db::Db, error::Result};

crate::table!(pub static BUCKETS: BucketResponse = "buckets", "bucket");

crate::sql! {
    const COUNT_OBJECTS = "SELECT bucket_id, CAST(COUNT(*) AS BIGINT) AS objects, CAST(COALESCE(SUM(CASE WHEN status = 'FAILED' THEN 1 ELSE 0 END), 0) AS BIGINT) AS failed, CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) AS bytes, CAST(COALESCE(MAX(size_bytes), 0) AS BIGINT) AS most, CAST(COALESCE(MIN(size_bytes), 0) AS BIGINT) AS least, CAST(MAX(created_at) AS BIGINT) AS newest, CAST(MAX(updated_at) AS BIGINT) AS changed FROM objects WHERE namespace_id = $1 GROUP BY bucket_id";
    const COUNT_BATCHES = "SELECT bucket_id, status, CAST(COUNT(*) AS BIGINT) FROM batches WHERE namespace_id = $1 GROUP BY bucket_id, status";
}

crate::row! {
    /// What the objects of one bucket come to.
    struct Objects {
        bucket_id: String,
        objects: i64,
        failed: i64,
        bytes: i64,
        most: i64,
        least: i64,
        newest: i64,
        changed: i64,
    }
}

/// Fills in what each bucket holds and what became of its batches, in one query each for all.
pub(super) async fn count(
    db: &Db,
    namespace_id: &str,
    buckets: &mut [BucketResponse],
) -> Result<()> {
    let objects: Vec<Objects> = db.all(COUNT_OBJECTS, args![namespace_id]).await?;
    let batches: Vec<(String, String, i64)> = db.all(COUNT_BATCHES, args![namespace_id]).await?;
    for bucket in buckets {
        let id = bucket.bucket_id.clone().unwrap_or_default();
        let mut of_it = BatchStatistics::default();
        for (_, status, count) in batches.iter().filter(|(bucket_id, ..)| *bucket_id == id) {
            add_batches(&mut of_it, status, *count);
        }
        bucket.batch_stats = Some(of_it);
        bucket.storage_stats = Some(StorageStatistics::default());
        if let Some(found) = objects.iter().find(|found| found.bucket_id == id) {
            add_objects(bucket, found);
        }
    }
    Ok(())
}

fn add_objects(bucket: &mut BucketResponse, found: &Objects) {
    bucket.object_count = found.objects;
    bucket.total_size_bytes = found.bytes;
    bucket.failed_object_count = found.failed;
    bucket.last_upload_at = Some(clock::time(found.newest));
    bucket.stats_updated_at = Some(clock::time(found.changed));
    bucket.storage_stats = Some(StorageStatistics {
        total_size_bytes: found.bytes,
        avg_size_bytes: found.bytes / found.objects.max(1),
        max_size_bytes: found.most,
        min_size_bytes: found.least,
    });
}

/// A draft is neither under way nor at its end, but it is one.
fn add_batches(stats: &mut BatchStatistics, status: &str, count: i64) {
    stats.total += count;
    match status {
        "COMPLETED" | "COMPLETED_WITH_ERRORS" => stats.completed += count,
        "FAILED" => stats.failed += count,
        "PENDING" | "QUEUED" | "IN_PROGRESS" | "PROCESSING" => stats.active += count,
        _ => {}
    }
}

/// Of the buckets that are listed.
#[expect(clippy::cast_precision_loss, reason = "averages for people")]
pub(super) fn stats(buckets: &[BucketResponse]) -> BucketListStats {
    let total_objects: i64 = buckets.iter().map(|bucket| bucket.object_count).sum();
    let total_size_bytes: i64 = buckets.iter().map(|bucket| bucket.total_size_bytes).sum();
    let many = buckets.len().max(1) as f64;
    BucketListStats {
        total_objects,
        total_size_bytes,
        avg_objects_per_bucket: total_objects as f64 / many,
        avg_size_per_bucket: total_size_bytes as f64 / many,
    }
}
