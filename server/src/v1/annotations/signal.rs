//! The signal of annotations: a document for each annotation whose document is there, in a collection that every namespace
//! has and nobody makes or writes to. Retrievers read it, filter it and link to it as to any other.
//!
//! What changes is noted in the transaction that changes it, mirrored at once, and once more a while later from what the
//! database has by then: after a process that died, or two that wrote at once, the signal ends right.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Arc, LazyLock},
};

use loupe_engine::{
    filter::{Filter, Operator},
    store::{CollectionSpec, Document, Reach, Selection, WithVectors, document_id},
};
use loupe_wire::{
    AnnotationResponse, CollectionResponse, FeatureExtractorConfigOutput, Object, SourceConfig,
    SourceType, Value,
};
use serde_json::json;

use super::store::NEVER;
use crate::{
    app::App,
    args,
    db::{Arg, Json, Record, Tx},
    error::{ApiError, Result},
    id, jobs,
    v1::{
        collections::{COLLECTIONS, lifecycle},
        documents::keywords,
    },
};

/// What the collection is called, and its id, in every namespace.
pub const NAME: &str = "loupe_document_annotations";
pub const SIGNAL: &str = "col_loupe_document_annotations";

/// Members of the mirrored documents that say what was annotated: `document_id` is their own.
const OF_DOCUMENT: &str = "annotated_document_id";
const OF_COLLECTION: &str = "annotated_collection_id";

/// How long processes have to mirror what they noted, in microseconds: they do it at once.
const SETTLED: i64 = 10_000_000;

/// Annotations that are looked at together, and ids of one statement.
const PAGE: usize = 500;
const LOOKED_UP: usize = 100;

/// The lease of whoever looks at what was noted, and its seconds.
const LEASE: &str = "annotation_signals";
const LEASE_SECONDS: u64 = 60;

crate::sql! {
    const NOTE = "INSERT INTO annotation_signals (annotation_id, namespace_id, noted_at) VALUES ($1, $2, $3) ON CONFLICT (annotation_id) DO UPDATE SET noted_at = excluded.noted_at";
    // A hundred ids at once: fewer are filled up with the last one.
    const NOTE_DOCUMENTS = "INSERT INTO annotation_signals (annotation_id, namespace_id, noted_at) SELECT annotation_id, namespace_id, $2 FROM annotations WHERE namespace_id = $1 AND valid_to = $3 AND document_id IN ($4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69, $70, $71, $72, $73, $74, $75, $76, $77, $78, $79, $80, $81, $82, $83, $84, $85, $86, $87, $88, $89, $90, $91, $92, $93, $94, $95, $96, $97, $98, $99, $100, $101, $102, $103) ON CONFLICT (annotation_id) DO UPDATE SET noted_at = excluded.noted_at";
    // The owner is no key here: SQLite would look at all that the owner has, where the ids lead to each.
    const CURRENT = "SELECT annotation_id, data FROM annotations WHERE namespace_id || '' = $1 AND valid_to = $2 AND annotation_id IN ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69, $70, $71, $72, $73, $74, $75, $76, $77, $78, $79, $80, $81, $82, $83, $84, $85, $86, $87, $88, $89, $90, $91, $92, $93, $94, $95, $96, $97, $98, $99, $100, $101, $102)";
    const ANY = "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT annotation_id FROM annotations WHERE namespace_id = $1 LIMIT 1) found";
    // Of every namespace: what a process left is found by whoever looks.
    const NOTED = "SELECT s.namespace_id, s.annotation_id, s.noted_at, a.data FROM annotation_signals s LEFT JOIN annotations a ON a.namespace_id = s.namespace_id AND a.annotation_id = s.annotation_id AND a.valid_to = $2 WHERE s.noted_at <= $1 ORDER BY s.noted_at, s.annotation_id LIMIT $3";
    // What was noted again meanwhile stays.
    const FORGET = "DELETE FROM annotation_signals WHERE namespace_id = $1 AND annotation_id = $2 AND noted_at = $3";
    const POSTPONE = "UPDATE annotation_signals SET noted_at = $4 WHERE namespace_id = $1 AND annotation_id = $2 AND noted_at = $3";
}

/// The collection as everybody reads it.
static COLLECTION: LazyLock<Arc<Record<CollectionResponse>>> = LazyLock::new(|| {
    Arc::new(Record {
        id: SIGNAL.into(),
        name: NAME.into(),
        created_at: 0,
        updated_at: 0,
        data: Json(collection()),
    })
});

fn collection() -> CollectionResponse {
    CollectionResponse {
        collection_id: Some(SIGNAL.into()),
        collection_name: NAME.into(),
        description: Some("A document for each annotation, kept by the server".into()),
        source: SourceConfig {
            r#type: SourceType::Signals,
            ..Default::default()
        },
        feature_extractor: FeatureExtractorConfigOutput {
            feature_extractor_name: "passthrough_extractor".into(),
            version: "v1".into(),
            feature_extractor_id: "passthrough_extractor_v1".into(),
            ..Default::default()
        },
        ..Default::default()
    }
}

/// The signal, if it is what the id or name means.
pub fn named(identifier: &str) -> Option<Arc<Record<CollectionResponse>>> {
    matches!(identifier, NAME | SIGNAL).then(|| COLLECTION.clone())
}

fn reach(namespace_id: &str) -> Reach {
    Reach {
        namespace_id: namespace_id.to_owned(),
        collection_ids: vec![SIGNAL.to_owned()],
        principal: None,
    }
}

/// Annotations of a namespace that were changed, and what they are of: nothing is known of that where one is gone.
#[derive(Debug, Default)]
pub(super) struct Changed(BTreeMap<String, Option<String>>);

impl Changed {
    pub(super) fn current(&mut self, annotation: &AnnotationResponse) {
        let id = annotation.annotation_id.clone().unwrap_or_default();
        self.0.insert(id, Some(annotation.document_id.clone()));
    }

    pub(super) fn gone(&mut self, id: String) {
        self.0.entry(id).or_default();
    }
}

/// Notes that an annotation changes, in the transaction of the change.
pub(super) async fn note(tx: &mut Tx, annotation: &AnnotationResponse, now: i64) -> Result<()> {
    let id = annotation.annotation_id.as_deref().unwrap_or_default();
    tx.run(NOTE, args![id, &annotation.namespace_id, now])
        .await?;
    Ok(())
}

/// Notes the annotations of documents that are being removed; answers how many they are.
///
/// # Errors
/// The database fails.
pub async fn note_documents(
    tx: &mut Tx,
    namespace_id: &str,
    document_ids: &[String],
    now: i64,
) -> Result<u64> {
    let mut noted = 0;
    for some in document_ids.chunks(LOOKED_UP) {
        let last = some.last().into_iter().cycle();
        let mut args = args![namespace_id, now, NEVER];
        args.extend(some.iter().chain(last).take(LOOKED_UP).map(Arg::from));
        noted += tx.run(NOTE_DOCUMENTS, args).await?;
    }
    Ok(noted)
}

/// As [`note_documents`], before documents are removed by work of the server; whether any of them is annotated.
///
/// # Errors
/// The database fails.
pub async fn note_removal(app: &App, namespace_id: &str, document_ids: &[String]) -> Result<bool> {
    if document_ids.is_empty() || app.db().number(ANY, args![namespace_id]).await? == 0 {
        return Ok(false);
    }
    let (namespace_id, ids) = (namespace_id.to_owned(), document_ids.to_vec());
    let now = app.clock().micros();
    let noted = app
        .db()
        .write(move |tx| {
            Box::pin(async move { note_documents(tx, &namespace_id, &ids, now).await })
        })
        .await?;
    Ok(noted > 0)
}

/// Notes the annotations of documents that work of the server has written: one that was gone may be there again.
///
/// # Errors
/// The database fails.
pub async fn note_return(app: &App, namespace_id: &str, document_ids: &[String]) -> Result<()> {
    note_removal(app, namespace_id, document_ids)
        .await
        .map(drop)
}

/// Takes the annotations of documents that are gone out of the signal.
///
/// # Errors
/// The store fails; safe to repeat.
pub async fn forget_documents(app: &App, namespace_id: &str, ids: &[String]) -> Result<()> {
    for some in ids.chunks(PAGE) {
        forget(app, namespace_id, OF_DOCUMENT, json!(some)).await?;
    }
    Ok(())
}

/// Takes the annotations of a collection that is gone out of the signal.
///
/// # Errors
/// The store fails; safe to repeat.
pub async fn forget_collection(app: &App, namespace_id: &str, id: &str) -> Result<()> {
    forget(app, namespace_id, OF_COLLECTION, json!([id])).await
}

async fn forget(app: &App, namespace_id: &str, member: &str, values: Value) -> Result<()> {
    let filter = Filter::leaf(member, Operator::In, values);
    let which = Selection::Matching(Some(filter));
    app.store().delete(&reach(namespace_id), which).await?;
    Ok(())
}

/// Mirrors what was just changed. What fails here was noted, and is mirrored later.
pub(super) async fn mirror(app: &App, namespace_id: &str, changed: Changed) {
    if let Err(error) = apply(app, namespace_id, changed).await {
        tracing::warn!(%error, namespace_id, "annotations are not mirrored yet");
    }
}

/// In one turn with whoever else mirrors these annotations, and with whoever writes or removes what they are of: what the database
/// has then is mirrored, so that what was deleted meanwhile does not come back.
async fn apply(app: &App, namespace_id: &str, changed: Changed) -> Result<()> {
    let mirrors = changed.0.keys().map(|id| mirror_id(id));
    let mirrors: Vec<String> = mirrors.collect();
    let turn = mirrors.iter().chain(changed.0.values().flatten());
    let _turn = app.writers.turn(turn).await;
    let ids: Vec<&String> = changed.0.keys().collect();
    let mut current = BTreeMap::new();
    for some in ids.chunks(LOOKED_UP) {
        let last = some.last().into_iter().cycle();
        let mut args = args![namespace_id, NEVER];
        args.extend(
            some.iter()
                .chain(last)
                .take(LOOKED_UP)
                .map(|id| Arg::from(*id)),
        );
        let rows: Vec<(String, Json<AnnotationResponse>)> = app.db().all(CURRENT, args).await?;
        current.extend(rows.into_iter().map(|(id, data)| (id, data.0)));
    }
    let is_gone = |id: &&String| !current.contains_key(*id);
    let mut gone: BTreeSet<String> = changed.0.keys().filter(is_gone).cloned().collect();
    let living = living(app, namespace_id, &current).await?;
    let mut documents = Vec::new();
    for (id, annotation) in current {
        if living.contains(&id) {
            documents.push(document(&id, annotation)?);
        } else {
            gone.insert(id);
        }
    }
    if !documents.is_empty() {
        let spec = CollectionSpec {
            namespace_id: namespace_id.to_owned(),
            collection_id: SIGNAL.to_owned(),
            vectors: Vec::new(),
        };
        app.store().upsert(&spec, documents).await?;
    }
    if !gone.is_empty() {
        let ids = gone.iter().map(|id| mirror_id(id)).collect();
        app.store()
            .delete(&reach(namespace_id), Selection::Ids(ids))
            .await?;
    }
    Ok(())
}

/// Those whose document is there, or put away with its collection.
async fn living(
    app: &App,
    namespace_id: &str,
    annotations: &BTreeMap<String, AnnotationResponse>,
) -> Result<HashSet<String>> {
    if annotations.is_empty() {
        return Ok(HashSet::new());
    }
    let all = COLLECTIONS.all(app.db(), namespace_id).await?;
    let (away, here): (Vec<_>, Vec<_>) = all.iter().partition(|one| lifecycle::is_away(one));
    let reach = Reach {
        namespace_id: namespace_id.to_owned(),
        collection_ids: here.iter().map(|one| one.id.clone()).collect(),
        principal: None,
    };
    let ids: BTreeSet<&String> = annotations.values().map(|one| &one.document_id).collect();
    let ids: Vec<String> = ids.into_iter().cloned().collect();
    let found = app.store().get(&reach, &ids, WithVectors::No).await?;
    let found: HashSet<String> = found.into_iter().map(|one| one.document_id).collect();
    let is_living = |annotation: &AnnotationResponse| {
        let home = annotation.collection_id.as_deref().unwrap_or_default();
        found.contains(&annotation.document_id) || away.iter().any(|one| one.id == home)
    };
    let living = annotations.iter().filter(|(_, one)| is_living(one));
    Ok(living.map(|(id, _)| id.clone()).collect())
}

/// The id of the document that mirrors an annotation.
fn mirror_id(annotation_id: &str) -> String {
    document_id(SIGNAL, annotation_id, "")
}

/// The members of an annotation, without its history, as a document.
fn document(id: &str, annotation: AnnotationResponse) -> Result<Document> {
    let document_id = mirror_id(id);
    let internal = json!({
        "namespace_id": annotation.namespace_id, "document_id": document_id, "collection_id": SIGNAL,
        "created_at": annotation.created_at, "updated_at": annotation.updated_at,
        "lineage": {
            "source_type": "signal", "source_document_id": annotation.document_id,
            "source_collection_id": annotation.collection_id,
        },
    });
    let members = serde_json::to_value(annotation).map_err(ApiError::internal)?;
    let mut payload = Object::new();
    if let Value::Object(members) = members {
        // What was left out is no member of the document: filters ask whether one is there.
        let is_said = |value: &Value| {
            !value.is_null() && value.as_object().is_none_or(|members| !members.is_empty())
        };
        for (name, value) in members.into_iter().filter(|(_, value)| is_said(value)) {
            let name = match name.as_str() {
                "revisions" | "namespace_id" => continue,
                "document_id" => OF_DOCUMENT.to_owned(),
                "collection_id" => OF_COLLECTION.to_owned(),
                _ => name,
            };
            payload.insert(name, value);
        }
    }
    let text = keywords(&payload);
    payload.insert("_internal".into(), internal);
    Ok(Document {
        document_id,
        collection_id: SIGNAL.to_owned(),
        payload: payload.into(),
        keywords: Some(text),
        ..Default::default()
    })
}

/// Namespace, annotation, when it was noted, and what it is now.
type Noted = (String, String, i64, Option<Json<AnnotationResponse>>);

async fn noted(app: &App, until: i64) -> Result<Vec<Noted>> {
    app.db().all(NOTED, args![until, NEVER, PAGE]).await
}

/// Looks once more at what was noted a while ago.
///
/// # Errors
/// The database or the store does not answer; what was noted is kept.
pub async fn settle(app: &App) -> Result<()> {
    let until = app.clock().micros() - SETTLED;
    if noted(app, until).await?.is_empty() {
        return Ok(());
    }
    let owner = id::new("signals_");
    let settled = settle_held(app, until, &owner).await;
    jobs::drop_lease(app, LEASE, &owner).await?;
    settled
}

async fn settle_held(app: &App, until: i64, owner: &str) -> Result<()> {
    while !app.stop.is_cancelled() && jobs::hold_lease(app, LEASE, owner, LEASE_SECONDS).await? {
        let rows = noted(app, until).await?;
        if rows.is_empty() {
            break;
        }
        let mut changes: BTreeMap<String, Changed> = BTreeMap::new();
        let mut looked_at = Vec::with_capacity(rows.len());
        for (namespace_id, id, noted_at, annotation) in rows {
            let changed = changes.entry(namespace_id.clone()).or_default();
            looked_at.push((namespace_id, id.clone(), noted_at));
            match annotation {
                Some(annotation) => changed.current(&annotation.0),
                None => changed.gone(id),
            }
        }
        // One namespace that cannot be written keeps no other from it.
        let mut failed = HashSet::new();
        for (namespace_id, changed) in changes {
            if let Err(error) = apply(app, &namespace_id, changed).await {
                tracing::warn!(%error, namespace_id, "annotations are not mirrored yet");
                failed.insert(namespace_id);
            }
        }
        app.store().flush().await?;
        end(app, looked_at, failed).await?;
    }
    Ok(())
}

/// Forgets what was mirrored; what could not be is looked at behind all others.
async fn end(
    app: &App,
    looked_at: Vec<(String, String, i64)>,
    failed: HashSet<String>,
) -> Result<()> {
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for (namespace_id, id, noted_at) in &looked_at {
                    if failed.contains(namespace_id) {
                        tx.run(POSTPONE, args![namespace_id, id, *noted_at, now])
                            .await?;
                    } else {
                        tx.run(FORGET, args![namespace_id, id, *noted_at]).await?;
                    }
                }
                Ok(())
            })
        })
        .await
}
