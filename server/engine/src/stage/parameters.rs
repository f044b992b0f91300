//! The parameters of a stage, read with the defaults of its table.

use loupe_wire::{Object, Value};

use super::schema::{Kind, Member};
use crate::template::has_template;

/// Parameters that [`super::schema::check`] has passed: what is missing has the default that the table tells.
pub(crate) struct Parameters {
    members: &'static [Member],
    given: Object,
}

impl Parameters {
    pub fn new(members: &'static [Member], given: Object) -> Self {
        Self { members, given }
    }

    pub fn get(&self, name: &str) -> Option<Value> {
        let given = self.given.get(name).filter(|value| !value.is_null());
        given.cloned().or_else(|| {
            let member = self.members.iter().find(|m| m.name == name)?;
            let default: Option<Value> = serde_json::from_str(member.default).ok();
            // A default that had to be rendered, and gave nothing, is nothing.
            default.filter(|d| {
                matches!(
                    member.kind,
                    Kind::Template | Kind::Templates | Kind::Verbatim
                ) || !has_template(d)
            })
        })
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)
            .and_then(|value| value.as_str().map(str::to_owned))
    }

    /// A text that the table gives a default.
    pub fn word(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name).as_ref().and_then(Value::as_f64)
    }

    pub fn count(&self, name: &str) -> Option<usize> {
        let whole = self.get(name).as_ref().and_then(Value::as_u64);
        whole.and_then(|n| usize::try_from(n).ok())
    }

    pub fn flag(&self, name: &str) -> bool {
        self.get(name).as_ref().and_then(Value::as_bool) == Some(true)
    }

    pub fn texts(&self, name: &str) -> Vec<String> {
        match self.get(name) {
            Some(Value::Array(items)) => items
                .iter()
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect(),
            _ => Vec::new(),
        }
    }

    pub fn map(&self, name: &str) -> Option<Object> {
        match self.get(name) {
            Some(Value::Object(object)) => Some(object),
            _ => None,
        }
    }

    /// The members of a list of objects, each with the defaults of its own table.
    pub fn objects(&self, name: &str) -> Vec<Parameters> {
        let table = self.members.iter().find(|m| m.name == name);
        let members = match table.map(|m| &m.kind) {
            Some(Kind::Objects(members, _)) => *members,
            _ => &[],
        };
        match self.get(name) {
            Some(Value::Array(items)) => items
                .into_iter()
                .filter_map(|item| match item {
                    Value::Object(object) => Some(Parameters::new(members, object)),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// An object with a table of its own; where it was not given, all its defaults.
    pub fn object(&self, name: &str) -> Parameters {
        let table = self.members.iter().find(|m| m.name == name);
        let members = match table.map(|m| &m.kind) {
            Some(Kind::Object(members)) => *members,
            _ => &[],
        };
        Parameters::new(members, self.map(name).unwrap_or_default())
    }
}
