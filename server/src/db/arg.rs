//! Arguments of statements, typed so that NULL has a type on PostgreSQL.

use serde::Serialize;
use serde_json::{Value, value::RawValue};

use crate::error::{ApiError, Result};

pub type Args = Vec<Arg>;

/// One argument. Every case carries an option, because PostgreSQL wants to know the type of a NULL.
#[derive(Debug, Clone)]
pub enum Arg {
    Int(Option<i64>),
    Real(Option<f64>),
    Text(Option<String>),
    Bool(Option<bool>),
    Bytes(Option<Vec<u8>>),
    Json(Option<Box<RawValue>>),
}

impl Arg {
    /// A wire type or any other value as JSON.
    pub fn json(value: &impl Serialize) -> Self {
        Self::Json(serde_json::value::to_raw_value(value).ok())
    }

    /// Whether a database keeps it. PostgreSQL has U+0000 in no text, nor escaped in JSON, and what one database refuses the other one
    /// does not keep.
    pub fn is_kept(&self) -> bool {
        match self {
            Self::Text(Some(text)) => !text.contains('\0'),
            Self::Json(Some(json)) => {
                let json = json.get();
                // Behind an odd number of backslashes it is no escape, but the text of one.
                let is_escape = |(at, _): (usize, &str)| {
                    let before = json.as_bytes()[..at].iter().rev();
                    before.take_while(|byte| **byte == b'\\').count() % 2 == 0
                };
                !json.match_indices("\\u0000").any(is_escape)
            }
            _ => true,
        }
    }
}

/// Refuses what no database keeps, before a transaction that other things are written in finds it.
///
/// # Errors
/// 400 for U+0000 in a text.
pub fn check_kept(value: &impl Serialize) -> Result<()> {
    match Arg::json(value).is_kept() {
        true => Ok(()),
        false => Err(ApiError::nul()),
    }
}

/// A text as the pattern of `LIKE … ESCAPE '!'` that means just this text.
pub fn verbatim(text: &str) -> String {
    let escape = |c| matches!(c, '!' | '%' | '_').then_some('!');
    text.chars()
        .flat_map(|c| escape(c).into_iter().chain([c]))
        .collect()
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

from!(i64 => Int, i32 => Int, u32 => Int, f64 => Real, String => Text, &str => Text, bool => Bool, Vec<u8> => Bytes);

impl From<Value> for Arg {
    fn from(value: Value) -> Self {
        Self::json(&value)
    }
}

impl From<Option<Value>> for Arg {
    fn from(value: Option<Value>) -> Self {
        value.map_or(Self::Json(None), Self::from)
    }
}

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
