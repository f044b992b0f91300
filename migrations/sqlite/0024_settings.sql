-- What an organization has set beside what it is.
ALTER TABLE organizations ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
