//! Search: each shard ranks, the answers are merged.

use std::sync::Arc;

use futures::future::try_join_all;

use super::super::shards::{Cond, Query, Read, Score, Scored, Shard, Shards};
use super::super::{
    Distance, Document, Hit, Ranking, Result, SearchQuery, StoreError, WithVectors, layout,
};
use super::{Access, Packed};

/// Ranked points looked at before the filter is evaluated on everything instead.
const MOST_RANKED: usize = 4_096;
/// The usual constant of reciprocal rank fusion.
const FUSION: f32 = 60.0;

/// The best documents of all shards.
pub async fn search<S: Shards>(
    store: &Packed<S>,
    shards: Vec<Arc<Shard>>,
    access: &Access,
    query: &SearchQuery,
) -> Result<Vec<Hit>> {
    let shards = match &query.ranking {
        Ranking::Nearest { index, vector } => nearest_shards(shards, index, vector)?,
        Ranking::Keywords { .. } => shards,
    };
    if query.limit == 0 {
        return Ok(Vec::new());
    }
    let found = try_join_all(
        shards
            .iter()
            .map(|shard| hits_of(store, shard, access, query)),
    )
    .await?;
    let mut hits = merge(found, matches!(query.ranking, Ranking::Keywords { .. }));
    hits.truncate(query.limit);
    Ok(hits)
}

/// The best documents of one shard, with the scores of the interface.
async fn hits_of<S: Shards>(
    store: &Packed<S>,
    shard: &Arc<Shard>,
    access: &Access,
    query: &SearchQuery,
) -> Result<Vec<Hit>> {
    let Some(score) = score_of(&query.ranking, shard, access) else {
        return Ok(Vec::new());
    };
    let euclid = matches!(
        score,
        Score::Nearest {
            distance: Distance::Euclid,
            ..
        }
    );
    let read = if query.vectors == WithVectors::Yes {
        Read::ALL
    } else {
        Read::PAYLOAD
    };
    let found = ranked(store, shard, access, score, query.limit, read).await?;
    let mut hits: Vec<Hit> = found
        .into_iter()
        .map(|(document, score)| {
            let score = if euclid { 1.0 / (1.0 + score) } else { score };
            Hit { document, score }
        })
        .collect();
    hits.retain(|hit| query.min_score.is_none_or(|least| hit.score >= least));
    sort_hits(&mut hits);
    Ok(hits)
}

/// The best documents of one shard with the engine's scores.
async fn ranked<S: Shards>(
    store: &Packed<S>,
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
            .filter_map(|(mut document, score)| {
                access.admits(&mut document).then_some((document, score))
            })
            .take(limit)
            .collect()
    };
    let cond = access.cond(shard);
    if access.is_exact() {
        return Ok(admitted(
            store.shards.query(shard, query(cond, limit)).await?,
        ));
    }
    let mut want = limit.saturating_mul(4).max(64);
    while want <= MOST_RANKED {
        let hits = store.shards.query(shard, query(cond.clone(), want)).await?;
        let all = hits.len() < want;
        let hits = admitted(hits);
        if all || hits.len() >= limit {
            return Ok(hits);
        }
        want *= 4;
    }
    // The filter lets too little through: find what it does first, then rank only that.
    let ids = store.matching_ids(shard, access).await?;
    Ok(admitted(
        store
            .shards
            .query(shard, query(cond.and(Cond::Ids(ids)), limit))
            .await?,
    ))
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

fn score_of(ranking: &Ranking, shard: &Shard, access: &Access) -> Option<Score> {
    match ranking {
        Ranking::Nearest { index, vector } => shard.index(index).map(|spec| Score::Nearest {
            index: index.clone(),
            distance: spec.distance,
            vector: vector.clone(),
        }),
        Ranking::Keywords { text } => Some(Score::Keywords {
            text: text.clone(),
            corpus: access.reach(shard),
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
