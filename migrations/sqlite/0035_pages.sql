-- Names that pages had before: whoever follows one is led on, until another page takes it.
CREATE TABLE page_names (
    public_name TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    retriever_id TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX page_names_retriever ON page_names (namespace_id, retriever_id);
-- Whether search engines may list the page: the map of pages names no other.
ALTER TABLE published_retrievers ADD COLUMN is_indexed BOOLEAN NOT NULL DEFAULT TRUE;
UPDATE published_retrievers SET is_indexed = FALSE
    WHERE ',' || REPLACE(LOWER(COALESCE(json_extract(data, '$.display_config.seo.robots'), '')), ' ', '') || ',' LIKE '%,noindex,%'
        OR ',' || REPLACE(LOWER(COALESCE(json_extract(data, '$.display_config.seo.robots'), '')), ' ', '') || ',' LIKE '%,none,%';
