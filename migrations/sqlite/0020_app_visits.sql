-- Visits of apps by the minute since 1970: pages that were opened, calls of /api, and what failed.
CREATE TABLE app_minutes (
    app_id TEXT NOT NULL,
    minute BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    pages BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    PRIMARY KEY (app_id, minute)
);
CREATE INDEX app_minutes_age ON app_minutes (minute);
