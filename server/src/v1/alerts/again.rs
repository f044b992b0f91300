//! Looks that come again by themselves, of alerts that look at what is written: what rose within a cooldown is told when that
//! ends, and what stands as often as people want to hear of it, also while nothing more is written.

use std::collections::BTreeMap;

use loupe_engine::store::{Document, Reach, WithVectors};
use loupe_wire::{Object, Value, reading};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Alert,
    evaluation::Cause,
    ingest::{Watcher, inputs, watchers},
    store::{self, State},
};
use crate::{app::App, error::Result};

/// The member of a baseline that has what may be looked at again.
const AGAIN: &str = "again";

/// What was written when the condition held.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Standing {
    namespace_id: String,
    collection_id: String,
    /// What it held for, where each document is a question of its own.
    document_id: String,
    /// Nobody was told of it yet.
    is_news: bool,
}

impl Standing {
    fn is_like(&self, other: &Self) -> bool {
        self.namespace_id == other.namespace_id
            && self.collection_id == other.collection_id
            && self.is_news == other.is_news
    }
}

/// Whether the clock is to ask about it.
pub(super) fn stands(state: &State) -> bool {
    state.baseline.0.contains_key(AGAIN)
}

fn read(baseline: &Object) -> Option<Standing> {
    reading::from_value(baseline.get(AGAIN)?).ok()
}

/// Notes in the state what stands after a look at what was written; whether that is something else than before. What nobody was
/// told of yet stays, whatever comes of another document.
pub(super) fn note(state: &mut State, cause: &Cause, holds: bool, is_news: bool) -> bool {
    if cause.namespace_id.is_empty() {
        return false;
    }
    let after = Standing {
        namespace_id: cause.namespace_id.clone(),
        collection_id: cause.collection_id.clone(),
        document_id: cause.documents.first().cloned().unwrap_or_default(),
        is_news,
    };
    let stays = match read(&state.baseline.0) {
        Some(before) if cause.is_new_question && before.document_id != after.document_id => {
            !holds || (before.is_news && !is_news)
        }
        Some(before) => holds && before.is_like(&after),
        None => !holds,
    };
    if stays {
        return false;
    }
    if holds {
        state.baseline.0.insert(AGAIN.into(), json!(after));
    } else {
        state.baseline.0.remove(AGAIN);
    }
    true
}

/// An alert that is to look again.
pub(super) struct Due {
    owner: String,
    pub(super) alert: Alert,
    standing: Standing,
}

/// Those of every organization.
///
/// # Errors
/// The database does not answer.
pub(super) async fn due(app: &App) -> Result<Vec<Due>> {
    let now = app.clock().micros();
    let mut due = Vec::new();
    for (owner, alert, fired_at, baseline) in store::standing(app.db()).await? {
        let alert = alert.0;
        if let Some(standing) = read(&baseline.0)
            && is_due(&alert, &standing, fired_at, now)
        {
            due.push(Due {
                owner,
                alert,
                standing,
            });
        }
    }
    Ok(due)
}

/// Whether people would be told if the condition held still.
fn is_due(alert: &Alert, standing: &Standing, fired_at: i64, now: i64) -> bool {
    let ask = &alert.alert;
    let seconds = match (standing.is_news, ask.renotify_interval_seconds) {
        (true, _) => ask.cooldown_seconds,
        (false, Some(seconds)) => seconds.max(ask.cooldown_seconds),
        (false, None) => return false,
    };
    let snoozed = ask.snoozed_until;
    ask.enabled
        && fired_at.saturating_add(seconds.saturating_mul(1_000_000)) <= now
        && snoozed.is_none_or(|until| until.timestamp_micros() <= now)
}

/// The looks of an organization that are due, known by this key. What cannot be asked again is forgotten: the collection does not
/// apply the alert any more, or the document is gone.
///
/// # Errors
/// The database or the store does not answer.
pub(super) async fn looks(
    app: &App,
    org_id: &str,
    key: &str,
) -> Result<Vec<(String, Alert, Cause)>> {
    let mut places: BTreeMap<(String, String), Vec<Due>> = BTreeMap::new();
    for one in due(app).await? {
        if one.alert.org_id == org_id {
            let standing = &one.standing;
            let place = (
                standing.namespace_id.clone(),
                standing.collection_id.clone(),
            );
            places.entry(place).or_default().push(one);
        }
    }
    let (mut looks, mut gone) = (Vec::new(), Vec::new());
    for ((namespace_id, collection_id), due) in places {
        let watchers = watchers(app, org_id, &namespace_id, &collection_id).await?;
        let documents = match watchers.iter().any(Watcher::is_per_document) {
            true => documents(app, namespace_id, collection_id, &due).await?,
            false => Vec::new(),
        };
        for one in due {
            let is_its = |watcher: &&Watcher| watcher.alert.id() == one.alert.id();
            let watcher = watchers.iter().find(is_its);
            let cause = watcher.and_then(|it| cause(app, key, &one.standing, it, &documents));
            match cause {
                Some(cause) => looks.push((one.owner, one.alert, cause)),
                None => gone.push(one),
            }
        }
    }
    forget(app, gone).await?;
    Ok(looks)
}

/// What alerts that ask for each document by itself look at again.
async fn documents(
    app: &App,
    namespace_id: String,
    collection_id: String,
    due: &[Due],
) -> Result<Vec<Document>> {
    let ids: Vec<String> = due
        .iter()
        .map(|one| one.standing.document_id.clone())
        .collect();
    let reach = Reach {
        namespace_id,
        collection_ids: vec![collection_id],
        principal: None,
    };
    Ok(app.store().get(&reach, &ids, WithVectors::No).await?)
}

/// Why it looks again, if it still may.
fn cause(
    app: &App,
    key: &str,
    standing: &Standing,
    watcher: &Watcher,
    documents: &[Document],
) -> Option<Cause> {
    // By the clock it looks anyway.
    if watcher.is_timed() {
        return None;
    }
    let (mut about, mut value) = (Vec::new(), Value::Null);
    if watcher.is_per_document() {
        let mut documents = documents.iter();
        let document = documents.find(|one| one.document_id == standing.document_id)?;
        about.push(document.document_id.clone());
        value = Value::from(document.payload.clone());
    }
    Some(Cause {
        key: format!("again:{key}"),
        namespace_id: standing.namespace_id.clone(),
        collection_id: standing.collection_id.clone(),
        is_new_question: standing.is_news && !about.is_empty(),
        documents: about,
        inputs: inputs(app, &watcher.mappings, &value),
        ..Cause::default()
    })
}

async fn forget(app: &App, gone: Vec<Due>) -> Result<()> {
    if gone.is_empty() {
        return Ok(());
    }
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for one in &gone {
                    let mut state = store::state_in(tx, &one.owner, one.alert.id()).await?;
                    if state.baseline.0.remove(AGAIN).is_some() {
                        store::keep_state(tx, &one.owner, &state).await?;
                    }
                }
                Ok(())
            })
        })
        .await
}
