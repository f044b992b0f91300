-- What watches retrievers and the server's own state. The owner is the namespace, or the organization of those that watch
-- several namespaces.
CREATE TABLE alerts (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data JSONB NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX alerts_owner ON alerts (owner, created_at DESC, id);

-- Whether its condition held the last time, when it fired last (never: 0), and what it measures against.
CREATE TABLE alert_states (
    alert_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    holds BOOLEAN NOT NULL,
    fired_at BIGINT NOT NULL,
    baseline JSONB NOT NULL
);
CREATE INDEX alert_states_owner ON alert_states (owner);

-- Each look of an alert. One cause is looked at once, however many processes try.
CREATE TABLE alert_executions (
    execution_id TEXT PRIMARY KEY,
    alert_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    cause TEXT NOT NULL,
    triggered BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    data JSONB NOT NULL,
    UNIQUE (alert_id, cause)
);
CREATE INDEX alert_executions_alert ON alert_executions (owner, alert_id, created_at DESC);
CREATE INDEX alert_executions_owner ON alert_executions (owner, created_at DESC);
CREATE INDEX alert_executions_age ON alert_executions (created_at);
