//! Making objects: checked, their files kept, then written by the unique key's policy in one transaction.

mod discarding;

use std::collections::BTreeSet;

use futures::StreamExt;
use loupe_wire::{
    BucketResponse, CreateObjectRequest, ObjectResponse, UniqueKeyConfigDefaultPolicy,
    UploadResponse, reading,
};
use serde_json::json;

use discarding::{Drafted, discard, discard_unwritten};

use super::{
    blobs, content_hash,
    fetching::{Pace, Patience},
    payload, schema,
    shelving::is_shelved,
    store, unique_key,
};
use crate::{
    app::App,
    auth::{Scope, Write},
    clock,
    db::{Tx, Undo, check_kept},
    error::{ApiError, Result, Violation},
    id,
    limits::quota,
    v1::{
        buckets::{destinations, sources},
        namespaces::push_event,
        removal::{self, Gone},
    },
};

/// What a create does when the unique key exists.
pub type Policy = UniqueKeyConfigDefaultPolicy;

/// `policy` of the query, else the bucket's, else insert.
pub fn policy(bucket: &BucketResponse, asked: Option<&str>) -> Result<Policy> {
    let Some(asked) = asked else {
        let default = bucket
            .unique_key
            .as_ref()
            .and_then(|key| key.default_policy);
        return Ok(default.unwrap_or_default());
    };
    let policy: Policy = reading::from_value(&asked.into()).map_err(|_| {
        let msg = "policy is insert, update or upsert";
        ApiError::from(Violation::query("policy", "enum", msg, asked.into()))
    })?;
    if bucket.unique_key.is_none() && policy != Policy::Insert {
        return Err(ApiError::bad_request(
            "",
            "this policy needs a bucket with a unique key",
        ));
    }
    Ok(policy)
}

/// An object that was checked and whose files are kept, ready for its transaction, which says when it was made.
struct Draft {
    /// Where its files are.
    folder: String,
    object: ObjectResponse,
    columns: store::Columns,
    skip_duplicates: bool,
    policy: Policy,
}

/// How an object came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Created,
    Updated,
    /// It was there already.
    Replayed,
    ReplayedByIdempotencyKey,
}

/// Checks the request against the bucket and keeps its files; none stay when it is refused.
async fn prepare(
    app: &App,
    scope: &Scope<Write>,
    bucket: &BucketResponse,
    request: CreateObjectRequest,
    policy: Policy,
    confirming: Option<&UploadResponse>,
    patience: Patience,
) -> Result<Draft> {
    let object_id = id::new("obj_");
    let bucket_id = bucket.bucket_id.clone().unwrap_or_default();
    let root = destinations::root(&scope.namespace_id, bucket);
    let folder = blobs::folder(&root, &object_id);
    let reading = blobs::Reading {
        app,
        scope,
        bucket_id: &bucket_id,
        object_id: &object_id,
        folder: &folder,
        confirming,
        patience,
    };
    let draft = draft(reading, bucket, request, policy).await;
    // Others are made in the same transaction.
    let draft = draft.and_then(|draft| {
        check_kept(&(&draft.object, &draft.columns.idempotency_key))?;
        Ok(draft)
    });
    if draft.is_err() {
        discard(app, &folder).await;
    }
    draft
}

async fn draft(
    reading: blobs::Reading<'_>,
    bucket: &BucketResponse,
    mut request: CreateObjectRequest,
    policy: Policy,
) -> Result<Draft> {
    let app = reading.app;
    app.blobs()
        .check_room(app.config().limits.free_disk_bytes)?;
    blobs::settle_sources(&mut request)?;
    let asked = request.blobs.take().unwrap_or_default();
    let kinds: Vec<_> = asked
        .iter()
        .map(|blob| (blob.property.clone(), blob.r#type))
        .collect();
    let mut fields = std::mem::take(&mut request.extra);
    let faults = schema::check(bucket.bucket_schema.as_ref(), &mut fields, &kinds, false);
    if !faults.is_empty() {
        return Err(ApiError::Validation(faults));
    }
    let unique_key = unique_key(bucket, &fields)?;
    let mut sources = Vec::with_capacity(asked.len());
    for (index, blob) in asked.iter().enumerate() {
        sources.push(blobs::read(reading, index, blob).await?);
    }
    let hashes: Vec<String> = sources.iter().map(blobs::hash).collect();
    let content_hash = content_hash(&fields, kinds.iter().map(|(name, _)| name).zip(&hashes));
    let mut kept = Vec::with_capacity(asked.len());
    for (blob, source) in asked.into_iter().zip(sources) {
        kept.push(blobs::keep(app, reading.folder, blob, source).await?);
    }
    let size_bytes = kept
        .iter()
        .filter_map(|blob| blob.details.as_ref()?.size_bytes)
        .sum();
    let object = ObjectResponse {
        object_id: Some(reading.object_id.to_owned()),
        bucket_id: reading.bucket_id.to_owned(),
        key_prefix: request.key_prefix,
        blobs: kept,
        edges: request.edges.unwrap_or_default(),
        extra: fields,
        ..Default::default()
    };
    let columns = store::Columns {
        unique_key,
        content_hash,
        idempotency_key: request.idempotency_key,
        size_bytes,
    };
    Ok(Draft {
        folder: reading.folder.to_owned(),
        object,
        columns,
        skip_duplicates: request.skip_duplicates,
        policy,
    })
}

/// Times that an object is looked for that others make and remove meanwhile.
const LOOKED: usize = 3;

/// Writes the draft by its policy and notes the files that it replaced. What is not written leaves its files to [`discard`].
async fn apply(
    tx: &mut Tx,
    namespace_id: &str,
    draft: &Draft,
    replaced: &mut Vec<String>,
    now: i64,
) -> Result<(ObjectResponse, Outcome)> {
    for _ in 0..LOOKED {
        if let Some(done) = decide(tx, namespace_id, draft, replaced, now).await? {
            return Ok(done);
        }
    }
    let message = "another request makes an object with this unique key: send it again";
    Err(ApiError::conflict("unique_key_conflict", message))
}

/// The same, unless somebody made or removed such an object right now: then it is looked for again.
async fn decide(
    tx: &mut Tx,
    namespace_id: &str,
    draft: &Draft,
    replaced: &mut Vec<String>,
    now: i64,
) -> Result<Option<(ObjectResponse, Outcome)>> {
    if let Some(replayed) = replayed(tx, namespace_id, draft).await? {
        return Ok(Some(replayed));
    }
    let existing = match &draft.columns.unique_key {
        Some(key) => {
            let same = store::Same::UniqueKey(key);
            store::find_same(tx, namespace_id, &draft.object.bucket_id, same).await?
        }
        None => None,
    };
    match (existing, draft.policy) {
        (Some(found), Policy::Insert) => Err(ApiError::conflict(
            "unique_key_conflict",
            "an object with this unique key exists already",
        )
        .with("object_id", found.object_id.unwrap_or_default())),
        (None, Policy::Update) => Err(ApiError::not_found(
            "object",
            draft.columns.unique_key.as_deref().unwrap_or_default(),
        )),
        (Some(found), _) => {
            let Some(found) = hold(tx, namespace_id, draft, found).await? else {
                return Ok(None);
            };
            let files: Vec<String> = blobs::keys(&found).collect();
            let object = over(found, draft, now);
            if !store::update(tx, namespace_id, &object, &draft.columns, now).await? {
                return Ok(None);
            }
            replaced.extend(files);
            Ok(Some((object, Outcome::Updated)))
        }
        (None, _) => {
            // It is made now: lists are in the order of what they show.
            let at = Some(clock::time(now));
            let object = ObjectResponse {
                created_at: at,
                updated_at: at,
                ..draft.object.clone()
            };
            let written = store::insert(tx, namespace_id, &object, &draft.columns, now).await?;
            Ok(written.then_some((object, Outcome::Created)))
        }
    }
}

/// The object that was made of the same before, where the draft asks for that one.
async fn replayed(
    tx: &mut Tx,
    namespace_id: &str,
    draft: &Draft,
) -> Result<Option<(ObjectResponse, Outcome)>> {
    let bucket_id = &draft.object.bucket_id;
    if let Some(key) = &draft.columns.idempotency_key {
        let same = store::Same::Idempotency(key);
        if let Some(found) = store::find_same(tx, namespace_id, bucket_id, same).await? {
            return Ok(Some((found, Outcome::ReplayedByIdempotencyKey)));
        }
    }
    if draft.skip_duplicates {
        let same = store::Same::Hash(&draft.columns.content_hash);
        let found = store::find_same(tx, namespace_id, bucket_id, same).await?;
        return Ok(found.map(|found| (found, Outcome::Replayed)));
    }
    Ok(None)
}

/// The draft in the place of an object that is there.
fn over(found: ObjectResponse, draft: &Draft, now: i64) -> ObjectResponse {
    let object = ObjectResponse {
        object_id: found.object_id,
        created_at: found.created_at,
        updated_at: Some(clock::time(now)),
        ..draft.object.clone()
    };
    // What is soft deleted is taken back by name alone.
    match is_shelved(found.status) {
        true => ObjectResponse {
            status: found.status,
            error: found.error,
            ..object
        },
        false => object,
    }
}

/// The object as it is once it is held: whoever changed it meanwhile is not written over. None if it is another one now.
async fn hold(
    tx: &mut Tx,
    namespace_id: &str,
    draft: &Draft,
    found: ObjectResponse,
) -> Result<Option<ObjectResponse>> {
    let id = found.object_id.as_deref().unwrap_or_default();
    store::hold(tx, namespace_id, id).await?;
    let key = draft.columns.unique_key.as_deref().unwrap_or_default();
    let same = store::Same::UniqueKey(key);
    let now = store::find_same(tx, namespace_id, &draft.object.bucket_id, same).await?;
    Ok(now.filter(|now| now.object_id == found.object_id))
}

/// Creates one object, or updates the one with its unique key. `confirming` is an upload that may be used although its
/// confirmation is still under way.
pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    bucket: &BucketResponse,
    request: CreateObjectRequest,
    policy: Policy,
    confirming: Option<&UploadResponse>,
) -> Result<(ObjectResponse, Outcome)> {
    quota::check_writing(app, &scope.caller.org_id).await?;
    let patience = Patience::of_request(app);
    let draft = prepare(app, scope, bucket, request, policy, confirming, patience).await?;
    let mut made = write(app, scope, vec![draft]).await?;
    made.pop()
        .unwrap_or_else(|| Err(ApiError::internal("an object was neither made nor refused")))
}

type Made = Vec<Result<(ObjectResponse, Outcome)>>;

/// Names of what is to be there once, content and keys, in one order for all, so that no two transactions wait for each other.
/// Nobody waits for a key of one draft alone while that one waits.
fn once(drafts: &[Draft]) -> BTreeSet<String> {
    let is_one = drafts.len() == 1;
    let of = |draft: &Draft| {
        let (bucket_id, columns) = (&draft.object.bucket_id, &draft.columns);
        let content = draft.skip_duplicates.then_some(&columns.content_hash);
        let keys = [&columns.unique_key, &columns.idempotency_key];
        let keys = keys.into_iter().flatten().filter(|_| !is_one);
        let names = content.into_iter().chain(keys);
        let names = names.map(|value| format!("objects {bucket_id} {value}"));
        names.collect::<Vec<_>>()
    };
    drafts.iter().flat_map(of).collect()
}

/// Writes drafts and their events in one transaction; each is made or refused by itself. Files that a draft replaced go
/// by a task of the same transaction, files of a draft that was not written go at once.
async fn write(app: &App, scope: &Scope<Write>, drafts: Vec<Draft>) -> Result<Made> {
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    let drafted: Vec<Drafted> = drafts.iter().map(Drafted::of).collect();
    // One draft is made or refused before anything is written; only a connection may be found gone afterwards.
    let undo = match &*drafts {
        [one] if blobs::sources([&one.object].into_iter()).is_empty() => Undo::Shared,
        _ => Undo::Alone,
    };
    let written = app
        .db()
        .transact(undo, move |tx| {
            Box::pin(async move {
                for name in once(&drafts) {
                    tx.lock(&name).await?;
                }
                let (mut made, mut replaced) = (Vec::with_capacity(drafts.len()), Vec::new());
                for draft in &drafts {
                    match apply(tx, &namespace_id, draft, &mut replaced, now).await {
                        // The database is in trouble, not the draft: nothing of the transaction can stand.
                        Err(error) if !error.is_callers() => return Err(error),
                        outcome => made.push(outcome),
                    }
                }
                push_made(tx, &org_id, &namespace_id, &made, now).await?;
                removal::enqueue(tx, &org_id, &namespace_id, Gone::files(replaced), now).await?;
                let objects = made.iter().flatten().map(|(object, _)| object);
                let sources = blobs::sources(objects);
                sources::hold(tx, (&org_id, &namespace_id), sources, now).await?;
                Ok(made)
            })
        })
        .await;
    let made = match written {
        Ok(made) => made,
        Err(error) => {
            discard_unwritten(app, &scope.namespace_id, drafted).await;
            return Err(error);
        }
    };
    for (outcome, draft) in made.iter().zip(&drafted) {
        if !matches!(outcome, Ok((_, Outcome::Created | Outcome::Updated))) {
            discard(app, &draft.folder).await;
        }
    }
    app.work.notify_one();
    Ok(made)
}

async fn push_made(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    made: &Made,
    now: i64,
) -> Result<()> {
    let of = |wanted: Outcome| {
        made.iter()
            .flatten()
            .filter(move |(_, outcome)| *outcome == wanted)
            .map(|(object, _)| object)
            .collect::<Vec<_>>()
    };
    match of(Outcome::Created).as_slice() {
        [] => {}
        [one] => {
            push_event(
                tx,
                org_id,
                namespace_id,
                "object.created",
                payload(one),
                now,
            )
            .await?
        }
        many => {
            let ids: Vec<_> = many
                .iter()
                .filter_map(|object| object.object_id.clone())
                .collect();
            let payload =
                json!({"bucket_id": many[0].bucket_id, "object_ids": ids, "count": ids.len()});
            push_event(
                tx,
                org_id,
                namespace_id,
                "objects.created.batch",
                payload,
                now,
            )
            .await?;
        }
    }
    for object in of(Outcome::Updated) {
        push_event(
            tx,
            org_id,
            namespace_id,
            "object.updated",
            payload(object),
            now,
        )
        .await?;
    }
    Ok(())
}

/// Creates up to a hundred objects; each answer stands at its request's place.
pub async fn create_many(
    app: &App,
    scope: &Scope<Write>,
    bucket: &BucketResponse,
    requests: Vec<CreateObjectRequest>,
    policy: Policy,
    pace: Pace,
) -> Result<Made> {
    quota::check_writing(app, &scope.caller.org_id).await?;
    let mut slots: Vec<Option<ApiError>> = Vec::with_capacity(requests.len());
    let mut drafts = Vec::new();
    let mut prepared = futures::stream::iter(requests)
        .map(|request| prepare(app, scope, bucket, request, policy, None, pace.patience))
        .buffered(pace.at_once);
    while let Some(prepared) = prepared.next().await {
        match prepared {
            Ok(draft) => {
                drafts.push(draft);
                slots.push(None);
            }
            Err(error) => slots.push(Some(error)),
        }
    }
    let mut made = write(app, scope, drafts).await?.into_iter();
    let missing = || ApiError::internal("an object was neither made nor refused");
    Ok(slots
        .into_iter()
        .map(|refused| match refused {
            Some(error) => Err(error),
            None => made.next().unwrap_or_else(|| Err(missing())),
        })
        .collect())
}
