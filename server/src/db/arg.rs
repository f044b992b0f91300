//! Arguments of statements, typed so that NULL has a type on PostgreSQL.

use serde::Serialize;
use serde_json::Value;
use sqlx::{Database, Encode, Type, query::Query, query::QueryAs, types::Json};

pub type Args = Vec<Arg>;

/// One argument. Every case carries an option, because PostgreSQL wants to know the type of a NULL.
#[derive(Debug, Clone)]
pub enum Arg {
    Int(Option<i64>),
    Real(Option<f64>),
    Text(Option<String>),
    Bool(Option<bool>),
    Bytes(Option<Vec<u8>>),
    Json(Option<Value>),
}

macro_rules! bind {
    ($self:expr, $query:expr) => {
        match $self {
            Arg::Int(value) => $query.bind(value),
            Arg::Real(value) => $query.bind(value),
            Arg::Text(value) => $query.bind(value),
            Arg::Bool(value) => $query.bind(value),
            Arg::Bytes(value) => $query.bind(value),
            Arg::Json(value) => $query.bind(value.map(Json)),
        }
    };
}

impl Arg {
    /// A wire type or any other value as JSON.
    pub fn json(value: &impl Serialize) -> Self {
        Self::Json(serde_json::to_value(value).ok())
    }

    pub(super) fn bind<'q, DB, T>(
        self,
        query: QueryAs<'q, DB, T, DB::Arguments>,
    ) -> QueryAs<'q, DB, T, DB::Arguments>
    where
        DB: Database,
        Option<i64>: Encode<'q, DB> + Type<DB>,
        Option<f64>: Encode<'q, DB> + Type<DB>,
        Option<String>: Encode<'q, DB> + Type<DB>,
        Option<bool>: Encode<'q, DB> + Type<DB>,
        Option<Vec<u8>>: Encode<'q, DB> + Type<DB>,
        Option<Json<Value>>: Encode<'q, DB> + Type<DB>,
    {
        bind!(self, query)
    }

    pub(super) fn bind_plain<'q, DB>(
        self,
        query: Query<'q, DB, DB::Arguments>,
    ) -> Query<'q, DB, DB::Arguments>
    where
        DB: Database,
        Option<i64>: Encode<'q, DB> + Type<DB>,
        Option<f64>: Encode<'q, DB> + Type<DB>,
        Option<String>: Encode<'q, DB> + Type<DB>,
        Option<bool>: Encode<'q, DB> + Type<DB>,
        Option<Vec<u8>>: Encode<'q, DB> + Type<DB>,
        Option<Json<Value>>: Encode<'q, DB> + Type<DB>,
    {
        bind!(self, query)
    }
}

macro_rules! from {
    ($($type:ty => $case:ident),*) => {
        $(impl From<$type> for Arg {
            fn from(value: $type) -> Self {
                Self::$case(Some(value.into()))
            }
        }
        impl From<Option<$type>> for Arg {
            fn from(value: Option<$type>) -> Self {
                Self::$case(value.map(Into::into))
            }
        })*
    };
}

from!(i64 => Int, i32 => Int, u32 => Int, f64 => Real, String => Text, &str => Text, bool => Bool, Vec<u8> => Bytes, Value => Json);

impl From<&String> for Arg {
    fn from(value: &String) -> Self {
        Self::Text(Some(value.clone()))
    }
}

impl From<usize> for Arg {
    fn from(value: usize) -> Self {
        Self::Int(i64::try_from(value).ok())
    }
}
