-- What an organization has set beside what it is.
ALTER TABLE organizations ADD COLUMN settings JSONB NOT NULL DEFAULT '{}';
