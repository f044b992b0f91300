-- The record that proves a domain is asked for every day: when it was last asked for, and when it was last there.
ALTER TABLE app_domains ADD COLUMN checked_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE app_domains ADD COLUMN seen_at BIGINT NOT NULL DEFAULT 0;

-- Names that apps answered to and gave up. Scripts of theirs may live on in browsers, so nobody but their organization has them.
CREATE TABLE app_slugs (
    slug TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    released_at BIGINT NOT NULL
);

-- Places that bundles were sent to and that no deploy took yet.
CREATE TABLE app_bundles (
    place TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX app_bundles_age ON app_bundles (created_at);
