-- Which tier of its batch an object waits for, or ended in, and whether any tier made something of it.
ALTER TABLE batch_objects ADD COLUMN tier BIGINT NOT NULL DEFAULT 0;
ALTER TABLE batch_objects ADD COLUMN made BIGINT NOT NULL DEFAULT 0;
-- The document that an object failed with.
ALTER TABLE batch_objects ADD COLUMN document_id TEXT;
