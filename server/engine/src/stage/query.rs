//! What a search asks for: texts, pictures, vectors and documents made vectors, in one embedding call an output.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use futures::future::join_all;
use loupe_wire::{
    ContentQueryInput, FeatureSearchConfig, Object, SearchQueryInput, TextQueryInputEmbeddingTask,
    Value,
};

use super::execution::Execution;
use super::targets::Target;
use super::{RunError, decompose};
use crate::embed::{EmbedError, Pixels, decode_picture};
use crate::store::WithVectors;
use crate::web::Ask;

/// Most bytes of a query's file.
const MAX_QUERY_BYTES: usize = 20 << 20;
/// Most files and pictures that are searched with at once.
const MAX_QUERY_FILES: usize = 10;
/// How long a query waits for a file by URL.
const PATIENCE: Duration = Duration::from_secs(15);

/// A query ready to search with.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pub vector: Option<Vec<f32>>,
    /// What keywords are searched for.
    pub text: Option<String>,
    /// A document that must not find itself.
    pub itself: Option<String>,
    /// Why there is no vector.
    pub failed: Option<EmbedError>,
    /// There was nothing to ask for.
    pub empty: bool,
}

/// What has to be embedded for a query.
enum Asked {
    Done(Query),
    Text(Vec<String>),
    /// Pictures, and texts that are meant together with them.
    Pictures(Vec<Pixels>, Vec<String>),
}

/// What one search asks, where, and how its text is cut.
pub(crate) type Search<'a> = (&'a SearchQueryInput, &'a [Target], Option<decompose::Cut>);

/// The queries of a stage's searches, in their order, each with the number of its search. A text that is cut is several.
/// Searches without a target get an empty query, and those whose model takes longer than `patience` none but their words.
pub(crate) async fn resolve(
    at: &mut Execution,
    searches: &[Search<'_>],
    patience: Option<Duration>,
) -> Result<Vec<(usize, Query)>, RunError> {
    let mut numbers: Vec<usize> = Vec::with_capacity(searches.len());
    let mut queries: Vec<Query> = Vec::with_capacity(searches.len());
    let mut texts: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    let mut images: BTreeMap<String, Vec<(usize, Pixels)>> = BTreeMap::new();
    for (i, (input, targets, cut)) in searches.iter().enumerate() {
        tell_task(at, input);
        let Some(target) = targets.first() else {
            queries.push(Query::default());
            numbers.push(i);
            continue;
        };
        match ask(at, input, targets).await? {
            Asked::Done(query) => queries.push(query),
            Asked::Text(list) => {
                for list in decompose::parts(at, cut.as_ref(), list, queries.len()).await? {
                    let (query, list) = of_texts(list);
                    let list = list.into_iter().map(|text| (queries.len(), text));
                    texts.entry(target.output.clone()).or_default().extend(list);
                    queries.push(query);
                }
            }
            Asked::Pictures(pictures, list) => {
                let (query, list) = of_texts(list);
                let list = list.into_iter().map(|text| (queries.len(), text));
                texts.entry(target.output.clone()).or_default().extend(list);
                let pictures = pictures.into_iter().map(|pixels| (queries.len(), pixels));
                images
                    .entry(target.output.clone())
                    .or_default()
                    .extend(pictures);
                queries.push(Query {
                    empty: false,
                    ..query
                });
            }
        }
        numbers.resize(queries.len(), i);
    }
    let at: &Execution = at;
    let texts = join_all(texts.into_iter().filter(|(_, list)| !list.is_empty()).map(
        |(output, list)| async move {
            let (places, list): (Vec<usize>, Vec<String>) = list.into_iter().unzip();
            let vectors = super::kept::vectors(at, &output, list);
            (places, within(patience, vectors).await)
        },
    ));
    let images = join_all(images.into_iter().map(|(output, list)| async move {
        let (places, list): (Vec<usize>, Vec<Pixels>) = list.into_iter().unzip();
        let vectors = async { at.run.encoders.image(&output).await?.embed(list).await };
        (
            places,
            within(patience, vectors)
                .await
                .map(|list| list.into_iter().map(|f| f.vector).collect::<Vec<_>>()),
        )
    }));
    let (texts, images) = futures::join!(texts, images);
    place(&mut queries, texts.into_iter().chain(images));
    Ok(numbers.into_iter().zip(queries).collect())
}

/// How long searches wait for their models: for all of the time where there is nothing to find without them, else a third of it is
/// left for what needs none.
pub(crate) fn patience(at: &Execution, searches: &[FeatureSearchConfig]) -> Option<Duration> {
    let needs_no_model = |search: &FeatureSearchConfig| {
        search.lexical
            || matches!(
                search.query,
                SearchQueryInput::Vector(_) | SearchQueryInput::Document(_)
            )
    };
    let some = searches.iter().any(needs_no_model);
    at.left().filter(|_| some).map(|left| left * 2 / 3)
}

/// What a model gives within the time.
async fn within<T>(
    patience: Option<Duration>,
    vectors: impl Future<Output = Result<T, EmbedError>>,
) -> Result<T, EmbedError> {
    let Some(patience) = patience else {
        return vectors.await;
    };
    let slow = |_| {
        let told = format!("it did not answer within {} ms", patience.as_millis());
        Err(EmbedError::Failed(told))
    };
    let vectors = tokio::time::timeout(patience, vectors).await;
    vectors.unwrap_or_else(slow)
}

/// Tells where a text says that its vector is for something else than a query.
fn tell_task(at: &mut Execution, input: &SearchQueryInput) {
    let SearchQueryInput::Text(query) = input else {
        return;
    };
    match query.embedding_task {
        None | Some(TextQueryInputEmbeddingTask::RetrievalQuery) => {}
        Some(_) => at.warn(format!(
            "stage `{}`: queries are embedded as `retrieval_query`; their models are told no other task",
            at.stage
        )),
    }
}

/// The query of texts, and those of them that are to be embedded.
fn of_texts(list: Vec<String>) -> (Query, Vec<String>) {
    let list: Vec<String> = list.into_iter().filter(|t| !t.trim().is_empty()).collect();
    let text = (!list.is_empty()).then(|| list.join(" "));
    let query = Query {
        empty: text.is_none(),
        text,
        ..Query::default()
    };
    (query, list)
}

/// Gives each query the mean of its vectors, at unit length; none where one of them could not be made.
fn place(
    queries: &mut [Query],
    made: impl Iterator<Item = (Vec<usize>, Result<Vec<Vec<f32>>, EmbedError>)>,
) {
    let mut several = std::collections::BTreeSet::new();
    for (places, vectors) in made {
        let vectors = match vectors {
            Ok(vectors) => vectors,
            Err(error) => {
                for place in places {
                    queries[place].failed = Some(the_same(&error));
                }
                continue;
            }
        };
        for (place, vector) in places.into_iter().zip(vectors) {
            match &mut queries[place].vector {
                None => queries[place].vector = Some(vector),
                Some(sum) => {
                    sum.iter_mut().zip(&vector).for_each(|(a, b)| *a += b);
                    several.insert(place);
                }
            }
        }
    }
    for place in several {
        if let Some(vector) = &mut queries[place].vector {
            crate::embed::normalize(vector);
        }
    }
    for query in queries.iter_mut().filter(|query| query.failed.is_some()) {
        query.vector = None;
    }
}

fn the_same(error: &EmbedError) -> EmbedError {
    match error {
        EmbedError::Unavailable(text) => EmbedError::Unavailable(text.clone()),
        EmbedError::Invalid(text) => EmbedError::Invalid(text.clone()),
        EmbedError::Refused(text) => EmbedError::Refused(text.clone()),
        EmbedError::Failed(text) => EmbedError::Failed(text.clone()),
    }
}

async fn ask(
    at: &Execution,
    input: &SearchQueryInput,
    targets: &[Target],
) -> Result<Asked, RunError> {
    Ok(match input {
        SearchQueryInput::Text(q) => {
            Asked::Text(q.value.iter().chain(&q.text).take(1).cloned().collect())
        }
        SearchQueryInput::MultiContent(q) => {
            let values = q.values.iter().map(|text| Value::from(text.as_str()));
            several(at, values.collect()).await?
        }
        SearchQueryInput::Vector(q) => match &q.value {
            None | Some(Value::Null) => Asked::Done(Query {
                empty: true,
                ..Query::default()
            }),
            Some(value) => Asked::Done(Query {
                vector: Some(vector(value, targets)?),
                ..Query::default()
            }),
        },
        SearchQueryInput::Document(q) => {
            let reference = &q.document_ref;
            match &reference.document_id {
                None => Asked::Done(Query {
                    empty: true,
                    ..Query::default()
                }),
                Some(id) => {
                    Asked::Done(document(at, id, reference.collection_id.as_ref(), targets).await?)
                }
            }
        }
        SearchQueryInput::Content(q) => match &q.value {
            Some(Value::Array(values)) => several(at, values.clone()).await?,
            _ => content(at, q).await?,
        },
    })
}

fn vector(value: &Value, targets: &[Target]) -> Result<Vec<f32>, RunError> {
    let numbers = value.as_array().and_then(|list| {
        list.iter()
            .map(|n| n.as_f64().map(|n| n as f32).filter(|n| n.is_finite()))
            .collect::<Option<Vec<f32>>>()
    });
    let Some(numbers) = numbers else {
        return Err(RunError::Invalid(
            "a query vector is a list of finite numbers".into(),
        ));
    };
    match targets.iter().find(|t| t.dims != numbers.len()) {
        Some(t) => Err(RunError::Invalid(format!(
            "the query vector has {} numbers, the index `{}` has {}",
            numbers.len(),
            t.index,
            t.dims
        ))),
        None => Ok(numbers),
    }
}

async fn document(
    at: &Execution,
    id: &str,
    collection: Option<&String>,
    targets: &[Target],
) -> Result<Query, RunError> {
    let reach = at.reach(collection.map(std::slice::from_ref).unwrap_or_default());
    let found = at
        .run
        .store
        .get(&reach, &[id.to_owned()], WithVectors::Yes)
        .await?;
    let Some(mut document) = found.into_iter().next() else {
        return Err(RunError::Invalid(format!(
            "there is no document `{id}` to search with"
        )));
    };
    let vector = targets
        .iter()
        .find_map(|t| document.vectors.remove(&t.index));
    match vector {
        Some(vector) => Ok(Query {
            vector: Some(vector),
            itself: Some(id.to_owned()),
            ..Query::default()
        }),
        None => {
            let output = targets.first().map_or("", |t| t.output.as_str());
            Err(RunError::Invalid(format!(
                "the document `{id}` has no vector of `{output}`"
            )))
        }
    }
}

/// Contents that are meant together, each as if it were the only one.
async fn several(at: &Execution, values: Vec<Value>) -> Result<Asked, RunError> {
    let (mut texts, mut pictures) = (Vec::new(), Vec::new());
    let mut files = 0;
    for value in values {
        if !(value.is_string() || value.is_object() || value.is_null()) {
            return Err(RunError::Invalid(
                "a query's contents are texts, addresses, or files in base64".into(),
            ));
        }
        files += usize::from(is_file(&value));
        if files.max(pictures.len()) > MAX_QUERY_FILES {
            return Err(RunError::Invalid(format!(
                "a query has {MAX_QUERY_FILES} files at most"
            )));
        }
        let one = ContentQueryInput {
            value: Some(value),
            content: None,
        };
        match content(at, &one).await? {
            Asked::Text(more) => texts.extend(more),
            Asked::Pictures(more, _) => pictures.extend(more),
            Asked::Done(_) => {}
        }
    }
    Ok(match pictures.is_empty() {
        true => Asked::Text(texts),
        false => Asked::Pictures(pictures, texts),
    })
}

/// Whether a content names a file, or holds one that says so.
fn is_file(value: &Value) -> bool {
    let heads = ["data:", "https://", "http://"];
    let text = value.as_str().unwrap_or_default();
    value.is_object() || heads.iter().any(|head| text.starts_with(head))
}

/// A file by URL or base64, or text.
async fn content(at: &Execution, query: &ContentQueryInput) -> Result<Asked, RunError> {
    let value = query.value.as_ref();
    let member = |name: &str| {
        value
            .and_then(|v| v.get(name))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let sent = query.content.as_ref();
    let url = sent.and_then(|c| c.url.clone()).or_else(|| member("url"));
    let encoded = sent
        .and_then(|c| c.base64.clone())
        .or_else(|| member("base64"));
    let (url, encoded, text) = match (url, encoded, value.and_then(Value::as_str)) {
        (None, None, Some(s)) if s.starts_with("data:") => (None, Some(s.to_owned()), None),
        (None, None, Some(s)) if s.starts_with("https://") || s.starts_with("http://") => {
            (Some(s.to_owned()), None, None)
        }
        (None, None, Some(s)) => (None, None, Some(s.to_owned())),
        (url, encoded, _) => (url, encoded, None),
    };
    if let Some(text) = text {
        // Base64 of a file without its `data:` head, else plain words.
        return match decode(&text).filter(|bytes| image::guess_format(bytes).is_ok()) {
            Some(bytes) => file(bytes).await,
            None => Ok(Asked::Text(vec![text])),
        };
    }
    let bytes = match (encoded, url) {
        (Some(encoded), _) => decode(&encoded)
            .ok_or_else(|| RunError::Invalid("the content of the query is not base64".into()))?,
        (None, Some(url)) => fetched(at, &url).await?,
        (None, None) => {
            return Ok(Asked::Done(Query {
                empty: true,
                ..Query::default()
            }));
        }
    };
    file(bytes).await
}

/// What a URL leads to, read through the guarded client.
pub(super) async fn fetched(at: &Execution, url: &str) -> Result<Vec<u8>, RunError> {
    let Some(web) = at.run.web.clone() else {
        return Err(RunError::Invalid(
            "queries by URL are not enabled here; send base64".into(),
        ));
    };
    let ask = Ask {
        max_bytes: MAX_QUERY_BYTES as u64,
        timeout: PATIENCE,
        ..Ask::get(url)
    };
    let answer = at.away(web.ask(ask)).await;
    let unread = |reason: String| {
        RunError::Invalid(format!(
            "the URL of the query's content cannot be read: {reason}"
        ))
    };
    let answer = answer.map_err(|error| unread(error.to_string()))?;
    if !answer.status.is_success() {
        return Err(unread(format!("it answered {}", answer.status)));
    }
    Ok(answer.body.into())
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let body = match text.strip_prefix("data:") {
        Some(rest) => rest.split_once(";base64,")?.1,
        None => text,
    };
    if body.len() > MAX_QUERY_BYTES / 3 * 4 {
        return None;
    }
    let body: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    base64::engine::general_purpose::STANDARD.decode(body).ok()
}

async fn file(bytes: Vec<u8>) -> Result<Asked, RunError> {
    if bytes.len() > MAX_QUERY_BYTES {
        return Err(RunError::Invalid(format!(
            "a query's file has {MAX_QUERY_BYTES} bytes at most"
        )));
    }
    if image::guess_format(&bytes).is_ok() {
        // Decoding takes milliseconds to seconds: not on the threads that serve requests.
        let pixels =
            tokio::task::spawn_blocking(move || decode_picture(&bytes, 20_000, 256 << 20)).await;
        return match pixels {
            Ok(Ok(pixels)) => Ok(Asked::Pictures(vec![pixels], Vec::new())),
            Ok(Err(reason)) => Err(RunError::Invalid(format!(
                "the picture of the query cannot be read: {reason}"
            ))),
            Err(_) => Err(RunError::Invalid(
                "the picture of the query cannot be read".into(),
            )),
        };
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Asked::Text(vec![text])),
        Err(_) => Err(RunError::Invalid(
            "the content of the query is neither a picture nor text".into(),
        )),
    }
}

/// Makes numbers and booleans that templates gave to text queries text again.
pub(crate) fn coerce(query: &mut Object) {
    if query.get("input_mode").and_then(Value::as_str) != Some("text") {
        return;
    }
    for name in ["value", "text"] {
        if let Some(value @ (Value::Number(_) | Value::Bool(_))) = query.get_mut(name) {
            *value = Value::String(value.to_string());
        }
    }
}
