//! A collection over collections being filled: the documents of a tier are the objects of the next.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use loupe_engine::{
    filter::Filter,
    ingest::{CollectionPlan, ObjectInput, fields, root},
    store::{Document, ListQuery, Reach},
};
use loupe_wire::Value;
use sha2::{Digest, Sha256};

use super::{
    filling::{Filling, LISTED},
    reading,
};
use crate::{
    error::Result,
    v1::batches::{ChunkEnd, fillings::belonging, store::Processed},
};

/// Documents of the source processed at once.
const AT_ONCE: usize = 256;

impl Filling<'_> {
    /// Makes and stores what comes of the documents that belong to the waiting objects, and notes it in `end`. Answers the
    /// objects whose documents are as they were when the collection was last filled from them.
    pub async fn with_documents(
        &self,
        is_done: &(dyn Fn(&str, &str) -> bool + Sync),
        end: &mut ChunkEnd,
    ) -> Result<HashSet<String>> {
        let waiting = end.objects.iter().filter(|one| one.status != "FAILED");
        let waiting: Vec<String> = waiting.map(|one| one.object_id.clone()).collect();
        let mut states = self.states(&waiting).await?;
        // What has lost all its documents loses what was made of them, whether or not the end of that is known.
        let mut empty = Vec::new();
        for id in waiting {
            if self.again.contains(&id) {
                states.entry(id).or_default();
            } else if !states.contains_key(&id) {
                empty.push(id);
            }
        }
        self.remove_stale(&empty, &[], end).await?;
        end.documents.found += states.values().map(State::len).sum::<i64>();
        let hashes: BTreeMap<String, String> = states
            .into_iter()
            .map(|(id, state)| (id, state.hash()))
            .collect();
        let (unchanged, todo): (BTreeMap<_, _>, BTreeMap<_, _>) =
            hashes.into_iter().partition(|(id, hash)| is_done(id, hash));
        self.process(todo, end).await?;
        Ok(unchanged.into_keys().collect())
    }

    /// The documents that belong to each of the objects, as far as it matters whether they changed.
    async fn states(&self, roots: &[String]) -> Result<BTreeMap<String, State>> {
        let mut states: BTreeMap<String, State> = BTreeMap::new();
        let Some(mut pages) = self.pages(roots, LISTED)? else {
            return Ok(states);
        };
        while let Some(documents) = pages.next(self).await? {
            for document in documents {
                let changed = document.payload.get("_internal");
                let changed = changed.and_then(|internal| internal.get("updated_at")?.as_str());
                let changed = changed.unwrap_or_default().to_owned();
                let state = states.entry(root(&document).to_owned()).or_default();
                state.0.insert((document.document_id, changed));
            }
        }
        Ok(states)
    }

    async fn process(&self, todo: BTreeMap<String, String>, end: &mut ChunkEnd) -> Result<()> {
        if todo.is_empty() {
            return Ok(());
        }
        let plan = self.plan()?;
        let collection_id = plan.spec.collection_id.clone();
        let ids: Vec<String> = todo.keys().cloned().collect();
        let (mut written, mut counts) = (Vec::new(), BTreeMap::<String, i64>::new());
        let mut pages = self.pages(&ids, AT_ONCE)?;
        while let Some(pages) = &mut pages {
            let Some(documents) = pages.next(self).await? else {
                break;
            };
            let roots: BTreeMap<String, String> = documents
                .iter()
                .map(|one| (one.document_id.clone(), root(one).to_owned()))
                .collect();
            end.documents.submitted += i64::try_from(documents.len()).unwrap_or(0);
            for (files, inputs) in self.inputs(&plan, documents) {
                let _room = reading::room(files).await;
                let inputs = self.read(&plan, inputs, &roots, end).await?;
                let made = self.make(&plan, inputs, &roots, end).await?;
                for (document, count) in made.from {
                    if let Some(root) = roots.get(&document) {
                        *counts.entry(root.clone()).or_default() += count;
                    }
                }
                written.extend(made.ids);
            }
        }
        let failed: HashSet<&str> = end
            .objects
            .iter()
            .filter(|one| one.collection_id.as_deref() == Some(&collection_id))
            .map(|one| one.object_id.as_str())
            .collect();
        let processed = todo
            .into_iter()
            .filter(|(id, _)| !failed.contains(id.as_str()))
            .map(|(object_id, content_hash)| Processed {
                documents: counts.get(&object_id).copied().unwrap_or(0),
                collection_id: collection_id.clone(),
                content_hash,
                object_id,
            });
        let processed: Vec<Processed> = processed.collect();
        // What could not be read this time is not gone.
        let whole = |id: &String| {
            let one = (collection_id.clone(), id.clone());
            !end.cut_short.contains(&one)
        };
        let done = processed.iter().map(|one| one.object_id.clone());
        let done: Vec<String> = done.filter(whole).collect();
        end.processed.extend(processed);
        self.remove_stale(&done, &written, end).await?;
        end.written.push((collection_id, written));
        Ok(())
    }

    /// Documents as objects, their fields where the collection wants them, in groups whose files fit into memory together;
    /// each with the bytes of its files.
    fn inputs(
        &self,
        plan: &CollectionPlan,
        documents: Vec<Document>,
    ) -> Vec<(i64, Vec<ObjectInput>)> {
        let sized = documents.into_iter().map(|document| {
            let size = sizes(&document);
            let mut input = ObjectInput::of_document(document);
            self.map_fields(&mut input);
            let read = self.files_read(plan, &input);
            let bytes = read
                .iter()
                .filter_map(|place| size.get(*place))
                .sum::<i64>();
            (input, bytes)
        });
        let groups = reading::groups(sized.collect(), |(_, bytes)| self.weight(plan, *bytes));
        let inputs = |group: Vec<(ObjectInput, i64)>| {
            let bytes = group.iter().map(|one| one.1).fold(0, i64::saturating_add);
            (bytes, group.into_iter().map(|one| one.0).collect())
        };
        groups.into_iter().map(inputs).collect()
    }

    /// Fields of one source under the names that the collection has for those of all its sources.
    fn map_fields(&self, input: &mut ObjectInput) {
        let origin = input.origin.as_ref();
        let map = &self.collection.source.field_map;
        let rules = origin.and_then(|origin| map.get(&origin.collection_id));
        for rule in rules.into_iter().flatten() {
            let target = rule.target_path.as_ref().unwrap_or(&rule.source_path);
            let value = fields::get(&input.fields, &rule.source_path).cloned();
            if let Some(value) = value.or_else(|| rule.default.clone()) {
                fields::set(&mut input.fields, target, value);
            }
        }
    }

    /// Reads the files that the extractor reads; a document whose file is gone fails, and its object with it.
    async fn read(
        &self,
        plan: &CollectionPlan,
        inputs: Vec<ObjectInput>,
        roots: &BTreeMap<String, String>,
        end: &mut ChunkEnd,
    ) -> Result<Vec<ObjectInput>> {
        let mut read = Vec::with_capacity(inputs.len());
        for input in inputs {
            let id = input.object_id.clone();
            let wanted = self.files_read(plan, &input);
            match reading::document(self.app, &wanted, input).await {
                Ok(input) => read.push(input),
                Err(error) if error.is_not_found() => {
                    let root = roots.get(&id).map_or(id.as_str(), String::as_str);
                    let mut ends = end.objects.iter_mut();
                    if let Some(end) = ends.find(|end| end.object_id == root) {
                        end.status = "FAILED";
                        end.error = Some("a file of the document is gone".into());
                        end.error_type = Some("permanent".into());
                        end.collection_id = Some(plan.spec.collection_id.clone());
                        end.document_id = Some(id);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    /// The documents of the source collections that belong to these objects.
    fn pages(&self, roots: &[String], limit: usize) -> Result<Option<Pages>> {
        if roots.is_empty() {
            return Ok(None);
        }
        let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
        let filter = belonging(&roots);
        let filter = match self.source_filter()? {
            Some(wanted) => filter.and(wanted),
            None => filter,
        };
        let sources = self.collection.source.collection_ids.iter().flatten();
        Ok(Some(Pages::new(
            self.namespace_id,
            sources,
            filter,
            limit,
            &roots,
        )))
    }
}

/// Documents page by page.
struct Pages {
    reach: Reach,
    query: Option<ListQuery>,
    roots: HashSet<String>,
}

impl Pages {
    fn new<'s>(
        namespace_id: &str,
        sources: impl Iterator<Item = &'s String>,
        filter: Filter,
        limit: usize,
        roots: &[&str],
    ) -> Self {
        Self {
            reach: Reach {
                namespace_id: namespace_id.to_owned(),
                collection_ids: sources.cloned().collect(),
                principal: None,
            },
            query: Some(ListQuery {
                filter: Some(filter),
                limit,
                ..Default::default()
            }),
            roots: roots.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    async fn next(&mut self, filling: &Filling<'_>) -> Result<Option<Vec<Document>>> {
        let Some(query) = self.query.take() else {
            return Ok(None);
        };
        let page = filling.app.store().list(&self.reach, query.clone()).await?;
        self.query = page.next.map(|next| ListQuery {
            cursor: Some(next),
            ..query
        });
        let mut documents = page.documents;
        // A document may belong to an object and be named itself.
        documents.retain(|document| self.roots.contains(root(document)));
        Ok(Some(documents))
    }
}

/// Bytes of the files that a document names, in their order.
fn sizes(document: &Document) -> Vec<i64> {
    let internal = document.payload.get("_internal");
    let files = internal.and_then(|internal| internal.get("document_blobs")?.as_array());
    let files = files.into_iter().flatten();
    files
        .map(|file| file.get("size_bytes").and_then(Value::as_i64).unwrap_or(0))
        .collect()
}

/// Documents of one object, each with the moment of its last change.
#[derive(Debug, Default)]
struct State(BTreeSet<(String, String)>);

impl State {
    fn len(&self) -> i64 {
        i64::try_from(self.0.len()).unwrap_or(i64::MAX)
    }

    /// What stays the same while nothing was written, changed or removed.
    fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for (id, changed) in &self.0 {
            hash.update(id);
            hash.update(b"\n");
            hash.update(changed);
            hash.update(b"\n");
        }
        hex::encode(hash.finalize())
    }
}
