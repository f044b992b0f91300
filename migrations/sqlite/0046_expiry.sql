-- When a namespace goes by itself. Nothing did until now: those whose time was over before stay for a week more.
ALTER TABLE namespaces ADD COLUMN expires_at BIGINT;
UPDATE namespaces SET expires_at = CAST(STRFTIME('%s', SUBSTR(JSON_EXTRACT(data, '$.expires_at'), 1, 19)) AS INTEGER) * 1000000
    + CASE SUBSTR(JSON_EXTRACT(data, '$.expires_at'), 20, 1)
        WHEN '.' THEN CAST(SUBSTR(REPLACE(SUBSTR(JSON_EXTRACT(data, '$.expires_at'), 21), 'Z', '') || '000000', 1, 6) AS INTEGER)
        ELSE 0
    END
WHERE JSON_EXTRACT(data, '$.expires_at') LIKE '2___-__-__T__:__:__%Z';
UPDATE namespaces SET expires_at = CAST(STRFTIME('%s', 'now') AS INTEGER) * 1000000 + 604800000000
WHERE expires_at <= CAST(STRFTIME('%s', 'now') AS INTEGER) * 1000000;
CREATE INDEX namespaces_expiry ON namespaces (expires_at) WHERE expires_at IS NOT NULL;
