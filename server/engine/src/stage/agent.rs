//! A language model that works with tools: turn by turn it calls some, is told what they give, and ends by calling the one
//! that takes its answer. Turns, time and tokens are bounded, and the tools read only what the execution may read.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use indexmap::IndexMap;
use loupe_wire::{Object, Value};
use secrecy::SecretString;
use serde_json::json;
use tokio::time::Instant;

use super::execution::Execution;
use super::working::Row;
use super::{RunError, language, toolbox::Toolbox};
use crate::embed::{EmbedError, Said, Turn, object_in};

/// Tokens of one answer.
const ANSWER_TOKENS: u64 = 1_500;
/// Calls of one turn that are answered.
const MOST_CALLS: usize = 8;
/// Characters that a tool tells.
const MOST_TOLD: usize = 12_000;

/// Why an agent stopped.
#[derive(Debug)]
pub(crate) enum Ended {
    Answered,
    /// All turns were taken.
    Turns,
    /// The time ran out.
    Time,
    Failed(EmbedError),
}

/// One agent at work.
#[derive(Default)]
pub(crate) struct Agent {
    messages: Vec<Value>,
    /// The document that it works on.
    pub row: Option<Row>,
    /// Documents that tools have shown it, by id.
    pub found: IndexMap<String, Row>,
    pub answer: Option<Object>,
    pub ended: Option<Ended>,
    pub turns: usize,
    /// What it called: `{tool, arguments, gave}`.
    pub trace: Vec<Value>,
}

impl Agent {
    pub fn new(task: &str, material: &str, row: Option<Row>) -> Self {
        Self {
            messages: vec![
                json!({"role": "system", "content": task}),
                json!({"role": "user", "content": material}),
            ],
            row,
            ..Self::default()
        }
    }

    fn tell(&mut self, text: String) {
        self.messages.push(json!({"role": "user", "content": text}));
    }

    fn characters(&self) -> usize {
        self.messages.iter().map(|one| one.to_string().len()).sum()
    }
}

/// The bounds of agents that work together, and what their answer has to be.
pub(crate) struct Bounds {
    pub turns: usize,
    pub time: Duration,
    pub model: Option<String>,
    /// The organization's own, in the place of the server's.
    pub key: Option<SecretString>,
    pub temperature: f64,
    /// The tool that takes the answer.
    pub finish: &'static str,
    pub about: &'static str,
    /// The JSON schema of the answer.
    pub shape: Value,
}

/// Lets agents work until each has ended: their turns side by side, their tools one after the other.
pub(crate) async fn work(
    at: &mut Execution,
    tools: &Toolbox,
    bounds: &Bounds,
    agents: &mut [Agent],
) -> Result<(), RunError> {
    let model = language::model(at)?;
    let deadline = Instant::now() + bounds.time;
    let mut offered = tools.offered();
    offered.push(json!({"type": "function", "function": {
        "name": bounds.finish, "description": bounds.about, "parameters": bounds.shape}}));
    for number in 1..=bounds.turns {
        let open: Vec<usize> = (0..agents.len())
            .filter(|place| agents[*place].ended.is_none())
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let tokens = |place: &usize| agents[*place].characters() as u64 / 4 + ANSWER_TOKENS;
        let taken = language::take_all(at, open.iter().map(tokens))?;
        let turn = |place: &usize| Turn {
            messages: agents[*place].messages.clone(),
            tools: offered.clone(),
            must: (number == bounds.turns).then_some(bounds.finish),
            model: bounds.model.clone(),
            key: bounds.key.clone(),
            temperature: bounds.temperature,
            most_tokens: ANSWER_TOKENS,
        };
        let turns: Vec<Turn> = open.iter().map(turn).collect();
        let said = at.away(join_all(turns.iter().map(|turn| model.turn(turn))));
        let Ok(said) = tokio::time::timeout_at(deadline, said).await else {
            at.back().await;
            end(agents, || Ended::Time);
            return Ok(());
        };
        for ((place, answered), taken) in open.into_iter().zip(said).zip(taken) {
            language::settle(at, taken, answered.used);
            match answered.said {
                Err(error) => agents[place].ended = Some(Ended::Failed(error)),
                Ok(said) => take(at, tools, bounds, deadline, &mut agents[place], said).await?,
            }
        }
        if Instant::now() >= deadline {
            end(agents, || Ended::Time);
        }
    }
    end(agents, || Ended::Turns);
    Ok(())
}

fn end(agents: &mut [Agent], why: impl Fn() -> Ended) {
    for agent in agents.iter_mut().filter(|agent| agent.ended.is_none()) {
        agent.ended = Some(why());
    }
}

/// Does what the model said.
async fn take(
    at: &mut Execution,
    tools: &Toolbox,
    bounds: &Bounds,
    deadline: Instant,
    agent: &mut Agent,
    said: Said,
) -> Result<(), RunError> {
    agent.turns += 1;
    if said.calls.is_empty() {
        take_words(bounds, agent, &said.words);
        return Ok(());
    }
    let calls: Vec<_> = said.calls.into_iter().take(MOST_CALLS).collect();
    let told: Vec<Value> = calls
        .iter()
        .map(|call| {
            json!({"id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": call.arguments}})
        })
        .collect();
    agent
        .messages
        .push(json!({"role": "assistant", "content": said.words, "tool_calls": told}));
    for call in calls {
        let arguments = object_in(&call.arguments).unwrap_or_default();
        let gave = if call.name == bounds.finish {
            match conforms(&bounds.shape, &json!(arguments)) {
                Ok(()) => {
                    answered(agent, arguments);
                    return Ok(());
                }
                Err(fault) => Err(fault),
            }
        } else {
            let gave = tools.call(at, agent, &call.name, &arguments);
            let Ok(gave) = tokio::time::timeout_at(deadline, gave).await else {
                at.back().await;
                agent.ended = Some(Ended::Time);
                return Ok(());
            };
            match gave {
                Ok(value) => Ok(value),
                Err(RunError::Invalid(reason) | RunError::Away(reason)) => Err(reason),
                Err(error) => return Err(error),
            }
        };
        agent.trace.push(json!({"tool": call.name, "arguments": arguments,
            "error": gave.as_ref().err(), "found": gave.as_ref().ok().and_then(Value::as_array).map(Vec::len)}));
        let text = match gave {
            Ok(value) => value.to_string(),
            Err(reason) => format!("error: {reason}"),
        };
        let text: String = text.chars().take(MOST_TOLD).collect();
        agent
            .messages
            .push(json!({"role": "tool", "tool_call_id": call.id, "content": text}));
    }
    Ok(())
}

/// Models without a hand for tools write their answer down.
fn take_words(bounds: &Bounds, agent: &mut Agent, words: &str) {
    match object_in(words).map(|object| (conforms(&bounds.shape, &json!(object)), object)) {
        Some((Ok(()), object)) => answered(agent, object),
        _ => {
            agent
                .messages
                .push(json!({"role": "assistant", "content": words}));
            agent.tell(format!("Call a tool; `{}` ends the work.", bounds.finish));
        }
    }
}

fn answered(agent: &mut Agent, answer: Object) {
    agent.answer = Some(answer);
    agent.ended = Some(Ended::Answered);
}

/// Whether a value has the shape, as far as its types, its required members and its choices go.
pub(crate) fn conforms(shape: &Value, value: &Value) -> Result<(), String> {
    let kinds: Vec<&str> = match shape.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    };
    if !kinds.is_empty() && !kinds.iter().any(is) {
        return Err(format!("must be {}", kinds.join(" or ")));
    }
    if let Some(Value::Array(choices)) = shape.get("enum")
        && !choices.contains(value)
    {
        return Err(format!("must be one of {}", json!(choices)));
    }
    if let Some(object) = value.as_object() {
        let required = shape.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                return Err(format!("`{name}` is missing"));
            }
        }
        let properties = shape.get("properties").and_then(Value::as_object);
        for (name, inner) in properties.into_iter().flatten() {
            if let Some(member) = object.get(name) {
                conforms(inner, member).map_err(|fault| format!("`{name}`: {fault}"))?;
            }
        }
    }
    if let (Some(items), Some(inner)) = (value.as_array(), shape.get("items")) {
        for item in items {
            conforms(inner, item).map_err(|fault| format!("an item {fault}"))?;
        }
    }
    Ok(())
}

/// A schema of an object: one that lists members by name alone is taken for its properties.
pub(crate) fn object_shape(written: Object) -> Value {
    if written.contains_key("properties") || written.contains_key("$ref") {
        let mut shape = Value::Object(written);
        shape["type"] = json!("object");
        return shape;
    }
    let properties: HashMap<String, Value> = written
        .into_iter()
        .map(|(name, inner)| match inner {
            Value::String(kind) => (name, json!({"type": kind})),
            inner => (name, inner),
        })
        .collect();
    let mut required: Vec<&String> = properties.keys().collect();
    required.sort();
    json!({"type": "object", "required": required, "properties": properties})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_held_against_their_shape() {
        let shape = object_shape(
            json!({"label": {"type": "string", "enum": ["a", "b"]}, "sure": "number"})
                .as_object()
                .cloned()
                .unwrap_or_default(),
        );
        assert_eq!(
            conforms(&shape, &json!({"label": "a", "sure": 0.5})),
            Ok(())
        );
        let fault = |value| conforms(&shape, &value).err().unwrap_or_default();
        assert_eq!(fault(json!({"label": "a"})), "`sure` is missing");
        assert!(fault(json!({"label": "c", "sure": 1})).contains("one of"));
        assert_eq!(
            fault(json!({"label": "a", "sure": "x"})),
            "`sure`: must be number"
        );
        let list = json!({"type": "array", "items": {"type": ["integer", "null"]}});
        assert_eq!(conforms(&list, &json!([1, null])), Ok(()));
        assert!(conforms(&list, &json!([1.5])).is_err());
    }
}
