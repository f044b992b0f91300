-- Decisions about documents: a row a version. A version was the current one from `valid_from` until before `valid_to`,
-- which is the largest number for the one that still is.
CREATE TABLE annotations (
    annotation_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    namespace_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    collection_id TEXT NOT NULL,
    label TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    retriever_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    valid_from BIGINT NOT NULL,
    valid_to BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (annotation_id, version)
);
CREATE INDEX annotations_namespace ON annotations (namespace_id, created_at DESC, annotation_id);
CREATE INDEX annotations_document ON annotations (namespace_id, document_id);
