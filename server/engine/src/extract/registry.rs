//! The feature extractors of this server, their parameters and their vector indexes.

use loupe_wire::{
    DocumentGraphExtractorParams, ImageExtractorParams, MultimodalExtractorParams, Object,
    PassthroughExtractorParams, TextExtractorParams, TranscodingExtractorParams,
    UniversalExtractorParams, Value, WebScraperExtractorParams, reading,
};
use serde_json::json;

use super::needs::{Need, Services};
use super::shape::Shape;
use super::{
    absent, document, image, multimodal, passthrough, text, transcoding, universal, web_scraper,
};
use crate::store::{Distance, VectorSpec};

/// The output of the built-in text model.
pub const TEXT_OUTPUT: &str = "all_minilm_l6_v2_v1";
/// The output of the built-in image model.
pub const IMAGE_OUTPUT: &str = "efficientnet_lite0_v1";
/// The output that finds pictures by words; its model is not built in.
pub const SIGLIP_OUTPUT: &str = "google_siglip_base_v1";

/// What fills an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    TextModel,
    ImageModel,
    /// The object brings the vector along.
    Own,
}

/// One embedding model that answers here: built in, or behind a configured endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub name: String,
    pub dims: usize,
    pub source: Source,
}

/// The models that answer on this server, and what else extractors need. Collections are checked against it when they
/// are created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    models: Vec<Output>,
    pub services: Services,
}

impl Outputs {
    /// What runs without any configuration.
    pub fn builtin() -> Self {
        let models = vec![
            Output {
                name: TEXT_OUTPUT.to_owned(),
                dims: 384,
                source: Source::TextModel,
            },
            Output {
                name: IMAGE_OUTPUT.to_owned(),
                dims: 1280,
                source: Source::ImageModel,
            },
        ];
        Self {
            models,
            services: Services::default(),
        }
    }

    /// With the programs and endpoints that this server has besides its embedding models.
    pub fn serving(mut self, services: Services) -> Self {
        self.services = services;
        self
    }

    /// Adds a model behind an endpoint.
    pub fn with(mut self, name: &str, dims: usize, source: Source) -> Self {
        self.models.push(Output {
            name: name.to_owned(),
            dims,
            source,
        });
        self
    }

    pub fn models(&self) -> &[Output] {
        &self.models
    }

    pub fn find(&self, name: &str, source: Source) -> Option<&Output> {
        self.models
            .iter()
            .find(|output| output.name == name && output.source == source)
    }
}

/// One vector index that a collection gets.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct IndexInfo {
    /// `loupe://{extractor}@{version}/{output}`; the bare name for vectors that objects bring along.
    pub feature_uri: String,
    /// `{extractor}_{version}_{output}`; the caller's name for vectors that objects bring along.
    pub name: String,
    pub output: String,
    pub dims: usize,
    pub distance: Distance,
    pub source: Source,
}

impl IndexInfo {
    pub(super) fn of(extractor: &str, version: &str, output: &Output) -> Self {
        Self {
            feature_uri: format!("loupe://{extractor}@{version}/{}", output.name),
            name: format!("{extractor}_{version}_{}", output.name),
            output: output.name.clone(),
            dims: output.dims,
            distance: Distance::Cosine,
            source: output.source,
        }
    }

    pub fn spec(&self) -> VectorSpec {
        VectorSpec {
            name: self.name.clone(),
            dims: self.dims,
            distance: self.distance,
        }
    }
}

/// A parameter that cannot be taken: where, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {msg}", loc.join("."))]
pub struct Violation {
    /// Below the parameters, such as `["chunk_size"]`.
    pub loc: Vec<String>,
    pub msg: String,
}

impl Violation {
    pub(super) fn new(field: &str, msg: impl Into<String>) -> Self {
        Self {
            loc: vec![field.to_owned()],
            msg: msg.into(),
        }
    }
}

/// Checked parameters of one extractor.
#[derive(Debug, Clone, PartialEq)]
pub enum Params {
    Text(text::TextParams),
    Document(document::DocumentParams),
    Image(image::ImageParams),
    Passthrough(passthrough::PassthroughParams),
    Multimodal(multimodal::MultimodalParams),
    Universal(Box<universal::UniversalParams>),
    Transcoding(transcoding::TranscodingParams),
    Scraper(Box<web_scraper::ScraperParams>),
}

impl Params {
    /// The vector indexes of a collection with these parameters.
    pub fn indexes(&self) -> &[IndexInfo] {
        match self {
            Self::Text(params) => &params.indexes,
            Self::Document(params) => &params.indexes,
            Self::Image(params) => &params.indexes,
            Self::Passthrough(params) => &params.indexes,
            Self::Multimodal(params) => &params.indexes,
            Self::Universal(params) => &params.indexes,
            Self::Scraper(params) => &params.indexes,
            Self::Transcoding(_) => &[],
        }
    }

    /// What these parameters ask for besides embedding models, each with the parameter that asks.
    pub fn needs(&self) -> Vec<(&'static str, Need)> {
        match self {
            Self::Text(params) if params.shape.is_some() => {
                vec![("response_shape", Need::Language)]
            }
            Self::Scraper(params) if params.shape.is_some() => {
                vec![("response_shape", Need::Language)]
            }
            Self::Multimodal(params) => params.needs(),
            Self::Transcoding(_) => vec![("", Need::Media)],
            _ => Vec::new(),
        }
    }

    /// The language model that the parameters name, of those of the configured endpoint.
    pub fn llm_model(&self) -> Option<&str> {
        match self {
            Self::Text(params) => params.llm_model.as_deref(),
            Self::Scraper(params) => params.llm_model.as_deref(),
            _ => None,
        }
    }

    /// Members that a language model fills in, with their types.
    pub fn shape(&self) -> Option<&Shape> {
        match self {
            Self::Text(params) => params.shape.as_ref(),
            Self::Scraper(params) => params.shape.as_ref(),
            Self::Multimodal(params) => params.shape.as_ref(),
            _ => None,
        }
    }
}

/// One input of an extractor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// `*` takes anything and needs no mapping.
    pub name: &'static str,
    /// Property types of a bucket that fit.
    pub types: &'static [&'static str],
}

/// One field that an extractor writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    /// A JSON type.
    pub kind: &'static str,
    pub description: &'static str,
}

/// Which extractor it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extractor {
    Text,
    Document,
    Image,
    Passthrough,
    Multimodal,
    Universal,
    Transcoding,
    Scraper,
    /// One of the interface that nothing here can run.
    Absent,
}

/// What the catalogue says of an extractor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractorInfo {
    pub extractor: Extractor,
    pub name: &'static str,
    pub version: &'static str,
    pub feature_extractor_id: &'static str,
    pub description: &'static str,
    pub category: &'static str,
    pub icon: &'static str,
    pub inputs: &'static [Input],
    pub outputs: &'static [Field],
    /// Fields that tell where in its object a document stands.
    pub position_fields: &'static [&'static str],
    /// What it cannot do anything without.
    pub needs: &'static [Need],
    /// What it does more with.
    pub gains: &'static [Need],
}

impl ExtractorInfo {
    /// Why it cannot be used on this server, if so.
    pub fn unavailable(&self, outputs: &Outputs) -> Option<String> {
        let mut needs = self.needs.iter();
        needs.find_map(|need| outputs.services.lacks(*need))
    }

    /// Refuses parameters that ask for what this server does not have.
    ///
    /// # Errors
    /// The parameter, and what to install or configure.
    pub fn check_available(&self, params: &Params, outputs: &Outputs) -> Result<(), Violation> {
        for (parameter, need) in params.needs() {
            if let Some(msg) = outputs.services.lacks(need) {
                let loc = (!parameter.is_empty()).then(|| parameter.to_owned());
                return Err(Violation {
                    loc: loc.into_iter().collect(),
                    msg,
                });
            }
        }
        Ok(())
    }

    /// Reads and checks `parameters`; `null` takes every default.
    pub fn check_params(&self, parameters: &Value, outputs: &Outputs) -> Result<Params, Violation> {
        let object = match parameters {
            Value::Null => &Object::new(),
            Value::Object(object) => object,
            _ => {
                return Err(Violation {
                    loc: Vec::new(),
                    msg: "parameters must be an object".to_owned(),
                });
            }
        };
        if let Some(other) = object.get("extractor_type")
            && other.as_str() != Some(self.name)
        {
            return Err(Violation::new(
                "extractor_type",
                format!("must be \"{}\" for this extractor", self.name),
            ));
        }
        Ok(match self.extractor {
            Extractor::Text => Params::Text(text::check(object, outputs)?),
            Extractor::Document => Params::Document(document::check(object, outputs)?),
            Extractor::Image => Params::Image(image::check(object, outputs)?),
            Extractor::Passthrough => Params::Passthrough(passthrough::check(object)?),
            Extractor::Multimodal => Params::Multimodal(multimodal::check(object, outputs)?),
            Extractor::Universal => Params::Universal(Box::new(universal::check(object, outputs)?)),
            Extractor::Transcoding => Params::Transcoding(transcoding::check(object)?),
            Extractor::Scraper => Params::Scraper(Box::new(web_scraper::check(object, outputs)?)),
            Extractor::Absent => {
                let msg = self.unavailable(outputs);
                return Err(Violation {
                    loc: Vec::new(),
                    msg: msg.unwrap_or_else(|| format!("{} cannot be used", self.name)),
                });
            }
        })
    }

    /// The parameters when nothing is set.
    pub fn default_parameters(&self) -> Value {
        let value = match self.extractor {
            Extractor::Text => serde_json::to_value(TextExtractorParams::default()),
            Extractor::Document => serde_json::to_value(DocumentGraphExtractorParams::default()),
            Extractor::Image => serde_json::to_value(ImageExtractorParams::default()),
            Extractor::Passthrough => serde_json::to_value(PassthroughExtractorParams::default()),
            Extractor::Multimodal => serde_json::to_value(MultimodalExtractorParams::default()),
            Extractor::Universal => serde_json::to_value(UniversalExtractorParams::default()),
            Extractor::Transcoding => serde_json::to_value(TranscodingExtractorParams::default()),
            Extractor::Scraper => serde_json::to_value(WebScraperExtractorParams::default()),
            Extractor::Absent => Ok(absent::default_parameters(self.name)),
        };
        // Plain structs of strings, numbers and lists always serialize.
        value.unwrap_or(Value::Null)
    }

    /// The fields of `inputs` as a JSON schema.
    pub fn input_schema(&self) -> Value {
        let properties: Object = self
            .inputs
            .iter()
            .map(|input| (input.name.to_owned(), json!({"types": input.types})))
            .collect();
        json!({"type": "object", "properties": properties})
    }

    /// As [`Self::output_schema`], with the members that a language model fills in for these parameters.
    pub fn output_schema_with(&self, params: &Params) -> Value {
        let mut schema = self.output_schema();
        let members = params.shape().map(Shape::properties).unwrap_or_default();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            for (name, member) in members {
                // Of the member's schema a document's needs no more than its type.
                let kind = member
                    .get("type")
                    .and_then(Value::as_str)
                    .unwrap_or("string");
                let told = member.get("description").cloned().unwrap_or(Value::Null);
                let shown = json!({"type": kind, "description": told});
                properties.entry(name).or_insert(shown);
            }
        }
        schema
    }

    /// The fields of `outputs` as a JSON schema.
    pub fn output_schema(&self) -> Value {
        let properties: Object = self
            .outputs
            .iter()
            .map(|field| {
                (
                    field.name.to_owned(),
                    json!({"type": field.kind, "description": field.description}),
                )
            })
            .collect();
        json!({"type": "object", "properties": properties})
    }
}

/// Every extractor of this server.
pub fn catalogue() -> &'static [ExtractorInfo] {
    const CATALOGUE: &[ExtractorInfo] = &[
        text::INFO,
        document::INFO,
        image::INFO,
        multimodal::INFO,
        universal::INFO,
        transcoding::INFO,
        passthrough::INFO,
        web_scraper::INFO,
        absent::FACE_IDENTITY,
        absent::COLBERT,
        absent::COLQWEN,
        absent::AUDIO_FINGERPRINT,
        absent::GEMINI_MULTIFILE,
        absent::SCROLLING_TEXT,
    ];
    CATALOGUE
}

/// The extractor of that name and version. `1`, `1.0` and `1.0.0` mean `v1`.
pub fn find(name: &str, version: &str) -> Option<&'static ExtractorInfo> {
    let number = version.strip_prefix('v').unwrap_or(version);
    let number = number.trim_end_matches(".0");
    catalogue()
        .iter()
        .find(|info| info.name == name && info.version.strip_prefix('v') == Some(number))
}

/// Reads a parameter object; the error names the field where it can be told.
pub(super) fn read<T: serde::de::DeserializeOwned>(
    object: &Object,
    known: &[&str],
) -> Result<T, Violation> {
    if let Some(unknown) = object.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(Violation::new(
            unknown,
            format!("unknown parameter; known are {}", known.join(", ")),
        ));
    }
    // A key that nobody uses would only lie about.
    if object.get("llm_api_key").is_some_and(|key| !key.is_null()) {
        return Err(Violation::new(
            "llm_api_key",
            "language models are set up by whoever runs the server, with its own key: leave it out",
        ));
    }
    // A field alone that fails to parse is the one to name: every field has a default.
    for (key, value) in object {
        let alone = Object::from_iter([(key.clone(), value.clone())]);
        if let Err(error) = reading::from_value::<T>(&Value::Object(alone)) {
            return Err(Violation::new(key, error.to_string()));
        }
    }
    reading::from_value(&Value::Object(object.clone())).map_err(|error| Violation {
        loc: Vec::new(),
        msg: error.to_string(),
    })
}

/// Refuses a number outside its bounds.
pub(super) fn within<T: PartialOrd + std::fmt::Display>(
    field: &str,
    value: T,
    least: T,
    most: T,
) -> Result<(), Violation> {
    if value < least || value > most {
        return Err(Violation::new(
            field,
            format!("must be between {least} and {most}, is {value}"),
        ));
    }
    Ok(())
}

/// The index of a model, or the words for a model that does not answer here.
pub(super) fn index(
    info: &ExtractorInfo,
    output: &str,
    source: Source,
    outputs: &Outputs,
) -> Result<IndexInfo, String> {
    let Some(output) = outputs.find(output, source) else {
        let there: Vec<&str> = outputs
            .models
            .iter()
            .filter(|other| other.source == source)
            .map(|other| other.name.as_str())
            .collect();
        return Err(format!(
            "the model {output} is not available on this server; available: {}. Others answer once an endpoint is \
             configured for them",
            there.join(", ")
        ));
    };
    Ok(IndexInfo::of(info.name, info.version, output))
}

#[cfg(test)]
mod tests;
