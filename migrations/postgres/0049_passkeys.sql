-- Passkeys of the people of apps: the public half of each. The other half never leaves the device that made it.
CREATE TABLE app_passkeys (
    app_id TEXT NOT NULL,
    credential_id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    sign_count BIGINT NOT NULL,
    data JSONB NOT NULL,
    PRIMARY KEY (app_id, credential_id)
);
CREATE INDEX app_passkeys_user ON app_passkeys (user_id);
