-- Tries to sign in to apps, at passwords of apps and pages, and mails that were asked for: by a hash of who tried what. Rows say nothing after `over_at`.
CREATE TABLE app_tries (
    name TEXT PRIMARY KEY,
    began_at BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    closed_until BIGINT NOT NULL,
    over_at BIGINT NOT NULL
);
CREATE INDEX app_tries_over ON app_tries (over_at);
