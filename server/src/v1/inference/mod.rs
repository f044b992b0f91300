//! The models of this server asked directly: texts and pictures to vectors, texts scored for a query, words of a language
//! model.

mod memory;
mod routes;

use std::time::Instant;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use indexmap::IndexMap;
use loupe_engine::{
    embed::{Pixels, Question, Usage},
    stage::{Around as _, Metered},
};
use loupe_wire::{Object, RawInferenceRequest, RawInferenceResponse, Value};
use serde_json::json;

pub use routes::router;

use memory::{Memory, Said};

use super::retrievers::{self, Held};
use crate::{
    app::App,
    auth::{Read, Scope},
    error::{ApiError, Result, Violation},
    limits::quota,
};

/// Texts of one request, and characters of one.
const TEXTS: usize = 256;
const CHARACTERS: usize = 100_000;

/// Pixels of a picture along one side, and bytes that decoding may take.
const SIDE: u32 = 20_000;
const DECODED: u64 = 256 << 20;

/// The text model that answers where none is named.
const TEXT_MODEL: &str = "all_minilm_l6_v2_v1";
const IMAGE_MODEL: &str = "efficientnet_lite0_v1";

/// Who makes vectors: the models that are built in, or behind the configured endpoints.
const EMBEDDING: &str = "embedding";

/// What is asked of which kind of model.
enum Task {
    Texts(Vec<String>),
    Picture(Vec<u8>),
    Scores { query: String, texts: Vec<String> },
    Words(String),
}

/// Asks the model that fits the inputs, or answers what it said before.
pub async fn infer(
    app: &App,
    scope: &Scope<Read>,
    mut request: RawInferenceRequest,
) -> Result<RawInferenceResponse> {
    quota::check_spend(app, &scope.caller.org_id).await?;
    let task = task(&request.inputs)?;
    let started = Instant::now();
    let mut memory = Memory::of(app, scope, &mut request, &task);
    if let Some(said) = memory.as_ref().and_then(Memory::exact) {
        return Ok(answer(said, started, true));
    }
    let turn = app.turns.take().await?;
    let held = Held::new(app, &scope.caller.org_id, turn);
    if let Some(memory) = &mut memory
        && let Some(said) = memory.near(app, &task).await
    {
        return Ok(answer(said, started, true));
    }
    let said = ask(app, &held, &request, task).await?;
    if let Some(memory) = memory {
        memory.keep(&said);
    }
    Ok(answer(said, started, false))
}

/// What is answered names who was asked, whoever was meant.
fn answer(said: Said, started: Instant, cached: bool) -> RawInferenceResponse {
    RawInferenceResponse {
        data: Some(said.data),
        provider: said.provider,
        model: said.model,
        tokens_used: said.tokens,
        latency_ms: started.elapsed().as_secs_f64() * 1e3,
        cached,
    }
}

/// What the model that fits says.
async fn ask(app: &App, held: &Held, request: &RawInferenceRequest, task: Task) -> Result<Said> {
    let (named, mut tokens) = (name(request), None);
    let (data, provider, model) = match task {
        Task::Texts(texts) => {
            let model = named.unwrap_or_else(|| TEXT_MODEL.into());
            let encoder = app.encoders().text(&model).await?;
            let vectors = encoder.embed(texts).await?;
            (
                json!({ "embeddings": vectors }),
                EMBEDDING.to_owned(),
                model,
            )
        }
        Task::Picture(bytes) => {
            let model = named.unwrap_or_else(|| IMAGE_MODEL.into());
            let encoder = app.encoders().image(&model).await?;
            let mut found = encoder.embed(vec![pixels(bytes).await?]).await?;
            let found = found.pop().unwrap_or_default();
            let labels = found
                .labels
                .iter()
                .map(|(label, score)| json!({"label": label, "score": score}));
            let labels: Vec<Value> = labels.collect();
            (
                json!({"embeddings": [found.vector], "labels": labels}),
                EMBEDDING.to_owned(),
                model,
            )
        }
        Task::Scores { query, texts } => {
            let reranker = app
                .encoders()
                .reranker(named.as_deref().unwrap_or_default())
                .await?;
            let scores = reranker.scores(&query, texts).await?;
            (
                json!({ "scores": scores }),
                "reranker".to_owned(),
                reranker.name().to_owned(),
            )
        }
        Task::Words(prompt) => {
            let model = named.clone().unwrap_or_else(|| "default".into());
            let (words, used) = words(app, held, request, prompt, named).await?;
            tokens = Some(counted(used));
            let asked = app.encoders().language();
            let provider = asked.and_then(|one| one.provider().map(ToOwned::to_owned));
            let provider = provider.unwrap_or_else(|| "language".into());
            (json!({ "text": words }), provider, model)
        }
    };
    Ok(Said {
        data,
        provider,
        model,
        tokens,
    })
}

/// The tokens of a prompt and of the words that it got.
fn counted(used: Usage) -> IndexMap<String, i64> {
    let all = [
        ("input", used.input),
        ("output", used.output),
        ("total", used.total()),
    ];
    let figure = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    all.map(|(name, count)| (name.to_owned(), figure(count)))
        .into()
}

/// Their number by their lengths, where the endpoint does not count them: four characters are one, roughly.
fn estimated(asked: usize, said: usize) -> Usage {
    let tokens = |length: usize| length.div_ceil(4) as u64;
    Usage {
        input: tokens(asked),
        output: tokens(said),
    }
}

async fn words(
    app: &App,
    held: &Held,
    request: &RawInferenceRequest,
    prompt: String,
    named: Option<String>,
) -> Result<(String, Usage)> {
    let language = app.encoders().language().ok_or_else(|| {
        let message = "no language model is configured on this server ([models.language])";
        ApiError::model_unavailable("", message)
    })?;
    let parameters = request.parameters.clone().unwrap_or_default();
    let most = parameters
        .get("max_tokens")
        .and_then(Value::as_i64)
        .unwrap_or(1_000)
        .clamp(1, 8_000);
    // What comes back is counted as if it were all that may come, until it is there.
    let asked = prompt.len();
    let (tokens, since) = (asked as u64 / 4 + most.unsigned_abs(), Instant::now());
    held.spend(Metered::LanguageTokens, tokens)
        .map_err(|wait| {
            let message = "the organization has used its tokens of language models of this minute";
            retrievers::used_up(Metered::LanguageTokens, message, wait)
        })?;
    let question = Question {
        task: parameters
            .get("system")
            .and_then(Value::as_str)
            .unwrap_or("Answer.")
            .to_owned(),
        text: prompt,
        model: named,
        temperature: parameters
            .get("temperature")
            .and_then(Value::as_f64)
            .unwrap_or(0.0)
            .clamp(0.0, 2.0),
        most_tokens: Some(most),
        ..Default::default()
    };
    // Others search while another machine thinks.
    held.leave();
    let answered = language.counted_words(&question).await;
    if let Some(used) = answered.used {
        let what = Metered::LanguageTokens;
        held.settle(what, tokens, used.total(), since.elapsed());
    }
    let words = answered.said?;
    let used = answered
        .used
        .unwrap_or_else(|| estimated(asked, words.len()));
    Ok((words, used))
}

/// The model that is named: the last part of a feature's address, else the name itself.
fn name(request: &RawInferenceRequest) -> Option<String> {
    let of_feature = request
        .feature_uri
        .as_deref()
        .and_then(|uri| uri.rsplit('/').next());
    let named = of_feature
        .or(request.inference_name.as_deref())
        .or(request.model.as_deref());
    named.filter(|name| !name.is_empty()).map(ToOwned::to_owned)
}

fn fault(member: &str, msg: String) -> ApiError {
    Violation::body(&["inputs", member], "value_error", msg, Value::Null).into()
}

fn task(inputs: &Object) -> Result<Task> {
    let text = |member: &str| {
        inputs
            .get(member)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    if let Some(image) = text("image") {
        let packed = image
            .split_once(";base64,")
            .map_or(image.as_str(), |(_, rest)| rest);
        let bytes = STANDARD.decode(packed.trim());
        return bytes
            .map(Task::Picture)
            .map_err(|_| fault("image", "a picture is sent as base64".into()));
    }
    if let (Some(query), Some(texts)) = (text("query"), inputs.get("documents")) {
        let texts = texts_of("documents", texts)?;
        return Ok(Task::Scores { query, texts });
    }
    if let Some(texts) = inputs.get("texts").or_else(|| inputs.get("text")) {
        return texts_of("texts", texts).map(Task::Texts);
    }
    match text("prompt").filter(|prompt| prompt.chars().count() <= CHARACTERS) {
        Some(prompt) => Ok(Task::Words(prompt)),
        None => {
            let msg = "inputs are text, texts, image, query and documents, or a prompt";
            Err(Violation::body(&["inputs"], "missing", msg, Value::Null).into())
        }
    }
}

fn texts_of(member: &str, value: &Value) -> Result<Vec<String>> {
    let texts: Option<Vec<String>> = match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(ToOwned::to_owned))
            .collect(),
        _ => None,
    };
    let texts = texts.ok_or_else(|| fault(member, "a text or a list of texts".into()))?;
    let too_long = texts.iter().any(|text| text.chars().count() > CHARACTERS);
    if texts.is_empty() || texts.len() > TEXTS || too_long {
        let msg = format!("1 to {TEXTS} texts of at most {CHARACTERS} characters");
        return Err(fault(member, msg));
    }
    Ok(texts)
}

/// Decoding takes milliseconds to seconds: not on the threads that serve requests.
async fn pixels(bytes: Vec<u8>) -> Result<Pixels> {
    let decoded = tokio::task::spawn_blocking(move || {
        loupe_engine::embed::decode_picture(&bytes, SIDE, DECODED)
    });
    decoded
        .await
        .map_err(ApiError::internal)?
        .map_err(|reason| fault("image", format!("the picture cannot be read: {reason}")))
}
