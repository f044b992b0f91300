//! Notifications by e-mail, to the address that the organization gives for them. How it went is told by the notification.

use loupe_wire::{Notification, TaskType};
use serde_json::json;

use super::store;
use crate::{
    app::App,
    db::Tx,
    error::{ApiError, Result},
    jobs::{Claim, text},
    mail::Letter,
    v1::{
        organizations,
        tasks::{self, NewTask},
    },
};

/// The queue's word for one letter.
pub const LETTER: &str = "notification_letter";

/// Has a notification sent, in the transaction that makes it.
pub(super) async fn enqueue(tx: &mut Tx, notification: &Notification, now: i64) -> Result<()> {
    let id = notification.id.as_deref().unwrap_or_default();
    let org_id = &notification.organization_id;
    let mut task = NewTask::work(
        org_id,
        "",
        TaskType::ApiRetrieversExecute,
        LETTER,
        json!({ "notification_id": id }),
    );
    task.namespace_id = None;
    // Inner work: what came of it is told by the notification.
    task.parent_id = Some(id.to_owned());
    task.description = format!("the letter of the notification {}", notification.title);
    tasks::insert(tx, task, now).await?;
    Ok(())
}

/// Sends one letter.
///
/// # Errors
/// The mail server may take it later: the queue tries again.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let id = text(claim, "notification_id");
    let notification = match store::find(app.db(), &claim.org_id, id).await {
        Ok(notification) => notification,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    let organization = organizations::find(app.db(), &claim.org_id).await?;
    let (Some(mailer), Some(address)) = (app.mailer(), organization.notifications_email) else {
        return told(app, claim, "not_configured").await;
    };
    let letter = Letter {
        to: &[address],
        cc: &[],
        bcc: &[],
        subject: notification.title,
        text: format!("{}\n", notification.content),
        html: false,
    };
    match mailer.send(letter).await {
        Ok(()) => told(app, claim, "delivered").await,
        Err(error) if error.is_transient => Err(ApiError::unavailable("", error.message)),
        Err(error) => {
            tracing::warn!(error = error.message, "a notification could not be mailed");
            told(app, claim, "failed").await
        }
    }
}

/// What was tried often enough failed.
///
/// # Errors
/// The database does not answer.
pub async fn give_up(app: &App, claim: &Claim) -> Result<()> {
    told(app, claim, "failed").await
}

async fn told(app: &App, claim: &Claim, status: &'static str) -> Result<()> {
    let (org_id, id) = (
        claim.org_id.clone(),
        text(claim, "notification_id").to_owned(),
    );
    app.db()
        .write(move |tx| {
            Box::pin(async move { store::set_delivery(tx, &org_id, &id, "email", status).await })
        })
        .await
}
