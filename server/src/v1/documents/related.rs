//! Where a document comes from, what was made of it, and why it is or is not found.

use std::collections::{BTreeMap, HashSet};

use axum::extract::{Path, State};
use loupe_engine::{
    filter::{Filter, Operator},
    store::{Document, ListQuery, Reach, WithVectors},
};
use loupe_wire::{
    DiagnosticHistory, DiagnosticHistoryEntry, DocumentDiagnosticsResponse, DocumentLineage,
    DocumentLineageResponse, DocumentLineageStep, DocumentResponse, NamespaceOperation, Object,
    RecentFailure, RecentFailures, SceneDownloadResponse, Value, VisibilityReason, reading,
};
use utoipa_axum::router::OpenApiRouter;

use super::{Shape, Sight, everywhere, expand::chain, presign, view};
use crate::{
    app::App,
    auth::{Read, Scope},
    error::{ApiError, Result},
    json::Json,
    openapi::routes,
    v1::{collections::COLLECTIONS, objects, removal::Left},
};

/// Documents below one that are answered.
const DESCENDANTS: usize = 1000;
/// Documents whose children are asked for at once.
const PARENTS: usize = 200;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_ancestors))
        .routes(routes!(list_descendants))
        .routes(routes!(get_lineage))
        .routes(routes!(diagnose_document))
        .routes(routes!(download_document))
}

async fn read(app: &App, scope: &Scope<Read>, collection: &str, id: &str) -> Result<Document> {
    let (operation, vectors) = (NamespaceOperation::ReadData, WithVectors::No);
    let (_, document) = super::find(app, scope, collection, id, operation, vectors).await?;
    Ok(document)
}

fn lineage(document: &Document) -> Object {
    let internal = document.payload.get("_internal");
    let lineage = internal.and_then(|internal| internal.get("lineage")?.as_object());
    lineage.cloned().unwrap_or_default()
}

/// The documents that this one was made from, the first one first.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}/documents/{document_id}/ancestors", tag = "documents", responses((status = 200, body = Vec<DocumentResponse>)))]
async fn list_ancestors(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((collection, document_id)): Path<(String, String)>,
) -> Result<Json<Vec<Object>>> {
    let document = read(&app, &scope, &collection, &document_id).await?;
    let mut ids = chain(&document.payload);
    let parent = lineage(&document);
    let parent = parent.get("source_document_id").and_then(Value::as_str);
    ids.extend(
        parent
            .map(ToOwned::to_owned)
            .filter(|parent| !ids.contains(parent)),
    );
    let sight = everywhere(&app, &scope).await?;
    let found = sight.get(&app, &ids, WithVectors::No).await?;
    Ok(Json(shown(&app, found)))
}

fn shown(app: &App, documents: Vec<Document>) -> Vec<Object> {
    let shape = Shape::default();
    let documents = documents.into_iter();
    documents
        .map(|document| view(app, document, &shape))
        .collect()
}

/// The documents that were made from this one, and from those, at most 1,000; the nearest first.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}/documents/{document_id}/descendants", tag = "documents", responses((status = 200, body = Vec<DocumentResponse>)))]
async fn list_descendants(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((collection, document_id)): Path<(String, String)>,
) -> Result<Json<Vec<Object>>> {
    let document = read(&app, &scope, &collection, &document_id).await?;
    let sight = everywhere(&app, &scope).await?;
    let found = descendants(&app, &sight, document.document_id).await?;
    Ok(Json(shown(&app, found)))
}

/// A document that goes, by itself or with the one it was made of.
pub(super) struct Below {
    pub document_id: String,
    /// Its access list.
    pub acl: Option<Value>,
    /// Its files, if it has any.
    pub left: Option<Left>,
}

impl Below {
    pub fn of(namespace_id: &str, document: &Document) -> Self {
        let internal = document.payload.get("_internal");
        Self {
            acl: internal.and_then(|internal| internal.get("_acl").cloned()),
            left: Left::of(namespace_id, document),
            document_id: document.document_id.clone(),
        }
    }
}

/// Documents that were made of these ones, and of those, collection by collection, whatever the caller sees of them.
pub(super) async fn made_of(
    app: &App,
    namespace_id: &str,
    ids: &[String],
) -> Result<BTreeMap<String, Vec<Below>>> {
    let mut made: BTreeMap<String, Vec<Below>> = BTreeMap::new();
    let all = COLLECTIONS.all(app.db(), namespace_id).await?.into_iter();
    let over = all.filter(|record| record.source.collection_ids.is_some());
    let reach = Reach {
        namespace_id: namespace_id.to_owned(),
        collection_ids: over.map(|record| record.id).collect(),
        principal: None,
    };
    if reach.collection_ids.is_empty() {
        return Ok(made);
    }
    let mut seen: HashSet<String> = ids.iter().cloned().collect();
    let mut left: Vec<String> = ids.to_vec();
    while !left.is_empty() {
        let parents = left.split_off(left.len().saturating_sub(PARENTS));
        let mut query = ListQuery {
            filter: Some(made_from(parents)),
            limit: DESCENDANTS,
            ..Default::default()
        };
        loop {
            let page = app.store().list(&reach, query.clone()).await?;
            for document in page.documents {
                if !seen.insert(document.document_id.clone()) {
                    continue;
                }
                left.push(document.document_id.clone());
                let below = Below::of(namespace_id, &document);
                made.entry(document.collection_id).or_default().push(below);
            }
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
    }
    Ok(made)
}

fn made_from(parents: Vec<String>) -> Filter {
    let parents = parents.into_iter().map(Value::from).collect();
    let path = "_internal.lineage.source_document_id";
    Filter::leaf(path, Operator::In, Value::Array(parents))
}

async fn descendants(app: &App, sight: &Sight, root: String) -> Result<Vec<Document>> {
    let (mut found, mut seen, mut level) = (Vec::new(), HashSet::from([root.clone()]), vec![root]);
    while !level.is_empty() && found.len() < DESCENDANTS {
        let query = ListQuery {
            filter: Some(made_from(std::mem::take(&mut level))),
            limit: DESCENDANTS - found.len(),
            ..Default::default()
        };
        let page = sight.list(app, query).await?;
        // A document that names itself as its source ends the walk, not the server.
        let fresh = page.documents.into_iter();
        let fresh: Vec<Document> = fresh
            .filter(|document| seen.insert(document.document_id.clone()))
            .collect();
        level.extend(fresh.iter().map(|document| document.document_id.clone()));
        found.extend(fresh);
    }
    Ok(found)
}

/// Where a document comes from, step by step.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}/documents/{document_id}/lineage", tag = "documents", responses((status = 200, body = DocumentLineageResponse)))]
async fn get_lineage(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((collection, document_id)): Path<(String, String)>,
) -> Result<Json<DocumentLineageResponse>> {
    let document = read(&app, &scope, &collection, &document_id).await?;
    let lineage = lineage(&document);
    let text = |name: &str| lineage.get(name)?.as_str().map(ToOwned::to_owned);
    let steps: Vec<DocumentLineageStep> = lineage
        .get("chain")
        .and_then(|chain| reading::from_value(chain).ok())
        .unwrap_or_default();
    let depth = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let known = !lineage.is_empty();
    Ok(Json(DocumentLineageResponse {
        document_id: document.document_id,
        collection_id: document.collection_id,
        lineage: known.then(|| DocumentLineage {
            root_object_id: text("root_object_id"),
            root_bucket_id: text("root_bucket_id"),
            source_type: text("source_type"),
            source_object_id: text("source_object_id"),
            source_document_id: text("source_document_id"),
            source_collection_id: text("source_collection_id"),
            source_row: None,
            lineage_chain: steps,
        }),
        depth,
        // The step into this document counts too.
        total_steps: depth + 1,
        message: (!known).then(|| "nothing is known of where this document comes from".into()),
    }))
}

/// Why a document is found or not, and what became of its source.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}/documents/{document_id}/diagnostics", tag = "documents", responses((status = 200, body = DocumentDiagnosticsResponse)))]
async fn diagnose_document(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((collection, document_id)): Path<(String, String)>,
) -> Result<Json<DocumentDiagnosticsResponse>> {
    let operation = NamespaceOperation::ReadData;
    let (collection, document) = super::find(
        &app,
        &scope,
        &collection,
        &document_id,
        operation,
        WithVectors::Yes,
    )
    .await?;
    let lineage = lineage(&document);
    let text = |name: &str| lineage.get(name)?.as_str().map(ToOwned::to_owned);
    let (object_id, bucket_id) = (text("root_object_id"), text("root_bucket_id"));
    let failures = match (&bucket_id, &object_id) {
        (Some(bucket_id), Some(object_id)) => failures(&app, &scope, bucket_id, object_id).await?,
        _ => RecentFailures {
            reason: Some("the document was written by a caller: no object stands behind it".into()),
            ..Default::default()
        },
    };
    Ok(Json(DocumentDiagnosticsResponse {
        visibility_reason: VisibilityReason {
            searchable: Some(true),
            reason: visibility(collection.vector_indexes.len(), document.vectors.len()),
            source_object_id: object_id.clone(),
        },
        recent_failures: failures,
        diagnostic_history: history(&document.payload),
        source_object_id: object_id,
        document_id: document.document_id,
        collection_id: document.collection_id,
    }))
}

fn visibility(indexes: usize, vectors: usize) -> String {
    if vectors < indexes {
        return format!(
            "the document has {vectors} of {indexes} vectors: filters and keywords find it, searches by the missing \
             vectors do not"
        );
    }
    "the document is stored with all its vectors".into()
}

async fn failures(
    app: &App,
    scope: &Scope<Read>,
    bucket_id: &str,
    object_id: &str,
) -> Result<RecentFailures> {
    let found = objects::store::find(app.db(), &scope.namespace_id, bucket_id, object_id).await?;
    let Some(object) = found else {
        return Ok(RecentFailures {
            reason: Some("the object that the document was made from is gone".into()),
            ..Default::default()
        });
    };
    if object.status != loupe_wire::TaskStatusEnum::Failed {
        return Ok(RecentFailures {
            reason: Some("the object's last run did not fail".into()),
            ..Default::default()
        });
    }
    let failure = RecentFailure {
        source: "object".into(),
        object_id: Some(object_id.to_owned()),
        status: Some(crate::v1::tasks::name_of(object.status)),
        error: object.error,
    };
    Ok(RecentFailures {
        failures: vec![failure],
        reason: None,
    })
}

/// What happened to the document, as it remembers itself.
fn history(payload: &Object) -> DiagnosticHistory {
    let internal = payload.get("_internal").cloned().unwrap_or_default();
    let entry = |source: &str, at: &Value| DiagnosticHistoryEntry {
        source: source.into(),
        timestamp: at.as_str().map(ToOwned::to_owned),
        detail: None,
    };
    let mut entries = vec![entry("created", &internal["created_at"])];
    let processed = internal["processing"]["history"].as_array();
    entries.extend(
        processed
            .into_iter()
            .flatten()
            .map(|step| DiagnosticHistoryEntry {
                detail: step.as_object().cloned(),
                ..entry("processing", &step["at"])
            }),
    );
    if internal["updated_at"] != internal["created_at"] {
        entries.push(entry("updated", &internal["updated_at"]));
    }
    DiagnosticHistory {
        entries,
        reason: None,
    }
}

/// An address of the document's own part of its file; for a scene, its file and where the scene lies in it.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}/documents/{document_id}/download", tag = "documents", responses((status = 200, body = SceneDownloadResponse)))]
async fn download_document(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((collection, document_id)): Path<(String, String)>,
) -> Result<Json<SceneDownloadResponse>> {
    let document = read(&app, &scope, &collection, &document_id).await?;
    let internal = document
        .payload
        .get("_internal")
        .cloned()
        .unwrap_or_default();
    let Some(mut blob) = own_file(&internal) else {
        return Err(ApiError::not_found(
            "file of the document",
            &document.document_id,
        ));
    };
    presign(&app, &mut blob);
    let url = blob["presigned_url"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    Ok(Json(scene(&document, &internal, url)))
}

/// What was cut out for a document, before the whole that it was made from.
fn own_file(internal: &Value) -> Option<Value> {
    let of = |member: &str, role: &str| {
        let blobs = internal[member].as_array()?;
        blobs.iter().find(|blob| blob["role"] == role).cloned()
    };
    of("document_blobs", "processed")
        .or_else(|| of("document_blobs", "source"))
        .or_else(|| of("source_blobs", "source"))
}

/// The address of a file, and where the document lies in it.
fn scene(document: &Document, internal: &Value, url: String) -> SceneDownloadResponse {
    let at = |name: &str| {
        let own = document.payload.get(name).and_then(Value::as_f64);
        own.or_else(|| internal["metadata"][name].as_f64())
    };
    let (start, end) = (
        at("start_time").unwrap_or(0.0),
        at("end_time").unwrap_or(0.0),
    );
    SceneDownloadResponse {
        // Players read the fragment of an address as the part that is meant.
        download_url: if end > start {
            format!("{url}#t={start},{end}")
        } else {
            url
        },
        cached: true,
        start_time: start,
        end_time: end,
    }
}
