//! Namespaces that hold documents with vectors of one's own, without buckets or extractors in between.

use std::collections::BTreeMap;

use loupe_wire::{
    BYOUpsertRequest, BYOUpsertResponse, CollectionResponse, CreateCollectionRequest,
    CreateStandaloneNamespaceRequestModel, FeatureExtractorConfigInput, NamespaceModel,
    NamespaceOperation, ResourceType, SourceConfig, SourceType, StandaloneNamespaceResponseModel,
    Value,
};

use super::{
    NAMESPACES,
    indexes::{self, Index, OWN},
};
use crate::{
    app::App,
    auth::{Caller, Level, Read, Scope, Write},
    clock,
    db::Record,
    error::{ApiError, Result, Violation},
    v1::{
        collections::{self, COLLECTIONS},
        documents,
    },
};

/// How the namespace is called until it is promoted.
pub const STANDALONE: &str = "standalone";

/// Words that addresses of the API have in the place of an id, and the folder of files that are of no namespace.
const WORDS: [&str; 5] = ["apps", "list", "migrations", "standalone", "stats"];

/// Characters of a namespace's name.
const NAME: usize = 64;

/// Makes a namespace under the id that is sent, with a collection that documents go to.
///
/// # Errors
/// An index that cannot be, storage or settings of one's own, an id that is taken, no room.
pub async fn create(
    app: &App,
    caller: &Caller,
    request: CreateStandaloneNamespaceRequestModel,
) -> Result<StandaloneNamespaceResponseModel> {
    let operation = NamespaceOperation::ModifyInfrastructure;
    caller.allow(ResourceType::Namespace, "*", operation)?;
    refuse(&request)?;
    let mut wanted = Vec::with_capacity(request.vector_configs.len());
    for (place, config) in request.vector_configs.iter().enumerate() {
        let path = ["vector_configs", &place.to_string()];
        wanted.push(Index::read(
            &path,
            &config.name,
            config.dimension,
            &config.metric,
        )?);
    }
    indexes::check_all("vector_configs", &wanted)?;
    let now = app.clock().micros();
    let namespace = namespace(&request, &wanted, now);
    let id = request.namespace_id;
    let scope = Scope::<Write>::internal(caller.clone(), id.clone());
    let collection = collections::draft(app, &scope, own_collection(&wanted)).await?;
    let (acting, told) = (scope.caller, namespace.vector_configs.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                super::insert(tx, &acting, &namespace, now).await?;
                let id = namespace.namespace_id.as_deref().unwrap_or_default();
                collections::insert(tx, &acting, id, &collection, now).await
            })
        })
        .await?;
    Ok(StandaloneNamespaceResponseModel {
        namespace_id: id,
        mode: STANDALONE.into(),
        status: "active".into(),
        vector_configs: told,
        tiering: "auto".into(),
        document_count: 0,
    })
}

fn refuse(request: &CreateStandaloneNamespaceRequestModel) -> Result<()> {
    let id = request.namespace_id.as_str();
    if WORDS.iter().any(|word| word.eq_ignore_ascii_case(id)) {
        let msg = "the server uses this word itself: choose another id";
        return Err(Violation::body(&["namespace_id"], "value_error", msg, id.into()).into());
    }
    let connection = request.storage.as_ref();
    if let Some(connection) = connection.and_then(|storage| storage.connection_id.as_ref()) {
        let msg = "documents are kept by this server, not in storage of one's own: leave it out";
        let path = ["storage", "connection_id"];
        return Err(Violation::body(&path, "value_error", msg, connection.as_str().into()).into());
    }
    if let Some((name, value)) = request.config.iter().next() {
        let msg = "there are no such settings of a namespace here: leave config out";
        return Err(Violation::body(&["config", name], "value_error", msg, value.clone()).into());
    }
    Ok(())
}

fn namespace(
    request: &CreateStandaloneNamespaceRequestModel,
    wanted: &[Index],
    now: i64,
) -> NamespaceModel {
    let at = Some(clock::time(now));
    NamespaceModel {
        namespace_id: Some(request.namespace_id.clone()),
        namespace_name: request.namespace_id.chars().take(NAME).collect(),
        mode: Some(STANDALONE.into()),
        auto_create_indexes: request.auto_create_indexes.unwrap_or(false),
        // Without any, the first vectors of a name say what its index is.
        dynamic_vector_indexes: wanted.is_empty().then_some(true),
        vector_configs: wanted.iter().map(Index::told).collect(),
        namespace_ready: true,
        created_at: at,
        updated_at: at,
        ..Default::default()
    }
}

fn own_collection(wanted: &[Index]) -> CreateCollectionRequest {
    CreateCollectionRequest {
        collection_name: OWN.into(),
        source: SourceConfig {
            r#type: SourceType::DirectUpsert,
            ..Default::default()
        },
        feature_extractor: Some(FeatureExtractorConfigInput {
            feature_extractor_name: "passthrough_extractor".into(),
            version: "v1".into(),
            parameters: Some(indexes::parameters(wanted)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The namespace of a path, for the caller to work in.
///
/// # Errors
/// There is none of this id or name.
pub async fn enter<L: Level>(
    app: &App,
    caller: &Caller,
    identifier: &str,
) -> Result<(Record<NamespaceModel>, Scope<L>)> {
    let record = NAMESPACES
        .find(app.db(), &caller.org_id, identifier)
        .await?;
    let scope = Scope::internal(caller.clone(), record.id.clone());
    Ok((record, scope))
}

/// Writes documents into a collection of the namespace, its own where none is named.
///
/// # Errors
/// As [`documents::upsert`].
pub async fn upsert(
    app: &App,
    caller: &Caller,
    identifier: &str,
    request: BYOUpsertRequest,
) -> Result<BYOUpsertResponse> {
    let (namespace, scope) = enter::<Write>(app, caller, identifier).await?;
    let name = request.collection_id.as_deref().unwrap_or(OWN);
    let operation = NamespaceOperation::WriteData;
    let collection = collections::known(app, &scope, name, operation).await;
    let collection = collection.map_err(|error| match request.collection_id {
        None if error.is_not_found() => ApiError::bad_request(
            "collection_missing",
            "the namespace has no collection named documents: name one as collection_id",
        ),
        _ => error,
    })?;
    let dynamic = namespace.data.0.dynamic_vector_indexes == Some(true)
        && collection.name == OWN
        && caller.principal().is_none();
    let mut collection = collection.data.0.clone();
    let mut all = indexes::of(&collection);
    let new = match dynamic {
        true => unknown(&all, &request)?,
        false => Vec::new(),
    };
    // Documents that are refused leave no index behind: they are checked against the collection as it will be.
    if !new.is_empty() {
        all.extend(new.iter().cloned());
        indexes::check_all("documents", &all)?;
        collection.feature_extractor.parameters = Some(indexes::parameters(&all));
    }
    let checked = documents::checked(app, &scope, &collection, request).await?;
    if !new.is_empty() {
        collection = grow(app, &scope, new).await?;
    }
    documents::upsert(app, &scope, &collection, checked).await
}

/// The namespace's own collection with these indexes beside its own.
async fn grow(app: &App, scope: &Scope<Write>, new: Vec<Index>) -> Result<CollectionResponse> {
    let (state, caller, namespace_id) = (
        app.clone(),
        scope.caller.clone(),
        scope.namespace_id.clone(),
    );
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let namespace = NAMESPACES.hold(tx, &caller.org_id, &namespace_id).await?;
                let collection = COLLECTIONS.hold(tx, &namespace_id, OWN).await?;
                let mut all = indexes::of(&collection.data.0);
                for index in new {
                    match all.iter().find(|known| known.name == index.name) {
                        None => all.push(index),
                        // Another request was faster, and right in the same way.
                        Some(known) if known.dims == index.dims => {}
                        Some(known) => return Err(overtaken(known)),
                    }
                }
                indexes::check_all("documents", &all)?;
                let both = (namespace.data.0, collection.data.0);
                indexes::replace(&state, tx, &caller, both, &all, now).await
            })
        })
        .await?;
    let grown = COLLECTIONS.find(app.db(), &scope.namespace_id, OWN).await?;
    Ok(grown.data.0)
}

fn overtaken(index: &Index) -> ApiError {
    let message = format!(
        "another request has just made the index '{}' of {} numbers: send the documents again",
        index.name, index.dims
    );
    ApiError::conflict("", message)
}

/// Indexes for names that none has yet, as the first vector of each says.
fn unknown(known: &[Index], request: &BYOUpsertRequest) -> Result<Vec<Index>> {
    let mut new: BTreeMap<&str, Index> = BTreeMap::new();
    for (place, document) in request.documents.iter().enumerate() {
        for (name, vector) in &document.vectors {
            let is_known = known.iter().any(|index| index.name == *name);
            let numbers = vector
                .as_array()
                .filter(|all| all.iter().all(Value::is_number));
            // What is no list of numbers is refused with its place a moment later.
            let Some(numbers) = numbers.filter(|_| !is_known && !new.contains_key(name.as_str()))
            else {
                continue;
            };
            let dims = i64::try_from(numbers.len()).unwrap_or(i64::MAX);
            let path = ["documents", &place.to_string(), "vectors", name];
            let index = Index::read(&path, name, dims, "cosine")?;
            new.insert(name, index);
        }
    }
    Ok(new.into_values().collect())
}

/// One document of the namespace, by the id that it was sent with or the one that the server gave it.
///
/// # Errors
/// There is none that the caller may see.
pub async fn find(app: &App, scope: &Scope<Read>, sent: &str) -> Result<(String, String)> {
    let mut sight = documents::everywhere(app, scope).await?;
    let own = COLLECTIONS.known(app.db(), &scope.namespace_id, OWN);
    let own = match own.await {
        Ok(own) => Some(own),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error),
    };
    let ids = &mut sight.reach.collection_ids;
    ids.sort_by_cached_key(|id| (own.as_ref().is_none_or(|own| own.id != *id), id.clone()));
    let found = documents::find_sent(app, &sight, sent).await?;
    Ok((found.collection_id, found.document_id))
}
