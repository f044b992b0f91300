//! Running a retriever: inputs checked, plan run, answer shaped, execution recorded.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Instant,
};

use loupe_engine::{
    filter::Filter,
    stage::{
        Around as _, Keeping, Outcome, Outside, Plan, Run, Searchable, StageEvent, check_inputs,
        taxonomy::Finder,
    },
};
use loupe_wire::{
    CollectionResponse, ExecuteRetrieverResponse, Object, RetrieverModelOutput,
    RetrieverPagination, Value,
};
use serde_json::json;
use tokio::sync::mpsc;

use super::{
    around::Held,
    called::Stored,
    compile,
    ended::{Unanswered, answer},
    learned,
    ready::ready,
    record,
    recording::{self, Begun},
    signing, stage_inputs,
};
use crate::{
    app::App,
    auth::{Level, Scope},
    db::Record,
    error::{ApiError, Result, Violation},
    id,
    limits::{self, quota},
    list::parse_filter,
    v1::{
        billing::QUERY_CREDITS, collections, connections, documents, evaluations, secrets,
        tasks::name_of, taxonomies,
    },
};

/// What an execution is asked for, whoever asks: the API, a public page, an alert.
#[derive(Debug, Clone, Default)]
pub struct Execute {
    pub inputs: Object,
    pub filters: Option<Object>,
    pub pagination: Option<RetrieverPagination>,
    pub limit: Option<i64>,
    pub expand: Vec<String>,
    pub presigned_urls: bool,
    pub vectors: bool,
    /// Whether the answer tells where documents have the words of the inputs.
    pub highlights: bool,
    pub explain: bool,
    /// Is told of every stage.
    pub watch: Option<mpsc::Sender<StageEvent>>,
    /// A new one where it is absent.
    pub execution_id: Option<String>,
    /// What nobody asked is no part of the history: evaluations.
    pub unrecorded: bool,
    /// Runs as every search does and is no part of the history: what a page looks up beside what its visitor wanted.
    pub unnoted: bool,
    /// Nobody searched anew: the history has it, and figures of searches leave it out.
    pub looks_on: bool,
    /// Is not answered from memory.
    pub skip_cache: bool,
    /// The page that asks; empty for others.
    pub public_id: String,
    /// Nobody waits for it: it comes behind those who do, and is not refused.
    pub behind: bool,
    /// How long whoever asks waits, whatever the retriever's budget says.
    pub max_time_ms: Option<u64>,
    /// The fields that whoever asks is shown; all where absent.
    pub shown: Option<Arc<[String]>>,
    /// Fields whose values are counted in all that is found, in place of the facets that stages have of them.
    pub counted: Vec<String>,
}

/// Runs a stored retriever. What fails once it has begun is told in the history, too.
///
/// # Errors
/// 422 for inputs that break the schema, 400 for a cursor of another search, 503 without a model.
pub async fn execute<L: Level>(
    app: &App,
    scope: &Scope<L>,
    retriever: &RetrieverModelOutput,
    mut ask: Execute,
) -> Result<ExecuteRetrieverResponse> {
    ask.inputs = checked(retriever, &ask.inputs)?;
    execute_checked(app, scope, retriever, ask, None).await
}

/// The inputs as the retriever's schema has them.
pub(super) fn checked(retriever: &RetrieverModelOutput, sent: &Object) -> Result<Object> {
    check_inputs(&retriever.input_schema, sent).map_err(|violations| {
        let violations = violations.into_iter().map(|fault| {
            let path: Vec<&str> = fault.loc.iter().map(String::as_str).collect();
            Violation::body(&path, fault.r#type, fault.msg, fault.input)
        });
        ApiError::Validation(violations.collect())
    })
}

/// As [`execute`], with inputs that are [`checked`], and their digest where it is known already.
pub(super) async fn execute_checked<L: Level>(
    app: &App,
    scope: &Scope<L>,
    retriever: &RetrieverModelOutput,
    mut ask: Execute,
    known_by: Option<[u8; 32]>,
) -> Result<ExecuteRetrieverResponse> {
    quota::check_spend(app, &scope.caller.org_id).await?;
    let (started, created_at) = (Instant::now(), app.clock().micros());
    if !ask.unrecorded
        && let Err(error) = affordable(retriever)
    {
        let tier = limits::standing(app, &scope.caller.org_id).await?.tier;
        return Err(error.with("tier", name_of(tier)));
    }
    let unrecorded = ask.unrecorded;
    let begun = Begun {
        execution_id: ask.execution_id.take().unwrap_or_else(|| id::new("exec_")),
        namespace_id: scope.namespace_id.clone(),
        public_id: std::mem::take(&mut ask.public_id),
        query: recording::query(&retriever.input_schema, &ask.inputs),
        looks_on: ask.looks_on,
        unnoted: ask.unnoted,
        inputs: std::mem::take(&mut ask.inputs),
        known_by,
        created_at,
        started,
    };
    let ended = search(app, scope, retriever, ask, &begun).await;
    ended.map_err(|Unanswered { error, so_far }| {
        if !unrecorded {
            recording::note_failure(app, retriever, &begun, &error, *so_far);
        }
        error
    })
}

/// The credits that its owner gives each execution of a retriever have to cover what one costs, and there has to be time for it.
fn affordable(retriever: &RetrieverModelOutput) -> Result<()> {
    if budget_ms(retriever) == Some(0) {
        let message = "the retriever's max_time_ms of 0 leaves an execution no time";
        let refused = ApiError::over_limit("quota_exceeded", message);
        let refused = refused.with("resource", "time_ms").with("current", 0);
        return Err(refused.with("limit", 0));
    }
    let limits = retriever.budget_limits.as_ref();
    let Some(limit) = limits.and_then(|limits| limits.max_credits) else {
        return Ok(());
    };
    if limit >= QUERY_CREDITS {
        return Ok(());
    }
    let message = format!(
        "an execution costs {QUERY_CREDITS} credits, and the retriever's max_credits allows {limit}"
    );
    let refused = ApiError::over_limit("quota_exceeded", message);
    Err(refused
        .with("resource", "credits")
        .with("current", QUERY_CREDITS)
        .with("limit", limit))
}

fn stopping() -> ApiError {
    ApiError::unavailable("", "the server is stopping")
}

/// Runs the stages for inputs that are as they should be.
async fn search<L: Level>(
    app: &App,
    scope: &Scope<L>,
    retriever: &RetrieverModelOutput,
    mut ask: Execute,
    begun: &Begun,
) -> Result<ExecuteRetrieverResponse, Unanswered> {
    let (org_id, namespace_id) = (&scope.caller.org_id, &scope.namespace_id);
    let ready = ready(app, retriever)?;
    let plan = &ready.plan;
    let collections = collections::searched(app, namespace_id, &retriever.collection_ids).await?;
    let references = collections::searched(app, namespace_id, &ready.references).await?;
    let mut fields = ready.fields.clone();
    let filter = asked_filter(ask.filters.take(), &mut fields)?;
    let budgets = [budget_ms(retriever), ask.max_time_ms];
    // Before anything is read: a write that comes in between leaves another version behind.
    let keeping = (!ask.skip_cache).then(|| keeping(app, scope));
    let turn = match ask.behind {
        // Without one the server stops.
        true => app.turns.behind().await.ok_or_else(stopping)?,
        false => app.turns.take().await?,
    };
    let held = Arc::new(Held::new(app, org_id, turn));
    // Visitors of an app are strangers, too, whatever they are shown.
    let is_whole = ask.shown.is_none() && scope.caller.via.visitor.is_none();
    let mut run = Run {
        collections: searchable(app, &collections),
        references: searchable(app, &references),
        inputs: begun.inputs.clone(),
        filter,
        max_time_ms: budgets.into_iter().flatten().min(),
        pagination: ask.pagination.take(),
        limit: ask.limit,
        return_vectors: ask.vectors,
        explain: ask.explain,
        keeping,
        watch: ask.watch.take(),
        around: Some(held.clone()),
        shown: ask.shown.clone(),
        counted: std::mem::take(&mut ask.counted),
        ..bare(app, scope)
    };
    run.taxonomies = taxonomies::ready(app, org_id, namespace_id, &ready.taxonomies).await?;
    run.secrets = secrets_of(app, org_id, &ready.secrets).await?;
    // Evaluations measure the retriever as it is when nothing is held back.
    if !ask.unrecorded {
        run.outside.fallen = fallen(app, namespace_id, retriever, plan).await?;
    }
    if let Some(patience) = plan.learns() {
        let retriever_id = retriever.retriever_id.as_deref().unwrap_or_default();
        run.acts = learned::acts_within(app, namespace_id, retriever_id, patience).await?;
    }
    let outcome = plan.run_told(run).await;
    let mut outcome = outcome.map_err(|failure| Unanswered::new(failure, is_whole))?;
    held.leave();
    let searched = collections.iter().map(|record| &record.data.0);
    let left_out = collections::lifecycle::warnings(searched);
    outcome.warnings.extend(left_out);
    // Strangers can do nothing about it, and it runs as it always did.
    if is_whole {
        outcome.warnings.extend(ready.warnings.iter().cloned());
    }
    Ok(finish(app, scope, retriever, &ask, begun, outcome, fields).await?)
}

/// The filter of the request; its fields are told with those of the stages.
fn asked_filter(asked: Option<Object>, fields: &mut BTreeSet<String>) -> Result<Option<Filter>> {
    let Some(asked) = asked.filter(|filters| !filters.is_empty()) else {
        return Ok(None);
    };
    let filter = parse_filter(&Value::Object(asked), "filters")?;
    filter.for_each_condition(&mut |one| {
        fields.insert(one.field.clone());
    });
    Ok(Some(filter))
}

/// The answer with what the request asks for beside the documents, put into the history.
async fn finish<L: Level>(
    app: &App,
    scope: &Scope<L>,
    retriever: &RetrieverModelOutput,
    ask: &Execute,
    begun: &Begun,
    mut outcome: Outcome,
    fields: BTreeSet<String>,
) -> Result<ExecuteRetrieverResponse> {
    if ask.presigned_urls {
        let (inside, rows) = (ask.shown.is_none(), &mut outcome.documents);
        signing::presign(app, scope, retriever, inside, rows).await?;
    }
    documents::expand(app, scope, &ask.expand, &mut outcome.documents).await?;
    let milliseconds = begun.milliseconds();
    let ranks = std::mem::take(&mut outcome.learned);
    let ranking = std::mem::take(&mut outcome.ranking);
    let credits = if ask.unrecorded { 0.0 } else { QUERY_CREDITS };
    let mut response = answer(retriever, outcome, milliseconds, credits);
    response.execution_id.clone_from(&begun.execution_id);
    if ask.explain {
        let explained = super::explain(app, scope, retriever, Some(&begun.inputs)).await?;
        response.explain_plan = super::cast(&explained)?;
        response.diagnostics = Object::from_iter([("ranking".into(), Value::Object(ranking))]);
    }
    response.learned_fusion_context = told(&ranks);
    if ask.highlights {
        response.highlights = super::highlights(&begun.inputs, &response.documents);
    }
    if !ask.unrecorded && !ask.unnoted {
        let mut execution = recording::of_stages(retriever, begun, &response, milliseconds);
        execution.fields = fields.into_iter().collect();
        if !ranks.is_empty() {
            execution.data["learned_fusion"] = Value::Object(ranks);
        }
        record(app, execution);
    }
    Ok(response)
}

/// The time that its owner gives the retriever.
pub fn budget_ms(retriever: &RetrieverModelOutput) -> Option<u64> {
    let limit = retriever.budget_limits.as_ref()?.max_time_ms?;
    u64::try_from(limit).ok()
}

/// The collections as plans see them, but those that are put away, or on the way to it: their documents are no longer
/// searched.
pub(super) fn searchable(
    app: &App,
    collections: &[Arc<Record<CollectionResponse>>],
) -> Vec<Searchable> {
    let here = collections
        .iter()
        .filter(|one| !collections::lifecycle::is_away(one));
    here.map(|one| collections::searchable(app, one)).collect()
}

/// What fusion has learned, without the places that only the history needs.
fn told(ranks: &Object) -> Object {
    let mut told = ranks.clone();
    for stage in told.values_mut().filter_map(Value::as_object_mut) {
        stage.remove("ranks");
    }
    told
}

/// What searches run on that are a part of other work. They take their turn as every search does, but wait for it: they
/// were let in with the work.
pub async fn ground<L: Level>(app: &App, scope: &Scope<L>) -> Run {
    // Without one the server stops, and the search with it.
    let turn = app.turns.again().await;
    let held = turn.map(|turn| Arc::new(Held::new(app, &scope.caller.org_id, turn)));
    Run {
        around: held.map(|held| held as _),
        ..bare(app, scope)
    }
}

/// What every search of this caller has, before it is told what to look for.
fn bare<L: Level>(app: &App, scope: &Scope<L>) -> Run {
    Run {
        store: app.store().clone(),
        encoders: app.encoders(),
        namespace_id: scope.namespace_id.clone(),
        principal: scope.caller.principal().map(ToOwned::to_owned),
        collections: Vec::new(),
        references: Vec::new(),
        taxonomies: Vec::new(),
        inputs: Object::new(),
        filter: None,
        now: app.clock().now(),
        max_time_ms: None,
        pagination: None,
        limit: None,
        return_vectors: false,
        explain: false,
        secrets: HashMap::new(),
        web: Some(Arc::new(app.outbound().clone())),
        web_search: app.web_search.clone(),
        outside: outside(app, &scope.caller.org_id, &scope.namespace_id),
        keeping: None,
        watch: None,
        acts: Arc::default(),
        around: None,
        shown: None,
        counted: Vec::new(),
    }
}

/// The memory, as far as it is this caller's.
fn keeping<L: Level>(app: &App, scope: &Scope<L>) -> Keeping {
    let whose = json!([scope.caller.org_id, scope.caller.principal()]);
    Keeping {
        kept: app.kept.clone(),
        whose: whose.to_string(),
        version: app.version_of(&scope.namespace_id),
        most: None,
    }
}

/// What stages of this organization may use beyond the store and the models.
fn outside(app: &App, org_id: &str, namespace_id: &str) -> Outside {
    let code = &app.config().code;
    let stored = Stored {
        app: app.clone(),
        org_id: org_id.to_owned(),
        namespace_id: namespace_id.to_owned(),
    };
    Outside {
        extraction: Some(app.ingest().extraction.clone()),
        reverse_image: app.reverse_image.clone(),
        tables: Some(Arc::new(connections::Databases::new(app, org_id))),
        code: code.enabled.then(|| code.clone()),
        retrievers: Some(Arc::new(stored.clone())),
        files: Some(Arc::new(stored)),
        fallen: Arc::default(),
        depth: 0,
        runs: None,
    }
}

/// A retriever made ready to search inside of other work.
///
/// # Errors
/// A collection that its stages name is gone, or the database does not answer.
pub async fn finder(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    retriever: &RetrieverModelOutput,
) -> Result<Finder> {
    let plan = compile(&stage_inputs(&retriever.stages), &retriever.input_schema)?;
    let references = collections::searched(app, namespace_id, &plan.references()).await?;
    Ok(Finder {
        input_schema: retriever.input_schema.clone(),
        references: searchable(app, &references),
        secrets: secrets_of(app, org_id, &plan.secrets()).await?,
        fallen: fallen(app, namespace_id, retriever, &plan).await?,
        plan,
    })
}

/// The datasets over which the retriever fell behind, of those that its stages name.
async fn fallen(
    app: &App,
    namespace_id: &str,
    retriever: &RetrieverModelOutput,
    plan: &Plan,
) -> Result<Arc<[String]>> {
    let retriever_id = retriever.retriever_id.as_deref().unwrap_or_default();
    evaluations::fallen(app, namespace_id, retriever_id, plan.datasets()).await
}

/// The values of the secrets that the stages name. One that is gone is told by the stage that needs it.
async fn secrets_of(app: &App, org_id: &str, names: &[String]) -> Result<HashMap<String, String>> {
    let mut values = HashMap::new();
    for name in names {
        match secrets::value(app, org_id, name).await {
            Ok(value) => {
                values.insert(name.clone(), value);
            }
            Err(error) if error.kind() == "NotFoundError" => {}
            Err(error) => return Err(error),
        }
    }
    Ok(values)
}
