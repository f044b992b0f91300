-- Hosted apps: front ends that the server serves, each on its own origin. A slug is a host, so it is unique over all.
CREATE TABLE apps (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX apps_owner ON apps (owner, created_at DESC, id);

-- Bundles on their way to being a version: queued, building, complete or failed.
CREATE TABLE app_deploys (
    deploy_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX app_deploys_app ON app_deploys (org_id, app_id, created_at DESC);

-- What an app served or serves: files by path, never changed.
CREATE TABLE app_versions (
    app_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (app_id, version)
);

-- Names of their owners' own that apps answer to. A name may wait for several apps, and be proven by one.
CREATE TABLE app_domains (
    app_id TEXT NOT NULL,
    domain TEXT NOT NULL,
    org_id TEXT NOT NULL,
    status TEXT NOT NULL,
    token TEXT NOT NULL,
    is_primary BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    verified_at BIGINT NOT NULL,
    PRIMARY KEY (app_id, domain)
);
CREATE UNIQUE INDEX app_domains_proven ON app_domains (domain) WHERE status = 'active';

-- People who sign in to an app; each app has its own. An address of '' belongs to whoever proved none.
CREATE TABLE app_users (
    user_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    email TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (app_id, email)
);
CREATE INDEX app_users_app ON app_users (org_id, app_id, created_at, user_id);

-- Who a person is at a provider: issuer and subject, never the address.
CREATE TABLE app_identities (
    app_id TEXT NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    org_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (app_id, issuer, subject)
);
CREATE INDEX app_identities_user ON app_identities (user_id);

-- Signed-in browsers; of the cookie only the hash is kept.
CREATE TABLE app_sessions (
    token_hash TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX app_sessions_user ON app_sessions (user_id);
CREATE INDEX app_sessions_end ON app_sessions (expires_at);

-- What opens something once: links in mails, ways to a provider and back.
CREATE TABLE app_tokens (
    token_hash TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    user_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX app_tokens_user ON app_tokens (user_id);
CREATE INDEX app_tokens_end ON app_tokens (expires_at);

-- People who were asked to come, until they came.
CREATE TABLE app_invitations (
    invitation_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (app_id, email)
);

-- What visitors did and what went wrong for them.
CREATE TABLE app_events (
    event_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX app_events_app ON app_events (app_id, kind, created_at DESC);
CREATE INDEX app_events_age ON app_events (created_at);
