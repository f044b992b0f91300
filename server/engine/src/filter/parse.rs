//! From the JSON of a request to the tree.

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::{
    Condition, Filter, FilterError, MAX_CONDITIONS, MAX_DEPTH, MAX_MEMBERS, MAX_REGEX_BYTES,
    Operator, dynamic_input,
    matches::{Shape, words_of},
};

/// Compiled size of a regular expression, in bytes: a pattern that needs more is refused, not run.
const REGEX_PROGRAM_BYTES: usize = 256 << 10;

pub(super) fn parse(value: &Value) -> Result<Filter, FilterError> {
    let mut parser = Parser {
        conditions: 0,
        loc: Vec::new(),
    };
    let Value::Object(object) = value else {
        return Err(parser.error("a filter is an object"));
    };
    parser.node(object, None, 0)
}

struct Parser {
    conditions: usize,
    loc: Vec<String>,
}

impl Parser {
    fn error(&self, msg: impl Into<String>) -> FilterError {
        FilterError {
            loc: self.loc.clone(),
            msg: msg.into(),
        }
    }

    fn inside<T>(
        &mut self,
        step: impl Into<String>,
        work: impl FnOnce(&mut Self) -> Result<T, FilterError>,
    ) -> Result<T, FilterError> {
        self.loc.push(step.into());
        let done = work(self);
        if done.is_ok() {
            self.loc.pop();
        }
        done
    }

    fn node(
        &mut self,
        object: &Map<String, Value>,
        case: Option<bool>,
        depth: usize,
    ) -> Result<Filter, FilterError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("filters may be nested {MAX_DEPTH} deep at most")));
        }
        let case = match object.get("case_sensitive") {
            Some(Value::Bool(b)) => Some(*b),
            Some(Value::Null) | None => case,
            Some(_) => {
                return self.inside("case_sensitive", |p| Err(p.error("must be true or false")));
            }
        };
        if object.get("field").is_some_and(Value::is_string)
            && (object.contains_key("operator") || object.contains_key("value"))
        {
            return self.leaf(object, case);
        }
        let mut all = Vec::new();
        for (key, value) in object {
            let parsed = match key.as_str() {
                "case_sensitive" => None,
                "AND" | "$and" => self
                    .inside(key, |p| p.members(value, case, depth))?
                    .map(Filter::All),
                "OR" | "$or" => self
                    .inside(key, |p| p.members(value, case, depth))?
                    .map(Filter::Any),
                "NOT" | "$not" => self
                    .inside(key, |p| p.members(value, case, depth))?
                    .map(Filter::None),
                "and" | "or" | "not" => {
                    let msg = format!("`{key}` is written `{}`", key.to_uppercase());
                    return self.inside(key, |p| Err(p.error(msg)));
                }
                _ => Some(self.inside(key, |p| p.shorthand(key, value, case))?),
            };
            all.extend(parsed);
        }
        // A lone AND is that AND: the tree keeps the shape that was sent.
        Ok(if all.len() == 1 {
            all.remove(0)
        } else {
            Filter::All(all)
        })
    }

    /// The members of a node, or nothing for an empty list: an empty group of a form is no condition at all.
    fn members(
        &mut self,
        value: &Value,
        case: Option<bool>,
        depth: usize,
    ) -> Result<Option<Vec<Filter>>, FilterError> {
        let mut list = Vec::new();
        match value {
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    let member = self.inside(i.to_string(), |p| match item {
                        Value::Object(object) => p.node(object, case, depth + 1),
                        _ => Err(p.error("a condition is an object")),
                    })?;
                    list.push(member);
                }
            }
            Value::Object(object) => list.push(self.node(object, case, depth + 1)?),
            Value::Null => {}
            _ => return Err(self.error("must be a list of conditions")),
        }
        Ok((!list.is_empty()).then_some(list))
    }

    fn leaf(
        &mut self,
        object: &Map<String, Value>,
        case: Option<bool>,
    ) -> Result<Filter, FilterError> {
        const KNOWN: [&str; 4] = ["field", "operator", "value", "case_sensitive"];
        if let Some(unknown) = object.keys().find(|k| !KNOWN.contains(&k.as_str())) {
            let msg = format!("a condition has only the members {}", KNOWN.join(", "));
            return self.inside(unknown, |p| Err(p.error(msg)));
        }
        let operator = match object.get("operator") {
            None | Some(Value::Null) => Operator::Eq,
            Some(Value::String(word)) => match Operator::from_word(word) {
                Some(operator) => operator,
                None => {
                    let known = Operator::ALL.map(Operator::word).join(", ");
                    let msg = format!("`{word}` is no operator; the operators are {known}");
                    return self.inside("operator", |p| Err(p.error(msg)));
                }
            },
            Some(_) => {
                return self.inside("operator", |p| {
                    Err(p.error("must be the word of an operator"))
                });
            }
        };
        let field = object
            .get("field")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let value = match (object.get("value"), operator) {
            (Some(value), _) => value.clone(),
            (None, Operator::Exists | Operator::IsNull) => Value::Bool(true),
            (None, _) => return self.inside("value", |p| Err(p.error("is missing"))),
        };
        self.condition(field, operator, value, case)
    }

    fn shorthand(
        &mut self,
        field: &str,
        value: &Value,
        case: Option<bool>,
    ) -> Result<Filter, FilterError> {
        if dynamic_input(value).is_some() {
            return self.condition(field, Operator::Eq, value.clone(), case);
        }
        match value {
            Value::Array(_) => self.condition(field, Operator::In, value.clone(), case),
            Value::Object(forms) if forms.keys().any(|k| k.starts_with('$')) => {
                let mut all = Vec::new();
                for (form, operand) in forms {
                    let word = form.strip_prefix('$').unwrap_or_default();
                    all.push(self.inside(form, |p| match Operator::from_word(word) {
                        Some(operator) => p.condition(field, operator, operand.clone(), case),
                        None => Err(p.error(
                            "is no operator; write $ and an operator's word, such as $in or $gte",
                        )),
                    })?);
                }
                Ok(if all.len() == 1 {
                    all.remove(0)
                } else {
                    Filter::All(all)
                })
            }
            _ => self.condition(field, Operator::Eq, value.clone(), case),
        }
    }

    fn condition(
        &mut self,
        field: &str,
        operator: Operator,
        value: Value,
        case: Option<bool>,
    ) -> Result<Filter, FilterError> {
        self.conditions += 1;
        if self.conditions > MAX_CONDITIONS {
            return Err(self.error(format!("a filter has {MAX_CONDITIONS} conditions at most")));
        }
        if field.is_empty() || field.len() > 255 || field.split('.').any(str::is_empty) {
            return Err(self.error("a field is a dot path of 1 to 255 characters"));
        }
        // Templates and dynamic values are checked once they are resolved.
        let open =
            dynamic_input(&value).is_some() || value.as_str().is_some_and(|s| s.contains("{{"));
        if !open {
            check_value(operator, &value).map_err(|msg| self.error(msg))?;
        }
        let case_sensitive = case.unwrap_or_else(|| operator.case_sensitive_default());
        Ok(Filter::Leaf(Condition {
            field: field.to_owned(),
            operator,
            value,
            case_sensitive,
        }))
    }
}

/// Whether the operator can work with the value; the message names what it takes.
pub(super) fn check_value(operator: Operator, value: &Value) -> Result<(), String> {
    let word = operator.word();
    match operator {
        Operator::Eq | Operator::Ne => Ok(()),
        Operator::In | Operator::Nin => match value {
            Value::Array(list) if list.len() <= MAX_MEMBERS => Ok(()),
            Value::Array(_) => Err(format!(
                "the list of `{word}` has {MAX_MEMBERS} members at most"
            )),
            _ => Err(format!("`{word}` takes a list")),
        },
        Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => match value {
            Value::Number(_) | Value::String(_) => Ok(()),
            _ => Err(format!("`{word}` takes a number, a moment or a text")),
        },
        Operator::Contains => match value {
            Value::Array(_) | Value::Object(_) | Value::Null => {
                Err(format!("`{word}` takes one text, number or boolean"))
            }
            _ => Ok(()),
        },
        Operator::Exists | Operator::IsNull => match value {
            Value::Bool(_) => Ok(()),
            _ => Err(format!("`{word}` takes true or false")),
        },
        Operator::StartsWith | Operator::EndsWith | Operator::Text => match value {
            Value::String(_) => Ok(()),
            _ => Err(format!("`{word}` takes a text")),
        },
        Operator::Phrase | Operator::Words => match value {
            Value::String(text) if !words_of(text).is_empty() => Ok(()),
            _ => Err(format!("`{word}` takes a text of one word or more")),
        },
        Operator::Regex => match value {
            Value::String(pattern) => compile_regex(pattern, true).map(|_| ()),
            _ => Err("`regex` takes a regular expression".to_owned()),
        },
        Operator::GeoRadius | Operator::GeoBoundingBox | Operator::GeoPolygon => {
            Shape::parse(operator, value).map(|_| ())
        }
    }
}

/// Compiles within the limits of size; the engine runs in linear time.
pub(super) fn compile_regex(pattern: &str, case_sensitive: bool) -> Result<regex::Regex, String> {
    if pattern.len() > MAX_REGEX_BYTES {
        return Err(format!(
            "a regular expression has {MAX_REGEX_BYTES} bytes at most"
        ));
    }
    RegexBuilder::new(pattern)
        .case_insensitive(!case_sensitive)
        .size_limit(REGEX_PROGRAM_BYTES)
        .dfa_size_limit(1 << 20)
        .nest_limit(50)
        .build()
        .map_err(|e| match e {
            regex::Error::CompiledTooBig(_) => {
                "the regular expression is too large when compiled".to_owned()
            }
            other => {
                let text = other.to_string();
                let reason = text
                    .lines()
                    .last()
                    .unwrap_or("it cannot be read")
                    .trim_start_matches("error: ");
                format!("the regular expression is not valid: {reason}")
            }
        })
}
