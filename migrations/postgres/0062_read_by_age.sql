-- Searches of an organization are summed by the hour, whatever key made them.
CREATE INDEX key_usage_hour ON key_usage (org_id, hour);
-- Lines of visitors' requests are kept for less than the rest of what is told of apps.
CREATE INDEX app_events_kind ON app_events (kind, created_at);
