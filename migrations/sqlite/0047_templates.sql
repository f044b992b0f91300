-- What an organization keeps of its resources, to make others like them. Templates outlive what they were made of, and its
-- namespace. `user_id` is empty where the whole organization sees the template.
CREATE TABLE templates (
    template_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    template_type TEXT NOT NULL,
    user_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX templates_of_organization ON templates (org_id, template_type, created_at);
