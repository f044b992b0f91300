-- When a namespace goes by itself. Nothing did until now, so nobody minded what was shown: what was restored or migrated
-- showed the end of what it was made of, and is kept for good; nothing else goes within a week.
UPDATE namespaces SET data = JSON_REMOVE(data, '$.expires_at')
WHERE JSON_EXTRACT(data, '$.clone_task_id') IN (
    SELECT task_id FROM tasks WHERE task_type IN ('api_namespaces_snapshot_restore', 'api_namespaces_migrations_run')
    UNION ALL
    SELECT task_id FROM tasks_archive WHERE task_type IN ('api_namespaces_snapshot_restore', 'api_namespaces_migrations_run')
);
ALTER TABLE namespaces ADD COLUMN expires_at BIGINT;
UPDATE namespaces SET expires_at = CAST(STRFTIME('%s', SUBSTR(JSON_EXTRACT(data, '$.expires_at'), 1, 19)) AS INTEGER) * 1000000
    + CASE SUBSTR(JSON_EXTRACT(data, '$.expires_at'), 20, 1)
        WHEN '.' THEN CAST(SUBSTR(REPLACE(SUBSTR(JSON_EXTRACT(data, '$.expires_at'), 21), 'Z', '') || '000000', 1, 6) AS INTEGER)
        ELSE 0
    END
WHERE JSON_EXTRACT(data, '$.expires_at') LIKE '2___-__-__T__:__:__%Z';
UPDATE namespaces SET
    expires_at = CAST(STRFTIME('%s', 'now') AS INTEGER) * 1000000 + 604800000000,
    data = JSON_SET(data, '$.expires_at', STRFTIME('%Y-%m-%dT%H:%M:%SZ', 'now', '+168 hours'))
WHERE expires_at < CAST(STRFTIME('%s', 'now') AS INTEGER) * 1000000 + 604800000000;
CREATE INDEX namespaces_expiry ON namespaces (expires_at) WHERE expires_at IS NOT NULL;
