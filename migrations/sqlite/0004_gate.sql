-- What stands between a caller and a resource: keys of retrievers, users that went, the audit log, repeated requests,
-- the use of keys, the buckets of tokens that several processes share.
ALTER TABLE api_keys ADD COLUMN retriever_id TEXT;
CREATE INDEX api_keys_retriever ON api_keys (org_id, retriever_id, created_at);

-- The row stays: what the user made names it. Its address is free again.
ALTER TABLE users ADD COLUMN deleted_at BIGINT;

CREATE TABLE audit_log (
    audit_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    resource_type TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    action TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX audit_log_org ON audit_log (org_id, created_at DESC, audit_id);

-- Answers to requests that carried an Idempotency-Key. The body is sealed with the caller's own secret.
CREATE TABLE idempotency_keys (
    key_id TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    org_id TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    -- Who runs the request and until when; a claim that ran out is taken over.
    owner TEXT NOT NULL,
    lease_until BIGINT NOT NULL,
    status BIGINT,
    content_type TEXT,
    body BLOB,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (key_id, idempotency_key)
);
CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);

CREATE TABLE key_usage (
    org_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    requests BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    micros BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, key_id, hour, method, path)
);

CREATE TABLE rate_limits (
    key_id TEXT PRIMARY KEY,
    -- Thousandths of tokens left in the bucket of the minute and of the second, at `refilled_at`.
    minute_tokens BIGINT NOT NULL,
    second_tokens BIGINT NOT NULL,
    refilled_at BIGINT NOT NULL
);
