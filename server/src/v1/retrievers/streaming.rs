//! An execution told stage by stage, as server-sent events.

use std::{convert::Infallible, sync::Arc};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::stream;
use loupe_engine::stage::StageEvent;
use loupe_wire::{
    ExecuteRetrieverResponse, RetrieverModelOutput, StreamStageEvent, StreamStageEventType,
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::{Execute, execute};
use crate::{
    app::App,
    auth::{Read, Scope},
    db::Record,
    error::{ApiError, Result},
    front, id,
};

/// Events that wait for a slow reader; then the stages wait, too.
const WAITING: usize = 8;

/// It runs on its own, also where nobody reads what it tells; a caller that goes away ends it.
type Running = AbortOnDropHandle<Result<ExecuteRetrieverResponse>>;

/// The execution and what it has told.
struct Telling {
    execution_id: String,
    running: Option<Running>,
    told: mpsc::Receiver<StageEvent>,
    /// Why it failed, once that was told.
    refusal: Option<ApiError>,
    /// What the execution came to, until it is told.
    end: Option<Result<ExecuteRetrieverResponse>>,
}

/// Runs a retriever and tells each stage when it begins and ends, the whole answer last.
///
/// # Errors
/// What is refused before the first stage is an answer of its own, as without a stream.
pub async fn stream(
    app: App,
    scope: Scope<Read>,
    retriever: Arc<Record<RetrieverModelOutput>>,
    mut ask: Execute,
) -> Result<Response> {
    let (watch, told) = mpsc::channel(WAITING);
    let execution_id = id::new("exec_");
    ask.watch = Some(watch);
    ask.execution_id = Some(execution_id.clone());
    let running = async move { execute(&app, &scope, &retriever, ask).await };
    let mut telling = Telling {
        execution_id,
        running: Some(AbortOnDropHandle::new(tokio::spawn(front::carry(running)))),
        told,
        refusal: None,
        end: None,
    };
    let first = telling.first().await?;
    let events = stream::unfold((Some(first), telling), |(first, mut telling)| async move {
        let event = match first {
            Some(first) => first,
            None => telling.next().await?,
        };
        let data = serde_json::to_string(&event).unwrap_or_default();
        let event = Ok::<_, Infallible>(Event::default().data(data));
        Some((event, (None, telling)))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

impl Telling {
    /// The first event, or why there was not even a stage.
    async fn first(&mut self) -> Result<StreamStageEvent> {
        match self.next().await {
            Some(event) if event.event_type != StreamStageEventType::ExecutionError => Ok(event),
            _ => Err(self.refusal.take().unwrap_or_else(|| {
                ApiError::unavailable("", "the execution ended before it began")
            })),
        }
    }

    async fn next(&mut self) -> Option<StreamStageEvent> {
        while let Some(running) = &mut self.running {
            tokio::select! {
                biased;
                Some(event) = self.told.recv() => return Some(self.stage(event)),
                end = running => {
                    self.running = None;
                    self.end = Some(end.unwrap_or_else(|error| Err(ApiError::internal(error))));
                }
            }
        }
        // What was told before the end comes before it.
        if let Ok(event) = self.told.try_recv() {
            return Some(self.stage(event));
        }
        let end = self.end.take()?;
        Some(self.ended(end))
    }

    fn stage(&self, event: StageEvent) -> StreamStageEvent {
        let event_type = match (&event.statistics, &event.error) {
            (_, Some(_)) => StreamStageEventType::StageError,
            (Some(_), None) => StreamStageEventType::StageComplete,
            (None, None) => StreamStageEventType::StageStart,
        };
        StreamStageEvent {
            event_type,
            execution_id: self.execution_id.clone(),
            stage_name: Some(event.name),
            stage_index: i64::try_from(event.index).ok(),
            total_stages: i64::try_from(event.total).ok(),
            documents: event.documents,
            statistics: event.statistics,
            error: event.error,
            ..Default::default()
        }
    }

    fn ended(&mut self, end: Result<ExecuteRetrieverResponse>) -> StreamStageEvent {
        let execution_id = self.execution_id.clone();
        match end {
            Ok(answer) => StreamStageEvent {
                event_type: StreamStageEventType::ExecutionComplete,
                execution_id,
                budget_used: answer.budget,
                documents: Arc::unwrap_or_clone(answer.documents),
                status: Some(answer.status),
                degraded: answer.degraded,
                warnings: answer.warnings,
                pagination: answer.pagination,
                facets: answer.facets,
                highlights: answer.highlights,
                diagnostics: answer.diagnostics,
                explain_plan: answer.explain_plan,
                ..Default::default()
            },
            Err(error) => {
                let told = error.message();
                self.refusal = Some(error);
                StreamStageEvent {
                    event_type: StreamStageEventType::ExecutionError,
                    execution_id,
                    error: Some(told),
                    ..Default::default()
                }
            }
        }
    }
}
