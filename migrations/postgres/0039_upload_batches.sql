-- Whoever submits the batch of a confirmed upload claims it first: of two confirmations at once one submits.
ALTER TABLE uploads ADD COLUMN batch_claimed_at BIGINT;
-- What arrives at the address of a confirmed upload is removed once the address has ended.
CREATE INDEX uploads_late ON uploads (expires_at) WHERE status = 'COMPLETED';
