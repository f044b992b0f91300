-- The sweep of uploads that nobody confirmed reads these alone.
CREATE INDEX uploads_due ON uploads (expires_at) WHERE status <> 'COMPLETED';
