-- Receivers of events. What their channels are configured with lies encrypted in `data`.
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data JSONB NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX webhooks_owner ON webhooks (owner, created_at DESC, id);

-- How a receiver does. Moments are 0 until they come.
CREATE TABLE webhook_health (
    webhook_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    failures BIGINT NOT NULL,
    last_success_at BIGINT NOT NULL,
    last_failure_at BIGINT NOT NULL,
    last_error TEXT NOT NULL,
    paused_for TEXT NOT NULL
);
CREATE INDEX webhook_health_organization ON webhook_health (org_id);

-- How far what acts on the change feed has read it.
CREATE TABLE feed_readers (
    org_id TEXT NOT NULL,
    name TEXT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (org_id, name)
);
CREATE INDEX feed_readers_name ON feed_readers (name);

-- One message to one channel: pending, delivered or failed.
CREATE TABLE webhook_deliveries (
    delivery_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    channel BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    event_type TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL,
    last_status BIGINT NOT NULL,
    last_error TEXT NOT NULL,
    ended_at BIGINT NOT NULL
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (status, due_at);
CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (org_id, webhook_id, created_at DESC);
CREATE INDEX webhook_deliveries_age ON webhook_deliveries (created_at);
