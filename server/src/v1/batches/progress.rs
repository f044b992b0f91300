//! How far a batch is, as its task tells. All of it is counted where a tier begins and ends; a chunk in between adds what ended
//! with it, for counting at each would cost the square of the batch's size, on the thread that everybody's writes wait for.

use loupe_wire::{BatchModel, Object, Value};
use serde_json::json;

use super::{
    dropping,
    store::{Counts, ObjectEnd, Step},
};
use crate::{db::Tx, error::Result, v1::tasks};

/// Tells what was counted.
pub(super) async fn show(tx: &mut Tx, batch: &BatchModel, counts: &Counts, now: i64) -> Result<()> {
    let progress = json!({
        "processed": counts.total - counts.pending, "total": counts.total, "failed": counts.failed,
        "documents_written": counts.documents,
    });
    change(tx, batch, now, |told| *told = progress).await
}

async fn change(
    tx: &mut Tx,
    batch: &BatchModel,
    now: i64,
    edit: impl FnOnce(&mut Value) + Send,
) -> Result<()> {
    let task_id = batch.task_id.as_deref().unwrap_or_default();
    let left_out = dropping::shown(batch);
    tasks::store::change(tx, task_id, batch.status, now, |task| {
        let data = task.additional_data.get_or_insert_default();
        edit(
            data.entry("progress")
                .or_insert_with(|| Object::new().into()),
        );
        data.extend(left_out);
    })
    .await
}

/// What of a batch has ended with a chunk.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ended {
    pub objects: i64,
    failed: i64,
    documents: i64,
}

impl Ended {
    pub fn note(&mut self, object: &ObjectEnd, step: Step) {
        let failed = object.status == "FAILED";
        self.objects += i64::from(failed || step.is_last);
        self.failed += i64::from(failed);
        self.documents += object.documents;
    }

    /// Adds it to what is told.
    pub async fn show(self, tx: &mut Tx, batch: &BatchModel, now: i64) -> Result<()> {
        change(tx, batch, now, |told| {
            for (name, more) in [
                ("processed", self.objects),
                ("failed", self.failed),
                ("documents_written", self.documents),
            ] {
                told[name] = (told[name].as_i64().unwrap_or(0) + more).into();
            }
        })
        .await
    }
}
