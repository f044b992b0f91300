-- Pages that their owners look at before they are published, found by the hash of a name that nobody guesses.
CREATE TABLE page_previews (
    hash TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    retriever_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX page_previews_retriever ON page_previews (namespace_id, retriever_id, created_at);
CREATE INDEX page_previews_age ON page_previews (created_at);
