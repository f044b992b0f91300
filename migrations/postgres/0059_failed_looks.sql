-- Looks of an alert that failed since the last one that did not, and why the last of them did.
ALTER TABLE alert_states ADD COLUMN failures BIGINT NOT NULL DEFAULT 0;
ALTER TABLE alert_states ADD COLUMN error TEXT NOT NULL DEFAULT '';
-- Whether a look failed: it found nothing out.
ALTER TABLE alert_executions ADD COLUMN failed BOOLEAN NOT NULL DEFAULT FALSE;
