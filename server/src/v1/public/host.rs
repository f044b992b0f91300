//! What the public pages ask of this server.

use std::time::{Duration, Instant};

use loupe_engine::stage::StageEvent;
use loupe_hosted::{
    Hit, Host, HostError, Listed, Page, Picture, SearchAnswer, SearchRequest, Seen, Step, Unlock,
    Visitor,
};
use loupe_wire::{Object, OffsetPaginationParams, RetrieverPagination, Timestamp, Value};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::{
    Execute,
    counts::Wanted,
    door::{self, Door, Proof, Unlocked},
    publishing::{self, Published},
};
use crate::{
    app::App,
    clock,
    error::ApiError,
    front, limits,
    v1::retrievers::{self, RETRIEVERS},
    web,
};

/// How long a page waits for a search whose owner gives it no time of its own, and for one whose owner does.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(20);

/// Stages that are told and not yet read; then the search waits.
const WAITING: usize = 8;

/// For what is there to be brought together, when the stages had all their time.
const GRACE: Duration = Duration::from_secs(2);

/// The server as the pages see it.
pub struct PageHost(pub App);

impl PageHost {
    async fn describe(&self, found: Published) -> Result<Page, ApiError> {
        let published = found.data.0;
        let retriever = RETRIEVERS
            .known(self.0.db(), &found.namespace_id, &published.retriever_id)
            .await?;
        let collections = published
            .retriever_metadata
            .iter()
            .flat_map(|metadata| &metadata.collections);
        let name =
            |collection: &Object| Some(collection.get("collection_name")?.as_str()?.to_owned());
        let drawn = &published.display_config.inputs;
        let has_own = |name: &String| {
            let mut drawn = drawn.iter().filter(|input| input.field_name == *name);
            drawn.any(|input| is_some(input.field_schema.default.as_ref()))
        };
        let needs_input = retriever.input_schema.iter().any(|(name, field)| {
            field.required == Some(true) && !is_some(field.default.as_ref()) && !has_own(name)
        });
        Ok(Page {
            collections: collections.filter_map(name).collect(),
            is_protected: published.password_protected || publishing::is_preview(&published),
            public_name: published.public_name,
            display_config: published.display_config,
            input_schema: retriever.input_schema.clone(),
            allows_empty_query: !needs_input,
            most_results: u32::try_from(published.rate_limit_config.max_results_per_query).ok(),
            updated_at: published.updated_at,
        })
    }
}

fn is_some(default: Option<&Value>) -> bool {
    default.is_some_and(|default| !default.is_null())
}

/// What takes longer than visitors wait is given up.
async fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, HostError> {
    match tokio::time::timeout(patience, work).await {
        Ok(done) => done.map_err(failed),
        Err(_) => Err(HostError::Timeout),
    }
}

fn failed(error: ApiError) -> HostError {
    if let Some(retry_after_s) = error.wait() {
        return HostError::Busy { retry_after_s };
    }
    // A picture that cannot be read, an example that is gone: no inputs to search with, whatever their schema says.
    match error.kind() {
        "ValidationError" | "BadRequestError" => HostError::Invalid(error.message()),
        _ => HostError::Failed(error.message()),
    }
}

/// A document as the pages see it, without its file.
pub(super) fn hit(mut document: Object) -> Hit {
    let mut side = |name: &str| {
        let side = document.remove(name)?.as_u64()?;
        u32::try_from(side).ok()
    };
    let (width, height) = (side("thumbnail_width"), side("thumbnail_height"));
    let document_id = document
        .remove("document_id")
        .and_then(|id| id.as_str().map(ToOwned::to_owned));
    let mut address = |name: &str| {
        let url = document.remove(name)?;
        url.as_str().map(ToOwned::to_owned)
    };
    let (thumbnail, original) = (address("thumbnail_url"), address("thumbnail_full_url"));
    document.remove("collection_id");
    Hit {
        document_id: document_id.unwrap_or_default(),
        score: document.remove("score").and_then(|score| score.as_f64()),
        thumbnail: thumbnail.map(|url| Picture { url, width, height }),
        fields: document,
        media: None,
        original,
    }
}

/// Tells a visitor who watches how many stages an execution has and what each leaves, until it ends; no names.
async fn tell(told: Option<mpsc::Receiver<StageEvent>>, steps: Option<&mpsc::Sender<Step>>) {
    let Some((mut told, steps)) = told.zip(steps) else {
        return;
    };
    while let Some(event) = told.recv().await {
        let statistics = event.statistics.as_ref();
        let step = Step {
            at: event.index + 1,
            of: event.total,
            found: statistics.map(|statistics| statistics.output_count),
            ms: statistics.map(|statistics| statistics.duration_ms.round() as i64),
        };
        // Who no longer reads has gone, and the search with them.
        if steps.send(step).await.is_err() {
            return;
        }
    }
}

#[async_trait::async_trait]
impl Host for PageHost {
    fn base_url(&self) -> String {
        self.0.config().address()
    }

    fn now(&self) -> Timestamp {
        self.0.clock().now()
    }

    fn asset(&self, logical_name: &str) -> Option<String> {
        web::asset(logical_name)
    }

    async fn page(&self, public_name: &str, visitor: &Visitor) -> Result<Seen, HostError> {
        let proof = Proof::cookies(&visitor.cookies);
        let seen = async {
            Ok::<_, ApiError>(match door::find(&self.0, public_name, &proof).await? {
                None => Seen::Nothing,
                Some(Door::Locked) => Seen::Locked,
                Some(Door::Open(found)) => Seen::Page(Box::new(self.describe(*found).await?)),
            })
        };
        within(PATIENCE, seen).await
    }

    async fn unlock(&self, public_name: &str, password: &str) -> Result<Unlock, HostError> {
        match door::unlock(&self.0, public_name, password).await {
            Ok(Unlocked::Cookie(cookie)) => Ok(Unlock::Cookie(cookie)),
            Ok(Unlocked::NoPassword) => Ok(Unlock::Open),
            Ok(Unlocked::Wrong) => Ok(Unlock::Wrong),
            Err(error) if error.is_not_found() => Ok(Unlock::Nothing),
            Err(error) => Err(failed(error)),
        }
    }

    async fn search(
        &self,
        public_name: &str,
        visitor: &Visitor,
        request: SearchRequest,
    ) -> Result<SearchAnswer, HostError> {
        let started = Instant::now();
        let proof = Proof::cookies(&visitor.cookies);
        let open = within(PATIENCE, super::open(&self.0, public_name, &proof)).await?;
        let own = retrievers::budget_ms(&open.retriever).map(Duration::from_millis);
        let patience = own.map_or(PATIENCE, |own| own.min(LONGEST));
        let window = OffsetPaginationParams {
            page_size: request.page_size.into(),
            page_number: request.page.into(),
        };
        let watching = visitor.steps.is_some();
        let (watch, told) = watching.then(|| mpsc::channel(WAITING)).unzip();
        let ask = Execute {
            inputs: request.inputs.clone(),
            filters: request.filters.as_ref().and_then(Value::as_object).cloned(),
            pagination: Some(RetrieverPagination::Offset(window)),
            presigned_urls: true,
            max_time_ms: u64::try_from(patience.as_millis()).ok(),
            watch,
            unnoted: request.is_beside,
            counted: match super::is_asked(&request.inputs) {
                true => request.facets.clone(),
                false => Vec::new(),
            },
            ..Default::default()
        };
        // On its own, for as long as the visitor is there: whoever does not read what is told holds no search's turn.
        let app = self.0.clone();
        let wanted = Wanted {
            inputs: request.inputs,
            fields: request.facets,
            chosen: request.filters,
        };
        let run = async move {
            let (mut answer, answered) = within(patience + GRACE, open.execute(&app, ask)).await?;
            let facets = open.facets(&app, &answer.facets, wanted).await;
            let rows = answered.answer.documents.iter();
            let (documents, written) = open.parted(rows.zip(answer.documents.drain(..)));
            Ok::<_, HostError>((answer, answered, facets, documents, written))
        };
        let run = AbortOnDropHandle::new(tokio::spawn(front::carry(run)));
        let (found, ()) = tokio::join!(run, tell(told, visitor.steps.as_ref()));
        let (answer, answered, facets, documents, written) =
            found.map_err(|error| failed(ApiError::internal(error)))??;
        let total = answer
            .pagination
            .get("total")
            .and_then(Value::as_u64)
            .unwrap_or((documents.len() + written.len()) as u64);
        Ok(SearchAnswer {
            documents,
            total: total.saturating_sub(written.len() as u64),
            written,
            facets,
            warnings: answer.warnings,
            is_partial: !answered.answer.degraded.is_empty(),
            execution_id: answer.execution_id,
            took_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    async fn item(
        &self,
        public_name: &str,
        visitor: &Visitor,
        document_id: &str,
    ) -> Result<Option<Hit>, HostError> {
        let proof = Proof::cookies(&visitor.cookies);
        let found = within(PATIENCE, async {
            let open = super::open(&self.0, public_name, &proof).await?;
            open.item(&self.0, document_id).await
        });
        let found = found.await?;
        Ok(found.map(|item| Hit {
            media: item.media,
            original: item.original,
            ..hit(item.document)
        }))
    }

    async fn named(
        &self,
        public_name: &str,
        visitor: &Visitor,
        document_ids: &[String],
    ) -> Result<Vec<Hit>, HostError> {
        let proof = Proof::cookies(&visitor.cookies);
        let found = within(PATIENCE, async {
            let open = super::open(&self.0, public_name, &proof).await?;
            open.named(&self.0, document_ids).await
        });
        Ok(found.await?.into_iter().map(hit).collect())
    }

    async fn listed(&self) -> Result<Vec<Listed>, HostError> {
        limits::page::take_map(&self.0, front::address()).map_err(failed)?;
        let names = publishing::open_names(self.0.db()).await.map_err(failed)?;
        let listed = |(public_name, updated_at)| Listed {
            public_name,
            updated_at: clock::time(updated_at),
        };
        Ok(names.into_iter().map(listed).collect())
    }
}
