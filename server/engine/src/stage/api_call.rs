//! `api_call`: what another service says of each document, asked through the guarded client and only of domains that the
//! retriever lists.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use loupe_wire::{Object, StageCategory, Value};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use url::Url;

use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{Kind, Member, member, required};
use super::working::{Row, Working};
use super::{Definition, RunError};
use crate::filter::value_at;
use crate::template::{self, Context, render_text, render_value};
use crate::web::{Answer, Ask, WebError};

/// Calls under way at once where `batch_size` does not say.
const AT_ONCE: usize = 5;
/// Documents that are asked about.
pub(super) const MAX_CALLS: usize = 100;
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];

const AUTH: &[Member] = &[
    member(
        "type",
        Kind::Choice(&["none", "api_key", "bearer", "basic", "custom_header"]),
        r#""none""#,
        "How the secret is sent",
    ),
    member(
        "secret_ref",
        Kind::Text,
        "",
        "The name of a secret of the organization; basic: `user:password`",
    ),
    member(
        "location",
        Kind::Choice(&["header", "query"]),
        r#""header""#,
        "Where an api_key goes",
    ),
    member(
        "key",
        Kind::Text,
        r#""X-API-Key""#,
        "The name of the header or parameter",
    ),
];

const RATE: &[Member] = &[
    member(
        "requests_per_minute",
        Kind::Integer(1, 100_000),
        "",
        "Most calls of all executions in a minute",
    ),
    member(
        "requests_per_hour",
        Kind::Integer(1, 1_000_000),
        "",
        "Most calls of all executions in an hour",
    ),
];

/// What happens to a document whose call failed.
pub(super) const ON_ERROR: Member = member(
    "on_error",
    Kind::Choice(&["skip", "remove", "raise"]),
    r#""skip""#,
    "skip: the document stays as it is; remove: it is left out; raise: the execution fails",
);

pub(crate) static DEFINITION: Definition = Definition {
    id: "api_call",
    aliases: &[],
    category: StageCategory::Enrich,
    icon: "plug",
    about: "Asks another service about each document and keeps its answer",
    members: &[
        member(
            "url",
            Kind::Template,
            r#""{{ DOC.url }}""#,
            "The address, with the document in it; {{ SECRET.name }} is a secret of the organization",
        ),
        required(
            "allowed_domains",
            Kind::Texts,
            "The domains that may be asked; `*.example.com` is every name below",
        ),
        member(
            "method",
            Kind::Choice(METHODS),
            r#""GET""#,
            "How it is asked",
        ),
        member(
            "auth",
            Kind::Object(AUTH),
            "{}",
            "The secret that is sent along",
        ),
        member(
            "headers",
            Kind::Templates,
            "{}",
            "More headers; {{ SECRET.name }} is a secret of the organization",
        ),
        member(
            "body",
            Kind::Templates,
            "",
            "What is sent, as JSON; {{ SECRET.name }} is a secret of the organization",
        ),
        member(
            "output_field",
            Kind::Text,
            r#""api_response""#,
            "Where the answer goes",
        ),
        member(
            "timeout",
            Kind::Integer(1, 60),
            "10",
            "Seconds that one call may take",
        ),
        member(
            "max_response_size",
            Kind::Integer(1024, 10 << 20),
            "10485760",
            "Largest answer, in bytes",
        ),
        member(
            "rate_limit",
            Kind::Object(RATE),
            "{}",
            "How often the service is called; a document beyond that is treated as `on_error` says",
        ),
        member(
            "response_path",
            Kind::Text,
            "",
            "Dot path of what is kept of the answer",
        ),
        ON_ERROR,
    ],
};

/// The secrets that the templates of a stage read. Whoever makes it must be allowed to send them.
pub(super) fn secrets_read(parameters: &Object) -> Vec<String> {
    let written = ["url", "headers", "body"];
    let written = written.iter().filter_map(|name| parameters.get(*name));
    written.flat_map(template::secrets_read).collect()
}

/// The secrets of a stage's templates with their values; why it asks nobody where one is gone.
fn secrets(at: &Execution, p: &Parameters) -> Result<HashMap<String, String>, String> {
    let written = ["url", "headers", "body"].into_iter();
    let written: Object = written
        .filter_map(|name| Some((name.to_owned(), p.get(name)?)))
        .collect();
    let known = secrets_read(&written).into_iter().map(|name| {
        let value = at.run.secrets.get(&name).cloned();
        value
            .map(|value| (name.clone(), value))
            .ok_or_else(|| format!("there is no secret `{name}`"))
    });
    known.collect()
}

/// A reason that repeats no secret, nor as a part of a host, which is told in small letters.
fn hidden(reason: String, secrets: &HashMap<String, String>) -> String {
    let forms = secrets.values();
    let forms = forms.flat_map(|value| [value.clone(), value.to_lowercase()]);
    let mut forms: Vec<String> = forms.filter(|form| !form.is_empty()).collect();
    // The longest first: one may be a part of another.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    let hide = |reason: String, form: &String| reason.replace(form.as_str(), "…");
    forms.iter().fold(reason, hide)
}

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let mut rows = at.rows(set).await?;
    let rest = rows.split_off(rows.len().min(MAX_CALLS));
    if !rest.is_empty() {
        at.warn(format!(
            "stage `{}`: only the first {MAX_CALLS} documents were asked about",
            at.stage
        ));
        at.capped("documents", rows.len() + rest.len(), MAX_CALLS);
    }
    let Some(web) = at.run.web.clone() else {
        return Err(RunError::Invalid(
            "calls of other services are not enabled here".into(),
        ));
    };
    let secrets = secrets(at, p).map(Arc::new);
    let asks: Vec<Result<Ask, NoAnswer>> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let known = secrets.clone().map_err(NoAnswer::lasting)?;
            let mut context = at.context_of(row, index);
            context.set_secrets(Arc::new(move |name: &str| known.get(name).cloned()));
            let ask = ask(at, p, &context).map_err(NoAnswer::lasting)?;
            paced(at, p)?;
            Ok(ask)
        })
        .collect();
    let secrets = secrets.unwrap_or_default();
    let path = p.text("response_path");
    let work = asks.into_iter().map(|ask| {
        let (web, path) = (web.clone(), path.clone());
        async move {
            let answer = web.ask(ask?).await?;
            read(&answer, path.as_deref())
        }
    });
    let at_once = at.batch.unwrap_or(AT_ONCE);
    let all = futures::stream::iter(work)
        .buffered(at_once)
        .collect::<Vec<_>>();
    let answers = at.away(all).await.into_iter();
    let hide = |no: NoAnswer| NoAnswer {
        reason: hidden(no.reason, &secrets),
        ..no
    };
    let answers: Vec<Result<Value, NoAnswer>> = answers
        .map(|answer: Result<Value, NoAnswer>| answer.map_err(hide))
        .collect();
    let mut out = settle(at, p, rows, answers)?;
    out.extend(rest);
    Ok(Working::Rows(out))
}

/// Why a document got no answer.
pub(super) struct NoAnswer {
    reason: String,
    /// Asked again, it may get one.
    may_pass: bool,
}

impl NoAnswer {
    /// One that is the same however often it is asked for.
    pub fn lasting(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            may_pass: false,
        }
    }

    /// An answer whose status says that there is none: the service is busy or in trouble, or this is its last word.
    pub fn of_status(answer: &Answer) -> Self {
        let (host, status) = (answer.url.host_str(), answer.status);
        Self {
            reason: format!("{} answered {status}", host.unwrap_or("it")),
            may_pass: status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429),
        }
    }
}

/// Where nobody knows better, it may pass.
impl From<String> for NoAnswer {
    fn from(reason: String) -> Self {
        Self {
            reason,
            may_pass: true,
        }
    }
}

impl From<WebError> for NoAnswer {
    fn from(error: WebError) -> Self {
        Self {
            may_pass: error.is_transient(),
            reason: error.to_string(),
        }
    }
}

/// What is kept of an answer.
fn read(answer: &Answer, path: Option<&str>) -> Result<Value, NoAnswer> {
    if !answer.status.is_success() {
        return Err(NoAnswer::of_status(answer));
    }
    let text = String::from_utf8_lossy(&answer.body);
    let value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
    match path {
        None => Ok(value),
        Some(path) => value_at(&value, path)
            .cloned()
            .ok_or_else(|| NoAnswer::lasting(format!("the answer has nothing at `{path}`"))),
    }
}

/// Gives each document its answer, leaves it where there is none to give, or does with it what `on_error` says.
pub(super) fn settle<A: Into<Option<Value>>>(
    at: &mut Execution,
    p: &Parameters,
    rows: Vec<Row>,
    answers: Vec<Result<A, NoAnswer>>,
) -> Result<Vec<Row>, RunError> {
    let (target, on_error) = (p.word("output_field"), p.word("on_error"));
    let (mut out, mut failed, mut first) = (Vec::with_capacity(rows.len()), 0, None);
    let mut may_pass = false;
    for (mut row, answer) in rows.into_iter().zip(answers) {
        match answer {
            Ok(value) => {
                if let Some(value) = value.into() {
                    row.set(&target, value);
                }
            }
            Err(NoAnswer { reason, may_pass }) if on_error == "raise" => {
                let told = format!("stage `{}`: document `{}`: {reason}", at.stage, row.id());
                return Err(match may_pass {
                    true => RunError::Away(told),
                    false => RunError::Invalid(told),
                });
            }
            Err(no) => {
                failed += 1;
                may_pass |= no.may_pass;
                first.get_or_insert(no.reason);
                if on_error == "remove" {
                    continue;
                }
            }
        }
        out.push(row);
    }
    if let Some(reason) = first {
        let stage = at.stage.clone();
        let told = format!("{failed} documents got no answer, the first because {reason}");
        match may_pass {
            true => at.degrade("stage", &stage, &told, "ask again, or correct the stage"),
            false => at.degrade_for_good("stage", &stage, &told, "correct the stage"),
        }
    }
    Ok(out)
}

/// Counts a call within the limits of the stage; why it is not made where it would be one too many.
fn paced(at: &Execution, p: &Parameters) -> Result<(), String> {
    let Some(around) = &at.run.around else {
        return Ok(());
    };
    let rate = p.object("rate_limit");
    for (name, unit, seconds) in [
        ("requests_per_minute", "minute", 60),
        ("requests_per_hour", "hour", 3_600),
    ] {
        let Some(most) = rate.count(name) else {
            continue;
        };
        let whose = json!([at.run.namespace_id, at.stage, p.word("url"), unit]).to_string();
        let paced = around.pace(&whose, most as u64, Duration::from_secs(seconds));
        paced.map_err(|wait| {
            format!("its stage makes {most} calls a {unit}: come again in {wait} seconds")
        })?;
    }
    Ok(())
}

fn ask(at: &Execution, p: &Parameters, context: &Context) -> Result<Ask, String> {
    let mut url = address(p, &render_text(&p.word("url"), context).map_err(|e| e.0)?)?;
    let method = p
        .word("method")
        .parse::<Method>()
        .map_err(|e| e.to_string())?;
    let mut headers = HeaderMap::new();
    for (name, value) in templates(p, "headers", context)? {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        put(&mut headers, &name, &text)?;
    }
    authenticate(at, &p.object("auth"), &mut url, &mut headers)?;
    let body = match p.map("body") {
        None => Vec::new(),
        Some(_) => {
            headers.insert("content-type", HeaderValue::from_static("application/json"));
            Value::Object(templates(p, "body", context)?)
                .to_string()
                .into_bytes()
        }
    };
    Ok(Ask {
        headers,
        max_bytes: p.count("max_response_size").unwrap_or(10 << 20) as u64,
        timeout: Duration::from_secs(p.count("timeout").unwrap_or(10) as u64),
        ..Ask::call(method, url.to_string(), body)
    })
}

fn templates(p: &Parameters, name: &str, context: &Context) -> Result<Object, String> {
    let written = Value::Object(p.map(name).unwrap_or_default());
    match render_value(&written, context).map_err(|e| e.0)? {
        Value::Object(object) => Ok(object),
        _ => Ok(Object::new()),
    }
}

/// An address of an allowed domain; whatever a document holds, nothing else is asked.
fn address(p: &Parameters, text: &str) -> Result<Url, String> {
    // It may have a secret in it, and is not told.
    let url = Url::parse(text.trim()).map_err(|wrong| format!("it has no address: {wrong}"))?;
    let host = url.host_str().unwrap_or_default().to_lowercase();
    let allowed = |domain: &String| {
        let domain = domain.to_lowercase();
        match domain.strip_prefix("*.") {
            Some(parent) => host.ends_with(&format!(".{parent}")),
            None => host == domain,
        }
    };
    if p.texts("allowed_domains").iter().any(allowed) {
        Ok(url)
    } else {
        Err(format!("`{host}` is not among the allowed domains"))
    }
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let wrong = |_| format!("the header `{name}` cannot be sent");
    let header = name
        .parse::<HeaderName>()
        .map_err(|e| wrong(e.to_string()))?;
    let mut value = HeaderValue::from_str(value).map_err(|e| wrong(e.to_string()))?;
    value.set_sensitive(true);
    headers.insert(header, value);
    Ok(())
}

fn authenticate(
    at: &Execution,
    auth: &Parameters,
    url: &mut Url,
    headers: &mut HeaderMap,
) -> Result<(), String> {
    let kind = auth.word("type");
    if kind == "none" {
        return Ok(());
    }
    let name = auth.text("secret_ref").ok_or("`auth` needs `secret_ref`")?;
    let secret = at
        .run
        .secrets
        .get(&name)
        .ok_or_else(|| format!("there is no secret `{name}`"))?;
    match (kind.as_str(), auth.word("location").as_str()) {
        ("bearer", _) => put(headers, "authorization", &format!("Bearer {secret}")),
        ("basic", _) => put(
            headers,
            "authorization",
            &format!("Basic {}", STANDARD.encode(secret)),
        ),
        ("api_key", "query") => {
            url.query_pairs_mut().append_pair(&auth.word("key"), secret);
            Ok(())
        }
        _ => put(headers, &auth.word("key"), secret),
    }
}
