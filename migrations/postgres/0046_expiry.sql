-- When a namespace goes by itself. Nothing did until now, so nobody minded what was shown: what was restored or migrated
-- showed the end of what it was made of, and is kept for good; nothing else goes within a week.
UPDATE namespaces SET data = data - 'expires_at'
WHERE data->>'clone_task_id' IN (
    SELECT task_id FROM tasks WHERE task_type IN ('api_namespaces_snapshot_restore', 'api_namespaces_migrations_run')
    UNION ALL
    SELECT task_id FROM tasks_archive WHERE task_type IN ('api_namespaces_snapshot_restore', 'api_namespaces_migrations_run')
);
ALTER TABLE namespaces ADD COLUMN expires_at BIGINT;
UPDATE namespaces SET expires_at = CAST(EXTRACT(EPOCH FROM CAST(SUBSTR(data->>'expires_at', 1, 19) || 'Z' AS TIMESTAMPTZ)) AS BIGINT) * 1000000
    + COALESCE(CAST(RPAD(SUBSTRING(data->>'expires_at' FROM '\.([0-9]{1,6})'), 6, '0') AS BIGINT), 0)
WHERE data->>'expires_at' LIKE '2___-__-__T__:__:__%Z';
UPDATE namespaces SET
    expires_at = CAST(EXTRACT(EPOCH FROM DATE_TRUNC('second', NOW())) AS BIGINT) * 1000000 + 604800000000,
    data = JSONB_SET(data, '{expires_at}', TO_JSONB(TO_CHAR((NOW() + INTERVAL '168 hours') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))
WHERE expires_at < CAST(EXTRACT(EPOCH FROM DATE_TRUNC('second', NOW())) AS BIGINT) * 1000000 + 604800000000;
CREATE INDEX namespaces_expiry ON namespaces (expires_at) WHERE expires_at IS NOT NULL;
