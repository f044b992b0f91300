//! What an alert may be about.

use chrono::{DateTime, Utc};
use loupe_wire::{
    AlertResponse, AlertSource, NamespaceOperation, NamespaceSelector, NamespaceSelectorMode,
    PatchAlertRequest, ResourceType, SystemCondition, Value,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{Place, conditions, store};
use crate::{
    app::App,
    db::Table,
    error::{ApiError, Result, Violation},
    v1::{collections::COLLECTIONS, namespaces::NAMESPACES, retrievers::RETRIEVERS},
};

/// Largest rest of an alert, as JSON: inputs and metadata.
const LARGEST: usize = 65_536;

/// The retriever that an alert asks: its namespace and its id.
pub(super) type Asked = (String, String);

/// Checks what an alert is about, as a whole: after a change as well as at first. The retriever that it watched `before` is
/// no matter of the key that changes something else, and a condition or a selector that stays was checked when it was sent, or
/// when the alert was turned on. Answers the retriever that is asked, if one is there.
pub(super) async fn check(
    app: &App,
    place: &Place,
    alert: &AlertResponse,
    before: Option<&AlertResponse>,
) -> Result<Option<Asked>> {
    let mut asked = None;
    match alert.source.unwrap_or_default() {
        AlertSource::Retriever => {
            let Some(retriever) = &alert.retriever_id else {
                let msg = "an alert on a retriever names it";
                return Err(Violation::body(&["retriever_id"], "missing", msg, Value::Null).into());
            };
            let watched = before.and_then(|before| before.retriever_id.as_ref());
            let is_new = watched != Some(retriever);
            asked = match find_retriever(app, place, retriever).await {
                Ok(found) => Some(found),
                // It was removed, which turned the alert off: what else there is of it may be changed.
                Err(error) if error.is_not_found() && !is_new && !alert.enabled => None,
                Err(error) => return Err(error),
            };
            if let Some((_, id)) = asked.as_ref().filter(|_| is_new) {
                let operation = NamespaceOperation::ExecuteRetriever;
                place.caller.allow(ResourceType::Retriever, id, operation)?;
            }
        }
        AlertSource::System => match &alert.system_condition {
            Some(condition)
                if before.is_some_and(|before| {
                    before.system_condition.as_ref() == Some(condition) && !turns_on(before, alert)
                }) => {}
            Some(condition) => {
                conditions::check(condition)?;
                check_condition(app, place, condition).await?;
            }
            None => {
                let msg = "an alert on the system names its condition";
                let path = ["system_condition"];
                return Err(Violation::body(&path, "missing", msg, Value::Null).into());
            }
        },
    }
    if let Some(selector) = &alert.namespace_selector
        && !before.is_some_and(|before| watches_as(before, alert))
    {
        check_selector(app, place, selector).await?;
    }
    let rest = json!([alert.inputs, alert.metadata]).to_string();
    if rest.len() > LARGEST {
        let msg = format!("inputs and metadata have at most {LARGEST} bytes");
        return Err(Violation::body(&["inputs"], "too_long", msg, Value::Null).into());
    }
    Ok(asked)
}

/// The retriever that an alert names: of a namespace by id or name, of the organization by its id.
async fn find_retriever(app: &App, place: &Place, retriever: &str) -> Result<Asked> {
    match &place.namespace_id {
        Some(namespace_id) => {
            let record = RETRIEVERS.find(app.db(), namespace_id, retriever).await?;
            Ok((namespace_id.clone(), record.id))
        }
        None => {
            let org_id = &place.caller.org_id;
            let found = store::retriever_namespace(app.db(), org_id, retriever).await?;
            Ok((found, retriever.to_owned()))
        }
    }
}

/// A snooze that is over already would be none.
pub(super) fn check_snooze(request: &PatchAlertRequest, now: DateTime<Utc>) -> Result<()> {
    match request.snoozed_until.flatten() {
        Some(until) if until <= now => {
            let msg = "a snooze ends in the future; null ends it now";
            let input = until.to_rfc3339().into();
            Err(Violation::body(&["snoozed_until"], "value_error", msg, input).into())
        }
        _ => Ok(()),
    }
}

/// Whether a change turns an alert on: whoever does has it watch something that is there.
fn turns_on(before: &AlertResponse, after: &AlertResponse) -> bool {
    after.enabled && !before.enabled
}

/// Whether a change leaves alone what is watched.
fn watches_as(before: &AlertResponse, after: &AlertResponse) -> bool {
    before.namespace_selector == after.namespace_selector && !turns_on(before, after)
}

/// What a condition is narrowed to is there, named by its id.
async fn check_condition(app: &App, place: &Place, condition: &SystemCondition) -> Result<()> {
    let id = |name: &str| condition.params.get(name).and_then(Value::as_str);
    let namespaces = match &place.namespace_id {
        Some(namespace_id) => vec![namespace_id.clone()],
        None => store::namespace_ids(app.db(), &place.caller.org_id).await?,
    };
    if let Some(id) = id("collection_id") {
        check_there(app, &COLLECTIONS, &namespaces, ("collection", id)).await?;
    }
    if let Some(id) = id("retriever_id") {
        check_there(app, &RETRIEVERS, &namespaces, ("retriever", id)).await?;
    }
    Ok(())
}

async fn check_there<T>(
    app: &App,
    table: &Table<T>,
    namespaces: &[String],
    (kind, id): (&'static str, &str),
) -> Result<()>
where
    T: Serialize + DeserializeOwned + Send + Sync + Unpin + 'static,
{
    for namespace_id in namespaces {
        match table.find(app.db(), namespace_id, id).await {
            Ok(found) if found.id == id => return Ok(()),
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Err(ApiError::not_found(kind, id))
}

fn selector_fault(selector: &NamespaceSelector, member: &str, msg: &str) -> ApiError {
    let input = serde_json::to_value(selector).unwrap_or_default();
    Violation::body(&["namespace_selector", member], "value_error", msg, input).into()
}

/// Whether an alert of the organization that is changed watches anything.
pub(super) fn check_watching(
    place: &Place,
    before: &AlertResponse,
    after: &AlertResponse,
) -> Result<()> {
    match &after.namespace_selector {
        Some(selector) if place.namespace_id.is_none() && !watches_as(before, after) => {
            check_some(selector)
        }
        _ => Ok(()),
    }
}

fn check_some(selector: &NamespaceSelector) -> Result<()> {
    let selected = selector.mode == Some(NamespaceSelectorMode::Selected);
    if selected && selector.namespace_ids.is_empty() {
        let msg = "select at least one namespace";
        return Err(selector_fault(selector, "namespace_ids", msg));
    }
    Ok(())
}

async fn check_selector(app: &App, place: &Place, selector: &NamespaceSelector) -> Result<()> {
    let selected = selector.mode == Some(NamespaceSelectorMode::Selected);
    if let Some(own) = &place.namespace_id {
        if selected && selector.namespace_ids.iter().all(|id| id == own) {
            return Ok(());
        }
        let msg = "an alert of a namespace watches that one: make it at /v1/organizations/alerts";
        return Err(selector_fault(selector, "mode", msg));
    }
    check_some(selector)?;
    for id in &selector.namespace_ids {
        let found = NAMESPACES.find(app.db(), &place.caller.org_id, id).await?;
        // What is written to is known by its id alone: a name would watch nothing.
        if found.id != *id {
            return Err(ApiError::not_found("namespace", id));
        }
    }
    Ok(())
}
