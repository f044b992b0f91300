//! An exact store in memory and encoders without models, for tests.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use loupe_wire::Value;
use serde_json::json;

use crate::embed::{
    EmbedError, Encoders, ImageEncoder, ImageFeatures, Pixels, Result as EmbedResult, TextEncoder,
};
use crate::filter::{Filter, sort_values, value_at};
use crate::store::*;

/// Documents in a list; every answer is computed over all of them. Calls are recorded.
#[derive(Default)]
pub(crate) struct Memory {
    pub documents: Vec<Document>,
    pub searches: Mutex<Vec<(Reach, SearchQuery)>>,
    pub lists: Mutex<Vec<ListQuery>>,
    /// Every search for more than so many documents takes this long.
    pub delay: std::time::Duration,
    pub fast_for: usize,
}

fn value(document: &Document) -> Value {
    let mut object = document.payload.clone();
    object.insert("document_id".into(), json!(document.document_id));
    object.insert("collection_id".into(), json!(document.collection_id));
    object.into()
}

impl Memory {
    fn within(&self, reach: &Reach, filter: Option<&Filter>) -> Vec<Document> {
        let passes = |d: &&Document| {
            reach.collection_ids.contains(&d.collection_id)
                && filter.is_none_or(|f| f.matches(&value(d)))
        };
        let mut found: Vec<Document> = self.documents.iter().filter(passes).cloned().collect();
        found.sort_by(|a, b| a.document_id.cmp(&b.document_id));
        found
    }
}

fn score(document: &Document, ranking: &Ranking) -> Option<f32> {
    match ranking {
        Ranking::Nearest { index, vector } => Some(
            document
                .vectors
                .get(index)?
                .iter()
                .zip(vector)
                .map(|(a, b)| a * b)
                .sum(),
        ),
        Ranking::Keywords { text } => {
            let words = document.keywords.as_deref()?.to_lowercase();
            let hits = text
                .to_lowercase()
                .split_whitespace()
                .filter(|w| words.contains(w))
                .count();
            (hits > 0).then_some(hits as f32 * 3.0)
        }
    }
}

#[async_trait]
impl DocStore for Memory {
    async fn upsert(&self, _: &CollectionSpec, _: Vec<Document>) -> Result<()> {
        Err(StoreError::Invalid(
            "the tests' store is filled when it is made".into(),
        ))
    }
    async fn flush(&self) -> Result<()> {
        Ok(())
    }
    async fn get(&self, reach: &Reach, ids: &[String], _: WithVectors) -> Result<Vec<Document>> {
        let all = self.within(reach, None);
        Ok(ids
            .iter()
            .filter_map(|id| all.iter().find(|d| d.document_id == *id).cloned())
            .collect())
    }
    async fn delete(&self, _: &Reach, _: Selection) -> Result<u64> {
        Ok(0)
    }
    async fn list(&self, reach: &Reach, query: ListQuery) -> Result<ListPage> {
        self.lists.lock().unwrap().push(query.clone());
        let mut all = self.within(reach, query.filter.as_ref());
        if let Some(sort) = &query.sort {
            let key = |d: &Document| value_at(&value(d), &sort.field).cloned();
            all.sort_by(|a, b| {
                let (x, y) = (key(a), key(b));
                match sort.direction {
                    Direction::Ascending => sort_values(x.as_ref(), y.as_ref()),
                    Direction::Descending => sort_values(y.as_ref(), x.as_ref()),
                }
            });
        }
        let start = match query.cursor {
            Some(cursor) => cursor.parse().map_err(|_| StoreError::Cursor(cursor))?,
            None => query.offset,
        };
        let documents: Vec<Document> = all.iter().skip(start).take(query.limit).cloned().collect();
        let end = start + documents.len();
        Ok(ListPage {
            documents,
            next: (end < all.len()).then(|| end.to_string()),
        })
    }
    async fn count(&self, reach: &Reach, filter: Option<&Filter>) -> Result<u64> {
        Ok(self.within(reach, filter).len() as u64)
    }
    async fn search(&self, reach: &Reach, query: SearchQuery) -> Result<Vec<Hit>> {
        if query.limit > self.fast_for {
            tokio::time::sleep(self.delay).await;
        }
        self.searches
            .lock()
            .unwrap()
            .push((reach.clone(), query.clone()));
        let mut hits: Vec<Hit> = self
            .within(reach, query.filter.as_ref())
            .into_iter()
            .filter_map(|document| {
                Some(Hit {
                    score: score(&document, &query.ranking)?,
                    document,
                })
            })
            .filter(|hit| query.min_score.is_none_or(|min| hit.score >= min))
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
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
        let mut counts = Counts::default();
        for document in self.within(reach, filter) {
            counts.add(&value(&document), field);
        }
        Ok(counts.most_frequent(limit))
    }
    async fn drop_collection(&self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
    async fn ping(&self) -> Result<()> {
        Ok(())
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

/// A text "x,y" becomes the vector [x, y]; a picture becomes [share of red, share of the rest].
#[derive(Default)]
pub(crate) struct Plain {
    /// Texts of each embedding call.
    pub calls: Arc<Mutex<Vec<Vec<String>>>>,
}

#[async_trait]
impl Encoders for Plain {
    async fn text(&self, output: &str) -> EmbedResult<Arc<dyn TextEncoder>> {
        match output {
            "flat_v1" => Ok(Arc::new(Numbers(self.calls.clone()))),
            other => Err(EmbedError::Unavailable(format!(
                "no text model gives `{other}`"
            ))),
        }
    }
    async fn image(&self, output: &str) -> EmbedResult<Arc<dyn ImageEncoder>> {
        match output {
            "image_v1" => Ok(Arc::new(Red)),
            other => Err(EmbedError::Unavailable(format!(
                "no image model gives `{other}`"
            ))),
        }
    }
}

struct Numbers(Arc<Mutex<Vec<Vec<String>>>>);

#[async_trait]
impl TextEncoder for Numbers {
    fn output(&self) -> &str {
        "flat_v1"
    }
    fn dims(&self) -> usize {
        2
    }
    async fn embed(&self, texts: Vec<String>) -> EmbedResult<Vec<Vec<f32>>> {
        let vector = |text: &String| -> Vec<f32> {
            let numbers: Vec<f32> = text
                .split(',')
                .filter_map(|n| n.trim().parse().ok())
                .collect();
            if numbers.len() == 2 {
                numbers
            } else {
                vec![1.0, 0.0]
            }
        };
        let vectors = texts.iter().map(vector).collect();
        self.0.lock().unwrap().push(texts);
        Ok(vectors)
    }
}

struct Red;

#[async_trait]
impl ImageEncoder for Red {
    fn output(&self) -> &str {
        "image_v1"
    }
    fn dims(&self) -> usize {
        2
    }
    async fn embed(&self, images: Vec<Pixels>) -> EmbedResult<Vec<ImageFeatures>> {
        let features = |p: &Pixels| {
            let sum = |skip: usize| {
                p.rgb
                    .iter()
                    .skip(skip)
                    .step_by(3)
                    .map(|c| f32::from(*c))
                    .sum::<f32>()
            };
            let all = (sum(0) + sum(1) + sum(2)).max(1.0);
            ImageFeatures {
                vector: vec![sum(0) / all, 1.0 - sum(0) / all],
                labels: Vec::new(),
            }
        };
        Ok(images.iter().map(features).collect())
    }
}
