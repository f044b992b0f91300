//! `sql_lookup`: rows of a database that a stored connection leads to, for each document or as the documents. Statements
//! only read, and values reach them bound, never as a part of their text.

use std::time::Duration;

use async_trait::async_trait;
use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use super::api_call::{MAX_CALLS, NoAnswer, ON_ERROR, settle};
use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, inside, member, problem, required};
use super::working::{Row, Working};
use super::{Definition, RunError, StageProblem};
use crate::template::{Context, is_template, render_value};

/// Rows of one lookup for a document, and where the rows are the documents.
const MOST_ROWS: usize = 1_000;
const MOST_DOCUMENTS: usize = 10_000;
/// Characters of a statement.
const MOST_STATEMENT: usize = 20_000;
const MOST_VALUES: usize = 100;

/// One statement, asked with one list of values after the other.
#[derive(Debug, Clone)]
pub struct Lookup {
    /// With `$1`, `$2`, … where values go.
    pub statement: String,
    pub values: Vec<Vec<Value>>,
    /// Rows of each answer.
    pub most: usize,
    /// Of each answer.
    pub timeout: Duration,
}

/// Why nothing could be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAsked {
    /// The database is away: another try may go better.
    Away(String),
    /// It would be the same another time.
    Refused(String),
}

/// The databases that stored connections lead to.
#[async_trait]
pub trait Tables: Send + Sync + 'static {
    /// The rows of each list of values as objects, or a sentence saying why there are none; outside of it, why nothing could
    /// be asked at all.
    async fn look_up(
        &self,
        connection_id: &str,
        lookup: Lookup,
    ) -> Result<Vec<Result<Vec<Object>, String>>, NotAsked>;
}

pub(crate) static DEFINITION: Definition = Definition {
    id: "sql_lookup",
    aliases: &[],
    category: StageCategory::Apply,
    icon: "database",
    about: "Adds rows of a PostgreSQL database to each document, or makes documents of them where nothing came before",
    members: &[
        required(
            "connection_id",
            Kind::Verbatim,
            "Id or name of a connection of the organization, written out: whoever makes the retriever must be allowed to use it",
        ),
        required(
            "query",
            Kind::Verbatim,
            "One statement that reads, with `:name` where a value of `parameters` goes; no templates",
        ),
        member(
            "parameters",
            Kind::Templates,
            "{}",
            "Values by name, with the document in them",
        ),
        member(
            "output_field",
            Kind::Text,
            r#""sql_result""#,
            "Where the rows go",
        ),
        member(
            "result_handling",
            Kind::Choice(&["first", "all", "error_if_empty", "error_if_multiple"]),
            r#""first""#,
            "first: the first row; all: a list; error_if_empty and error_if_multiple: the first row, and an error else. Where rows become \
             documents, all of them do, and the errors end the stage",
        ),
        member(
            "on_no_results",
            Kind::Choice(&["skip", "null", "error"]),
            r#""skip""#,
            "skip: the document stays as it is; null: the field is null; error: as `on_error` says",
        ),
        member(
            "timeout",
            Kind::Integer(1, 300),
            "30",
            "Seconds that one lookup may take",
        ),
        ON_ERROR,
    ],
};

/// What the table cannot say.
pub(super) fn check(parameters: &Object, loc: &[String], out: &mut Vec<StageProblem>) {
    let text = |name: &str| parameters.get(name).and_then(Value::as_str);
    for name in ["connection_id", "query"] {
        if text(name).is_some_and(is_template) {
            let msg = match name {
                "query" => {
                    "a statement holds no templates: say `:name` and give its value in `parameters`"
                }
                _ => "a connection is written out, not given by a template",
            };
            out.push(problem(inside(loc, name), "value_error", msg.to_owned()));
            return;
        }
    }
    let known = parameters.get("parameters").and_then(Value::as_object);
    let none = Object::new();
    if let Some(query) = text("query")
        && let Err(reason) = bound(query, known.unwrap_or(&none))
    {
        out.push(problem(inside(loc, "query"), "value_error", reason));
    }
}

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let Some(tables) = at.run.outside.tables.clone() else {
        return Err(RunError::Invalid(format!(
            "stage `{}`: databases are not asked here",
            at.stage
        )));
    };
    let written = p.map("parameters").unwrap_or_default();
    let (statement, names) = bound(&p.word("query"), &written).map_err(RunError::Invalid)?;
    let connection = p.word("connection_id");
    let mut lookup = Lookup {
        statement,
        values: Vec::new(),
        most: MOST_ROWS,
        timeout: Duration::from_secs(p.count("timeout").unwrap_or(30) as u64),
    };
    let mut rows = match set {
        // Nothing came before, neither filter nor order: the rows are the documents.
        Working::Unread {
            filter: None,
            sort: None,
        } => {
            lookup.values = vec![values(&written, &names, &at.context)?];
            lookup.most = MOST_DOCUMENTS;
            let found = asked(at, &*tables, &connection, lookup).await?;
            let found = found.into_iter().next().unwrap_or(Ok(Vec::new()));
            let found = found.and_then(|rows| counted(p, rows));
            let found = found.map_err(|reason| failed(at, &reason))?;
            let rows = found.into_iter().enumerate().map(document);
            return Ok(Working::Rows(rows.collect()));
        }
        set => at.rows(set).await?,
    };
    let rest = rows.split_off(rows.len().min(MAX_CALLS));
    if !rest.is_empty() {
        at.warn(format!(
            "stage `{}`: rows were looked up for the first {MAX_CALLS} documents only",
            at.stage
        ));
        at.capped("documents", rows.len() + rest.len(), MAX_CALLS);
    }
    for (index, row) in rows.iter().enumerate() {
        let context = at.context_of(row, index);
        lookup.values.push(values(&written, &names, &context)?);
    }
    let found = asked(at, &*tables, &connection, lookup).await?;
    // A database that is away answers for none of them.
    let answers = found.into_iter().map(|found| {
        let kept = found.and_then(|rows| kept(p, rows));
        kept.map_err(NoAnswer::lasting)
    });
    let answers: Vec<Result<Option<Value>, NoAnswer>> = answers.collect();
    let mut out = settle(at, p, rows, answers)?;
    out.extend(rest);
    Ok(Working::Rows(out))
}

fn failed(at: &Execution, reason: &str) -> RunError {
    RunError::Invalid(format!("stage `{}`: {reason}", at.stage))
}

async fn asked(
    at: &Execution,
    tables: &dyn Tables,
    connection: &str,
    lookup: Lookup,
) -> Result<Vec<Result<Vec<Object>, String>>, RunError> {
    if lookup.values.is_empty() {
        return Ok(Vec::new());
    }
    let found = at.away(tables.look_up(connection, lookup)).await;
    found.map_err(|not_asked| match not_asked {
        NotAsked::Away(reason) => RunError::Away(format!("stage `{}`: {reason}", at.stage)),
        NotAsked::Refused(reason) => failed(at, &reason),
    })
}

/// The values of one lookup, in the order of the statement.
fn values(written: &Object, names: &[String], context: &Context) -> Result<Vec<Value>, RunError> {
    let value = |name: &String| {
        let value = written.get(name).unwrap_or(&Value::Null);
        render_value(value, context).map_err(RunError::from)
    };
    names.iter().map(value).collect()
}

/// The rows, unless the stage calls their number an error.
fn counted(p: &Parameters, rows: Vec<Object>) -> Result<Vec<Object>, String> {
    let (handling, on_none) = (p.word("result_handling"), p.word("on_no_results"));
    match (handling.as_str(), rows.len()) {
        ("error_if_empty", 0) => Err("there is no row".into()),
        (_, 0) if on_none == "error" => Err("there is no row".into()),
        ("error_if_multiple", count @ 2..) => Err(format!("there are {count} rows, not one")),
        _ => Ok(rows),
    }
}

/// What a document is given of its rows; nothing where it stays as it is.
fn kept(p: &Parameters, rows: Vec<Object>) -> Result<Option<Value>, String> {
    let mut rows = counted(p, rows)?;
    if rows.is_empty() {
        let is_null = p.word("on_no_results") == "null";
        return Ok(is_null.then_some(Value::Null));
    }
    Ok(Some(match p.word("result_handling").as_str() {
        "all" => json!(rows),
        _ => Value::Object(rows.swap_remove(0)),
    }))
}

/// A row as a document: with its own id where it has one.
fn document((number, mut row): (usize, Object)) -> Row {
    let own = ["document_id", "id"].iter().find_map(|name| row.get(*name));
    let id = match own {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => format!("sql:{number}"),
        _ => format!("sql:{number}"),
    };
    row.insert("document_id".into(), json!(id));
    row.insert("collection_id".into(), json!("sql"));
    Row { value: row.into() }
}

/// The statement with `$1`, `$2`, … in place of its `:name`s, and the names in their order.
///
/// # Errors
/// Why this is no single statement that reads, or which value is missing.
fn bound(query: &str, known: &Object) -> Result<(String, Vec<String>), String> {
    if query.chars().count() > MOST_STATEMENT {
        return Err(format!(
            "a statement has {MOST_STATEMENT} characters at most"
        ));
    }
    let query = query.trim().trim_end_matches(';');
    let mut reader = Reader {
        text: query,
        out: String::with_capacity(query.len()),
        names: Vec::new(),
    };
    reader.read(known)?;
    let first: String = query
        .trim_start_matches(|c: char| c.is_whitespace() || c == '(')
        .chars()
        .take_while(|c| c.is_ascii_alphabetic())
        .collect();
    if !["select", "with", "values", "table"].contains(&first.to_ascii_lowercase().as_str()) {
        return Err("a statement reads: it begins with select, with, values or table".into());
    }
    if reader.names.len() > MOST_VALUES {
        return Err(format!("a statement takes {MOST_VALUES} values at most"));
    }
    Ok((reader.out, reader.names))
}

/// Reads a statement as far as its quotes, comments and names of values go.
struct Reader<'a> {
    text: &'a str,
    out: String,
    names: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, known: &Object) -> Result<(), String> {
        let mut before = ' ';
        while let Some(c) = self.text.chars().next() {
            let taken = match c {
                '\'' => quoted(self.text, '\'', matches!(before, 'e' | 'E'))?,
                '"' => quoted(self.text, '"', false)?,
                '-' if self.text.starts_with("--") => {
                    self.text.find('\n').unwrap_or(self.text.len())
                }
                '/' if self.text.starts_with("/*") => comment(self.text)?,
                '$' if !is_word(before) => dollar(self.text)?,
                ';' => return Err("there is one statement only, without `;`".into()),
                ':' if self.text.starts_with("::") => 2,
                ':' => {
                    let rest = &self.text[1..];
                    let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                    if end > 0 {
                        self.name(&rest[..end], known)?;
                        self.text = &rest[end..];
                        before = ' ';
                        continue;
                    }
                    1
                }
                c => c.len_utf8(),
            };
            let (piece, rest) = self.text.split_at(taken);
            before = piece.chars().next_back().unwrap_or(' ');
            self.out.push_str(piece);
            self.text = rest;
        }
        Ok(())
    }

    fn name(&mut self, name: &str, known: &Object) -> Result<(), String> {
        if !known.contains_key(name) {
            return Err(format!("`parameters` has no value for `:{name}`"));
        }
        let place = self.names.iter().position(|one| one == name);
        let place = place.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        self.out.push_str(&format!("${}", place + 1));
        Ok(())
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Bytes of a text in quotes; a quote inside is written twice, or behind a backslash where those count.
fn quoted(text: &str, quote: char, backslashes: bool) -> Result<usize, String> {
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = letters.next() {
        if backslashes && c == '\\' {
            letters.next();
        } else if c == quote && letters.next_if(|(_, next)| *next == quote).is_none() {
            return Ok(at + 1);
        }
    }
    Err(format!("a {quote} is not closed"))
}

fn comment(text: &str) -> Result<usize, String> {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return Ok(at);
                }
            }
            _ => at += 1,
        }
    }
    Err("a comment is not closed".into())
}

/// Bytes of a text between `$tag$`s. `$1` is refused: values have names.
fn dollar(text: &str) -> Result<usize, String> {
    let end = text[1..].find('$').map(|end| end + 2);
    let tag = end.map(|end| &text[..end]);
    let tag = tag.filter(|tag| tag[1..tag.len() - 1].chars().all(is_word));
    match tag.filter(|tag| !tag[1..].starts_with(|c: char| c.is_ascii_digit())) {
        None if text[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            Err("values have names: say `:name`, not `$1`".into())
        }
        None => Ok(1),
        Some(tag) => {
            let rest = &text[tag.len()..];
            let close = rest.find(tag).ok_or(format!("{tag} is not closed"))?;
            Ok(tag.len() + close + tag.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_rows_may_be_an_error() {
        let of = |more: Value, rows: usize| {
            let given = more.as_object().cloned().unwrap_or_default();
            let p = Parameters::new(DEFINITION.members, given);
            counted(&p, vec![Object::new(); rows]).map(|rows| rows.len())
        };
        assert_eq!((of(json!({}), 0), of(json!({}), 2)), (Ok(0), Ok(2)));
        let one = || json!({"result_handling": "error_if_multiple"});
        assert_eq!((of(one(), 0), of(one(), 1)), (Ok(0), Ok(1)));
        assert_eq!(of(one(), 2), Err("there are 2 rows, not one".to_owned()));
        for some in [
            json!({"result_handling": "error_if_empty"}),
            json!({"on_no_results": "error"}),
        ] {
            assert_eq!(of(some.clone(), 0), Err("there is no row".to_owned()));
            assert_eq!(of(some, 2), Ok(2));
        }
    }

    #[test]
    fn values_are_bound_and_nothing_else_is_read() {
        let known = json!({"id": 1, "name": "x"})
            .as_object()
            .cloned()
            .unwrap_or_default();
        let of = |text: &str| bound(text, &known);
        let (text, names) = of("SELECT a::text, ':id', \":id\" FROM t -- :id\nWHERE x = :id AND y = :name OR z = :id; ").unwrap_or_default();
        assert_eq!(
            text,
            "SELECT a::text, ':id', \":id\" FROM t -- :id\nWHERE x = $1 AND y = $2 OR z = $1"
        );
        assert_eq!(names, ["id", "name"]);
        for good in [
            "with a as (select 1) select * from a",
            "(select $$ ; :no $$) union select $t$ ' $t$",
            "select 'it''s ; fine', E'a\\'; b', /* ; /* :x */ ; */ 1",
            "values (:id)",
        ] {
            assert!(of(good).is_ok(), "{good}: {:?}", of(good));
        }
        for (bad, word) in [
            ("delete from t", "reads"),
            ("select 1; delete from t", "one statement"),
            ("select ':id', :other", "no value for `:other`"),
            ("select 'open", "not closed"),
            ("select $1", "have names"),
            ("select /* 1", "not closed"),
            ("begin", "reads"),
        ] {
            let told = of(bad).err().unwrap_or_default();
            assert!(told.contains(word), "{bad}: {told}");
        }
    }
}
