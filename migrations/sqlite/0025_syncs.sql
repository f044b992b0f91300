-- Storages that buckets follow. No moment: 0; no job: ''.
CREATE TABLE syncs (
    sync_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    bucket_id TEXT NOT NULL,
    next_at BIGINT NOT NULL,
    job_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX syncs_bucket ON syncs (namespace_id, bucket_id, created_at, sync_id);
CREATE INDEX syncs_due ON syncs (next_at);

-- Each look into a storage, and what it brought.
CREATE TABLE sync_jobs (
    job_id TEXT PRIMARY KEY,
    sync_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX sync_jobs_sync ON sync_jobs (namespace_id, sync_id, created_at DESC, job_id);

-- What is known of a storage's files, in the order in which storages list them: how each looked when its object was made.
CREATE TABLE sync_files (
    sync_id TEXT NOT NULL,
    path TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    version TEXT NOT NULL,
    object_id TEXT NOT NULL,
    PRIMARY KEY (sync_id, path)
);
CREATE INDEX sync_files_namespace ON sync_files (namespace_id);
