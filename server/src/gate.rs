//! The way into every operation of `/v1`: whose the key is, what the table lets it do, how much it may ask for, whether the
//! request was answered before. What comes out carries the four figures of the rate limit.

use std::time::Instant;

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, Method, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::future::BoxFuture;
use loupe_wire::{Permission, ResourceType};

use crate::{
    app::App,
    auth::{
        self, Caller,
        table::{self, Access, Found, Row, Scoped},
    },
    cors::Readers,
    error::{ApiError, Refused, Result},
    front,
    hosting::{api::Only, limits as visitors},
    idempotency,
    limits::{self, Figures, Places, Running, bucket::Rate},
    tolerance,
    unresolved::Nowhere,
    usage,
    v1::{api_keys, audit::repeats},
};

/// A request that is under way, among those of the organization and maybe among those of visitors.
type Entered = (Running, Option<Running>);

/// An operation that nobody declared.
const UNDECLARED: Row = Row {
    operation: "",
    access: Access::Level(Permission::Admin),
    scoped: Scoped::Whole,
    end_users: false,
};

/// Wraps the routes of the API.
pub async fn gate(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(path) = request.extensions().get::<MatchedPath>().cloned() else {
        return next.run(request).await;
    };
    let row = match table::find(request.method(), path.as_str()) {
        Found::Row(row) => row,
        Found::NoSuchMethod => return next.run(request).await,
        Found::Undeclared => &UNDECLARED,
    };
    if let Some(only) = request.extensions().get::<Only>()
        && let Err(error) = only.check(row, request.method(), request.uri().path())
    {
        return error.into_response();
    }
    if row.access == Access::Public {
        return anonymous(&app, row, request, next).await;
    }
    let address = address();
    if let Some(ready) = request.extensions().get::<Caller>().cloned() {
        return known(&app, row, path.as_str(), ready, request, next).await;
    }
    let caller = match auth::identify(&app, request.headers(), address.as_deref()).await {
        Ok(caller) => caller,
        Err(error) => return refused(&app, error),
    };
    if let Err(error) = auth::check_alive(&app, &caller) {
        repeats::turned_away(&app, &caller, error.code().unwrap_or_default());
        return refused(&app, error);
    }
    if let Err(error) = auth::welcome(&caller, request.headers()) {
        let response = refused(&app, error);
        let place = (path.as_str(), request.uri());
        note_refusal(&app, &caller, request.method(), place, &response);
        return response;
    }
    let key = caller.key.clone();
    let response = known(&app, row, path.as_str(), caller, request, next).await;
    // What was refused or failed is no use of the key.
    if !response.status().is_client_error() && !response.status().is_server_error() {
        api_keys::touch(&app, &key).await;
    }
    response
}

/// What a key may not do is a matter for the audit log.
fn note_refusal(
    app: &App,
    caller: &Caller,
    method: &Method,
    place: (&str, &Uri),
    response: &Response,
) {
    if let Some(refused) = response.extensions().get::<Refused>() {
        repeats::refused(app, caller, method, place, *refused);
    }
}

/// The address that the request comes from.
fn address() -> Option<String> {
    front::address().map(|address| address.to_string())
}

/// Callers without a key share the figures of their address.
async fn anonymous(app: &App, row: &Row, request: Request, next: Next) -> Response {
    let (figures, taken) = limits::take_of_strangers(app, front::address());
    let response = match taken.and_then(|()| room(app, row)) {
        Ok(()) if is_named(&request) && idempotency::is_of_strangers(row.operation) => {
            match idempotency::Owner::stranger(app, request.uri().path()) {
                Ok(owner) => once(app, owner, request, next).await,
                Err(error) => error.into_response(),
            }
        }
        Ok(()) => tolerance::run(app, request, next).await,
        Err(error) => error.into_response(),
    };
    with(figures, response)
}

/// Whether a repetition of the request is to be answered as it was.
fn is_named(request: &Request) -> bool {
    request.method() == Method::POST && request.headers().contains_key(idempotency::HEADER)
}

/// Runs a request, or answers as the first one with its name was.
async fn once(app: &App, owner: idempotency::Owner, request: Request, next: Next) -> Response {
    let state = app.clone();
    let work = move |request| -> BoxFuture<'static, Response> {
        Box::pin(async move { tolerance::run(&state, request, next).await })
    };
    // In a box, as it is larger than all the rest of this state, which every request moves.
    Box::pin(idempotency::run(app, owner, request, Box::new(work))).await
}

fn refused(app: &App, error: ApiError) -> Response {
    let (figures, taken) = limits::take_of_strangers(app, front::address());
    // Only a wrong origin is forbidden here; everything else is not authenticated.
    let wrong_origin = error.kind() == "ForbiddenError";
    let mut response = taken.err().unwrap_or(error).into_response();
    if wrong_origin {
        response.extensions_mut().insert(Readers::Nobody);
    }
    with(figures, response)
}

async fn known(
    app: &App,
    row: &Row,
    path: &str,
    caller: Caller,
    mut request: Request,
    next: Next,
) -> Response {
    let start = Instant::now();
    front::recognize(&caller.key);
    // What calls of visitors bring along was found for them already.
    let brought = request.extensions().get::<Only>().map(Only::brought);
    let (standing, places) = match brought {
        Some((standing, places)) => (standing, Some(places)),
        None => match limits::standing(app, &caller.org_id).await {
            Ok(standing) => (standing, None),
            Err(error) => return error.into_response(),
        },
    };
    let rate = limits::rate(app, &caller, standing);
    let (figures, mut taken) = limits::take(app, caller.actor(), &rate).await;
    if taken.is_ok() {
        taken = limits::take_of_kind(app, &caller, standing, row).await;
    }
    let admitted = taken
        .and_then(|()| admit(row, &caller, request.headers()))
        .and_then(|()| limits::paid::check(standing, row));
    let entered = match admitted.and_then(|()| room(app, row)) {
        Ok(()) => enter(app, &caller.org_id, &rate, places),
        Err(error) => Err(error),
    };
    let (method, uri) = (request.method().clone(), request.uri().clone());
    // The key was accepted, so the origin is on its list.
    let origins = caller.key.allowed_origins.as_ref();
    let listed = request.headers().contains_key(header::ORIGIN)
        && origins.is_some_and(|origins| !origins.is_empty());
    let mut response = match entered {
        Ok(_running) => {
            request.extensions_mut().insert(caller.clone());
            if let Some(nowhere) = Nowhere::of(row.operation) {
                request.extensions_mut().insert(nowhere);
            }
            let owner = match is_named(&request) {
                true => idempotency::Owner::of(app, &caller, &request),
                false => Ok(None),
            };
            match owner {
                Ok(Some(owner)) => once(app, owner, request, next).await,
                Ok(None) => tolerance::run(app, request, next).await,
                Err(error) => error.into_response(),
            }
        }
        Err(error) => error.into_response(),
    };
    if listed {
        response.extensions_mut().insert(Readers::Listed);
    }
    let place = (path, &uri);
    note_refusal(app, &caller, &method, place, &response);
    if standing.audits_reads && is_read(row) && response.status().is_success() {
        repeats::read(app, &caller, &method, place);
    }
    usage::count(app, &caller, &method, path, &response, start.elapsed());
    with(figures, response)
}

/// Room for one more request of the organization; visitors of its apps leave some for itself.
fn enter(app: &App, org_id: &str, rate: &Rate, places: Option<Places>) -> Result<Entered> {
    let visitor = match places {
        Some(places) => Some(limits::enter_at(places, &visitors::part_of(rate))?),
        None => None,
    };
    let own = limits::enter(app, org_id, rate)?;
    Ok((own, visitor))
}

fn is_read(row: &Row) -> bool {
    matches!(
        row.access,
        Access::Execute | Access::Level(Permission::Read)
    )
}

/// Searches are what keeps processors busy: in an overload most are refused before they are looked at.
fn room(app: &App, row: &Row) -> Result<()> {
    if row.operation.ends_with("/execute") {
        return app.turns.check();
    }
    Ok(())
}

/// Whether the table lets this key call the operation.
fn admit(row: &Row, caller: &Caller, headers: &HeaderMap) -> Result<()> {
    let needed = match row.access {
        Access::AnyKey => return Ok(()),
        Access::Execute | Access::Public => Permission::Read,
        Access::Level(permission) => permission,
    };
    if caller.is_retriever_key() && row.access != Access::Execute {
        return Err(ApiError::forbidden(
            "permission_denied",
            "this API key executes its one retriever and can do nothing else",
        ));
    }
    auth::check_level(caller, needed)?;
    if caller.principal().is_some() && !row.end_users {
        return Err(ApiError::forbidden(
            "permission_denied",
            "this API key is an end user's: it reads and writes documents and executes retrievers",
        ));
    }
    if row.scoped == Scoped::InRules || caller.key.scopes.is_empty() {
        return Ok(());
    }
    let operation = auth::operation_of(needed);
    let within = match row.scoped {
        Scoped::Organization => None,
        Scoped::InRules | Scoped::Whole => auth::namespace_header(headers)?,
    };
    match within {
        Some(namespace) => caller.allow(ResourceType::Namespace, &namespace, operation),
        None => caller.allow(ResourceType::Organization, &caller.org_id, operation),
    }
}

fn with(figures: Figures, response: Response) -> Response {
    let mut response = in_the_envelope(response);
    figures.write(response.headers_mut());
    response
}

/// What the framework itself refuses, such as a path that is not UTF-8, is said in plain text and in words of the program.
fn in_the_envelope(response: Response) -> Response {
    if !response.status().is_client_error() {
        return response;
    }
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| !kind.as_bytes().starts_with(b"text/plain")) {
        return response;
    }
    ApiError::bad_request("", "the path of this request cannot be read").into_response()
}
