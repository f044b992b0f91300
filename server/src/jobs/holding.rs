//! Objects in work: what a chunk makes of an object, nobody else makes meanwhile. Documents are written outside of the
//! database's transactions, so two chunks of one object could lie over each other in any order.
//!
//! A hold is a lease for each object. It lasts until the last write of its chunk has returned, even if the chunk was dropped;
//! that of a process that died runs out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use loupe_wire::{CreateBatchRequest, DedupStrategy};
use tokio::sync::oneshot;

use super::{Claim, lease, store};
use crate::{
    app::App,
    args,
    auth::{Caller, Scope, Write},
    db::{Tx, verbatim},
    error::{ApiError, Result},
    id,
    v1::batches,
};

crate::sql! {
    const RENEW = "UPDATE leases SET until = $2 WHERE owner = $1";
    const LET_GO = "DELETE FROM leases WHERE owner = $1";
    const WRITING = "SELECT CAST(COUNT(*) AS BIGINT) FROM leases WHERE name LIKE $1 ESCAPE '!' AND until >= $2";
    // What waits for others was not tried.
    const POSTPONE = "UPDATE tasks SET status = 'QUEUED', updated_at = $4, run_after = $5, attempt = attempt - 1, lease_owner = NULL, lease_until = NULL WHERE task_id = $1 AND lease_owner = $2 AND attempt = $3 AND status = 'PROCESSING'";
}

/// The code of what a chunk ends in that finds one of its objects held; no caller ever sees it.
const BUSY: &str = "objects_in_work";

/// The lease of whoever has an object in work, or a document that everything else was made of.
pub fn object_lease(namespace_id: &str, object_id: &str) -> String {
    format!("object:{namespace_id}:{object_id}")
}

/// The lease of a write on behalf of a task.
fn write_lease(task_id: &str, holder: &str) -> String {
    format!("write:{task_id}:{holder}")
}

/// Puts work back that waits for somebody else: no try of it.
///
/// # Errors
/// The database fails.
pub async fn postpone(app: &App, claim: &Claim, pause: Duration) -> Result<()> {
    let (claim, now) = (claim.clone(), app.clock().micros());
    let after = now + i64::try_from(pause.as_micros()).unwrap_or(0);
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let args = args![&claim.task_id, &claim.owner, claim.attempt, now, after];
                tx.run(POSTPONE, args).await.map(drop)
            })
        })
        .await
}

/// Lets go of all that somebody holds; answers how many objects that were.
///
/// # Errors
/// The database fails.
pub async fn let_go(tx: &mut Tx, holder: &str) -> Result<u64> {
    tx.run(LET_GO, args![holder]).await
}

/// Whether something is being written on behalf of a task right now.
///
/// # Errors
/// The database does not answer.
pub async fn is_writing(app: &App, task_id: &str) -> Result<bool> {
    let names = format!("{}%", verbatim(&write_lease(task_id, "")));
    let args = args![names, app.clock().micros()];
    Ok(app.db().number(WRITING, args).await? > 0)
}

/// Which documents are written: of these objects, in a collection, by a batch.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub namespace_id: String,
    pub collection_id: String,
    pub batch_id: String,
    pub object_ids: Vec<String>,
}

/// The objects of a chunk, held.
#[derive(Clone)]
pub(super) struct Holding(Arc<Held>);

struct Held {
    app: App,
    grip: Grip,
    /// Where the objects are that are processed anew should their hold be lost.
    bucket_id: String,
    /// The end of the chunk has let go of them.
    is_over: AtomicBool,
}

/// By which a transaction knows the hold: it may outlast whoever began it.
#[derive(Clone)]
struct Grip {
    claim: Claim,
    holder: String,
    objects: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_over.load(Ordering::Acquire) || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (app, holder) = (self.app.clone(), std::mem::take(&mut self.grip.holder));
        self.app.spawn(async move {
            let gone = app
                .db()
                .write(move |tx| Box::pin(async move { let_go(tx, &holder).await }));
            if let Err(error) = gone.await {
                tracing::warn!(%error, "objects of a chunk could not be let go; their leases will run out");
            }
        });
    }
}

impl Holding {
    /// Takes the objects, all or none; none while another chunk has one of them.
    pub async fn take(
        app: &App,
        claim: &Claim,
        (namespace_id, bucket_id): (&str, &str),
        object_ids: &[String],
    ) -> Result<Option<Self>> {
        let names = object_ids.iter().map(|id| object_lease(namespace_id, id));
        // In one order: of two that overlap one waits, never both.
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.dedup();
        let holding = Self(Arc::new(Held {
            app: app.clone(),
            grip: Grip {
                claim: claim.clone(),
                holder: id::new("holder_"),
                objects: names.len() as u64,
            },
            bucket_id: bucket_id.to_owned(),
            is_over: AtomicBool::new(false),
        }));
        let (holder, now) = (holding.holder().to_owned(), app.clock().micros());
        let until = now + lease(app);
        let taken = app.db().write(move |tx| {
            Box::pin(async move {
                for name in &names {
                    if !store::hold_lease(tx, name, &holder, now, until).await? {
                        let message = "another chunk has an object of this one in work";
                        return Err(ApiError::conflict(BUSY, message));
                    }
                }
                Ok(())
            })
        });
        match taken.await {
            Ok(()) => Ok(Some(holding)),
            Err(error) if error.has_code(BUSY) => {
                holding.over();
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Who holds the objects: the end of the chunk lets go of them.
    pub fn holder(&self) -> &str {
        &self.0.grip.holder
    }

    /// Notes that nothing is held any more.
    pub fn over(&self) {
        self.0.is_over.store(true, Ordering::Release);
    }

    /// Renews the hold; ends when it is lost.
    pub async fn lost(&self) -> ApiError {
        let app = &self.0.app;
        let pause = Duration::from_micros(u64::try_from(lease(app) / 3).unwrap_or(1_000_000));
        loop {
            tokio::time::sleep(pause).await;
            let grip = self.0.grip.clone();
            let until = app.clock().micros() + lease(app);
            let renewed = app
                .db()
                .write(move |tx| Box::pin(async move { grip.renew(tx, until).await }));
            match renewed.await {
                Ok(true) => {}
                Ok(false) => return taken_over(),
                // The database may be back before the leases run out.
                Err(error) => tracing::warn!(%error, "objects in work could not be renewed"),
            }
        }
    }

    /// Writes documents. What is written is noted before and lasts on even if the chunk is dropped meanwhile: nobody else
    /// writes of these objects until it has returned.
    pub async fn write(
        &self,
        written: Written,
        write: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Result<()> {
        self.begin(written.clone()).await?;
        let (holding, (done, ended)) = (self.clone(), oneshot::channel());
        self.0.app.spawn(async move {
            let outcome = write.await;
            let checked = holding.end(written).await;
            // Who waited for it may be gone.
            let _ = done.send(outcome.and(checked));
        });
        ended.await.map_err(ApiError::internal)?
    }

    /// Notes what is going to be written, if the chunk and its objects are held still.
    async fn begin(&self, written: Written) -> Result<()> {
        let (app, grip) = (&self.0.app, self.0.grip.clone());
        let now = app.clock().micros();
        let until = now + lease(app);
        app.db()
            .write(move |tx| {
                Box::pin(async move {
                    // Locks the chunk: who cancels it sees that something is written, or this that it was canceled.
                    if !store::renew(tx, &grip.claim, until).await? {
                        return Err(ApiError::conflict("", "the lease of this chunk was lost"));
                    }
                    if !grip.renew(tx, until).await? {
                        return Err(taken_over());
                    }
                    for object_id in &written.object_ids {
                        let (namespace_id, collection_id) =
                            (&written.namespace_id, &written.collection_id);
                        let place = (namespace_id.as_str(), collection_id.as_str());
                        batches::fillings::begin(tx, place, &written.batch_id, object_id).await?;
                    }
                    let name = grip.write_lease();
                    store::hold_lease(tx, &name, &grip.holder, now, until).await?;
                    Ok(())
                })
            })
            .await
    }

    /// After a write. A process that slept through its leases may have written over what another one made meanwhile: then
    /// nobody knows what the collection holds, and the objects are processed again.
    async fn end(&self, written: Written) -> Result<()> {
        let (app, grip) = (&self.0.app, self.0.grip.clone());
        let until = app.clock().micros() + lease(app);
        let noted = written.clone();
        let is_held = app
            .db()
            .write(move |tx| {
                Box::pin(async move {
                    store::drop_lease(tx, &grip.write_lease(), &grip.holder).await?;
                    if grip.renew(tx, until).await? {
                        return Ok(true);
                    }
                    for object_id in &noted.object_ids {
                        let (namespace_id, collection_id) =
                            (&noted.namespace_id, &noted.collection_id);
                        let place = (namespace_id.as_str(), collection_id.as_str());
                        batches::fillings::begin(tx, place, "", object_id).await?;
                    }
                    Ok(false)
                })
            })
            .await?;
        if is_held {
            return Ok(());
        }
        tracing::warn!(
            collection_id = written.collection_id,
            objects = written.object_ids.len(),
            "objects were written after their leases had run out: they are processed again"
        );
        self.again(written).await?;
        Err(taken_over())
    }

    /// Puts objects into a batch of their own. Documents that others were made of have no bucket: their next batch does it.
    async fn again(&self, written: Written) -> Result<()> {
        let Held {
            app,
            grip,
            bucket_id,
            ..
        } = &*self.0;
        if bucket_id.is_empty() {
            return Ok(());
        }
        let caller = Caller::system(&grip.claim.org_id);
        let scope: Scope<Write> = Scope::internal(caller, written.namespace_id);
        // Whoever took the objects over may end after this and note them as done, though older content came on top.
        let request = CreateBatchRequest {
            object_ids: Some(written.object_ids),
            auto_submit: Some(true),
            dedup_strategy: Some(DedupStrategy::Force),
            ..Default::default()
        };
        match batches::create(app, &scope, bucket_id, request).await {
            // An object is gone, or no collection is left to fill.
            Err(error) if error.is_callers() => Ok(()),
            made => made.map(drop),
        }
    }
}

impl Grip {
    fn write_lease(&self) -> String {
        let task_id = self.claim.parent_id.as_deref().unwrap_or_default();
        write_lease(task_id, &self.holder)
    }

    /// Whether all objects are held still; they are for as long again.
    async fn renew(&self, tx: &mut Tx, until: i64) -> Result<bool> {
        let renewed = tx.run(RENEW, args![&self.holder, until]).await?;
        Ok(renewed >= self.objects)
    }
}

fn taken_over() -> ApiError {
    ApiError::unavailable("", "objects of this chunk were taken over")
}
