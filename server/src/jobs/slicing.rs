//! An object that gives more documents than are held at once. All of them are looked at before the first is written, so that an
//! object that fails leaves the collection as it was; then they are written slice by slice. What a chunk that was cut off has
//! written of them is written again under the same ids, as with any other object.

use loupe_engine::{
    ingest::{CollectionPlan, Failure, IngestError, ObjectOutcome, Sliced, Try},
    store::Document,
};

use super::{
    filling::{Filling, Made, mark, nothing_made},
    is_last_try, reading,
};
use crate::{
    auth::Caller,
    error::{ApiError, Result},
    limits::quota,
    v1::{annotations::signal, batches::ChunkEnd, documents, taxonomies},
};

/// Such an object, with what is known of it before its documents are made.
pub(super) struct Large {
    /// Without documents.
    pub outcome: ObjectOutcome,
    pub sliced: Sliced,
    /// What a document belongs to that is read in place of an object.
    pub root: Option<String>,
    pub attempt: Try,
}

impl Filling<'_> {
    /// Makes and stores the documents of one object, and notes them in `made` and `end`.
    pub async fn make_large(
        &self,
        plan: &CollectionPlan,
        large: Large,
        end: &mut ChunkEnd,
        made: &mut Made,
    ) -> Result<()> {
        let Large {
            mut outcome,
            sliced,
            root,
            attempt,
        } = large;
        if let Some(failure) = self.look(plan, &sliced).await? {
            if attempt == Try::More && failure.error_type == "transient" {
                return Err(nothing_made(IngestError::Passing(failure.error)));
            }
            outcome.documents = Err(failure);
        }
        let object_id = root.clone().unwrap_or_else(|| outcome.object_id.clone());
        let Some((from, _)) = self.take(plan, outcome, root, end).await? else {
            return Ok(());
        };
        let ids = self.write_slices(plan, &sliced, &object_id).await?;
        let count = i64::try_from(ids.len()).unwrap_or(0);
        let mut ends = end.objects.iter_mut();
        if let Some(object) = ends.find(|object| object.object_id == object_id) {
            object.documents += count;
        }
        made.from.push((from, count));
        made.ids.extend(ids);
        Ok(())
    }

    /// Why the object gives no documents, if it gives none. Nothing is written.
    async fn look(&self, plan: &CollectionPlan, sliced: &Sliced) -> Result<Option<Failure>> {
        let (mut walk, mut ids) = (sliced.walk(), Vec::new());
        loop {
            let mut slice = match walk.slice().await {
                Ok(Some(slice)) => slice,
                Ok(None) => break,
                Err(failure) => return Ok(Some(failure)),
            };
            let documents = &mut slice.documents;
            if let Some(failure) = documents::refused(self.collection, documents, ids.len())? {
                return Ok(Some(failure));
            }
            ids.extend(slice.documents.into_iter().map(|one| one.document_id));
        }
        quota::refused(self.app, &self.claim.org_id, &plan.spec, &ids).await
    }

    /// Writes the documents, whose ids it answers; a chunk that is canceled writes no more of them.
    async fn write_slices(
        &self,
        plan: &CollectionPlan,
        sliced: &Sliced,
        object_id: &str,
    ) -> Result<Vec<String>> {
        // They were all there a moment ago.
        let gone = |failure: Failure| ApiError::unavailable("", failure.error);
        let (mut walk, mut ids) = (sliced.walk(), Vec::new());
        while let Some(mut slice) = walk.slice().await.map_err(gone)? {
            let documents = &mut slice.documents;
            // Notes in each what is not as the schema says.
            if let Some(failure) = documents::refused(self.collection, documents, ids.len())? {
                return Err(gone(failure));
            }
            if let Some(note) = self.notes.get(object_id) {
                documents.iter_mut().for_each(|one| mark(one, note));
            }
            for file in &slice.generated {
                reading::keep(self.app, file).await?;
            }
            ids.extend(self.keep(plan, slice.documents).await?);
        }
        Ok(ids)
    }

    /// Stores documents, with what the collection adds to each; answers their ids.
    pub async fn keep(
        &self,
        plan: &CollectionPlan,
        mut documents: Vec<Document>,
    ) -> Result<Vec<String>> {
        let app = self.app;
        let tried_again = !is_last_try(self.claim);
        let copies = taxonomies::at_ingest(
            app,
            &Caller::system(&self.claim.org_id),
            self.namespace_id,
            self.collection,
            &mut documents,
            tried_again,
        )
        .await?;
        documents.iter_mut().for_each(documents::without_nul);
        let ids = documents.iter().map(|one| one.document_id.clone());
        let ids: Vec<String> = ids.collect();
        // What was written through the API before is waited for here, where the chunk may still be stopped.
        documents::settle(app, self.namespace_id, &plan.spec.collection_id).await?;
        self.write(plan.spec.clone(), documents).await?;
        crate::fail_point!("batch.after_upsert");
        // Annotations whose documents had gone have them again.
        signal::note_return(app, self.namespace_id, &ids).await?;
        taxonomies::keep(app, &self.claim.org_id, copies).await?;
        Ok(ids)
    }
}
