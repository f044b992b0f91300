-- Lists are narrowed by the column, so it says what the object shows: some were written a little after the moment that they
-- tell, and what a snapshot brought back much later. What is finer than a microsecond is cut off, as bounds are.
UPDATE objects SET created_at = CAST(EXTRACT(EPOCH FROM CAST(SUBSTR(data->>'created_at', 1, 19) || 'Z' AS TIMESTAMPTZ)) AS BIGINT) * 1000000
    + COALESCE(CAST(RPAD(SUBSTRING(data->>'created_at' FROM '\.([0-9]{1,6})'), 6, '0') AS BIGINT), 0)
WHERE data->>'created_at' LIKE '2___-__-__T__:__:__%Z';
