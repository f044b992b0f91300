-- What led to a task, to a change, or to what a trigger has counted: triggers and alerts that followed each other, so that none acts
-- on what it did itself.
ALTER TABLE tasks ADD COLUMN cause TEXT;
ALTER TABLE events ADD COLUMN cause TEXT;
ALTER TABLE triggers ADD COLUMN cause TEXT;
