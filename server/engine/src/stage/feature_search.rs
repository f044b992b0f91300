//! `feature_search`: documents by the similarity of their vectors and by keywords, from one or several searches.

use std::collections::{HashMap, HashSet};

use loupe_wire::{
    FeatureSearchConfig, FeatureSearchGroupBy, FusionStrategy, Object, OnEmptyBehavior,
    StageParamsFeatureSearch, Value,
};
use rand::{Rng as _, seq::SliceRandom as _};
use serde_json::json;

use super::execution::{Execution, typed};
use super::fusion::{Fused, Leg, fuse};
use super::group::group;
use super::learned::{remember, weigh};
use super::lists::{self, Job};
use super::query::{self, Query};
use super::targets::{Target, targets};
use super::working::{Row, Working, documents};
use super::{RunError, decompose, facets};
use crate::embed::EmbedError;
use crate::filter::{Filter, Operator};
use crate::store::{Document, Ranking, Reach, SearchQuery, WithVectors};

/// As [`search`], from memory where the same was asked before.
pub(crate) async fn run(
    at: &mut Execution,
    parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    super::kept::search(at, parameters, set).await
}

pub(crate) async fn search(
    at: &mut Execution,
    mut parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    let own_filters = own_filters(at, &parameters)?;
    for search in parameters
        .get_mut("searches")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(query) = search.get_mut("query").and_then(Value::as_object_mut) {
            query::coerce(query);
        }
    }
    let stage_filter = filters_of(at, &parameters)?;
    let p: StageParamsFeatureSearch = typed(at, parameters)?;
    let base = and(before(set), stage_filter);
    let places: Vec<Vec<Target>> = p
        .searches
        .iter()
        .map(|s| search_targets(at, &p, s))
        .collect();
    for (search, found) in p.searches.iter().zip(&places) {
        if found.is_empty() {
            at.warn(format!(
                "stage `{}`: no collection in reach has the feature `{}`; this search found nothing",
                at.stage, search.feature_uri
            ));
        }
    }
    let prepared = prepare(at, &p, &places, own_filters, base.as_ref()).await?;
    let (legs, documents) = answers(at, prepared, &p).await?;
    let mut legs = decompose::gather(&p, legs, &documents);
    facets::of_all(at, &p, &places, base.as_ref()).await?;
    let lists: Vec<Value> = legs
        .iter()
        .map(|l| json!({"name": l.name, "found": l.hits.len()}))
        .collect();
    at.report.metadata.insert("searches".into(), json!(lists));
    at.legs = legs
        .iter()
        .filter_map(|leg| {
            let search = p.searches.get(leg.search)?;
            Some((leg.name.clone(), search.feature_uri.clone()))
        })
        .collect();
    let (strategy, told) = strategy(at, &p, &mut legs);
    let fused = fuse(strategy, &legs);
    if let Some(told) = told {
        remember(at, told, &fused, &legs);
    }
    Ok(Working::Rows(rows(&p, fused, documents, legs.len())))
}

/// How the lists become one, and what was learned of them where that counts.
fn strategy(
    at: &mut Execution,
    p: &StageParamsFeatureSearch,
    legs: &mut [Leg],
) -> (FusionStrategy, Option<Object>) {
    let (strategy, config) = (
        p.fusion.unwrap_or(FusionStrategy::Rrf),
        p.learning_config.as_ref(),
    );
    if strategy == FusionStrategy::Learned {
        return (strategy, Some(weigh(at, config, legs)));
    }
    if config.is_some() {
        at.warn(format!(
            "stage `{}`: `learning_config` is of the fusion `learned`, which is not asked for",
            at.stage
        ));
    }
    (strategy, None)
}

/// What the searches ask for, each within its own conditions and those of the stage.
async fn prepare(
    at: &mut Execution,
    p: &StageParamsFeatureSearch,
    places: &[Vec<Target>],
    own_filters: Vec<Option<Filter>>,
    base: Option<&Filter>,
) -> Result<Prepared, RunError> {
    let asked: Vec<query::Search<'_>> = p
        .searches
        .iter()
        .zip(places)
        .map(|(s, t)| (&s.query, t.as_slice(), decompose::of(p, s)))
        .collect();
    let (mut prepared, mut failed) = (Prepared::default(), HashSet::new());
    let patience = query::patience(at, &p.searches);
    for (i, query) in query::resolve(at, &asked, patience).await? {
        let (Some(search), Some(found)) = (p.searches.get(i), places.get(i)) else {
            continue;
        };
        // The parts of one query fail together.
        if query.failed.is_some() && !failed.insert(i) {
            continue;
        }
        let own = own_filters.get(i).cloned().flatten();
        let filter = and(base.cloned(), own);
        prepared
            .add(at, i, (search, found.as_slice()), query, filter)
            .await?;
    }
    Ok(prepared)
}

fn rows(
    p: &StageParamsFeatureSearch,
    fused: Vec<Fused>,
    mut documents: HashMap<String, Document>,
    legs: usize,
) -> Vec<Row> {
    let ranked = fused.into_iter().filter_map(|f| {
        let mut document = documents.remove(&f.document_id)?;
        let vectors = std::mem::take(&mut document.vectors);
        let mut row = Row::new(document, Some(f.score));
        if legs > 1 {
            row.set(
                "scores",
                json!(f.scores.into_iter().collect::<HashMap<_, _>>()),
            );
        }
        if !vectors.is_empty() {
            row.set("vectors", json!(vectors));
        }
        Some(row)
    });
    let most = p.final_top_k.max(1) as usize;
    match &p.group_by {
        None => ranked.take(most).collect(),
        Some(by) => {
            let mut rows = grouped(ranked.collect(), by);
            rows.truncate(most);
            rows
        }
    }
}

/// The rows in the groups that a search wants.
pub(super) fn grouped(rows: Vec<Row>, by: &FeatureSearchGroupBy) -> Vec<Row> {
    let (each, limit) = (by.max_per_group.max(1) as usize, by.limit.max(1) as usize);
    group(rows, &by.field, each, limit, by.output_mode)
}

/// `filters` and `pre_filters` of a stage or a search, with their inputs.
fn filters_of(at: &mut Execution, object: &Object) -> Result<Option<Filter>, RunError> {
    let mut all = None;
    for name in ["filters", "pre_filters"] {
        if let Some(raw) = object.get(name).filter(|v| !v.is_null()) {
            let filter = at.filter(raw)?;
            all = and(all, (!filter.is_trivial()).then_some(filter));
        }
    }
    Ok(all)
}

fn own_filters(at: &mut Execution, parameters: &Object) -> Result<Vec<Option<Filter>>, RunError> {
    let searches = parameters
        .get("searches")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    searches
        .iter()
        .map(|s| {
            s.as_object()
                .map_or(Ok(None), |object| filters_of(at, object))
        })
        .collect()
}

fn and(a: Option<Filter>, b: Option<Filter>) -> Option<Filter> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.and(b)),
        (a, b) => a.or(b),
    }
}

/// What the stages before leave to be searched: a filter, or the rows they kept.
fn before(set: Working) -> Option<Filter> {
    match set {
        Working::Unread { filter, .. } => filter,
        Working::Rows(rows) => {
            let ids: Vec<Value> = rows.iter().map(|row| json!(row.id())).collect();
            Some(Filter::leaf("document_id", Operator::In, Value::Array(ids)))
        }
    }
}

fn search_targets(
    at: &Execution,
    p: &StageParamsFeatureSearch,
    search: &FeatureSearchConfig,
) -> Vec<Target> {
    let only = if search.collection_identifiers.is_empty() {
        &p.collection_identifiers
    } else {
        &search.collection_identifiers
    };
    targets(&at.run.collections, &search.feature_uri, only)
}

/// What a stage's searches come to: lists to ask for, lists already there, and why one is missing.
#[derive(Default)]
struct Prepared {
    jobs: Vec<Job>,
    legs: Vec<Leg>,
    documents: HashMap<String, Document>,
    failure: Option<EmbedError>,
}

impl Prepared {
    /// Adds one search. Empty queries and failed embeddings leave it out where it may be left out.
    async fn add(
        &mut self,
        at: &mut Execution,
        i: usize,
        asked: (&FeatureSearchConfig, &[Target]),
        query: Query,
        filter: Option<Filter>,
    ) -> Result<(), RunError> {
        let (search, places) = asked;
        if places.is_empty() {
            return Ok(());
        }
        if query.empty {
            return match search.on_empty {
                Some(OnEmptyBehavior::Random) => self.random(at, i, asked, filter).await,
                Some(OnEmptyBehavior::Skip) => Ok(()),
                _ if search.optional => Ok(()),
                _ => Err(RunError::Invalid(format!(
                    "the query of search {i} of the stage `{}` is empty; send it, or set on_empty or optional",
                    at.stage
                ))),
            };
        }
        if let Some(error) = query.failed {
            let next_step = "make the model available, then ask again";
            at.degrade(
                "feature",
                &search.feature_uri,
                &error.to_string(),
                next_step,
            );
            self.failure = self.failure.take().or((!search.optional).then_some(error));
        }
        let itself = query
            .itself
            .map(|id| Filter::leaf("document_id", Operator::Ne, json!(id)));
        let filter = and(filter, itself);
        if let Some(vector) = query.vector {
            let min = search.min_score.map(|s| s as f32);
            self.jobs.push(job(at, (i, ""), asked, &filter, &|target| {
                let index = target.index.clone();
                (
                    Ranking::Nearest {
                        index,
                        vector: vector.clone(),
                    },
                    min,
                )
            }));
        }
        if search.lexical {
            self.add_keywords(at, i, asked, query.text, &filter);
        }
        Ok(())
    }

    /// Adds the list of keywords of one search.
    fn add_keywords(
        &mut self,
        at: &mut Execution,
        i: usize,
        asked: (&FeatureSearchConfig, &[Target]),
        text: Option<String>,
        filter: &Option<Filter>,
    ) {
        let Some(text) = text else {
            at.warn(format!(
                "search {i} has no text, so no keywords were searched for"
            ));
            return;
        };
        let mut keywords = job(at, (i, "_lexical"), asked, filter, &|_| {
            (Ranking::Keywords { text: text.clone() }, None)
        });
        one_reach(&mut keywords);
        self.jobs.push(keywords);
    }

    /// Documents by chance, for a search without a query.
    async fn random(
        &mut self,
        at: &Execution,
        i: usize,
        (search, places): (&FeatureSearchConfig, &[Target]),
        filter: Option<Filter>,
    ) -> Result<(), RunError> {
        let ids: Vec<String> = places
            .iter()
            .flat_map(|t| t.collection_ids.clone())
            .collect();
        let limit = search.top_k.clamp(1, 5000) as usize;
        let wanted = (limit * 4).min(1000).max(limit);
        let mut found = some(at, &at.reach(&ids), filter, wanted).await?;
        found.shuffle(&mut rand::rng());
        found.truncate(limit);
        let hits = found.iter().map(|d| (d.document_id.clone(), 0.0)).collect();
        self.documents
            .extend(found.into_iter().map(|d| (d.document_id.clone(), d)));
        self.legs.push(Leg {
            search: i,
            name: format!("search_{i}_random"),
            weight: search.weight,
            hits,
        });
        Ok(())
    }
}

/// As many documents as are wanted, from a place by chance on, and after the last one the first: each may be among them.
async fn some(
    at: &Execution,
    reach: &Reach,
    filter: Option<Filter>,
    wanted: usize,
) -> Result<Vec<Document>, RunError> {
    let store = &*at.run.store;
    let all = usize::try_from(store.count(reach, filter.as_ref()).await?).unwrap_or(usize::MAX);
    let start = match all > wanted {
        true => rand::rng().random_range(0..all),
        false => 0,
    };
    let mut found = documents(store, reach, filter.clone(), None, start, wanted).await?;
    let rest = wanted.saturating_sub(found.len()).min(start);
    if rest > 0 {
        found.extend(documents(store, reach, filter, None, 0, rest).await?);
    }
    Ok(found)
}

/// The list of one search, asked of every index that has the feature.
fn job(
    at: &Execution,
    (number, kind): (usize, &str),
    (search, places): (&FeatureSearchConfig, &[Target]),
    filter: &Option<Filter>,
    rank: &dyn Fn(&Target) -> (Ranking, Option<f32>),
) -> Job {
    let limit = search.top_k.max(1) as usize;
    let vectors = if at.run.return_vectors {
        WithVectors::Yes
    } else {
        WithVectors::No
    };
    let ask = |target: &Target| {
        let (ranking, min_score) = rank(target);
        let query = SearchQuery {
            ranking,
            filter: filter.clone(),
            limit,
            min_score,
            vectors,
        };
        (at.reach(&target.collection_ids), query)
    };
    Job {
        search: number,
        name: format!("search_{number}{kind}"),
        weight: search.weight,
        limit,
        asks: places.iter().map(ask).collect(),
    }
}

/// Keywords know no index: one question over all collections, so that BM25 scores are of one corpus.
fn one_reach(job: &mut Job) {
    let rest: Vec<String> = job
        .asks
        .drain(1..)
        .flat_map(|(reach, _)| reach.collection_ids)
        .collect();
    if let Some((reach, _)) = job.asks.first_mut() {
        reach.collection_ids.extend(rest);
    }
}

/// Asks the store for every list at once, within the stage's own time.
async fn answers(
    at: &mut Execution,
    prepared: Prepared,
    p: &StageParamsFeatureSearch,
) -> Result<(Vec<Leg>, HashMap<String, Document>), RunError> {
    let Prepared {
        mut jobs,
        mut legs,
        mut documents,
        failure,
    } = prepared;
    if let Some(error) = failure.filter(|_| jobs.is_empty() && legs.is_empty()) {
        return Err(error.into());
    }
    let found = lists::found(at, p, &mut jobs).await;
    for (job, hits) in jobs.iter().zip(found) {
        let hits = hits?;
        legs.push(Leg {
            search: job.search,
            name: job.name.clone(),
            weight: job.weight,
            hits: hits
                .iter()
                .map(|h| (h.document.document_id.clone(), f64::from(h.score)))
                .collect(),
        });
        documents.extend(
            hits.into_iter()
                .map(|h| (h.document.document_id.clone(), h.document)),
        );
    }
    Ok((legs, documents))
}
