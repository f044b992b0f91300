//! The description of the API: what every operation shares is added here, so that handlers declare only their own.

mod examples;
mod hosts;

use std::{
    cell::Cell,
    collections::{BTreeMap, HashSet},
    sync::OnceLock,
};

use axum::{handler::Handler, http::Method};
use bytes::Bytes;
use loupe_wire::Permission;
use utoipa::{
    __dev::{SchemaReferences, Tags},
    Path, ToSchema,
    openapi::{
        Components, Content, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder, PathItem, Paths,
        Ref, RefOr, Required, Response, ResponseBuilder, Schema,
        path::{Operation, ParameterBuilder, ParameterIn},
        schema::{ObjectBuilder, Type},
        security::{
            ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
        },
    },
};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::table::{self, Access, Found},
};

pub use examples::STORY;

/// Version of the interface, not of the program.
pub const INTERFACE_VERSION: &str = "0.82";

const ABOUT: &str = "Files in, searchable documents out, retrievers over them, published as pages and apps.

Every call with a key sends `Authorization: Bearer <key>`; those of one namespace say which in `X-Namespace`. Where it \
may be left out it narrows, or names the namespace of the path. `X-Change-Reason` is \
kept in the audit log beside what a call changes. `X-Request-Id` is answered as it was sent, or made.";

/// Statuses that any operation may answer besides its own.
const ERRORS: &[(&str, &str)] = &[
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

/// The scheme of the key, and that of the header that says which namespace a request is about.
const BEARER: &str = "bearer";
const NAMESPACE: &str = "namespace";

/// Headers that arguments of handlers read, by the ends of the arguments' types.
const HEADERS: [(&str, &str, &str); 2] = [
    (
        "::public::door::Proof",
        "X-Retriever-Password",
        "The password of a page that has one.",
    ),
    (
        "::public::routes::Session",
        "X-Session-ID",
        "The visitor's session, where the body names none.",
    ),
];

thread_local! {
    /// Whether the routes that this thread makes are described.
    static DESCRIBED: Cell<bool> = const { Cell::new(false) };
}

/// The description of every operation. Making it takes a tenth of a second and 80 MiB for that time, so a server that nobody
/// asks for it makes none.
pub fn document() -> OpenApi {
    DESCRIBED.set(true);
    let operations = OpenApiRouter::with_openapi(base()).merge(crate::v1::operations());
    DESCRIBED.set(false);
    let (_, mut document) = operations.split_for_parts();
    finish(&mut document);
    document
}

/// The description as JSON, made at the first look; that takes a moment of a processor.
pub fn text() -> Bytes {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let made = || Bytes::from(serde_json::to_vec(&document()).unwrap_or_default());
    TEXT.get_or_init(made).clone()
}

/// Adds an operation to what a router tells of itself: all of it where it is described, else its path.
pub fn describe<P>(
    paths: &mut Paths,
    schemas: &mut Vec<(String, RefOr<Schema>)>,
    methods: Vec<HttpMethod>,
    takes: &str,
) where
    P: Path + SchemaReferences + for<'t> Tags<'t>,
{
    let mut operation = Operation::new();
    if DESCRIBED.get() {
        operation = P::operation();
        P::schemas(schemas);
        let tags = P::tags().into_iter().map(ToOwned::to_owned);
        operation.tags.get_or_insert_default().extend(tags);
        name_headers(&mut operation, takes);
    }
    paths.add_path_operation(P::path(), methods, operation);
}

/// The types of a handler's arguments, as the compiler writes them.
pub fn takes<H, T>(_: &H) -> &'static str
where
    H: Handler<T, App>,
    T: 'static,
{
    std::any::type_name::<T>()
}

/// Tells of the headers that a handler's arguments read. What is told of namespaces is what the argument enforces, so no
/// handler can forget to tell it.
fn name_headers(operation: &mut Operation, takes: &str) {
    let within = || SecurityRequirement::new(NAMESPACE, Vec::<String>::new());
    if takes.contains("::OptionalScope<") {
        operation.security = Some(vec![within(), SecurityRequirement::default()]);
    } else if takes.contains("::Scope<") {
        operation.security = Some(vec![within()]);
    }
    for (argument, name, about) in HEADERS {
        if takes.contains(argument) {
            let header = ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Header)
                .required(Required::False)
                .description(Some(about))
                .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
                .build();
            let parameters = operation.parameters.get_or_insert_default();
            parameters.push(RefOr::T(header));
        }
    }
}

/// The handlers of one path for `OpenApiRouter::routes`. Unlike the macro of the same name that comes with it, it describes
/// them only where that is wanted.
macro_rules! routes {
    ($($handler:ident),+ $(,)?) => {{
        use ::utoipa_axum::PathItemExt as _;
        let mut paths = ::utoipa::openapi::path::Paths::new();
        let mut schemas = Vec::new();
        let router = ::axum::routing::MethodRouter::new();
        $(
            let methods = ::utoipa_axum::paste! { <[<__path_ $handler>] as ::utoipa::Path>::methods() };
            let router = methods
                .iter()
                .fold(router, |router, method| router.on(method.to_method_filter(), $handler));
            ::utoipa_axum::paste! {
                $crate::openapi::describe::<[<__path_ $handler>]>(
                    &mut paths, &mut schemas, methods, $crate::openapi::takes(&$handler),
                );
            }
        )+
        (schemas, paths, router)
    }};
}
pub(crate) use routes;

/// A type, with those that it is made of.
fn add<T: ToSchema>(components: &mut Components) {
    components
        .schemas
        .insert(T::name().into_owned(), T::schema());
    let mut nested = Vec::new();
    T::schemas(&mut nested);
    components.schemas.extend(nested);
}

/// The document before the operations are added.
fn base() -> OpenApi {
    let mut components = Components::new();
    components.add_security_scheme(
        BEARER,
        SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)),
    );
    let namespace = ApiKeyValue::with_description(
        "X-Namespace",
        "The id of the namespace (ns_…) that a request is about. It says where, and proves nothing: the key does.",
    );
    components.add_security_scheme(NAMESPACE, SecurityScheme::ApiKey(ApiKey::Header(namespace)));
    add::<loupe_wire::ErrorResponse>(&mut components);
    // What only a query names.
    add::<loupe_wire::AuditAction>(&mut components);
    components
        .schemas
        .insert("ValidationErrorResponse".into(), validation_schema());
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Loupe")
                .description(Some(ABOUT))
                .version(INTERFACE_VERSION)
                .build(),
        )
        .components(Some(components))
        .build()
}

fn validation_schema() -> RefOr<utoipa::openapi::Schema> {
    serde_json::from_value(serde_json::json!({
        "type": "object",
        "required": ["detail"],
        "properties": {"detail": {"type": "array", "items": {
            "type": "object",
            "required": ["loc", "msg", "type"],
            "properties": {
                "loc": {"type": "array", "items": {"type": "string"}},
                "msg": {"type": "string"},
                "type": {"type": "string"},
                "input": {},
                "ctx": {"type": "object"}
            }
        }}}
    }))
    .expect("a literal schema that the snapshot test reads")
}

/// Adds what operations share: errors, the key and its level, the name of a request.
fn finish(document: &mut OpenApi) {
    share(document);
    // The router's word for "all the rest of the path"; the description has none.
    for (path, item) in std::mem::take(&mut document.paths.paths) {
        let path = path.replace("{*", "{");
        document.paths.paths.insert(path, item);
    }
    examples::add(document);
    hosts::add(document);
}

fn share(document: &mut OpenApi) {
    let schemas = document.components.as_ref().map(|known| &known.schemas);
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            if let Some(schemas) = schemas {
                excuse_body(operation, schemas);
            }
            let large = operation.request_body.as_ref().map(|_| &TOO_LARGE);
            let changes = (method != Method::GET).then_some(&CHANGES);
            let shared = ERRORS
                .iter()
                .chain(large)
                .chain(changes.into_iter().flatten());
            for (status, description) in shared {
                let response = RefOr::T(json_response(description, "ErrorResponse"));
                operation
                    .responses
                    .responses
                    .entry((*status).into())
                    .or_insert(response);
            }
            let invalid = json_response(
                "The request breaks the declared shape or limits",
                "ValidationErrorResponse",
            );
            operation
                .responses
                .responses
                .entry("422".into())
                .or_insert(RefOr::T(invalid));
            let Found::Row(row) = table::find(&method, path) else {
                continue;
            };
            if row.access == Access::Public {
                continue;
            }
            let beside = operation.security.take().unwrap_or_default();
            let beside = match beside.is_empty() {
                true => vec![SecurityRequirement::default()],
                false => beside,
            };
            let keyed = |one: SecurityRequirement| one.add(BEARER, Vec::<String>::new());
            operation.security = Some(beside.into_iter().map(keyed).collect());
            let level = match row.access {
                Access::Level(level) => level,
                _ => Permission::Read,
            };
            let extension = ("x-required-permission", serde_json::json!(level));
            operation.extensions = Some([extension].into_iter().collect());
            if method == Method::POST {
                name_requests(operation);
            }
        }
    }
}

/// A body of which nothing has to be there need not be there itself: it is read as an object without members.
fn excuse_body(operation: &mut Operation, schemas: &BTreeMap<String, RefOr<Schema>>) {
    let Some(RefOr::T(request)) = operation.request_body.as_mut() else {
        return;
    };
    let Some(RefOr::T(content)) = request.content.get("application/json") else {
        return;
    };
    let Some(RefOr::Ref(named)) = &content.schema else {
        return;
    };
    let name = named.ref_location.rsplit('/').next().unwrap_or_default();
    if let Some(RefOr::T(Schema::Object(object))) = schemas.get(name)
        && object.required.is_empty()
    {
        request.required = None;
    }
}

/// Every POST with a key takes the header that makes repetitions harmless.
fn name_requests(operation: &mut Operation) {
    let header = ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "A repetition within 24 hours gets the answer of the first request with this key.",
        ))
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .max_length(Some(255)),
        ))
        .build();
    operation
        .parameters
        .get_or_insert_default()
        .push(RefOr::T(header));
}

fn json_response(description: &str, schema: &str) -> Response {
    let reference = RefOr::Ref(Ref::from_schema_name(schema));
    ResponseBuilder::new()
        .description(description)
        .content("application/json", Content::new(Some(reference)))
        .build()
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    [
        (Method::GET, &mut item.get),
        (Method::POST, &mut item.post),
        (Method::PUT, &mut item.put),
        (Method::PATCH, &mut item.patch),
        (Method::DELETE, &mut item.delete),
    ]
    .into_iter()
    .filter_map(|(method, operation)| operation.as_mut().map(|operation| (method, operation)))
}

/// The operations whose `warnings` are entries with a resource and a reason, and not sentences.
pub fn warn_with_entries(document: &OpenApi) -> HashSet<(Method, String)> {
    let described = serde_json::to_value(document).unwrap_or_default();
    let mut paths = document.paths.paths.clone();
    let mut found = HashSet::new();
    for (path, item) in &mut paths {
        for (method, _) in operations(item) {
            let name = method.as_str().to_ascii_lowercase();
            let answer = &described["paths"][path][name]["responses"]["200"]["content"];
            let schema = answer["application/json"]["schema"]["$ref"].as_str();
            let schema =
                schema.and_then(|schema| described.pointer(schema.trim_start_matches('#')));
            if schema.is_some_and(|it| it["properties"]["warnings"]["items"]["$ref"].is_string()) {
                found.insert((method, path.clone()));
            }
        }
    }
    found
}
