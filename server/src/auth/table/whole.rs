//! What is about a whole namespace: events, tasks, batches, triggers, evaluations.

use super::{Access, DELETE, END_USERS, READ, Row, Scoped, WRITE};

pub(super) const ROWS: &[Row] = rows! {
    Whole {
        "POST /v1/retrievers/executions/list" READ,
        "GET /v1/retrievers/executions/{execution_id}" READ,
        "GET /v1/events" READ => END_USERS,
        "GET /v1/tasks" READ,
        "POST /v1/tasks/list" READ,
        "DELETE /v1/tasks/{task_id}" DELETE,
        "POST /v1/batches/list" READ,
        "GET /v1/batches/queue" READ,
        "GET /v1/batches/{batch_id}" READ,
        "POST /v1/batches/{batch_id}/cancel" WRITE,
        "POST /v1/inference" READ,
        "GET /v1/evaluations" READ,
        "POST /v1/evaluations/score" READ,
        "GET /v1/retrievers/evaluations/datasets" READ,
        "POST /v1/retrievers/evaluations/datasets" WRITE,
        "GET /v1/retrievers/evaluations/datasets/{dataset_identifier}" READ,
        "GET /v1/triggers" READ,
        "POST /v1/triggers" WRITE,
        "POST /v1/triggers/list" READ,
        "GET /v1/triggers/{trigger_id}" READ,
        "PATCH /v1/triggers/{trigger_id}" WRITE,
        "DELETE /v1/triggers/{trigger_id}" DELETE,
        "POST /v1/triggers/{trigger_id}/execute" WRITE,
        "POST /v1/triggers/{trigger_id}/pause" WRITE,
        "POST /v1/triggers/{trigger_id}/resume" WRITE,
        "GET /v1/triggers/{trigger_id}/history" READ,
        "POST /v1/clusters/triggers" WRITE,
        "POST /v1/clusters/triggers/list" READ,
        "GET /v1/clusters/triggers/{trigger_id}" READ,
        "PATCH /v1/clusters/triggers/{trigger_id}" WRITE,
        "DELETE /v1/clusters/triggers/{trigger_id}" DELETE,
        "POST /v1/clusters/triggers/{trigger_id}/pause" WRITE,
        "POST /v1/clusters/triggers/{trigger_id}/resume" WRITE,
        "POST /v1/clusters/triggers/{trigger_id}/history" READ,
        "GET /v1/retrievers/publish/stats" READ,
        "GET /v1/retrievers/published" READ,
    }
};
