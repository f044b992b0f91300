-- When the leader looks at a batch: one that runs may stand still, one that failed may be worth another try.
ALTER TABLE batches ADD COLUMN due_at BIGINT;
UPDATE batches SET due_at = updated_at + 1800000000 WHERE status = 'PROCESSING';
CREATE INDEX batches_due ON batches (due_at) WHERE due_at IS NOT NULL;
