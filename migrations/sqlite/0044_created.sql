-- Lists are narrowed by the column, so it says what the object shows: some were written a little after the moment that they
-- tell, and what a snapshot brought back much later. What is finer than a microsecond is cut off, as bounds are.
UPDATE objects SET created_at = CAST(STRFTIME('%s', SUBSTR(JSON_EXTRACT(data, '$.created_at'), 1, 19)) AS INTEGER) * 1000000
    + CASE SUBSTR(JSON_EXTRACT(data, '$.created_at'), 20, 1)
        WHEN '.' THEN CAST(SUBSTR(REPLACE(SUBSTR(JSON_EXTRACT(data, '$.created_at'), 21), 'Z', '') || '000000', 1, 6) AS INTEGER)
        ELSE 0
    END
WHERE JSON_EXTRACT(data, '$.created_at') LIKE '2___-__-__T__:__:__%Z';
