//! What stages use of a namespace beside its documents: stored retrievers, which they run for each document, and the files that
//! documents name.

use async_trait::async_trait;
use bytes::Bytes;
use loupe_engine::stage::{Called, Files, Retrievers};

use super::{
    budget_ms,
    execution::{finder, searchable},
    store::RETRIEVERS,
};
use crate::{
    app::App,
    error::Result,
    v1::{collections, taxonomies},
};

/// One namespace's. Whoever made the retriever around it was allowed to execute what it names, and who may read a document may
/// read its files.
#[derive(Clone)]
pub(super) struct Stored {
    pub app: App,
    pub org_id: String,
    pub namespace_id: String,
}

impl Stored {
    async fn ready(&self, identifier: &str) -> Result<Called> {
        let (app, org_id, namespace_id) = (&self.app, &self.org_id, &self.namespace_id);
        let found = RETRIEVERS.known(app.db(), namespace_id, identifier).await?;
        let finder = finder(app, org_id, namespace_id, &found).await?;
        let collections = collections::searched(app, namespace_id, &found.collection_ids).await?;
        let named = finder.plan.taxonomies();
        Ok(Called {
            taxonomies: taxonomies::ready(app, org_id, namespace_id, &named).await?,
            collections: searchable(app, &collections),
            max_time_ms: budget_ms(&found),
            finder,
        })
    }
}

#[async_trait]
impl Retrievers for Stored {
    async fn find(&self, identifier: &str) -> std::result::Result<Called, String> {
        let ready = self.ready(identifier).await;
        ready.map_err(|error| error.message())
    }
}

#[async_trait]
impl Files for Stored {
    async fn read(&self, url: &str, most: u64) -> std::result::Result<Bytes, String> {
        let key = url.strip_prefix("blob://").unwrap_or_default();
        let within = format!("{}/", self.namespace_id);
        let gone = || "the file is gone".to_owned();
        if !key.starts_with(&within) {
            return Err(gone());
        }
        let told = |error: crate::error::ApiError| error.message();
        let known = self.app.blobs().head(key).await.map_err(told)?;
        match known {
            Some(known) if known.size <= most => self.app.blobs().get(key).await.map_err(told),
            Some(_) => Err(format!("the file has more than {most} bytes")),
            None => Err(gone()),
        }
    }
}
