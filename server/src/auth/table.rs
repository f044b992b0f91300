//! Every operation with what it takes to call it: the one table that the gate enforces, that the description of the API
//! shows, and that a test compares with both. An operation without a row takes an admin key.

use std::{collections::HashMap, sync::LazyLock};

use axum::http::Method;
use loupe_wire::Permission;

/// Who may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No key: health, public pages, addresses that carry their own signature.
    Public,
    /// Every valid key, those of retrievers included.
    AnyKey,
    /// Keys of this level or a higher one.
    Level(Permission),
    /// As `Level(Read)`, and keys of the retriever that is executed.
    Execute,
}

/// Where the scopes of a key are held against the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scoped {
    /// The rules of the operation ask, once the resource is known.
    InRules,
    /// The operation is about the whole namespace or organization: a key with scopes needs one that covers it.
    Whole,
    /// The operation is about the organization, whatever namespace the request names: a key with scopes needs one that
    /// covers the organization.
    Organization,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Method and path, as the description of the API writes them.
    pub operation: &'static str,
    pub access: Access,
    pub scoped: Scoped,
    /// Whether keys of end users may call it. They read and write documents, each its own; what tells of the documents of
    /// others, or would change them, is not for them.
    pub end_users: bool,
}

const READ: Access = Access::Level(Permission::Read);
const WRITE: Access = Access::Level(Permission::Write);
const DELETE: Access = Access::Level(Permission::Delete);
const ADMIN: Access = Access::Level(Permission::Admin);

/// Marks what keys of end users may call too.
const END_USERS: bool = true;

macro_rules! rows {
    ($($scoped:ident { $($operation:literal $access:expr $(=> $who:ident)?,)* })*) => {
        &[$($(Row {
            operation: $operation,
            access: $access,
            scoped: Scoped::$scoped,
            end_users: matches!($access, Access::Public | Access::AnyKey | Access::Execute) $(|| $who)?,
        },)*)*]
    };
}

mod account;
mod content;
mod namespaces;
mod organization;
mod retrieval;
mod templates;
mod whole;

/// The rows of each area.
const AREAS: &[&[Row]] = &[
    account::ROWS,
    namespaces::ROWS,
    content::ROWS,
    retrieval::ROWS,
    templates::ROWS,
    whole::ROWS,
    organization::ROWS,
];

/// Every operation of `/v1`.
pub const TABLE: &[Row] = &join::<{ count() }>();

const fn count() -> usize {
    let (mut rows, mut area) = (0, 0);
    while area < AREAS.len() {
        rows += AREAS[area].len();
        area += 1;
    }
    rows
}

/// The rows of all areas, one after the other.
const fn join<const ROWS: usize>() -> [Row; ROWS] {
    let mut all = [AREAS[0][0]; ROWS];
    let (mut rows, mut area) = (0, 0);
    while area < AREAS.len() {
        let mut row = 0;
        while row < AREAS[area].len() {
            all[rows] = AREAS[area][row];
            rows += 1;
            row += 1;
        }
        area += 1;
    }
    all
}

/// Rows by path, so that a request finds its own without building a string.
static BY_PATH: LazyLock<HashMap<&'static str, Vec<(&'static str, usize)>>> = LazyLock::new(|| {
    let mut paths: HashMap<_, Vec<_>> = HashMap::new();
    for (number, row) in TABLE.iter().enumerate() {
        if let Some((method, path)) = row.operation.split_once(' ') {
            paths.entry(path).or_default().push((method, number));
        }
    }
    paths
});

/// The row of an operation. A path that has rows, but none for the method, has no such operation.
pub fn find(method: &Method, path: &str) -> Found {
    if !BY_PATH.contains_key(path) {
        return Found::Undeclared;
    }
    number(method, path)
        .and_then(|number| TABLE.get(number))
        .map_or(Found::NoSuchMethod, Found::Row)
}

/// The place of an operation's row in the table.
pub fn number(method: &Method, path: &str) -> Option<usize> {
    let rows = BY_PATH.get(path)?;
    // A HEAD is a GET without its body.
    let method = if method == Method::HEAD {
        "GET"
    } else {
        method.as_str()
    };
    let found = rows.iter().find(|(name, _)| *name == method);
    found.map(|(_, number)| *number)
}

/// What the table says about a request.
#[derive(Debug)]
pub enum Found {
    Row(&'static Row),
    /// Answered with 405 by the router.
    NoSuchMethod,
    Undeclared,
}
