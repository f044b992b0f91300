//! The filter of a bucket, or of the sync that brought an object: a retriever that runs for each object before it is processed
//! says whether it is let in.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use loupe_engine::filter::Filter;
use loupe_wire::{
    BlobModel, BucketSchemaFieldType, IngestFilter, IngestFilterAction as Action,
    IngestFilterOnError as OnError, Object, ObjectResponse, Value,
};
use serde_json::json;

use super::{Claim, is_last_try};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    error::{ApiError, Result},
    v1::{
        buckets::BUCKETS,
        collections::{Ready, hindered},
        objects, retrievers, syncs,
    },
};

/// Objects that the retriever runs for at once.
const AT_ONCE: usize = 4;
/// Bytes of a text that becomes an input.
const MAX_TEXT: i64 = 1 << 20;
/// Letters of an error that are noted.
const LONGEST: usize = 1_000;
const OUT_OF_TIME: &str = "the time of the retriever ran out";

/// Objects with the hashes of their content.
pub(super) type Hashed = Vec<(ObjectResponse, String)>;

/// What came of one object.
#[derive(Debug)]
struct Verdict {
    /// Why it is not let in.
    refused: Option<String>,
    /// What its documents tell of it.
    note: Option<Value>,
}

/// A filter, and whose it is.
#[derive(Clone)]
struct Judge {
    filter: IngestFilter,
    whose: &'static str,
}

/// The key of the bucket's judge among those of syncs.
const OF_BUCKET: &str = "";

/// The filters of one bucket, with what they said of the objects of a chunk: each is judged once, however many collections take
/// it.
pub(super) struct Admission<'a> {
    app: &'a App,
    claim: &'a Claim,
    scope: Scope<Write>,
    /// By the ids of syncs.
    judges: BTreeMap<String, Option<Judge>>,
    verdicts: BTreeMap<String, Verdict>,
}

impl<'a> Admission<'a> {
    /// # Errors
    /// The database does not answer.
    pub async fn of(
        app: &'a App,
        claim: &'a Claim,
        (namespace_id, bucket_id): (&str, &str),
    ) -> Result<Self> {
        let filter = match BUCKETS.find(app.db(), namespace_id, bucket_id).await {
            Ok(bucket) => bucket.data.0.ingest_filter,
            // Gone with its objects.
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let caller = Caller::system(&claim.org_id);
        let whose = "bucket";
        let judge = filter.map(|filter| Judge { filter, whose });
        Ok(Self {
            app,
            claim,
            scope: Scope::internal(caller, namespace_id.to_owned()),
            judges: BTreeMap::from([(OF_BUCKET.to_owned(), judge)]),
            verdicts: BTreeMap::new(),
        })
    }

    /// Splits objects into those that are let in and the ids of the others, with the reasons.
    ///
    /// # Errors
    /// What may pass, while the chunk is tried again.
    pub async fn split(&mut self, objects: Hashed) -> Result<(Hashed, Vec<(String, String)>)> {
        self.judge(&objects).await?;
        let (mut let_in, mut refused) = (Vec::with_capacity(objects.len()), Vec::new());
        for (object, hash) in objects {
            let verdict = self.verdicts.get(id_of(&object));
            match verdict.and_then(|verdict| verdict.refused.clone()) {
                Some(reason) => refused.push((id_of(&object).to_owned(), reason)),
                None => let_in.push((object, hash)),
            }
        }
        Ok((let_in, refused))
    }

    /// What documents tell, by the objects that they are made of.
    pub fn notes(&self) -> BTreeMap<String, Value> {
        let noted = self.verdicts.iter();
        noted
            .filter_map(|(id, verdict)| Some((id.clone(), verdict.note.clone()?)))
            .collect()
    }

    /// Runs retrievers for those that none did run for yet.
    async fn judge(&mut self, objects: &[(ObjectResponse, String)]) -> Result<()> {
        let mut asked: BTreeMap<String, Vec<&ObjectResponse>> = BTreeMap::new();
        for (object, _) in objects {
            if !self.verdicts.contains_key(id_of(object)) {
                let judge = self.judge_of(object).await?;
                asked.entry(judge).or_default().push(object);
            }
        }
        for (judge, objects) in asked {
            let Some(judge) = self.judges.get(&judge).cloned().flatten() else {
                continue;
            };
            let found = self.found(&judge.filter, &objects).await?;
            let ids = objects.iter().map(|object| id_of(object).to_owned());
            let verdicts = found.into_iter().map(|found| verdict(&judge, found));
            self.verdicts.extend(ids.zip(verdicts));
        }
        Ok(())
    }

    /// The key of an object's judge: the filter of the sync that brought it, else that of the bucket.
    async fn judge_of(&mut self, object: &ObjectResponse) -> Result<String> {
        let sync = syncs::sync_of(object).unwrap_or(OF_BUCKET);
        if !self.judges.contains_key(sync) {
            let place = (self.scope.namespace_id.as_str(), object.bucket_id.as_str());
            let whose = "sync";
            let judge = match syncs::filter_of(self.app, place, sync).await? {
                Some(filter) => Some(Judge { filter, whose }),
                None => self.judges.get(OF_BUCKET).cloned().flatten(),
            };
            self.judges.insert(sync.to_owned(), judge);
        }
        Ok(sync.to_owned())
    }

    /// Whether the retriever of a filter finds anything for each of the objects, or what went wrong.
    async fn found(
        &self,
        filter: &IngestFilter,
        objects: &[&ObjectResponse],
    ) -> Result<Vec<Result<bool, String>>> {
        let longest = u64::try_from(filter.timeout_seconds).unwrap_or(30) * 1_000;
        match Ready::of(self.app, &self.scope, &filter.retriever_id, longest).await {
            Ok(ready) => self.ask(&ready, objects).await,
            Err(error) => {
                let said = self.told(error)?;
                Ok(objects.iter().map(|_| Err(said.clone())).collect())
            }
        }
    }

    /// The same of a retriever that is ready.
    async fn ask(
        &self,
        ready: &Ready,
        objects: &[&ObjectResponse],
    ) -> Result<Vec<Result<bool, String>>> {
        let mut searches = Vec::with_capacity(objects.len());
        for object in objects {
            searches.push(self.finds(ready, object));
        }
        let found: Vec<Result<bool>> = futures::stream::iter(searches)
            .buffered(AT_ONCE)
            .collect()
            .await;
        let found = found.into_iter().map(|one| match one {
            Ok(found) => Ok(Ok(found)),
            Err(error) => self.told(error).map(Err),
        });
        found.collect()
    }

    /// What went wrong, in words.
    ///
    /// # Errors
    /// The same, while another try may go better.
    fn told(&self, error: ApiError) -> Result<String> {
        match error.is_transient() && !is_last_try(self.claim) {
            true => Err(error),
            false => Ok(error.message().chars().take(LONGEST).collect()),
        }
    }

    /// Whether the retriever finds a document that was not made of the object itself.
    async fn finds(&self, ready: &Ready, object: &ObjectResponse) -> Result<bool> {
        let inputs = self.inputs(ready, object).await?;
        let own = Filter::eq("_internal.lineage.root_object_id", id_of(object));
        let others = Some(Filter::None(vec![own]));
        let search = ready.search(self.app, &self.scope, &inputs, others, 1);
        let outcome = search.await.map_err(retrievers::run_error)?;
        match outcome.documents.is_empty() {
            // The filter says how long an object is judged: another try would take as long, and the filter says what becomes
            // of it then.
            _ if outcome.timed_out => Err(ApiError::bad_request("", OUT_OF_TIME)),
            // Nobody knows whether there is one.
            true => hindered(&outcome).map_or(Ok(false), Err),
            false => Ok(true),
        }
    }

    /// The members of the object that the retriever takes by their names, texts of files among them.
    async fn inputs(&self, ready: &Ready, object: &ObjectResponse) -> Result<Object> {
        let known = ready.input_schema();
        let members = object.extra.iter();
        let mut inputs: Object = members
            .filter(|(name, _)| known.is_empty() || known.contains_key(*name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        for blob in &object.blobs {
            let name = &blob.property;
            if known.contains_key(name)
                && !inputs.contains_key(name)
                && let Some(text) = self.text(blob).await?
            {
                inputs.insert(name.clone(), text.into());
            }
        }
        Ok(inputs)
    }

    /// What is in a file of plain text that is not too long.
    async fn text(&self, blob: &BlobModel) -> Result<Option<String>> {
        let details = blob.details.clone().unwrap_or_default();
        let is_text = blob.r#type == BucketSchemaFieldType::Text
            && details
                .mime_type
                .is_some_and(|mime| mime.starts_with("text/"));
        let is_short = details.size_bytes.is_some_and(|size| size <= MAX_TEXT);
        let Some(key) = objects::blobs::key(blob).filter(|_| is_text && is_short) else {
            return Ok(None);
        };
        match self.app.blobs().get(key).await {
            Ok(bytes) => Ok(String::from_utf8(bytes.to_vec()).ok()),
            // Told where the object is read.
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn id_of(object: &ObjectResponse) -> &str {
    object.object_id.as_deref().unwrap_or_default()
}

/// What a filter makes of what was found.
fn verdict(judge: &Judge, found: Result<bool, String>) -> Verdict {
    let Judge { filter, whose } = judge;
    let action = filter.action.unwrap_or_default();
    let retriever_id = &filter.retriever_id;
    match found {
        Ok(matched) => Verdict {
            refused: match (action, matched) {
                (Action::Keep, false) => Some(format!("the {whose}'s ingest_filter found nothing")),
                (Action::Drop, true) => {
                    Some(format!("the {whose}'s ingest_filter found something"))
                }
                (Action::Keep | Action::Drop | Action::Tag, _) => None,
            },
            note: (action == Action::Tag)
                .then(|| json!({ "retriever_id": retriever_id, "matched": matched })),
        },
        Err(error) => Verdict {
            refused: (filter.on_error == Some(OnError::Drop))
                .then(|| format!("the {whose}'s ingest_filter failed: {error}")),
            note: Some(json!({ "retriever_id": retriever_id, "error": error })),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_decides_as_the_action_says() {
        let judged = |action: Option<Action>, on_error: Option<OnError>, found| {
            let filter = IngestFilter {
                retriever_id: "ret_1".into(),
                action,
                on_error,
                ..Default::default()
            };
            let whose = "bucket";
            let verdict = verdict(&Judge { filter, whose }, found);
            (verdict.refused.is_some(), verdict.note)
        };
        assert_eq!(judged(None, None, Ok(true)), (false, None));
        assert_eq!(judged(None, None, Ok(false)), (true, None));
        assert_eq!(judged(Some(Action::Drop), None, Ok(true)), (true, None));
        assert_eq!(judged(Some(Action::Drop), None, Ok(false)), (false, None));
        let note = json!({"retriever_id": "ret_1", "matched": false});
        let told = judged(Some(Action::Tag), None, Ok(false));
        assert_eq!(told, (false, Some(note)));
        let note = Some(json!({"retriever_id": "ret_1", "error": "away"}));
        let failed = || Err("away".to_owned());
        assert_eq!(judged(None, None, failed()), (false, note.clone()));
        assert_eq!(judged(None, Some(OnError::Drop), failed()), (true, note));
    }
}
