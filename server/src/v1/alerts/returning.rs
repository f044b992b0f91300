//! Alerts as snapshots keep them: put back where they were, or copied, turned off, into another namespace. What their channels
//! are set to stays encrypted wherever it is kept.

use std::collections::{BTreeMap, BTreeSet};

use loupe_wire::{AlertResponse, Object, RetrieverModelOutput, Value, reading};
use serde::{Deserialize, Serialize};

use super::{
    ALERTS, Alert, Place, READER,
    changing::{is_another_question, replace},
    channels, insert, selecting,
    store::{self, State},
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::{Db, Json, Record, Tx},
    error::{ApiError, Result},
    v1::retrievers::RETRIEVERS,
};

/// An alert with what it remembers of its condition, if it has looked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    #[serde(flatten)]
    pub alert: Alert,
    #[serde(default, rename = "_state", skip_serializing_if = "Option::is_none")]
    state: Option<Remembered>,
}

/// What held before is no news when it is looked at again.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Remembered {
    holds: bool,
    fired_at: i64,
    baseline: Object,
}

/// The alerts of a namespace, the newest first; those of the organization are nobody's.
///
/// # Errors
/// The database does not answer.
pub async fn kept(db: &Db, namespace_id: &str) -> Result<Vec<Kept>> {
    let mut states = store::states(db, namespace_id).await?;
    let all = ALERTS.all(db, namespace_id).await?.into_iter();
    Ok(all
        .map(|record| Kept {
            state: states.remove(&record.id).map(|state| Remembered {
                holds: state.holds,
                fired_at: state.fired_at,
                baseline: state.baseline.0,
            }),
            alert: record.data.0,
        })
        .collect())
}

/// Holds the retrievers that alerts watch: whoever removes one was first, or finds the alert. Comes before the alerts are held,
/// as whoever removes one does it.
///
/// # Errors
/// The database does not answer.
pub async fn hold_watched(tx: &mut Tx, namespace_id: &str, kept: &[Kept]) -> Result<()> {
    let watched = kept
        .iter()
        .filter_map(|one| selecting::watched(&one.alert.alert));
    let watched: BTreeSet<&str> = watched.collect();
    let is_watched = |one: &Record<RetrieverModelOutput>| {
        let mut names = [&one.id, &one.name].into_iter();
        names.any(|name| watched.contains(name.as_str()))
    };
    RETRIEVERS.hold_some(tx, namespace_id, is_watched).await?;
    Ok(())
}

/// Holds what alerts remember that are to ask something else again. Comes before the first event.
///
/// # Errors
/// The database does not answer.
pub async fn hold_states(
    tx: &mut Tx,
    (org_id, namespace_id): (&str, &str),
    kept: &[Kept],
    held: &BTreeMap<String, Record<Alert>>,
) -> Result<()> {
    if kept.is_empty() {
        return Ok(());
    }
    READER.ensure(tx, org_id).await?;
    for one in kept {
        let today = held.get(one.alert.id());
        if today.is_some_and(|today| is_another_question(today, &one.alert)) {
            store::state_in(tx, namespace_id, one.alert.id()).await?;
        }
    }
    Ok(())
}

impl Kept {
    /// Whether this server can read what its channels are set to.
    pub fn is_readable(&self, app: &App) -> bool {
        let Alert { org_id, sealed, .. } = &self.alert;
        let place = [org_id.as_str(), self.alert.id()];
        let mut sealed = sealed.iter();
        sealed.all(|sealed| app.vault().opens(&place, sealed))
    }

    /// Id and name.
    pub fn names(&self) -> (Option<&String>, &String) {
        let alert = &self.alert.alert;
        (alert.alert_id.as_ref(), &alert.name)
    }

    /// Puts it back under a name, with the channels that it had. One that is there stays snoozed as it is, and forgets what it
    /// remembers of another question; one that is gone comes back with what it remembered. Answers why it is off, if it was not.
    ///
    /// # Errors
    /// 409 for too many; the database does not answer.
    pub async fn put_back(
        self,
        tx: &mut Tx,
        caller: &Caller,
        namespace_id: &str,
        (today, name): (Option<Record<Alert>>, String),
        now: i64,
    ) -> Result<Option<String>> {
        let kept_its_name = self.alert.alert.name == name;
        let mut then = self.alert;
        then.alert.name = name;
        let told = check_watched(tx, namespace_id, &mut then.alert).await?;
        let place = Place {
            caller: caller.clone(),
            namespace_id: Some(namespace_id.to_owned()),
        };
        let Some(today) = today else {
            insert(tx, &place, &then, None, now).await?;
            if let Some(state) = self.state {
                let state = state.of(then.id());
                store::keep_state(tx, namespace_id, &state).await?;
            }
            return Ok(told);
        };
        let before = today.data.0;
        then.alert.snoozed_until = before.alert.snoozed_until;
        then.alert.updated_at = before.alert.updated_at;
        if kept_its_name && (&then.alert, &then.sealed) == (&before.alert, &before.sealed) {
            return Ok(told);
        }
        replace(tx, &place, (&before, then), now).await?;
        Ok(told)
    }

    /// The same alert in another namespace, turned off, with nothing behind it: both would tell the same people of the same.
    /// `renamed` puts new ids in place of old ones.
    ///
    /// # Errors
    /// What its channels are set to cannot be read.
    pub fn copied(
        self,
        app: &App,
        namespace_id: &str,
        renamed: impl Fn(&mut Value),
        now: i64,
    ) -> Result<Self> {
        let Alert {
            org_id,
            alert,
            sealed,
        } = self.alert;
        let old_id = alert.alert_id.clone().unwrap_or_default();
        let mut value = serde_json::to_value(&alert).map_err(ApiError::internal)?;
        renamed(&mut value);
        let mut alert: AlertResponse = reading::from_value(&value).map_err(ApiError::internal)?;
        // It has one only where that selects the alert's own namespace.
        if let Some(selector) = &mut alert.namespace_selector {
            selector.namespace_ids = vec![namespace_id.to_owned()];
        }
        let id = alert.alert_id.clone().unwrap_or_default();
        let again = |sealed: &String| {
            let config = channels::open(app, (&org_id, &old_id), sealed)?;
            let mut config = Value::Object(config);
            renamed(&mut config);
            app.vault()
                .seal(&[org_id.as_str(), id.as_str()], &config.to_string())
        };
        let sealed = sealed.iter().map(again).collect::<Result<_>>()?;
        let alert = AlertResponse {
            namespace_id: Some(namespace_id.to_owned()),
            enabled: false,
            snoozed_until: None,
            created_at: Some(clock::time(now)),
            updated_at: Some(clock::time(now)),
            ..alert
        };
        Ok(Self {
            alert: Alert {
                org_id,
                alert,
                sealed,
            },
            state: None,
        })
    }

    /// Writes one that is new, its record and its event.
    ///
    /// # Errors
    /// 409 for a name that is taken and for too many.
    pub async fn insert(&self, tx: &mut Tx, caller: &Caller, now: i64) -> Result<()> {
        let place = Place {
            caller: caller.clone(),
            namespace_id: self.alert.alert.namespace_id.clone(),
        };
        insert(tx, &place, &self.alert, None, now).await
    }
}

impl Remembered {
    fn of(self, alert_id: &str) -> State {
        State {
            alert_id: alert_id.to_owned(),
            holds: self.holds,
            fired_at: self.fired_at,
            baseline: Json(self.baseline),
            failures: 0,
            error: String::new(),
        }
    }
}

/// Turns an alert off that would seem to watch; answers why.
async fn check_watched(
    tx: &mut Tx,
    namespace_id: &str,
    alert: &mut AlertResponse,
) -> Result<Option<String>> {
    let Some(watched) = selecting::watched(alert).filter(|_| alert.enabled) else {
        return Ok(None);
    };
    match RETRIEVERS.find_in(tx, namespace_id, watched).await {
        Ok(_) => Ok(None),
        Err(error) if error.is_not_found() => {
            let told = format!("the retriever {watched} that it watches is gone: it is off");
            alert.enabled = false;
            Ok(Some(told))
        }
        Err(error) => Err(error),
    }
}
