-- What the list of public pages is narrowed by: the title in lower case, and whether a password opens the page.
ALTER TABLE published_retrievers ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE published_retrievers ADD COLUMN is_locked BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE published_retrievers SET
    title = SUBSTR(LOWER(COALESCE(json_extract(data, '$.display_config.title'), '')), 1, 500),
    is_locked = COALESCE(json_extract(data, '$.password_protected'), FALSE);
CREATE INDEX published_retrievers_public ON published_retrievers (created_at DESC, public_id) WHERE is_active = TRUE;
