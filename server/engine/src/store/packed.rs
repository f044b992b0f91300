//! [`DocStore`] over the primitives of an engine: the reach in every access, filters pushed down as far as they go,
//! several shards merged into one answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::try_join_all;
use loupe_wire::Value;
use uuid::Uuid;

use super::shards::{Cond, Point, Query, Read, Score, Scored, Shard, Shards};
use super::{
    CollectionSpec, Distance, DocStore, Document, FacetCount, Hit, ListPage, ListQuery, Ranking,
    Reach, Result, SearchQuery, Selection, StoreError, WithVectors, layout, listing, pushdown,
};
use crate::filter::{Filter, Matcher, values_at};

/// Points of one write to an engine: bounds how long it holds its lock.
const CHUNK: usize = 256;
/// Points of one read while looking for what a filter evaluated here lets through.
const PAGE: usize = 1_000;
/// Ranked points looked at before the filter is evaluated on everything instead.
const MOST_RANKED: usize = 4_096;
/// The usual constant of reciprocal rank fusion.
const FUSION: f32 = 60.0;

/// A store over an engine.
#[derive(Debug)]
pub struct Packed<S> {
    pub(super) shards: S,
}

/// What an access may see: the condition for the engine, and the part of the filter left to evaluate.
pub(super) struct Access {
    pub(super) cond: Cond,
    residual: Option<Matcher>,
}

impl Access {
    fn new(reach: &Reach, filter: Option<&Filter>) -> Self {
        let pushed = pushdown::push(filter);
        let residual = if pushed.exact {
            None
        } else {
            filter.map(Filter::matcher)
        };
        Self {
            cond: layout::reach(reach).and(pushed.cond),
            residual,
        }
    }

    /// What a read has to bring along to be judged.
    fn read(&self) -> Read {
        if self.residual.is_some() {
            Read::PAYLOAD
        } else {
            Read::IDS
        }
    }

    fn admits(&self, document: &Document) -> bool {
        self.residual
            .as_ref()
            .is_none_or(|matcher| matcher.matches(&layout::view(document)))
    }
}

impl<S: Shards> Packed<S> {
    async fn shards_of(&self, reach: &Reach) -> Result<Vec<Arc<Shard>>> {
        if reach.collection_ids.is_empty() {
            return Ok(Vec::new());
        }
        self.shards
            .of(&reach.namespace_id, &reach.collection_ids)
            .await
    }

    /// Calls `visit` with every document of a shard that the access admits, in the order of ids, until it says stop.
    /// Without payloads asked for, documents carry their ids alone.
    pub(super) async fn each(
        &self,
        shard: &Arc<Shard>,
        access: &Access,
        from: Option<Uuid>,
        page: usize,
        payloads: bool,
        visit: &mut (dyn FnMut(Uuid, Document) -> bool + Send),
    ) -> Result<()> {
        let read = if payloads {
            Read::PAYLOAD
        } else {
            access.read()
        };
        let page = page.clamp(1, PAGE);
        let mut from = from;
        loop {
            // One more than a page tells where the next begins.
            let points = self
                .shards
                .scroll(shard, access.cond.clone(), from, page + 1, read)
                .await?;
            from = points.get(page).map(|point| point.id);
            for point in points.into_iter().take(page) {
                let id = point.id;
                let document = if read.payload {
                    layout::document(point, false)
                } else {
                    Some(Document::default())
                };
                let Some(document) = document else { continue };
                if access.admits(&document) && !visit(id, document) {
                    return Ok(());
                }
            }
            if from.is_none() {
                return Ok(());
            }
        }
    }

    async fn matching_ids(&self, shard: &Arc<Shard>, access: &Access) -> Result<Vec<Uuid>> {
        let mut ids = Vec::new();
        self.each(shard, access, None, PAGE, false, &mut |id, _| {
            ids.push(id);
            true
        })
        .await?;
        Ok(ids)
    }

    /// The documents of these ids that the reach includes, by id.
    pub(super) async fn fetch(
        &self,
        shards: &[Arc<Shard>],
        reach: &Reach,
        ids: &[Uuid],
        vectors: WithVectors,
    ) -> Result<HashMap<Uuid, Document>> {
        let with = vectors == WithVectors::Yes;
        let read = if with { Read::ALL } else { Read::PAYLOAD };
        let found = try_join_all(
            shards
                .iter()
                .map(|shard| self.shards.retrieve(shard, ids.to_vec(), read)),
        )
        .await?;
        Ok(found
            .into_iter()
            .flatten()
            .filter(|point| layout::reaches(reach, &point.payload))
            .filter_map(|point| Some((point.id, layout::document(point, with)?)))
            .collect())
    }

    /// The best documents of one shard with the engine's scores.
    async fn ranked(
        &self,
        shard: &Arc<Shard>,
        access: &Access,
        score: Score,
        limit: usize,
        read: Read,
    ) -> Result<Vec<(Document, f32)>> {
        let query = |filter: Cond, limit| Query {
            score: score.clone(),
            filter,
            limit,
            read,
        };
        let admitted = |hits: Vec<Scored>| -> Vec<(Document, f32)> {
            hits.into_iter()
                .filter_map(|hit| Some((layout::document(hit.point, read.vectors)?, hit.score)))
                .filter(|(document, _)| access.admits(document))
                .take(limit)
                .collect()
        };
        if access.residual.is_none() {
            return Ok(admitted(
                self.shards
                    .query(shard, query(access.cond.clone(), limit))
                    .await?,
            ));
        }
        let mut want = limit.saturating_mul(4).max(64);
        while want <= MOST_RANKED {
            let hits = self
                .shards
                .query(shard, query(access.cond.clone(), want))
                .await?;
            let all = hits.len() < want;
            let hits = admitted(hits);
            if all || hits.len() >= limit {
                return Ok(hits);
            }
            want *= 4;
        }
        // The filter lets too little through: find what it does first, then rank only that.
        let ids = self.matching_ids(shard, access).await?;
        Ok(admitted(
            self.shards
                .query(shard, query(access.cond.clone().and(Cond::Ids(ids)), limit))
                .await?,
        ))
    }

    /// Refuses ids that another collection already uses: they would take its documents away.
    async fn refuse_foreign(
        &self,
        shard: &Arc<Shard>,
        collection: &CollectionSpec,
        points: &[Point],
    ) -> Result<()> {
        let own = layout::scope(&collection.namespace_id, &collection.collection_id);
        let foreign = Cond::Ids(points.iter().map(|point| point.id).collect()).and(Cond::Not(
            Box::new(Cond::Keyword {
                path: layout::SCOPE,
                any: vec![own],
            }),
        ));
        if self.shards.count(shard, foreign).await? > 0 {
            return Err(StoreError::Invalid(
                "a document id is already used by another collection".to_owned(),
            ));
        }
        Ok(())
    }
}

#[async_trait]
impl<S: Shards> DocStore for Packed<S> {
    async fn upsert(&self, collection: &CollectionSpec, documents: Vec<Document>) -> Result<()> {
        check_schema(&collection.vectors)?;
        let spec = collection.clone();
        // Hashing the facts of a thousand documents takes milliseconds.
        let points = tokio::task::spawn_blocking(move || layout::points(&spec, documents))
            .await
            .map_err(|error| StoreError::Internal(error.to_string()))??;
        if points.is_empty() {
            return Ok(());
        }
        let shard = self.shards.ensure(collection).await?;
        let collections = std::slice::from_ref(&collection.collection_id);
        let others: Vec<_> = self
            .shards
            .of(&collection.namespace_id, collections)
            .await?;
        let own = layout::scope(&collection.namespace_id, &collection.collection_id);
        let mut rest = points.into_iter().peekable();
        while rest.peek().is_some() {
            let chunk: Vec<Point> = rest.by_ref().take(CHUNK).collect();
            self.refuse_foreign(&shard, collection, &chunk).await?;
            let ids = Cond::Ids(chunk.iter().map(|point| point.id).collect());
            self.shards.upsert(&shard, chunk).await?;
            // A collection whose vectors changed has its older documents in another shard: replace them there too.
            for other in others.iter().filter(|other| other.name != shard.name) {
                let filter = ids.clone().and(Cond::Keyword {
                    path: layout::SCOPE,
                    any: vec![own.clone()],
                });
                if self.shards.count(other, filter.clone()).await? > 0 {
                    self.shards.delete(other, filter).await?;
                }
            }
        }
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        self.shards.flush().await
    }

    async fn get(
        &self,
        reach: &Reach,
        ids: &[String],
        vectors: WithVectors,
    ) -> Result<Vec<Document>> {
        let shards = self.shards_of(reach).await?;
        let ids: Vec<Uuid> = ids.iter().filter_map(|id| layout::point_id(id)).collect();
        let found = self.fetch(&shards, reach, &ids, vectors).await?;
        Ok(ids.iter().filter_map(|id| found.get(id).cloned()).collect())
    }

    async fn delete(&self, reach: &Reach, which: Selection) -> Result<u64> {
        let access = match which {
            Selection::Ids(ids) => {
                let ids = ids.iter().filter_map(|id| layout::point_id(id)).collect();
                Access {
                    cond: layout::reach(reach).and(Cond::Ids(ids)),
                    residual: None,
                }
            }
            Selection::Matching(filter) => Access::new(reach, filter.as_ref()),
        };
        let mut removed = 0;
        for shard in self.shards_of(reach).await? {
            if access.residual.is_none() {
                let count = self.shards.count(&shard, access.cond.clone()).await?;
                if count > 0 {
                    self.shards.delete(&shard, access.cond.clone()).await?;
                }
                removed += count;
                continue;
            }
            for ids in self.matching_ids(&shard, &access).await?.chunks(PAGE) {
                self.shards
                    .delete(&shard, layout::reach(reach).and(Cond::Ids(ids.to_vec())))
                    .await?;
                removed += ids.len() as u64;
            }
        }
        Ok(removed)
    }

    async fn list(&self, reach: &Reach, query: ListQuery) -> Result<ListPage> {
        let access = Access::new(reach, query.filter.as_ref());
        let shards = self.shards_of(reach).await?;
        listing::page(self, &shards, reach, &access, &query).await
    }

    async fn count(&self, reach: &Reach, filter: Option<&Filter>) -> Result<u64> {
        let access = Access::new(reach, filter);
        let shards = self.shards_of(reach).await?;
        let counts = try_join_all(shards.iter().map(|shard| async {
            if access.residual.is_none() {
                return self.shards.count(shard, access.cond.clone()).await;
            }
            Ok(self.matching_ids(shard, &access).await?.len() as u64)
        }))
        .await?;
        Ok(counts.into_iter().sum())
    }

    async fn search(&self, reach: &Reach, query: SearchQuery) -> Result<Vec<Hit>> {
        let mut shards = self.shards_of(reach).await?;
        if let Ranking::Nearest { index, vector } = &query.ranking {
            shards = nearest_shards(shards, index, vector)?;
        }
        if query.limit == 0 {
            return Ok(Vec::new());
        }
        let access = Access::new(reach, query.filter.as_ref());
        let read = if query.vectors == WithVectors::Yes {
            Read::ALL
        } else {
            Read::PAYLOAD
        };
        let found = try_join_all(shards.iter().map(|shard| async {
            let score = score_of(&query.ranking, shard, reach);
            let mut hits: Vec<Hit> = match score {
                None => Vec::new(),
                Some(score) => {
                    let euclid = matches!(
                        score,
                        Score::Nearest {
                            distance: Distance::Euclid,
                            ..
                        }
                    );
                    let hits = self
                        .ranked(shard, &access, score, query.limit, read)
                        .await?;
                    let hit = |(document, score): (Document, f32)| {
                        let score = if euclid { 1.0 / (1.0 + score) } else { score };
                        Hit { document, score }
                    };
                    hits.into_iter().map(hit).collect()
                }
            };
            hits.retain(|hit| query.min_score.is_none_or(|least| hit.score >= least));
            sort_hits(&mut hits);
            Ok::<_, StoreError>(hits)
        }))
        .await?;
        let mut hits = merge(found, matches!(query.ranking, Ranking::Keywords { .. }));
        hits.truncate(query.limit);
        Ok(hits)
    }

    async fn facet(
        &self,
        reach: &Reach,
        filter: Option<&Filter>,
        field: &str,
        limit: usize,
    ) -> Result<Vec<FacetCount>> {
        let access = Access::new(reach, filter);
        // Keyed by JSON text: `1` and `"1"` are two values.
        let mut counts: BTreeMap<String, FacetCount> = BTreeMap::new();
        for shard in self.shards_of(reach).await? {
            self.each(&shard, &access, None, PAGE, true, &mut |_, document| {
                for (key, value) in facet_values(&layout::view(&document), field) {
                    counts
                        .entry(key)
                        .or_insert_with(|| FacetCount { value, count: 0 })
                        .count += 1;
                }
                true
            })
            .await?;
        }
        let mut counts: Vec<FacetCount> = counts.into_values().collect();
        counts.sort_by(|a, b| {
            b.count
                .cmp(&a.count)
                .then_with(|| crate::filter::sort_values(Some(&a.value), Some(&b.value)))
        });
        counts.truncate(limit);
        Ok(counts)
    }

    async fn drop_collection(&self, namespace_id: &str, collection_id: &str) -> Result<()> {
        let scope = layout::scope(namespace_id, collection_id);
        for shard in self
            .shards
            .of(namespace_id, &[collection_id.to_owned()])
            .await?
        {
            self.shards
                .delete(
                    &shard,
                    Cond::Keyword {
                        path: layout::SCOPE,
                        any: vec![scope.clone()],
                    },
                )
                .await?;
        }
        self.shards.forget(namespace_id, collection_id).await
    }

    async fn close(&self) -> Result<()> {
        self.shards.close().await
    }
}

fn check_schema(vectors: &[super::VectorSpec]) -> Result<()> {
    for (place, spec) in vectors.iter().enumerate() {
        if spec.dims == 0 || spec.dims > 65_536 {
            return Err(StoreError::Invalid(format!(
                "vector index {:?} has {} dimensions; 1 to 65536 are possible",
                spec.name, spec.dims
            )));
        }
        if spec.name.is_empty() || vectors[..place].iter().any(|other| other.name == spec.name) {
            return Err(StoreError::Invalid(format!(
                "vector index name {:?} is empty or given twice",
                spec.name
            )));
        }
    }
    Ok(())
}

/// The shards that have the index with the query's dimensions.
fn nearest_shards(shards: Vec<Arc<Shard>>, index: &str, vector: &[f32]) -> Result<Vec<Arc<Shard>>> {
    layout::finite(vector).map_err(|at| {
        StoreError::Invalid(format!("the query vector is not a finite number at {at}"))
    })?;
    let (fit, other): (Vec<_>, Vec<_>) = shards
        .into_iter()
        .filter(|shard| shard.index(index).is_some())
        .partition(|shard| {
            shard
                .index(index)
                .is_some_and(|spec| spec.dims == vector.len())
        });
    match other.first().and_then(|shard| shard.index(index)) {
        Some(spec) if fit.is_empty() => Err(StoreError::Invalid(format!(
            "the query vector has {} dimensions, the index {index:?} {}",
            vector.len(),
            spec.dims
        ))),
        _ => Ok(fit),
    }
}

fn score_of(ranking: &Ranking, shard: &Shard, reach: &Reach) -> Option<Score> {
    match ranking {
        Ranking::Nearest { index, vector } => shard.index(index).map(|spec| Score::Nearest {
            index: index.clone(),
            distance: spec.distance,
            vector: vector.clone(),
        }),
        Ranking::Keywords { text } => Some(Score::Keywords {
            text: text.clone(),
            corpus: layout::reach(reach),
        }),
    }
}

fn sort_hits(hits: &mut [Hit]) {
    hits.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.document.document_id.cmp(&b.document.document_id))
    });
}

/// Scores of nearness are comparable between shards; those of keywords depend on a shard's statistics, so ranks count.
fn merge(found: Vec<Vec<Hit>>, by_rank: bool) -> Vec<Hit> {
    let several = found.iter().filter(|hits| !hits.is_empty()).count() > 1;
    let mut hits: Vec<Hit> = found
        .into_iter()
        .flat_map(|hits| {
            hits.into_iter().enumerate().map(move |(rank, mut hit)| {
                if by_rank && several {
                    hit.score = 1.0 / (FUSION + 1.0 + rank as f32);
                }
                hit
            })
        })
        .collect();
    sort_hits(&mut hits);
    hits
}

/// The distinct scalars of a field in one document.
fn facet_values(view: &Value, field: &str) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    let mut note = |value: &Value| {
        if !matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) {
            values.insert(value.to_string(), value.clone());
        }
    };
    for value in values_at(view, field) {
        match value {
            Value::Array(items) => items.iter().for_each(&mut note),
            scalar => note(scalar),
        }
    }
    values
}
