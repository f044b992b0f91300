-- By what a bucket knows the parts of a file that is sent to it in such: its name for an upload in parts.
ALTER TABLE uploads ADD COLUMN parts_id TEXT;
