//! Parameters as they were sent, read one by one, and where they were.

use loupe_wire::{Object, Value};

use super::config::fault;
use crate::error::{ApiError, Result};

/// Members of an object in the body.
pub(super) struct Params<'a> {
    pub path: Vec<String>,
    pub sent: &'a Object,
}

impl Params<'_> {
    pub fn refuse(&self, name: &str, kind: &str, msg: impl Into<String>) -> ApiError {
        let input = self.sent.get(name).cloned().unwrap_or_default();
        let path = self.path.iter().map(String::as_str).chain([name]);
        fault(&path.collect::<Vec<_>>(), kind, msg, input)
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.sent.get(name).filter(|value| !value.is_null())
    }

    pub fn whole(&self, name: &str, least: i64, most: i64) -> Result<Option<i64>> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        match value.as_i64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => {
                let msg = format!("a whole number from {least} to {most}");
                Err(self.refuse(name, "int_type", msg))
            }
        }
    }

    /// As [`Params::whole`], of what counts something.
    pub fn count(&self, name: &str, least: i64, most: i64) -> Result<Option<usize>> {
        let number = self.whole(name, least, most)?;
        Ok(number.and_then(|number| usize::try_from(number).ok()))
    }

    pub fn seed(&self) -> Result<u64> {
        let seed = self.whole("random_state", 0, i64::MAX)?;
        Ok(seed.unwrap_or(42).unsigned_abs())
    }

    pub fn number(&self, name: &str, least: f64, most: f64) -> Result<Option<f64>> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        match value.as_f64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => {
                let msg = format!("a number from {least} to {most}");
                Err(self.refuse(name, "float_type", msg))
            }
        }
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.refuse(name, "bool_type", "true or false")),
        }
    }

    pub fn word(&self, name: &str, words: &'static [&'static str]) -> Result<Option<&'static str>> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        let found = value
            .as_str()
            .and_then(|word| words.iter().find(|one| **one == word));
        match found {
            Some(word) => Ok(Some(*word)),
            None => Err(self.refuse(name, "enum", format!("one of {}", words.join(", ")))),
        }
    }

    /// Refuses members that the method does not have.
    pub fn only(&self, known: &[&str]) -> Result<()> {
        let mut sent = self.sent.iter().filter(|(_, value)| !value.is_null());
        match sent.find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => {
                let msg = format!("there is no such parameter: {}", known.join(", "));
                Err(self.refuse(name, "extra_forbidden", msg))
            }
            None => Ok(()),
        }
    }

    /// Refuses any value of a member but the one that holds anyway.
    pub fn always(&self, name: &str, holds: impl Into<Value>, msg: &str) -> Result<()> {
        let holds = holds.into();
        let is_it = |sent: &Value| {
            // 1 is 1.0.
            let numbers = sent.as_f64().zip(holds.as_f64());
            *sent == holds || numbers.is_some_and(|(sent, holds)| sent == holds)
        };
        match self.value(name) {
            Some(sent) if !is_it(sent) => Err(self.refuse(name, "not_enabled", msg)),
            _ => Ok(()),
        }
    }

    /// Refuses a member that this version has no use for.
    pub fn without(&self, name: &str, msg: &str) -> Result<()> {
        match self.value(name) {
            Some(Value::Object(sent)) if sent.is_empty() => Ok(()),
            Some(_) => Err(self.refuse(name, "not_enabled", msg)),
            None => Ok(()),
        }
    }
}
