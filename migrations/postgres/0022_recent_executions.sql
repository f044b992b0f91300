-- What was searched for lately in a namespace, whatever the retriever.
CREATE INDEX executions_recent ON executions (namespace_id, created_at DESC);
