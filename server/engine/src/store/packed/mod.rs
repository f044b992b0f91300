//! [`DocStore`] over the primitives of an engine: the reach in every access, filters pushed down as far as they go,
//! several shards merged into one answer.

mod access;
mod facets;
mod listing;
mod ranking;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::try_join_all;
use uuid::Uuid;

use self::access::Access;
use super::shards::{Cond, Point, Read, Shard, Shards};
use super::{
    CollectionSpec, DocStore, Document, FacetCount, Hit, ListPage, ListQuery, Reach, Result,
    SearchQuery, Selection, StoreError, WithVectors, layout,
};
use crate::filter::Filter;

/// Points of one write to an engine: bounds how long it holds its lock.
const CHUNK: usize = 256;
/// Points of one read while looking for what a filter evaluated here lets through.
const PAGE: usize = 1_000;

/// A store over an engine.
#[derive(Debug)]
pub struct Packed<S> {
    pub(super) shards: S,
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

    /// Reads what the shards of the reach hold. Again, if a collection came to live in one of them or moved to another
    /// meanwhile: the conditions were then those of a shard without neighbours, or the documents were gone.
    async fn settled<T, F>(
        &self,
        reach: &Reach,
        read: impl Fn(Vec<Arc<Shard>>) -> F + Send + Sync,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        loop {
            let shards = self.shards_of(reach).await?;
            let found = read(shards.clone()).await?;
            if self.shards_of(reach).await? == shards {
                return Ok(found);
            }
        }
    }

    /// Calls `visit` with every document of a shard that the access admits, in the order of ids, until it says stop.
    /// Without payloads asked for, documents carry their ids alone.
    async fn each(
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
        let cond = access.cond(shard);
        let span = access.span();
        let mut from = match span.first.is_nil() {
            true => from,
            false => from.max(Some(span.first)),
        };
        loop {
            // One more than a page tells where the next begins.
            let points = self
                .shards
                .scroll(shard, cond.clone(), from, page + 1, read)
                .await?;
            let next = points.get(page).map(|point| point.id);
            from = next.filter(|id| *id <= span.last);
            for point in points.into_iter().take(page) {
                let id = point.id;
                if id > span.last {
                    return Ok(());
                }
                let document = if read.payload {
                    layout::document(point, false)
                } else {
                    Some(Document::default())
                };
                let Some(mut document) = document else {
                    continue;
                };
                if access.admits(&mut document) && !visit(id, document) {
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
    async fn fetch(
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
            .filter(|found| layout::reaches(reach, found))
            .filter_map(|found| Some((found.id, layout::document(found, with)?)))
            .collect())
    }

    /// Removes what the access admits from one shard; says how many.
    async fn delete_in(&self, shard: &Shard, access: &Access, ids: &Cond) -> Result<u64> {
        // With the scope, always: a neighbour may come to live here while this goes on.
        let shard = shard.shared();
        let cond = access.cond(&shard).and(ids.clone());
        if access.is_exact() {
            let count = self.shards.count(&shard, cond.clone()).await?;
            if count > 0 {
                self.shards.delete(&shard, cond).await?;
            }
            return Ok(count);
        }
        let found = self.matching_ids(&shard, access).await?;
        for ids in found.chunks(PAGE) {
            self.shards
                .delete(&shard, access.reach(&shard).and(Cond::Ids(ids.to_vec())))
                .await?;
        }
        Ok(found.len() as u64)
    }

    /// Refuses ids that another collection already uses: they would take its documents away.
    async fn refuse_foreign(
        &self,
        shard: &Arc<Shard>,
        collection: &CollectionSpec,
        points: &[Point],
    ) -> Result<()> {
        let own = layout::scope(&collection.namespace_id, &collection.collection_id);
        if shard.sole.as_ref() == Some(&own) {
            return Ok(());
        }
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
        let mut found = self.fetch(&shards, reach, &ids, vectors).await?;
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }

    async fn delete(&self, reach: &Reach, which: Selection) -> Result<u64> {
        let (access, ids) = match which {
            Selection::Ids(ids) => {
                let ids = ids.iter().filter_map(|id| layout::point_id(id)).collect();
                (Access::new(reach, None), Cond::Ids(ids))
            }
            Selection::Matching(filter) => {
                (Access::new(reach, filter.as_ref()), Cond::everything())
            }
        };
        let mut removed = 0;
        loop {
            let shards = self.shards_of(reach).await?;
            for shard in &shards {
                removed += self.delete_in(shard, &access, &ids).await?;
            }
            if self.shards_of(reach).await? == shards {
                return Ok(removed);
            }
        }
    }

    async fn list(&self, reach: &Reach, query: ListQuery) -> Result<ListPage> {
        let access = Access::new(reach, query.filter.as_ref());
        let (access, query) = (&access, &query);
        self.settled(reach, |shards| {
            listing::page(self, shards, reach, access, query)
        })
        .await
    }

    async fn count(&self, reach: &Reach, filter: Option<&Filter>) -> Result<u64> {
        let access = Access::new(reach, filter);
        let access = &access;
        self.settled(reach, |shards| async move {
            let count = |shard| async move {
                if access.is_exact() {
                    return self.shards.count(shard, access.cond(shard)).await;
                }
                Ok(self.matching_ids(shard, access).await?.len() as u64)
            };
            Ok(try_join_all(shards.iter().map(count)).await?.iter().sum())
        })
        .await
    }

    async fn search(&self, reach: &Reach, query: SearchQuery) -> Result<Vec<Hit>> {
        let access = Access::new(reach, query.filter.as_ref());
        let (access, query) = (&access, &query);
        self.settled(reach, |shards| ranking::search(self, shards, access, query))
            .await
    }

    async fn facet(
        &self,
        reach: &Reach,
        filter: Option<&Filter>,
        field: &str,
        limit: usize,
    ) -> Result<Vec<FacetCount>> {
        let access = Access::new(reach, filter);
        let access = &access;
        self.settled(reach, |shards| {
            facets::count(self, shards, access, field, limit)
        })
        .await
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

    async fn ping(&self) -> Result<()> {
        self.shards.ping().await
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
        super::check_vector_name(&spec.name).map_err(StoreError::Invalid)?;
        if vectors[..place].iter().any(|other| other.name == spec.name) {
            return Err(StoreError::Invalid(format!(
                "vector index name {:?} is given twice",
                spec.name
            )));
        }
    }
    Ok(())
}
