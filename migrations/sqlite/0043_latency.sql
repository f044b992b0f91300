-- How long the answers of an operation took, by key and hour: how many took from `micros` on, up to the next step.
CREATE TABLE key_latency (
    org_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    micros BIGINT NOT NULL,
    answers BIGINT NOT NULL,
    PRIMARY KEY (org_id, key_id, hour, method, path, micros)
);
CREATE INDEX key_latency_hour ON key_latency (hour);
