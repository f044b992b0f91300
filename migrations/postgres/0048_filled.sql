-- Objects that batches filled each collection from, by the hour: an object counts each time that it is processed, as it is paid
-- for each time. What was noted until now says of an object when it was processed last.
CREATE TABLE ingestion_by_collection (
    org_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    batch_id TEXT NOT NULL,
    collection_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    objects BIGINT NOT NULL,
    PRIMARY KEY (org_id, hour, batch_id, collection_id)
);
INSERT INTO ingestion_by_collection (org_id, hour, batch_id, collection_id, namespace_id, objects)
SELECT n.owner, p.updated_at / 3600000000 * 3600000000, '', p.collection_id, p.namespace_id, COUNT(*)
FROM processed p JOIN namespaces n ON n.id = p.namespace_id
GROUP BY n.owner, p.updated_at / 3600000000, p.collection_id, p.namespace_id;
