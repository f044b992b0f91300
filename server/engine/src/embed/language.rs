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

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
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
        let (address, message) = self
            .ask(&self.body(question), question.key.as_ref())
            .await?;
        let content = message.and_then(|message| message.content);
        content.ok_or_else(|| EmbedError::Failed(format!("{address} answered without words")))
    }

    /// The next turn of a talk.
    pub async fn turn(&self, turn: &Turn) -> Result<Said> {
        let mut body = json!({
            "model": turn.model.as_ref().unwrap_or(&self.config.model),
            "temperature": turn.temperature, "max_tokens": turn.most_tokens,
            "messages": turn.messages, "tools": turn.tools,
        });
        if let Some(name) = turn.must {
            body["tool_choice"] = json!({"type": "function", "function": {"name": name}});
        }
        let (address, message) = self.ask(&body, turn.key.as_ref()).await?;
        let message = message
            .ok_or_else(|| EmbedError::Failed(format!("{address} answered without a message")))?;
        let call = |called: Called| ToolCall {
            id: called.id,
            name: called.function.name,
            arguments: called.function.arguments,
        };
        Ok(Said {
            words: message.content.unwrap_or_default(),
            calls: message.tool_calls.into_iter().flatten().map(call).collect(),
        })
    }

    /// The first message of the answer, and the address that gave it.
    async fn ask(
        &self,
        body: &Value,
        key: Option<&SecretString>,
    ) -> Result<(String, Option<Message>)> {
        let address = format!("{}/chat/completions", self.config.url.trim_end_matches('/'));
        let call = Call {
            address: &address,
            key: key.or(self.config.api_key.as_ref()),
            timeout: Duration::from_secs(self.config.timeout_seconds),
            most: MOST,
        };
        let answer = call
            .post(&self.client, "application/json", body.to_string().into())
            .await?;
        let answer: Answer = reading::from_slice(&answer).map_err(|error| {
            EmbedError::Failed(format!(
                "the answer of {address} is not understood: {error}"
            ))
        })?;
        let first = answer.choices.into_iter().next();
        Ok((address, first.map(|choice| choice.message)))
    }

    /// The answer as a JSON object.
    pub async fn object(&self, question: &Question) -> Result<loupe_wire::Object> {
        object_in(&self.words(question).await?).ok_or_else(|| {
            EmbedError::Failed("the language model did not answer with a JSON object".to_owned())
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
