-- Files whose content was in an object already name it: '' for files with an object of their own. What did not name it so
-- far is looked at anew.
DELETE FROM sync_files WHERE object_id = '';
ALTER TABLE sync_files ADD COLUMN borrowed_id TEXT NOT NULL DEFAULT '';
CREATE INDEX sync_files_borrowed ON sync_files (namespace_id, borrowed_id);
DROP INDEX sync_files_namespace;

-- Old looks are swept by their age.
CREATE INDEX sync_jobs_age ON sync_jobs (created_at);
