-- What namespaces held at a moment; the files lie beside their others.
CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX snapshots_owner ON snapshots (owner, created_at DESC, id);
