-- The request that a change came of, by the id that its answer bears; none where the server changed something by itself.
ALTER TABLE events ADD COLUMN trace_id TEXT;
