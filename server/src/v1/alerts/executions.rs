//! Looks of an alert: those that were made, and looking now.

use loupe_wire::{
    AlertExecutionListResponse, AlertExecutionResult, NamespaceOperation, Permission, Value,
};
use serde_json::json;

use super::{ANY, Alert, Place, evaluation, store};
use crate::{
    app::App,
    auth::{Level, Scope},
    db::Record,
    error::{ApiError, Result},
    jobs::{Claim, is_last_try},
    list::{ListParams, Page},
};

/// Looks of one alert, or of all, newest first.
pub(super) async fn list(
    app: &App,
    place: &Place,
    identifier: Option<&str>,
    params: &ListParams,
) -> Result<AlertExecutionListResponse> {
    let operation = NamespaceOperation::ReadData;
    let alert_id = match identifier {
        Some(identifier) => place.find(app, identifier, operation).await?.id,
        None => {
            place.allow(ANY, operation)?;
            String::new()
        }
    };
    let owner = place.owner();
    let rows = store::list(app.db(), owner, &alert_id, params.window()).await?;
    let total = match params.include_total {
        true => Some(store::count(app.db(), owner, &alert_id).await?),
        false => None,
    };
    let page = Page::from_window(rows, params, total);
    Ok(AlertExecutionListResponse {
        total_count: page.total_count(params),
        results: page.results,
        pagination: page.pagination,
        ..Default::default()
    })
}

pub(super) async fn get(app: &App, place: &Place, id: &str) -> Result<AlertExecutionResult> {
    let found = store::find(app.db(), place.owner(), id).await?;
    place.allow(&found.alert_id, NamespaceOperation::ReadData)?;
    Ok(found)
}

/// The last look that did not fail.
pub(super) async fn last(
    app: &App,
    place: &Place,
    identifier: &str,
) -> Result<AlertExecutionResult> {
    let operation = NamespaceOperation::ReadData;
    let record = place.find(app, identifier, operation).await?;
    let last = store::last(app.db(), place.owner(), &record.id).await?;
    last.ok_or_else(|| ApiError::not_found("alert execution", identifier))
}

/// Looks now, whatever the mode. What fires is told as ever.
pub(super) async fn execute(
    app: &App,
    place: &Place,
    identifier: &str,
) -> Result<AlertExecutionResult> {
    let operation = NamespaceOperation::ExecuteJob;
    let record = place.find(app, identifier, operation).await?;
    let cause = evaluation::Cause::request();
    evaluation::look(app, place.owner(), &record.data.0, cause).await
}

/// The code of an alert that no trigger evaluates, because it is off.
const OFF: &str = "alert_disabled";

/// Whether an alert was not evaluated because it is off.
pub fn is_off(error: &ApiError) -> bool {
    error.has_code(OFF)
}

/// As a trigger does it, whose claim it is: an alert of the namespace, or one of the organization. It looks as it does by the
/// clock: what holds already is no news.
///
/// # Errors
/// There is no such alert, it is off, or it cannot be evaluated.
pub async fn evaluate<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    claim: &Claim,
) -> Result<Value> {
    let (place, record) = known(app, scope, identifier).await?;
    if !record.alert.enabled {
        let message = format!("the alert {} is turned off", record.name);
        return Err(ApiError::conflict(OFF, message));
    }
    let cause = evaluation::Cause {
        key: claim.task_id.clone(),
        comes_again: !is_last_try(claim),
        ..evaluation::Cause::default()
    };
    let found = evaluation::look(app, place.owner(), &record.data.0, cause).await?;
    Ok(json!({
        "alert_id": found.alert_id, "execution_id": found.execution_id,
        "triggered": found.triggered, "match_count": found.match_count,
    }))
}

/// Refuses what is no alert that the namespace's triggers may evaluate.
///
/// # Errors
/// There is none.
pub async fn exists<L: Level>(app: &App, scope: &Scope<L>, identifier: &str) -> Result<()> {
    known(app, scope, identifier).await.map(|_| ())
}

/// The alert of the namespace, else that of the organization. The latter is for those who may look at the organization's
/// alerts: to everybody else there is none.
async fn known<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
) -> Result<(Place, Record<Alert>)> {
    let operation = NamespaceOperation::ExecuteJob;
    let own = Place::from(scope);
    let found = own.find(app, identifier, operation).await;
    let unknown = match found {
        Ok(record) => return Ok((own, record)),
        Err(error) if error.is_not_found() => error,
        Err(error) => return Err(error),
    };
    let caller = &scope.caller;
    if !caller.has(Permission::Admin) || caller.principal().is_some() {
        return Err(unknown);
    }
    let over = Place::over(caller);
    let record = over.find(app, identifier, operation).await?;
    Ok((over, record))
}
