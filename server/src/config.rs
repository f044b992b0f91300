//! One struct holds every setting: defaults, then `loupe.toml`, then `LOUPE_*` environment variables.

mod checked;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use figment::{
    Figment,
    providers::{Env, Format, Serialized},
};
use loupe_engine::{
    embed::{Endpoint, Language, RerankEndpoint, Transcription},
    stage::{CodeConfig, ReverseImageConfig, WebSearchConfig},
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};

/// Settings of one process. Nested members are set from the environment with two underscores:
/// `LOUPE_LIMITS__BODY_BYTES=1000000`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where everything is kept: database, documents, blobs, models, master key.
    pub data: PathBuf,
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// The address that callers use, without a slash at the end; empty = `http://{listen}`.
    pub base_url: String,
    /// A proxy that can be trusted stands before this server: callers' addresses are read from `X-Forwarded-For`.
    pub trust_proxy: bool,
    /// `postgres://…`; empty = SQLite in the data folder.
    #[serde(serialize_with = "redacted")]
    pub database_url: SecretString,
    /// Address of a Qdrant cluster; empty = the embedded engine in the data folder.
    pub qdrant_url: String,
    #[serde(serialize_with = "redacted")]
    pub qdrant_api_key: SecretString,
    /// 64 hex digits that sign addresses and encrypt secrets, the same for every process of an installation; empty = a file in
    /// the data folder, made on the first start.
    #[serde(serialize_with = "redacted")]
    pub master_key: SecretString,
    pub blobs: Blobs,
    pub models: Models,
    /// The program that decodes files, run with `extract-worker`; empty = this one.
    pub extractor: PathBuf,
    /// What scans are written in, as tesseract names it: `eng+deu` for two of which each has its package; empty = English.
    pub ocr_languages: String,
    pub limits: Limits,
    pub rates: Rates,
    pub jobs: Jobs,
    pub outbound: Outbound,
    #[serde(default)]
    pub apps: Apps,
    /// Services that people sign in to apps with.
    #[serde(default, skip_serializing)]
    pub sign_in: SignIn,
    pub mail: Mail,
    /// The service that stages search the web with; set in the file as `[web_search]`.
    #[serde(default, skip_serializing)]
    pub web_search: Option<WebSearchConfig>,
    /// The service that stages search by picture with; set in the file as `[reverse_image]`.
    #[serde(default, skip_serializing)]
    pub reverse_image: Option<ReverseImageConfig>,
    /// Whether stages run code of callers, in a sandbox.
    #[serde(default)]
    pub code: CodeConfig,
    /// Bearer token for `/metrics`; empty = only this machine may ask.
    #[serde(serialize_with = "redacted")]
    pub metrics_token: SecretString,
    /// `text` or `json`.
    pub log_format: String,
    /// A filter such as `info,loupe_server=debug`.
    pub log: String,
}

/// Where files of objects and documents are kept.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Blobs {
    /// `s3://bucket/folder`, the same for every process of an installation; empty = the folder `blobs` in the data folder.
    pub url: String,
    /// Address of a store that speaks S3; empty = Amazon's in that region.
    pub endpoint: String,
    /// Empty = `us-east-1`.
    pub region: String,
    pub access_key_id: String,
    #[serde(serialize_with = "redacted")]
    pub secret_access_key: SecretString,
    /// Goes with keys that end.
    #[serde(serialize_with = "redacted")]
    pub session_token: SecretString,
    /// The bucket is part of the address's path, not of its host.
    pub path_style: bool,
    /// The endpoint may be asked without TLS.
    pub allow_http: bool,
    /// Callers send files to the store and read them from it themselves, by addresses that it checks.
    pub direct: bool,
}

impl Default for Blobs {
    fn default() -> Self {
        Self {
            url: String::new(),
            endpoint: String::new(),
            region: String::new(),
            access_key_id: String::new(),
            secret_access_key: SecretString::default(),
            session_token: SecretString::default(),
            path_style: false,
            allow_http: false,
            direct: true,
        }
    }
}

/// Where models come from.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Models {
    /// Folder of downloaded models; empty = `{data}/models`.
    pub cache: PathBuf,
    /// A folder that already holds model files; nothing is fetched for those.
    pub path: PathBuf,
    /// Never fetch.
    pub offline: bool,
    /// Models behind HTTP, OpenAI-compatible or TEI; set in the file as `[[models.endpoints]]`. One with the name of a
    /// built-in output takes its place.
    #[serde(default, skip_serializing)]
    pub endpoints: Vec<Endpoint>,
    /// A language model behind an OpenAI-compatible endpoint; set in the file as `[models.language]`.
    #[serde(default, skip_serializing)]
    pub language: Option<Language>,
    /// Rerankers behind HTTP, TEI or as Cohere has them; set in the file as `[[models.rerankers]]`.
    #[serde(default, skip_serializing)]
    pub rerankers: Vec<RerankEndpoint>,
    /// A speech model behind an OpenAI-compatible endpoint, set in the file as `[models.transcription]`.
    #[serde(default, skip_serializing)]
    pub transcription: Option<Transcription>,
}

/// Bounds of what callers may send and hold.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Largest JSON body.
    pub body_bytes: usize,
    /// Seconds that the sender of a body has to begin with; then it has to keep up 16 KiB a second.
    pub body_seconds: u64,
    /// Seconds in which the head of a request has to come, the next one of an open connection too. Balancers that keep
    /// connections open do so for less.
    pub head_seconds: u64,
    /// Largest uploaded file.
    pub upload_bytes: u64,
    /// Longest time a request may take.
    pub request_seconds: u64,
    /// Requests under way at once before the rest is refused with 503.
    pub concurrent_requests: usize,
    /// Seconds after SIGTERM during which requests are still taken, so that balancers see `/readyz` and go elsewhere.
    pub drain_seconds: u64,
    /// Published retrievers a namespace may have.
    pub published_retrievers: i64,
    /// Objects of one batch.
    pub batch_objects: usize,
    /// Free disk below which writes are refused: max of this and 5 % of the disk.
    pub free_disk_bytes: u64,
}

/// How much a key of an `enterprise` organization may ask for, which the installation's own organization is. The other
/// tiers have fixed figures.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Requests of one key in a minute.
    pub per_minute: i64,
    /// Requests of one key in a second.
    pub per_second: i64,
    /// Requests that an idle key has banked.
    pub burst: i64,
    /// Requests of one organization under way at once.
    pub concurrent: i64,
}

/// How background work runs.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// Batches that run at once, over all processes.
    pub running_batches: usize,
    /// Chunks that this process works on at once.
    pub workers: usize,
    /// Objects of one chunk.
    pub chunk_objects: usize,
    /// A worker that has not renewed its lease for so long is taken for dead.
    pub lease_seconds: u64,
    /// Seconds between two submissions of one batch.
    pub resubmit_seconds: u64,
    /// Hours after its end at which a task moves to the archive.
    pub archive_hours: u64,
    /// Extractor processes at once.
    pub extractors: usize,
    /// Seconds between two looks of alerts that look by the clock.
    pub alert_seconds: u64,
}

/// Requests to addresses that callers name.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outbound {
    /// Networks beside the public internet that may be asked, such as `10.1.0.0/16`: services of one's own.
    pub allow: Vec<String>,
    /// Messages of webhooks that a process has under way at once; beside them as many of alerts, batches and notifications.
    pub messages: usize,
    /// Percent of those that one organization has at most, over all processes: receivers of one that are slow leave room to
    /// those of others.
    pub share: usize,
}

impl Default for Outbound {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            messages: 128,
            share: 25,
        }
    }
}

impl Outbound {
    /// Messages of one kind at once.
    pub fn at_once(&self) -> usize {
        self.messages.clamp(1, 10_000)
    }

    /// Those among them that may be of one organization.
    pub fn of_organization(&self) -> i64 {
        let most = self.at_once() * self.share.clamp(1, 100) / 100;
        i64::try_from(most.max(1)).unwrap_or(1)
    }
}

/// Hosted apps.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Apps {
    /// The domain below which apps have their names, apart from the server's own; empty = `localhost`.
    pub domain: String,
    /// The name server that is asked for what proves a domain, such as `9.9.9.9:53`; absent = the system's.
    pub resolver: Option<SocketAddr>,
}

/// Services that people sign in to apps with, set in the file as `[sign_in.google]` and `[sign_in.github]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    pub google: Option<OauthClient>,
    pub github: Option<OauthClient>,
    /// Networks beside those of `outbound.allow` in which apps ask the provider that their people sign in with, such as
    /// `10.1.2.3/32`: nothing else is asked there.
    #[serde(default)]
    pub oidc_addresses: Vec<String>,
}

/// What this server is to such a service.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OauthClient {
    pub client_id: String,
    pub client_secret: SecretString,
    /// Address of an installation of one's own, without a slash at the end; absent = the public one.
    pub issuer: Option<String>,
}

/// The mail server that alerts, webhooks and hosted apps send through.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// `smtps://user:password@host`, or `smtp://host:port`, with `?tls=required` for STARTTLS; empty = no mail is sent.
    #[serde(serialize_with = "redacted")]
    pub url: SecretString,
    /// What mail is sent as, such as `Loupe <loupe@example.com>`.
    pub from: String,
}

impl Default for Mail {
    fn default() -> Self {
        Self {
            url: SecretString::default(),
            from: "Loupe <loupe@localhost>".into(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: "data".into(),
            listen: SocketAddr::from(([127, 0, 0, 1], 8420)),
            base_url: String::new(),
            trust_proxy: false,
            database_url: SecretString::default(),
            qdrant_url: String::new(),
            qdrant_api_key: SecretString::default(),
            master_key: SecretString::default(),
            blobs: Blobs::default(),
            models: Models {
                cache: PathBuf::new(),
                path: PathBuf::new(),
                offline: false,
                endpoints: Vec::new(),
                language: None,
                rerankers: Vec::new(),
                transcription: None,
            },
            extractor: PathBuf::new(),
            ocr_languages: String::new(),
            limits: Limits {
                body_bytes: 10 << 20,
                body_seconds: 10,
                head_seconds: 75,
                upload_bytes: 500 << 20,
                request_seconds: 60,
                concurrent_requests: 512,
                drain_seconds: 1,
                published_retrievers: 10,
                batch_objects: 50_000,
                free_disk_bytes: 1 << 30,
            },
            rates: Rates {
                per_minute: 6_000_000,
                per_second: 100_000,
                burst: 100_000,
                concurrent: 512,
            },
            jobs: Jobs {
                running_batches: 2,
                workers: 2,
                chunk_objects: 64,
                lease_seconds: 60,
                resubmit_seconds: 60,
                archive_hours: 24,
                extractors: 2,
                alert_seconds: 300,
            },
            outbound: Outbound::default(),
            apps: Apps::default(),
            sign_in: SignIn::default(),
            mail: Mail::default(),
            web_search: None,
            reverse_image: None,
            code: CodeConfig::default(),
            metrics_token: SecretString::default(),
            log_format: "text".into(),
            log: "info".into(),
        }
    }
}

impl Config {
    /// Reads a file and the environment over the defaults: the file that is named, else `loupe.toml` where there is one.
    ///
    /// # Errors
    /// A file that is not there, a member that does not exist or has the wrong type, a setting that nothing would read; named.
    pub fn load(named: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(missing) = named.filter(|file| !file.exists()) {
            anyhow::bail!("there is no file of settings {}", missing.display());
        }
        let file = named.unwrap_or(Path::new("loupe.toml"));
        let config: Self = Figment::from(Serialized::defaults(Self::default()))
            .merge(Toml::file(file))
            .merge(
                Env::prefixed("LOUPE_")
                    .ignore(&[
                        "config",
                        "key",
                        "test_postgres",
                        "model_cache",
                        "test_qdrant",
                    ])
                    .split("__"),
            )
            .extract()?;
        config.check()?;
        Ok(config)
    }

    /// The address that callers use, without a slash at the end.
    pub fn address(&self) -> String {
        if self.base_url.is_empty() {
            format!("http://{}", self.listen)
        } else {
            self.base_url.trim_end_matches('/').to_owned()
        }
    }

    pub fn model_cache(&self) -> PathBuf {
        if self.models.cache.as_os_str().is_empty() {
            self.data.join("models")
        } else {
            self.models.cache.clone()
        }
    }

    pub fn is_postgres(&self) -> bool {
        !self.database_url.expose_secret().is_empty()
    }
}

/// The format of `loupe.toml`. figment's own brings a second parser of it.
struct Toml;

impl Format for Toml {
    type Error = toml::de::Error;

    const NAME: &'static str = "TOML";

    fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Self::Error> {
        toml::from_str(text)
    }
}

fn redacted<S: Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if secret.expose_secret().is_empty() {
        ""
    } else {
        "[redacted]"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn read(text: &str) -> Result<Config, String> {
        Figment::from(Serialized::defaults(Config::default()))
            .merge(Toml::string(text))
            .extract()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_sets_members_tables_and_lists_of_tables() {
        let config = read(
            r#"
            listen = "127.0.0.1:9000" # beside the default
            limits.body_bytes = 5_000
            [outbound]
            allow = ["10.1.0.0/16"]
            [[models.rerankers]]
            name = "own"
            protocol = "tei"
            url = "http://10.1.0.2"
            "#,
        )
        .unwrap();
        assert_eq!(config.listen.port(), 9000);
        assert_eq!(config.limits.body_bytes, 5_000);
        assert_eq!(config.limits.request_seconds, 60);
        assert_eq!(config.outbound.allow, ["10.1.0.0/16"]);
        let reranker = config.models.rerankers.first().unwrap();
        assert_eq!(reranker.name, "own");
        assert_eq!(reranker.timeout_seconds, 30);
    }

    #[test]
    fn a_file_that_is_named_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        let refused = Config::load(Some(&file)).unwrap_err().to_string();
        assert!(refused.contains("mine.toml"), "{refused}");
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named() {
        for (text, named) in [
            ("log = \"info\"\nlisten = ", "line 2"),
            ("[limits]\nbody_bytes = \"many\"", "limits.body_bytes"),
            ("[limits]\nbody = 1", "`body`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
