-- What figures of searches are made of without reading what each answered: how long it took in microseconds, how many documents
-- it gave, whether from memory, on which page it was asked, its words, and the fields that it filtered on, a line each.
ALTER TABLE executions ADD COLUMN micros BIGINT NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN returned BIGINT NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN cached BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE executions ADD COLUMN public_id TEXT NOT NULL DEFAULT '';
ALTER TABLE executions ADD COLUMN query TEXT NOT NULL DEFAULT '';
ALTER TABLE executions ADD COLUMN fields TEXT NOT NULL DEFAULT '';
UPDATE executions SET
    micros = CAST(COALESCE(CAST(data ->> 'duration_ms' AS DOUBLE PRECISION), 0) * 1000 AS BIGINT),
    returned = COALESCE(CAST(data ->> 'total_returned' AS BIGINT), 0),
    cached = COALESCE(CAST(data ->> 'cache_hit_rate' AS DOUBLE PRECISION), 0) > 0,
    query = COALESCE(data ->> 'query_summary', '');
-- By their age they are forgotten.
CREATE INDEX executions_age ON executions (created_at);
-- What came into a collection lately.
CREATE INDEX processed_time ON processed (collection_id, updated_at);
