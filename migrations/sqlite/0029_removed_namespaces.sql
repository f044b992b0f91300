-- Whether a namespace's id is being freed is asked whenever one is made.
CREATE INDEX tasks_removal ON tasks (namespace_id) WHERE task_type = 'api_namespaces_delete';
CREATE INDEX tasks_archive_removal ON tasks_archive (namespace_id) WHERE task_type = 'api_namespaces_delete';
