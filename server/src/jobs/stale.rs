//! Documents of earlier runs that a run did not write again: they go, and the feed tells of them.

use std::collections::HashSet;

use loupe_engine::store::{Document, ListQuery, Reach, Selection};
use loupe_wire::Value;

use super::filling::{Filling, LISTED, is_made};
use crate::{
    error::{ApiError, Result},
    v1::{
        annotations::signal,
        batches::{ChunkEnd, fillings::belonging},
        documents, removal,
    },
};

impl Filling<'_> {
    /// Removes documents of earlier runs, also of those that did not end, that this one did not write again: a shorter text
    /// has fewer chunks. What callers wrote themselves stays.
    pub async fn remove_stale(
        &self,
        object_ids: &[String],
        written: &[String],
        end: &mut ChunkEnd,
    ) -> Result<()> {
        if object_ids.is_empty() {
            return Ok(());
        }
        let written: HashSet<&String> = written.iter().collect();
        let roots: Vec<&str> = object_ids.iter().map(String::as_str).collect();
        let reach = Reach {
            namespace_id: self.namespace_id.to_owned(),
            collection_ids: vec![self.collection_id().to_owned()],
            principal: None,
        };
        let mut query = ListQuery {
            filter: Some(belonging(&roots)),
            limit: LISTED,
            ..Default::default()
        };
        let mut stale = Stale::default();
        loop {
            let mut page = self.app.store().list(&reach, query.clone()).await?;
            page.documents
                .retain(|one| is_made(one) && !written.contains(&one.document_id));
            stale.note(self.namespace_id, page.documents);
            if page.next.is_none() {
                break;
            }
            query.cursor = page.next;
        }
        if stale.ids.is_empty() {
            return Ok(());
        }
        end.deleted += i64::try_from(stale.ids.len()).unwrap_or(0);
        self.remove(reach, object_ids.to_vec(), stale).await
    }

    async fn remove(&self, reach: Reach, object_ids: Vec<String>, stale: Stale) -> Result<()> {
        let (app, namespace_id, org_id) = (self.app, self.namespace_id, &self.claim.org_id);
        documents::settle(app, namespace_id, self.collection_id()).await?;
        self.check_held().await?;
        let annotated = signal::note_removal(app, namespace_id, &stale.ids).await?;
        removal::tell_events(app, org_id, namespace_id, stale.events).await?;
        // Their files go behind them, once the objects are let go.
        removal::leave(app, org_id, namespace_id, stale.left).await?;
        let (app, ids) = (app.clone(), stale.ids.clone());
        let (place, collection_id) = (namespace_id.to_owned(), self.collection_id().to_owned());
        let delete = async move {
            let _turn = app.writers.turn(&ids).await;
            documents::settle(&app, &place, &collection_id).await?;
            let deleted = app.store().delete(&reach, Selection::Ids(ids)).await;
            deleted.map(drop).map_err(ApiError::from)
        };
        self.holding.write(self.written(object_ids), delete).await?;
        if annotated {
            signal::forget_documents(self.app, namespace_id, &stale.ids).await?;
        }
        Ok(())
    }
}

/// Documents of earlier runs that were not written again.
#[derive(Default)]
struct Stale {
    ids: Vec<String>,
    /// Their files.
    left: Vec<removal::Left>,
    /// What the feed is told of them.
    events: Vec<(&'static str, Value)>,
}

impl Stale {
    fn note(&mut self, namespace_id: &str, documents: Vec<Document>) {
        self.events
            .extend(documents::removal_events(namespace_id, &documents));
        for one in documents {
            self.left.extend(removal::Left::of(namespace_id, &one));
            self.ids.push(one.document_id);
        }
    }
}
