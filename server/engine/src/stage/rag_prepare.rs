//! `rag_prepare`: the documents made the context of a language model, within its number of tokens and with citations.

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;
use tiktoken_rs::CoreBPE;

use super::execution::{Execution, offload};
use super::parameters::Parameters;
use super::schema::{Kind, Member, member};
use super::tokens::{self, Fit, TOKENIZERS};
use super::working::{Row, Working};
use super::{Definition, RunError};
use crate::template::render_text;

const CITATION: &[Member] = &[
    member(
        "style",
        Kind::Choice(&["numbered", "bracketed", "footnote", "none"]),
        r#""numbered""#,
        "numbered: `1. ` before the text; bracketed: `[1] ` before it; footnote: `[^1]` behind it",
    ),
    member(
        "include_title",
        Kind::Boolean,
        "true",
        "Whether citations tell the title",
    ),
    member(
        "include_url",
        Kind::Boolean,
        "false",
        "Whether citations tell the address",
    ),
];

pub(crate) static DEFINITION: Definition = Definition {
    id: "rag_prepare",
    aliases: &[],
    category: StageCategory::Apply,
    icon: "scroll-text",
    about: "Makes the documents the context of a language model, within a number of tokens and with citations",
    members: &[
        member(
            "max_tokens",
            Kind::Integer(100, 128_000),
            "8000",
            "Most tokens of the whole",
        ),
        member(
            "tokenizer",
            Kind::Choice(TOKENIZERS),
            r#""cl100k_base""#,
            "What tokens are counted in",
        ),
        member(
            "truncation_strategy",
            Kind::Choice(&["priority_truncate", "proportional", "drop_last"]),
            r#""priority_truncate""#,
            "priority_truncate: the first whole, the one that no longer fits is cut; proportional: each is cut by the \
             same share; drop_last: only whole documents",
        ),
        member(
            "output_mode",
            Kind::Choice(&["single_context", "formatted_list"]),
            r#""single_context""#,
            "One document with the whole context, or each document with its part",
        ),
        member(
            "document_template",
            Kind::Template,
            "",
            "The text of one document, such as {{ DOC.title }}: {{ DOC.content }}; `content_field` where not given",
        ),
        member(
            "content_field",
            Kind::Text,
            r#""content""#,
            "Dot path of the text",
        ),
        member("separator", Kind::Text, r#""\n""#, "Between two documents"),
        member(
            "citation",
            Kind::Object(CITATION),
            "{}",
            "How documents are cited",
        ),
        member(
            "context_field",
            Kind::Text,
            r#""rag_context""#,
            "Where the context goes",
        ),
        member(
            "citations_field",
            Kind::Text,
            r#""citations""#,
            "Where the citations go",
        ),
        member(
            "formatted_content_field",
            Kind::Text,
            r#""formatted_content""#,
            "Where a document's part goes in a list",
        ),
    ],
};

/// One document's part: its row, its text without the mark that cites it, and whether some of that was cut.
struct Part {
    row: Row,
    text: String,
    number: usize,
    cut: bool,
}

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let rows = at.rows(set).await?;
    let name = p.word("tokenizer");
    let citation = p.object("citation");
    let style = citation.word("style");
    let parts = parts(at, p, rows)?;
    let (separator, budget) = (p.word("separator"), p.count("max_tokens").unwrap_or(8000));
    let (strategy, between, given) = (
        p.word("truncation_strategy"),
        separator.clone(),
        parts.len(),
    );
    let bpe =
        move || tokens::tokenizer(&name).ok_or_else(|| format!("there is no tokenizer `{name}`"));
    let fitted = offload(move || {
        let bpe = bpe()?;
        let mut parts = fit(bpe, parts, &style, &between, budget, &strategy);
        let count = within(bpe, &mut parts, &style, &between, budget);
        // A mark that is added last is never cut.
        for part in &mut parts {
            part.text = cited(&style, part.number, &part.text);
        }
        Ok::<_, String>((parts, count))
    });
    let (parts, count) = fitted.await?.map_err(RunError::Invalid)?;
    if parts.is_empty() && given > 0 {
        at.warn(format!(
            "stage `{}`: no document fits into {budget} tokens; raise max_tokens, or cut documents (truncation_strategy)",
            at.stage
        ));
    }
    let metadata = &mut at.report.metadata;
    metadata.insert("tokens".into(), json!(count));
    metadata.insert("documents_used".into(), json!(parts.len()));
    metadata.insert("documents_dropped".into(), json!(given - parts.len()));
    let rows = if p.word("output_mode") == "formatted_list" {
        parts
            .into_iter()
            .map(|part| {
                let told = citation_of(&part, &citation);
                let mut row = part.row;
                row.set(&p.word("formatted_content_field"), json!(part.text));
                row.set(&p.word("citations_field"), told);
                row
            })
            .collect()
    } else {
        vec![whole(p, &parts, &separator, count, &citation)]
    };
    Ok(Working::Rows(rows))
}

/// The documents that have a text, with it.
fn parts(at: &mut Execution, p: &Parameters, rows: Vec<Row>) -> Result<Vec<Part>, RunError> {
    let mut parts = Vec::with_capacity(rows.len());
    let mut empty = 0;
    for (index, row) in rows.into_iter().enumerate() {
        let text = text_of(at, p, &row, index)?;
        if text.trim().is_empty() {
            empty += 1;
            continue;
        }
        let number = parts.len() + 1;
        parts.push(Part {
            text,
            row,
            number,
            cut: false,
        });
    }
    if empty > 0 {
        at.warn(format!(
            "stage `{}`: {empty} documents have no text and were left out of the context",
            at.stage
        ));
    }
    Ok(parts)
}

/// The one row of `single_context`.
fn whole(
    p: &Parameters,
    parts: &[Part],
    separator: &str,
    count: usize,
    citation: &Parameters,
) -> Row {
    let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    let citations: Vec<Value> = parts
        .iter()
        .map(|part| citation_of(part, citation))
        .collect();
    let mut row = Row {
        value: Object::new().into(),
    };
    row.set(&p.word("context_field"), json!(texts.join(separator)));
    row.set(&p.word("citations_field"), json!(citations));
    row.set("token_count", json!(count));
    row.set("document_count", json!(parts.len()));
    row
}

fn text_of(at: &Execution, p: &Parameters, row: &Row, index: usize) -> Result<String, RunError> {
    if let Some(template) = p.text("document_template") {
        return Ok(render_text(&template, &at.context_of(row, index))?);
    }
    Ok(match row.at(&p.word("content_field")) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    })
}

fn cited(style: &str, number: usize, text: &str) -> String {
    match style {
        "numbered" => format!("{number}. {text}"),
        "bracketed" => format!("[{number}] {text}"),
        "footnote" => format!("{text} [^{number}]"),
        _ => text.to_owned(),
    }
}

fn citation_of(part: &Part, citation: &Parameters) -> Value {
    let row = &part.row;
    let mut told = json!({
        "number": part.number, "document_id": row.id(),
        "collection_id": row.at("collection_id"), "truncated": part.cut,
    });
    let mut tell = |name: &str, paths: &[&str]| {
        let found = paths.iter().find_map(|path| row.at(path));
        told[name] = found.cloned().unwrap_or(Value::Null);
    };
    if citation.flag("include_title") {
        tell("title", &["title", "metadata.title", "name"]);
    }
    if citation.flag("include_url") {
        tell("url", &["url", "metadata.url", "source_url"]);
    }
    told
}

/// The tokens of the joined parts with their marks. Texts may split otherwise when they are joined: then the last gives way.
fn within(
    bpe: &CoreBPE,
    parts: &mut Vec<Part>,
    style: &str,
    separator: &str,
    budget: usize,
) -> usize {
    loop {
        let texts: Vec<String> = parts
            .iter()
            .map(|part| cited(style, part.number, &part.text))
            .collect();
        let count = bpe.count_ordinary(&texts.join(separator));
        let Some(last) = parts.last_mut().filter(|_| count > budget) else {
            return count;
        };
        let size = bpe.count_ordinary(&last.text);
        last.text = tokens::cut(bpe, &last.text, size.saturating_sub(count - budget));
        last.cut = true;
        if last.text.trim().is_empty() {
            parts.pop();
        }
    }
}

/// Brings the parts within the budget, which their marks take some of; a part without any text left is none.
fn fit(
    bpe: &CoreBPE,
    parts: Vec<Part>,
    style: &str,
    separator: &str,
    budget: usize,
    strategy: &str,
) -> Vec<Part> {
    let how = match strategy {
        "proportional" => Fit::Share,
        "drop_last" => Fit::Whole,
        _ => Fit::CutLast,
    };
    let texts = parts.iter().map(|part| part.text.clone()).collect();
    let mark = |part: &Part| bpe.count_ordinary(&cited(style, part.number, ""));
    let marks: Vec<usize> = parts.iter().map(mark).collect();
    let fitted = tokens::fit(bpe, texts, &marks, separator, budget, how);
    let kept = parts.into_iter().zip(fitted).filter_map(|(part, fitted)| {
        let (text, cut) = fitted.filter(|(text, _)| !text.trim().is_empty())?;
        Some(Part { text, cut, ..part })
    });
    kept.collect()
}
