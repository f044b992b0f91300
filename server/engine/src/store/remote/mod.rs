//! A Qdrant server or cluster (1.20 or later) in the layout of the embedded store: one Qdrant collection for each
//! vector schema, so that data can be moved between the two.
//!
//! A write is acknowledged when the server has it in its log and applied it; how long that lasts through a power cut is
//! decided by the cluster's replication, which [`super::DocStore::flush`] cannot hasten: it returns at once.

mod convert;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use qdrant_client::{Qdrant, qdrant as p};
use uuid::Uuid;

use super::packed::Packed;
use super::shards::{Cond, Found, Point, Query, Read, Scored, Shard, Shards};
use super::{CollectionSpec, Result, StoreError};

/// The document store on a Qdrant server.
pub type Remote = Packed<RemoteShards>;

/// Qdrant collections of ours begin with this, unless the options say otherwise.
const PREFIX: &str = "loupe_";
/// For so long the list of collections is believed. Another process's first document with new vectors is seen after it.
const FRESH: Duration = Duration::from_secs(1);

/// How to reach the server.
#[derive(Clone)]
pub struct RemoteOptions {
    /// Its gRPC address, such as `http://localhost:6334`.
    pub url: String,
    pub api_key: Option<String>,
    /// After this a call is given up.
    pub deadline: Duration,
    /// Begins the names of the Qdrant collections.
    pub prefix: String,
}

impl RemoteOptions {
    /// The defaults for a server.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            api_key: None,
            deadline: Duration::from_secs(30),
            prefix: PREFIX.to_owned(),
        }
    }
}

impl fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteOptions")
            .field("url", &self.url)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// The shards on a server.
pub struct RemoteShards {
    client: Qdrant,
    prefix: String,
    closed: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    shards: BTreeMap<String, Arc<Shard>>,
    at: Option<Instant>,
}

impl fmt::Debug for RemoteShards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteShards")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Packed<RemoteShards> {
    /// A store on a server. Connects with the first call.
    pub fn connect(options: &RemoteOptions) -> Result<Self> {
        let mut config = Qdrant::from_url(&options.url)
            .timeout(options.deadline)
            .skip_compatibility_check();
        if let Some(key) = &options.api_key {
            config.set_api_key(key);
        }
        let client = config.build().map_err(convert::error)?;
        let known = Mutex::new(Known::default());
        Ok(Self {
            shards: RemoteShards {
                client,
                prefix: options.prefix.clone(),
                closed: false.into(),
                known,
            },
        })
    }
}

impl RemoteShards {
    fn client(&self) -> Result<&Qdrant> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Unavailable("it is closed".to_owned()));
        }
        Ok(&self.client)
    }

    fn collection(&self, shard: &Shard) -> String {
        format!("{}{}", self.prefix, shard.name)
    }

    /// All shards. Which of them a collection lives in is known to the server alone, and they are few.
    async fn all(&self) -> Result<Vec<Arc<Shard>>> {
        let client = self.client()?;
        let known = {
            let known = self.known.lock();
            if known.at.is_some_and(|at| at.elapsed() < FRESH) {
                return Ok(known.shards.values().cloned().collect());
            }
            known.shards.clone()
        };
        let listed = client.list_collections().await.map_err(convert::error)?;
        let mut shards = BTreeMap::new();
        for name in listed
            .collections
            .into_iter()
            .map(|c| c.name)
            .filter(|name| name.starts_with(&self.prefix))
        {
            if let Some(shard) = known.get(&name) {
                shards.insert(name, shard.clone());
                continue;
            }
            let info = client
                .collection_info(name.as_str())
                .await
                .map_err(convert::error)?;
            if let Some(shard) = convert::shard(&name[self.prefix.len()..], info) {
                shards.insert(name, Arc::new(shard));
            }
        }
        let mut known = self.known.lock();
        *known = Known {
            shards,
            at: Some(Instant::now()),
        };
        Ok(known.shards.values().cloned().collect())
    }

    async fn create(&self, name: &str, shard: &Shard) -> Result<()> {
        let client = self.client()?;
        if !client
            .collection_exists(name)
            .await
            .map_err(convert::error)?
            && let Err(error) = client.create_collection(convert::create(name, shard)).await
        {
            // Another process may have been faster.
            if !client
                .collection_exists(name)
                .await
                .map_err(convert::error)?
            {
                return Err(convert::error(error));
            }
        }
        for index in convert::payload_indexes(name) {
            client
                .create_field_index(index)
                .await
                .map_err(convert::error)?;
        }
        Ok(())
    }
}

/// Every shard is shared here: a server keeps the points of a tenant together by itself.
#[async_trait]
impl Shards for RemoteShards {
    async fn of(&self, _namespace_id: &str, _collection_ids: &[String]) -> Result<Vec<Arc<Shard>>> {
        self.all().await
    }

    async fn ensure(&self, collection: &CollectionSpec) -> Result<Arc<Shard>> {
        let shard = Shard::of(&collection.vectors);
        let name = self.collection(&shard);
        self.all().await?;
        if let Some(known) = self.known.lock().shards.get(&name) {
            return Ok(known.clone());
        }
        self.create(&name, &shard).await?;
        let shard = Arc::new(shard);
        self.known.lock().shards.insert(name, shard.clone());
        Ok(shard)
    }

    async fn forget(&self, _namespace_id: &str, _collection_id: &str) -> Result<()> {
        self.client().map(|_| ())
    }

    async fn upsert(&self, shard: &Arc<Shard>, points: Vec<Point>) -> Result<()> {
        let request = p::UpsertPoints {
            collection_name: self.collection(shard),
            wait: Some(true),
            points: points.into_iter().map(convert::point_out).collect(),
            ..Default::default()
        };
        self.client()?
            .upsert_points(request)
            .await
            .map_err(convert::error)
            .map(|_| ())
    }

    async fn retrieve(&self, shard: &Arc<Shard>, ids: Vec<Uuid>, read: Read) -> Result<Vec<Found>> {
        let request = p::GetPoints {
            collection_name: self.collection(shard),
            ids: ids.into_iter().map(convert::id_out).collect(),
            with_payload: Some(convert::with_payload(read)),
            with_vectors: Some(read.vectors.into()),
            ..Default::default()
        };
        let found = self
            .client()?
            .get_points(request)
            .await
            .map_err(convert::error)?;
        Ok(found
            .result
            .into_iter()
            .filter_map(|r| convert::found(r.id, r.payload, r.vectors))
            .collect())
    }

    async fn scroll(
        &self,
        shard: &Arc<Shard>,
        filter: Cond,
        from: Option<Uuid>,
        limit: usize,
        read: Read,
    ) -> Result<Vec<Found>> {
        let request = p::ScrollPoints {
            collection_name: self.collection(shard),
            filter: Some(convert::filter(filter)),
            offset: from.map(convert::id_out),
            limit: Some(u32::try_from(limit).unwrap_or(u32::MAX)),
            with_payload: Some(convert::with_payload(read)),
            with_vectors: Some(read.vectors.into()),
            ..Default::default()
        };
        let found = self
            .client()?
            .scroll(request)
            .await
            .map_err(convert::error)?;
        Ok(found
            .result
            .into_iter()
            .filter_map(|r| convert::found(r.id, r.payload, r.vectors))
            .collect())
    }

    async fn count(&self, shard: &Arc<Shard>, filter: Cond) -> Result<u64> {
        let request = p::CountPoints {
            collection_name: self.collection(shard),
            filter: Some(convert::filter(filter)),
            exact: Some(true),
            ..Default::default()
        };
        let counted = self
            .client()?
            .count(request)
            .await
            .map_err(convert::error)?;
        Ok(counted.result.map_or(0, |result| result.count))
    }

    async fn query(&self, shard: &Arc<Shard>, query: Query) -> Result<Vec<Scored>> {
        let request = convert::query(self.collection(shard), query);
        let found = self
            .client()?
            .query(request)
            .await
            .map_err(convert::error)?;
        Ok(found
            .result
            .into_iter()
            .filter_map(|hit| {
                let point = convert::found(hit.id, hit.payload, hit.vectors)?;
                Some(Scored {
                    point,
                    score: hit.score,
                })
            })
            .collect())
    }

    async fn delete(&self, shard: &Arc<Shard>, filter: Cond) -> Result<()> {
        let selector = p::points_selector::PointsSelectorOneOf::Filter(convert::filter(filter));
        let request = p::DeletePoints {
            collection_name: self.collection(shard),
            wait: Some(true),
            points: Some(p::PointsSelector {
                points_selector_one_of: Some(selector),
            }),
            ..Default::default()
        };
        self.client()?
            .delete_points(request)
            .await
            .map_err(convert::error)
            .map(|_| ())
    }

    async fn flush(&self) -> Result<()> {
        self.client().map(|_| ())
    }

    async fn ping(&self) -> Result<()> {
        let answer = self.client()?.health_check().await;
        answer.map_err(convert::error).map(|_| ())
    }

    async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        Ok(())
    }
}
