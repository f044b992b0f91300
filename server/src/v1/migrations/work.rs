//! What the task of a migration is to do.

use std::{collections::BTreeMap, time::Duration};

use loupe_wire::{ClonedResourceSummary, MigrationConfig};
use serde::{Deserialize, Serialize};

use super::refilling::Refilled;
use crate::v1::copying::Copy;

/// What the task is to do.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Work {
    pub migration_id: String,
    /// Collections that come with their documents.
    pub copy: Copy,
    /// What is extracted anew.
    #[serde(default)]
    pub refill: Option<Refill>,
}

/// What batches are made over, and how.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Refill {
    /// Bucket of the source and the one that gets its objects.
    pub buckets: BTreeMap<String, String>,
    /// Those of the new ones that collections are filled from at once.
    pub read: Vec<String>,
    /// Collection of the source and the one that is made after it, of all that come.
    pub collections: BTreeMap<String, String>,
    pub batch_size: i64,
    pub retry_failed: bool,
    /// Who started it.
    pub actor: String,
    /// Objects that were made later stay where they are.
    pub until: i64,
    pub objects: i64,
}

impl Refill {
    /// Who starts it, and when, is left open.
    pub fn of(refilled: Refilled, ids: &ClonedResourceSummary, config: &MigrationConfig) -> Self {
        let options = config.batch_options.clone().unwrap_or_default();
        let read = refilled.read.iter();
        Self {
            buckets: ids.buckets.clone().into_iter().collect(),
            read: read.filter_map(|id| ids.buckets.get(id).cloned()).collect(),
            collections: ids.collections.clone().into_iter().collect(),
            batch_size: options.batch_size,
            retry_failed: options.retry_failed,
            objects: refilled.objects,
            ..Self::default()
        }
    }
}

/// What a run came to.
pub(super) enum Step {
    Done,
    /// It goes on after a while.
    Waits(Duration),
}
