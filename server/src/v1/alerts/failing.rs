//! Looks that fail: they are kept, and people are told of those that fail again and again. What an alert knows of its condition
//! stays as it is: nothing was found out.

use loupe_wire::{AlertExecutionResult, NotificationPriority, NotificationType};
use serde_json::json;

use super::{Alert, store, tell};
use crate::{
    app::App,
    db::Tx,
    error::{ApiError, Result},
    v1::notifications::{self, Notice},
};

/// Failures in a row after which people are told, once.
const PATIENCE: i64 = 5;

/// Tells the feed of a try that failed, and keeps the look if that is over.
pub(super) async fn note(
    app: &App,
    owner: &str,
    alert: &Alert,
    (look, is_over): (AlertExecutionResult, bool),
    error: &ApiError,
    now: i64,
) -> Result<()> {
    let (owner, alert, why) = (owner.to_owned(), alert.clone(), error.message());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let payload = json!({ "error": why });
                if !is_over {
                    return tell(tx, &alert, "alert.execution.failed", payload, now).await;
                }
                let failures = keep(tx, &owner, look, &why, now).await?;
                tell(tx, &alert, "alert.execution.failed", payload, now).await?;
                if failures == PATIENCE {
                    give_notice(tx, &alert, &why, now).await?;
                }
                Ok(())
            })
        })
        .await
}

/// Keeps a look that failed; how many did in a row.
async fn keep(
    tx: &mut Tx,
    owner: &str,
    mut look: AlertExecutionResult,
    why: &str,
    now: i64,
) -> Result<i64> {
    let mut state = store::state_in(tx, owner, &look.alert_id).await?;
    state.failures += 1;
    why.clone_into(&mut state.error);
    store::keep_state(tx, owner, &state).await?;
    look.error = Some(why.to_owned());
    look.consecutive_failures = Some(state.failures);
    store::insert_failed(tx, owner, look, now).await?;
    Ok(state.failures)
}

async fn give_notice(tx: &mut Tx, alert: &Alert, why: &str, now: i64) -> Result<()> {
    let notice = Notice {
        kind: NotificationType::SystemAlert,
        priority: NotificationPriority::High,
        title: format!("Alert {} fails", alert.alert.name),
        content: format!(
            "It could not look {PATIENCE} times in a row, the last time because of: {why}. It goes on trying, and tells nobody of what it watches until it can."
        ),
        about: json!({ "alert_id": alert.id(), "namespace_id": alert.alert.namespace_id }),
    };
    notifications::notify(tx, &alert.org_id, notice, now).await
}
