use loupe_wire::BucketResponse;

use crate::{args, db::Db, error::Result};

crate::table!(pub static BUCKETS: BucketResponse = "buckets", "bucket");

crate::sql! {
    const COUNT_OBJECTS = "SELECT bucket_id, CAST(COUNT(*) AS BIGINT), CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT), CAST(COALESCE(SUM(CASE WHEN status = 'FAILED' THEN 1 ELSE 0 END), 0) AS BIGINT) FROM objects WHERE namespace_id = $1 GROUP BY bucket_id";
}

/// Fills in how many objects each bucket holds, in one query for all.
pub(super) async fn count_objects(
    db: &Db,
    namespace_id: &str,
    buckets: &mut [BucketResponse],
) -> Result<()> {
    let counts: Vec<(String, i64, i64, i64)> = db.all(COUNT_OBJECTS, args![namespace_id]).await?;
    for (bucket_id, objects, bytes, failed) in counts {
        if let Some(bucket) = buckets
            .iter_mut()
            .find(|bucket| bucket.bucket_id.as_ref() == Some(&bucket_id))
        {
            bucket.object_count = objects;
            bucket.total_size_bytes = bytes;
            bucket.failed_object_count = failed;
        }
    }
    Ok(())
}
