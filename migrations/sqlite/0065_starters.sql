-- Whose key started a task: it may follow it, whatever its scopes are.
ALTER TABLE tasks ADD COLUMN started_by TEXT;
ALTER TABLE tasks_archive ADD COLUMN started_by TEXT;
