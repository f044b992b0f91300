//! `query_expand`: the search asked in several ways at once. The configured language model says in which; without one, or
//! when it is late, the words that the first documents share do (pseudo-relevance feedback), and the answer says so.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use loupe_wire::{FeatureSearchGroupBy, Object, StageCategory, Value, reading};
use serde_json::json;

use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, Member, member};
use super::working::{Row, Working};
use super::{Definition, RunError, StageProblem, feature_search, feature_table, language};
use crate::embed::Question;
use crate::template::render_text;

/// Documents whose words are looked at without a language model, and words that are added to the query at once.
const FEEDBACK_DOCUMENTS: usize = 10;
const WORDS_AT_ONCE: usize = 3;
/// Documents of one list that groups are made of.
const MOST_GROUPED: usize = 5_000;
/// How long the language model may take where the stage does not say.
const PATIENCE_MS: usize = 5_000;

const TASK: &str = "You rewrite search queries. Answer with JSON: {\"queries\": [texts]}. Each text asks for the same \
    in other words, with synonyms or from another side, in the language of the query.";

pub(crate) static DEFINITION: Definition = Definition {
    id: "query_expand",
    aliases: &[],
    category: StageCategory::Filter,
    icon: "split",
    about: "Searches with several ways to say the query and makes one ranking of them",
    members: &[
        member(
            "num_expansions",
            Kind::Integer(1, 10),
            "3",
            "How many ways beside the query itself",
        ),
        member(
            "expansion_prompt",
            Kind::Template,
            r#""Give {{ NUM_EXPANSIONS }} other ways to search for: {{ QUERY }}""#,
            "What the language model is asked, with QUERY and NUM_EXPANSIONS",
        ),
        member(
            "expansion_model",
            Kind::Text,
            r#""gpt-4o-mini""#,
            "The model of the configured endpoint; its own where this default is not changed",
        ),
        Member {
            name: "feature_search_config",
            kind: Kind::Object(feature_table::MEMBERS),
            required: true,
            default: "",
            about: "The parameters of the search; its text queries are what is said in other ways",
        },
        member(
            "include_original",
            Kind::Boolean,
            "true",
            "Whether the query itself is searched for, too",
        ),
        member(
            "rrf_k",
            Kind::Integer(1, 1000),
            "60",
            "The rank constant of the fusion by rank",
        ),
        member(
            "fusion_strategy",
            Kind::Choice(&["rrf", "linear"]),
            r#""rrf""#,
            "rrf: by ranks; linear: by the mean of the scores, each as a share of its list's best",
        ),
        member(
            "deduplicate",
            Kind::Boolean,
            "true",
            "Whether a document that several searches find is one; else one a search",
        ),
        member(
            "expansion_timeout_ms",
            Kind::Integer(1, 5000),
            "",
            "How long the language model may take before the words of the documents are taken",
        ),
    ],
};

/// Brings the search inside to its full form.
pub(super) fn normalize(parameters: &mut Object) {
    if let Some(Value::Object(config)) = parameters.get_mut("feature_search_config") {
        feature_table::normalize(config);
    }
}

/// What the table cannot say of the search inside.
pub(super) fn check(parameters: &Object, loc: &[String], out: &mut Vec<StageProblem>) {
    if let Some(Value::Object(config)) = parameters.get("feature_search_config") {
        let here = super::schema::inside(loc, "feature_search_config");
        feature_table::check(config, &here, out);
    }
}

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let config = p.map("feature_search_config").unwrap_or_default();
    let Some(query) = text_of(&config) else {
        at.warn(format!(
            "stage `{}`: the search has no text to say in other ways; it was asked as it is",
            at.stage
        ));
        return feature_search::run(at, config, set).await;
    };
    // What is found several times is grouped once: a group of one list knows nothing of the others.
    let (config, grouping) = ungrouped(config);
    let expansions = expand(at, p, &config, &query, set.clone()).await?;
    at.report
        .metadata
        .insert("expansions".into(), json!(expansions));
    let mut asked = expansions;
    if p.flag("include_original") || asked.is_empty() {
        asked.insert(0, query.clone());
    }
    let mut lists = Vec::with_capacity(asked.len());
    let mut facets = None;
    for text in &asked {
        let worded = reworded(&config, &query, text);
        let found = feature_search::run(at, worded, set.clone()).await?;
        lists.push(at.rows(found).await?);
        // Facets are of the filters, not of the words: once is enough.
        let told = *facets.get_or_insert(at.report.facets.len());
        at.report.facets.truncate(told);
    }
    let mut rows = fused(lists, p);
    if let Some(one) = &grouping.by {
        rows = feature_search::grouped(rows, one);
    }
    rows.truncate(grouping.most);
    Ok(Working::Rows(rows))
}

/// How the whole is grouped and cut, in the place of each list.
struct Grouping {
    by: Option<FeatureSearchGroupBy>,
    most: usize,
}

/// The search without its groups, and with all that they are made of.
fn ungrouped(mut config: Object) -> (Object, Grouping) {
    let most = config.get("final_top_k").and_then(Value::as_u64);
    let most = most.unwrap_or(25) as usize;
    let by = config.get("group_by");
    let by = by.and_then(|by| reading::from_value::<FeatureSearchGroupBy>(by).ok());
    if by.is_some() {
        config.shift_remove("group_by");
        config.insert("final_top_k".into(), json!(MOST_GROUPED));
    }
    (config, Grouping { by, most })
}

/// The first text that the search asks for.
fn text_of(config: &Object) -> Option<String> {
    let searches = config.get("searches")?.as_array()?;
    let text = |search: &Value| {
        let query = search.get("query")?;
        let text = query.get("value").or_else(|| query.get("text"))?.as_str()?;
        (!text.trim().is_empty()).then(|| text.to_owned())
    };
    let texts = |search: &&Value| {
        search.pointer("/query/input_mode").and_then(Value::as_str) == Some("text")
    };
    searches.iter().filter(texts).find_map(text)
}

/// The search with other words in the place of the query's.
fn reworded(config: &Object, query: &str, text: &str) -> Object {
    let mut config = config.clone();
    let searches = config.get_mut("searches").and_then(Value::as_array_mut);
    for search in searches.into_iter().flatten() {
        for name in ["value", "text"] {
            if let Some(said) = search.pointer_mut(&format!("/query/{name}"))
                && said.as_str() == Some(query)
            {
                *said = json!(text);
            }
        }
    }
    config
}

/// Other ways to say the query.
async fn expand(
    at: &mut Execution,
    p: &Parameters,
    config: &Object,
    query: &str,
    set: Working,
) -> Result<Vec<String>, RunError> {
    let wanted = p.count("num_expansions").unwrap_or(3);
    let reason = match language::model(at) {
        Err(_) => "no language model is configured".to_owned(),
        Ok(_) => match by_model(at, p, query, wanted).await {
            Ok(list) if !list.is_empty() => {
                at.report
                    .metadata
                    .insert("method".into(), json!("language_model"));
                return Ok(list);
            }
            Ok(_) => "the language model gave no other way to say it".to_owned(),
            Err(error) => error.to_string(),
        },
    };
    let stage = at.stage.clone();
    let told = format!(
        "{reason}; the words that the first documents share were added (pseudo-relevance feedback)"
    );
    at.degrade(
        "stage",
        &stage,
        &told,
        "configure `models.language`, or ask again",
    );
    at.report
        .metadata
        .insert("method".into(), json!("pseudo_relevance_feedback"));
    let told = at.report.facets.len();
    let found = feature_search::run(at, config.clone(), set).await?;
    let rows = at.rows(found).await?;
    at.report.facets.truncate(told);
    Ok(by_feedback(&rows, query, wanted))
}

async fn by_model(
    at: &mut Execution,
    p: &Parameters,
    query: &str,
    wanted: usize,
) -> Result<Vec<String>, RunError> {
    let mut context = at.context.clone();
    context.set("QUERY", &json!(query));
    context.set("NUM_EXPANSIONS", &json!(wanted));
    let question = Question {
        task: TASK.to_owned(),
        text: render_text(&p.word("expansion_prompt"), &context)?,
        shape: Some(json!({"type": "object", "required": ["queries"],
            "properties": {"queries": {"type": "array", "items": {"type": "string"}}}})),
        model: p
            .text("expansion_model")
            .filter(|name| name != "gpt-4o-mini"),
        temperature: 0.7,
        most_tokens: Some(400),
        ..Question::default()
    };
    let patience =
        Duration::from_millis(p.count("expansion_timeout_ms").unwrap_or(PATIENCE_MS) as u64);
    let answer = tokio::time::timeout(patience, language::object(at, question)).await;
    let answer = match answer {
        Ok(answer) => answer?,
        Err(_) => {
            at.back().await;
            let reason = format!(
                "the language model took longer than {} ms",
                patience.as_millis()
            );
            return Err(RunError::Invalid(reason));
        }
    };
    let list = answer.get("queries").and_then(Value::as_array);
    let mut seen = HashSet::from([query.trim().to_lowercase()]);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    Ok(texts
        .map(str::trim)
        .filter(|text| !text.is_empty() && text.len() < 1_000)
        .filter(|text| seen.insert(text.to_lowercase()))
        .take(wanted)
        .map(str::to_owned)
        .collect())
}

/// Words of the first documents, weighed as by RM3: the better the document and the more often there, the more; words of
/// one document alone are its own affair, words of all of them say nothing.
fn by_feedback(rows: &[Row], query: &str, wanted: usize) -> Vec<String> {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.chars().count() > 3 && !word.chars().all(|c| c.is_numeric()))
            .map(str::to_lowercase)
            .collect()
    };
    let own: HashSet<String> = words(query).into_iter().collect();
    let rows = &rows[..rows.len().min(FEEDBACK_DOCUMENTS)];
    let mut weights: HashMap<String, (f64, usize)> = HashMap::new();
    for (rank, row) in rows.iter().enumerate() {
        let found: Vec<String> = texts(&row.value)
            .iter()
            .flat_map(|text| words(text))
            .collect();
        let mut of_document: HashMap<String, f64> = HashMap::new();
        for word in &found {
            *of_document.entry(word.clone()).or_default() += 1.0 / found.len() as f64;
        }
        for (word, share) in of_document {
            let weight = weights.entry(word).or_default();
            weight.0 += share / (rank as f64 + 1.0);
            weight.1 += 1;
        }
    }
    let several = rows.len() > 2;
    let mut list: Vec<(String, f64)> = weights
        .into_iter()
        .filter(|(word, (_, documents))| {
            !own.contains(word) && (!several || (*documents > 1 && *documents < rows.len()))
        })
        .map(|(word, (weight, _))| (word, weight))
        .collect();
    list.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let words: Vec<String> = list.into_iter().map(|(word, _)| word).collect();
    words
        .chunks(WORDS_AT_ONCE)
        .take(wanted)
        .map(|more| format!("{query} {}", more.join(" ")))
        .collect()
}

/// The user's texts of a document.
fn texts(value: &Value) -> Vec<&str> {
    let object = value.as_object().into_iter().flatten();
    object
        .filter(|(name, _)| !name.starts_with('_') && !name.ends_with("_id"))
        .flat_map(|(_, value)| match value {
            Value::String(text) => vec![text.as_str()],
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            Value::Object(_) => texts(value),
            _ => Vec::new(),
        })
        .collect()
}

/// One list of several, best first.
fn fused(lists: Vec<Vec<Row>>, p: &Parameters) -> Vec<Row> {
    let k = p.number("rrf_k").unwrap_or(60.0);
    let linear = p.word("fusion_strategy") == "linear";
    let count = lists.len() as f64;
    let mut rows: Vec<(f64, Row)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (number, list) in lists.into_iter().enumerate() {
        let best = list.iter().filter_map(Row::score).fold(0.0, f64::max);
        for (rank, row) in list.into_iter().enumerate() {
            let part = match (linear, row.score()) {
                (true, Some(score)) if best > 0.0 => score / best / count,
                (true, _) => 0.0,
                (false, _) => 1.0 / (k + rank as f64 + 1.0),
            };
            let key = if p.flag("deduplicate") {
                row.id().to_owned()
            } else {
                format!("{number} {}", row.id())
            };
            match places.get(&key) {
                Some(place) => rows[*place].0 += part,
                None => {
                    places.insert(key, rows.len());
                    rows.push((part, row));
                }
            }
        }
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let set = |(score, mut row): (f64, Row)| {
        row.set("score", json!(score));
        row
    };
    rows.into_iter().map(set).collect()
}
