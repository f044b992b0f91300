-- Whether an alert that looks at what is written is to look again by the clock: what stands is in its baseline.
ALTER TABLE alert_states ADD COLUMN stands BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX alert_states_stands ON alert_states (stands) WHERE stands = TRUE;
