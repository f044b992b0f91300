-- Organizations, users, keys and the change feed. Time is microseconds since 1970, UTC.
CREATE TABLE organizations (
    org_id TEXT PRIMARY KEY,
    -- Bumped inside the transaction of each change: a database sequence commits out of order and readers would skip.
    event_seq BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL
);

CREATE TABLE users (
    user_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (org_id),
    email TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (org_id, email)
);

CREATE TABLE api_keys (
    key_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (org_id),
    user_id TEXT NOT NULL REFERENCES users (user_id),
    name TEXT NOT NULL,
    -- SHA-256 of the secret, hex; the secret itself is shown once and kept nowhere.
    secret_hash TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    is_protected BOOLEAN NOT NULL DEFAULT FALSE,
    expires_at BIGINT,
    last_used_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE UNIQUE INDEX api_keys_active_name ON api_keys (user_id, name) WHERE status = 'active';
CREATE INDEX api_keys_user ON api_keys (org_id, user_id, created_at);

CREATE TABLE events (
    org_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    namespace_id TEXT,
    event_type TEXT NOT NULL,
    operation TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, seq)
);
