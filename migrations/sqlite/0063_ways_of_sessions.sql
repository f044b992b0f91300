-- What a session of an app began with: a password, a passkey, or a provider.
ALTER TABLE app_sessions ADD COLUMN way TEXT NOT NULL DEFAULT '';
-- The app that had a name before: whoever comes by it is led there.
ALTER TABLE app_slugs ADD COLUMN app_id TEXT NOT NULL DEFAULT '';
