//! What searches and models gave lately, for the same organization and end user, by what they were asked.
//!
//! A search's rows are of a version of the documents, which every write raises; what was made of another version is not
//! used. What a model said is of its question alone. Nothing of it is anybody else's: whose it is is a part of every key.

use std::sync::Arc;
use std::time::Duration;

use loupe_wire::{Object, Value, reading};
use moka::sync::Cache;
use serde::Serialize;
use serde_json::json;

use super::RunError;
use super::execution::Execution;
use super::learned;
use super::parameters::Parameters;
use super::working::{Row, Working};
use crate::embed::EmbedError;
use crate::fingerprint::Fingerprint;
use crate::weight;

/// Bytes in memory of all searches together, of one, and of all that models said.
const ROOM: u64 = 16 << 20;
const LARGEST: usize = 2 << 20;
const ROOM_OF_MODELS: u64 = 16 << 20;
/// How long what models said is known.
const OF_MODELS: Duration = Duration::from_secs(600);
/// Words of templates that give another value from one moment, or stage, to the next.
const PASSING: [&str; 4] = ["context", "stage", "now", "time_ago"];
/// Values of parameters by which answers differ from one search to the next.
const CHANGING: [&str; 2] = ["random", "learned"];

type Key = [u8; 32];

struct Found {
    version: (u64, u64),
    bytes: u32,
    rows: Vec<Row>,
    facets: Vec<Object>,
    metadata: Object,
    legs: Vec<(String, String)>,
    at: i64,
}

/// What a process remembers.
pub struct Kept {
    searches: Cache<Key, Arc<Found>>,
    models: Cache<Key, Arc<Value>>,
}

impl Kept {
    /// `searches` is how long rows are known at most: other processes may write.
    pub fn new(searches: Duration) -> Self {
        Self {
            searches: Cache::builder()
                .max_capacity(ROOM)
                .weigher(|_: &Key, found: &Arc<Found>| found.bytes)
                .time_to_live(searches)
                .build(),
            models: Cache::builder()
                .max_capacity(ROOM_OF_MODELS)
                .weigher(|_: &Key, said: &Arc<Value>| {
                    u32::try_from(weight::of(said)).unwrap_or(u32::MAX)
                })
                .time_to_live(OF_MODELS)
                .build(),
        }
    }
}

/// The memory as one execution may use it.
#[derive(Clone)]
pub struct Keeping {
    pub kept: Arc<Kept>,
    /// The organization and the end user.
    pub whose: String,
    /// The version of the namespace, known before anything of it was read.
    pub version: (u64, u64),
    /// How old what is taken from it may be, whatever a stage lets; as old as it gets where not given.
    pub most: Option<Duration>,
}

impl Keeping {
    /// The same for a search within a stage that lets things be kept no longer than this.
    pub(crate) fn within(mut self, most: Option<Duration>) -> Self {
        self.most = self.shorter(most);
        self
    }

    fn shorter(&self, most: Option<Duration>) -> Option<Duration> {
        self.most.into_iter().chain(most).min()
    }

    /// What a model said to this question of the same caller.
    pub fn said(&self, question: &Value) -> Option<Arc<Value>> {
        self.kept.models.get(&key_of(self, question))
    }

    /// Keeps what a model said.
    pub fn keep_said(&self, question: &Value, said: Value) {
        let key = key_of(self, question);
        self.kept.models.insert(key, Arc::new(said));
    }
}

/// Where a search's rows are kept.
pub(crate) struct Place {
    keeping: Keeping,
    key: Key,
    most: Option<Duration>,
}

/// The place of a search; none where its rows are of the moment, or are not to be kept.
pub(crate) fn place(at: &Execution, parameters: &Object, set: &Working) -> Option<Place> {
    let keeping = at.run.keeping.clone()?;
    let Working::Unread { filter, sort } = set else {
        return None;
    };
    let behavior = parameters.get("cache_behavior").and_then(Value::as_str);
    let seconds = parameters.get("cache_ttl_seconds").and_then(Value::as_u64);
    if behavior == Some("disabled") || seconds == Some(0) || is_of_the_moment(parameters) {
        return None;
    }
    let run = &at.run;
    let key = Fingerprint::default()
        .text(&keeping.whose)
        .text(&run.namespace_id)
        .text(&format!("{:?}", run.collections))
        // Not in the words that people are told: those leave out whether case counts.
        .text(&format!("{filter:?}"))
        .text(&format!("{sort:?}"))
        .object(parameters)
        .object(&run.inputs)
        .part(&run.return_vectors)
        .finish();
    Some(Place {
        most: keeping.shorter(seconds.map(Duration::from_secs)),
        keeping,
        key,
    })
}

/// Whether the same parameters may find something else in the next moment.
pub(super) fn is_of_the_moment(parameters: &Object) -> bool {
    let is_changing = |text: &str| CHANGING.iter().any(|one| text.eq_ignore_ascii_case(one));
    let is_passing = |text: &str| {
        let text = text.to_lowercase();
        PASSING.iter().any(|word| text.contains(word))
    };
    says(parameters, &is_changing)
        || learned::may_be_asked(parameters)
        || says(parameters, &|text| text.contains("{{")) && says(parameters, &is_passing)
}

/// Whether a name or a text anywhere in an object is one of these.
fn says(object: &Object, is: &dyn Fn(&str) -> bool) -> bool {
    fn within(value: &Value, is: &dyn Fn(&str) -> bool) -> bool {
        match value {
            Value::String(text) => is(text),
            Value::Array(items) => items.iter().any(|item| within(item, is)),
            Value::Object(object) => says(object, is),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    object
        .iter()
        .any(|(name, value)| is(name) || within(value, is))
}

impl Place {
    /// What was kept here of this version of the documents, unless it is older than wanted.
    fn found(&self, at: &Execution) -> Option<Arc<Found>> {
        let found = self.keeping.kept.searches.get(&self.key)?;
        let age = at.run.now.timestamp_millis().saturating_sub(found.at);
        let old = self.most.is_some_and(|most| age > most.as_millis() as i64);
        (!old && found.version == self.keeping.version).then_some(found)
    }

    /// The rows alone.
    pub fn rows(&self, at: &Execution) -> Option<Vec<Row>> {
        self.found(at).map(|found| found.rows.clone())
    }

    /// The rows that the search gave before, told as if it had been asked.
    pub fn take(&self, at: &mut Execution) -> Option<Vec<Row>> {
        let found = self.found(at)?;
        at.report.facets.extend(found.facets.iter().cloned());
        at.report.metadata.extend(found.metadata.clone());
        at.legs.clone_from(&found.legs);
        Some(found.rows.clone())
    }

    /// Keeps what the search gave.
    pub fn keep(&self, at: &Execution, facets: &[Object], set: &Working) {
        if let Working::Rows(rows) = set {
            self.keep_rows(at, facets, rows);
        }
    }

    pub fn keep_rows(&self, at: &Execution, facets: &[Object], rows: &[Row]) {
        let rows_weigh = rows.iter().map(|row| weight::of(&row.value));
        let facets_weigh = facets.iter().map(weight::of_object);
        let bytes = rows_weigh.chain(facets_weigh).sum::<usize>();
        let Some(bytes) = u32::try_from(bytes).ok().filter(|_| bytes <= LARGEST) else {
            return;
        };
        let found = Found {
            version: self.keeping.version,
            bytes,
            rows: rows.to_vec(),
            facets: facets.to_vec(),
            metadata: at.report.metadata.clone(),
            legs: at.legs.clone(),
            at: at.run.now.timestamp_millis(),
        };
        self.keeping.kept.searches.insert(self.key, Arc::new(found));
    }
}

fn key_of(keeping: &Keeping, question: &Value) -> Key {
    Fingerprint::default()
        .text(&keeping.whose)
        .value(question)
        .finish()
}

/// What a model said to this question of the same caller.
pub(crate) fn said(at: &Execution, question: &Value) -> Option<Value> {
    let said = at.run.keeping.as_ref()?.said(question)?;
    Some((*said).clone())
}

/// Keeps what a model said.
pub(crate) fn keep_said(at: &Execution, question: &Value, said: Value) {
    if let Some(keeping) = &at.run.keeping {
        keeping.keep_said(question, said);
    }
}

/// Where what a model made of the same texts is kept, for as long as its stage says.
pub(crate) struct Memory {
    question: Value,
    most: Option<Duration>,
}

impl Memory {
    /// None where the stage is to remember nothing.
    pub fn new(at: &Execution, p: &Parameters, question: Value) -> Option<Self> {
        let most = at.run.keeping.as_ref()?.shorter(time_of(p)?);
        Some(Self { question, most })
    }

    pub fn take<T: serde::de::DeserializeOwned>(&self, at: &Execution) -> Option<T> {
        let known = said(at, &self.question)?;
        let age = at.run.now.timestamp_millis() - known.get("at")?.as_i64()?;
        if self.most.is_some_and(|most| age > most.as_millis() as i64) {
            return None;
        }
        reading::from_value(known.get("made")?).ok()
    }

    pub fn keep(&self, at: &Execution, made: &impl Serialize) {
        let told = json!({"at": at.run.now.timestamp_millis(), "made": made});
        keep_said(at, &self.question, told);
    }
}

/// How long a stage lets things be kept: none, not at all; as long as they are anyway where it does not say.
pub(crate) fn time_of(p: &Parameters) -> Option<Option<Duration>> {
    let seconds = p.count("cache_ttl_seconds");
    let off = p.word("cache_behavior") == "disabled" || seconds == Some(0);
    (!off).then(|| seconds.map(|seconds| Duration::from_secs(seconds as u64)))
}

/// The place of documents that a stage reads beside those that were found, by what it asks for.
pub(crate) fn beside(at: &Execution, p: &Parameters, asked: &Value) -> Option<Place> {
    let keeping = at.run.keeping.clone()?;
    let most = keeping.shorter(time_of(p)?);
    let key = Fingerprint::default()
        .text("beside")
        .text(&keeping.whose)
        .text(&at.run.namespace_id)
        .value(asked)
        .finish();
    Some(Place { keeping, key, most })
}

/// The vectors of texts, from memory where the same caller has asked for them lately.
pub(crate) async fn vectors(
    at: &Execution,
    output: &str,
    texts: Vec<String>,
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let question = |text: &String| json!(["text", output, text]);
    let mut found: Vec<Option<Vec<f32>>> = texts
        .iter()
        .map(|text| reading::from_value(&said(at, &question(text))?).ok())
        .collect();
    let lacking = texts
        .iter()
        .zip(&found)
        .filter(|(_, found)| found.is_none());
    let lacking: Vec<String> = lacking.map(|(text, _)| text.clone()).collect();
    if !lacking.is_empty() {
        let encoder = at.run.encoders.text(output).await?;
        let mut made = encoder.embed(lacking).await?.into_iter();
        for (text, place) in texts.iter().zip(&mut found) {
            if place.is_none() {
                *place = made.next();
                if let Some(vector) = place {
                    keep_said(at, &question(text), json!(vector));
                }
            }
        }
    }
    let whole: Option<Vec<_>> = found.into_iter().collect();
    whole.ok_or_else(|| EmbedError::Failed("the model gave fewer vectors than texts".into()))
}

/// Runs a search, or takes what it gave before.
pub(crate) async fn search(
    at: &mut Execution,
    parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    let Some(place) = place(at, &parameters, &set) else {
        return super::feature_search::search(at, parameters, set).await;
    };
    if let Some(rows) = place.take(at) {
        at.report.kept = Some(true);
        return Ok(Working::Rows(rows));
    }
    let report = &at.report;
    let before = (
        report.facets.len(),
        report.warnings.len(),
        report.degraded.len(),
        report.relaxations.len(),
    );
    let set = super::feature_search::search(at, parameters, set).await?;
    let report = &at.report;
    // What is not whole is asked again.
    let whole = (
        report.warnings.len(),
        report.degraded.len(),
        report.relaxations.len(),
    ) == (before.1, before.2, before.3);
    if whole {
        place.keep(at, &at.report.facets[before.0..], &set);
    }
    at.report.kept = Some(false);
    Ok(set)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Memory, Plain};
    use super::super::{Plan, Run, SearchIndex, Searchable};
    use super::*;
    use crate::store::Document;

    fn run(keeping: Option<Keeping>, calls: &Plain, store: &Arc<Memory>) -> Run {
        Run {
            store: store.clone(),
            encoders: Arc::new(Plain {
                calls: calls.calls.clone(),
            }),
            namespace_id: "ns_1".into(),
            principal: None,
            collections: vec![Searchable {
                collection_id: "col_a".into(),
                name: "texts".into(),
                indexes: vec![SearchIndex {
                    feature_uri: Some("loupe://text_extractor@v1/flat_v1".into()),
                    name: "flat_index".into(),
                    output: "flat_v1".into(),
                    dims: 2,
                }],
            }],
            references: Vec::new(),
            taxonomies: Vec::new(),
            inputs: json!({"query": "1,0"}).as_object().unwrap().clone(),
            filter: None,
            now: chrono::DateTime::from_timestamp(1_795_000_000, 0).unwrap(),
            max_time_ms: None,
            pagination: None,
            limit: None,
            return_vectors: false,
            explain: false,
            secrets: Default::default(),
            web: None,
            web_search: None,
            outside: Default::default(),
            keeping,
            watch: None,
            acts: Default::default(),
            around: None,
            shown: None,
            counted: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_search_is_remembered_for_its_caller_and_its_version_alone() {
        let store = Arc::new(Memory {
            documents: vec![Document {
                document_id: "a".into(),
                collection_id: "col_a".into(),
                payload: json!({"n": 1}).as_object().unwrap().clone().into(),
                vectors: [("flat_index".to_owned(), vec![1.0, 0.0])].into(),
                keywords: None,
            }],
            ..Memory::default()
        });
        let calls = Plain::default();
        let kept = Arc::new(Kept::new(Duration::from_secs(60)));
        let keeping = |whose: &str, version| {
            Some(Keeping {
                kept: kept.clone(),
                whose: whose.into(),
                version: (version, 0),
                most: None,
            })
        };
        let plan = |more: Value| {
            let mut parameters = json!({"feature_uri": "loupe://text_extractor@v1/flat_v1", "query": "{{INPUT.query}}", "facets": [{"key": "n"}]});
            for (name, value) in more.as_object().unwrap() {
                parameters[name] = value.clone();
            }
            let stage = json!({"stage_name": "s", "config": {"stage_id": "feature_search", "parameters": parameters}});
            Plan::compile(&[reading::from_value(&stage).unwrap()], &Default::default())
                .map_err(|p| panic!("{p:?}"))
                .unwrap()
        };
        let ask = async |more: Value, with: Option<Keeping>| {
            let out = plan(more).run(run(with, &calls, &store)).await.unwrap();
            assert_eq!((out.documents.len(), out.facets.len()), (1, 1));
            out.statistics.stages["s"].stage_cache_hit
        };
        let (searches, texts) = (
            || store.searches.lock().unwrap().len(),
            || calls.calls.lock().unwrap().len(),
        );
        assert_eq!(ask(json!({}), keeping("a", 1)).await, Some(false));
        assert_eq!(ask(json!({}), keeping("a", 1)).await, Some(true));
        assert_eq!((searches(), texts()), (1, 1));
        // Another version is searched anew, though the words are known; another caller knows nothing.
        assert_eq!(ask(json!({}), keeping("a", 2)).await, Some(false));
        assert_eq!((searches(), texts()), (2, 1));
        assert_eq!(ask(json!({}), keeping("b", 2)).await, Some(false));
        assert_eq!((searches(), texts()), (3, 2));
        assert_eq!(
            ask(json!({"final_top_k": 3}), keeping("a", 2)).await,
            Some(false)
        );
        assert_eq!(
            ask(json!({"cache_behavior": "disabled"}), keeping("a", 2)).await,
            None
        );
        assert_eq!(
            ask(json!({"cache_ttl_seconds": 0}), keeping("a", 2)).await,
            None
        );
        assert_eq!(ask(json!({}), None).await, None);
    }
}
