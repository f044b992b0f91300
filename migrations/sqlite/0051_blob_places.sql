-- Where buckets keep their files when they have a destination. The name of a place is in the keys of the files that are there.
CREATE TABLE blob_places (
    namespace_id TEXT NOT NULL,
    place_id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    bucket_id TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (namespace_id, place_id)
);
CREATE INDEX blob_places_connection ON blob_places (org_id, connection_id);
-- Destinations from before did nothing.
UPDATE buckets SET data = json_remove(data, '$.destination') WHERE json_extract(data, '$.destination') IS NOT NULL;
