-- Most objects have neither a unique key nor a caller's mark: those that have one are indexed alone.
ALTER TABLE objects DROP CONSTRAINT objects_bucket_id_unique_key_key;
ALTER TABLE objects DROP CONSTRAINT objects_bucket_id_idempotency_key_key;
CREATE UNIQUE INDEX objects_unique_key ON objects (bucket_id, unique_key) WHERE unique_key IS NOT NULL;
CREATE UNIQUE INDEX objects_idempotency_key ON objects (bucket_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
