//! Notifications: what the people of an organization should know, kept until read or removed. They are made by what
//! happens on the server, in the transaction of what happened.

pub mod letters;
mod live;
pub mod preferences;
pub mod quotas;
mod routes;
mod store;

use indexmap::IndexMap;
use loupe_wire::{
    ListNotificationsRequest, ListNotificationsResponse, Notification, NotificationPriority,
    NotificationType, Object, Value,
};
use serde::Serialize;

pub use live::Listeners;
pub use preferences::Preferences;
pub use routes::router;

use super::organizations::settings;
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::Tx,
    error::{ApiError, Result},
    id,
    jobs::Claim,
    list::{ListParams, Page},
};

/// How long a notification is kept.
const KEPT_DAYS: i64 = 90;

/// Something that people should know.
#[derive(Debug, Clone, Default)]
pub struct Notice {
    pub kind: NotificationType,
    pub priority: NotificationPriority,
    /// One line.
    pub title: String,
    /// What happened, and what can be done about it.
    pub content: String,
    /// Ids of what it is about, for links.
    pub about: Value,
}

/// Leaves a notification for everybody in the organization, where and as its preferences say.
pub async fn notify(tx: &mut Tx, org_id: &str, notice: Notice, now: i64) -> Result<()> {
    let settings = settings::find_in(tx, org_id).await?;
    let channels = settings.notifications.of(notice.kind);
    if !channels.in_app && !channels.email {
        return Ok(());
    }
    let metadata = match notice.about {
        Value::Object(about) => about,
        _ => Object::new(),
    };
    let in_app = if channels.in_app { "delivered" } else { "off" };
    let mut delivery_status = IndexMap::from([("in_app".to_owned(), in_app.to_owned())]);
    if channels.email {
        delivery_status.insert("email".to_owned(), "deferred".to_owned());
    }
    let notification = Notification {
        id: Some(id::new("ntf_")),
        r#type: notice.kind,
        priority: notice.priority,
        title: notice.title,
        content: notice.content,
        created_at: Some(clock::time(now)),
        organization_id: org_id.to_owned(),
        metadata,
        delivery_status,
        // What is not for the console is nothing that somebody has to read there.
        read_at: (!channels.in_app).then(|| clock::time(now)),
        ..Default::default()
    };
    let (kind, priority) = (name_of(notice.kind), name_of(notice.priority));
    store::insert(tx, &notification, &kind, &priority, now).await?;
    if channels.email {
        letters::enqueue(tx, &notification, now).await?;
    }
    Ok(())
}

/// Work of the queue that was given up.
#[derive(Debug)]
pub struct Failure {
    /// One line.
    pub title: String,
    /// Why, and what can be done about it.
    pub content: String,
    /// Ids of what it is about, besides the task.
    pub about: Value,
}

/// Leaves a notification of work that was given up: nobody looks at a task that went well so far.
///
/// # Errors
/// The database does not answer.
pub async fn tell_failure(app: &App, claim: &Claim, failure: Failure) -> Result<()> {
    let mut notice = failure.notice();
    notice.about["task_id"] = claim.task_id.as_str().into();
    let (org_id, now) = (claim.org_id.clone(), app.clock().micros());
    app.db()
        .write(move |tx| Box::pin(async move { notify(tx, &org_id, notice, now).await }))
        .await
}

impl Failure {
    /// What people are told.
    pub fn notice(self) -> Notice {
        Notice {
            kind: NotificationType::PipelineFailure,
            priority: NotificationPriority::High,
            title: self.title,
            content: self.content,
            about: self.about,
        }
    }
}

/// The word of the interface for a case of an enumeration.
fn name_of(case: impl Serialize) -> String {
    match serde_json::to_value(case) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

pub async fn list(
    app: &App,
    caller: &Caller,
    params: &ListParams,
    request: ListNotificationsRequest,
) -> Result<ListNotificationsResponse> {
    let wanted = store::Wanted {
        kind: request.notification_type.map(name_of).unwrap_or_default(),
        priority: request.priority.map(name_of).unwrap_or_default(),
        read: request.read,
        user_id: request.user_id.unwrap_or_default(),
    };
    let rows = store::list(app.db(), &caller.org_id, &wanted, params).await?;
    let total = store::count(app.db(), &caller.org_id, &wanted).await?;
    let page = Page::from_window(rows, params, params.include_total.then_some(total));
    let pagination = match serde_json::to_value(&page.pagination).map_err(ApiError::internal)? {
        Value::Object(pagination) => pagination,
        _ => Object::new(),
    };
    Ok(ListNotificationsResponse {
        results: page.results,
        pagination,
        total,
    })
}

/// How many of an organization nobody has read: all of them, or those of one user and of everybody.
pub async fn unread(app: &App, org_id: &str, user_id: &str) -> Result<i64> {
    store::unread(app.db(), org_id, user_id).await
}

pub async fn get(app: &App, caller: &Caller, id: &str) -> Result<Notification> {
    store::find(app.db(), &caller.org_id, id).await
}

pub async fn read(app: &App, caller: &Caller, id: &str) -> Result<Notification> {
    let (org_id, id, now) = (caller.org_id.clone(), id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| Box::pin(async move { store::read(tx, &org_id, &id, now).await }))
        .await
}

/// How many were unread.
pub async fn read_all(app: &App, caller: &Caller, user_id: Option<String>) -> Result<i64> {
    let (org_id, user_id) = (caller.org_id.clone(), user_id.unwrap_or_default());
    let now = app.clock().micros();
    let read = app
        .db()
        .write(move |tx| Box::pin(async move { store::read_all(tx, &org_id, &user_id, now).await }))
        .await?;
    Ok(i64::try_from(read).unwrap_or(i64::MAX))
}

pub async fn delete(app: &App, caller: &Caller, id: &str) -> Result<()> {
    let (org_id, id) = (caller.org_id.clone(), id.to_owned());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if store::delete(tx, &org_id, &id).await? {
                    Ok(())
                } else {
                    Err(ApiError::not_found("notification", &id))
                }
            })
        })
        .await
}

/// Removes what was kept long enough.
pub async fn sweep(app: &App) -> Result<()> {
    let before = app.clock().micros() - KEPT_DAYS * 86_400_000_000;
    app.db()
        .write(move |tx| Box::pin(async move { store::sweep(tx, before).await }))
        .await?;
    Ok(())
}
