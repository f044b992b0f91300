-- What was written to a collection is re-applied in its order. What the document store has is kept for as long as something older
-- may have to be re-applied: it would be undone.
ALTER TABLE document_journal ADD COLUMN applied BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX document_journal_by_collection ON document_journal (namespace_id, collection_id, seq);
CREATE INDEX document_journal_waiting ON document_journal (namespace_id, collection_id, seq) WHERE applied = FALSE;
