//! How the description is made: of the annotations of the handlers, and of what every operation shares, so that handlers declare
//! only their own.

use std::{cell::Cell, collections::BTreeMap};

use axum::http::Method;
use loupe_wire::Permission;
use utoipa::{
    __dev::{SchemaReferences, Tags},
    Path, ToSchema,
    openapi::{
        Components, InfoBuilder, OpenApi, OpenApiBuilder, PathItem, RefOr, Required, Schema,
        path::{Operation, ParameterBuilder, ParameterIn},
        schema::{ObjectBuilder, Type},
        security::{
            ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
        },
    },
};
use utoipa_axum::router::OpenApiRouter;

use super::{INTERFACE_VERSION, areas, examples, hosts, limits, shared};
use crate::auth::table::{self, Access, Found};

const ABOUT: &str = "Files in, searchable documents out, retrievers over them, published as pages and apps.

Every call with a key sends `Authorization: Bearer <key>`; those of one namespace say which in `X-Namespace`. Where it \
may be left out it narrows, or names the namespace of the path. `X-Change-Reason` is \
kept in the audit log beside what a call changes. `X-Request-Id` is answered as it was sent, or made.";

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

/// The description of every operation.
pub fn document() -> OpenApi {
    DESCRIBED.set(true);
    let operations = OpenApiRouter::with_openapi(base()).merge(crate::v1::operations());
    DESCRIBED.set(false);
    let (_, mut document) = operations.split_for_parts();
    finish(&mut document);
    document
}

/// What a router tells of an operation: all of it where it is described, else nothing.
pub(super) fn operation<P>(schemas: &mut Vec<(String, RefOr<Schema>)>, takes: &str) -> Operation
where
    P: Path + SchemaReferences + for<'t> Tags<'t>,
{
    if !DESCRIBED.get() {
        return Operation::new();
    }
    let mut operation = P::operation();
    P::schemas(schemas);
    let tags = P::tags().into_iter().map(ToOwned::to_owned);
    operation.tags.get_or_insert_default().extend(tags);
    name_headers(&mut operation, takes);
    operation
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

/// A type, with those that it is made of.
pub(super) fn add<T: ToSchema>(components: &mut Components) {
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
    shared::components(&mut components);
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Loupe")
                .description(Some(ABOUT))
                .version(INTERFACE_VERSION)
                .build(),
        )
        .components(Some(components))
        .tags(Some(areas::tags()))
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

/// Adds what operations share: errors, the key and its level, headers.
fn finish(document: &mut OpenApi) {
    share(document);
    // The router's word for "all the rest of the path"; the description has none.
    for (path, item) in std::mem::take(&mut document.paths.paths) {
        let path = path.replace("{*", "{");
        document.paths.paths.insert(path, item);
    }
    limits::add(document);
    limits::add_of_queries(document);
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
            let row = match table::find(&method, path) {
                Found::Row(row) => Some(row),
                _ => None,
            };
            shared::answers(&method, row, operation);
            let Some(row) = row else {
                continue;
            };
            shared::requests(&method, row, operation);
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

pub(super) fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
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
