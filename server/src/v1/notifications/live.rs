//! How many notifications are unread, told as it changes: one look at the database for all who listen.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::response::{
    IntoResponse, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures::stream;
use loupe_wire::UnreadCountResponse;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::{app::App, error::Result, limits};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(2);

/// How long one stream lasts: who comes again is asked for its key again.
const LASTS: Duration = Duration::from_secs(600);

/// Streams of one organization on this process.
const MOST: i64 = 100;

/// An organization, and one of its users or nobody.
type Place = (String, String);

type Counts = HashMap<Place, watch::Sender<Option<i64>>>;

/// Who listens on this process.
#[derive(Debug, Default)]
pub struct Listeners(Mutex<Counts>);

impl Listeners {
    fn all(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The count now, and whenever it is another one, as events `unread`.
///
/// # Errors
/// 429 for more streams than an organization may have.
pub(super) fn stream(app: &App, org_id: &str, user_id: Option<String>) -> Result<Response> {
    let place = (org_id.to_owned(), user_id.unwrap_or_default());
    let (counts, until) = (join(app, place)?, Instant::now() + LASTS);
    let steps = stream::unfold(counts, move |mut counts| async move {
        // Nobody looks any more when the process is told to stop.
        timeout_at(until, counts.changed()).await.ok()?.ok()?;
        let count = (*counts.borrow_and_update()).unwrap_or(0);
        let event = Event::default().event("unread");
        Some((event.json_data(UnreadCountResponse { count }), counts))
    });
    Ok(Sse::new(steps)
        .keep_alive(KeepAlive::default())
        .into_response())
}

fn join(app: &App, place: Place) -> Result<watch::Receiver<Option<i64>>> {
    let mut all = app.listeners.all();
    // Each user has a look of its own, and users are whoever is named.
    let own = all.iter().filter(|((org_id, _), _)| *org_id == place.0);
    let open: usize = own.map(|(_, sender)| sender.receiver_count()).sum();
    if i64::try_from(open).is_ok_and(|open| open >= MOST) {
        let message = format!("{MOST} streams of unread notifications are open: close some");
        let code = "too_many_streams";
        return Err(limits::too_many(code, message, MOST, "concurrent", 1));
    }
    if let Some(sender) = all.get(&place) {
        let mut counts = sender.subscribe();
        if counts.borrow().is_some() {
            counts.mark_changed();
        }
        return Ok(counts);
    }
    let (sender, counts) = watch::channel(None);
    all.insert(place.clone(), sender.clone());
    drop(all);
    tokio::spawn(look(app.clone(), place, sender));
    Ok(counts)
}

/// Looks for as long as somebody listens.
async fn look(app: App, place: Place, sender: watch::Sender<Option<i64>>) {
    loop {
        let (org_id, user_id) = &place;
        match super::unread(&app, org_id, user_id).await {
            Ok(count) => {
                sender.send_if_modified(|known| known.replace(count) != Some(count));
            }
            // The next look may find the database.
            Err(error) => tracing::warn!(%error, org_id, "unread notifications cannot be counted"),
        }
        let leaves = tokio::select! {
            () = tokio::time::sleep(LOOK) => false,
            () = app.leaving.cancelled() => true,
        };
        // Whoever joins holds the same lock.
        let mut all = app.listeners.all();
        if leaves || sender.receiver_count() == 0 {
            all.remove(&place);
            return;
        }
    }
}
