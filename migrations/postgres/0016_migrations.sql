-- Migrations of namespaces, with how far each is. The owner is the organization.
CREATE TABLE migrations (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data JSONB NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX migrations_owner ON migrations (owner, created_at DESC, id);
