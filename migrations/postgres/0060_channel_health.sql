-- How each channel of a webhook does. What was known of a webhook is held of all of its channels: each that anything was sent to.
CREATE TABLE channel_health (
    webhook_id TEXT NOT NULL,
    channel BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    failures BIGINT NOT NULL,
    last_success_at BIGINT NOT NULL,
    last_failure_at BIGINT NOT NULL,
    last_error TEXT NOT NULL,
    paused_for TEXT NOT NULL,
    PRIMARY KEY (webhook_id, channel)
);
INSERT INTO channel_health (webhook_id, channel, org_id, failures, last_success_at, last_failure_at, last_error, paused_for)
SELECT DISTINCT h.webhook_id, COALESCE(d.channel, 0), h.org_id, h.failures, h.last_success_at, h.last_failure_at, h.last_error, h.paused_for
FROM webhook_health h LEFT JOIN webhook_deliveries d ON d.org_id = h.org_id AND d.webhook_id = h.webhook_id;
DROP TABLE webhook_health;
ALTER TABLE channel_health RENAME TO webhook_health;
CREATE INDEX webhook_health_organization ON webhook_health (org_id);
