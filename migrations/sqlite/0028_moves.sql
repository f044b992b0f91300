-- Objects that were removed while a collection was put away: their documents go as it is brought back.
CREATE TABLE away_removals (
    namespace_id TEXT NOT NULL,
    collection_id TEXT NOT NULL,
    object_id TEXT NOT NULL,
    PRIMARY KEY (namespace_id, collection_id, object_id)
);

-- What batches did, by the hour: what is paid for stays so when the batch is deleted or runs again.
CREATE TABLE ingestion_usage (
    org_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    batch_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    objects BIGINT NOT NULL,
    documents BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, hour, batch_id)
);
INSERT INTO ingestion_usage (org_id, hour, batch_id, namespace_id, objects, documents, updated_at)
SELECT b.org_id, o.updated_at / 3600000000 * 3600000000, b.batch_id, b.namespace_id,
    SUM(CASE WHEN o.status = 'COMPLETED' THEN 1 ELSE 0 END), COALESCE(SUM(o.documents), 0), MAX(o.updated_at)
FROM batch_objects o JOIN batches b ON b.batch_id = o.batch_id
WHERE o.status = 'COMPLETED' OR o.documents > 0
GROUP BY b.org_id, o.updated_at / 3600000000, b.batch_id, b.namespace_id;
