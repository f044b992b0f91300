//! The description of the API. Debug builds make it of the annotations of the handlers; a release carries what the repository
//! holds as `openapi.json`, which the tests compare with that, and none of the code that makes it: five megabytes.

#[cfg(debug_assertions)]
mod areas;
#[cfg(debug_assertions)]
mod examples;
#[cfg(debug_assertions)]
mod hosts;
#[cfg(debug_assertions)]
mod limits;
#[cfg(debug_assertions)]
mod made;
#[cfg(debug_assertions)]
mod reasons;
#[cfg(debug_assertions)]
mod shared;

use std::{collections::HashSet, sync::OnceLock};

use axum::{handler::Handler, http::Method};
use bytes::Bytes;
use loupe_wire::Value;
use utoipa::{
    __dev::{SchemaReferences, Tags},
    Path,
    openapi::{HttpMethod, Paths, RefOr, Schema},
};

use crate::app::App;

#[cfg(debug_assertions)]
pub use examples::STORY;
#[cfg(debug_assertions)]
pub use made::document;

/// Version of the interface, not of the program.
pub const INTERFACE_VERSION: &str = "0.82";

/// The description as the repository has it.
#[cfg(debug_assertions)]
pub fn printed() -> String {
    let text = document().to_pretty_json();
    text.expect("the description is made of what JSON has") + "\n"
}

/// The description as the repository has it.
#[cfg(not(debug_assertions))]
pub fn printed() -> String {
    use std::io::Read;

    let packed = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));
    let mut text = String::new();
    let read = flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text);
    read.expect("a part of the program that was packed with it");
    text
}

/// The description without spaces, made at the first look; that takes a moment of a processor.
pub fn text() -> Bytes {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let made = || Bytes::from(described().to_string());
    TEXT.get_or_init(made).clone()
}

fn described() -> Value {
    serde_json::from_str(&printed()).unwrap_or_default()
}

/// Adds an operation to what a router tells of itself.
pub fn describe<P>(
    paths: &mut Paths,
    schemas: &mut Vec<(String, RefOr<Schema>)>,
    methods: Vec<HttpMethod>,
    takes: &str,
) where
    P: Path + SchemaReferences + for<'t> Tags<'t>,
{
    #[cfg(debug_assertions)]
    let operation = made::operation::<P>(schemas, takes);
    #[cfg(not(debug_assertions))]
    let operation = {
        let _ = (schemas, takes);
        utoipa::openapi::path::Operation::new()
    };
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

/// The operations whose `warnings` are entries with a resource and a reason, and not sentences.
pub fn warn_with_entries() -> HashSet<(Method, String)> {
    let described = described();
    let warns = |operation: &Value| {
        let answer = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        let schema = answer["$ref"].as_str();
        let schema = schema.and_then(|schema| described.pointer(schema.trim_start_matches('#')));
        schema.is_some_and(|it| it["properties"]["warnings"]["items"]["$ref"].is_string())
    };
    let mut found = HashSet::new();
    for (path, item) in described["paths"].as_object().into_iter().flatten() {
        for (name, operation) in item.as_object().into_iter().flatten() {
            let method = Method::from_bytes(name.to_ascii_uppercase().as_bytes());
            if warns(operation)
                && let Ok(method) = method
            {
                found.insert((method, path.clone()));
            }
        }
    }
    found
}
