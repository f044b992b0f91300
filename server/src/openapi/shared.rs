//! What many operations have in common, and components tell once: answers that are errors, headers of answers, and headers
//! that requests may carry.

use axum::http::Method;
use utoipa::openapi::{
    Components, Content, Deprecated, Header, Ref, RefOr, Required, Response, ResponseBuilder,
    header::HeaderBuilder,
    path::{Operation, ParameterBuilder, ParameterIn},
    schema::{ObjectBuilder, Type},
};

use super::reasons;
use crate::{
    auth::table::{Access, Row},
    idempotency, unresolved,
};

/// Statuses that any operation may answer besides its own.
const ERRORS: [(&str, &str); 9] = [
    ("400", "The request cannot be understood or carried out"),
    (
        "401",
        "The key is missing, malformed, unknown, revoked or expired",
    ),
    (
        "403",
        "The key lacks the permission, scope, origin or plan, or a quota is used up",
    ),
    ("404", "No such resource for this caller"),
    (INVALID, "The request breaks the declared shape or limits"),
    ("429", "Too many requests: wait for Retry-After seconds"),
    ("500", "An internal error"),
    (
        "503",
        "A dependency is away or the server is busy: try again",
    ),
    ("504", "The request took too long"),
];

/// What operations with a body may answer as well.
const TOO_LARGE: (&str, &str) = ("413", "The body is larger than this server takes");

/// What operations that change something may answer as well.
const CHANGES: [(&str, &str); 2] = [
    (
        "409",
        "The name is taken, the state does not allow it, or the Idempotency-Key belongs to another request or to one under way",
    ),
    (
        "507",
        "The disk is almost full: writes are refused until space is freed",
    ),
];

/// The status whose answer is a list of faults.
const INVALID: &str = "422";

/// Headers of every answer.
const FIGURES: [(&str, &str); 4] = [
    ("X-RateLimit-Limit", "Requests that the window lets through"),
    ("X-RateLimit-Remaining", "Requests that are left"),
    (
        "X-RateLimit-Reset",
        "When none of them is missing any more, in seconds since 1970",
    ),
    ("X-RateLimit-Window", "Seconds of the window"),
];
const RETRY_AFTER: (&str, &str) = ("Retry-After", "Seconds after which a try makes sense");
/// What asks a caller to come later.
const LATER: [&str; 2] = ["429", "503"];
const UNRESOLVED: (&str, &str) = (
    "X-Namespace-Unresolved",
    "`true` where `X-Namespace` names no namespace of the caller's, and the page is empty for that; else absent",
);

const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const CHANGE_REASON: &str = "X-Change-Reason";
const PUBLIC_KEY: &str = "X-Public-API-Key";
const KNOWN: &str = "If-None-Match";
const RANGE: &str = "Range";
const PART: &str = "Content-Range";
const CHECKSUM: &str = "X-Checksum-SHA256";

/// What takes the bytes of a file.
const UPLOAD: &str = "PUT /v1/blobs/{*key}";

/// Operations that once took the key of a page.
const WITH_PUBLIC_KEY: [&str; 3] = [
    "POST /v1/public/retrievers/{public_name}/execute",
    "POST /v1/public/retrievers/{public_name}/interactions",
    "POST /v1/public/retrievers/{public_name}/interactions/batch",
];

/// Adds what operations refer to.
pub(super) fn components(components: &mut Components) {
    for (name, about) in FIGURES.into_iter().chain([RETRY_AFTER]) {
        let header = header(Type::Integer, about);
        components.headers.insert(name.into(), header);
    }
    let (name, about) = UNRESOLVED;
    let header = header(Type::String, about);
    components.headers.insert(name.into(), header);
    for (status, about) in ERRORS.into_iter().chain([TOO_LARGE]).chain(CHANGES) {
        let error = error(status, about);
        components.responses.insert(name_of(status), error.into());
    }
    for (name, about, schema, deprecated) in headers() {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .deprecated(deprecated)
            .description(Some(about))
            .schema(Some(schema))
            .build();
        components.parameters.insert(name.into(), parameter.into());
    }
}

type Parameter = (
    &'static str,
    &'static str,
    ObjectBuilder,
    Option<Deprecated>,
);

/// Headers that requests of several operations may carry.
fn headers() -> [Parameter; 7] {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    [
        (
            IDEMPOTENCY_KEY,
            "A repetition within 24 hours gets the answer of the first request with this key.",
            text().min_length(Some(1)).max_length(Some(255)),
            None,
        ),
        (
            CHANGE_REASON,
            "Why: kept in the audit log beside the change. Its first 500 characters are.",
            text(),
            None,
        ),
        (
            PUBLIC_KEY,
            "Pages need no key any more: it is not looked at.",
            text(),
            Some(Deprecated::True),
        ),
        (
            KNOWN,
            "The `ETag` of an answer that the caller has: 304 where it is still the answer.",
            text(),
            None,
        ),
        (
            RANGE,
            "The bytes that are wanted, such as `bytes=0-1023`; 206 answers with them alone.",
            text(),
            None,
        ),
        (
            PART,
            "The bytes that are sent of a file that comes in parts, such as `bytes 0-1023/4096`.",
            text(),
            None,
        ),
        (
            CHECKSUM,
            "The SHA-256 of the bytes in 64 hex digits: others are refused.",
            text(),
            None,
        ),
    ]
}

fn header(kind: Type, about: &str) -> RefOr<Header> {
    let schema = ObjectBuilder::new().schema_type(kind);
    let header = HeaderBuilder::new().schema(Some(schema));
    RefOr::T(header.description(Some(about)).build())
}

fn name_of(status: &str) -> String {
    format!("Error{status}")
}

fn error(status: &str, about: &str) -> Response {
    let schema = match status {
        INVALID => "ValidationErrorResponse",
        _ => "ErrorResponse",
    };
    let reference = RefOr::Ref(Ref::from_schema_name(schema));
    let mut response = ResponseBuilder::new()
        .description(about)
        .content("application/json", Content::new(Some(reference)))
        .build();
    name_headers(status, &mut response);
    response
}

/// Tells of the headers that an answer of this status has.
fn name_headers(status: &str, response: &mut Response) {
    for (name, _) in FIGURES {
        refer(response, name);
    }
    if LATER.contains(&status) {
        refer(response, RETRY_AFTER.0);
    }
}

fn refer(response: &mut Response, header: &str) {
    let reference = Ref::new(format!("#/components/headers/{header}"));
    response
        .headers
        .insert(header.to_owned(), RefOr::Ref(reference));
}

/// Adds the answers that an operation may give besides its own, and the headers of all of them.
pub(super) fn answers(method: &Method, row: Option<&Row>, operation: &mut Operation) {
    let large = operation.request_body.as_ref().map(|_| TOO_LARGE);
    let changes = (method != Method::GET).then_some(CHANGES);
    let responses = &mut operation.responses.responses;
    for (status, response) in responses.iter_mut() {
        if let RefOr::T(response) = response {
            name_headers(status, response);
        }
    }
    if row.is_some_and(|row| unresolved::is_list(row.operation))
        && let Some(RefOr::T(page)) = responses.get_mut("200")
    {
        refer(page, UNRESOLVED.0);
    }
    let changes = changes.into_iter().flatten();
    for (status, _) in ERRORS.into_iter().chain(large).chain(changes) {
        let shared = Ref::from_response_name(name_of(status));
        let own = responses.entry(status.into());
        own.or_insert(RefOr::Ref(shared));
    }
}

/// Adds the headers that requests of an operation may carry, whatever its handler reads.
pub(super) fn requests(method: &Method, row: &Row, operation: &mut Operation) {
    let is_public = row.access == Access::Public;
    let repeats = !is_public || idempotency::is_of_strangers(row.operation);
    let named = [
        (method == Method::POST && repeats, IDEMPOTENCY_KEY),
        (reasons::are_kept(row.operation), CHANGE_REASON),
        (WITH_PUBLIC_KEY.contains(&row.operation), PUBLIC_KEY),
        (operation.responses.responses.contains_key("304"), KNOWN),
        (operation.responses.responses.contains_key("206"), RANGE),
        (row.operation == UPLOAD, PART),
        (row.operation == UPLOAD, CHECKSUM),
    ];
    for (_, name) in named.into_iter().filter(|(is_read, _)| *is_read) {
        let reference = Ref::new(format!("#/components/parameters/{name}"));
        let parameters = operation.parameters.get_or_insert_default();
        parameters.push(RefOr::Ref(reference));
    }
}
