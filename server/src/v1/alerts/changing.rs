//! Changes of an alert.

use loupe_wire::{
    AlertNotificationConfig, AlertResponse, NamespaceOperation, Object, PatchAlertRequest,
    TriggerOn, Value,
};
use serde_json::json;

use super::{
    Alert, Place, channels, checking, naming, selecting, show,
    store::{self, ALERTS},
};
use crate::{app::App, db::Tx, error::Result};

/// How people are told from now on, and what of that is sealed.
type Telling = (AlertNotificationConfig, Vec<String>);

/// Changes what is sent. What it remembers of its condition stays, unless what it asks changed.
pub(super) async fn update(
    app: &App,
    place: Place,
    identifier: &str,
    mut request: PatchAlertRequest,
) -> Result<AlertResponse> {
    let operation = NamespaceOperation::WriteData;
    let record = place.find(app, identifier, operation).await?;
    checking::check_snooze(&request, app.clock().now())?;
    let before = &record.data.0;
    let mut after = before.alert.clone();
    apply(&mut after, &request);
    let retriever = checking::check(app, &place, &after, Some(&before.alert)).await?;
    let telling = match request.notification_config.take() {
        Some(config) => Some(telling(app, &place, before, config).await?),
        None => None,
    };
    let (changed, id, now) = (place.clone(), record.id.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let selector = request.namespace_selector.as_ref();
                selecting::hold(tx, &changed, selector, retriever.as_ref()).await?;
                write(tx, &changed, &id, request, telling, now).await
            })
        })
        .await?;
    // Whoever may only write is told all the same what was written.
    let record = ALERTS.find(app.db(), place.owner(), &record.id).await?;
    show(app, &place, record).await
}

async fn telling(
    app: &App,
    place: &Place,
    before: &Alert,
    mut config: AlertNotificationConfig,
) -> Result<Telling> {
    // What was taken once may be sent back.
    if config.template_id != before.alert.notification_config.template_id {
        naming::check_template(&config)?;
    }
    let old = (&before.alert.notification_config.channels, &before.sealed);
    let names = (before.org_id.as_str(), before.id());
    let sealed = channels::seal(app, names, &mut config.channels, Some(old))?;
    naming::check(app, place, &config.channels, old.0).await?;
    Ok((config, sealed))
}

/// Changes the alert as it is by now: a namespace that was removed meanwhile is not selected again. Whoever calls holds what it
/// is to watch.
async fn write(
    tx: &mut Tx,
    place: &Place,
    id: &str,
    request: PatchAlertRequest,
    telling: Option<Telling>,
    now: i64,
) -> Result<()> {
    let owner = place.owner();
    let before = ALERTS.hold(tx, owner, id).await?.data.0;
    let mut after = before.clone();
    apply(&mut after.alert, &request);
    checking::check_watching(place, &before.alert, &after.alert)?;
    if let Some((config, sealed)) = telling {
        after.alert.notification_config = config;
        after.sealed = sealed;
    }
    replace(tx, place, (&before, after), now).await
}

/// Writes an alert that is held as it is to be from now on. What it remembers of its condition is forgotten if what it asks
/// changed.
pub(super) async fn replace(
    tx: &mut Tx,
    place: &Place,
    (before, after): (&Alert, Alert),
    now: i64,
) -> Result<()> {
    let owner = place.owner();
    if is_another_question(before, &after) {
        let mut state = store::state_in(tx, owner, after.id()).await?;
        state.holds = false;
        state.baseline.0 = Object::new();
        store::end_failures(tx, owner, &mut state).await?;
        store::keep_state(tx, owner, &state).await?;
    }
    selecting::write(tx, &place.caller, owner, (before, after), now).await
}

/// Whether a change has an alert ask something else.
pub(super) fn is_another_question(before: &Alert, after: &Alert) -> bool {
    question(&before.alert) != question(&after.alert)
}

/// What an alert asks.
fn question(alert: &AlertResponse) -> Value {
    json!([
        alert.source,
        alert.retriever_id,
        alert.trigger_on,
        alert.min_count,
        alert.threshold,
        alert.inputs,
        alert.system_condition,
        alert.namespace_selector
    ])
}

fn apply(alert: &mut AlertResponse, request: &PatchAlertRequest) {
    macro_rules! take {
        ($($member:ident)*) => { $(if let Some(value) = &request.$member {
            alert.$member = value.clone().into();
        })* };
    }
    take! { name description retriever_id trigger_on min_count threshold cooldown_seconds renotify_interval_seconds
    system_condition namespace_selector enabled execution_mode snoozed_until }
    // As one that is made so has it.
    if alert.trigger_on == Some(TriggerOn::Results) {
        alert.min_count.get_or_insert(1);
    }
    if let Some(inputs) = &request.inputs {
        alert.inputs = inputs.clone().unwrap_or_default();
    }
    if let Some(metadata) = &request.metadata {
        alert.metadata = metadata.clone().unwrap_or_default();
    }
}
