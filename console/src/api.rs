//! Calls of `/v1` and what comes back when they fail.

use std::{future::Future, pin::Pin};

use gloo_net::http::{Method, Request, RequestBuilder, Response};
use gloo_timers::future::TimeoutFuture;
use serde_json::Value;
use web_sys::AbortSignal;

use crate::record::{Record, plain};

/// A call under way. Boxed, so that the code of a call exists once.
pub type Answer = Pin<Box<dyn Future<Output = Result<Record, Problem>>>>;

/// Seconds that a call which only reads waits by itself when it came too early, and how often it does. A page asks for
/// more at once than a small plan lets through in a second.
const PATIENCE: u32 = 2;
const WAITS: u32 = 5;

/// A body, behind what it is.
type Sent = (String, String);

/// A failed call, as a person can use it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Problem {
    pub status: u16,
    pub kind: String,
    pub message: String,
    pub request_id: Option<String>,
    /// Seconds to wait before the call is worth another try.
    pub retry_after: Option<u32>,
    /// What the server said beside the message: the place and fault of each refused field, or the details of the
    /// envelope, such as which permission lacks.
    pub notes: Vec<(String, String)>,
    /// The details of the envelope as they came.
    pub details: Box<Value>,
}

impl Problem {
    pub fn local(message: impl Into<String>) -> Self {
        Self {
            kind: "invalid_input".into(),
            message: message.into(),
            ..Default::default()
        }
    }

    /// Seconds after which the call is let through, when these are few.
    fn soon(&self) -> Option<u32> {
        self.retry_after
            .filter(|rest| self.status == 429 && *rest <= PATIENCE)
    }

    /// Whether the same call may well work a little later.
    pub fn passes(&self) -> bool {
        matches!(self.status, 0 | 408 | 429 | 500..)
    }

    fn network(message: String) -> Self {
        let message = format!("the server could not be reached ({message})");
        Self {
            kind: "network".into(),
            message,
            ..Default::default()
        }
    }

    /// Reads the two shapes of an error body: the envelope, and the list of a refused request.
    fn from_body(status: u16, body: &Value) -> Self {
        let mut problem = Self {
            status,
            kind: format!("status_{status}"),
            ..Default::default()
        };
        if let Some(error) = body.get("error") {
            let text = |name: &str| {
                error
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            problem.kind = text("type");
            problem.message = text("message");
            if let Some(details) = error.get("details").and_then(Value::as_object) {
                problem.notes = details
                    .iter()
                    .map(|(name, value)| (name.clone(), plain(value)))
                    .collect();
                problem.details = Box::new(error["details"].clone());
            }
        } else if let Some(faults) = body.get("detail").and_then(Value::as_array) {
            problem.kind = "validation_error".into();
            problem.message = "some values were refused".into();
            problem.notes = faults.iter().map(fault).collect();
        } else {
            problem.message = format!("the server answered with status {status}");
        }
        problem
    }
}

/// Whether a call changes nothing: lists are asked for with a body.
fn reads(method: &Method, path: &str) -> bool {
    let bare = path.split('?').next().unwrap_or(path);
    *method == Method::GET || (*method == Method::POST && bare.ends_with("/list"))
}

fn fault(value: &Value) -> (String, String) {
    let place = value.get("loc").and_then(Value::as_array).map(|loc| {
        let pieces: Vec<String> = loc.iter().skip(1).map(plain).collect();
        pieces.join(".")
    });
    let message = value
        .get("msg")
        .and_then(Value::as_str)
        .unwrap_or("refused");
    (place.unwrap_or_default(), message.to_owned())
}

fn json(body: &Value) -> Sent {
    ("application/json".to_owned(), body.to_string())
}

/// A form as browsers send it. They would write its line ends anew, which mean something in some texts.
fn form(fields: &[(&str, &str)]) -> Sent {
    let mut boundary = "form-of-loupe".to_owned();
    while fields.iter().any(|(_, text)| text.contains(&boundary)) {
        boundary.push('x');
    }
    let parts = fields.iter().map(|(name, text)| {
        let head = format!("Content-Disposition: form-data; name=\"{name}\"");
        format!("--{boundary}\r\n{head}\r\n\r\n{text}\r\n")
    });
    let parts: String = parts.collect();
    let media = format!("multipart/form-data; boundary={boundary}");
    (media, format!("{parts}--{boundary}--\r\n"))
}

/// Whose calls, and in which namespace.
#[derive(Clone, Default)]
pub struct Api {
    pub key: String,
    pub namespace: Option<String>,
}

impl Api {
    pub fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, None)
    }

    /// An answer that is not JSON, as one text.
    pub fn text(&self, path: &str) -> Answer {
        let (api, path) = (self.clone(), path.to_owned());
        Box::pin(async move {
            let response = api.send(Method::GET, &path, None).await?;
            let text = response.text().await;
            let text = text.map_err(|e| Problem::network(e.to_string()))?;
            Ok(Record(Value::String(text)))
        })
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::POST, path, Some(json(body)))
    }

    /// Sends texts by their names, as a form.
    pub fn form(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.call(Method::POST, path, Some(form(fields)))
    }

    pub fn put(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::PUT, path, Some(json(body)))
    }

    pub fn patch(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::PATCH, path, Some(json(body)))
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, None)
    }

    /// Deletes what the body names.
    pub fn delete_all(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::DELETE, path, Some(json(body)))
    }

    fn call(&self, method: Method, path: &str, body: Option<Sent>) -> Answer {
        let (api, path) = (self.clone(), path.to_owned());
        Box::pin(async move {
            let mut waits = if reads(&method, &path) { WAITS } else { 0 };
            let answer = loop {
                let answer = api.send(method.clone(), &path, body.clone()).await;
                let rest = answer.as_ref().err().and_then(Problem::soon);
                match rest.filter(|_| waits > 0) {
                    Some(rest) => TimeoutFuture::new(rest.max(1) * 1000).await,
                    None => break answer,
                }
                waits -= 1;
            };
            decode(answer?).await
        })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Sent>,
    ) -> Result<Response, Problem> {
        let request = self.request(method, path);
        let request = match body {
            Some((media, body)) => request.header("Content-Type", &media).body(body),
            None => request.build(),
        };
        received(request).await
    }

    /// An answer that goes on until the signal ends it.
    pub async fn stream(&self, path: &str, signal: &AbortSignal) -> Result<Response, Problem> {
        let request = self
            .request(Method::GET, path)
            .header("Accept", "text/event-stream")
            .abort_signal(Some(signal));
        received(request.build()).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = RequestBuilder::new(path)
            .method(method)
            .header("Authorization", &format!("Bearer {}", self.key));
        match &self.namespace {
            Some(namespace) => request.header("X-Namespace", namespace),
            None => request,
        }
    }
}

async fn received(request: Result<Request, gloo_net::Error>) -> Result<Response, Problem> {
    let network = |e: gloo_net::Error| Problem::network(e.to_string());
    let response = request.map_err(network)?.send().await.map_err(network)?;
    if response.ok() {
        return Ok(response);
    }
    let headers = response.headers();
    let request_id = headers.get("x-request-id");
    let retry_after = headers
        .get("retry-after")
        .and_then(|seconds| seconds.parse().ok());
    let body: Value = response.json().await.unwrap_or(Value::Null);
    let problem = Problem::from_body(response.status(), &body);
    Err(Problem {
        request_id,
        retry_after,
        ..problem
    })
}

async fn decode(response: Response) -> Result<Record, Problem> {
    let request_id = response.headers().get("x-request-id");
    let text = response
        .text()
        .await
        .map_err(|e| Problem::network(e.to_string()))?;
    if text.is_empty() {
        return Ok(Record::default());
    }
    serde_json::from_str(&text)
        .map(Record)
        .map_err(|e| Problem {
            status: response.status(),
            kind: "unreadable_answer".into(),
            message: format!("the answer is not JSON: {e}"),
            request_id,
            ..Default::default()
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Method, Problem, form, reads};

    #[test]
    fn a_form_keeps_its_lines_and_its_boundary_to_itself() {
        let (media, body) = form(&[("file", "a\nform-of-loupe\n"), ("values", "{}")]);
        assert_eq!(media, "multipart/form-data; boundary=form-of-loupex");
        assert_eq!(
            body,
            "--form-of-loupex\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\na\nform-of-loupe\n\r\n\
             --form-of-loupex\r\nContent-Disposition: form-data; name=\"values\"\r\n\r\n{}\r\n--form-of-loupex--\r\n"
        );
    }

    #[test]
    fn only_what_reads_waits_and_not_for_long() {
        assert!(reads(&Method::GET, "/v1/organizations"));
        assert!(reads(&Method::POST, "/v1/buckets/list?limit=5"));
        assert!(!reads(&Method::POST, "/v1/buckets"));
        assert!(!reads(&Method::DELETE, "/v1/buckets/list"));
        let early = |status, retry_after| Problem {
            status,
            retry_after,
            ..Default::default()
        };
        assert_eq!(early(429, Some(1)).soon(), Some(1));
        assert_eq!(early(429, Some(30)).soon(), None);
        assert_eq!(early(503, Some(1)).soon(), None);
        assert_eq!(early(429, None).soon(), None);
    }

    #[test]
    fn both_shapes_of_errors_are_read() {
        let envelope = json!({"success": false, "status": 403, "error": {"type": "forbidden", "message": "no",
            "details": {"required": "admin"}}});
        let problem = Problem::from_body(403, &envelope);
        assert_eq!(
            (problem.kind.as_str(), problem.message.as_str()),
            ("forbidden", "no")
        );
        assert_eq!(problem.notes, [("required".to_owned(), "admin".to_owned())]);

        let list = json!({"detail": [{"loc": ["body", "stages", 0, "config"], "msg": "unknown", "type": "x"}]});
        let problem = Problem::from_body(422, &list);
        assert_eq!(
            problem.notes,
            [("stages.0.config".to_owned(), "unknown".to_owned())]
        );
        assert!(!Problem::from_body(502, &json!(null)).message.is_empty());
    }
}
