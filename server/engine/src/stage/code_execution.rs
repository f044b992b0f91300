//! `code_execution`: what code of the retriever makes of each document, in a sandbox. Off unless the settings turn it on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use super::api_call::{MAX_CALLS, NoAnswer, ON_ERROR, settle};
use super::execution::{Execution, offload};
use super::parameters::Parameters;
use super::sandbox::{Bounds, CodeConfig, javascript};
use super::schema::{Kind, inside, member, problem};
use super::working::Working;
use super::{Definition, RunError, StageProblem};
use crate::embed::EmbedError;
use crate::template::is_template;

/// The language that runs here.
const LANGUAGE: &str = "javascript";
/// Time of one stage, whatever its documents.
const MOST_TIME: Duration = Duration::from_secs(60);
/// Characters of the code, and of what an error tells.
const MOST_CODE: usize = 100_000;
const TOLD: usize = 300;
/// Bytes that code may write beside its result.
const SPARE: usize = 64 << 10;

pub(crate) static DEFINITION: Definition = Definition {
    id: "code_execution",
    aliases: &[],
    category: StageCategory::Enrich,
    icon: "code",
    about: "Runs JavaScript on each document, as DOC beside INPUT and ENV, in a sandbox without files or network",
    members: &[
        member(
            "code",
            Kind::Verbatim,
            r#""const result = null;""#,
            "The code; what it leaves in `result_variable` is kept. Templates in it stay as they are",
        ),
        member(
            "language",
            Kind::Choice(&["python", "typescript", "javascript"]),
            r#""python""#,
            "Only javascript runs here: say so",
        ),
        member(
            "output_field",
            Kind::Text,
            r#""computed""#,
            "Where the result goes",
        ),
        member(
            "result_variable",
            Kind::Text,
            r#""result""#,
            "The variable that holds the result",
        ),
        member(
            "timeout_ms",
            Kind::Integer(100, 30_000),
            "5000",
            "Milliseconds of one document",
        ),
        member(
            "max_output_size",
            Kind::Integer(1_024, 1_000_000),
            "100000",
            "Largest result, in bytes of JSON",
        ),
        member("env", Kind::Map, "{}", "Texts that code reads as ENV"),
        ON_ERROR,
    ],
};

/// What the table cannot say.
pub(super) fn check(parameters: &Object, loc: &[String], out: &mut Vec<StageProblem>) {
    let text = |name: &str| parameters.get(name).and_then(Value::as_str);
    let language = text("language").unwrap_or("python");
    if ["python", "typescript"].contains(&language) {
        out.push(problem(
            inside(loc, "language"),
            "not_implemented",
            unspoken(language),
        ));
    }
    if text("code").is_some_and(|code| code.chars().count() > MOST_CODE) {
        let msg = format!("code has {MOST_CODE} characters at most");
        out.push(problem(inside(loc, "code"), "string_too_long", msg));
    }
    if let Some(name) = text("result_variable").filter(|name| !is_template(name))
        && !is_name(name)
    {
        let msg = format!("`{name}` is no name of a variable");
        out.push(problem(inside(loc, "result_variable"), "value_error", msg));
    }
}

fn unspoken(language: &str) -> String {
    format!(
        "there is no sandbox for {language} in this server: write the code in JavaScript and say \"language\": \"{LANGUAGE}\""
    )
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    let first = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && text.len() <= 64 && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Ends the code when nobody waits for it any more.
struct Leash(Arc<AtomicBool>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Everything that a run needs beside the document.
struct Job {
    config: CodeConfig,
    code: String,
    variable: String,
    given: String,
    time: Duration,
    most: usize,
    now: i64,
    stop: Arc<AtomicBool>,
}

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let mut rows = at.rows(set).await?;
    let Some(config) = at.run.outside.code.clone() else {
        return Err(RunError::Embed(EmbedError::Unavailable(format!(
            "stage `{}`: code is not run here; set `code.enabled` of the server",
            at.stage
        ))));
    };
    let (language, variable) = (p.word("language"), p.word("result_variable"));
    if language != LANGUAGE || !is_name(&variable) {
        return Err(RunError::Invalid(format!(
            "stage `{}`: {}",
            at.stage,
            unspoken(&language)
        )));
    }
    let rest = rows.split_off(rows.len().min(MAX_CALLS));
    if !rest.is_empty() {
        at.warn(format!(
            "stage `{}`: the code ran on the first {MAX_CALLS} documents only",
            at.stage
        ));
        at.capped("documents", rows.len() + rest.len(), MAX_CALLS);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let leash = Leash(stop.clone());
    let given = [
        ("INPUT", Value::Object(at.run.inputs.clone())),
        ("ENV", Value::Object(p.map("env").unwrap_or_default())),
    ];
    let job = Job {
        config,
        code: p.word("code"),
        variable,
        given: given.map(|(name, value)| constant(name, &value)).concat(),
        time: Duration::from_millis(p.count("timeout_ms").unwrap_or(5_000) as u64),
        most: p.count("max_output_size").unwrap_or(100_000),
        now: at.run.now.timestamp_millis(),
        stop,
    };
    let documents: Vec<Value> = rows.iter().map(|row| row.value.clone().into()).collect();
    let answers = offload(move || job.all(&documents)).await?;
    drop(leash);
    // The same code does the same another time.
    let answers = answers
        .into_iter()
        .map(|answer| answer.map_err(NoAnswer::lasting));
    let answers: Vec<Result<Value, NoAnswer>> = answers.collect();
    let mut out = settle(at, p, rows, answers)?;
    out.extend(rest);
    Ok(Working::Rows(out))
}

/// A value as a constant of the script: read from a text, so that no member of it means anything to the interpreter.
fn constant(name: &str, value: &Value) -> String {
    format!("const {name} = JSON.parse({});\n", json!(value.to_string()))
}

impl Job {
    fn all(&self, documents: &[Value]) -> Vec<Result<Value, String>> {
        let started = Instant::now();
        let one = |document: &Value| {
            let left = MOST_TIME.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(format!(
                    "the stage's time of {} seconds ran out",
                    MOST_TIME.as_secs()
                ));
            }
            self.one(document, self.time.min(left))
        };
        documents.iter().map(one).collect()
    }

    fn one(&self, document: &Value, time: Duration) -> Result<Value, String> {
        let mark = uuid::Uuid::new_v4().simple().to_string();
        let Self {
            code,
            variable,
            given,
            ..
        } = self;
        let document = constant("DOC", document);
        let script = format!(
            "{document}{given}{code}\n;console.log(\"\\n{mark}\" + JSON.stringify(typeof {variable} === \"undefined\" ? null : {variable}));"
        );
        let bounds = Bounds {
            memory_mb: self.config.memory_mb,
            time,
            output: self.most + SPARE,
            now: self.now,
            stop: &self.stop,
        };
        let ran = javascript(&script, &bounds)?;
        let Some((_, result)) = ran.output.rsplit_once(&mark) else {
            let said: String = ran.output.trim().chars().take(TOLD).collect();
            return Err(if said.is_empty() {
                format!("the code ended with {} and no result", ran.code)
            } else {
                said
            });
        };
        let result = result.trim();
        if result.len() > self.most {
            return Err(format!("the result is larger than {} bytes", self.most));
        }
        // What JSON has no word for, such as a function, is nothing.
        Ok(serde_json::from_str(result).unwrap_or(Value::Null))
    }
}
