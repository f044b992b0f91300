-- No listing and no look of an alert reads a table that grows from one end to the other.
CREATE INDEX batches_org ON batches (org_id, created_at DESC, batch_id);
CREATE INDEX annotation_signals_namespace ON annotation_signals (namespace_id);
-- With the person behind the app: without figures of the tables, SQLite would otherwise look a person up among all of the app.
CREATE INDEX app_sessions_app ON app_sessions (app_id, user_id);
CREATE INDEX app_tokens_app ON app_tokens (app_id, user_id);
CREATE INDEX app_domains_org ON app_domains (org_id, app_id);
CREATE INDEX app_domains_checked ON app_domains (checked_at, app_id, domain) WHERE status = 'active';
CREATE INDEX exports_namespace ON exports (namespace_id);
CREATE INDEX uploads_processing ON uploads (upload_id) WHERE status = 'PROCESSING';
-- What there is to claim, in order: tasks that have ended stay for a day.
CREATE INDEX tasks_live ON tasks (created_at, task_id) WHERE status IN ('QUEUED', 'PROCESSING') AND kind IS NOT NULL;
-- The beginning of processed_time.
DROP INDEX processed_collection;
