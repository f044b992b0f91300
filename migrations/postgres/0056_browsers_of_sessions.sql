-- The browser that a session of an app began in, as its person reads of it; empty where nothing is known of it.
ALTER TABLE app_sessions ADD COLUMN browser TEXT NOT NULL DEFAULT '';
