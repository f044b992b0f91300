//! What an execution came to: an answer, or why there is none.

use std::sync::Arc;

use loupe_engine::{
    embed::EmbedError,
    stage::{Failure, Outcome, RunError},
};
use loupe_wire::{ExecuteRetrieverResponse, RetrieverModelOutput};
use serde_json::json;

use crate::error::ApiError;

/// Why there is no answer, and what the stages told until then.
pub(super) struct Unanswered {
    pub error: ApiError,
    pub so_far: Box<Outcome>,
}

impl From<ApiError> for Unanswered {
    fn from(error: ApiError) -> Self {
        let so_far = Box::default();
        Self { error, so_far }
    }
}

impl Unanswered {
    /// Of stages that failed. What a service said, and where it is, is the owner's to know: whoever is shown a part of the documents is
    /// told that it is away, and the history has the rest.
    pub fn new(failure: Failure, is_whole: bool) -> Self {
        let Failure { error, so_far } = failure;
        let error = match is_whole {
            true => error,
            false => for_strangers(error),
        };
        let error = run_error(error);
        Self { error, so_far }
    }
}

fn for_strangers(error: RunError) -> RunError {
    let told = || "a service that this search asks is not available".to_owned();
    match error {
        RunError::Away(_) => RunError::Away(told()),
        RunError::Embed(EmbedError::Unavailable(_)) => EmbedError::Unavailable(told()).into(),
        RunError::Embed(EmbedError::Refused(_)) => EmbedError::Refused(told()).into(),
        RunError::Embed(EmbedError::Failed(_)) => EmbedError::Failed(told()).into(),
        error => error,
    }
}

/// What a caller is told of a search that failed.
pub fn run_error(error: RunError) -> ApiError {
    match error {
        RunError::Invalid(message) => ApiError::bad_request("", message),
        RunError::Away(message) => ApiError::unavailable("", message),
        RunError::Cursor(message) => ApiError::bad_request("cursor_invalid", message),
        RunError::Limited {
            what,
            message,
            retry_after,
        } => super::used_up(what, message, retry_after),
        RunError::Embed(error) => error.into(),
        RunError::Store(error) => error.into(),
    }
}

/// What the stages came to, as the interface tells it.
pub(super) fn answer(
    retriever: &RetrieverModelOutput,
    outcome: Outcome,
    milliseconds: f64,
    credits: f64,
) -> ExecuteRetrieverResponse {
    let mut statistics = outcome.statistics;
    statistics.total_time_ms = milliseconds;
    statistics.credits_used = credits;
    let completeness = if outcome.timed_out {
        "partial"
    } else {
        "complete"
    };
    let status = if outcome.timed_out {
        "completed_partial"
    } else {
        "completed"
    };
    ExecuteRetrieverResponse {
        retriever_id: retriever.retriever_id.clone().unwrap_or_default(),
        status: status.into(),
        degraded: outcome.degraded,
        limits: outcome.limits,
        enrichment_skipped: !outcome.skipped.is_empty(),
        enrichment_skipped_stages: outcome.skipped,
        enrichment_skip_reason: outcome.skip_reason,
        documents: Arc::new(outcome.documents),
        pagination: outcome.pagination,
        stage_statistics: Some(statistics),
        facets: outcome.facets,
        budget: json!({"time_ms": milliseconds, "credits": credits})
            .as_object()
            .cloned()
            .unwrap_or_default(),
        completeness: [("results".to_owned(), completeness.to_owned())]
            .into_iter()
            .collect(),
        warnings: outcome.warnings,
        interpretation: outcome.interpretation,
        ..Default::default()
    }
}
