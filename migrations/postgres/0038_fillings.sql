-- What is being written of an object into a collection, noted before the documents are: while a row is there, nobody knows
-- that the collection holds what `processed` says. `batch_id` is the batch whose documents nobody was told of yet, or empty.
CREATE TABLE fillings (
    object_id TEXT NOT NULL,
    collection_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    batch_id TEXT NOT NULL,
    PRIMARY KEY (object_id, collection_id)
);
CREATE INDEX fillings_batch ON fillings (batch_id);
CREATE INDEX fillings_place ON fillings (namespace_id, collection_id);

-- The object of a confirmed upload: its file goes with the object.
ALTER TABLE uploads ADD COLUMN object_id TEXT;
UPDATE uploads SET object_id = data ->> 'object_id' WHERE status = 'COMPLETED';
CREATE INDEX uploads_object ON uploads (namespace_id, object_id) WHERE object_id IS NOT NULL;
