-- When a namespace goes by itself. Nothing did until now: those whose time was over before stay for a week more.
ALTER TABLE namespaces ADD COLUMN expires_at BIGINT;
UPDATE namespaces SET expires_at = CAST(EXTRACT(EPOCH FROM CAST(SUBSTR(data->>'expires_at', 1, 19) || 'Z' AS TIMESTAMPTZ)) AS BIGINT) * 1000000
    + COALESCE(CAST(RPAD(SUBSTRING(data->>'expires_at' FROM '\.([0-9]{1,6})'), 6, '0') AS BIGINT), 0)
WHERE data->>'expires_at' LIKE '2___-__-__T__:__:__%Z';
UPDATE namespaces SET expires_at = CAST(EXTRACT(EPOCH FROM NOW()) AS BIGINT) * 1000000 + 604800000000
WHERE expires_at <= CAST(EXTRACT(EPOCH FROM NOW()) AS BIGINT) * 1000000;
CREATE INDEX namespaces_expiry ON namespaces (expires_at) WHERE expires_at IS NOT NULL;
