//! Files in a bucket of S3, or of what speaks its language. All processes of an installation read and write the same ones.
//!
//! The settings name the place, no caller does: it is asked by a client that may go anywhere.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use futures::FutureExt as _;
use http::Method;
use object_store::{
    ClientOptions, ObjectStore, RetryConfig, StaticCredentialProvider,
    aws::{AmazonS3, AmazonS3Builder, AwsCredential},
    client::{HttpClient, HttpConnector},
    path::Path as Key,
    prefix::PrefixStore,
    signer::{SignedUrlOptions, Signer as _},
};
use secrecy::ExposeSecret as _;
use url::Url;

use crate::config;

/// Seconds that the longest signature is good for, as S3 has it.
const LONGEST: u64 = 7 * 24 * 3600;

/// A request is sent again for so long where that may help.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder of a bucket.
#[derive(Clone)]
pub(super) struct Bucket {
    store: PrefixStore<AmazonS3>,
    client: reqwest::Client,
    origin: String,
}

impl Bucket {
    /// # Errors
    /// Settings that name no bucket or open none.
    pub(super) fn open(config: &config::Blobs, client: reqwest::Client) -> anyhow::Result<Self> {
        let (bucket, folder) = place(&config.url)?;
        let endpoint = endpoint(config, &bucket)?;
        let secret_key = config.secret_access_key.expose_secret();
        ensure!(
            !config.access_key_id.is_empty() && !secret_key.is_empty(),
            "blobs.url needs blobs.access_key_id and blobs.secret_access_key"
        );
        let token = config.session_token.expose_secret();
        let credential = AwsCredential {
            key_id: config.access_key_id.clone(),
            secret_key: secret_key.to_owned(),
            token: (!token.is_empty()).then(|| token.to_owned()),
        };
        let retry = RetryConfig {
            max_retries: 4,
            retry_timeout: PATIENCE,
            ..RetryConfig::default()
        };
        let store = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(region(config))
            .with_endpoint(endpoint.as_str().trim_end_matches('/'))
            .with_virtual_hosted_style_request(!config.path_style)
            // Every store knows how to delete one file, few know how to delete many.
            .with_disable_bulk_delete(true)
            .with_credentials(Arc::new(StaticCredentialProvider::new(credential)))
            .with_retry(retry)
            .with_http_connector(Trusted(client.clone()))
            .build()?;
        Ok(Self {
            store: PrefixStore::new(store, folder),
            client,
            origin: endpoint.origin().ascii_serialization(),
        })
    }

    pub(super) fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::new(self.store.clone())
    }

    /// The same for files in parts.
    pub(super) const fn folder(&self) -> &PrefixStore<AmazonS3> {
        &self.store
    }

    /// What the store answers at an address of its own that was signed; nothing where nothing is.
    pub(super) async fn ask(&self, address: &str) -> reqwest::Result<Option<String>> {
        let answer = self.client.get(address).send().await;
        // The address is a secret for as long as it is good.
        let answer = answer.map_err(reqwest::Error::without_url)?;
        if answer.status() == reqwest::StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let answer = answer
            .error_for_status()
            .map_err(reqwest::Error::without_url)?;
        let text = answer.text().await;
        text.map(Some).map_err(reqwest::Error::without_url)
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// An address of the store itself that lets whoever has it do this one thing for `ttl` seconds, `query` being part of it.
    /// Credentials that are settings are at hand, so that nothing waits here.
    pub(super) fn sign(
        &self,
        method: Method,
        key: &str,
        ttl: u64,
        query: Vec<(&str, String)>,
    ) -> Option<String> {
        let key = Key::parse(key).ok()?;
        let options = SignedUrlOptions::default().with_query(query);
        let ttl = Duration::from_secs(ttl.min(LONGEST));
        let signed = self.store.signed_url_opts(method, &key, ttl, &options);
        match signed.now_or_never()? {
            Ok(url) => Some(url.into()),
            Err(error) => {
                tracing::warn!(%error, "an address of the file store could not be signed");
                None
            }
        }
    }
}

/// The bucket and the folder of `s3://bucket/folder`.
fn place(url: &str) -> anyhow::Result<(String, Key)> {
    let rest = url.strip_prefix("s3://");
    let rest = rest.context("blobs.url is not of the form s3://bucket/folder")?;
    let (bucket, folder) = rest.split_once('/').unwrap_or((rest, ""));
    ensure!(!bucket.is_empty(), "blobs.url names no bucket");
    let folder = Key::parse(folder.trim_end_matches('/'));
    let folder = folder.context("blobs.url names a folder that cannot be one")?;
    Ok((bucket.to_owned(), folder))
}

fn region(config: &config::Blobs) -> &str {
    match config.region.as_str() {
        "" => "us-east-1",
        region => region,
    }
}

/// Where the bucket is asked for. Its name is part of the host unless it is part of the path.
fn endpoint(config: &config::Blobs, bucket: &str) -> anyhow::Result<Url> {
    let mut url = match config.endpoint.as_str() {
        "" => Url::parse(&format!("https://s3.{}.amazonaws.com", region(config))),
        endpoint => Url::parse(endpoint),
    }
    .context("blobs.endpoint is no address")?;
    ensure!(
        url.scheme() == "https" || (url.scheme() == "http" && config.allow_http),
        "blobs.endpoint is not https: set blobs.allow_http if nobody listens on the way"
    );
    if !config.path_style {
        let host = url.host_str().context("blobs.endpoint names no host")?;
        let host = format!("{bucket}.{host}");
        url.set_host(Some(&host))
            .context("the bucket's name cannot be part of a host: set blobs.path_style")?;
    }
    Ok(url)
}

/// Hands the library this program's client.
#[derive(Debug)]
struct Trusted(reqwest::Client);

impl HttpConnector for Trusted {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str, endpoint: &str, path_style: bool) -> config::Blobs {
        config::Blobs {
            url: url.into(),
            endpoint: endpoint.into(),
            path_style,
            ..config::Blobs::default()
        }
    }

    #[test]
    fn a_place_is_a_bucket_and_a_folder_of_it() {
        let found = |url| place(url).map(|(bucket, folder)| (bucket, folder.to_string()));
        let both = |bucket: &str, folder: &str| (bucket.to_owned(), folder.to_owned());
        assert_eq!(found("s3://files").unwrap(), both("files", ""));
        assert_eq!(found("s3://files/a/b/").unwrap(), both("files", "a/b"));
        for wrong in [
            "files",
            "s3://",
            "s3:///a",
            "s3://files/a//b",
            "https://files/a",
        ] {
            assert!(found(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bucket_is_asked_for_by_its_host_or_by_a_path() {
        let found = |address: &str, path_style| {
            endpoint(&settings("s3://files", address, path_style), "files").map(String::from)
        };
        assert_eq!(
            found("", false).unwrap(),
            "https://files.s3.us-east-1.amazonaws.com/"
        );
        assert_eq!(
            found("https://store.example", true).unwrap(),
            "https://store.example/"
        );
        assert_eq!(
            found("https://store.example:9000", false).unwrap(),
            "https://files.store.example:9000/"
        );
        let error = found("http://store.example", true).unwrap_err().to_string();
        assert!(error.contains("allow_http"), "{error}");
        // The bucket cannot stand before an address that is a number.
        assert!(found("https://127.0.0.1", false).is_err());
    }
}
