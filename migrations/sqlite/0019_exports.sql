-- Files made of collections, until their day is over.
CREATE TABLE exports (
    export_id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX exports_expiry ON exports (expires_at);
