//! `rerank`: the best of the documents read once more together with the query, by a cross-encoder or a language model.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use loupe_wire::{StageCategory, Value};
use serde_json::json;

use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, member};
use super::working::{Row, Working};
use super::{Definition, RunError, decision, kept, shipped};
use crate::embed::{EmbedError, Reranker};

pub(crate) static DEFINITION: Definition = Definition {
    id: "rerank",
    aliases: &[],
    category: StageCategory::Sort,
    icon: "list-ordered",
    about: "Reads the best documents once more together with the query and orders them anew",
    members: &[
        member(
            "inference_name",
            Kind::Text,
            r#""BAAI__bge_reranker_v2_m3""#,
            "The model; where it is not configured the built-in one takes its place, and the answer says so",
        ),
        member(
            "feature_uri",
            Kind::Text,
            "",
            "The model as a feature's address: its last part is taken for `inference_name`",
        ),
        member(
            "query",
            Kind::Text,
            r#""{{INPUT.query}}""#,
            "The text of the query",
        ),
        member(
            "document_field",
            Kind::Text,
            r#""content""#,
            "Dot path of the text that is judged",
        ),
        member(
            "top_k",
            Kind::Integer(1, i64::MAX),
            "",
            "How many documents stay; all where not given",
        ),
        member(
            "max_candidates",
            Kind::Integer(1, 1000),
            "10",
            "How many documents are judged; the others follow in their order",
        ),
        member(
            "score_field",
            Kind::Text,
            r#""scores.rerank""#,
            "Where the new score goes",
        ),
        member(
            "batch_size",
            Kind::Integer(1, 100),
            "32",
            "Documents of one request to the model",
        ),
        member(
            "max_document_chars",
            Kind::Integer(100, 50_000),
            "2000",
            "Characters of a document that are read",
        ),
        member(
            "max_concurrent_batches",
            Kind::Integer(1, 10),
            "3",
            "Requests to the model at once",
        ),
        member(
            "hard_timeout_ms",
            Kind::Integer(1, i64::MAX),
            "",
            "The order stays when the model takes longer",
        ),
        member(
            "cache_behavior",
            Kind::Choice(&["auto", "disabled", "aggressive"]),
            r#""auto""#,
            "Whether scores of the same texts for the same query of the same caller are known; disabled: not",
        ),
        member(
            "cache_ttl_seconds",
            Kind::Integer(0, 31_536_000),
            "",
            "How long they are known at most; ten minutes where not given, and never longer",
        ),
        member(
            "decision_model",
            Kind::Text,
            "",
            "A model of the configured language endpoint that rates the documents, in the place of a reranker",
        ),
        member(
            "relevance_criteria",
            Kind::Text,
            "",
            "What the language model rates by, in words; how well documents answer the query where not given",
        ),
        member(
            "learning_config",
            Kind::Object(shipped::OF_RERANK),
            "",
            "Weights that the model's score and others are added up by, and the dataset that speaks for them",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let mut rows = at.rows(set).await?;
    let query = p.word("query");
    if query.trim().is_empty() && p.text("relevance_criteria").is_none() {
        at.warn(format!(
            "stage `{}`: the query is empty; the order stays",
            at.stage
        ));
        return Ok(Working::Rows(top(rows, p)));
    }
    let rest = rows.split_off(p.count("max_candidates").unwrap_or(10).min(rows.len()));
    let asked = match p.text("feature_uri") {
        Some(uri) => uri.rsplit('/').next().unwrap_or_default().to_owned(),
        None => p.word("inference_name"),
    };
    let work = judged_by(at, p, &asked, &query, &rows);
    let judged = match p.count("hard_timeout_ms") {
        None => work.await,
        Some(ms) => {
            let limit = Duration::from_millis(ms as u64);
            let done = tokio::time::timeout(limit, work).await;
            at.back().await;
            done.unwrap_or_else(|_| {
                Err(EmbedError::Failed(format!("it took longer than {ms} ms")).into())
            })
        }
    };
    match judged {
        Ok((name, scores)) => {
            at.report.metadata.insert("model".into(), json!(name));
            if name != asked && !decision::is_asked(p) {
                at.warn(format!(
                    "stage `{}`: the model `{asked}` is not configured; `{name}` took its place",
                    at.stage
                ));
            }
            let scores = weighed(at, p, &rows, scores);
            rows = ordered(rows, scores, &p.word("score_field"));
        }
        Err(RunError::Embed(error)) => {
            let stage = at.stage.clone();
            let next_step = "make the model available, then ask again";
            at.degrade(
                "stage",
                &stage,
                &format!("not reranked: {error}"),
                next_step,
            );
        }
        Err(error) => return Err(error),
    }
    rows.extend(rest);
    Ok(Working::Rows(top(rows, p)))
}

/// Says where documents could not be judged for want of a text: the order that they had is no ranking by the model.
fn tell_unread(at: &mut Execution, p: &Parameters, texts: &[Option<String>]) {
    let unread = texts.iter().filter(|text| text.is_none()).count();
    if unread > 0 {
        at.warn(format!(
            "stage `{}`: {unread} of {} documents have no text at `{}` and were not judged",
            at.stage,
            texts.len(),
            p.word("document_field")
        ));
    }
}

/// The model's scores, or what the stage's own weights make of them and of others.
fn weighed(
    at: &mut Execution,
    p: &Parameters,
    rows: &[Row],
    scores: Vec<Option<f64>>,
) -> Vec<Option<f64>> {
    let judged = json!(scores.iter().flatten().count());
    at.report.metadata.insert("judged".into(), judged);
    let Some(set) = shipped::of(at, p) else {
        return scores;
    };
    let told = json!(set.weight_set_id);
    at.report.metadata.insert("weight_set_id".into(), told);
    shipped::blended(&set, rows, &scores)
}

fn top(mut rows: Vec<Row>, p: &Parameters) -> Vec<Row> {
    rows.truncate(p.count("top_k").unwrap_or(usize::MAX));
    rows
}

/// The model that judged, and a score for each document that has a text: from memory, where the same was judged lately.
async fn judged_by(
    at: &mut Execution,
    p: &Parameters,
    asked: &str,
    query: &str,
    rows: &[Row],
) -> Result<(String, Vec<Option<f64>>), RunError> {
    let texts = texts(p, rows);
    tell_unread(at, p, &texts);
    let decides = [p.text("decision_model"), p.text("relevance_criteria")];
    let question = json!(["rerank", asked, decides, query, texts]);
    let memory = kept::Memory::new(at, p, question);
    if let Some(known) = memory.as_ref().and_then(|memory| memory.take(at)) {
        at.report.kept = Some(true);
        return Ok(known);
    }
    let judged = if decision::is_asked(p) {
        let scores = decision::scores(at, p, query, &texts).await?;
        let named = p.text("decision_model");
        (named.unwrap_or_else(|| "language model".into()), scores)
    } else {
        let model = at.run.encoders.reranker(asked).await?;
        let work = judge(&model, p, query, &texts);
        let scores = match model.is_remote() {
            true => at.away(work).await?,
            false => work.await?,
        };
        (model.name().to_owned(), scores)
    };
    if let Some(memory) = memory {
        memory.keep(at, &judged);
        at.report.kept = Some(false);
    }
    Ok(judged)
}

/// What is read of each document; nothing of one without a text.
fn texts(p: &Parameters, rows: &[Row]) -> Vec<Option<String>> {
    let (field, most) = (
        p.word("document_field"),
        p.count("max_document_chars").unwrap_or(2000),
    );
    let read = |row: &Row| {
        let text: String = text(row, &field)?.chars().take(most).collect();
        (!text.trim().is_empty()).then_some(text)
    };
    rows.iter().map(read).collect()
}

/// A score for each text.
async fn judge(
    model: &Arc<dyn Reranker>,
    p: &Parameters,
    query: &str,
    read: &[Option<String>],
) -> Result<Vec<Option<f64>>, EmbedError> {
    let (places, texts): (Vec<usize>, Vec<String>) = read
        .iter()
        .enumerate()
        .filter_map(|(place, text)| Some((place, text.clone()?)))
        .unzip();
    let batches: Vec<(Vec<usize>, Vec<String>)> = places
        .chunks(p.count("batch_size").unwrap_or(32))
        .zip(texts.chunks(p.count("batch_size").unwrap_or(32)))
        .map(|(places, texts)| (places.to_vec(), texts.to_vec()))
        .collect();
    let work = batches.into_iter().map(|(places, texts)| async move {
        model
            .scores(query, texts)
            .await
            .map(|scores| (places, scores))
    });
    let at_once = p.count("max_concurrent_batches").unwrap_or(3);
    let mut done = futures::stream::iter(work).buffer_unordered(at_once);
    let mut scores = vec![None; read.len()];
    while let Some(batch) = done.next().await {
        let (places, judged) = batch?;
        for (place, score) in places.into_iter().zip(judged) {
            scores[place] = Some(score);
        }
    }
    Ok(scores)
}

/// The text of a field; of several, such as a list of paragraphs, all.
fn text(row: &Row, field: &str) -> Option<String> {
    let found: Vec<String> = row
        .all_at(field)
        .into_iter()
        .flat_map(|value| match value {
            Value::Array(items) => items.iter().collect(),
            other => vec![other],
        })
        .filter(|value| !value.is_null())
        .map(|value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        })
        .collect();
    (!found.is_empty()).then(|| found.join("\n"))
}

/// Judged documents best first, then those without a text in the order they had.
fn ordered(rows: Vec<Row>, scores: Vec<Option<f64>>, field: &str) -> Vec<Row> {
    let mut list: Vec<(Option<f64>, Row)> = scores.into_iter().zip(rows).collect();
    list.sort_by(|a, b| match (a.0, b.0) {
        (Some(x), Some(y)) => y.total_cmp(&x),
        (x, y) => x.is_none().cmp(&y.is_none()),
    });
    let set = |(score, mut row): (Option<f64>, Row)| {
        if let Some(score) = score {
            row.set(field, json!(score));
        }
        row
    };
    list.into_iter().map(set).collect()
}
