-- What a session of an app began with: a password, a passkey, or a provider.
ALTER TABLE app_sessions ADD COLUMN way TEXT NOT NULL DEFAULT '';
