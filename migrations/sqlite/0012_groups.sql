-- Nodes that documents belong to, and every version of them.
CREATE TABLE taxonomies (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX taxonomies_owner ON taxonomies (owner, created_at DESC, id);
CREATE TABLE taxonomy_versions (
    taxonomy_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (taxonomy_id, version)
);
CREATE INDEX taxonomy_versions_namespace ON taxonomy_versions (namespace_id);

-- Ways to gather documents, and each time that one was executed. Members and pictures of an execution are files.
CREATE TABLE clusters (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX clusters_owner ON clusters (owner, created_at DESC, id);
CREATE TABLE cluster_runs (
    run_id TEXT PRIMARY KEY,
    cluster_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX cluster_runs_cluster ON cluster_runs (namespace_id, cluster_id, created_at DESC);
CREATE INDEX cluster_runs_task ON cluster_runs (task_id);
-- One execution of a cluster at a time, whoever asks.
CREATE UNIQUE INDEX cluster_runs_active ON cluster_runs (cluster_id) WHERE status IN ('pending', 'processing');
