//! S3 and what speaks its language, asked through the guarded client: an endpoint is an address that a caller aims.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{Stream, TryStreamExt};
use loupe_engine::web::WebError;
use loupe_wire::{Object, StorageProvider, Value};
use object_store::{
    ClientOptions, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig, StaticCredentialProvider,
    aws::{AmazonS3, AmazonS3Builder, AwsAuthorizer, AwsCredential},
    client::{HttpClient, HttpConnector, HttpRequestBody},
    path::Path as Key,
};
use url::Url;

use super::marking::{Marking, unmarked};
use crate::{
    error::{ApiError, Result, Violation},
    outbound::Outbound,
};

const TIGRIS: &str = "https://fly.storage.tigris.dev";

/// Members of credentials that are never told.
pub const SECRETS: [&str; 3] = ["secret_access_key", "session_token", "password"];

/// One call of the test, and one try of a file's head.
const PATIENCE: Duration = Duration::from_secs(10);

/// The code of a list that a storage does not give.
const REFUSED: &str = "storage_refused";

/// Whether a storage does not give its list.
pub fn is_refused(error: &ApiError) -> bool {
    error.has_code(REFUSED)
}

/// A configuration that was checked.
pub struct Access {
    endpoint: Url,
    region: String,
    credential: AwsCredential,
}

/// A file as the list of a bucket tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub size: u64,
    pub modified: DateTime<Utc>,
    /// Another one when the file has other bytes.
    pub version: String,
}

/// A file's head, and its bytes as they come.
pub struct Opened {
    pub size: u64,
    pub content_type: Option<String>,
    pub pieces: std::pin::Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>,
}

fn fault(path: &[&str], msg: impl Into<String>) -> ApiError {
    let path: Vec<&str> = std::iter::once("provider_config")
        .chain(path.iter().copied())
        .collect();
    Violation::body(&path, "value_error", msg, Value::Null).into()
}

pub fn text<'c>(members: &'c Object, name: &str) -> Option<&'c str> {
    let text = members.get(name).and_then(Value::as_str)?.trim();
    (!text.is_empty()).then_some(text)
}

impl Access {
    /// Reads a configuration whose secrets are open.
    ///
    /// # Errors
    /// A provider that this server does not connect to, a member that is missing or cannot be used.
    pub fn read(provider: StorageProvider, config: &Object, outbound: &Outbound) -> Result<Self> {
        let region = match provider {
            StorageProvider::S3 => "us-east-1",
            StorageProvider::Tigris => "auto",
            _ => {
                let msg = "this server connects to `s3` (and what speaks its language, by endpoint_url), `tigris` and `postgresql`";
                let fault = Violation::body(&["provider_type"], "value_error", msg, Value::Null);
                return Err(fault.into());
            }
        };
        let region = text(config, "region").unwrap_or(region).to_owned();
        if config.get("verify_ssl") == Some(&Value::Bool(false)) {
            return Err(fault(&["verify_ssl"], "certificates are always checked"));
        }
        let credentials = config.get("credentials").and_then(Value::as_object);
        let credentials = credentials.ok_or_else(|| fault(&["credentials"], "field required"))?;
        if text(credentials, "type").is_some_and(|kind| kind != "access_key") {
            let msg = "this server takes credentials of the type access_key";
            return Err(fault(&["credentials", "type"], msg));
        }
        let needed = |name: &str| {
            let found = text(credentials, name).map(ToOwned::to_owned);
            found.ok_or_else(|| fault(&["credentials", name], "field required"))
        };
        Ok(Self {
            endpoint: endpoint(provider, config, &region, outbound)?,
            credential: AwsCredential {
                key_id: needed("access_key_id")?,
                secret_key: needed("secret_access_key")?,
                token: text(credentials, "session_token").map(ToOwned::to_owned),
            },
            region,
        })
    }

    /// Whom the secrets are told, and as whose.
    pub fn told(&self) -> (&str, &str) {
        (self.endpoint.as_str(), &self.credential.key_id)
    }

    /// Asks for the list of buckets: the one call that needs no bucket.
    ///
    /// # Errors
    /// The storage cannot be reached or refuses the credentials, in words for who made the connection.
    pub async fn test(&self, outbound: &Outbound) -> Result<&'static str, String> {
        let request = http::Request::get(self.endpoint.as_str()).body(HttpRequestBody::empty());
        let mut request = request.map_err(|error| error.to_string())?;
        let signing = AwsAuthorizer::new(&self.credential, "s3", &self.region);
        let signed = signing.try_authorize(&mut request, None);
        signed.map_err(|error| error.to_string())?;
        let headers = std::mem::take(request.headers_mut());
        let mut ask = loupe_engine::web::Ask::get(self.endpoint.as_str());
        (ask.headers, ask.redirects, ask.timeout) = (headers, 0, PATIENCE);
        ask.max_bytes = 1 << 20;
        let answer = loupe_engine::web::Web::ask(outbound, ask).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let body = String::from_utf8_lossy(&answer.body);
        let code = body
            .split_once("<Code>")
            .and_then(|(_, rest)| rest.split_once("</Code>"))
            .map_or("", |(code, _)| code);
        match (answer.status.as_u16(), code) {
            (200, _) => Ok("the storage accepts the credentials"),
            // The key may be for single buckets only: it was known, and its signature right.
            (403, "AccessDenied") => {
                Ok("the storage knows the credentials; they may not list its buckets")
            }
            (status, "") => Err(format!("the storage answered {status}")),
            (status, code) => Err(format!("the storage answered {status} {code}")),
        }
    }

    /// One bucket.
    pub fn bucket(&self, outbound: &Outbound, name: &str) -> Result<AmazonS3> {
        let retry = RetryConfig {
            max_retries: 2,
            retry_timeout: PATIENCE,
            ..RetryConfig::default()
        };
        let credential = StaticCredentialProvider::new(AwsCredential {
            key_id: self.credential.key_id.clone(),
            secret_key: self.credential.secret_key.clone(),
            token: self.credential.token.clone(),
        });
        AmazonS3Builder::new()
            .with_bucket_name(name)
            .with_region(&self.region)
            .with_endpoint(self.endpoint.as_str().trim_end_matches('/'))
            .with_allow_http(true)
            .with_virtual_hosted_style_request(false)
            // Every store knows how to delete one file, few know how to delete many.
            .with_disable_bulk_delete(true)
            .with_credentials(Arc::new(credential))
            .with_retry(retry)
            .with_http_connector(Guarded(outbound.client().clone()))
            .build()
            .map_err(|error| ApiError::bad_request("", said(&error)))
    }

    /// The files of a bucket below a folder, in the order of their keys. Empty ones are left out: folders that storages list
    /// as files are among them.
    ///
    /// # Errors
    /// The folder is no beginning of a key; in the list, that the storage does not give it.
    pub fn list(
        &self,
        outbound: &Outbound,
        bucket: &str,
        folder: &str,
    ) -> Result<impl Stream<Item = Result<Entry>> + Send + use<>> {
        let folder = Key::parse(folder)
            .map_err(|_| ApiError::bad_request("", "this is no folder of a bucket"))?;
        let store = self.bucket(outbound, bucket)?;
        let entry = |meta: ObjectMeta| Entry {
            version: meta
                .e_tag
                .unwrap_or_else(|| format!("{}@{}", meta.size, meta.last_modified)),
            key: unmarked(meta.location.as_ref()),
            size: meta.size,
            modified: meta.last_modified,
        };
        let refused = |error| ApiError::bad_request(REFUSED, said_of_list(&error));
        let filled = |meta: &ObjectMeta| std::future::ready(meta.size > 0);
        let listed = store.list(Some(&folder)).try_filter(filled);
        Ok(listed.map_ok(entry).map_err(refused))
    }

    /// A file of a bucket.
    ///
    /// # Errors
    /// There is no such file, or the storage does not give it.
    pub async fn open(&self, outbound: &Outbound, bucket: &str, key: &str) -> Result<Opened> {
        let key = Key::parse(key)
            .map_err(|_| ApiError::bad_request("", "this is no key of a file in a bucket"))?;
        let store = self.bucket(outbound, bucket)?;
        let asked = tokio::time::timeout(PATIENCE, store.get(&key)).await;
        let found = asked
            .map_err(|_| ApiError::bad_request("", "the storage does not answer"))?
            .map_err(|error| ApiError::bad_request("", said(&error)))?;
        let content_type = found
            .attributes
            .get(&object_store::Attribute::ContentType)
            .map(|value| value.as_ref().to_owned());
        Ok(Opened {
            size: found.meta.size,
            content_type,
            pieces: Box::pin(
                found
                    .into_stream()
                    .map_err(|error| ApiError::bad_request("", said(&error))),
            ),
        })
    }
}

/// The storage's address: the configured one, checked as every address that a caller aims, or the provider's own.
fn endpoint(
    provider: StorageProvider,
    config: &Object,
    region: &str,
    outbound: &Outbound,
) -> Result<Url> {
    let secure = config.get("use_ssl") != Some(&Value::Bool(false));
    let address = match (text(config, "endpoint_url"), provider) {
        (Some(address), _) if address.contains("://") => address.to_owned(),
        (Some(address), _) if secure => format!("https://{address}"),
        (Some(address), _) => format!("http://{address}"),
        (None, StorageProvider::Tigris) => TIGRIS.to_owned(),
        (None, _) => {
            let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            if !region.chars().all(named) {
                return Err(fault(&["region"], "this is no name of a region"));
            }
            format!("https://s3.{region}.amazonaws.com")
        }
    };
    let refused = |error: WebError| fault(&["endpoint_url"], error.to_string());
    outbound.check(&address).map_err(refused)
}

/// The same of a list. The library has the status of the answer nowhere but in its words.
fn said_of_list(error: &object_store::Error) -> String {
    let words = error.to_string();
    let status = words.split_once("status code: ").map(|(_, rest)| rest);
    match status.and_then(|rest| rest.split_once(' ')).map(|(status, _)| status) {
        Some("404") => "the storage has no such bucket".into(),
        Some("401" | "403") => {
            "the storage does not list its bucket for these credentials: they are wrong, were revoked, or may not".into()
        }
        _ => said(error),
    }
}

/// What the storage said, without the addresses and signatures that the library's own text holds.
fn said(error: &object_store::Error) -> String {
    use object_store::Error;
    match error {
        Error::NotFound { .. } => "the storage has no such file".into(),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            "the storage does not give this file to these credentials".into()
        }
        _ => {
            tracing::warn!(%error, "a storage connection failed");
            "the storage cannot be read".into()
        }
    }
}

/// Hands the library the guarded client.
#[derive(Debug)]
struct Guarded(reqwest::Client);

impl HttpConnector for Guarded {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Marking(self.0.clone())))
    }
}
