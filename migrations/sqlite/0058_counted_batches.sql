-- Whoever looks at a batch counts its objects: from the index alone.
DROP INDEX batch_objects_status;
CREATE INDEX batch_objects_status ON batch_objects (batch_id, status, position, documents, tier);
