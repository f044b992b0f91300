//! What is exported, read page by page.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use loupe_engine::{
    filter::Filter,
    store::{Document, ListQuery, Reach, WithVectors},
};
use loupe_wire::{CollectionExportRequest, Object};

use super::{Work, rows};
use crate::{app::App, error::Result, list::parse_filter, v1::documents};

/// Documents read at once; with vectors of a thousand numbers a page is some megabytes.
const PAGE: usize = 500;

/// The documents that are asked for, page by page.
#[derive(Clone)]
pub struct Pages {
    app: App,
    reach: Reach,
    pub request: CollectionExportRequest,
    /// None when the last page was read.
    query: Option<ListQuery>,
    left: usize,
    /// Documents of this walk so far.
    pub count: Arc<AtomicI64>,
}

impl Pages {
    pub(super) fn new(app: &App, reach: Reach, work: &Work) -> Result<Self> {
        let request = &work.request;
        let asked: Option<Filter> = request
            .filters
            .as_ref()
            .map(|filter| parse_filter(&filter.0, "filters"))
            .transpose()?;
        let filter = match (asked, only(work)) {
            (Some(asked), Some(only)) => Some(asked.and(only)),
            (asked, only) => asked.or(only),
        };
        let query = ListQuery {
            filter,
            limit: PAGE,
            vectors: match request.include_vectors {
                true => WithVectors::Yes,
                false => WithVectors::No,
            },
            ..Default::default()
        };
        let most = request.sample_size.map(usize::try_from);
        Ok(Self {
            app: app.clone(),
            reach,
            request: request.clone(),
            query: Some(query),
            left: most.and_then(std::result::Result::ok).unwrap_or(usize::MAX),
            count: Arc::default(),
        })
    }

    /// None when there are no more.
    pub async fn documents(&mut self) -> Result<Option<Vec<Document>>> {
        let Some(query) = self.query.take().filter(|_| self.left > 0) else {
            return Ok(None);
        };
        let page = self.app.store().list(&self.reach, query.clone()).await?;
        self.query = page.next.map(|next| ListQuery {
            cursor: Some(next),
            ..query
        });
        let found: Vec<Document> = page.documents.into_iter().take(self.left).collect();
        self.left -= found.len();
        let added = i64::try_from(found.len()).unwrap_or(0);
        self.count.fetch_add(added, Ordering::Relaxed);
        Ok(Some(found))
    }

    /// The same as rows.
    pub async fn rows(&mut self) -> Result<Option<Vec<Object>>> {
        let found = self.documents().await?;
        let row = |document| rows::row(document, &self.request);
        Ok(found.map(|documents| documents.into_iter().map(row).collect()))
    }

    /// Another walk over the same.
    #[must_use]
    pub fn again(&self) -> Self {
        Self {
            count: Arc::default(),
            ..self.clone()
        }
    }
}

/// What the key's scopes leave of the collection; nothing where they cover it.
fn only(work: &Work) -> Option<Filter> {
    let patterns = work.only.as_ref()?.iter().map(String::as_str);
    // What names no document covers none.
    Some(documents::of_patterns(patterns).unwrap_or(Filter::Any(Vec::new())))
}
