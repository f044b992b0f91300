-- Buckets that are split into batches: how far each was read, and the batch that is being filled.
CREATE TABLE batch_groups (
    group_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    bucket_id TEXT NOT NULL,
    -- What was asked for: the same again, while something of it waits or runs, is the same group.
    digest TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    seen_id TEXT NOT NULL,
    batch_id TEXT NOT NULL,
    held BIGINT NOT NULL,
    -- Those that are queued.
    objects BIGINT NOT NULL,
    batches BIGINT NOT NULL,
    -- Fences whoever comes late.
    steps BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    -- 0 while it is being split.
    ended_at BIGINT NOT NULL,
    error TEXT NOT NULL,
    data JSONB NOT NULL
);
CREATE INDEX batch_groups_open ON batch_groups (ended_at, steps);
CREATE INDEX batch_groups_bucket ON batch_groups (namespace_id, bucket_id, digest);

CREATE TABLE batch_group_members (
    group_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    namespace_id TEXT NOT NULL,
    batch_id TEXT NOT NULL,
    objects BIGINT NOT NULL,
    PRIMARY KEY (group_id, place)
);
CREATE INDEX batch_group_members_namespace ON batch_group_members (namespace_id, group_id);
