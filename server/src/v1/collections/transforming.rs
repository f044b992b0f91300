//! Collections whose documents are made of what a retriever finds for each object or document of their source.
//!
//! The retriever runs for every one of them each time that they are processed, changed or not: what it finds changes without
//! them. A result is made into documents under ids of its source and its own, so that the same results are the same documents
//! again, and what is no longer found goes. See docs/collections.md.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use loupe_engine::{
    extract::Dropped,
    filter::value_at,
    ingest::{BlobInput, NO_INPUT, ObjectInput, fields},
    stage::Outcome,
};
use loupe_wire::{
    CollectionResponse, NamespaceOperation, Object, ResourceType, RetrieverModelOutput,
    RetrieverTransformConfigInput, RetrieverTransformConfigOutput, SourceConfig, SourceType,
    StageConfigOutput, Value,
};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{
    COLLECTIONS,
    enriching::{self, put, value_of},
    searching::Ready,
};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    error::{ApiError, Result, Violation},
    v1::{
        documents,
        retrievers::{self, RETRIEVERS},
    },
};

/// The member of a collection that this is about.
const MEMBER: &str = "retriever_transform";
/// Results for one object or document: a page, as large as they are.
const MOST: usize = 500;
/// What is noted of an object that has more.
const BEYOND: &str = "results after the first 500";
/// What is noted of an object of which two results are one.
const TWICE: &str = "results that are there twice";
/// Fields that a result is known by.
const MAX_UNIQUE: usize = 10;
/// How long one search may take, whatever its retriever says.
const LONGEST_MS: u64 = 30_000;

fn fault(path: &[&str], kind: &str, msg: impl Into<String>, input: Value) -> ApiError {
    Violation::body(&[&[MEMBER][..], path].concat(), kind, msg, input).into()
}

/// Checks what a new collection of this name is to be made by, and puts the id in place of the retriever's name.
///
/// # Errors
/// 404 for a retriever that is not there, 403 for what is out of the key's scopes, the 422 list for a source that nothing is
/// processed of, for a retriever that reads the collection itself, and for inputs and fields that cannot be.
pub(super) async fn check(
    app: &App,
    scope: &Scope<Write>,
    config: Option<RetrieverTransformConfigInput>,
    (name, source): (&str, &SourceConfig),
) -> Result<Option<RetrieverTransformConfigOutput>> {
    let Some(config) = config else {
        return Ok(None);
    };
    if !matches!(source.r#type, SourceType::Bucket | SourceType::Collection) {
        let msg = "nothing is processed into this collection: its source has to be buckets or collections";
        return Err(fault(&[], "value_error", msg, Value::Null));
    }
    let retriever = wanted(app, scope, &config, source).await?;
    if reads(app, &scope.namespace_id, &retriever, &[name]).await? {
        let msg = "the retriever reads the collection of this name: it would find what it has made";
        return Err(fault(&["retriever_id"], "value_error", msg, name.into()));
    }
    if !config.input_mappings.is_empty() {
        let known = &retriever.input_schema;
        enriching::check_inputs_of(&[MEMBER], &config.input_mappings, known)?;
    }
    if !config.write_back_fields.is_empty() {
        enriching::check_fields(&[MEMBER], &config.write_back_fields)?;
    }
    if unique(config.unique_id_field.as_ref()).is_none() {
        let msg = format!("a field, or a list of at most {MAX_UNIQUE} fields");
        let sent = config.unique_id_field.unwrap_or_default();
        return Err(fault(&["unique_id_field"], "value_error", msg, sent));
    }
    let stages = config.stages.unwrap_or_default().into_iter();
    Ok(Some(RetrieverTransformConfigOutput {
        retriever_version: retriever.retriever_id.as_ref().map(|_| retriever.version),
        retriever_id: retriever.retriever_id,
        stages: stages.map(retrievers::stage_output).collect(),
        input_mappings: config.input_mappings,
        write_back_fields: config.write_back_fields,
        unique_id_field: config.unique_id_field,
    }))
}

/// The retriever that is named, or the stages as one without an id; the caller may run it.
async fn wanted(
    app: &App,
    scope: &Scope<Write>,
    config: &RetrieverTransformConfigInput,
    source: &SourceConfig,
) -> Result<RetrieverModelOutput> {
    match (&config.retriever_id, &config.stages) {
        (Some(_), Some(_)) => {
            let msg = "name a retriever or send stages, not both";
            Err(fault(&["stages"], "value_error", msg, Value::Null))
        }
        (None, None) => {
            let msg = "name the retriever, or send stages";
            Err(fault(&["retriever_id"], "missing", msg, Value::Null))
        }
        (Some(named), None) => {
            let found = retrievers::known(app, scope, named).await?;
            let version = config.retriever_version.unwrap_or(found.version);
            if version != found.version {
                let msg = format!(
                    "the retriever has version {}, and no other: with other stages it is another retriever",
                    found.version
                );
                return Err(fault(
                    &["retriever_version"],
                    "value_error",
                    msg,
                    version.into(),
                ));
            }
            Ok(RetrieverModelOutput {
                retriever_id: Some(found.id.clone()),
                ..found.data.0.clone()
            })
        }
        (None, Some(stages)) => {
            if let Some(version) = config.retriever_version {
                let msg = "stages have no version";
                let input = version.into();
                return Err(fault(&["retriever_version"], "value_error", msg, input));
            }
            let operation = NamespaceOperation::ExecuteRetriever;
            scope
                .caller
                .allow(ResourceType::Retriever, "*", operation)?;
            let plan = retrievers::compile_in(&[MEMBER], stages, &IndexMap::new())?;
            let read = source.collection_ids.clone().unwrap_or_default();
            retrievers::readable(app, scope, &plan, &read).await?;
            let stages = stages.iter().cloned().map(retrievers::stage_output);
            Ok(of_stages(stages.collect(), read))
        }
    }
}

/// Stages as a retriever that nobody has made.
fn of_stages(stages: Vec<StageConfigOutput>, collection_ids: Vec<String>) -> RetrieverModelOutput {
    RetrieverModelOutput {
        retriever_name: "stages of a collection".into(),
        collection_ids,
        stages,
        ..Default::default()
    }
}

/// Whether a retriever reads a collection by one of these ids or names, by itself or through retrievers that its stages run.
async fn reads(
    app: &App,
    namespace_id: &str,
    first: &RetrieverModelOutput,
    names: &[&str],
) -> Result<bool> {
    let (mut waiting, mut seen) = (vec![first.clone()], HashSet::new());
    while let Some(one) = waiting.pop() {
        let stages = retrievers::stage_inputs(&one.stages);
        let plan = retrievers::compile(&stages, &one.input_schema)?;
        let mut read = one.collection_ids;
        read.extend(plan.references());
        if read.iter().any(|id| names.contains(&id.as_str())) {
            return Ok(true);
        }
        for named in plan.retrievers() {
            match RETRIEVERS.known(app.db(), namespace_id, &named).await {
                Ok(found) if seen.insert(found.id.clone()) => {
                    waiting.push(found.data.0.clone());
                }
                Ok(_) => {}
                // The stage that needs it tells.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(false)
}

/// The names of the fields that results are known by, which may be none; nothing for what holds no names.
fn unique(sent: Option<&Value>) -> Option<Vec<String>> {
    let names: Vec<String> = match sent {
        None | Some(Value::Null) => return Some(Vec::new()),
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => {
            let names = many.iter().map(|one| one.as_str().map(str::to_owned));
            names.collect::<Option<Vec<String>>>()?
        }
        Some(_) => return None,
    };
    let is_named = names.iter().all(|name| !name.trim().is_empty());
    (is_named && names.len() <= MAX_UNIQUE).then_some(names)
}

/// What a collection's source is transformed by, made ready for many objects or documents.
pub struct Transform<'a> {
    app: &'a App,
    org_id: &'a str,
    namespace_id: &'a str,
    config: &'a RetrieverTransformConfigOutput,
    unique: Vec<String>,
    ready: Ready,
    /// Of the retriever, or of the collection whose stages these are.
    pub id: String,
}

/// What the retriever found for one object or document.
#[derive(Debug)]
pub struct Results {
    /// Each as the extractor reads it, with what its documents tell of it.
    pub results: Vec<(ObjectInput, Value)>,
    /// What is made into no document.
    pub dropped: Dropped,
}

impl<'a> Transform<'a> {
    /// # Errors
    /// 404 for a retriever that is gone, or a collection that it reads; 409 for one that reads this collection; the database
    /// does not answer.
    pub async fn of(
        app: &'a App,
        (org_id, namespace_id): (&'a str, &'a str),
        collection: &'a CollectionResponse,
        config: &'a RetrieverTransformConfigOutput,
    ) -> Result<Self> {
        let id = collection.collection_id.as_deref().unwrap_or_default();
        let retriever = match &config.retriever_id {
            Some(id) => {
                let found = RETRIEVERS.known(app.db(), namespace_id, id).await?;
                found.data.0.clone()
            }
            None => {
                let read = sources(app, namespace_id, &collection.source).await?;
                of_stages(config.stages.clone(), read)
            }
        };
        // A collection may have come by the name of one that a stage names.
        let names = [id, collection.collection_name.as_str()];
        if reads(app, namespace_id, &retriever, &names).await? {
            let message =
                "the retriever reads the collection itself: it would find what it has made";
            return Err(ApiError::conflict("", message));
        }
        let scope = Scope::internal(Caller::system(org_id), namespace_id.to_owned());
        Ok(Self {
            ready: Ready::made_of(app, &scope, &retriever, LONGEST_MS).await?,
            unique: unique(config.unique_id_field.as_ref()).unwrap_or_default(),
            id: config.retriever_id.clone().unwrap_or_else(|| id.to_owned()),
            app,
            org_id,
            namespace_id,
            config,
        })
    }

    /// Runs the retriever for one object or document.
    ///
    /// # Errors
    /// It has none of the fields that inputs are mapped from, see [`NO_INPUT`]; whatever ends a search; an answer that is not
    /// whole, as the rest would look as if it were gone; a result that has not what it is known by.
    pub async fn results(&self, source: &ObjectInput) -> Result<Results> {
        let row = row(source);
        let Some(sent) = self.inputs(source, &row) else {
            let message =
                format!("{NO_INPUT}: no field that an input of the retriever is mapped from");
            return Err(ApiError::bad_request("", message));
        };
        let (app, scope) = (self.app, self.scope(source));
        let found = match self.config.stages.is_empty() {
            true => self.ready.search(app, &scope, &sent, None, MOST).await,
            false => self.ready.pass(app, &scope, &sent, row, MOST).await,
        };
        let outcome = found.map_err(retrievers::run_error)?;
        self.ready.check_whole(&outcome)?;
        self.taken(source, outcome)
    }

    /// As the mappings say; without any, the fields that have the names of inputs.
    fn inputs(&self, source: &ObjectInput, row: &Object) -> Option<Object> {
        let mappings = &self.config.input_mappings;
        if !mappings.is_empty() {
            return enriching::inputs(mappings, &Value::Object(row.clone()));
        }
        let known = self.ready.input_schema();
        let fields = source.fields.iter();
        let named = fields.filter(|(name, _)| known.is_empty() || known.contains_key(*name));
        Some(
            named
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// For what an end user owns the retriever finds what the user sees; for all else, everything.
    fn scope(&self, source: &ObjectInput) -> Scope<Write> {
        let mut caller = Caller::system(self.org_id);
        if let Some(owner) = owner(source) {
            let mut key = (*caller.key).clone();
            key.principal_id = Some(owner.to_owned());
            caller = Caller::internal(key);
        }
        Scope::internal(caller, self.namespace_id.to_owned())
    }

    fn taken(&self, source: &ObjectInput, outcome: Outcome) -> Result<Results> {
        let mut dropped = Dropped::default();
        let total = usize::try_from(outcome.total).unwrap_or(usize::MAX);
        dropped.add_others(BEYOND, total.saturating_sub(outcome.documents.len()));
        let mut often: HashMap<String, usize> = HashMap::new();
        for row in &outcome.documents {
            *often.entry(id_of(row).to_owned()).or_default() += 1;
        }
        let (mut known, mut twice, mut results) = (HashSet::new(), 0, Vec::new());
        for row in outcome.documents {
            let is_sole = often.get(id_of(&row)) == Some(&1) && !id_of(&row).is_empty();
            let row = Value::Object(row);
            let made = self.fields(source, &row);
            let key = self.key(&row, &made, is_sole)?;
            if !known.insert(key.clone()) {
                twice += 1;
                continue;
            }
            let said = json!({
                "retriever_id": self.config.retriever_id, "document_id": row["document_id"],
                "collection_id": row["collection_id"], "score": row["score"],
            });
            results.push((input(source, key, made), said));
        }
        dropped.add_others(TWICE, twice);
        Ok(Results { results, dropped })
    }

    /// What the extractor reads of a result.
    fn fields(&self, source: &ObjectInput, row: &Value) -> Object {
        if self.config.write_back_fields.is_empty() {
            let mut own = row
                .as_object()
                .map(retrievers::fields_of)
                .unwrap_or_default();
            own.retain(|name, _| documents::is_own(name));
            return own;
        }
        let mut made = source.fields.clone();
        for field in &self.config.write_back_fields {
            if let Some(value) = value_of(field, std::slice::from_ref(row)) {
                put(&mut made, &field.target_field, value);
            }
        }
        made
    }

    /// What a result is known by again: the fields that are named, else the document that it is of. Several results of one
    /// document are known by what they say.
    fn key(&self, row: &Value, made: &Object, is_sole: bool) -> Result<String> {
        let mut known = Vec::with_capacity(self.unique.len());
        for name in &self.unique {
            let value = fields::get(made, name).or_else(|| value_at(row, name));
            let value = value.filter(|value| !value.is_null()).ok_or_else(|| {
                let message = format!("a result has no '{name}', which unique_id_field names");
                ApiError::bad_request("", message)
            })?;
            known.push(value.clone());
        }
        let known = match (known.is_empty(), is_sole) {
            (false, _) => Value::Array(known),
            (true, true) => row["document_id"].clone(),
            (true, false) => json!([row["document_id"], made]),
        };
        let hash = Sha256::digest(known.to_string());
        Ok(format!("result/{}", hex::encode(&hash[..16])))
    }
}

/// The collections of a source that are there still.
async fn sources(app: &App, namespace_id: &str, source: &SourceConfig) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for id in source.collection_ids.iter().flatten() {
        match COLLECTIONS.known(app.db(), namespace_id, id).await {
            Ok(_) => found.push(id.clone()),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn id_of(row: &Object) -> &str {
    row.get("document_id")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The end user whose document it is.
fn owner(source: &ObjectInput) -> Option<&str> {
    let acl = source.origin.as_ref()?.acl.as_ref()?;
    acl["owner"].as_str().filter(|owner| !owner.is_empty())
}

/// A result in place of its source. It may say more than the source does: of end users only the owner of the source sees it.
fn input(source: &ObjectInput, key: String, fields: Object) -> ObjectInput {
    let mut origin = source.origin.clone();
    if let Some(origin) = &mut origin {
        let owner = owner(source);
        origin.acl =
            owner.map(|owner| json!({"owner": owner, "read": [], "write": [], "public": false}));
    }
    ObjectInput {
        object_id: source.object_id.clone(),
        bucket_id: source.bucket_id.clone(),
        fields,
        blobs: Vec::new(),
        content_hash: source.content_hash.clone(),
        edges: source.edges.clone(),
        origin,
        result: Some(key),
    }
}

/// An object or document as stages see it.
fn row(source: &ObjectInput) -> Object {
    let origin = source.origin.as_ref();
    let mut row = Object::new();
    row.insert("document_id".into(), source.object_id.as_str().into());
    let collection_id = origin.map(|origin| origin.collection_id.as_str());
    row.insert("collection_id".into(), collection_id.into());
    for (name, value) in &source.fields {
        row.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let (root, blobs) = match origin {
        Some(origin) => (origin.root_object_id.clone(), origin.document_blobs.clone()),
        None => (
            Some(source.object_id.clone()),
            source.blobs.iter().map(reference).collect(),
        ),
    };
    let internal = json!({
        "lineage": {"root_object_id": root, "root_bucket_id": source.bucket_id},
        "document_blobs": blobs,
    });
    row.insert("_internal".into(), internal);
    row
}

fn reference(blob: &BlobInput) -> Value {
    json!({
        "field": blob.property, "role": "source", "type": blob.kind, "url": blob.url, "filename": blob.filename,
        "content_type": blob.mime, "source_blob_id": blob.blob_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_known_by_one_field_or_several() {
        let named = |sent: Value| unique(Some(&sent));
        assert_eq!(unique(None), Some(Vec::new()));
        assert_eq!(named(Value::Null), Some(Vec::new()));
        assert_eq!(named(json!([])), Some(Vec::new()));
        assert_eq!(named(json!("sku")), Some(vec!["sku".to_owned()]));
        let two = vec!["sku".to_owned(), "place.code".to_owned()];
        assert_eq!(named(json!(["sku", "place.code"])), Some(two));
        for wrong in [json!(""), json!([1]), json!({"a": 1}), json!(["a", " "])] {
            assert_eq!(named(wrong.clone()), None, "{wrong}");
        }
        assert_eq!(named(json!(vec!["a"; MAX_UNIQUE + 1])), None);
    }
}
