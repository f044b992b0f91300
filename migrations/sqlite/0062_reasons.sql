-- Why an object failed, for whoever looks at the object.
ALTER TABLE objects ADD COLUMN error TEXT;
UPDATE objects SET error = (SELECT o.error FROM batch_objects o WHERE o.object_id = objects.object_id AND o.status = 'FAILED' ORDER BY o.updated_at DESC LIMIT 1) WHERE status = 'FAILED';
-- Searches of an organization are summed by the hour, whatever key made them.
CREATE INDEX key_usage_hour ON key_usage (org_id, hour);
-- Lines of visitors' requests are kept for less than the rest of what is told of apps.
CREATE INDEX app_events_kind ON app_events (kind, created_at);
