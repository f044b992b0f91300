//! Executions that write what they found into a collection: a copy of each document that knows its source, and stays one copy
//! however often it is found.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use loupe_engine::{
    stage::Plan,
    store::{CollectionSpec, Document, WithVectors, layout},
};
use loupe_wire::{
    BYODocument, BYODocumentACL, BYOUpsertRequest, CollectionResponse,
    DocumentCreateRequestSourceType, ExecuteRetrieverResponse, NamespaceOperation, Object,
    Permission, RetrieverModelOutput, Value,
};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{compile, stage_inputs};
use crate::{
    app::App,
    auth::{Read, Scope, Write, check_level},
    db::Record,
    error::{ApiError, Result},
    v1::{
        collections::{self, lifecycle},
        documents,
    },
};

/// Members of a result that are the system's, or tell of the search and not of the document.
const LEFT_OUT: [&str; 9] = [
    "document_id",
    "collection_id",
    "_internal",
    "document_blobs",
    "expanded",
    "_expanded",
    "score",
    "scores",
    "vectors",
];

/// Where an execution writes.
pub(super) struct Target {
    scope: Scope<Write>,
    collection: Arc<Record<CollectionResponse>>,
}

impl Target {
    /// The collection of this id or name, if the caller may write into it.
    ///
    /// # Errors
    /// 403 for a key that may not, 404 for a collection that is not there, 409 for one that is not active.
    pub async fn find(app: &App, scope: &Scope<Read>, identifier: &str) -> Result<Self> {
        check_level(&scope.caller, Permission::Write)?;
        let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
        let scope: Scope<Write> = Scope::internal(caller, namespace_id);
        let operation = NamespaceOperation::WriteData;
        let collection = collections::known(app, &scope, identifier, operation).await?;
        lifecycle::check_active(&collection)?;
        Ok(Self { scope, collection })
    }

    /// Writes the documents of an answer, and says so in it.
    ///
    /// # Errors
    /// No room for them, documents that the collection's schema refuses, or a store fails.
    pub async fn write(
        &self,
        app: &App,
        retriever: &RetrieverModelOutput,
        answer: &mut ExecuteRetrieverResponse,
    ) -> Result<()> {
        let all = answer.documents.len();
        let documents = self.copies(app, retriever, &answer.documents).await?;
        let left = all - documents.len();
        let request = BYOUpsertRequest {
            documents,
            ..Default::default()
        };
        let checked = documents::checked(app, &self.scope, &self.collection, request).await?;
        let written = documents::upsert(app, &self.scope, &self.collection, checked).await?;
        answer.warnings.extend(written.warnings);
        if left > 0 {
            answer.warnings.push(format!(
                "{left} of the documents were not written: they are of the collection itself, gone, or there twice"
            ));
        }
        let told = json!({
            "collection_id": self.collection.id, "count": written.document_ids.len(),
            "document_ids": written.document_ids,
        });
        answer.written_to = super::cast(&told)?;
        Ok(())
    }

    /// What is written of an answer. Documents of the collection itself are there already; one that is gone by now cannot say
    /// who may see it.
    async fn copies(
        &self,
        app: &App,
        retriever: &RetrieverModelOutput,
        rows: &[Object],
    ) -> Result<Vec<BYODocument>> {
        let rows = rows
            .iter()
            .filter(|row| text(row, "collection_id") != Some(self.collection.id.as_str()));
        let rows: Vec<&Object> = rows.collect();
        let plan = compile(&stage_inputs(&retriever.stages), &retriever.input_schema)?;
        let sources = self.sources(app, retriever, &plan, &rows).await?;
        let spec = collections::spec(app, &self.scope.namespace_id, &self.collection);
        let mut copying = Copying {
            retriever_id: retriever.retriever_id.as_deref().unwrap_or_default(),
            principal: self.scope.caller.principal(),
            spec: &spec,
            multiplies: plan.multiplies(),
            named: HashSet::new(),
        };
        let mut copies = Vec::with_capacity(rows.len());
        for row in rows {
            let source = source_id(row).map(|id| sources.get(id));
            copies.extend(match source {
                None => copying.found(row)?,
                Some(Some(source)) => copying.copy(row, source)?,
                Some(None) => None,
            });
        }
        Ok(copies)
    }

    /// The documents that the rows are of, by their ids, from wherever the retriever reads.
    async fn sources(
        &self,
        app: &App,
        retriever: &RetrieverModelOutput,
        plan: &Plan,
        rows: &[&Object],
    ) -> Result<HashMap<String, Document>> {
        let ids = rows.iter().filter_map(|row| source_id(row));
        let mut ids: Vec<String> = ids.map(str::to_owned).collect();
        ids.sort();
        ids.dedup();
        let namespace_id = &self.scope.namespace_id;
        let named = collections::searched(app, namespace_id, &plan.references()).await?;
        let named = named.iter().map(|one| one.id.clone());
        let collections = retriever.collection_ids.iter().cloned().chain(named);
        let reach = self.scope.reach(collections.collect());
        let found = app.store().get(&reach, &ids, WithVectors::Yes).await?;
        let found = found.into_iter();
        Ok(found.map(|one| (one.document_id.clone(), one)).collect())
    }
}

fn text<'a>(row: &'a Object, member: &str) -> Option<&'a str> {
    row.get(member).and_then(Value::as_str)
}

/// The stored document that a row is of, or that stands for it, as the best one does for its group; pages of the web are of none.
fn source_id(row: &Object) -> Option<&str> {
    text(row, "document_id").filter(|id| layout::point_id(id).is_some())
}

/// What all copies of an answer have in common.
struct Copying<'a> {
    retriever_id: &'a str,
    principal: Option<&'a str>,
    spec: &'a CollectionSpec,
    /// Whether a source may have several rows, on other pages, too.
    multiplies: bool,
    /// Names that are taken, and rows that are there, by name and fields.
    named: HashSet<String>,
}

impl Copying<'_> {
    /// A row that is of no stored document: known again by its id, or by what it says.
    fn found(&mut self, row: &Object) -> Result<Option<BYODocument>> {
        let payload = fields(row);
        let (known, is_several) = match text(row, "document_id") {
            Some(id) => (hash(id.as_bytes()), self.multiplies),
            None => (hash_of(&payload)?, false),
        };
        let name = self.name(&known, &payload, is_several)?;
        Ok(name.map(|document_id| BYODocument {
            document_id,
            payload: Some(payload),
            ..Default::default()
        }))
    }

    fn copy(&mut self, row: &Object, source: &Document) -> Result<Option<BYODocument>> {
        let mut payload = fields(row);
        payload.retain(|name, value| !documents::is_told(source, name, value));
        let mut all = payload.iter();
        let is_plain = all.all(|(name, value)| source.payload.get(name) == Some(value));
        let is_several = self.multiplies && !is_plain;
        let name = self.name(&source.document_id, &payload, is_several)?;
        Ok(name.map(|name| self.made(name, payload, source, is_plain)))
    }

    fn made(
        &self,
        name: String,
        payload: Object,
        source: &Document,
        is_plain: bool,
    ) -> BYODocument {
        let nothing = Value::Null;
        let internal = source.payload.get("_internal").unwrap_or(&nothing);
        let lineage = &internal["lineage"];
        let known = |member: &str| {
            let text = lineage[member].as_str().filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let path = known("path").unwrap_or_else(|| source.document_id.clone());
        let (spec, retriever_id) = (self.spec, self.retriever_id);
        BYODocument {
            document_id: name,
            vectors: self.vectors(source),
            payload: Some(payload),
            // A document of an end user's key is the user's own. What stages added may be of documents that others see.
            acl: match self.principal {
                Some(_) => None,
                None if is_plain => acl(&internal["_acl"]),
                None => Some(of_nobody()),
            },
            source_type: Some(DocumentCreateRequestSourceType::Collection),
            root_object_id: known("root_object_id"),
            root_bucket_id: known("root_bucket_id"),
            source_object_id: known("root_object_id"),
            source_document_id: Some(source.document_id.clone()),
            source_collection_id: Some(source.collection_id.clone()),
            lineage_path: Some(format!("{path}/{}/{retriever_id}", spec.collection_id)),
            lineage_chain: Some(chain(source, internal)),
            ..Default::default()
        }
    }

    /// The id of a copy: the same for the same source, and one by its fields for each of several rows that were made of it. None
    /// for a row that was there already.
    fn name(&mut self, source: &str, payload: &Object, is_several: bool) -> Result<Option<String>> {
        let name = format!("{}/{source}", self.retriever_id);
        let of_row = format!("{name}/{}", hash_of(payload)?);
        if !self.named.insert(of_row.clone()) {
            return Ok(None);
        }
        let is_free = !is_several && self.named.insert(name.clone());
        Ok(Some(if is_free { name } else { of_row }))
    }

    /// The vectors that the collection has an index for.
    fn vectors(&self, source: &Document) -> Object {
        let fits = |name: &str, vector: &[f32]| {
            let mut indexes = self.spec.vectors.iter();
            indexes.any(|index| index.name == name && index.dims == vector.len())
        };
        let vectors = source.vectors.iter();
        let vectors = vectors.filter(|(name, vector)| fits(name, vector));
        vectors
            .map(|(name, vector)| (name.clone(), json!(vector)))
            .collect()
    }
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..16])
}

fn hash_of(payload: &Object) -> Result<String> {
    let bytes = serde_json::to_vec(payload).map_err(ApiError::internal)?;
    Ok(hash(&bytes))
}

/// What a row says of its own, without what tells of the search.
pub fn fields(row: &Object) -> Object {
    let mut fields = row.clone();
    fields.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    fields
}

/// Who sees and changes a document does so with a copy that says nothing more.
fn acl(of_source: &Value) -> Option<BYODocumentACL> {
    let acl = of_source.as_object()?;
    let owner = text(acl, "owner");
    let people = |list: &str| -> Option<Vec<String>> {
        let named = acl.get(list).and_then(Value::as_array);
        let named = named.into_iter().flatten().filter_map(Value::as_str);
        let named = named.chain(owner);
        Some(named.map(str::to_owned).collect())
    };
    Some(BYODocumentACL {
        read: people("read"),
        write: people("write"),
        public: Some(acl.get("public") == Some(&Value::Bool(true))),
    })
}

/// No end user sees it, whoever saw what was there before.
fn of_nobody() -> BYODocumentACL {
    BYODocumentACL {
        read: Some(Vec::new()),
        write: Some(Vec::new()),
        public: Some(false),
    }
}

/// The steps to a copy: those to its source, and the source.
fn chain(source: &Document, internal: &Value) -> Vec<Object> {
    let before = internal["lineage"]["chain"].as_array();
    let last = json!({
        "collection_id": source.collection_id, "document_id": source.document_id,
        "feature_extractor_id": internal["processing"]["history"][0]["extractor"],
        "timestamp": internal["updated_at"],
    });
    let steps = before.into_iter().flatten().chain([&last]);
    steps.filter_map(Value::as_object).cloned().collect()
}
