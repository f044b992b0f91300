//! A language model behind an OpenAI-compatible `/chat/completions`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use loupe_wire::reading;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

use super::http::{Call, check_address};
use super::{EmbedError, Result};

/// Bytes of one answer.
const MOST: usize = 4 << 20;
/// Characters of a text that are sent.
const MOST_CHARACTERS: usize = 60_000;

/// The endpoint of a language model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Language {
    /// The address up to, and without, `/chat/completions`.
    pub url: String,
    pub model: String,
    #[serde(default)]
    pub api_key: Option<SecretString>,
    /// Whose models these are, as stages name it: `openai`, `google`, `anthropic`, `typesafe`.
    #[serde(default)]
    pub provider: Option<String>,
    /// It looks at pictures too.
    #[serde(default)]
    pub pictures: bool,
    #[serde(default = "default_timeout")]
    pub timeout_seconds: u64,
}

fn default_timeout() -> u64 {
    120
}

/// What a model is asked.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// What to do, as the server says it.
    pub task: String,
    /// What to do it on, as strangers wrote it.
    pub text: String,
    /// JPEGs.
    pub pictures: Vec<Bytes>,
    /// A JSON schema of the answer; absent: words.
    pub shape: Option<Value>,
    /// Another model of the same endpoint.
    pub model: Option<String>,
    pub temperature: f64,
    pub most_tokens: Option<i64>,
    /// How much it is to think first: `minimal`, `low`, `medium`, `high`; as it does by itself where absent.
    pub effort: Option<String>,
    /// The asker's own key, in the place of the server's.
    pub key: Option<SecretString>,
}

/// Asks one model.
pub struct LanguageModel {
    config: Language,
    client: reqwest::Client,
}

/// The tokens of one answer, as its endpoint counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
}

impl Usage {
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// As the endpoint tells it; models of others have other names for the same.
    fn told(usage: &Value) -> Option<Self> {
        let figure = |names: [&str; 2]| {
            let mut found = names.into_iter().filter_map(|name| usage.get(name));
            found.find_map(Value::as_u64)
        };
        Some(Self {
            input: figure(["prompt_tokens", "input_tokens"])?,
            output: figure(["completion_tokens", "output_tokens"])?,
        })
    }
}

/// What a model said, and the tokens of it: none where its endpoint does not count them, no token where it did not answer at all.
#[derive(Debug)]
pub struct Answered<T> {
    pub said: Result<T>,
    pub used: Option<Usage>,
}

impl<T> Answered<T> {
    fn and_then<U>(self, read: impl FnOnce(T) -> Result<U>) -> Answered<U> {
        Answered {
            said: self.said.and_then(read),
            used: self.used,
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Called>>,
}

#[derive(Deserialize)]
struct Called {
    #[serde(default)]
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: String,
}

/// One turn of a talk in which the model may call tools.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// What was said so far, as the endpoint takes it.
    pub messages: Vec<Value>,
    /// The tools, as the endpoint takes them.
    pub tools: Vec<Value>,
    /// The tool that has to be called.
    pub must: Option<&'static str>,
    /// Another model of the same endpoint.
    pub model: Option<String>,
    pub temperature: f64,
    pub most_tokens: u64,
    /// The asker's own key, in the place of the server's.
    pub key: Option<SecretString>,
}

/// What the model said: words, calls of tools, or both.
#[derive(Debug, Clone, Default)]
pub struct Said {
    pub words: String,
    pub calls: Vec<ToolCall>,
}

/// A tool that the model calls.
#[derive(Debug, Clone)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON, as far as the model wrote any.
    pub arguments: String,
}

impl LanguageModel {
    pub fn new(config: Language, client: reqwest::Client) -> Result<Self> {
        check_address(&config.url, "the language model")?;
        Ok(Self { config, client })
    }

    pub fn sees_pictures(&self) -> bool {
        self.config.pictures
    }

    /// Whose models these are, where the server was told.
    pub fn provider(&self) -> Option<&str> {
        self.config.provider.as_deref()
    }

    /// The answer in words.
    pub async fn words(&self, question: &Question) -> Result<String> {
        self.counted_words(question).await.said
    }

    /// The answer in words, with its tokens.
    pub async fn counted_words(&self, question: &Question) -> Answered<String> {
        let answered = self.ask(&self.body(question), question.key.as_ref()).await;
        answered.and_then(|(address, message)| {
            let content = message.and_then(|message| message.content);
            content.ok_or_else(|| EmbedError::Failed(format!("{address} answered without words")))
        })
    }

    /// The next turn of a talk.
    pub async fn turn(&self, turn: &Turn) -> Answered<Said> {
        let mut body = json!({
            "model": turn.model.as_ref().unwrap_or(&self.config.model),
            "temperature": turn.temperature, "max_tokens": turn.most_tokens,
            "messages": turn.messages, "tools": turn.tools,
        });
        if let Some(name) = turn.must {
            body["tool_choice"] = json!({"type": "function", "function": {"name": name}});
        }
        let answered = self.ask(&body, turn.key.as_ref()).await;
        answered.and_then(|(address, message)| {
            let message = message.ok_or_else(|| {
                EmbedError::Failed(format!("{address} answered without a message"))
            })?;
            let call = |called: Called| ToolCall {
                id: called.id,
                name: called.function.name,
                arguments: called.function.arguments,
            };
            Ok(Said {
                words: message.content.unwrap_or_default(),
                calls: message.tool_calls.into_iter().flatten().map(call).collect(),
            })
        })
    }

    /// The first message of the answer, and the address that gave it.
    async fn ask(
        &self,
        body: &Value,
        key: Option<&SecretString>,
    ) -> Answered<(String, Option<Message>)> {
        let address = format!("{}/chat/completions", self.config.url.trim_end_matches('/'));
        let call = Call {
            address: &address,
            key: key.or(self.config.api_key.as_ref()),
            timeout: Duration::from_secs(self.config.timeout_seconds),
            most: MOST,
        };
        let body = body.to_string().into();
        let answer = match call.post(&self.client, "application/json", body).await {
            Ok(answer) => answer,
            Err(error) => {
                return Answered {
                    said: Err(error),
                    used: Some(Usage::default()),
                };
            }
        };
        match reading::from_slice::<Answer>(&answer) {
            Ok(answer) => {
                let first = answer.choices.into_iter().next();
                Answered {
                    said: Ok((address, first.map(|choice| choice.message))),
                    used: Usage::told(&answer.usage),
                }
            }
            Err(error) => Answered {
                said: Err(EmbedError::Failed(format!(
                    "the answer of {address} is not understood: {error}"
                ))),
                used: None,
            },
        }
    }

    /// The answer as a JSON object.
    pub async fn object(&self, question: &Question) -> Result<loupe_wire::Object> {
        self.counted_object(question).await.said
    }

    /// The answer as a JSON object, with its tokens.
    pub async fn counted_object(&self, question: &Question) -> Answered<loupe_wire::Object> {
        self.counted_words(question).await.and_then(|words| {
            object_in(&words).ok_or_else(|| {
                EmbedError::Failed(
                    "the language model did not answer with a JSON object".to_owned(),
                )
            })
        })
    }

    fn body(&self, question: &Question) -> Value {
        let text: String = question.text.chars().take(MOST_CHARACTERS).collect();
        let content = if question.pictures.is_empty() {
            json!(text)
        } else {
            let pictures = question.pictures.iter().map(|jpeg| {
                let packed = STANDARD.encode(jpeg);
                json!({"type": "image_url", "image_url": {"url": format!("data:image/jpeg;base64,{packed}")}})
            });
            std::iter::once(json!({"type": "text", "text": text}))
                .chain(pictures)
                .collect()
        };
        let mut body = json!({
            "model": question.model.as_ref().unwrap_or(&self.config.model),
            "temperature": question.temperature,
            "messages": [
                {"role": "system", "content": question.task},
                {"role": "user", "content": content},
            ],
        });
        if let Some(most) = question.most_tokens {
            body["max_tokens"] = json!(most);
        }
        if let Some(effort) = &question.effort {
            body["reasoning_effort"] = json!(effort);
        }
        if let Some(shape) = &question.shape {
            body["response_format"] = json!({
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": shape, "strict": false},
            });
        }
        body
    }
}

/// The JSON object in what a model said: small models wrap it into marks of code or a sentence.
pub fn object_in(words: &str) -> Option<loupe_wire::Object> {
    let (from, to) = words.find('{').zip(words.rfind('}'))?;
    match serde_json::from_str(words.get(from..=to)?) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_tell_their_tokens_by_either_name() {
        let told = |usage: Value| Usage::told(&usage).map(Usage::total);
        assert_eq!(
            told(json!({"prompt_tokens": 3, "completion_tokens": 4})),
            Some(7)
        );
        assert_eq!(
            told(json!({"input_tokens": 3, "output_tokens": 4})),
            Some(7)
        );
        assert_eq!(told(json!({"prompt_tokens": 3})), None);
        assert_eq!(told(Value::Null), None);
    }
}
