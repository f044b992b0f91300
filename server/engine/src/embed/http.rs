//! One request to a model's endpoint, repeated once when the trouble may pass.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use super::hub::explain;
use super::{EmbedError, Result};

/// The wait before the one retry, unless the endpoint names a shorter or longer one within reason.
pub(crate) const RETRY_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The code of a 429 that no waiting helps against.
const SPENT: &str = "insufficient_quota";

/// Where to, and how much may come back.
pub(super) struct Call<'a> {
    pub address: &'a str,
    pub key: Option<&'a SecretString>,
    pub timeout: Duration,
    /// Bytes of the answer.
    pub most: usize,
}

/// Why a request got no answer.
pub(crate) enum Trouble<E = EmbedError> {
    /// Perhaps gone after a while.
    Passing(String, Duration),
    Lasting(E),
}

impl Call<'_> {
    /// Sends the body, and once more after 429, 5xx or a broken connection; not where the account is what is wrong.
    pub async fn post(&self, client: &reqwest::Client, kind: &str, body: Bytes) -> Result<Vec<u8>> {
        match self.send(client, kind, body.clone()).await {
            Err(Trouble::Passing(_, wait)) => {
                tokio::time::sleep(wait).await;
                self.send(client, kind, body).await
            }
            other => other,
        }
        .map_err(|trouble| match trouble {
            Trouble::Passing(reason, _) => EmbedError::Failed(reason),
            Trouble::Lasting(error) => error,
        })
    }

    async fn send(
        &self,
        client: &reqwest::Client,
        kind: &str,
        body: Bytes,
    ) -> std::result::Result<Vec<u8>, Trouble> {
        let (address, most) = (self.address, self.most);
        let passing = |error: &reqwest::Error| -> Trouble {
            Trouble::Passing(format!("{address}: {}", explain(error)), RETRY_WAIT)
        };
        let mut request = client
            .post(address)
            .timeout(self.timeout)
            .header("content-type", kind)
            .body(body);
        if let Some(key) = self.key {
            request = request.bearer_auth(key.expose_secret());
        }
        let answer = request.send().await.map_err(|error| passing(&error))?;
        let status = answer.status();
        let wait = retry_after(answer.headers());
        let mut bytes = Vec::new();
        let mut stream = answer.bytes_stream();
        while let Some(part) = stream.next().await {
            bytes.extend_from_slice(&part.map_err(|error| passing(&error))?);
            if bytes.len() > most {
                let reason = format!("{address} answered with more than {most} bytes");
                return Err(Trouble::Lasting(EmbedError::Failed(reason)));
            }
        }
        if status.is_success() {
            return Ok(bytes);
        }
        let said = self.without_key(&String::from_utf8_lossy(&bytes));
        let said: String = said.chars().take(200).collect();
        let reason = format!("{address} answered {status}: {said}");
        Err(match status.as_u16() {
            401..=403 => Trouble::Lasting(EmbedError::Refused(reason)),
            429 if is_spent(&bytes) => Trouble::Lasting(EmbedError::Refused(reason)),
            429 | 500..=599 => Trouble::Passing(reason, wait),
            400 | 413 | 422 => Trouble::Lasting(EmbedError::Invalid(reason)),
            _ => Trouble::Lasting(EmbedError::Unavailable(reason)),
        })
    }
}

/// Keys are longer than this; what is shorter is a word that answers may well have.
const SHORTEST_KEY: usize = 8;

impl Call<'_> {
    /// What an endpoint says, without the key that it may repeat: what is told of a failure is read by others.
    fn without_key(&self, said: &str) -> String {
        match self.key {
            Some(key) if key.expose_secret().len() >= SHORTEST_KEY => {
                said.replace(key.expose_secret(), "[key]")
            }
            _ => said.to_owned(),
        }
    }
}

/// Whether a 429 means a balance that is used up, as OpenAI-compatible endpoints say it: waiting changes nothing.
fn is_spent(answer: &[u8]) -> bool {
    let Ok(answer) = serde_json::from_slice::<Value>(answer) else {
        return false;
    };
    let error = answer.get("error").unwrap_or(&answer);
    let says = |member: &str| error.get(member).and_then(Value::as_str) == Some(SPENT);
    says("code") || says("type")
}

/// How long an endpoint says to wait, within reason.
pub(crate) fn retry_after(headers: &reqwest::header::HeaderMap) -> Duration {
    let seconds = headers
        .get("retry-after")
        .and_then(|value| value.to_str().ok());
    let seconds = seconds.and_then(|text| text.trim().parse().ok());
    seconds.map_or(RETRY_WAIT, |seconds| {
        Duration::from_secs(seconds).min(LONGEST_WAIT)
    })
}

/// Refuses an address that is none, with the words for whoever configured it.
pub(super) fn check_address(url: &str, what: &str) -> Result<()> {
    let parsed = Url::parse(url);
    if parsed.is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
        return Ok(());
    }
    Err(EmbedError::Unavailable(format!(
        "the endpoint of {what} is misconfigured: the url must be one of http:// or https://"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_repeats_the_key_tells_nobody() {
        let key = SecretString::from("sk-a-long-key".to_owned());
        let call = |key| Call {
            address: "https://a.example",
            key,
            timeout: RETRY_WAIT,
            most: 1,
        };
        let said = "incorrect key: sk-a-long-key";
        assert_eq!(call(Some(&key)).without_key(said), "incorrect key: [key]");
        assert_eq!(call(None).without_key(said), said);
        let word = SecretString::from("key".to_owned());
        assert_eq!(call(Some(&word)).without_key(said), said);
    }
}
