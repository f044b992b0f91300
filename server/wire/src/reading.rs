//! JSON read into types, in one way for bodies, rows of the database, files and answers of others.
//!
//! Everything passes through one deserializer over parsed JSON, so that each type's reader is compiled once; it knows
//! where it stands, and can tell the keys that no type asked for.

mod parts;
mod reader;
#[cfg(test)]
mod tests;

use std::{cell::RefCell, fmt};

use serde::{
    Serialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;

use reader::{Place, Reader, Unknown};

/// Why JSON is not what a type expects, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Members and positions from the outside in; empty for the value itself.
    pub path: Vec<String>,
    /// Such as ``invalid type: string "x", expected i64`` or ``missing field `name` ``.
    pub message: String,
    placed: bool,
}

impl Fault {
    /// The innermost place that a fault passes is its own.
    fn at(mut self, place: &Place<'_>) -> Self {
        if !self.placed {
            self.placed = true;
            self.path = place.path();
        }
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.path.is_empty() {
            return Ok(());
        }
        write!(f, " at {}", self.path.join("."))
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for std::io::Error {
    fn from(fault: Fault) -> Self {
        Self::new(std::io::ErrorKind::InvalidData, fault)
    }
}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            path: Vec::new(),
            message: message.to_string(),
            placed: false,
        }
    }
}

/// Reads a type out of parsed JSON; keys that it does not have are passed over.
///
/// # Errors
/// What does not fit, and where.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, Fault> {
    read(value, None)
}

/// As [`from_value`], for the text of JSON.
///
/// # Errors
/// What is no JSON or does not fit, and where.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    from_slice(text.as_bytes())
}

/// As [`from_value`], for the bytes of JSON's text.
///
/// # Errors
/// What is no JSON or does not fit, and where.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    from_value(&serde_json::from_slice(bytes).map_err(Fault::custom)?)
}

/// One type as another that has its members.
///
/// # Errors
/// What cannot be written as JSON, or does not fit.
pub fn cast<T: DeserializeOwned>(value: &impl Serialize) -> Result<T, Fault> {
    from_value(&serde_json::to_value(value).map_err(Fault::custom)?)
}

/// As [`from_value`], with the paths of the first hundred keys that the type does not have.
///
/// # Errors
/// What does not fit, and where.
pub fn with_unknown_keys<T: DeserializeOwned>(
    value: &Value,
) -> Result<(T, Vec<Vec<String>>), Fault> {
    let unknown = RefCell::default();
    let read = read(value, Some(&unknown))?;
    Ok((read, unknown.into_inner()))
}

fn read<T: DeserializeOwned>(value: &Value, unknown: Option<&Unknown>) -> Result<T, Fault> {
    T::deserialize(Reader::new(value, unknown)).map_err(|fault| fault.at(&Place::Root))
}
