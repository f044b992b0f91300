//! Searches with a file: what a form with inputs for files sends.

use std::time::Duration;

use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest as _, Multipart, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::Semaphore;

use super::frame;
use super::held;
use super::input::{Upload, accepts};
use super::look::Look;
use super::query::{Query, View, joined};
use super::{Shared, open, refuse, show};
use crate::{Host, Visitor};

/// Largest file that is searched with.
const LARGEST_FILE: usize = 8 << 20;
/// Longest text of a field; the page reads less of it.
const LONGEST_TEXT: usize = 16 << 10;
/// Most fields of a form.
const MOST_FIELDS: usize = 200;
/// Largest form: a file that is too large is read to its end, for a browser that is cut off shows no answer.
pub const LARGEST_FORM: usize = 32 << 20;

/// Forms of strangers that are read at once, and how long one may take with its turn.
static READING: Semaphore = Semaphore::const_new(8);
const PATIENCE: Duration = Duration::from_secs(30);

const TOO_LARGE: &str = "This file is too large: 8 MB is the most.";
const NO_PICTURE: &str = "This file is no picture.";

/// What was filled in.
#[derive(Default)]
struct Sent {
    texts: Vec<(String, String)>,
    files: Vec<(String, Result<Upload, &'static str>)>,
}

pub async fn search_page(
    State(host): Shared,
    Path(public_name): Path<String>,
    visitor: Visitor,
    request: Request,
) -> Response {
    search(&*host, &public_name, &visitor, View::Page, request).await
}

pub async fn embedded(
    State(host): Shared,
    Path(public_name): Path<String>,
    visitor: Visitor,
    request: Request,
) -> Response {
    search(&*host, &public_name, &visitor, View::Frame, request).await
}

/// The answer to a form with a file. Without one there is an address for the same search, and the visitor is sent there.
async fn search(
    host: &dyn Host,
    public_name: &str,
    visitor: &Visitor,
    view: View,
    request: Request,
) -> Response {
    let (address, headers) = (request.uri().clone(), request.headers().clone());
    let page = match open(host, public_name, visitor, &address).await {
        Ok(page) => page,
        Err(reply) if view == View::Frame => return frame::closed(host, *reply),
        Err(reply) => return *reply,
    };
    let look = Look::of_page(&page);
    let asked = address.query().unwrap_or_default();
    let form = Query::read(&page, &look, asked, view);
    let reading = async {
        let _turn = READING.acquire().await;
        read(request, &form).await
    };
    let Ok(sent) = tokio::time::timeout(PATIENCE, reading).await else {
        let text = "Too many files are being sent right now. Try again in a moment.";
        return refuse(
            host,
            StatusCode::SERVICE_UNAVAILABLE,
            "This search cannot be run now",
            text,
        );
    };
    let Some(sent) = sent else {
        let text = "The form could not be read. Go back and try again.";
        let title = "This search cannot be run";
        return refuse(host, StatusCode::BAD_REQUEST, title, text);
    };
    let raw = format!("{asked}&{}", joined(&sent.texts));
    let mut query = Query::read(&page, &look, &raw, view);
    if sent.files.is_empty() && !query.has_errors() {
        let to = query.at_page(query.page);
        return (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response();
    }
    // Script sends the file along to other pages of the results; a browser without it follows their addresses.
    let mode = headers.get("sec-fetch-mode");
    let follows = mode.is_none_or(|mode| mode == "navigate");
    for (param, file) in sent.files {
        let file = match file {
            Ok(file) if follows => Ok(held::hold(public_name, file)),
            file => file,
        };
        query.attach(&param, file);
    }
    show(host, &page, visitor, &look, &query, &headers).await
}

/// Reads the form; none where it is none, or breaks off.
async fn read(request: Request, form: &Query) -> Option<Sent> {
    let mut fields = Multipart::from_request(request, &()).await.ok()?;
    let mut sent = Sent::default();
    for _ in 0..MOST_FIELDS {
        let Some(mut field) = fields.next_field().await.ok()? else {
            return Some(sent);
        };
        let name = field.name().unwrap_or_default().to_owned();
        let input = form.inputs.iter().find(|input| input.param == name);
        match input.and_then(accepts) {
            None => {
                let text = content(&mut field, LONGEST_TEXT).await.ok()?;
                let text = text.unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                sent.texts.push((name, text));
            }
            Some(accepted) => {
                let file = upload(&mut field, accepted).await.ok()?;
                let file = file.filter(|_| !sent.files.iter().any(|(one, _)| *one == name));
                sent.files.extend(file.map(|file| (name, file)));
            }
        }
    }
    None
}

/// The file of a field; none where nobody chose one.
async fn upload(
    field: &mut Field<'_>,
    accepted: &str,
) -> Result<Option<Result<Upload, &'static str>>, MultipartError> {
    let name = field.file_name().unwrap_or_default();
    let name: String = name.chars().filter(|c| !c.is_control()).take(120).collect();
    let kind = field.content_type().unwrap_or_default().to_owned();
    let Some(bytes) = content(field, LARGEST_FILE).await? else {
        return Ok(Some(Err(TOO_LARGE)));
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    if accepted == "image/*" && !kind.starts_with("image/") {
        return Ok(Some(Err(NO_PICTURE)));
    }
    let spelled = |c: char| c.is_ascii_alphanumeric() || "/.+-".contains(c);
    let kind = if kind.len() <= 100 && kind.contains('/') && kind.chars().all(spelled) {
        kind
    } else {
        "application/octet-stream".to_owned()
    };
    let data = format!("data:{kind};base64,{}", STANDARD.encode(&bytes));
    let held = None;
    Ok(Some(Ok(Upload { name, data, held })))
}

/// What a field holds; none where it is more than `most` bytes, which are read and not kept.
async fn content(field: &mut Field<'_>, most: usize) -> Result<Option<Vec<u8>>, MultipartError> {
    let mut bytes = Vec::new();
    let mut fits = true;
    while let Some(chunk) = field.chunk().await? {
        fits = fits && bytes.len() + chunk.len() <= most;
        if fits {
            bytes.extend_from_slice(&chunk);
        } else {
            bytes = Vec::new();
        }
    }
    Ok(fits.then_some(bytes))
}
