//! Documents of a page by their ids: what has a page of its own, and what is named beside results.

use std::time::Duration;

use loupe_engine::{
    stage::Plan,
    store::{Document, WithVectors},
};
use loupe_hosted::Media;
use loupe_wire::Object;

use super::{Open, collections, documents, parts, publishing, retrievers};
use crate::{app::App, error::Result};

/// How long an item waits for the other parts of its file.
const PATIENCE_FOR_PARTS: Duration = Duration::from_secs(1);

/// A document on a page of its own.
pub struct Item {
    /// What strangers may see of it.
    pub document: Object,
    /// The recording or the PDF that it was made of.
    pub media: Option<Media>,
    /// The address of the picture that it was made of.
    pub original: Option<String>,
}

fn shape() -> documents::Shape {
    documents::Shape {
        presigned_urls: true,
        ..Default::default()
    }
}

impl Open {
    /// One document of the retriever's collections, exposed fields only, and its file. Counts as a search.
    ///
    /// # Errors
    /// The page's limit; the document store fails.
    pub async fn item(&self, app: &App, document_id: &str) -> Result<Option<Item>> {
        self.take(app)?;
        let plan = self.plan()?;
        let ids = [document_id.to_owned()];
        let Some(document) = self.found(app, &plan, &ids).await?.pop() else {
            return Ok(None);
        };
        let whole = parts::Whole::of(&document);
        let document = documents::view(app, document, &shape());
        let exposed = &self.published.display_config.exposed_fields;
        let mut media = publishing::media_of(exposed, &document);
        if let Some((media, whole)) = media.as_mut().zip(whole) {
            let parts = self.parts(app, &plan, media, whole);
            let parts = tokio::time::timeout(PATIENCE_FOR_PARTS, parts).await;
            media.parts = parts.unwrap_or_default();
        }
        Ok(Some(Item {
            document: self.show(&document),
            original: publishing::original_of(exposed, &document),
            media,
        }))
    }

    /// The documents of these ids that are items of the page, exposed fields only: what it says of its own, and no search.
    ///
    /// # Errors
    /// The document store fails.
    pub async fn named(&self, app: &App, document_ids: &[String]) -> Result<Vec<Object>> {
        let found = self.found(app, &self.plan()?, document_ids).await?;
        let shown = found
            .into_iter()
            .map(|document| self.show(&documents::view(app, document, &shape())));
        Ok(shown.collect())
    }

    fn plan(&self) -> Result<Plan> {
        let stages = retrievers::stage_inputs(&self.retriever.stages);
        retrievers::compile(&stages, &self.retriever.input_schema)
    }

    /// What no search of this page answers is no item of it.
    async fn found(&self, app: &App, plan: &Plan, ids: &[String]) -> Result<Vec<Document>> {
        let all = &self.retriever.collection_ids;
        let collections = collections::searched(app, &self.scope.namespace_id, all).await?;
        let here = collections
            .iter()
            .filter(|one| !collections::lifecycle::is_away(one));
        let reach = self.scope.reach(here.map(|one| one.id.clone()).collect());
        let mut found = app.store().get(&reach, ids, WithVectors::No).await?;
        found.retain(|document| plan.admits(document));
        Ok(found)
    }
}
