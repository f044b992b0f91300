//! Opening and closing a process's state, for the binary and for tests alike.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use secrecy::ExposeSecret;

use loupe_engine::{
    embed::{Endpoint, ModelConfig, Models},
    extract::{
        Extraction, Folder, Outputs, Services,
        registry::{Source, TEXT_OUTPUT},
        tools::Tools,
    },
    stage::{ReverseImage, WebSearch},
    store::{
        DocStore, Edge, EdgeOptions,
        remote::{Remote, RemoteOptions},
    },
};

use crate::{
    app::{App, Parts},
    blob::Blobs,
    clock::Clock,
    config::Config,
    db::Db,
    folder, hosting, idempotency, jobs, limits,
    mail::Mailer,
    outbound::{Outbound, tls},
    progress, usage,
    v1::{
        annotations, audit::repeats, buckets::destinations::Destinations, collections, documents,
        organizations, retrievers::History, webhooks,
    },
    vault::Vault,
};

/// A process that is ready to serve.
pub struct Started {
    pub app: App,
    /// The admin key's secret, on the very first start only.
    pub first_key: Option<String>,
    // Held until the process ends: one owner of a data folder.
    _lock: File,
}

impl Started {
    pub async fn close(self) {
        self.app.stop.cancel();
        self.app.tracker.close();
        // Work that does not end by itself is dropped with the process; its lease runs out.
        if tokio::time::timeout(Duration::from_secs(8), self.app.tracker.wait())
            .await
            .is_err()
        {
            tracing::warn!("background work did not end in time");
        }
        if let Err(error) = usage::flush(&self.app).await {
            tracing::warn!(%error, "the usage of the last seconds is lost");
        }
        if let Err(error) = hosting::visits::flush(&self.app).await {
            tracing::warn!(%error, "the visits of the last seconds are lost");
        }
        if let Err(error) = repeats::flush(&self.app, true).await {
            tracing::warn!(%error, "refusals and reads of the last seconds are not in the audit log");
        }
        if let Err(error) = documents::trim(&self.app).await {
            tracing::warn!(%error, "the document journal is kept for the next start");
        }
        if let Err(error) = self.app.store().close().await {
            tracing::warn!(%error, "the document store did not close cleanly");
        }
        self.app.db().close().await;
    }
}

/// Locks the data folder, opens everything, makes the organization on the first start.
///
/// # Errors
/// A sentence that says what to do.
pub async fn open(config: Config) -> anyhow::Result<Started> {
    // The TLS library wants its cryptography chosen once a process; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Others of this machine are shown nothing of what callers keep here. A folder that is there is its owner's matter.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&config.data)
        .with_context(|| format!("cannot make the data folder {}", config.data.display()))?;
    let lock = folder::lock(&config.data)?;
    let db = if config.is_postgres() {
        Db::postgres(config.database_url.expose_secret(), 16)
            .await
            .context("cannot open the PostgreSQL database")?
    } else {
        Db::sqlite(&config.data.join("loupe.db"))
            .await
            .context("cannot open the SQLite database")?
    };
    let store = open_store(&config).context("cannot open the document store")?;
    Folder::work_in(&config.data.join("work")).context("cannot empty the folder for work")?;
    let extraction = open_extraction(&config)?;
    let (models, outputs) = open_models(&config, extraction.tools().clone())?;
    let clock = Clock::default();
    let blobs = open_blobs(&config, clock.clone()).context("cannot open the blobs")?;
    let vault = Vault::new(&master_key(&config)?)?;
    let outbound = Outbound::new(&config.outbound.allow)?;
    let sign_in_outbound = Outbound::new(
        &[
            config.outbound.allow.as_slice(),
            config.sign_in.oidc_addresses.as_slice(),
        ]
        .concat(),
    )?;
    let blobs = blobs.with_places(destinations(&config, &db, &outbound)?);
    let mailer = Mailer::new(&config.mail)?;
    let web_search = open_web_search(&config)?;
    let reverse_image = open_reverse_image(&config)?;
    let app = App::new(Parts {
        config,
        db,
        clock,
        store,
        blobs,
        models,
        outputs,
        extraction,
        vault,
        outbound,
        sign_in_outbound,
        mailer,
        web_search,
        reverse_image,
    });
    documents::recover(&app)
        .await
        .map_err(anyhow::Error::from)?;
    jobs::reclaim(&app).await.map_err(anyhow::Error::from)?;
    let first_key = organizations::create_first(&app)
        .await
        .map_err(anyhow::Error::from)?;
    Ok(Started {
        app,
        first_key,
        _lock: lock,
    })
}

/// The embedded engine in the data folder, or a cluster.
fn open_store(config: &Config) -> anyhow::Result<Arc<dyn DocStore>> {
    if config.qdrant_url.is_empty() {
        let options = EdgeOptions {
            min_free_bytes: config.limits.free_disk_bytes,
            ..EdgeOptions::default()
        };
        return Ok(Arc::new(Edge::open(
            &config.data.join("documents"),
            options,
        )?));
    }
    let mut options = RemoteOptions::new(config.qdrant_url.as_str());
    let key = config.qdrant_api_key.expose_secret();
    options.api_key = (!key.is_empty()).then(|| key.to_owned());
    Ok(Arc::new(Remote::connect(&options)?))
}

fn open_blobs(config: &Config, clock: Clock) -> anyhow::Result<Blobs> {
    let (secret, address) = (master_key(config)?, config.address());
    if config.blobs.url.is_empty() {
        return Blobs::open(&config.data.join("blobs"), secret, address, clock);
    }
    // A store that says nothing for so long does not answer.
    let client = trusting()?.read_timeout(Duration::from_secs(60)).build()?;
    let keeps_something = !config.is_postgres() || config.qdrant_url.is_empty();
    let room = keeps_something.then(|| config.data.clone());
    Blobs::open_bucket(&config.blobs, client, room, secret, address, clock)
}

/// The storages that buckets keep their files in, which are callers' and no settings.
fn destinations(
    config: &Config,
    db: &Db,
    outbound: &Outbound,
) -> anyhow::Result<Arc<Destinations>> {
    let vault = Vault::new(&master_key(config)?)?;
    let places = Destinations::new(db.clone(), vault, outbound.clone());
    Ok(Arc::new(places))
}

/// The key that signs addresses and encrypts secrets: the configured one, or one made on the first start and readable by
/// its owner alone.
fn master_key(config: &Config) -> anyhow::Result<[u8; 32]> {
    let configured = config.master_key.expose_secret().trim();
    if !configured.is_empty() {
        let key = hex::decode(configured).ok();
        let key = key.and_then(|key| <[u8; 32]>::try_from(key).ok());
        return key.context("master_key is not a key of 64 hex digits");
    }
    let path = config.data.join("master.key");
    match std::fs::read(&path) {
        Ok(bytes) => {
            let key = hex::decode(bytes.trim_ascii())
                .ok()
                .and_then(|key| <[u8; 32]>::try_from(key).ok());
            key.with_context(|| format!("{} does not hold a key of 64 hex digits", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key: [u8; 32] = rand::random();
            let mut file = OpenOptions::new()
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(hex::encode(key).as_bytes())?;
            file.sync_all()?;
            Ok(key)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn open_models(config: &Config, tools: Tools) -> anyhow::Result<(Models, Outputs)> {
    let models = &config.models;
    let language = models.language.as_ref();
    let services = Services {
        tools,
        speech: models.transcription.is_some(),
        language: language.is_some(),
        sight: language.is_some_and(|language| language.pictures),
    };
    let model_config = ModelConfig {
        cache_dir: config.model_cache(),
        model_path: (!models.path.as_os_str().is_empty()).then(|| models.path.clone()),
        offline: models.offline,
        endpoints: models.endpoints.clone(),
        language: models.language.clone(),
        rerankers: models.rerankers.clone(),
        transcription: models.transcription.clone(),
        ..ModelConfig::default()
    };
    Ok((
        Models::open(model_config, trusting_client()?, progress::of_models())?,
        outputs(&models.endpoints).serving(services),
    ))
}

/// A client for places that the settings name.
fn trusting_client() -> anyhow::Result<reqwest::Client> {
    Ok(trusting()?.build()?)
}

fn trusting() -> anyhow::Result<reqwest::ClientBuilder> {
    #[expect(
        clippy::disallowed_methods,
        reason = "models, services and the file store are places that the settings name, not a caller"
    )]
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls::client_config()?)
        .connect_timeout(Duration::from_secs(5));
    Ok(client)
}

fn open_web_search(config: &Config) -> anyhow::Result<Option<Arc<WebSearch>>> {
    let Some(service) = config.web_search.clone() else {
        return Ok(None);
    };
    Ok(Some(Arc::new(WebSearch::new(service, trusting_client()?))))
}

fn open_reverse_image(config: &Config) -> anyhow::Result<Option<Arc<ReverseImage>>> {
    let Some(service) = config.reverse_image.clone() else {
        return Ok(None);
    };
    let service = ReverseImage::new(service, trusting_client()?);
    Ok(Some(Arc::new(service)))
}

/// Files of strangers are decoded by processes of their own: this program again, or the one that a test names.
fn open_extraction(config: &Config) -> anyhow::Result<Extraction> {
    let program = if config.extractor.as_os_str().is_empty() {
        std::env::current_exe().context("cannot find this program's own file")?
    } else {
        config.extractor.clone()
    };
    Ok(Extraction::new(program, config.jobs.extractors)
        .with_tools(Tools::find().with_languages(&config.ocr_languages))
        .with_largest(config.limits.upload_bytes))
}

/// Loads the text model before the first search asks for it, where something is there to be searched: an empty
/// installation stays small.
fn warm(app: &App) {
    let warmed = app.clone();
    app.spawn(async move {
        if collections::store::is_empty(warmed.db())
            .await
            .unwrap_or(true)
        {
            return;
        }
        if let Err(error) = warmed.models.text(TEXT_OUTPUT).await {
            tracing::warn!(%error, "the text model is not ready; the next search tries again");
        }
    });
}

/// The outputs that collections may use: the built-in ones and those of the endpoints.
fn outputs(endpoints: &[Endpoint]) -> Outputs {
    endpoints
        .iter()
        .fold(Outputs::builtin(), |outputs, endpoint| {
            let outputs = outputs.with(&endpoint.output, endpoint.dims, Source::TextModel);
            if endpoint.pictures {
                return outputs.with(&endpoint.output, endpoint.dims, Source::ImageModel);
            }
            outputs
        })
}

/// Background work of a serving process.
pub fn start_work(app: &App) {
    History::start(app);
    jobs::start(app);
    webhooks::start(app);
    warm(app);
    let keeper = app.clone();
    app.spawn(async move {
        let mut round = 0_u32;
        while !keeper.stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(5)) => {}
                () = keeper.stop.cancelled() => {}
            }
            keep_house(&keeper, round).await;
            round = round.wrapping_add(1);
        }
    });
    let trimmer = app.clone();
    // Others read what waits in the journal, and a cluster has nothing to flush.
    let pause = match app.config().qdrant_url.is_empty() {
        true => Duration::from_secs(2),
        false => Duration::from_millis(100),
    };
    app.spawn(async move {
        while !trimmer.stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = trimmer.stop.cancelled() => {}
            }
            if let Err(error) = documents::trim(&trimmer).await {
                tracing::warn!(%error, "the document journal could not be trimmed");
            }
        }
    });
    let heir = app.clone();
    app.spawn(async move {
        while !heir.stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(10)) => {}
                () = heir.stop.cancelled() => return,
            }
            if let Err(error) = documents::reapply(&heir).await {
                tracing::warn!(%error, "documents of a process that died are not written yet");
            }
            if let Err(error) = annotations::signal::settle(&heir).await {
                tracing::warn!(%error, "the signal of annotations is not up to date");
            }
        }
    });
}

/// Writes the usage of keys every round, and forgets what is old once in a while.
async fn keep_house(app: &App, round: u32) {
    let mut outcomes = vec![usage::flush(app).await, repeats::flush(app, false).await];
    outcomes.push(hosting::visits::flush(app).await);
    if round.is_multiple_of(120) {
        outcomes.push(idempotency::sweep(app).await);
        outcomes.push(usage::sweep(app).await);
        outcomes.push(limits::sweep(app).await);
    }
    for error in outcomes.into_iter().filter_map(Result::err) {
        tracing::warn!(%error, "the records of keys could not be kept up");
    }
}

/// What the vector engine says of its own upbringing at every step: it is used as a library, which sets none of that.
/// Whoever names these places in the setting hears them.
const QUIET: &str =
    "qdrant_edge::common::flags=error,qdrant_edge::common::mmap::ops=error,qdrant_edge::wal=warn";

/// Sends log lines to stderr, in the configured format.
pub fn log(config: &Config) {
    let filter = tracing_subscriber::EnvFilter::try_new(format!("{QUIET},{}", config.log))
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(format!("{QUIET},info")));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A second call in one process (tests) keeps the first subscriber.
    let _ = if config.log_format == "json" {
        lines.json().try_init()
    } else {
        lines.try_init()
    };
}

/// Who ended the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: something that manages processes, and maybe a balancer before them.
    Terminate,
    /// Ctrl-C: somebody at the keyboard.
    Interrupt,
}

/// Returns at SIGTERM or Ctrl-C.
pub async fn signal() -> Signal {
    let mut terminate =
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(signal) => signal,
            Err(error) => {
                tracing::warn!(%error, "cannot listen for SIGTERM");
                return std::future::pending().await;
            }
        };
    tokio::select! {
        _ = terminate.recv() => Signal::Terminate,
        _ = tokio::signal::ctrl_c() => Signal::Interrupt,
    }
}
