//! `query_preprocessing`: a long text cut into parts, each searched with by itself, and their lists made one.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use loupe_wire::{
    FeatureSearchConfig, QueryPreprocessing, StageParamsFeatureSearch, TextSplitStrategy, Value,
    reading,
};
use serde_json::json;

use super::RunError;
use super::execution::{Execution, offload};
use super::fusion::{Leg, RRF_K};
use super::schema::{Kind, Member, member};
use super::working::Row;
use crate::extract::split::{Limit, Split, split};
use crate::store::Document;

/// Ways to cut, and to make one list of several.
const WAYS: &[&str] = &[
    "characters",
    "words",
    "sentences",
    "paragraphs",
    "markdown",
    "none",
];
const AGGREGATIONS: &[&str] = &["rrf", "max", "avg"];
/// What a text may be cut into, before `max_chunks` counts.
const LIMIT: Limit = Limit {
    chunks: 10_000,
    bytes: 64 << 20,
};

const PARAMS: &[Member] = &[
    member(
        "split_by",
        Kind::Choice(WAYS),
        r#""characters""#,
        "What the text is cut by",
    ),
    member(
        "chunk_size",
        Kind::Integer(1, 10_000),
        "1000",
        "How many of them are a part; characters for Markdown",
    ),
    member(
        "chunk_overlap",
        Kind::Integer(0, 5_000),
        "0",
        "How many of them are in the next part, too; less than `chunk_size`",
    ),
];

/// Members of `query_preprocessing`.
pub(super) const MEMBERS: &[Member] = &[
    member(
        "feature_uri",
        Kind::Text,
        "",
        "The feature that the parts are searched by: that of the search",
    ),
    member(
        "params",
        Kind::Object(PARAMS),
        "",
        "How a text is cut, as by `text_extractor`",
    ),
    member(
        "max_chunks",
        Kind::Integer(1, 500),
        "20",
        "Most parts that are searched with, of all searches of the stage",
    ),
    member(
        "aggregation",
        Kind::Choice(AGGREGATIONS),
        r#""rrf""#,
        "rrf: documents count by their ranks in the lists of the parts; max: by their best score; avg: by the mean",
    ),
    member(
        "dedup_field",
        Kind::Text,
        "",
        "Dot path of a field: of documents that share its value the best stays",
    ),
];

/// Characters past which a text is cut by itself: those of a part.
const A_PART: usize = 1_000;

/// What is to be done to the query of a search.
pub(crate) struct Cut {
    how: QueryPreprocessing,
    /// Shorter texts are left whole.
    longer_than: usize,
}

/// As the search says, or its stage; long texts alone where neither says anything.
pub(super) fn of(p: &StageParamsFeatureSearch, search: &FeatureSearchConfig) -> Option<Cut> {
    let own = search.query_preprocessing.as_ref();
    match own.or(p.query_preprocessing.as_ref()) {
        Some(how) => Some(Cut {
            how: how.clone(),
            longer_than: 0,
        }),
        None => p.auto_preprocess.then(|| Cut {
            how: QueryPreprocessing::default(),
            longer_than: A_PART,
        }),
    }
}

impl Cut {
    /// Whether one of the texts is to be cut.
    fn means(&self, texts: &[String]) -> bool {
        let long = |text: &String| text.chars().count() > self.longer_than;
        texts
            .iter()
            .any(|text| !text.trim().is_empty() && long(text))
    }
}

/// The texts of a query, in as many queries as there are parts; `before` counts those of the stage so far.
pub(super) async fn parts(
    at: &mut Execution,
    cut: Option<&Cut>,
    texts: Vec<String>,
    before: usize,
) -> Result<Vec<Vec<String>>, RunError> {
    let Some(Cut { how, .. }) = cut.filter(|cut| cut.means(&texts)) else {
        return Ok(vec![texts]);
    };
    let cut = cut_of(at, how)?;
    let chunks = offload(move || split(&texts, cut, LIMIT)).await?;
    let mut chunks = chunks
        .map_err(|error| RunError::Invalid(format!("stage `{}`: the query: {error}", at.stage)))?;
    let most = usize::try_from(how.max_chunks).unwrap_or(1);
    let room = most.saturating_sub(before).max(1);
    if chunks.len() > room {
        at.warn(format!(
            "stage `{}`: the query has {} parts; the first {room} were searched with",
            at.stage,
            chunks.len()
        ));
        chunks.truncate(room);
    }
    Ok(chunks.into_iter().map(|chunk| vec![chunk.text]).collect())
}

fn cut_of(at: &Execution, how: &QueryPreprocessing) -> Result<Split, RunError> {
    let figure = |name: &str, default: u64| {
        let given = how.params.get(name).and_then(Value::as_u64);
        given.unwrap_or(default) as usize
    };
    let by = how.params.get("split_by").cloned();
    let by = by.unwrap_or_else(|| json!("characters"));
    let by: TextSplitStrategy =
        reading::from_value(&by).map_err(|fault| RunError::Invalid(fault.to_string()))?;
    let (size, overlap) = (figure("chunk_size", 1_000), figure("chunk_overlap", 0));
    if overlap >= size {
        return Err(RunError::Invalid(format!(
            "stage `{}`: query_preprocessing.params.chunk_overlap must be less than chunk_size",
            at.stage
        )));
    }
    Ok(Split { by, size, overlap })
}

/// The lists with those of the parts of one query made one, in the order of the searches.
pub(super) fn gather(
    p: &StageParamsFeatureSearch,
    legs: Vec<Leg>,
    documents: &HashMap<String, Document>,
) -> Vec<Leg> {
    let mut groups: IndexMap<String, Vec<Leg>> = IndexMap::new();
    for leg in legs {
        groups.entry(leg.name.clone()).or_default().push(leg);
    }
    let mut gathered = Vec::with_capacity(groups.len());
    for legs in groups.into_values() {
        let search = legs.first().and_then(|leg| p.searches.get(leg.search));
        match search.and_then(|search| Some((search, of(p, search)?))) {
            // A text that was left whole has one list, as the store gave it.
            Some((search, cut)) if cut.longer_than == 0 || legs.len() > 1 => {
                gathered.extend(one(search, &cut.how, legs, documents));
            }
            _ => gathered.extend(legs),
        }
    }
    gathered
}

fn one(
    search: &FeatureSearchConfig,
    how: &QueryPreprocessing,
    legs: Vec<Leg>,
    documents: &HashMap<String, Document>,
) -> Option<Leg> {
    let count = legs.len();
    let mut scores: HashMap<String, f64> = HashMap::new();
    for (rank, (id, score)) in legs.iter().flat_map(|leg| leg.hits.iter().enumerate()) {
        let part = match how.aggregation.as_str() {
            // A single list keeps its scores.
            _ if count == 1 => *score,
            "max" => *score,
            "avg" => *score / count as f64,
            _ => 1.0 / (RRF_K + rank as f64 + 1.0),
        };
        let whole = scores.entry(id.clone());
        let whole = whole.and_modify(|known| match how.aggregation.as_str() {
            "max" => *known = known.max(part),
            _ => *known += part,
        });
        whole.or_insert(part);
    }
    let mut hits: Vec<(String, f64)> = scores.into_iter().collect();
    hits.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if let Some(field) = &how.dedup_field {
        let mut seen = HashSet::new();
        hits.retain(|(id, _)| {
            let document = documents.get(id).cloned();
            let row = document.map(|document| Row::new(document, None));
            let value = row.as_ref().and_then(|row| row.at(field));
            let value = value.filter(|value| !value.is_null());
            value.is_none_or(|value| seen.insert(value.to_string()))
        });
    }
    hits.truncate(search.top_k.clamp(1, 5000) as usize);
    let first = legs.into_iter().next()?;
    Some(Leg { hits, ..first })
}
