//! Interactions: what people did with results. They feed figures of pages, datasets of evaluations and learned fusion, so
//! each says, where it can, which execution or query it belongs to.

mod routes;
mod store;

use loupe_wire::{
    BulkInteractionItemResult, BulkInteractionsResponse, InteractionResponse, InteractionType,
    ListInteractionsRequest, ListInteractionsResponse, NamespaceOperation, Object, ResourceType,
    SearchInteraction, Value, reading,
};
use serde_json::json;
use sha2::{Digest, Sha256};

pub use routes::router;
pub use store::{Wanted, list as stored};

use super::{
    audit::{self, PartOf},
    retrievers::RETRIEVERS,
};
use crate::{
    app::App,
    auth::{Delete, Level, Read, Scope, Write},
    clock,
    db::check_kept,
    error::{ApiError, Result, Violation},
    id,
    list::{ListParams, ListQuery, Page, Sieve, Walk},
};

/// Days that an interaction is kept: a dataset may look back a year.
const KEPT_DAYS: i64 = 400;

/// Bytes of `metadata` and of `query_snapshot`, as JSON.
const LONGEST: usize = 16 << 10;

const UNLINKED: &str =
    "neither execution_id nor query_snapshot: it tells of no query, so nothing is learned from it";

/// Where an interaction comes from.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub namespace_id: String,
    /// The page, if it happened on one.
    pub public_id: String,
}

/// Every kind.
pub const KINDS: [InteractionType; 22] = {
    use InteractionType as Kind;
    [
        Kind::Impression,
        Kind::View,
        Kind::Click,
        Kind::Dwell,
        Kind::PositiveFeedback,
        Kind::NegativeFeedback,
        Kind::Purchase,
        Kind::AddToCart,
        Kind::Wishlist,
        Kind::LongView,
        Kind::Share,
        Kind::Bookmark,
        Kind::QueryRefinement,
        Kind::ZeroResults,
        Kind::FilterToggle,
        Kind::Skip,
        Kind::ReturnToResults,
        Kind::Play,
        Kind::Download,
        Kind::Save,
        Kind::AddToProject,
        Kind::Rating,
    ]
};

/// The bits of all kinds.
pub const ANY: i64 = (1 << KINDS.len()) - 1;

/// The bit of a kind.
pub fn bit(kind: InteractionType) -> i64 {
    1 << (kind as u32)
}

fn allow<L: Level>(
    scope: &Scope<L>,
    retriever_id: Option<&str>,
    operation: NamespaceOperation,
) -> Result<()> {
    let id = retriever_id.filter(|id| !id.is_empty()).unwrap_or("*");
    scope.caller.allow(ResourceType::Retriever, id, operation)
}

/// Records what happened to one result.
pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    mut interaction: SearchInteraction,
) -> Result<InteractionResponse> {
    resolve(app, scope, &mut interaction).await?;
    let mut recorded = record(app, &origin(scope), vec![interaction]).await?;
    recorded
        .pop()
        .ok_or_else(|| ApiError::internal("nothing was recorded"))
}

/// Records many; each is done or refused for itself.
pub async fn create_all(
    app: &App,
    scope: &Scope<Write>,
    interactions: Vec<SearchInteraction>,
) -> Result<BulkInteractionsResponse> {
    let (mut good, mut places, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for (place, mut interaction) in interactions.into_iter().enumerate() {
        let checked = match resolve(app, scope, &mut interaction).await {
            Ok(()) => check(&interaction),
            refused => refused,
        };
        match checked {
            Ok(()) => {
                good.push(interaction);
                places.push(place);
            }
            Err(error) if error.is_callers() => {
                errors.push(format!("interaction {place}: {}", error.message()));
            }
            Err(error) => return Err(error),
        }
    }
    let recorded = record(app, &origin(scope), good).await?;
    Ok(told(&recorded, &places, errors))
}

/// The answer to a bulk of which these were recorded, from these places.
pub fn told(
    recorded: &[InteractionResponse],
    places: &[usize],
    errors: Vec<String>,
) -> BulkInteractionsResponse {
    let status = |one: &InteractionResponse| match one.deduplicated {
        true => "deduplicated",
        false => "created",
    };
    let results = recorded
        .iter()
        .zip(places)
        .map(|(one, place)| BulkInteractionItemResult {
            index: i64::try_from(*place).unwrap_or(i64::MAX),
            interaction_id: one.interaction_id.clone().unwrap_or_default(),
            status: status(one).into(),
        });
    let created = recorded.iter().filter(|one| !one.deduplicated).count();
    BulkInteractionsResponse {
        created: i64::try_from(created).unwrap_or(i64::MAX),
        failed: i64::try_from(errors.len()).unwrap_or(i64::MAX),
        errors,
        results: results.collect(),
    }
}

fn origin<L>(scope: &Scope<L>) -> Origin {
    Origin {
        namespace_id: scope.namespace_id.clone(),
        public_id: String::new(),
    }
}

/// The retriever's id in place of its name, if the caller may use it.
async fn resolve(
    app: &App,
    scope: &Scope<Write>,
    interaction: &mut SearchInteraction,
) -> Result<()> {
    if let Some(name) = interaction.retriever_id.take().filter(|id| !id.is_empty()) {
        let known = RETRIEVERS
            .known(app.db(), &scope.namespace_id, &name)
            .await?;
        interaction.retriever_id = Some(known.id.clone());
    }
    let operation = NamespaceOperation::ExecuteRetriever;
    allow(scope, interaction.retriever_id.as_deref(), operation)
}

/// Limits that the declared ones do not say.
fn check(interaction: &SearchInteraction) -> Result<()> {
    check_kept(interaction)?;
    for (member, value) in [
        ("metadata", &interaction.metadata),
        ("query_snapshot", &interaction.query_snapshot),
    ] {
        let size = value.as_ref().map_or(0, |value| {
            serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
        });
        if size > LONGEST {
            let msg = format!("must be at most {LONGEST} bytes of JSON");
            return Err(Violation::body(&[member], "too_long", msg, Value::Null).into());
        }
    }
    Ok(())
}

/// Keeps interactions whose retriever is known, in one transaction.
///
/// # Errors
/// The 422 list for one that is too large.
pub async fn record(
    app: &App,
    origin: &Origin,
    interactions: Vec<SearchInteraction>,
) -> Result<Vec<InteractionResponse>> {
    if interactions.is_empty() {
        return Ok(Vec::new());
    }
    interactions.iter().try_for_each(check)?;
    let now = app.clock().micros();
    let entry = |one| entry(origin, one, now);
    let entries: Vec<store::Entry> = interactions.into_iter().map(entry).collect();
    let namespace_id = origin.namespace_id.clone();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut kept = Vec::with_capacity(entries.len());
                for entry in entries {
                    kept.push(store::insert(tx, &namespace_id, entry, now).await?);
                }
                Ok(kept)
            })
        })
        .await
}

fn entry(origin: &Origin, sent: SearchInteraction, now: i64) -> store::Entry {
    let interaction_id = id::new("ixn_");
    let fingerprint = fingerprint(origin, &sent, &interaction_id);
    let mut kinds = sent.interaction_type.clone();
    kinds.sort_by_key(|kind| bit(*kind));
    kinds.dedup();
    // A clock that goes ahead of this one is not believed.
    let occurred = sent
        .occurred_at
        .map_or(now, |at| at.timestamp_micros().min(now));
    let linked = sent.execution_id.is_some() || sent.query_snapshot.is_some();
    store::Entry {
        public_id: origin.public_id.clone(),
        kinds: kinds.iter().fold(0, |bits, kind| bits | bit(*kind)),
        fingerprint,
        occurred_at: occurred,
        interaction: InteractionResponse {
            feature_id: sent.feature_id,
            interaction_type: kinds,
            position: sent.position,
            metadata: sent.metadata,
            user_id: sent.user_id,
            session_id: sent.session_id,
            execution_id: sent.execution_id,
            retriever_id: sent.retriever_id,
            query_snapshot: sent.query_snapshot,
            document_score: sent.document_score,
            result_set_size: sent.result_set_size,
            feature_uri: sent.feature_uri,
            occurred_at: Some(clock::time(occurred)),
            interaction_id: Some(interaction_id),
            deduplicated: false,
            timestamp: Some(clock::time(now).to_rfc3339()),
            warning: (!linked).then(|| UNLINKED.to_owned()),
        },
    }
}

/// One act of one person in one execution has one fingerprint, however often it is told: a beacon may be sent twice. Where
/// it is not said who or in which execution, every telling is an act of its own.
fn fingerprint(origin: &Origin, sent: &SearchInteraction, interaction_id: &str) -> String {
    let someone = sent.session_id.is_some() || sent.user_id.is_some();
    if !someone || sent.execution_id.is_none() {
        return interaction_id.to_owned();
    }
    let kinds = sent
        .interaction_type
        .iter()
        .fold(0, |bits, kind| bits | bit(*kind));
    let told = serde_json::json!([
        origin.public_id,
        sent.retriever_id,
        sent.execution_id,
        sent.session_id,
        sent.user_id,
        sent.feature_id,
        kinds,
        sent.position,
        sent.occurred_at,
    ]);
    hex::encode(&Sha256::digest(told.to_string())[..16])
}

/// One interaction.
pub async fn get(app: &App, scope: &Scope<Read>, id: &str) -> Result<InteractionResponse> {
    find(app, scope, id, NamespaceOperation::ReadData).await
}

async fn find<L: Level>(
    app: &App,
    scope: &Scope<L>,
    id: &str,
    operation: NamespaceOperation,
) -> Result<InteractionResponse> {
    let found = store::find(app.db(), &scope.namespace_id, id).await?;
    let found = found.ok_or_else(|| ApiError::not_found("interaction", id))?;
    allow(scope, found.retriever_id.as_deref(), operation)?;
    Ok(found)
}

/// Forgets an interaction.
pub async fn delete(app: &App, scope: &Scope<Delete>, id: &str) -> Result<()> {
    let found = find(app, scope, id, NamespaceOperation::DeleteData).await?;
    let (namespace_id, id) = (scope.namespace_id.clone(), id.to_owned());
    let (caller, now) = (scope.caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !store::delete(tx, &namespace_id, &id).await? {
                    return Err(ApiError::not_found("interaction", &id));
                }
                let whole = match found.retriever_id.as_deref() {
                    Some(retriever) => PartOf::Retriever(retriever),
                    None => PartOf::Namespace(&namespace_id),
                };
                let changes = json!({"change": "interaction_deleted", "interaction_id": id});
                audit::record_part(tx, &caller, whole, changes, now).await
            })
        })
        .await
}

/// Newest first, unless another order is asked for.
pub async fn list(
    app: &App,
    scope: &Scope<Read>,
    query: ListQuery,
    request: ListInteractionsRequest,
) -> Result<ListInteractionsResponse> {
    let params = ListParams::new(query, &request)?;
    let mut wanted = wanted(app, scope, request).await?;
    let page = if params.is_plain() {
        let window = params.window();
        let rows = store::list(app.db(), &scope.namespace_id, &wanted, window).await?;
        let total = match params.include_total {
            true => Some(store::count(app.db(), &scope.namespace_id, &wanted).await?),
            false => None,
        };
        Page::from_window(rows, &params, total)
    } else {
        let (db, namespace_id) = (app.db(), &scope.namespace_id);
        let walk = Walk::blind(&params);
        wanted.narrow(&walk);
        let mut sieve = Sieve::along(&params, &walk)?;
        while let Some(mark) = sieve.goes_on() {
            sieve.take(store::piece(db, namespace_id, &wanted, &walk, mark).await?)?;
        }
        sieve.page()
    };
    Ok(ListInteractionsResponse {
        items: page.results.clone(),
        results: page.results,
        pagination: page.pagination,
        ..Default::default()
    })
}

async fn wanted(
    app: &App,
    scope: &Scope<Read>,
    request: ListInteractionsRequest,
) -> Result<Wanted> {
    let mut retriever_id = request.retriever_id.unwrap_or_default();
    if !retriever_id.is_empty() {
        // A retriever that is gone may have left interactions; a name that nothing has matches none.
        match RETRIEVERS
            .known(app.db(), &scope.namespace_id, &retriever_id)
            .await
        {
            Ok(known) => retriever_id.clone_from(&known.id),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    allow(scope, Some(&retriever_id), NamespaceOperation::ReadData)?;
    let kinds = match request.interaction_type.filter(|kind| !kind.is_empty()) {
        Some(kind) => bit(kind_named(kind)?),
        None => 0,
    };
    Ok(Wanted {
        retriever_id,
        execution_id: request.execution_id.unwrap_or_default(),
        feature_id: request.feature_id.unwrap_or_default(),
        user_id: request.user_id.unwrap_or_default(),
        session_id: request.session_id.unwrap_or_default(),
        kinds,
    })
}

fn kind_named(name: String) -> Result<InteractionType> {
    let value = Value::String(name);
    reading::from_value(&value).map_err(|_| {
        let msg = "this is no type of interaction";
        Violation::body(&["interaction_type"], "enum", msg, value).into()
    })
}

/// The inputs that an interaction's query had, where it says: the snapshot itself, or its member `inputs`.
pub fn inputs_of(snapshot: &Object) -> Object {
    match snapshot.get("inputs").and_then(Value::as_object) {
        Some(inputs) => inputs.clone(),
        None => snapshot.clone(),
    }
}

/// Forgets what is too old to be of use.
///
/// # Errors
/// The database fails.
pub async fn sweep(app: &App) -> Result<()> {
    let before = app.clock().micros() - KEPT_DAYS * 86_400_000_000;
    app.db()
        .write(move |tx| Box::pin(async move { store::sweep(tx, before).await }))
        .await?;
    Ok(())
}
