-- Storage of others that files are fetched from. Secrets inside data are encrypted with a key made from the master key.
CREATE TABLE connections (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data JSONB NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX connections_owner ON connections (owner, created_at DESC, id);
