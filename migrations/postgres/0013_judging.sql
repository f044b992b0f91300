-- What people did with results. `kinds` holds a bit for each kind of interaction; `public_id` the page it happened on, if any.
-- The same act told twice has one `fingerprint`.
CREATE TABLE interactions (
    interaction_id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL,
    retriever_id TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    feature_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    public_id TEXT NOT NULL,
    kinds BIGINT NOT NULL,
    fingerprint TEXT NOT NULL,
    occurred_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    data JSONB NOT NULL
);
CREATE UNIQUE INDEX interactions_fingerprint ON interactions (namespace_id, fingerprint);
CREATE INDEX interactions_namespace ON interactions (namespace_id, created_at DESC, interaction_id);
CREATE INDEX interactions_retriever ON interactions (namespace_id, retriever_id, created_at DESC);
CREATE INDEX interactions_execution ON interactions (namespace_id, execution_id);
CREATE INDEX interactions_age ON interactions (created_at);

-- Pages with a password: the secret that holds it, and its Argon2 hash.
CREATE TABLE page_passwords (
    public_id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    retriever_id TEXT NOT NULL,
    secret_name TEXT NOT NULL,
    hash TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX page_passwords_secret ON page_passwords (org_id, secret_name);
CREATE INDEX page_passwords_namespace ON page_passwords (namespace_id, retriever_id);

-- Queries with the documents that are right for them. Lists tell of a dataset without its queries.
CREATE TABLE evaluation_datasets (
    dataset_id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    data JSONB NOT NULL,
    queries JSONB NOT NULL,
    UNIQUE (namespace_id, name)
);
CREATE INDEX evaluation_datasets_namespace ON evaluation_datasets (namespace_id, created_at DESC, dataset_id);

-- Runs of a retriever over a dataset. Lists tell of a run without what came of each query.
CREATE TABLE evaluations (
    evaluation_id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL,
    retriever_id TEXT NOT NULL,
    dataset_id TEXT NOT NULL,
    dataset_name TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    data JSONB NOT NULL,
    outcomes JSONB NOT NULL
);
CREATE INDEX evaluations_retriever ON evaluations (namespace_id, retriever_id, created_at DESC, evaluation_id);
CREATE INDEX evaluations_status ON evaluations (namespace_id, status);

-- Retrievers compared by what people did before.
CREATE TABLE benchmarks (
    benchmark_id TEXT PRIMARY KEY,
    namespace_id TEXT NOT NULL,
    retriever_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    data JSONB NOT NULL
);
CREATE INDEX benchmarks_namespace ON benchmarks (namespace_id, created_at DESC, benchmark_id);
