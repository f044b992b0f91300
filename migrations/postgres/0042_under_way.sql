-- What is under way to receivers, by organization. What has ended is held by nobody.
CREATE INDEX webhook_deliveries_under_way ON webhook_deliveries (org_id, claimed_until) WHERE claimed_until > 0;
