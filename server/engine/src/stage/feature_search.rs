//! `feature_search`: documents by the similarity of their vectors and by keywords, from one or several searches.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use loupe_wire::{
    FeatureSearchConfig, FusionStrategy, Object, OnEmptyBehavior, SearchQueryInput, StageCategory,
    StageParamsFeatureSearch, Value,
};
use rand::seq::SliceRandom as _;
use serde_json::json;

use super::fusion::{Fused, Leg, fuse};
use super::group::{MODES, group};
use super::plan::{Execution, typed};
use super::query::{self, Query};
use super::schema::{Kind, Member, inside, member, problem, required};
use super::working::{Row, Working};
use super::{Definition, RunError, Searchable, StageProblem};
use crate::filter::{Filter, Operator};
use crate::store::{Document, Hit, ListQuery, Ranking, Reach, SearchQuery, WithVectors};
use crate::template::is_template;

const SEARCH: &[Member] = &[
    required(
        "feature_uri",
        Kind::Text,
        "The feature to search, such as loupe://text_extractor@v1/all_minilm_l6_v2_v1, or the name of a vector index",
    ),
    required("query", Kind::Query, "What is searched for"),
    member(
        "top_k",
        Kind::Integer(1, 5000),
        "100",
        "Most documents that this search finds",
    ),
    member(
        "min_score",
        Kind::Number(0.0, 1.0),
        "",
        "Similarity below which documents are left out; not for keywords",
    ),
    member(
        "weight",
        Kind::Number(0.0, 1.0),
        "1.0",
        "Its weight beside the other searches",
    ),
    member(
        "lexical",
        Kind::Boolean,
        "false",
        "Whether the query's words are searched for as well",
    ),
    member(
        "optional",
        Kind::Boolean,
        "false",
        "Whether the others go on without it when it has no query or fails",
    ),
    member(
        "on_empty",
        Kind::Choice(&["error", "skip", "random"]),
        r#""error""#,
        "What an empty query does",
    ),
    member(
        "filters",
        Kind::Filter,
        "",
        "Conditions for this search alone",
    ),
    member("pre_filters", Kind::Filter, "", "The same as `filters`"),
    member(
        "collection_identifiers",
        Kind::Texts,
        "[]",
        "Ids or names of the collections searched; all where not given",
    ),
    member("query_preprocessing", Kind::NotBuilt, "", ""),
];

const FACET: &[Member] = &[
    required(
        "key",
        Kind::Text,
        "Dot path of the field whose values are counted",
    ),
    member("limit", Kind::Integer(1, 1000), "10", "Most values"),
    member(
        "exact",
        Kind::Boolean,
        "false",
        "Accepted; counts are exact",
    ),
];

const GROUP_BY: &[Member] = &[
    required(
        "field",
        Kind::Text,
        "Dot path of the field that a group shares",
    ),
    member(
        "max_per_group",
        Kind::Integer(1, 100),
        "1",
        "Most documents of one group",
    ),
    member("limit", Kind::Integer(1, 500), "25", "Most groups"),
    member(
        "output_mode",
        Kind::Choice(MODES),
        r#""all""#,
        "first: the best document of each group; all: one row a group; flatten: the documents of all groups",
    ),
];

pub(crate) static DEFINITION: Definition = Definition {
    id: "feature_search",
    aliases: &["feature_filter"],
    category: StageCategory::Filter,
    icon: "search",
    about: "Finds documents by similarity to a text, picture, vector or document, and by keywords",
    members: &[
        member(
            "searches",
            Kind::Objects(SEARCH, 10),
            "[]",
            "What is searched; several are fused",
        ),
        member(
            "final_top_k",
            Kind::Integer(1, 5000),
            "25",
            "Most documents that the stage gives",
        ),
        member(
            "fusion",
            Kind::Choice(&["rrf", "dbsf", "weighted", "max"]),
            r#""rrf""#,
            "How several searches become one ranking",
        ),
        member("filters", Kind::Filter, "", "Conditions for every search"),
        member("pre_filters", Kind::Filter, "", "The same as `filters`"),
        member(
            "facets",
            Kind::Objects(FACET, 20),
            "[]",
            "Fields whose values are counted over the documents that satisfy the filters",
        ),
        member(
            "group_by",
            Kind::Object(GROUP_BY),
            "",
            "Gathers documents that share a field's value",
        ),
        member(
            "collection_identifiers",
            Kind::Texts,
            "[]",
            "Ids or names of the collections searched; all where not given",
        ),
        member(
            "hard_timeout_ms",
            Kind::Integer(1, 600_000),
            "",
            "The stage gives nothing when the store takes longer",
        ),
        member("interactive", Kind::Boolean, "false", "Accepted"),
        member("degrade_retry", Kind::Boolean, "false", "Accepted"),
        member("auto_preprocess", Kind::Boolean, "true", "Accepted"),
        member(
            "cache_behavior",
            Kind::Choice(&["auto", "disabled", "aggressive"]),
            r#""auto""#,
            "Accepted",
        ),
        member(
            "cache_ttl_seconds",
            Kind::Integer(0, 31_536_000),
            "",
            "Accepted",
        ),
        member("learning_config", Kind::NotBuilt, "", ""),
        member("query_preprocessing", Kind::NotBuilt, "", ""),
    ],
};

/// The short form of one search (`feature_uri`, `query` beside `final_top_k`) becomes a list of one; a query that is a
/// text becomes the mode `text`.
pub(crate) fn normalize(parameters: &mut Object) {
    if !parameters.contains_key("searches") && parameters.contains_key("feature_uri") {
        const OF_THE_SEARCH: [&str; 8] = [
            "feature_uri",
            "query",
            "top_k",
            "min_score",
            "weight",
            "lexical",
            "optional",
            "on_empty",
        ];
        let mut search = Object::new();
        for name in OF_THE_SEARCH {
            if let Some(value) = parameters.shift_remove(name) {
                search.insert(name.to_owned(), value);
            }
        }
        parameters.insert("searches".into(), json!([search]));
    }
    let searches = parameters.get_mut("searches").and_then(Value::as_array_mut);
    for search in searches.into_iter().flatten() {
        if let Some(query) = search.get_mut("query") {
            if query.is_string() {
                *query = json!({"input_mode": "text", "value": query.take()});
            } else if let Some(object) = query.as_object_mut() {
                object.entry("input_mode").or_insert_with(|| json!("text"));
            }
        }
    }
}

/// What the table cannot say.
pub(crate) fn check(parameters: &Object, loc: &[String], out: &mut Vec<StageProblem>) {
    let place = inside(loc, "searches");
    let searches = parameters
        .get("searches")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if searches.is_empty() {
        out.push(problem(
            place.clone(),
            "missing",
            "a search stage has 1 to 10 searches".into(),
        ));
    }
    for (i, search) in searches.iter().enumerate() {
        let uri = search
            .get("feature_uri")
            .and_then(Value::as_str)
            .unwrap_or("ok");
        if !is_template(uri) && !is_feature(uri) {
            let msg = format!(
                "`{uri}` is neither loupe://extractor@version/output nor the name of a vector index"
            );
            out.push(problem(
                inside(&inside(&place, &i.to_string()), "feature_uri"),
                "invalid_feature_uri",
                msg,
            ));
        }
    }
}

fn is_feature(uri: &str) -> bool {
    let word = |s: &str, more: &str| {
        !s.is_empty()
            && s.chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.' || more.contains(c))
    };
    match uri.strip_prefix("loupe://") {
        None => !uri.contains("://") && word(uri, "-@"),
        Some(rest) => {
            let mut parts = rest.split('/');
            let head = parts.next().and_then(|h| h.split_once('@'));
            head.is_some_and(|(name, version)| word(name, "-") && word(version, ""))
                && parts.all(|p| word(p, "-@"))
        }
    }
}

/// An index that a search reads, and the collections that have it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub index: String,
    pub output: String,
    pub dims: usize,
    pub collection_ids: Vec<String>,
}

/// Where a feature is found. The same output segment is the same embedding space, whichever extractor filled it.
pub(crate) fn targets(collections: &[Searchable], feature: &str, only: &[String]) -> Vec<Target> {
    let output = feature
        .strip_prefix("loupe://")
        .and_then(|rest| rest.split_once('/'))
        .map(|(_, output)| output);
    let extractor_alone = feature.starts_with("loupe://") && output.is_none();
    let mut list: Vec<Target> = Vec::new();
    for c in collections
        .iter()
        .filter(|c| only.is_empty() || only.contains(&c.collection_id) || only.contains(&c.name))
    {
        let by = |test: &dyn Fn(&super::SearchIndex) -> bool| c.indexes.iter().find(|i| test(i));
        let exact = by(&|i| i.feature_uri.as_deref() == Some(feature) || i.name == feature);
        let found = exact
            .or_else(|| by(&|i| output == Some(i.output.as_str())))
            .or_else(|| {
                by(&|i| {
                    extractor_alone
                        && i.feature_uri
                            .as_deref()
                            .is_some_and(|u| u.starts_with(&format!("{feature}/")))
                })
            });
        let Some(index) = found else { continue };
        match list
            .iter_mut()
            .find(|t| t.index == index.name && t.dims == index.dims)
        {
            Some(target) => target.collection_ids.push(c.collection_id.clone()),
            None => list.push(Target {
                index: index.name.clone(),
                output: index.output.clone(),
                dims: index.dims,
                collection_ids: vec![c.collection_id.clone()],
            }),
        }
    }
    list
}

/// One ranked list to ask the store for; several asks where collections keep the feature in different indexes.
struct Job {
    name: String,
    weight: f64,
    limit: usize,
    asks: Vec<(Reach, SearchQuery)>,
}

pub(crate) async fn run(
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
    let asked: Vec<(&SearchQueryInput, &[Target])> = p
        .searches
        .iter()
        .zip(&places)
        .map(|(s, t)| (&s.query, t.as_slice()))
        .collect();
    let queries = query::resolve(at, &asked).await?;
    let (jobs, mut legs, mut documents) =
        plan_jobs(at, &p, &places, queries, &base, own_filters).await?;
    let store = at.run.store.clone();
    let work = join_all(jobs.iter().map(|job| ask(&*store, job)));
    let answers = match p.hard_timeout_ms {
        None => work.await,
        Some(ms) => match tokio::time::timeout(Duration::from_millis(ms.max(1) as u64), work).await
        {
            Ok(answers) => answers,
            Err(_) => {
                let stage = at.stage.clone();
                at.degrade(
                    "stage",
                    &stage,
                    &format!("the search took longer than {ms} ms"),
                    "ask again, or raise hard_timeout_ms",
                );
                Vec::new()
            }
        },
    };
    for (job, answer) in jobs.iter().zip(answers) {
        let hits = answer?;
        legs.push(Leg {
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
    count_facets(at, &p, &places, base.as_ref()).await?;
    let lists: Vec<Value> = legs
        .iter()
        .map(|l| json!({"name": l.name, "found": l.hits.len()}))
        .collect();
    at.report.metadata.insert("searches".into(), json!(lists));
    let fused = fuse(p.fusion.unwrap_or(FusionStrategy::Rrf), &legs);
    Ok(Working::Rows(rows(&p, fused, documents, legs.len())))
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
        Some(g) => {
            let (each, limit) = (g.max_per_group.max(1) as usize, g.limit.max(1) as usize);
            let mut rows = group(ranked.collect(), &g.field, each, limit, g.output_mode);
            rows.truncate(most);
            rows
        }
    }
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

type Prepared = (Vec<Job>, Vec<Leg>, HashMap<String, Document>);

/// The lists to ask for. Empty queries and failed embeddings leave a search out where it may be left out.
async fn plan_jobs(
    at: &mut Execution,
    p: &StageParamsFeatureSearch,
    places: &[Vec<Target>],
    queries: Vec<Query>,
    base: &Option<Filter>,
    own: Vec<Option<Filter>>,
) -> Result<Prepared, RunError> {
    let (mut jobs, mut legs, mut documents) = (Vec::new(), Vec::new(), HashMap::new());
    let mut failure = None;
    for (i, ((search, query), own)) in p.searches.iter().zip(queries).zip(own).enumerate() {
        let places = &places[i];
        if places.is_empty() {
            continue;
        }
        let filter = and(base.clone(), own);
        if query.empty {
            match search.on_empty {
                Some(OnEmptyBehavior::Random) => {
                    legs.push(random(at, i, search, places, filter, &mut documents).await?);
                }
                Some(OnEmptyBehavior::Skip) => {}
                _ if search.optional => {}
                _ => {
                    return Err(RunError::Invalid(format!(
                        "the query of search {i} of the stage `{}` is empty; send it, or set on_empty or optional",
                        at.stage
                    )));
                }
            }
            continue;
        }
        if let Some(error) = query.failed {
            at.degrade(
                "feature",
                &search.feature_uri,
                &error.to_string(),
                "make the model available, then ask again",
            );
            failure = failure.or((!search.optional).then_some(error));
        }
        let itself = query
            .itself
            .map(|id| Filter::leaf("document_id", Operator::Ne, json!(id)));
        let filter = and(filter, itself);
        let job = |name: String, make: &dyn Fn(&Target) -> (Ranking, Option<f32>)| Job {
            name,
            weight: search.weight,
            limit: search.top_k.max(1) as usize,
            asks: places
                .iter()
                .map(|target| {
                    let (ranking, min_score) = make(target);
                    let vectors = if at.run.return_vectors {
                        WithVectors::Yes
                    } else {
                        WithVectors::No
                    };
                    let limit = search.top_k.max(1) as usize;
                    let query = SearchQuery {
                        ranking,
                        filter: filter.clone(),
                        limit,
                        min_score,
                        vectors,
                    };
                    (at.reach(&target.collection_ids), query)
                })
                .collect(),
        };
        if let Some(vector) = query.vector {
            let min = search.min_score.map(|s| s as f32);
            jobs.push(job(format!("search_{i}"), &|target| {
                (
                    Ranking::Nearest {
                        index: target.index.clone(),
                        vector: vector.clone(),
                    },
                    min,
                )
            }));
        }
        match query.text {
            Some(text) if search.lexical => {
                let mut keywords = job(format!("search_{i}_lexical"), &|_| {
                    (Ranking::Keywords { text: text.clone() }, None)
                });
                one_reach(&mut keywords);
                jobs.push(keywords);
            }
            None if search.lexical => at.warn(format!(
                "search {i} has no text, so no keywords were searched for"
            )),
            _ => {}
        }
    }
    match failure {
        Some(error) if jobs.is_empty() && legs.is_empty() => Err(error.into()),
        _ => Ok((jobs, legs, documents)),
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

/// Documents by chance, for a search without a query.
async fn random(
    at: &Execution,
    i: usize,
    search: &FeatureSearchConfig,
    places: &[Target],
    filter: Option<Filter>,
    documents: &mut HashMap<String, Document>,
) -> Result<Leg, RunError> {
    let ids: Vec<String> = places
        .iter()
        .flat_map(|t| t.collection_ids.clone())
        .collect();
    let limit = search.top_k.clamp(1, 5000) as usize;
    let query = ListQuery {
        filter,
        limit: (limit * 4).min(1000),
        ..ListQuery::default()
    };
    let mut found = at.run.store.list(&at.reach(&ids), query).await?.documents;
    found.shuffle(&mut rand::rng());
    found.truncate(limit);
    let hits = found.iter().map(|d| (d.document_id.clone(), 0.0)).collect();
    documents.extend(found.into_iter().map(|d| (d.document_id.clone(), d)));
    Ok(Leg {
        name: format!("search_{i}_random"),
        weight: search.weight,
        hits,
    })
}

async fn ask(store: &dyn crate::store::DocStore, job: &Job) -> Result<Vec<Hit>, RunError> {
    let answers = try_join_all(
        job.asks
            .iter()
            .map(|(reach, query)| store.search(reach, query.clone())),
    )
    .await?;
    let mut hits: Vec<Hit> = answers.into_iter().flatten().collect();
    if job.asks.len() > 1 {
        hits.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.document.document_id.cmp(&b.document.document_id))
        });
        hits.truncate(job.limit);
    }
    Ok(hits)
}

/// Counts over the documents that the filters let through in the collections searched.
async fn count_facets(
    at: &mut Execution,
    p: &StageParamsFeatureSearch,
    places: &[Vec<Target>],
    filter: Option<&Filter>,
) -> Result<(), RunError> {
    if p.facets.is_empty() {
        return Ok(());
    }
    let mut ids: Vec<String> = places
        .iter()
        .flatten()
        .flat_map(|t| t.collection_ids.clone())
        .collect();
    ids.sort();
    ids.dedup();
    if ids.is_empty() {
        return Ok(());
    }
    let (reach, store) = (at.reach(&ids), at.run.store.clone());
    let counts = try_join_all(
        p.facets
            .iter()
            .map(|f| store.facet(&reach, filter, &f.key, f.limit.max(1) as usize)),
    )
    .await?;
    for (facet, values) in p.facets.iter().zip(counts) {
        let mut told = Object::new();
        told.insert("key".into(), json!(facet.key));
        told.insert("values".into(), json!(values));
        at.report.facets.push(told);
    }
    Ok(())
}
