//! Alerts: a question that is asked again and again, of a retriever or of the server's own state, and people who are told
//! when its answer calls for them. One cause is told once, over any number of processes.

mod again;
mod changing;
mod channels;
mod checking;
mod conditions;
mod delivery;
mod evaluation;
mod executions;
mod failing;
mod ingest;
mod naming;
mod returning;
mod routes;
mod selecting;
mod sentence;
mod store;
mod timed;

use loupe_wire::{
    AlertExecutionMode, AlertListStats, AlertResponse, AlertSource, AuditAction,
    ChannelTestResponse, CreateAlertRequest, ListAlertsResponse, NamespaceOperation,
    PatchAlertRequest, ResourceType, TriggerOn, Value,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use delivery::DELIVER;
pub use executions::{evaluate, exists, is_off};
pub use ingest::{GATHERED, INGEST, dispatch};
pub use returning::{Kept, hold_states, hold_watched, kept};
pub use routes::router;
pub use selecting::{forget_namespace, forget_retriever};
pub use store::ALERTS;
pub use timed::{CLOCK, tick};

use self::{changing::update, checking::Asked};
use super::{
    audit::{self, Change},
    events::{self, Event, Reader},
};
use crate::{
    app::App,
    auth::{Caller, Level, Org, Scope, Write},
    clock,
    db::{Record, Tx},
    error::{ApiError, Result},
    id,
    jobs::Claim,
    list::{ListParams, Mark, Page},
};

/// What reads the change feed for alerts.
const READER: Reader = Reader("alerts");

/// Alerts of one namespace, and of one organization over its namespaces.
const MOST: i64 = 2000;

/// Days that looks are kept which fired, and which did not.
const KEPT_DAYS: i64 = 90;
const LOOKED_DAYS: i64 = 2;

/// An alert as the database has it: what its channels are set to lies encrypted beside it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Alert {
    org_id: String,
    pub alert: AlertResponse,
    /// One for each channel.
    sealed: Vec<String>,
}

impl Alert {
    fn id(&self) -> &str {
        self.alert.alert_id.as_deref().unwrap_or_default()
    }

    /// What it is evaluated with: every request names it, or a default took its place.
    fn source(&self) -> AlertSource {
        self.alert.source.unwrap_or_default()
    }

    fn mode(&self) -> AlertExecutionMode {
        self.alert
            .execution_mode
            .unwrap_or(AlertExecutionMode::OnIngest)
    }
}

/// What the ids of alerts begin with: who may do something to all of these may do it to every one.
const ANY: &str = "alt_";

/// Whose alerts: a namespace's, or the organization's over several namespaces.
#[derive(Debug, Clone)]
struct Place {
    caller: Caller,
    namespace_id: Option<String>,
}

impl<L: Level> From<&Scope<L>> for Place {
    fn from(scope: &Scope<L>) -> Self {
        Self {
            caller: scope.caller.clone(),
            namespace_id: Some(scope.namespace_id.clone()),
        }
    }
}

impl<L: Level> From<&Org<L>> for Place {
    fn from(org: &Org<L>) -> Self {
        Self::over(&org.caller)
    }
}

impl Place {
    /// The organization of a caller. A scope of the namespace that it is in covers nothing there.
    fn over(caller: &Caller) -> Self {
        let mut caller = caller.clone();
        caller.within = None;
        Self {
            caller,
            namespace_id: None,
        }
    }

    fn owner(&self) -> &str {
        self.namespace_id.as_deref().unwrap_or(&self.caller.org_id)
    }

    fn allow(&self, id: &str, operation: NamespaceOperation) -> Result<()> {
        self.caller.allow(ResourceType::Alert, id, operation)
    }

    async fn find(
        &self,
        app: &App,
        identifier: &str,
        operation: NamespaceOperation,
    ) -> Result<Record<Alert>> {
        let record = ALERTS.find(app.db(), self.owner(), identifier).await?;
        self.allow(&record.id, operation)?;
        Ok(record)
    }
}

/// Tells the change feed.
async fn tell(
    tx: &mut Tx,
    alert: &Alert,
    kind: &'static str,
    mut payload: Value,
    now: i64,
) -> Result<()> {
    payload["alert_id"] = alert.id().into();
    payload["name"] = alert.alert.name.as_str().into();
    let namespace_id = alert.alert.namespace_id.as_deref();
    events::push(
        tx,
        Event::new(&alert.org_id, namespace_id, kind, payload),
        now,
    )
    .await
}

/// Makes an alert of a namespace.
///
/// # Errors
/// 403 for who may not, the 422 list for what cannot be told or looked for, 409 for a name that is taken and for too many.
pub async fn create_in(
    app: &App,
    scope: &Scope<Write>,
    request: CreateAlertRequest,
) -> Result<AlertResponse> {
    create(app, scope.into(), request).await
}

/// Changes an alert of a namespace.
///
/// # Errors
/// As [`create_in`]; 404 for one that is not there.
pub async fn update_in(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: PatchAlertRequest,
) -> Result<AlertResponse> {
    update(app, scope.into(), identifier, request).await
}

/// The alerts of a namespace, with their secrets masked.
///
/// # Errors
/// The database does not answer.
pub async fn all_in(app: &App, scope: &Scope<Write>) -> Result<Vec<AlertResponse>> {
    let all = ALERTS.all(app.db(), &scope.namespace_id).await?;
    Ok(all.into_iter().map(|record| record.data.0.alert).collect())
}

async fn create(app: &App, place: Place, request: CreateAlertRequest) -> Result<AlertResponse> {
    let alert_id = id::new(ANY);
    place.allow(&alert_id, NamespaceOperation::WriteData)?;
    let now = app.clock().micros();
    let source = request.source.unwrap_or_else(|| default_source(&request));
    let mode = request.execution_mode.unwrap_or(match source {
        AlertSource::Retriever => AlertExecutionMode::OnIngest,
        AlertSource::System => AlertExecutionMode::Scheduled,
    });
    let trigger_on = (source == AlertSource::Retriever)
        .then(|| request.trigger_on.unwrap_or(TriggerOn::Results));
    let mut alert = AlertResponse {
        alert_id: Some(alert_id.clone()),
        namespace_id: place.namespace_id.clone(),
        name: request.name,
        description: request.description,
        source: Some(source),
        retriever_id: request.retriever_id,
        trigger_on,
        min_count: request
            .min_count
            .or((trigger_on == Some(TriggerOn::Results)).then_some(1)),
        threshold: request.threshold,
        inputs: request.inputs.unwrap_or_default(),
        cooldown_seconds: request.cooldown_seconds,
        renotify_interval_seconds: request.renotify_interval_seconds,
        last_fired_at: None,
        snoozed_until: None,
        consecutive_failures: 0,
        last_execution_error: None,
        system_condition: request.system_condition,
        namespace_selector: request.namespace_selector,
        notification_config: request.notification_config,
        enabled: request.enabled,
        created_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        metadata: request.metadata.unwrap_or_default(),
        execution_mode: Some(mode),
    };
    let retriever = checking::check(app, &place, &alert, None).await?;
    naming::check_template(&alert.notification_config)?;
    let org_id = place.caller.org_id.clone();
    let sent = &mut alert.notification_config.channels;
    let sealed = channels::seal(app, (&org_id, &alert_id), sent, None)?;
    naming::check(app, &place, sent, &[]).await?;
    let kept = Alert {
        org_id,
        alert,
        sealed,
    };
    let shown = kept.alert.clone();
    app.db()
        .write(move |tx| Box::pin(async move { insert(tx, &place, &kept, retriever, now).await }))
        .await?;
    Ok(shown)
}

/// What a request that names no source is about.
fn default_source(request: &CreateAlertRequest) -> AlertSource {
    match (&request.retriever_id, &request.system_condition) {
        (None, Some(_)) => AlertSource::System,
        _ => AlertSource::Retriever,
    }
}

async fn insert(
    tx: &mut Tx,
    place: &Place,
    alert: &Alert,
    retriever: Option<Asked>,
    now: i64,
) -> Result<()> {
    if ALERTS.count_in(tx, place.owner()).await? >= MOST {
        let message = format!("there are at most {MOST} alerts in one place: remove one first");
        return Err(ApiError::conflict("", message).with("limit", MOST));
    }
    let selector = alert.alert.namespace_selector.as_ref();
    selecting::hold(tx, place, selector, retriever.as_ref()).await?;
    let (id, name) = (alert.id(), &alert.alert.name);
    ALERTS
        .insert(tx, place.owner(), id, name, now, alert)
        .await?;
    READER.ensure(tx, &alert.org_id).await?;
    tell(tx, alert, "alert.created", json!({}), now).await?;
    let change = Change {
        action: AuditAction::AlertCreated,
        resource: (ResourceType::Alert, id),
        changes: json!({ "name": name }),
    };
    audit::record(tx, &place.caller, change, now).await
}

async fn get(app: &App, place: &Place, identifier: &str) -> Result<AlertResponse> {
    let operation = NamespaceOperation::ReadData;
    let record = place.find(app, identifier, operation).await?;
    show(app, place, record).await
}

async fn show(app: &App, place: &Place, record: Record<Alert>) -> Result<AlertResponse> {
    let state = store::state(app.db(), place.owner(), &record.id).await?;
    Ok(shown(record, Some(&state)))
}

fn shown(record: Record<Alert>, state: Option<&store::State>) -> AlertResponse {
    let mut alert = record.data.0.alert;
    let fired_at = state.map_or(0, |state| state.fired_at);
    alert.last_fired_at = (fired_at > 0).then(|| clock::time(fired_at));
    if let Some(state) = state.filter(|state| state.failures > 0) {
        alert.consecutive_failures = state.failures;
        alert.last_execution_error = Some(state.error.clone());
    }
    alert
}

async fn list(app: &App, place: &Place, params: &ListParams) -> Result<ListAlertsResponse> {
    let mut records = ALERTS.all(app.db(), place.owner()).await?;
    let kind = ResourceType::Alert;
    let covered = |id: &str| place.caller.covers(kind, id, NamespaceOperation::ReadData);
    records.retain(|record| covered(&record.id));
    let states = store::states(app.db(), place.owner()).await?;
    let alerts: Vec<(AlertResponse, Mark)> = records
        .into_iter()
        .map(|record| {
            let mark = (record.created_at, record.id.clone());
            let state = states.get(&record.id);
            (shown(record, state), mark)
        })
        .collect();
    let stats = stats(alerts.iter().map(|(alert, _)| alert));
    let page = Page::from_marked(alerts, params)?;
    Ok(ListAlertsResponse {
        total_count: page.total_count(params),
        results: page.results,
        pagination: page.pagination,
        stats: Some(stats),
        ..Default::default()
    })
}

fn stats<'a>(alerts: impl Iterator<Item = &'a AlertResponse>) -> AlertListStats {
    let mut stats = AlertListStats::default();
    for alert in alerts {
        stats.total_alerts += 1;
        if alert.enabled {
            stats.enabled_alerts += 1;
        } else {
            stats.disabled_alerts += 1;
        }
        let mut kinds: Vec<&str> = alert
            .notification_config
            .channels
            .iter()
            .map(|channel| channel.channel_type.as_str())
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            *stats
                .alerts_by_channel_type
                .entry(kind.to_owned())
                .or_insert(0) += 1;
        }
    }
    stats
}

/// Sends a test through every channel, whatever the alert finds.
async fn test(app: &App, place: &Place, identifier: &str) -> Result<ChannelTestResponse> {
    let operation = NamespaceOperation::WriteData;
    let record = place.find(app, identifier, operation).await?;
    delivery::test(app, &record.data.0).await
}

async fn delete(app: &App, place: Place, identifier: &str) -> Result<()> {
    let operation = NamespaceOperation::DeleteData;
    let record = place.find(app, identifier, operation).await?;
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                ALERTS.delete(tx, place.owner(), &record.id).await?;
                store::forget(tx, place.owner(), &record.id).await?;
                tell(tx, &record.data.0, "alert.deleted", json!({}), now).await?;
                let change = Change {
                    action: AuditAction::AlertDeleted,
                    resource: (ResourceType::Alert, &record.id),
                    changes: json!({ "name": record.name }),
                };
                audit::record(tx, &place.caller, change, now).await
            })
        })
        .await
}

/// Work of the queue.
///
/// # Errors
/// What it ends in; the queue tries again what may pass.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    match claim.kind.as_str() {
        DELIVER => delivery::run(app, claim).await,
        CLOCK => timed::run(app, claim).await,
        _ => ingest::run(app, claim).await,
    }
}

/// Whether work of this kind is for alerts.
pub fn runs(kind: &str) -> bool {
    [DELIVER, CLOCK, INGEST, GATHERED].contains(&kind)
}

/// Ends work that cannot be done.
///
/// # Errors
/// The database does not answer.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    match claim.kind.as_str() {
        DELIVER => delivery::give_up(app, claim, reason).await,
        _ => Ok(()),
    }
}

/// Removes looks that were kept long enough.
///
/// # Errors
/// The database does not answer.
pub async fn sweep(app: &App) -> Result<()> {
    let now = app.clock().micros();
    let before = |days: i64| now - days * 86_400_000_000;
    let (looked, fired) = (before(LOOKED_DAYS), before(KEPT_DAYS));
    app.db()
        .write(move |tx| Box::pin(async move { store::sweep(tx, looked, fired).await }))
        .await?;
    Ok(())
}
