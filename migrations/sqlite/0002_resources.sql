-- Named resources: id, owner (organization of namespaces, namespace of the rest), name, and the wire type as JSON.
CREATE TABLE namespaces (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX namespaces_owner ON namespaces (owner, created_at DESC, id);

CREATE TABLE buckets (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX buckets_owner ON buckets (owner, created_at DESC, id);

CREATE TABLE collections (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX collections_owner ON collections (owner, created_at DESC, id);

CREATE TABLE retrievers (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX retrievers_owner ON retrievers (owner, created_at DESC, id);

CREATE TABLE objects (
    object_id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL,
    bucket_id TEXT NOT NULL,
    key_prefix TEXT,
    -- The values of the bucket's unique key, joined; NULL when the bucket has none.
    unique_key TEXT,
    -- SHA-256 over blobs and members, for skip_duplicates.
    content_hash TEXT NOT NULL,
    -- The caller's own mark of a create request: a repetition answers the first object.
    idempotency_key TEXT,
    status TEXT NOT NULL,
    size_bytes BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (bucket_id, unique_key),
    UNIQUE (bucket_id, idempotency_key)
);
CREATE INDEX objects_bucket ON objects (namespace_id, bucket_id, created_at DESC, object_id);
CREATE INDEX objects_hash ON objects (bucket_id, content_hash);

CREATE TABLE uploads (
    upload_id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL,
    bucket_id TEXT NOT NULL,
    file_hash TEXT,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX uploads_bucket ON uploads (namespace_id, bucket_id, created_at DESC, upload_id);
CREATE INDEX uploads_hash ON uploads (bucket_id, file_hash);

CREATE TABLE published_retrievers (
    public_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    retriever_id TEXT NOT NULL UNIQUE,
    public_name TEXT NOT NULL UNIQUE,
    is_active BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX published_retrievers_namespace ON published_retrievers (namespace_id, created_at DESC);

CREATE TABLE executions (
    execution_id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL,
    retriever_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX executions_retriever ON executions (namespace_id, retriever_id, created_at DESC);
