-- How each execution ended. Those that failed are in the history, too, and in no figure of what searches found.
ALTER TABLE executions ADD COLUMN status TEXT NOT NULL DEFAULT 'completed';
UPDATE executions SET status = json_extract(data, '$.status') WHERE json_extract(data, '$.status') <> 'completed';
CREATE INDEX executions_status ON executions (namespace_id, retriever_id, status, created_at DESC);
CREATE INDEX executions_answered ON executions (namespace_id, created_at DESC) WHERE status <> 'failed';
