//! The feature extractors of this server, their parameters and their vector indexes.

use loupe_wire::{
    DocumentGraphExtractorParams, ImageExtractorParams, Object, PassthroughExtractorParams,
    TextExtractorParams, Value,
};
use serde_json::json;

use super::{document, image, passthrough, text};
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

/// The models that answer on this server. Collections are checked against it when they are created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs(Vec<Output>);

impl Outputs {
    /// What runs without any configuration.
    pub fn builtin() -> Self {
        Self(vec![
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
        ])
    }

    /// Adds a model behind an endpoint.
    pub fn with(mut self, name: &str, dims: usize, source: Source) -> Self {
        self.0.push(Output {
            name: name.to_owned(),
            dims,
            source,
        });
        self
    }

    pub fn find(&self, name: &str, source: Source) -> Option<&Output> {
        self.0
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
}

impl Params {
    /// The vector indexes of a collection with these parameters.
    pub fn indexes(&self) -> &[IndexInfo] {
        match self {
            Self::Text(params) => &params.indexes,
            Self::Document(params) => &params.indexes,
            Self::Image(params) => &params.indexes,
            Self::Passthrough(params) => &params.indexes,
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
    /// False when nothing on this server can run it.
    pub available: bool,
}

impl ExtractorInfo {
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
        })
    }

    /// The parameters when nothing is set.
    pub fn default_parameters(&self) -> Value {
        let value = match self.extractor {
            Extractor::Text => serde_json::to_value(TextExtractorParams::default()),
            Extractor::Document => serde_json::to_value(DocumentGraphExtractorParams::default()),
            Extractor::Image => serde_json::to_value(ImageExtractorParams::default()),
            Extractor::Passthrough => serde_json::to_value(PassthroughExtractorParams::default()),
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
    const CATALOGUE: &[ExtractorInfo] =
        &[text::INFO, document::INFO, image::INFO, passthrough::INFO];
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
    // A field alone that fails to parse is the one to name: every field has a default.
    for (key, value) in object {
        let alone = Object::from_iter([(key.clone(), value.clone())]);
        if let Err(error) = serde_json::from_value::<T>(Value::Object(alone)) {
            return Err(Violation::new(key, error.to_string()));
        }
    }
    serde_json::from_value(Value::Object(object.clone())).map_err(|error| Violation {
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
            .0
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
mod tests {
    use super::*;

    fn check(name: &str, parameters: Value) -> Result<Params, Violation> {
        find(name, "v1")
            .expect("in the catalogue")
            .check_params(&parameters, &Outputs::builtin())
    }

    #[test]
    fn names_and_versions_are_found() {
        for info in catalogue() {
            assert_eq!(
                info.feature_extractor_id,
                format!("{}_{}", info.name, info.version)
            );
            for spelling in ["v1", "1", "1.0", "1.0.0"] {
                assert_eq!(
                    find(info.name, spelling).map(|found| found.name),
                    Some(info.name)
                );
            }
            assert!(find(info.name, "v2").is_none());
            info.check_params(&info.default_parameters(), &Outputs::builtin())
                .expect("the defaults are valid");
        }
        assert!(find("nothing", "v1").is_none());
    }

    #[test]
    fn indexes_are_named_by_extractor_version_and_output() {
        let params = check("text_extractor", Value::Null).expect("valid");
        let index = &params.indexes()[0];
        assert_eq!(
            index.feature_uri,
            "loupe://text_extractor@v1/all_minilm_l6_v2_v1"
        );
        assert_eq!(index.name, "text_extractor_v1_all_minilm_l6_v2_v1");
        assert_eq!((index.dims, index.distance), (384, Distance::Cosine));
    }

    #[test]
    fn violations_name_their_field() {
        let cases = [
            ("text_extractor", json!({"chunk_size": 0}), "chunk_size"),
            ("text_extractor", json!({"chunk_size": "ten"}), "chunk_size"),
            (
                "text_extractor",
                json!({"split_by": "words", "chunk_size": 5, "chunk_overlap": 5}),
                "chunk_overlap",
            ),
            ("text_extractor", json!({"split_by": "verses"}), "split_by"),
            (
                "text_extractor",
                json!({"split_by": "time_segments"}),
                "split_by",
            ),
            (
                "text_extractor",
                json!({"source_type": "youtube"}),
                "source_type",
            ),
            (
                "text_extractor",
                json!({"embedding_model": "text-embedding-3-small"}),
                "embedding_model",
            ),
            ("text_extractor", json!({"chunk_sise": 5}), "chunk_sise"),
            (
                "text_extractor",
                json!({"extractor_type": "image_extractor"}),
                "extractor_type",
            ),
            (
                "document_graph_extractor",
                json!({"render_dpi": 10}),
                "render_dpi",
            ),
            (
                "image_extractor",
                json!({"enable_thumbnails": 3}),
                "enable_thumbnails",
            ),
            (
                "passthrough_extractor",
                json!({"row_format": "parquet"}),
                "row_format",
            ),
            (
                "passthrough_extractor",
                json!({"vector_fields": [{"field": "v", "name": "v", "dimensions": 0}]}),
                "vector_fields",
            ),
        ];
        for (name, parameters, field) in cases {
            let violation = check(name, parameters.clone()).expect_err(&parameters.to_string());
            assert_eq!(
                violation.loc.first().map(String::as_str),
                Some(field),
                "{parameters}: {violation}"
            );
        }
    }

    #[test]
    fn a_model_behind_an_endpoint_becomes_available() {
        let parameters = json!({"embedding_model": "multilingual_e5_large_instruct_v1"});
        let refused = check("text_extractor", parameters.clone()).expect_err("not built in");
        assert!(
            refused.msg.contains("not available on this server"),
            "{refused}"
        );
        let outputs =
            Outputs::builtin().with("multilingual_e5_large_instruct_v1", 1024, Source::TextModel);
        let info = find("text_extractor", "v1").expect("in the catalogue");
        let params = info
            .check_params(&parameters, &outputs)
            .expect("available now");
        assert_eq!(params.indexes()[0].dims, 1024);
    }
}
