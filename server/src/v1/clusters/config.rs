//! What a cluster may say, and what it tells the algorithms.

use loupe_engine::{
    cluster::{Reduction, Settings},
    stage::{Searchable, index_of},
};
use loupe_wire::{
    ClusterModel, ClusterType, CreateClusterRequest, ExecuteClusterByIdRequest, Filter,
    NamespaceOperation, Object, SourceEnrichmentConfig, Value, VectorBasedConfigInput,
    VectorBasedConfigInputEffectiveFeatureMethod as EffectiveMethod,
    VectorBasedConfigInputMultiFeatureStrategy as Strategy, VectorBasedConfigInputOutputStrategy,
};

use super::{composing, features, labels, settings, steps::MOST_WHITENED};
use crate::{
    app::App,
    auth::{Level, Scope},
    error::{ApiError, Result, Violation},
    list::parse_filter,
    v1::collections,
};

/// Collections of one cluster.
const MAX_COLLECTIONS: usize = 50;
/// Attributes or features of one cluster.
const MAX_NAMES: usize = 10;
const MAX_TEXT: usize = 2_000;
const MAX_METADATA: usize = 64 << 10;
/// What documents may be told of their cluster.
const SOURCES: [&str; 5] = ["cluster_id", "label", "summary", "keywords", "run_id"];
/// Members of documents that only the server writes.
const SYSTEM: [&str; 4] = [
    "_internal",
    "document_id",
    "collection_id",
    "document_blobs",
];

pub(super) fn fault(
    path: &[&str],
    kind: &str,
    msg: impl Into<String>,
    input: impl Into<Value>,
) -> ApiError {
    Violation::body(path, kind, msg, input.into()).into()
}

fn not_enabled(path: &[&str], msg: &str) -> ApiError {
    fault(path, "not_enabled", msg, Value::Null)
}

/// Checks a request; answers it as it is kept, with ids in place of names.
///
/// # Errors
/// The 422 list for what cannot be, 404 for collections that are not there, 403 for those out of the key's scopes.
pub async fn check<L: Level>(
    app: &App,
    scope: &Scope<L>,
    mut request: CreateClusterRequest,
) -> Result<ClusterModel> {
    texts(
        request.cluster_name.as_deref(),
        request.description.as_deref(),
        request.metadata.as_ref(),
    )?;
    pauses(
        request.auto_execute_min_documents,
        request.auto_execute_cooldown_seconds,
    )?;
    let (source_cluster_ids, collection_ids) = made_of(app, scope, &mut request).await?;
    if let Some(filters) = &request.filters {
        parse_filter(&filters.0, "filters")?;
    }
    check_mappings(request.source_enrichment_config.as_ref())?;
    labels::check(request.llm_labeling.as_ref())?;
    let mut model = ClusterModel {
        collection_ids: Some(collection_ids),
        source_cluster_ids,
        cluster_name: request.cluster_name,
        description: request.description,
        metadata: request.metadata.unwrap_or_default(),
        cluster_type: request.cluster_type,
        vector_config: request.vector_config,
        attribute_config: request.attribute_config,
        filters: request.filters,
        llm_labeling: request.llm_labeling,
        enrich_source_collection: request.enrich_source_collection,
        source_enrichment_config: request.source_enrichment_config,
        auto_execute_on_batch: request.auto_execute_on_batch,
        auto_execute_min_documents: request.auto_execute_min_documents,
        auto_execute_cooldown_seconds: request.auto_execute_cooldown_seconds,
        ..Default::default()
    };
    match model.cluster_type {
        ClusterType::Vector => check_vectors(app, scope, &model).await?,
        ClusterType::Attribute => check_attributes(&model)?,
    }
    // What nothing reads is not kept.
    match model.cluster_type {
        ClusterType::Vector => model.attribute_config = None,
        ClusterType::Attribute => model.vector_config = None,
    }
    Ok(model)
}

/// The clusters that a new one is made of, none as a rule, and the collections, all as ids. Takes them out of the request.
async fn made_of<L: Level>(
    app: &App,
    scope: &Scope<L>,
    request: &mut CreateClusterRequest,
) -> Result<(Vec<String>, Vec<String>)> {
    let Some(named) = request.source_cluster_ids.take() else {
        let ids = collections_of(app, scope, request.collection_ids.take()).await?;
        return Ok((Vec::new(), ids));
    };
    only_clusters(
        &request.collection_ids,
        &request.filters,
        request.cluster_type,
    )?;
    sources(app, scope, &named, "").await
}

/// Names, descriptions and metadata within their limits.
///
/// # Errors
/// The 422 list.
pub fn texts(
    name: Option<&str>,
    description: Option<&str>,
    metadata: Option<&Object>,
) -> Result<()> {
    if name.is_some_and(|name| !(1..=200).contains(&name.trim().chars().count())) {
        let msg = "a name has 1 to 200 characters";
        return Err(fault(
            &["cluster_name"],
            "string_too_short",
            msg,
            Value::Null,
        ));
    }
    if description.is_some_and(|text| text.chars().count() > MAX_TEXT) {
        let msg = format!("a description has at most {MAX_TEXT} characters");
        return Err(fault(&["description"], "string_too_long", msg, Value::Null));
    }
    let size = metadata.map_or(0, |one| serde_json::json!(one).to_string().len());
    if size > MAX_METADATA {
        return Err(fault(
            &["metadata"],
            "too_long",
            "metadata is at most 64 KiB of JSON",
            Value::Null,
        ));
    }
    Ok(())
}

/// Fewest documents and shortest pause of executions that come by themselves.
fn pauses(documents: Option<i64>, seconds: i64) -> Result<()> {
    if documents.is_some_and(|least| !(1..=1_000_000_000).contains(&least)) {
        let path = ["auto_execute_min_documents"];
        let msg = "must be between 1 and 1000000000";
        return Err(fault(&path, "value_error", msg, documents));
    }
    if !(0..=31_536_000).contains(&seconds) {
        let path = ["auto_execute_cooldown_seconds"];
        let msg = "must be between 0 and 31536000";
        return Err(fault(&path, "value_error", msg, seconds));
    }
    Ok(())
}

/// What is made of clusters names nothing else.
fn only_clusters(
    collections: &Option<Vec<String>>,
    filters: &Option<Filter>,
    kind: ClusterType,
) -> Result<()> {
    if collections.is_some() {
        let msg = "name collections or clusters, not both";
        return Err(fault(
            &["source_cluster_ids"],
            "value_error",
            msg,
            Value::Null,
        ));
    }
    if filters.is_some() {
        let msg = "a cluster of clusters has their documents";
        return Err(fault(&["filters"], "value_error", msg, Value::Null));
    }
    if kind == ClusterType::Attribute {
        let msg = "clusters are gathered by their vectors";
        return Err(fault(&["cluster_type"], "value_error", msg, "attribute"));
    }
    Ok(())
}

/// Ids of the clusters that one is made of, and of their collections.
///
/// # Errors
/// 404 for what is not there, 403 for what is out of the key's scopes, the 422 list for clusters that have no vectors.
pub async fn sources<L: Level>(
    app: &App,
    scope: &Scope<L>,
    named: &[String],
    own: &str,
) -> Result<(Vec<String>, Vec<String>)> {
    let path = ["source_cluster_ids"];
    if named.is_empty() || named.len() > composing::MAX_SOURCES {
        let msg = format!("name 1 to {} clusters", composing::MAX_SOURCES);
        return Err(fault(&path, "missing", msg, named.len()));
    }
    let (mut ids, mut collections) = (Vec::new(), Vec::new());
    for (place, identifier) in named.iter().enumerate() {
        let operation = NamespaceOperation::ReadData;
        let found = super::find(app, scope, identifier, operation).await?;
        let id = found.told.cluster_id.unwrap_or_default();
        if id == own || found.model.cluster_type == ClusterType::Attribute {
            let path = [path[0], &place.to_string()];
            let msg = "clusters by vectors, and not the cluster itself";
            return Err(fault(&path, "value_error", msg, identifier.as_str()));
        }
        if !ids.contains(&id) {
            ids.push(id);
        }
        for collection in found.model.collection_ids.into_iter().flatten() {
            if !collections.contains(&collection) {
                collections.push(collection);
            }
        }
    }
    Ok((ids, collections))
}

async fn collections_of<L: Level>(
    app: &App,
    scope: &Scope<L>,
    named: Option<Vec<String>>,
) -> Result<Vec<String>> {
    let named = named.unwrap_or_default();
    if named.is_empty() || named.len() > MAX_COLLECTIONS {
        let msg = format!("name 1 to {MAX_COLLECTIONS} collections");
        return Err(fault(&["collection_ids"], "missing", msg, named.len()));
    }
    let mut ids: Vec<String> = Vec::with_capacity(named.len());
    for identifier in named {
        let operation = NamespaceOperation::ReadData;
        let found = collections::known(app, scope, &identifier, operation).await?;
        if !ids.contains(&found.id) {
            ids.push(found.id.clone());
        }
    }
    Ok(ids)
}

fn check_mappings(config: Option<&SourceEnrichmentConfig>) -> Result<()> {
    let mappings = config
        .map(|one| one.field_mappings.as_slice())
        .unwrap_or_default();
    for (place, mapping) in mappings.iter().enumerate() {
        let place = place.to_string();
        let at = |member: &'static str| {
            [
                "source_enrichment_config",
                "field_mappings",
                place.as_str(),
                member,
            ]
            .map(str::to_owned)
        };
        let refuse = |member, msg: String, input: &str| {
            let path = at(member);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            Err(fault(&path, "value_error", msg, input))
        };
        if !SOURCES.contains(&mapping.source_field.as_str()) {
            let msg = format!("documents are told: {}", SOURCES.join(", "));
            return refuse("source_field", msg, &mapping.source_field);
        }
        let target = &mapping.target_field;
        let first = target.split('.').next().unwrap_or_default();
        if target.is_empty() || target.len() > 500 || SYSTEM.contains(&first) {
            let msg = "a path of 1 to 500 characters that is not the server's own".to_owned();
            return refuse("target_field", msg, target);
        }
    }
    if mappings.len() > SOURCES.len() * 2 {
        let msg = "that is more than there is to tell";
        return Err(fault(
            &["source_enrichment_config", "field_mappings"],
            "too_long",
            msg,
            mappings.len(),
        ));
    }
    Ok(())
}

fn check_attributes(model: &ClusterModel) -> Result<()> {
    let Some(config) = &model.attribute_config else {
        let msg = "a cluster by attributes says which: {attributes}";
        return Err(fault(&["attribute_config"], "missing", msg, Value::Null));
    };
    let names = &config.attributes;
    if names.is_empty()
        || names.len() > MAX_NAMES
        || names.iter().any(|n| n.is_empty() || n.len() > 500)
    {
        let msg = format!("name 1 to {MAX_NAMES} dot paths");
        return Err(fault(
            &["attribute_config", "attributes"],
            "value_error",
            msg,
            names.clone(),
        ));
    }
    if config.aggregation_method.is_some() {
        let msg = "figures of groups are the retriever stage `aggregate`'s";
        return Err(not_enabled(
            &["attribute_config", "aggregation_method"],
            msg,
        ));
    }
    Ok(())
}

async fn check_vectors<L: Level>(app: &App, scope: &Scope<L>, model: &ClusterModel) -> Result<()> {
    let Some(config) = &model.vector_config else {
        let msg = "a cluster by vectors says how: {feature_uri, clustering_method}";
        return Err(fault(&["vector_config"], "missing", msg, Value::Null));
    };
    let at = |member: &'static str| ["vector_config", member];
    let (settings, _) = settings::settings(config)?;
    if config.multi_feature_strategy == Some(Strategy::Independent)
        || config.output_strategy == Some(VectorBasedConfigInputOutputStrategy::PerFeature)
    {
        let msg = "make a cluster of each feature, or concatenate them";
        return Err(not_enabled(&at("multi_feature_strategy"), msg));
    }
    if config.weight_learning_config.is_some() {
        let msg = "weights are given by feature_weights, not learned";
        return Err(not_enabled(&at("weight_learning_config"), msg));
    }
    if config
        .face_cluster_merge
        .as_ref()
        .is_some_and(|merge| merge.enabled)
    {
        let msg = "this version knows no faces";
        return Err(not_enabled(&at("face_cluster_merge"), msg));
    }
    if !matches!(config.vis_n_components, 2 | 3) {
        let msg = "a picture has 2 or 3 dimensions";
        return Err(fault(
            &at("vis_n_components"),
            "enum",
            msg,
            config.vis_n_components,
        ));
    }
    if config
        .effective_feature_method
        .is_some_and(|method| method != EffectiveMethod::Mean)
    {
        let msg = "the middle of a cluster is the mean of its vectors";
        return Err(not_enabled(&at("effective_feature_method"), msg));
    }
    features::check(config)?;
    sample_size(config.sample_size)?;
    if !model.source_cluster_ids.is_empty() {
        // The vectors are the middles of their clusters.
        return Ok(());
    }
    check_features(app, scope, model, config, &settings).await
}

async fn check_features<L: Level>(
    app: &App,
    scope: &Scope<L>,
    model: &ClusterModel,
    config: &VectorBasedConfigInput,
    settings: &Settings,
) -> Result<()> {
    let at = |member: &'static str| ["vector_config", member];
    let features = features::named(config);
    if features.len() > MAX_NAMES {
        let msg = format!("at most {MAX_NAMES} features");
        return Err(fault(&at("feature_uris"), "too_long", msg, features.len()));
    }
    let ids = model.collection_ids.as_deref().unwrap_or_default();
    let found = collections::resolve(app, &scope.namespace_id, ids).await?;
    let searchable: Vec<_> = found
        .iter()
        .map(|one| collections::searchable(app, one))
        .collect();
    for feature in &features {
        let known = searchable
            .iter()
            .any(|one| index_of(one, feature).is_some());
        if !known {
            let msg = format!("none of the collections has the feature `{feature}`");
            return Err(fault(
                &at("feature_uri"),
                "invalid_feature_uri",
                msg,
                feature.clone(),
            ));
        }
    }
    if features.is_empty() && searchable.iter().all(|one| one.indexes.is_empty()) {
        let msg = "the collections have no vectors: cluster by attributes";
        return Err(fault(
            &at("feature_uri"),
            "invalid_feature_uri",
            msg,
            Value::Null,
        ));
    }
    let whitens = |step: &Reduction| matches!(step, Reduction::Whitening(_));
    if settings.reductions.iter().any(whitens) && widest(&searchable, &features) > MOST_WHITENED {
        let msg = format!("vectors of at most {MOST_WHITENED} numbers are whitened");
        return Err(not_enabled(&at("preprocessing_steps"), &msg));
    }
    Ok(())
}

/// Numbers of the longest point that the features make.
fn widest(searchable: &[Searchable], features: &[String]) -> usize {
    let of = |one: &Searchable| match features.is_empty() {
        true => one.indexes.first().map_or(0, |index| index.dims),
        false => {
            let named = features.iter().filter_map(|feature| index_of(one, feature));
            let dims = |name: String| one.indexes.iter().find(|index| index.name == name);
            named.filter_map(dims).map(|index| index.dims).sum()
        }
    };
    searchable.iter().map(of).max().unwrap_or(0)
}

fn sample_size(size: Option<i64>) -> Result<()> {
    match size {
        Some(size) if size < 2 => {
            let msg = "a sample has 2 documents at least";
            Err(fault(&["sample_size"], "greater_than_equal", msg, size))
        }
        _ => Ok(()),
    }
}

/// What is asked of one execution can be done.
///
/// # Errors
/// The 422 list.
pub fn check_request(request: &ExecuteClusterByIdRequest, model: &ClusterModel) -> Result<()> {
    use loupe_wire::ClusterExecutionMode::Assign;
    composing::check_request(request, model)?;
    labels::check(request.llm_labeling.as_ref())?;
    if request.mode == Assign && model.cluster_type == ClusterType::Attribute {
        let msg = "documents are assigned to clusters of vectors; execute this one in full";
        return Err(fault(&["mode"], "value_error", msg, "assign"));
    }
    if let Some(filter) = &request.filters {
        parse_filter(&filter.0, "filters")?;
    }
    if request
        .vis_n_components
        .is_some_and(|dims| !matches!(dims, 2 | 3))
    {
        let msg = "a picture has 2 or 3 dimensions";
        return Err(fault(&["vis_n_components"], "enum", msg, Value::Null));
    }
    sample_size(request.sample_size)
}
