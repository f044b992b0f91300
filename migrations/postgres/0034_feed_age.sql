-- Events are forgotten by their age.
CREATE INDEX events_age ON events (created_at);
