-- The public task is the queue's row.
CREATE TABLE tasks (
    task_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    namespace_id TEXT,
    task_type TEXT NOT NULL,
    status TEXT NOT NULL,
    -- Chunks and other inner work name the task they belong to and are not listed.
    parent_id TEXT,
    -- What a worker runs; NULL for tasks that only report.
    kind TEXT,
    work JSONB,
    -- Who runs it until when; a lease that ran out is taken over. `attempt` fences late writers.
    lease_owner TEXT,
    lease_until BIGINT,
    attempt BIGINT NOT NULL DEFAULT 0,
    -- Ends in an error that may pass; a claim after the death of a worker is no failed try.
    tries BIGINT NOT NULL DEFAULT 0,
    run_after BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    ended_at BIGINT,
    data JSONB NOT NULL
);
CREATE INDEX tasks_org ON tasks (org_id, created_at DESC, task_id);
CREATE INDEX tasks_claim ON tasks (kind, status, run_after, created_at);
CREATE INDEX tasks_parent ON tasks (parent_id, status);
CREATE INDEX tasks_ended ON tasks (ended_at);

CREATE TABLE tasks_archive (
    task_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    namespace_id TEXT,
    task_type TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    ended_at BIGINT,
    data JSONB NOT NULL
);
CREATE INDEX tasks_archive_org ON tasks_archive (org_id, created_at DESC, task_id);

CREATE TABLE batches (
    batch_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    bucket_id TEXT NOT NULL,
    status TEXT NOT NULL,
    -- Admission is first in, first out by this moment; NULL while a draft.
    queued_at BIGINT,
    submitted_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data JSONB NOT NULL
);
CREATE INDEX batches_bucket ON batches (namespace_id, bucket_id, created_at DESC, batch_id);
CREATE INDEX batches_queue ON batches (status, queued_at);

-- One row for each object of a batch: what became of it.
CREATE TABLE batch_objects (
    batch_id TEXT NOT NULL,
    object_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    error_type TEXT,
    collection_id TEXT,
    documents BIGINT NOT NULL DEFAULT 0,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (batch_id, object_id)
);
CREATE INDEX batch_objects_status ON batch_objects (batch_id, status, position);

-- Which process does the work that only one may do.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    until BIGINT NOT NULL
);

-- Single documents written through the API, until the document store has flushed them: re-applied on open.
CREATE TABLE document_journal (
    seq BIGINT PRIMARY KEY,
    namespace_id TEXT NOT NULL,
    collection_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    data JSONB NOT NULL
);

-- What each collection has made of each object: re-runs pass over what is done.
CREATE TABLE processed (
    object_id TEXT NOT NULL,
    collection_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    documents BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (object_id, collection_id)
);
CREATE INDEX processed_collection ON processed (collection_id);
