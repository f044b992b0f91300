//! Taxonomies made of what is there: documents that belong together become a node whose vector is their middle, and so do
//! the clusters of an execution. The nodes lie in a collection of their own, found by a retriever of their own.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use loupe_engine::{
    stage::index_of,
    store::{Reach, WithVectors},
};
use loupe_wire::{
    BYODocument, BYOUpsertRequest, CreateNodeFromDocumentsRequest,
    CreateTaxonomyFromDocumentsRequest, DocumentRef, NamespaceOperation, Object, PromotedNode,
    SkippedDocumentRef, TaxonomyConfig, TaxonomyNodeFromDocumentsResponse, TaxonomyResponse, Value,
    reading,
};
use serde::de::DeserializeOwned;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Caller, Delete, Read, Scope, Write},
    body::Body,
    error::{ApiError, Result, Violation},
    id,
    json::Json,
    openapi::routes,
    v1::{clusters, collections, documents, retrievers},
};

/// The vector of nodes.
const VECTOR: &str = "node";

/// Nodes that one execution of a cluster becomes.
const MOST_NODES: usize = 1_000;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(taxonomy_from_documents))
        .routes(routes!(node_from_documents))
}

/// A node that is to be made.
struct Node {
    label: String,
    vector: Vec<f32>,
    members: Option<i64>,
    /// The cluster that it was.
    cluster_id: Option<String>,
}

/// What documents have in common.
struct Gathered {
    /// The vector that was read, as documents call it.
    name: String,
    middle: Vec<f32>,
    used: i64,
    skipped: Vec<SkippedDocumentRef>,
}

/// The middle of the documents' vectors, each as long as the others.
async fn gather(
    app: &App,
    scope: &Scope<Write>,
    wanted: &[DocumentRef],
    vector: Option<String>,
) -> Result<Gathered> {
    let mut by_collection: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for one in wanted {
        let ids = by_collection.entry(&one.collection_id).or_default();
        ids.push(one.document_id.clone());
    }
    let mut found = BTreeMap::new();
    for (identifier, ids) in by_collection {
        let operation = NamespaceOperation::ReadData;
        let collection = collections::known(app, scope, identifier, operation).await?;
        collections::lifecycle::check_here(&collection)?;
        let reach = Reach {
            namespace_id: scope.namespace_id.clone(),
            collection_ids: vec![collection.id.clone()],
            principal: scope.caller.principal().map(ToOwned::to_owned),
        };
        // A feature's address is another vector in every collection.
        let searchable = collections::searchable(app, &collection);
        let own = vector
            .as_deref()
            .map(|wanted| index_of(&searchable, wanted).unwrap_or_else(|| wanted.to_owned()));
        for document in app.store().get(&reach, &ids, WithVectors::Yes).await? {
            let vectors = Vectors {
                own: own.clone(),
                all: document.vectors,
            };
            found.insert(document.document_id, vectors);
        }
    }
    let mut gathered = Gathered {
        name: vector.unwrap_or_default(),
        middle: Vec::new(),
        used: 0,
        skipped: Vec::new(),
    };
    for one in wanted {
        if let Err(reason) = gathered.add(found.get(&one.document_id)) {
            gathered.skipped.push(SkippedDocumentRef {
                collection_id: Some(one.collection_id.clone()),
                document_id: Some(one.document_id.clone()),
                reason,
            });
        }
    }
    if gathered.used == 0 {
        let msg = match gathered.skipped.first() {
            Some(skipped) => format!("none of the documents can be used: {}", skipped.reason),
            None => "no documents".to_owned(),
        };
        return Err(Violation::body(&["documents"], "value_error", msg, Value::Null).into());
    }
    normalize(&mut gathered.middle);
    Ok(gathered)
}

/// The vectors of a document, and which of them is meant where that was said.
struct Vectors {
    own: Option<String>,
    all: BTreeMap<String, Vec<f32>>,
}

impl Gathered {
    /// Takes a document in, or says why not.
    fn add(&mut self, vectors: Option<&Vectors>) -> Result<(), String> {
        let Vectors { own, all } = vectors.ok_or("there is no such document")?;
        // Without a name the first vector of the first document is meant.
        let known = (!self.name.is_empty()).then_some(&self.name);
        let chosen = match own.as_ref().or(known) {
            Some(name) => all.get_key_value(name),
            None => all.iter().next(),
        };
        let Some((name, vector)) = chosen else {
            return Err(match self.name.as_str() {
                "" => "it has no vector".into(),
                name => format!("it has no vector '{name}'"),
            });
        };
        if self.used > 0 && vector.len() != self.middle.len() {
            let (has, others) = (vector.len(), self.middle.len());
            return Err(format!(
                "its vector has {has} numbers, the others have {others}"
            ));
        }
        let mut vector = vector.clone();
        normalize(&mut vector);
        if self.name.is_empty() {
            self.name.clone_from(name);
        }
        self.middle.resize(vector.len(), 0.0);
        for (sum, number) in self.middle.iter_mut().zip(vector) {
            *sum += number;
        }
        self.used += 1;
        Ok(())
    }
}

fn normalize(vector: &mut [f32]) {
    let length = vector.iter().map(|n| n * n).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|n| *n /= length);
    }
}

fn request<T: DeserializeOwned>(body: Value) -> Result<T> {
    reading::from_value(&body).map_err(ApiError::internal)
}

/// Makes the taxonomy of documents or of an execution, with the collection and the retriever of its nodes.
pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    asked: CreateTaxonomyFromDocumentsRequest,
) -> Result<TaxonomyNodeFromDocumentsResponse> {
    let (name, skipped, used, nodes) = wanted(app, scope, &asked).await?;
    let Some(dimensions) = nodes.first().map(|node| node.vector.len()) else {
        return Err(ApiError::bad_request("", "the execution has no clusters"));
    };
    let taxonomy_name = asked.taxonomy_name.trim().to_owned();
    let collection = json!({
        "collection_name": format!("{taxonomy_name} nodes"),
        "description": format!("the nodes of the taxonomy {taxonomy_name}"),
        "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1", "parameters": {
            "vector_fields": [{"field": "node_vector", "name": VECTOR, "dimensions": dimensions}]}},
    });
    let collection = collections::create(app, scope, request(collection)?).await?;
    let collection_id = collection.collection_id.unwrap_or_default();
    let mut made = Made {
        collection_id,
        ..Default::default()
    };
    let built = build(app, scope, &asked, &name, &nodes, &mut made).await;
    let taxonomy = match built {
        Ok(taxonomy) => taxonomy,
        Err(error) => {
            made.undo(app, scope).await;
            return Err(error);
        }
    };
    let first = made.nodes.first().cloned().unwrap_or_default();
    Ok(TaxonomyNodeFromDocumentsResponse {
        taxonomy_id: taxonomy.taxonomy_id.unwrap_or_default(),
        taxonomy_name: taxonomy.taxonomy_name,
        node_document_id: first.node_document_id,
        node_label: first.node_label,
        enrichment_hint: hint(&target(&asked), &name),
        node_collection_id: made.collection_id,
        vector_name: name,
        vector_dimensions: i64::try_from(dimensions).unwrap_or(i64::MAX),
        documents_used: used,
        documents_skipped: skipped,
        taxonomy_created: true,
        retriever_id: Some(made.retriever_id),
        nodes: if asked.cluster_run.is_some() {
            made.nodes
        } else {
            Vec::new()
        },
    })
}

fn hint(target: &str, vector: &str) -> String {
    format!(
        "apply it with POST /v1/collections/{{collection}}/apply-taxonomy: documents with the vector '{vector}' get the label of \
         the nearest node as '{target}'"
    )
}

/// The field that documents get the label in.
fn target(asked: &CreateTaxonomyFromDocumentsRequest) -> String {
    let own = asked.enrichment_target_field.clone();
    own.unwrap_or_else(|| "taxonomy_label".to_owned())
}

/// The vector's name, what was left out, how many documents were used, and the nodes.
type Wanted = (String, Vec<SkippedDocumentRef>, i64, Vec<Node>);

async fn wanted(
    app: &App,
    scope: &Scope<Write>,
    asked: &CreateTaxonomyFromDocumentsRequest,
) -> Result<Wanted> {
    let fault = |member: &str, msg: &str| -> ApiError {
        Violation::body(&[member], "value_error", msg, Value::Null).into()
    };
    match (&asked.documents, &asked.cluster_run) {
        (Some(_), Some(_)) => Err(fault(
            "cluster_run",
            "send documents or cluster_run, not both",
        )),
        (None, None) => Err(fault("documents", "send documents, or a cluster_run")),
        (Some(documents), None) => {
            let label = asked.node_label.clone();
            let label =
                label.ok_or_else(|| fault("node_label", "a node of documents has a label"))?;
            let gathered = gather(app, scope, documents, asked.vector_name.clone()).await?;
            let node = Node {
                label,
                vector: gathered.middle,
                members: Some(gathered.used),
                cluster_id: None,
            };
            Ok((gathered.name, gathered.skipped, gathered.used, vec![node]))
        }
        (None, Some(run)) => {
            let reading: Scope<Read> =
                Scope::internal(scope.caller.clone(), scope.namespace_id.clone());
            let (feature, mut middles) =
                clusters::middles(app, &reading, &run.cluster_id, &run.run_id).await?;
            middles.truncate(MOST_NODES);
            let used = middles.iter().map(|(cluster, _)| cluster.num_members).sum();
            let nodes = middles.into_iter().map(|(cluster, mut vector)| {
                normalize(&mut vector);
                Node {
                    label: cluster.label.unwrap_or_else(|| cluster.cluster_id.clone()),
                    vector,
                    members: Some(cluster.num_members),
                    cluster_id: Some(cluster.cluster_id),
                }
            });
            let name = asked.vector_name.clone().unwrap_or(feature);
            Ok((name, Vec::new(), used, nodes.collect()))
        }
    }
}

/// What was made so far, so that a failure leaves nothing behind.
#[derive(Default)]
struct Made {
    collection_id: String,
    retriever_id: String,
    nodes: Vec<PromotedNode>,
}

impl Made {
    async fn undo(&self, app: &App, scope: &Scope<Write>) {
        // Whoever may make things need not be allowed to remove any.
        let system = Caller::system(&scope.caller.org_id);
        let scope: Scope<Delete> = Scope::internal(system, scope.namespace_id.clone());
        let mut left = collections::delete(app, &scope, &self.collection_id).await;
        if !self.retriever_id.is_empty() {
            left = left.and(retrievers::delete(app, &scope, &self.retriever_id).await);
        }
        if let Err(error) = left {
            tracing::warn!(%error, collection_id = self.collection_id, "what a taxonomy was to be made of stays behind");
        }
    }
}

async fn build(
    app: &App,
    scope: &Scope<Write>,
    asked: &CreateTaxonomyFromDocumentsRequest,
    vector: &str,
    nodes: &[Node],
    made: &mut Made,
) -> Result<TaxonomyResponse> {
    let (fields, provenance) = (asked.node_fields.as_ref(), asked.provenance.as_ref());
    made.nodes = write(app, scope, &made.collection_id, nodes, fields, provenance).await?;
    let name = asked.taxonomy_name.trim();
    let retriever = json!({
        "retriever_name": format!("{name} nodes"),
        "collection_identifiers": [made.collection_id],
        "input_schema": {"vector": {"type": "array", "required": true}},
        "stages": [{"stage_name": "nearest", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
            "searches": [{"feature_uri": VECTOR, "query": {"input_mode": "vector", "value": "{{INPUT.vector}}"}, "top_k": 10}],
            "final_top_k": 10}}}],
    });
    let retriever = retrievers::create(app, scope, request(retriever)?).await?;
    made.retriever_id = retriever.retriever_id.unwrap_or_default();
    let taxonomy = json!({
        "taxonomy_name": name, "description": asked.description,
        "config": {
            "taxonomy_type": "flat", "retriever_id": made.retriever_id,
            "input_mappings": [{"input_key": "vector", "source_type": "vector", "path": vector}],
            "source_collection": {"collection_id": made.collection_id, "enrichment_fields": [
                {"field_path": "label", "target_field": target(asked)}]},
        },
    });
    super::create(app, scope, request(taxonomy)?).await
}

/// Writes nodes into their collection, all of them or none.
async fn write(
    app: &App,
    scope: &Scope<Write>,
    collection_id: &str,
    nodes: &[Node],
    fields: Option<&Object>,
    provenance: Option<&Object>,
) -> Result<Vec<PromotedNode>> {
    let operation = NamespaceOperation::WriteData;
    let collection = collections::known(app, scope, collection_id, operation).await?;
    let documents = nodes.iter().map(|node| {
        let mut body = fields.cloned().unwrap_or_default();
        body.insert("label".into(), node.label.as_str().into());
        let provenance = provenance.cloned().unwrap_or_default();
        body.insert("provenance".into(), provenance.into());
        body.insert("member_count".into(), json!(node.members));
        if let Some(cluster_id) = &node.cluster_id {
            body.insert("cluster_id".into(), cluster_id.as_str().into());
        }
        let mut vectors = Object::new();
        vectors.insert(VECTOR.into(), json!(node.vector));
        BYODocument {
            document_id: id::new("node_"),
            vectors,
            payload: Some(body),
            ..Default::default()
        }
    });
    let asked = BYOUpsertRequest {
        documents: documents.collect(),
        ..Default::default()
    };
    let checked = documents::checked(app, scope, &collection, asked).await?;
    let written = documents::upsert(app, scope, &collection, checked).await?;
    let promoted = written.document_ids.into_iter().zip(nodes);
    let promoted = promoted.map(|(node_document_id, node)| PromotedNode {
        node_document_id,
        node_label: node.label.clone(),
        cluster_id: node.cluster_id.clone().unwrap_or_default(),
        member_count: node.members,
    });
    Ok(promoted.collect())
}

/// Adds a node to a flat taxonomy whose nodes have vectors.
pub async fn add(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    asked: CreateNodeFromDocumentsRequest,
) -> Result<TaxonomyNodeFromDocumentsResponse> {
    let operation = NamespaceOperation::WriteData;
    let taxonomy = super::find(app, scope, identifier, operation).await?;
    let TaxonomyConfig::Flat(flat) = &taxonomy.config else {
        let message =
            "nodes of a hierarchical taxonomy are its collections: add documents to one of them";
        return Err(ApiError::bad_request("", message));
    };
    let mapped = flat.input_mappings.iter().find_map(|one| {
        let vector = one.source_type == Some(loupe_wire::InputSourceType::Vector);
        one.path.clone().filter(|_| vector)
    });
    let vector = asked.vector_name.clone().or(mapped);
    let gathered = gather(app, scope, &asked.documents, vector).await?;
    let collection_id = flat.source_collection.collection_id.clone();
    let node = Node {
        label: asked.node_label,
        vector: gathered.middle,
        members: Some(gathered.used),
        cluster_id: None,
    };
    let (fields, provenance) = (asked.node_fields.as_ref(), asked.provenance.as_ref());
    let (dimensions, nodes) = (node.vector.len(), [node]);
    let made = write(app, scope, &collection_id, &nodes, fields, provenance).await?;
    let made = made.into_iter().next().unwrap_or_default();
    Ok(TaxonomyNodeFromDocumentsResponse {
        taxonomy_id: taxonomy.taxonomy_id.unwrap_or_default(),
        taxonomy_name: taxonomy.taxonomy_name,
        node_document_id: made.node_document_id,
        node_label: made.node_label,
        node_collection_id: collection_id,
        enrichment_hint: hint("what its enrichment fields name", &gathered.name),
        vector_name: gathered.name,
        vector_dimensions: i64::try_from(dimensions).unwrap_or(i64::MAX),
        documents_used: gathered.used,
        documents_skipped: gathered.skipped,
        taxonomy_created: false,
        retriever_id: taxonomy.retriever_id,
        nodes: Vec::new(),
    })
}

/// Makes a flat taxonomy whose first node is what up to 200 documents have in common, or whose nodes are the clusters of an
/// execution.
#[utoipa::path(post, path = "/v1/taxonomies/from-documents", tag = "taxonomies", request_body = CreateTaxonomyFromDocumentsRequest, responses((status = 200, body = TaxonomyNodeFromDocumentsResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn taxonomy_from_documents(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<CreateTaxonomyFromDocumentsRequest>,
) -> Result<Json<TaxonomyNodeFromDocumentsResponse>> {
    let making = {
        let app = app.clone();
        async move { create(&app, &scope, request).await }
    };
    // What it had made by then would stay behind, neither whole nor undone.
    app.to_its_end(making).await.map(Json)
}

/// Adds a node that is what documents have in common.
#[utoipa::path(post, path = "/v1/taxonomies/{taxonomy_identifier}/nodes/from-documents", tag = "taxonomies", request_body = CreateNodeFromDocumentsRequest, responses((status = 200, body = TaxonomyNodeFromDocumentsResponse)))]
async fn node_from_documents(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Body(request): Body<CreateNodeFromDocumentsRequest>,
) -> Result<Json<TaxonomyNodeFromDocumentsResponse>> {
    add(&app, &scope, &identifier, request).await.map(Json)
}
