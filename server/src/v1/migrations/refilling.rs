//! What is extracted anew: which collections batches fill, by which extractors, and what of the rest names what these made.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use loupe_engine::{
    extract::{self, IndexInfo},
    stage,
};
use loupe_wire::{
    CollectionResponse, LifecycleState, MigrationConfig, MigrationFeatureExtractorConfig,
    MigrationResourceType, RetrieverModelOutput, SourceType, StageConfigOutput, ValidationError,
    Value, reading,
};

use super::checking::{error, of_collection, warning};
use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, Result},
    limits::quota,
    v1::{
        batches,
        collections::{self, lifecycle},
        namespaces::{self, Pattern},
        objects,
        tasks::name_of,
    },
};

/// Collections over collections that are followed down; there are not so many tiers.
const TIERS: usize = 20;

type Names = IndexMap<String, String>;

/// What batches fill, and what is to be said of it.
#[derive(Debug, Default)]
pub(super) struct Refilled {
    /// Collections of the source that they fill.
    pub collections: BTreeSet<String>,
    /// Buckets of the source that these are filled from at once.
    pub read: BTreeSet<String>,
    /// Objects of all buckets that come.
    pub objects: i64,
    pub errors: Vec<ValidationError>,
    pub warnings: Vec<ValidationError>,
}

/// Where the documents of a collection come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Objects,
    /// Somebody wrote them, or what they were made of.
    Callers,
    Both,
}

fn origin(one: &CollectionResponse, all: &[CollectionResponse], tiers: usize) -> Origin {
    match one.source.r#type {
        SourceType::Bucket => Origin::Objects,
        SourceType::Collection if tiers > 0 => {
            let ids = one.source.collection_ids.iter().flatten();
            let below = ids.filter_map(|id| {
                all.iter()
                    .find(|one| one.collection_id.as_ref() == Some(id))
            });
            let both = |one, other| if one == other { one } else { Origin::Both };
            let below = below.map(|one| origin(one, all, tiers - 1)).reduce(both);
            // What it read was deleted.
            below.unwrap_or(Origin::Callers)
        }
        _ => Origin::Callers,
    }
}

impl Refilled {
    /// Puts what will be into the pattern, in place of what is.
    ///
    /// # Errors
    /// The database does not answer.
    pub(super) async fn of(
        app: &App,
        caller: &Caller,
        source_id: &str,
        config: &MigrationConfig,
        pattern: &mut Pattern,
    ) -> Result<Self> {
        let mut refilled = Self::default();
        let before = pattern.collections.clone();
        refilled.check_named(config, &before);
        for one in &mut pattern.collections {
            refilled.take(app, source_id, config, one, &before).await?;
        }
        refilled
            .check_batches(app, caller, source_id, config, pattern)
            .await?;
        refilled.rename(app, config, &before, pattern)?;
        Ok(refilled)
    }

    fn check_named(&mut self, config: &MigrationConfig, collections: &[CollectionResponse]) {
        let mut seen = BTreeSet::new();
        for asked in config.feature_extractors.iter().flatten() {
            let name = asked.feature_extractor_name.as_str();
            let has =
                |one: &CollectionResponse| one.feature_extractor.feature_extractor_name == name;
            if !extract::catalogue().iter().any(|info| info.name == name) {
                let message = format!("there is no extractor '{name}'");
                self.errors.push(error("unknown_extractor", message));
            } else if !seen.insert(name) {
                let message = format!("feature_extractors names {name} twice");
                self.errors.push(error("named_twice", message));
            } else if !collections.iter().any(has) {
                let message = format!(
                    "feature_extractors has no effect: no collection that comes has {name}"
                );
                self.warnings.push(warning("no_effect", message));
            }
        }
    }

    async fn take(
        &mut self,
        app: &App,
        source_id: &str,
        config: &MigrationConfig,
        one: &mut CollectionResponse,
        all: &[CollectionResponse],
    ) -> Result<()> {
        let asked = asked(config, one);
        match origin(one, all, TIERS) {
            Origin::Objects => {}
            Origin::Callers => return self.copy(one, asked),
            Origin::Both => {
                let why =
                    "it reads objects and documents that callers wrote: it can be copied alone";
                return self.refuse(one, "mixed_sources", why);
            }
        }
        let made = match asked {
            Some(asked) => {
                let (version, told) = (asked.version.as_deref(), asked.parameters.as_ref());
                collections::with_extractor(app, source_id, one.clone(), version, told).await
            }
            None => collections::check_extractor(app, one).map(|()| one.clone()),
        };
        match made {
            Ok(made) => *one = made,
            Err(refused) => {
                let code = match asked {
                    Some(_) => "invalid_extractor",
                    None => "extractor_unavailable",
                };
                self.errors.push(of_collection(one, code, refused)?);
            }
        }
        self.fill(one);
        Ok(())
    }

    /// One that no batch could fill comes with its documents.
    fn copy(
        &mut self,
        one: &CollectionResponse,
        asked: Option<&MigrationFeatureExtractorConfig>,
    ) -> Result<()> {
        if asked.is_some() {
            let why =
                "its documents were written by callers: there are no objects to extract them from";
            return self.refuse(one, "no_objects", why);
        }
        if let Err(refused) = lifecycle::check_here(one) {
            self.errors
                .push(of_collection(one, "source_archived", refused)?);
        }
        Ok(())
    }

    fn refuse(&mut self, one: &CollectionResponse, code: &str, why: &str) -> Result<()> {
        let refused = ApiError::bad_request("", why);
        self.errors.push(of_collection(one, code, refused)?);
        Ok(())
    }

    /// One that batches fill is empty and in use, whatever it is now.
    fn fill(&mut self, one: &mut CollectionResponse) {
        let id = one.collection_id.clone().unwrap_or_default();
        one.lifecycle_state = name_of(LifecycleState::Active);
        one.s3_vector_index = None;
        one.document_count = Some(0);
        if one.source.r#type == SourceType::Bucket && one.enabled {
            self.read
                .extend(one.source.bucket_ids.iter().flatten().cloned());
        }
        if !one.enabled {
            self.warnings.push(ValidationError {
                resource_id: Some(id.clone()),
                resource_type: Some(MigrationResourceType::Collection),
                ..warning("left_empty", format!("{id} is disabled: no batch fills it"))
            });
        }
        self.collections.insert(id);
    }

    /// Whether the batches may be as they are asked for.
    async fn check_batches(
        &mut self,
        app: &App,
        caller: &Caller,
        source_id: &str,
        config: &MigrationConfig,
        pattern: &Pattern,
    ) -> Result<()> {
        let size = config.batch_options.clone().unwrap_or_default().batch_size;
        let objects = usize::try_from(size).unwrap_or(usize::MAX);
        let most = app.config().limits.batch_objects;
        if objects > most {
            let message = format!("batch_options.batch_size: a batch has at most {most} objects");
            self.errors.push(error("batch_too_large", message));
        }
        let mut checked = vec![
            quota::check_work(app, caller).await,
            quota::check_batch(app, caller, objects).await,
        ];
        for id in pattern
            .buckets
            .iter()
            .filter_map(|one| one.bucket_id.as_ref())
        {
            let held = objects::store::count(app.db(), source_id, id).await?;
            self.objects += held;
            checked.push(batches::check_size(held, size));
        }
        for refused in checked.into_iter().filter_map(Result::err) {
            if !refused.is_callers() {
                return Err(refused);
            }
            let code = refused.code().unwrap_or("not_allowed");
            self.errors.push(error(code, refused.message()));
        }
        Ok(())
    }

    /// What names the old addresses of features names the new ones, where there are such.
    fn rename(
        &mut self,
        app: &App,
        config: &MigrationConfig,
        before: &[CollectionResponse],
        pattern: &mut Pattern,
    ) -> Result<()> {
        let mut names = Names::new();
        for (old, new) in before.iter().zip(&pattern.collections) {
            let (old, new) = (
                collections::indexes(app, old),
                collections::indexes(app, new),
            );
            names.extend(renamed(&old, &new));
        }
        let options = config.retriever_options.clone().unwrap_or_default();
        for retriever in pattern
            .retrievers
            .iter()
            .filter(|_| options.validate_references)
        {
            for feature in features_of(retriever) {
                let has = |all: &[CollectionResponse], name: &str| finds(app, retriever, all, name);
                let new = names.get(&feature).unwrap_or(&feature);
                if has(before, &feature) && !has(&pattern.collections, new) {
                    self.warnings.push(lost(retriever, &feature));
                }
            }
        }
        put(&names, pattern)
    }
}

/// What is asked for the extractor of a collection.
fn asked<'c>(
    config: &'c MigrationConfig,
    one: &CollectionResponse,
) -> Option<&'c MigrationFeatureExtractorConfig> {
    let name = &one.feature_extractor.feature_extractor_name;
    let mut all = config.feature_extractors.iter().flatten();
    all.find(|asked| asked.feature_extractor_name == *name)
}

/// Names of indexes that are called otherwise once their collection is extracted anew: those of one output are the same.
fn renamed(old: &[IndexInfo], new: &[IndexInfo]) -> Names {
    let mut names = Names::new();
    for index in old {
        let same = new.iter().find(|one| one.output == index.output);
        let Some(same) = same else { continue };
        for (from, to) in [
            (&index.feature_uri, &same.feature_uri),
            (&index.name, &same.name),
        ] {
            if from != to {
                names.insert(from.clone(), to.clone());
            }
        }
    }
    names
}

fn put(names: &Names, pattern: &mut Pattern) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    for retriever in &mut pattern.retrievers {
        retriever
            .stages
            .iter_mut()
            .for_each(|stage| put_stage(names, stage));
        for address in retriever.feature_dependencies.iter_mut().flatten() {
            let output = address.output.as_deref().unwrap_or_default();
            let uri = format!(
                "{}://{}@{}/{output}",
                address.scheme, address.extractor, address.version
            );
            let new = names.get(&uri).and_then(|new| new.rsplit_once('/'));
            if let Some((_, version)) = new.and_then(|(head, _)| head.rsplit_once('@')) {
                version.clone_into(&mut address.version);
            }
        }
    }
    for one in &mut pattern.collections {
        if let Some(transform) = &mut one.retriever_transform {
            transform
                .stages
                .iter_mut()
                .for_each(|stage| put_stage(names, stage));
        }
    }
    for taxonomy in &mut pattern.taxonomies {
        let mut value = serde_json::to_value(&*taxonomy).map_err(ApiError::internal)?;
        namespaces::remap_inside(&mut value, names);
        *taxonomy = reading::from_value(&value).map_err(ApiError::internal)?;
    }
    Ok(())
}

fn put_stage(names: &Names, stage: &mut StageConfigOutput) {
    let values = stage.config.values_mut();
    let values = values.chain(stage.parameters.values_mut());
    values.for_each(|value| namespaces::remap_inside(value, names));
}

/// The features by which a retriever searches, as its stages name them.
fn features_of(retriever: &RetrieverModelOutput) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for stage in &retriever.stages {
        let members = stage.config.iter().chain(&stage.parameters);
        members.for_each(|(name, value)| features(value, is_feature(name), &mut found));
    }
    found
}

fn is_feature(member: &str) -> bool {
    member.contains("feature_uri") || member == "vector_index"
}

fn features(value: &Value, named: bool, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if named => {
            found.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| features(item, named, found)),
        Value::Object(members) => members
            .iter()
            .for_each(|(name, value)| features(value, is_feature(name), found)),
        _ => {}
    }
}

/// Whether one of the retriever's collections has the feature.
fn finds(
    app: &App,
    retriever: &RetrieverModelOutput,
    all: &[CollectionResponse],
    feature: &str,
) -> bool {
    let named = &retriever.collection_ids;
    let searched = all.iter().filter(|one| {
        let id = one.collection_id.as_ref();
        named.is_empty() || id.is_some_and(|id| named.contains(id))
    });
    let mut searched = searched.map(|one| collections::searchable(app, one));
    searched.any(|one| stage::index_of(&one, feature).is_some())
}

fn lost(retriever: &RetrieverModelOutput, feature: &str) -> ValidationError {
    let id = retriever.retriever_id.clone().unwrap_or_default();
    let message = format!(
        "{id} ({}) searches by {feature}, which none of its collections has once they are extracted anew",
        retriever.retriever_name
    );
    ValidationError {
        resource_id: Some(id),
        resource_type: Some(MigrationResourceType::Retriever),
        ..warning("feature_lost", message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn index(version: &str, output: &str) -> IndexInfo {
        serde_json::from_value(json!({
            "feature_uri": format!("loupe://text_extractor@{version}/{output}"), "name": format!("text_extractor_{version}_{output}"),
            "output": output, "dims": 3, "distance": "cosine", "source": "text_model",
        }))
        .unwrap()
    }

    #[test]
    fn an_index_of_the_same_output_takes_the_place_of_the_old_one() {
        let names = renamed(
            &[index("v1", "m"), index("v1", "gone")],
            &[index("v2", "m")],
        );
        let retriever = json!({
            "retriever_id": "ret_1", "retriever_name": "by m", "collection_identifiers": [], "input_schema": {},
            "feature_dependencies": [{"scheme": "loupe", "extractor": "text_extractor", "version": "v1", "output": "m"}],
            "stages": [{"stage_name": "s", "config": {"stage_id": "feature_search", "parameters": {
                "searches": [{"feature_uri": "loupe://text_extractor@v1/m"}, {"feature_uri": "loupe://text_extractor@v1/gone"}],
            }}, "parameters": {"vector_index": "text_extractor_v1_m"}}],
        });
        let retriever: RetrieverModelOutput = serde_json::from_value(retriever).unwrap();
        let expected = [
            "loupe://text_extractor@v1/gone",
            "loupe://text_extractor@v1/m",
            "text_extractor_v1_m",
        ];
        assert!(
            features_of(&retriever).iter().eq(expected.iter()),
            "{:?}",
            features_of(&retriever)
        );
        let mut pattern = Pattern {
            buckets: Vec::new(),
            collections: Vec::new(),
            retrievers: vec![retriever],
            taxonomies: Vec::new(),
        };
        put(&names, &mut pattern).unwrap();
        let expected = [
            "loupe://text_extractor@v1/gone",
            "loupe://text_extractor@v2/m",
            "text_extractor_v2_m",
        ];
        assert!(
            features_of(&pattern.retrievers[0])
                .iter()
                .eq(expected.iter())
        );
        let told = pattern.retrievers[0].feature_dependencies.as_ref().unwrap();
        assert_eq!(told[0].version, "v2");
    }

    #[test]
    fn what_a_collection_is_made_of_is_known_through_others() {
        let collection = |id: &str, source: Value| -> CollectionResponse {
            serde_json::from_value(json!({
                "collection_id": id, "collection_name": id, "source": source, "feature_extractor": {
                    "feature_extractor_name": "text_extractor", "version": "v1", "feature_extractor_id": "text_extractor_v1",
                },
            }))
            .unwrap()
        };
        let over = |id: &str, ids: &[&str]| {
            collection(id, json!({"type": "collection", "collection_ids": ids}))
        };
        let all = [
            collection("pages", json!({"type": "bucket", "bucket_ids": ["bkt_1"]})),
            collection("notes", json!({"type": "direct_upsert"})),
            over("chunks", &["pages"]),
            over("words", &["notes"]),
            over("mixed", &["chunks", "words"]),
            over("left", &["col_gone"]),
        ];
        let origins = all.each_ref().map(|one| origin(one, &all, TIERS));
        use Origin::{Both, Callers, Objects};
        assert_eq!(origins, [Objects, Callers, Objects, Callers, Both, Callers]);
    }
}
