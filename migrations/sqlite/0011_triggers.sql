-- Actions that run by the clock, on events, or when a condition holds. No moment: 0.
CREATE TABLE triggers (
    trigger_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    action_type TEXT NOT NULL,
    trigger_type TEXT NOT NULL,
    status TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    next_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX triggers_namespace ON triggers (namespace_id, created_at, trigger_id);
CREATE INDEX triggers_due ON triggers (status, next_at);
CREATE INDEX triggers_waiting ON triggers (org_id, status, trigger_type);

-- Each time that one fired, and what came of it. Not over yet: ended at 0.
CREATE TABLE trigger_firings (
    task_id TEXT PRIMARY KEY,
    trigger_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    triggered_at BIGINT NOT NULL,
    status TEXT NOT NULL,
    ended_at BIGINT NOT NULL,
    error TEXT NOT NULL
);
CREATE INDEX trigger_firings_trigger ON trigger_firings (namespace_id, trigger_id, triggered_at DESC);
CREATE INDEX trigger_firings_age ON trigger_firings (triggered_at);
