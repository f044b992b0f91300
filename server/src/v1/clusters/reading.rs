//! The documents that an execution gathers: their vectors or attributes, and what they say.

use std::collections::HashMap;

use loupe_engine::{
    filter::Filter,
    stage::{Searchable, index_of},
    store::{Document, ListQuery, Reach, WithVectors},
};
use loupe_wire::{ClusterModel, ClusterType, Object, Value, VectorBasedConfigInput};

use super::{composing, composing::Composed, features, store::Run};
use crate::{
    app::App,
    error::Result,
    list::parse_filter,
    v1::{collections, documents},
};

/// Documents of one execution, and numbers of their vectors in all: what is kept in memory.
pub(super) const MAX_DOCUMENTS: usize = 50_000;
pub(super) const MAX_NUMBERS: usize = 32_000_000;
const PAGE: usize = 500;
/// Characters of each document that its cluster is named from.
const TEXT: usize = 600;

/// A document that is gathered.
#[derive(Debug, Clone, Default)]
pub struct Point {
    pub document_id: String,
    pub collection_id: String,
    pub text: String,
    /// Values of the attributes, of a cluster by attributes.
    pub attributes: Vec<String>,
}

/// Everything that an execution works on.
#[derive(Debug, Default)]
pub struct Gathered {
    pub points: Vec<Point>,
    /// One a point; none of a cluster by attributes.
    pub vectors: Vec<Vec<f32>>,
    /// Documents that match.
    pub source: u64,
    /// Of those, the ones that were read; the others are more than fit.
    pub read: u64,
    /// Of those, the ones without a vector or without one of the same size.
    pub without: u64,
    /// The clusters that the documents come with, of an execution that is made of others.
    pub composed: Option<Composed>,
}

/// Reads the documents, in the order of their ids: they come in no order of what they are.
///
/// # Errors
/// A collection is gone or put away, or the store does not answer.
pub async fn gather(
    app: &App,
    namespace_id: &str,
    model: &ClusterModel,
    run: &Run,
) -> Result<Gathered> {
    if composing::is_composed(model, &run.request) {
        return composing::gather(app, namespace_id, model, run).await;
    }
    check_here(app, namespace_id, model).await?;
    let ids = model.collection_ids.clone().unwrap_or_default();
    let found = collections::resolve(app, namespace_id, &ids).await?;
    let searchable: Vec<Searchable> = found
        .iter()
        .map(|one| collections::searchable(app, one))
        .collect();
    let picker = Picker::new(model, run, &searchable);
    let reach = Reach {
        namespace_id: namespace_id.to_owned(),
        collection_ids: ids,
        principal: None,
    };
    let filter = filter(model, run)?;
    let mut out = Gathered {
        source: app.store().count(&reach, filter.as_ref()).await?,
        ..Default::default()
    };
    let mut query = ListQuery {
        filter,
        limit: PAGE,
        vectors: if picker.vectors.is_some() {
            WithVectors::Yes
        } else {
            WithVectors::No
        },
        ..Default::default()
    };
    let mut numbers = 0;
    loop {
        let page = app.store().list(&reach, query.clone()).await?;
        for document in page.documents {
            if out.points.len() >= MAX_DOCUMENTS || numbers >= MAX_NUMBERS {
                return Ok(out);
            }
            out.read += 1;
            numbers += picker.take(document, &mut out);
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(out);
        }
    }
}

/// Refuses to read collections that are put away.
///
/// # Errors
/// One is gone, or away; the database does not answer.
pub(super) async fn check_here(app: &App, namespace_id: &str, model: &ClusterModel) -> Result<()> {
    for id in model.collection_ids.iter().flatten() {
        collections::lifecycle::still_here(app, namespace_id, id).await?;
    }
    Ok(())
}

/// The cluster's own filter and that of the execution.
fn filter(model: &ClusterModel, run: &Run) -> Result<Option<Filter>> {
    let trees: Vec<Value> = [&model.filters, &run.request.filters]
        .into_iter()
        .flatten()
        .map(|filter| filter.0.clone())
        .filter(|tree| tree.as_object().is_none_or(|tree| !tree.is_empty()))
        .collect();
    match trees.as_slice() {
        [] => Ok(None),
        [one] => parse_filter(one, "filters").map(Some),
        _ => parse_filter(&serde_json::json!({ "AND": trees }), "filters").map(Some),
    }
}

/// What is taken from each document.
struct Picker<'a> {
    vectors: Option<Features<'a>>,
    attributes: &'a [String],
    /// Paths of what names clusters; everything where it is empty.
    texts: Vec<&'a str>,
}

/// The vectors that make a point, one after the other.
struct Features<'a> {
    config: &'a VectorBasedConfigInput,
    /// By collection, the index of each feature with its weight.
    indexes: HashMap<&'a str, Vec<(String, f32)>>,
}

impl<'a> Picker<'a> {
    fn new(model: &'a ClusterModel, run: &'a Run, searchable: &'a [Searchable]) -> Self {
        let own = run.request.llm_labeling.as_ref();
        let labelling = own.or(model.llm_labeling.as_ref());
        let mappings = labelling.and_then(|one| one.labeling_inputs.as_ref());
        let texts = mappings.into_iter().flat_map(|one| &one.input_mappings);
        Self {
            vectors: match (model.cluster_type, &model.vector_config) {
                (ClusterType::Vector, Some(config)) => Some(Features::new(config, searchable)),
                _ => None,
            },
            attributes: model
                .attribute_config
                .as_ref()
                .map(|one| one.attributes.as_slice())
                .unwrap_or_default(),
            texts: texts.filter_map(|one| one.path.as_deref()).collect(),
        }
    }

    /// Adds the document; answers how many numbers that keeps.
    fn take(&self, document: Document, out: &mut Gathered) -> usize {
        let mut point = Point {
            text: self.text(&document.payload),
            ..Default::default()
        };
        let mut kept = 0;
        if let Some(features) = &self.vectors {
            let vector = features.of(&document);
            let fits = |vector: &Vec<f32>| {
                out.vectors
                    .first()
                    .is_none_or(|one| one.len() == vector.len())
            };
            let Some(vector) = vector.filter(fits) else {
                out.without += 1;
                return 0;
            };
            kept = vector.len();
            out.vectors.push(vector);
        }
        let payload = Value::from(document.payload);
        for path in self.attributes {
            let found = loupe_engine::filter::value_at(&payload, path);
            point.attributes.push(match found {
                Some(Value::String(text)) => text.chars().take(200).collect(),
                None | Some(Value::Null) => String::new(),
                Some(other) => other.to_string().chars().take(200).collect(),
            });
        }
        point.document_id = document.document_id;
        point.collection_id = document.collection_id;
        out.points.push(point);
        kept
    }

    fn text(&self, payload: &Object) -> String {
        let cut = |text: String| text.chars().take(TEXT).collect();
        if self.texts.is_empty() {
            return cut(documents::keywords(payload));
        }
        let payload = Value::Object(payload.clone());
        let found = self
            .texts
            .iter()
            .filter_map(|path| loupe_engine::filter::value_at(&payload, path));
        let words: Vec<String> = found
            .map(|value| {
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), ToOwned::to_owned)
            })
            .collect();
        cut(words.join("\n"))
    }
}

impl<'a> Features<'a> {
    fn new(config: &'a VectorBasedConfigInput, searchable: &'a [Searchable]) -> Self {
        let features = features::named(config);
        let weights = config.feature_weights.as_ref();
        let of = |collection: &'a Searchable| {
            let named = features.iter().filter_map(|feature| {
                let index = index_of(collection, feature)?;
                let weight = weights.and_then(|weights| weights.get(feature));
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "vectors are kept in single precision"
                )]
                Some((index, weight.map_or(1.0, |weight| *weight as f32)))
            });
            let first = collection
                .indexes
                .first()
                .map(|index| (index.name.clone(), 1.0));
            let indexes = match features.is_empty() {
                true => first.into_iter().collect(),
                false => named.collect(),
            };
            (collection.collection_id.as_str(), indexes)
        };
        Self {
            config,
            indexes: searchable.iter().map(of).collect(),
        }
    }

    /// The point of a document; none where it lacks a vector.
    fn of(&self, document: &Document) -> Option<Vec<f32>> {
        let indexes = self.indexes.get(document.collection_id.as_str())?;
        let mut point = Vec::new();
        for (index, weight) in indexes {
            let mut vector = document.vectors.get(index)?.clone();
            // At unit length, the nearer by angle, the nearer by distance, and no feature outweighs another.
            if self.config.normalize_features {
                loupe_engine::embed::normalize(&mut vector);
            }
            vector.iter_mut().for_each(|number| *number *= weight);
            point.append(&mut vector);
        }
        (!point.is_empty()).then_some(point)
    }
}
