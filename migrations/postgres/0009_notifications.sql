-- What people should know. No user: for everybody in the organization. Read at 0: unread.
CREATE TABLE notifications (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    type TEXT NOT NULL,
    priority TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    read_at BIGINT NOT NULL,
    data JSONB NOT NULL
);
CREATE INDEX notifications_organization ON notifications (org_id, created_at DESC, id);
CREATE INDEX notifications_age ON notifications (created_at);
