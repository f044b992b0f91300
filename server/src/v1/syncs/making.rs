//! What becomes of files: those that are new or changed get objects, those that are gone lose theirs.

use loupe_wire::CreateBatchRequest;
use sha2::{Digest, Sha256};

use super::{
    running::Look,
    store::{self, Known},
};
use crate::{
    error::Result,
    v1::{
        batches,
        connections::Entry,
        objects::{self, Outcome, Pace, Policy},
    },
};

/// What a few files have become.
#[derive(Default)]
struct Change {
    kept: Vec<Known>,
    /// Paths of files that are gone.
    gone: Vec<String>,
    /// Objects that files had before.
    removed: Vec<String>,
    /// Objects whose content is to be processed.
    fresh: Vec<String>,
}

impl Change {
    /// A file that has an object now: `found`, which it had, or got, or which has its content.
    fn take(
        &mut self,
        file: Entry,
        known: Option<Known>,
        found: String,
        outcome: Outcome,
        policy: Policy,
    ) {
        let own = known.map(|known| known.object_id);
        let own = own.filter(|own| !own.is_empty());
        let is_own = match outcome {
            Outcome::Created | Outcome::ReplayedByIdempotencyKey => true,
            // One that was there already. It is not the sync's to remove unless this file brought it before.
            Outcome::Updated | Outcome::Replayed => own.as_ref() == Some(&found),
        };
        // An object of others with this very content is on its way; where content goes into objects of others, this look may
        // have put it there itself before it died.
        let is_fresh = is_own || outcome == Outcome::Updated || policy == Policy::Upsert;
        if is_fresh && !self.fresh.contains(&found) {
            self.fresh.push(found.clone());
        }
        self.removed.extend(own.filter(|own| *own != found));
        let (object_id, borrowed_id) = match is_own {
            true => (found, String::new()),
            false => (String::new(), found),
        };
        self.kept.push(Known {
            path: file.key,
            version: file.version,
            object_id,
            borrowed_id,
        });
    }
}

impl Look<'_> {
    /// Makes the objects of files that are new or changed, and a batch of them.
    pub async fn make(&mut self, files: Vec<(Entry, Option<Known>)>) -> Result<()> {
        let mut asked = Vec::with_capacity(files.len());
        let mut requests = Vec::with_capacity(files.len());
        for (file, known) in files {
            match self.rules.request(self.bucket, &file) {
                Ok(mut request) => {
                    request.idempotency_key = Some(self.name(&file));
                    requests.push(request);
                    asked.push((file, known));
                }
                Err(error) => self.tally.fail(&file.key, &error),
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        let policy = match self.bucket.unique_key {
            Some(_) => Policy::Upsert,
            None => Policy::Insert,
        };
        let pace = Pace::of_work(self.model.sync_concurrency);
        let (app, scope, bucket) = (self.app, &self.scope, self.bucket);
        let made = objects::create_many(app, scope, bucket, requests, policy, pace).await?;
        let mut change = Change::default();
        for ((file, known), made) in asked.into_iter().zip(made) {
            match made {
                Ok((object, outcome)) => {
                    self.tally.synced += 1;
                    self.tally.bytes += i64::try_from(file.size).unwrap_or(i64::MAX);
                    let found = object.object_id.unwrap_or_default();
                    change.take(file, known, found, outcome, policy);
                }
                // The server itself is in trouble: the whole look is tried again.
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => self.tally.fail(&file.key, &error),
            }
        }
        // In this order: what is kept is not looked at again, so it has to be on its way by then.
        self.process(std::mem::take(&mut change.fresh)).await?;
        self.keep(change).await
    }

    /// The name of a state of a file: a look that is done again after a crash finds the object that it made. A file that
    /// became again what it was before is another state: its object may hold what came between. So is what a full look reads.
    fn name(&self, file: &Entry) -> String {
        let (sync_id, modified) = (&self.place.sync_id, file.modified);
        let mut state = format!("{sync_id}\n{}\n{}\n{modified}", file.key, file.version);
        if self.full {
            state += "\n";
            state += store::job_id(&self.job);
        }
        hex::encode(Sha256::digest(state))
    }

    /// Remembers files with their objects, and forgets files and objects that are gone, all of it or nothing.
    async fn keep(&mut self, change: Change) -> Result<()> {
        let (place, job, now) = (
            self.place.clone(),
            self.job.clone(),
            self.app.clock().micros(),
        );
        let freed = self
            .app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    let model = store::hold_for(tx, &place, &job).await?;
                    let (namespace_id, mut freed) = (&place.namespace_id, 0);
                    for file in &change.kept {
                        let borrowed = &file.borrowed_id;
                        let there = borrowed.is_empty()
                            || objects::store::hold(tx, namespace_id, borrowed).await?;
                        if there {
                            store::keep_file(tx, &place, file).await?;
                        } else {
                            // It went since it was found.
                            store::forget_file(tx, &place, &file.path).await?;
                            freed += 1;
                        }
                    }
                    for path in &change.gone {
                        store::forget_file(tx, &place, path).await?;
                    }
                    let (org_id, bucket_id) = (&model.internal_id, &place.bucket_id);
                    let ids = &change.removed;
                    Ok(freed
                        + objects::remove_in(tx, org_id, namespace_id, bucket_id, ids, now).await?)
                })
            })
            .await?;
        // Files without an object: the next look makes them one.
        self.tally.unfinished |= freed > 0;
        self.app.work.notify_one();
        Ok(())
    }

    /// Files that are gone: their objects go where the sync says so.
    pub async fn gone(&mut self, gone: Vec<Known>) -> Result<()> {
        match &self.model.reconcile {
            Some(one) if !one.on_delete => Ok(()),
            _ => self.forget(gone).await,
        }
    }

    /// A file that the filters let in no more.
    pub async fn shut_out(&mut self, file: Option<Known>) -> Result<()> {
        match &self.model.reconcile {
            Some(one) if !one.on_filter_drift => Ok(()),
            _ => self.forget(file.into_iter().collect()).await,
        }
    }

    async fn forget(&mut self, gone: Vec<Known>) -> Result<()> {
        if gone.is_empty() {
            return Ok(());
        }
        self.tally.removed += i64::try_from(gone.len()).unwrap_or(i64::MAX);
        let mut change = Change::default();
        for file in gone {
            change.gone.push(file.path);
            let own = Some(file.object_id);
            change.removed.extend(own.filter(|own| !own.is_empty()));
        }
        self.keep(change).await
    }

    async fn process(&mut self, object_ids: Vec<String>) -> Result<()> {
        if object_ids.is_empty() || self.model.skip_batch_submission {
            return Ok(());
        }
        let collections = &self.model.batch_collection_ids;
        let request = CreateBatchRequest {
            object_ids: Some(object_ids),
            collection_ids: (!collections.is_empty()).then(|| collections.clone()),
            auto_submit: Some(true),
            ..Default::default()
        };
        match batches::create(self.app, &self.scope, &self.place.bucket_id, request).await {
            Ok(batch) => self.tally.batches.extend(batch.batch_id),
            Err(error) if error.is_transient() => return Err(error),
            // The objects are there: a bucket without collections, or an exhausted quota, costs their processing alone.
            Err(error) => {
                let said = format!("the objects are not processed: {}", error.message());
                self.tally.error.get_or_insert(said);
            }
        }
        Ok(())
    }
}
