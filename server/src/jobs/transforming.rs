//! Objects and documents in place of which a collection takes what its retriever finds for them.

use futures::StreamExt as _;
use loupe_engine::{
    extract::Dropped,
    ingest::{CollectionPlan, Failure, NO_INPUT, ObjectInput, ObjectOutcome, Try},
};
use loupe_wire::{ObjectResponse, RetrieverTransformConfigOutput, Value};

use super::{
    filling::{Filling, nothing_made},
    is_last_try, reading,
};
use crate::{
    error::{ApiError, Result},
    limits::quota,
    usage,
    v1::{
        collections::{Results, Transform},
        documents,
    },
};

/// Objects or documents that the retriever runs for at once.
const AT_ONCE: usize = 4;
/// What one of them counts in memory, where its own files are not read: nobody knows what is found for it.
const WEIGHT: i64 = 16 << 20;
/// What is noted of an object of whose results some have nothing for the extractor.
const WITHOUT_INPUT: &str = "results without the extractor's input";
/// Letters of an error that are noted.
const LONGEST: usize = 1_000;

impl Filling<'_> {
    fn is_transformed(&self) -> bool {
        self.collection.retriever_transform.is_some()
    }

    /// What an object or document with so many bytes of files counts in memory.
    pub fn weight(&self, plan: &CollectionPlan, files: i64) -> i64 {
        match self.is_transformed() {
            true => WEIGHT,
            false => reading::weight(plan, files),
        }
    }

    /// Bytes of files that are read of an object.
    pub fn size(&self, object: &ObjectResponse) -> i64 {
        match self.is_transformed() {
            true => 0,
            false => reading::size(object),
        }
    }

    /// An object with the bytes of its files, where these are read.
    pub async fn read_object(&self, object: ObjectResponse, hash: String) -> Result<ObjectInput> {
        match self.is_transformed() {
            true => Ok(reading::named(object, hash)),
            false => reading::object(self.app, object, hash).await,
        }
    }

    /// Positions of the files that are read of a document.
    pub fn files_read(&self, plan: &CollectionPlan, document: &ObjectInput) -> Vec<usize> {
        match self.is_transformed() {
            true => Vec::new(),
            false => plan.files_read(document),
        }
    }

    /// Documents of objects, or of what the collection's retriever finds for them; one outcome for each, in their order.
    pub async fn run(
        &self,
        plan: &CollectionPlan,
        inputs: Vec<ObjectInput>,
        attempt: Try,
    ) -> Result<Vec<ObjectOutcome>> {
        match &self.collection.retriever_transform {
            Some(config) => self.transformed(plan, config, inputs, attempt).await,
            None => self.ingested(plan, inputs, attempt).await,
        }
    }

    async fn ingested(
        &self,
        plan: &CollectionPlan,
        inputs: Vec<ObjectInput>,
        attempt: Try,
    ) -> Result<Vec<ObjectOutcome>> {
        let now = self.app.clock().now().to_rfc3339();
        let ingested = self.app.ingest().run(plan, inputs, &now, attempt).await;
        ingested.map_err(nothing_made)
    }

    async fn transformed(
        &self,
        plan: &CollectionPlan,
        config: &RetrieverTransformConfigOutput,
        inputs: Vec<ObjectInput>,
        attempt: Try,
    ) -> Result<Vec<ObjectOutcome>> {
        let transform = match self.transform(config).await {
            Ok(transform) => transform,
            Err(error) => {
                let failure = self.failure(error)?;
                let failed = |one: ObjectInput| ended(one.object_id, Err(failure.clone()));
                return Ok(inputs.into_iter().map(failed).collect());
            }
        };
        let mut outcomes = Vec::with_capacity(inputs.len());
        let mut left = inputs.into_iter();
        loop {
            let some: Vec<ObjectInput> = left.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                return Ok(outcomes);
            }
            // What is canceled searches no more.
            self.check_held().await?;
            outcomes.extend(self.transform_some(plan, &transform, some, attempt).await?);
        }
    }

    /// The retriever made ready, where it may be paid for.
    async fn transform<'s>(
        &'s self,
        config: &'s RetrieverTransformConfigOutput,
    ) -> Result<Transform<'s>> {
        let org_id = self.claim.org_id.as_str();
        quota::check_spend(self.app, org_id).await?;
        let place = (org_id, self.namespace_id);
        Transform::of(self.app, place, self.collection, config).await
    }

    /// Why an object gives no documents.
    ///
    /// # Errors
    /// The same, while another try may go better.
    fn failure(&self, error: ApiError) -> Result<Failure> {
        if error.is_transient() && !is_last_try(self.claim) {
            return Err(error);
        }
        let message = error.message();
        let told = match message.starts_with(NO_INPUT) {
            true => message,
            false => format!("the retriever_transform of the collection failed: {message}"),
        };
        Ok(Failure {
            error: told.chars().take(LONGEST).collect(),
            error_type: match error.is_transient() {
                true => "transient",
                false => "permanent",
            },
        })
    }

    async fn transform_some(
        &self,
        plan: &CollectionPlan,
        transform: &Transform<'_>,
        some: Vec<ObjectInput>,
        attempt: Try,
    ) -> Result<Vec<ObjectOutcome>> {
        let searches: Vec<_> = some.iter().map(|one| transform.results(one)).collect();
        let found: Vec<Result<Results>> = futures::stream::iter(searches)
            .buffered(AT_ONCE)
            .collect()
            .await;
        let searched = found.iter().filter(|one| one.is_ok()).count();
        usage::count_inside(self.app, &self.claim.org_id, &transform.id, searched);
        let (mut sources, mut inputs, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for (source, found) in some.into_iter().zip(found) {
            let found = match found {
                Ok(found) => {
                    let count = found.results.len();
                    for (input, said) in found.results {
                        inputs.push(input);
                        told.push(said);
                    }
                    Ok((count, found.dropped))
                }
                Err(error) => Err(self.failure(error)?),
            };
            sources.push((source.object_id, found));
        }
        let made = match inputs.is_empty() {
            true => Vec::new(),
            false => self.ingested(plan, inputs, attempt).await?,
        };
        let mut made = made.into_iter().zip(told);
        let outcomes = sources.into_iter().map(|(id, found)| match found {
            Ok((count, dropped)) => {
                let its = made.by_ref().take(count).collect();
                joined(id, its, dropped)
            }
            Err(failure) => ended(id, Err(failure)),
        });
        Ok(outcomes.collect())
    }
}

/// How an object ended of which nothing is to be told but this.
fn ended(object_id: String, documents: Result<(), Failure>) -> ObjectOutcome {
    ObjectOutcome {
        object_id,
        documents: documents.map(|()| Vec::new()),
        generated: Vec::new(),
        sliced: None,
        cut_short: false,
        dropped: Dropped::default(),
    }
}

/// What was made of all results for one object: one that fails, fails it, but for those that have nothing for the extractor
/// while others have.
fn joined(
    object_id: String,
    results: Vec<(ObjectOutcome, Value)>,
    dropped: Dropped,
) -> ObjectOutcome {
    let mut whole = ended(object_id, Ok(()));
    whole.dropped = dropped;
    let (mut documents, mut without) = (Vec::new(), Vec::new());
    for (one, said) in results {
        whole.cut_short |= one.cut_short;
        whole.dropped.add(&one.dropped);
        if one.sliced.is_some() {
            whole.documents = Err(Failure {
                error: "one result gives too many documents: let the retriever find smaller ones"
                    .into(),
                error_type: "permanent",
            });
            return whole;
        }
        match one.documents {
            Ok(mut its) => {
                for document in &mut its {
                    let whose = (
                        "document_id",
                        said["document_id"].as_str().unwrap_or_default(),
                    );
                    documents::note_processing(
                        document,
                        "retriever_transform",
                        whose,
                        [said.clone()],
                    );
                }
                documents.extend(its);
                whole.generated.extend(one.generated);
            }
            Err(failure) if failure.error.starts_with(NO_INPUT) => without.push(failure),
            Err(failure) => {
                whole.documents = Err(failure);
                return whole;
            }
        }
    }
    whole.documents = match without.pop() {
        Some(failure) if documents.is_empty() => Err(failure),
        Some(_) => {
            whole.dropped.add_others(WITHOUT_INPUT, without.len() + 1);
            Ok(documents)
        }
        None => Ok(documents),
    };
    whole
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failed(error: &str) -> (ObjectOutcome, Value) {
        let failure = Failure {
            error: error.into(),
            error_type: "permanent",
        };
        (ended("obj_1".into(), Err(failure)), json!({}))
    }

    #[test]
    fn results_without_input_fail_an_object_only_where_all_are() {
        let one = || failed(&format!("{NO_INPUT}: text"));
        let whole = joined("obj_1".into(), vec![one(), one()], Dropped::default());
        assert!(whole.documents.is_err());
        let whole = joined("obj_1".into(), Vec::new(), Dropped::default());
        assert_eq!(whole.documents.map(|made| made.len()), Ok(0));
        let other = || failed("the picture is torn");
        let whole = joined("obj_1".into(), vec![one(), other()], Dropped::default());
        let failure = whole.documents.map(drop);
        assert_eq!(failure.unwrap_err().error, "the picture is torn");
    }
}
