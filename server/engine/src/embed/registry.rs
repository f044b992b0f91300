//! The models a server holds, loaded when first asked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::bert::BertEncoder;
use super::catalog::{
    EFFICIENTNET, EFFICIENTNET_OUTPUT, MINILM, MINILM_DIMS, MINILM_OUTPUT, RERANKER, RERANKER_NAME,
};
use super::efficientnet::EfficientNetEncoder;
use super::efficientnet_graph;
use super::fetch::{Bundle, DEFAULT_HUB, Fetcher, OnProgress, blocking};
use super::remote::{Endpoint, RemoteEncoder};
use super::rerank::{CrossEncoder, RemoteReranker, RerankEndpoint, Reranker};
use super::{
    EmbedError, Encoders, ImageEncoder, Language, LanguageModel, Result, TextEncoder, Transcriber,
    Transcription,
};

/// A model that could not be had is not asked for again within this time, so a batch fails at once.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// Where models come from.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    pub cache_dir: PathBuf,
    /// A folder that already holds model files; read before any network is asked.
    pub model_path: Option<PathBuf>,
    /// Never download anything.
    pub offline: bool,
    /// The address of the model hub.
    pub hub: String,
    /// How long one download may take.
    pub download_timeout: Duration,
    /// Models behind HTTP; one of the name of a built-in output takes its place.
    pub endpoints: Vec<Endpoint>,
    /// A language model behind an OpenAI-compatible endpoint.
    pub language: Option<Language>,
    /// Rerankers behind HTTP, by the names that stages call them.
    pub rerankers: Vec<RerankEndpoint>,
    /// A speech model behind an OpenAI-compatible endpoint.
    pub transcription: Option<Transcription>,
}

impl Default for ModelConfig {
    /// The cache is `$LOUPE_MODEL_CACHE`, else below the user's cache folder.
    fn default() -> Self {
        let named = std::env::var_os("LOUPE_MODEL_CACHE").map(PathBuf::from);
        let home = || std::env::home_dir().unwrap_or_else(std::env::temp_dir);
        Self {
            cache_dir: named.unwrap_or_else(|| home().join(".cache/loupe/models")),
            model_path: None,
            offline: false,
            hub: DEFAULT_HUB.to_owned(),
            download_timeout: Duration::from_secs(15 * 60),
            endpoints: Vec::new(),
            language: None,
            rerankers: Vec::new(),
            transcription: None,
        }
    }
}

/// What a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    Text,
    Image,
}

/// How a model stands, for the start's report and the health page.
#[derive(Debug, Clone)]
pub struct ModelStatus {
    pub output: String,
    pub kind: ModelKind,
    pub dims: usize,
    /// Loaded, or on disk and loaded at first use, or behind an endpoint.
    pub available: bool,
    /// Why it is not available, or where it is.
    pub reason: String,
}

/// The models of this server. Cheap to clone.
#[derive(Clone)]
pub struct Models(Arc<Inner>);

struct Inner {
    fetcher: Fetcher,
    text: Vec<Arc<Slot<dyn TextEncoder>>>,
    image: Vec<Arc<Slot<dyn ImageEncoder>>>,
    language: Option<Arc<LanguageModel>>,
    /// The built-in one first.
    rerank: Vec<Arc<Slot<dyn Reranker>>>,
    speech: Option<Arc<Transcriber>>,
}

/// One model: what it is, and the encoder once loaded.
struct Slot<T: ?Sized> {
    output: String,
    dims: usize,
    source: Source<T>,
    loaded: OnceCell<Arc<T>>,
    failed: Mutex<Option<(Instant, String)>>,
}

/// Loads the checked files of a bundle.
type Load<T> = fn(&str, &super::fetch::Files) -> Result<Arc<T>>;

enum Source<T: ?Sized> {
    Local(&'static Bundle, Load<T>),
    /// Where it is; the encoder is there from the start.
    Remote(String, Arc<T>),
}

impl Models {
    /// Loads nothing yet: each model is fetched and loaded when first asked for.
    pub fn open(
        config: ModelConfig,
        client: reqwest::Client,
        progress: OnProgress,
    ) -> Result<Self> {
        let mut text: Vec<Arc<Slot<dyn TextEncoder>>> = vec![Slot::local(
            MINILM_OUTPUT,
            MINILM_DIMS,
            &MINILM,
            |output, files| Ok(Arc::new(BertEncoder::load(output, files)?)),
        )];
        let mut image: Vec<Arc<Slot<dyn ImageEncoder>>> = vec![Slot::local(
            EFFICIENTNET_OUTPUT,
            efficientnet_graph::DIMS,
            &EFFICIENTNET,
            |output, files| Ok(Arc::new(EfficientNetEncoder::load(output, files)?)),
        )];
        for endpoint in config.endpoints {
            put_remote(endpoint, client.clone(), &mut text, &mut image)?;
        }
        let language = config
            .language
            .map(|language| LanguageModel::new(language, client.clone()))
            .transpose()?;
        let mut rerank: Vec<Arc<Slot<dyn Reranker>>> =
            vec![Slot::local(RERANKER_NAME, 1, &RERANKER, |name, files| {
                Ok(Arc::new(CrossEncoder::load(name, files)?))
            })];
        for endpoint in config.rerankers {
            let (name, address) = (endpoint.name.clone(), endpoint.url.clone());
            let remote = Arc::new(RemoteReranker::new(endpoint, client.clone())?);
            put(&mut rerank, Slot::remote(&name, 1, &address, remote as _));
        }
        let speech = config
            .transcription
            .map(|speech| Transcriber::new(speech, client.clone()))
            .transpose()?;
        let fetcher = Fetcher {
            cache_dir: config.cache_dir,
            model_path: config.model_path,
            offline: config.offline,
            hub: config.hub,
            client,
            timeout: config.download_timeout,
            progress,
        };
        Ok(Self(Arc::new(Inner {
            fetcher,
            text,
            image,
            language: language.map(Arc::new),
            rerank,
            speech: speech.map(Arc::new),
        })))
    }

    /// The encoder of texts that fills this output; the first call fetches and loads it.
    pub async fn text(&self, output: &str) -> Result<Arc<dyn TextEncoder>> {
        find(&self.0.text, output, "texts")?
            .get(&self.0.fetcher)
            .await
    }

    /// The encoder of pictures that fills this output; the first call fetches and loads it.
    pub async fn image(&self, output: &str) -> Result<Arc<dyn ImageEncoder>> {
        find(&self.0.image, output, "pictures")?
            .get(&self.0.fetcher)
            .await
    }

    /// How every known model stands, without loading or downloading anything.
    pub fn status(&self) -> Vec<ModelStatus> {
        let Inner {
            fetcher,
            text,
            image,
            ..
        } = &*self.0;
        let texts = text
            .iter()
            .map(|slot| slot.status(ModelKind::Text, fetcher));
        let images = image
            .iter()
            .map(|slot| slot.status(ModelKind::Image, fetcher));
        texts.chain(images).collect()
    }
}

/// Adds a model, in the place of one with the same output.
fn put<T: ?Sized>(slots: &mut Vec<Arc<Slot<T>>>, slot: Arc<Slot<T>>) {
    slots.retain(|other| other.output != slot.output);
    slots.push(slot);
}

/// Puts a model behind HTTP among the encoders of texts, and of pictures if it reads those.
fn put_remote(
    endpoint: Endpoint,
    client: reqwest::Client,
    text: &mut Vec<Arc<Slot<dyn TextEncoder>>>,
    image: &mut Vec<Arc<Slot<dyn ImageEncoder>>>,
) -> Result<()> {
    let (output, dims) = (endpoint.output.clone(), endpoint.dims);
    let (address, pictures) = (endpoint.url.clone(), endpoint.pictures);
    let remote = Arc::new(RemoteEncoder::new(endpoint, client)?);
    if pictures {
        let slot = Slot::remote(&output, dims, &address, Arc::clone(&remote) as _);
        put(image, slot);
    }
    put(text, Slot::remote(&output, dims, &address, remote as _));
    Ok(())
}

#[async_trait]
impl Encoders for Models {
    async fn text(&self, output: &str) -> Result<Arc<dyn TextEncoder>> {
        Models::text(self, output).await
    }

    async fn image(&self, output: &str) -> Result<Arc<dyn ImageEncoder>> {
        Models::image(self, output).await
    }

    fn language(&self) -> Option<Arc<LanguageModel>> {
        self.0.language.clone()
    }

    async fn reranker(&self, name: &str) -> Result<Arc<dyn Reranker>> {
        let slots = &self.0.rerank;
        let named = slots.iter().find(|slot| slot.output == name);
        // One configured alone is the server's reranker, whatever a stage calls it.
        let slot = named.or(slots.last());
        match slot {
            Some(slot) => slot.get(&self.0.fetcher).await,
            None => Err(EmbedError::Unavailable(format!(
                "there is no reranker `{name}`"
            ))),
        }
    }

    fn speech(&self) -> Option<Arc<Transcriber>> {
        self.0.speech.clone()
    }
}

fn find<'a, T: ?Sized>(
    slots: &'a [Arc<Slot<T>>],
    output: &str,
    what: &str,
) -> Result<&'a Arc<Slot<T>>> {
    let found = slots.iter().find(|slot| slot.output == output);
    found.ok_or_else(|| {
        let known: Vec<_> = slots.iter().map(|slot| slot.output.as_str()).collect();
        EmbedError::Unavailable(format!(
            "no model on this server turns {what} into `{output}`; known: {}. Configure an endpoint for it",
            known.join(", ")
        ))
    })
}

impl<T: ?Sized + Send + Sync + 'static> Slot<T> {
    fn local(output: &str, dims: usize, bundle: &'static Bundle, load: Load<T>) -> Arc<Self> {
        Arc::new(Self {
            output: output.to_owned(),
            dims,
            source: Source::Local(bundle, load),
            loaded: OnceCell::new(),
            failed: Mutex::new(None),
        })
    }

    fn remote(output: &str, dims: usize, address: &str, encoder: Arc<T>) -> Arc<Self> {
        Arc::new(Self {
            output: output.to_owned(),
            dims,
            source: Source::Remote(address.to_owned(), encoder),
            loaded: OnceCell::new(),
            failed: Mutex::new(None),
        })
    }

    /// The model; one that is not loaded yet is by a task of its own, so that whoever stops waiting leaves it to the next.
    async fn get(self: &Arc<Self>, fetcher: &Fetcher) -> Result<Arc<T>> {
        if let Some(made) = self.loaded.get() {
            return Ok(Arc::clone(made));
        }
        let (slot, fetcher) = (Arc::clone(self), fetcher.clone());
        let loading = tokio::spawn(async move {
            let made = slot.loaded.get_or_try_init(|| slot.make(&fetcher));
            made.await.map(Arc::clone)
        });
        let broken =
            |error| EmbedError::Unavailable(format!("a model broke while loading: {error}"));
        loading.await.unwrap_or_else(|error| Err(broken(error)))
    }

    async fn make(&self, fetcher: &Fetcher) -> Result<Arc<T>> {
        let recent = self.failed.lock().clone();
        if let Some((at, reason)) = recent
            && at.elapsed() < RETRY_AFTER
        {
            return Err(EmbedError::Unavailable(reason));
        }
        let made = match &self.source {
            Source::Local(bundle, load) => self.load(fetcher, bundle, *load).await,
            Source::Remote(_, encoder) => Ok(Arc::clone(encoder)),
        };
        *self.failed.lock() = match &made {
            Ok(_) => None,
            Err(error) => Some((Instant::now(), error.to_string())),
        };
        made
    }

    async fn load(
        &self,
        fetcher: &Fetcher,
        bundle: &'static Bundle,
        load: Load<T>,
    ) -> Result<Arc<T>> {
        let files = fetcher.ensure(bundle).await?;
        let output = self.output.clone();
        blocking(move || load(&output, &files)).await
    }

    fn status(&self, kind: ModelKind, fetcher: &Fetcher) -> ModelStatus {
        let failed = self.failed.lock().clone();
        let (available, reason) = match (&self.source, failed) {
            (Source::Remote(address, _), _) => (true, format!("at {address}")),
            _ if self.loaded.initialized() => (true, "loaded".to_owned()),
            (_, Some((_, reason))) => (false, reason),
            (Source::Local(bundle, _), None) if fetcher.present(bundle) => {
                (true, "on disk, loaded at first use".to_owned())
            }
            _ if fetcher.offline => {
                let reason = "not on disk, and downloads are switched off";
                (false, reason.to_owned())
            }
            _ => (false, "not on disk, downloaded at first use".to_owned()),
        };
        ModelStatus {
            output: self.output.clone(),
            kind,
            dims: self.dims,
            available,
            reason,
        }
    }
}
