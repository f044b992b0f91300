-- Which syncs look through a connection, before it is deleted.
CREATE INDEX syncs_org ON syncs (org_id, created_at, sync_id);
