//! Our conditions, points and errors in the words of Qdrant's gRPC interface.

use std::collections::HashMap;

use loupe_wire::{Object, Value, reading};
use qdrant_client::qdrant as p;
use qdrant_client::{QdrantError, qdrant::point_id::PointIdOptions};
use uuid::Uuid;

use super::super::shards::{Cond, Found, Point, Query, Read, Score, Shard};
use super::super::{Distance, StoreError, layout};

/// Where a collection's metadata says which vectors it has.
const VECTORS: &str = "vectors";

/// The server's errors: what the caller can mend, what may pass, what must not happen.
pub fn error(error: QdrantError) -> StoreError {
    // gRPC's own numbers: the client does not export their names.
    const INVALID_ARGUMENT: i32 = 3;
    const PASSING: [i32; 5] = [1, 4, 8, 10, 14];
    match &error {
        QdrantError::ResponseError { status } => match status.code() as i32 {
            INVALID_ARGUMENT => StoreError::Invalid(status.message().to_owned()),
            code if PASSING.contains(&code) => StoreError::Unavailable(status.message().to_owned()),
            _ => StoreError::Internal(error.to_string()),
        },
        QdrantError::ResourceExhaustedError { .. } | QdrantError::Io(_) => {
            StoreError::Unavailable(error.to_string())
        }
        _ => StoreError::Internal(error.to_string()),
    }
}

/// A new collection for a shard.
pub fn create(name: &str, shard: &Shard) -> p::CreateCollection {
    let vectors = shard.vectors.iter().map(|spec| {
        let params = p::VectorParams {
            size: spec.dims as u64,
            distance: match spec.distance {
                Distance::Cosine => p::Distance::Cosine,
                Distance::Dot => p::Distance::Dot,
                Distance::Euclid => p::Distance::Euclid,
            } as i32,
            quantization_config: Some(p::QuantizationConfig {
                quantization: Some(p::quantization_config::Quantization::Scalar(
                    p::ScalarQuantization {
                        r#type: p::QuantizationType::Int8 as i32,
                        quantile: Some(0.99),
                        memory: Some(p::Memory::Pinned as i32),
                        ..Default::default()
                    },
                )),
            }),
            ..Default::default()
        };
        (spec.name.clone(), params)
    });
    let vectors = p::vectors_config::Config::ParamsMap(p::VectorParamsMap {
        map: vectors.collect(),
    });
    let metadata = serde_json::to_string(&shard.vectors).unwrap_or_default();
    p::CreateCollection {
        collection_name: name.to_owned(),
        vectors_config: Some(p::VectorsConfig {
            config: Some(vectors),
        }),
        metadata: [(VECTORS.to_owned(), value_out(Value::String(metadata)))].into(),
        ..Default::default()
    }
}

/// The shard that a collection is; nothing when it is not one of ours.
pub fn shard(name: &str, info: p::GetCollectionInfoResponse) -> Option<Shard> {
    let Value::String(vectors) = value_in(info.result?.config?.metadata.remove(VECTORS)?) else {
        return None;
    };
    Some(Shard {
        name: name.to_owned(),
        vectors: reading::from_str(&vectors).ok()?,
        sole: None,
    })
}

/// How keywords are cut into words, and scored.
fn words() -> p::TextIndexParams {
    let english = p::SnowballParams {
        language: "english".to_owned(),
    };
    p::TextIndexParams {
        tokenizer: p::TokenizerType::Multilingual as i32,
        lowercase: Some(true),
        ascii_folding: Some(true),
        stemmer: Some(p::StemmingAlgorithm {
            stemming_params: Some(p::stemming_algorithm::StemmingParams::Snowball(english)),
        }),
        scoring: Some(p::TextScoringParams {
            r#type: p::TextScoringType::Bm25 as i32,
        }),
        stopwords: Some(p::StopwordsSet {
            languages: vec!["english".to_owned()],
            custom: Vec::new(),
        }),
        enable_hnsw: Some(false),
        ..Default::default()
    }
}

/// The indexes of the reserved fields.
pub fn payload_indexes(collection: &str) -> Vec<p::CreateFieldIndexCollection> {
    use p::payload_index_params::IndexParams;
    let keyword = |is_tenant| {
        let params = p::KeywordIndexParams {
            is_tenant: Some(is_tenant),
            ..Default::default()
        };
        (
            p::FieldType::Keyword,
            IndexParams::KeywordIndexParams(params),
        )
    };
    let text = words();
    let terms = p::IntegerIndexParams {
        lookup: Some(true),
        range: Some(false),
        ..Default::default()
    };
    [
        (layout::SCOPE, keyword(true)),
        (
            layout::TERMS,
            (
                p::FieldType::Integer,
                IndexParams::IntegerIndexParams(terms),
            ),
        ),
        (
            layout::KEYWORDS,
            (p::FieldType::Text, IndexParams::TextIndexParams(text)),
        ),
        (layout::ACL, keyword(false)),
    ]
    .into_iter()
    .map(|(field, (kind, params))| p::CreateFieldIndexCollection {
        collection_name: collection.to_owned(),
        wait: Some(true),
        field_name: field.to_owned(),
        field_type: Some(kind as i32),
        field_index_params: Some(p::PayloadIndexParams {
            index_params: Some(params),
        }),
        ..Default::default()
    })
    .collect()
}

fn nothing() -> p::Condition {
    p::Condition::has_id(std::iter::empty::<p::PointId>())
}

fn wrap(filter: p::Filter) -> p::Condition {
    p::Condition {
        condition_one_of: Some(p::condition::ConditionOneOf::Filter(filter)),
    }
}

/// A condition as a filter.
pub fn filter(cond: Cond) -> p::Filter {
    match cond {
        Cond::All(members) => {
            let mut filter = p::Filter::default();
            for member in members {
                match member {
                    Cond::Not(member) => filter.must_not.push(condition(*member)),
                    // An empty list is taken for no condition, which is what this is.
                    Cond::All(members) if members.is_empty() => {}
                    member => filter.must.push(condition(member)),
                }
            }
            filter
        }
        Cond::Any(members) if members.is_empty() => p::Filter::must([nothing()]),
        Cond::Any(members) => p::Filter::should(members.into_iter().map(condition)),
        Cond::Not(member) => p::Filter::must_not([condition(*member)]),
        leaf => p::Filter::must([condition(leaf)]),
    }
}

fn condition(cond: Cond) -> p::Condition {
    use p::r#match::MatchValue;
    match cond {
        // An empty filter inside a filter is not everywhere taken for everything: say it with a condition.
        Cond::All(members) if members.is_empty() => wrap(p::Filter::must_not([nothing()])),
        Cond::All(_) | Cond::Any(_) | Cond::Not(_) => wrap(filter(cond)),
        Cond::Keyword { any, .. } if any.is_empty() => nothing(),
        Cond::Term { any, .. } if any.is_empty() => nothing(),
        Cond::Keyword { path, any } => p::Condition::matches(
            path,
            MatchValue::Keywords(p::RepeatedStrings { strings: any }),
        ),
        Cond::Term { path, any } => p::Condition::matches(
            path,
            MatchValue::Integers(p::RepeatedIntegers { integers: any }),
        ),
        Cond::Ids(ids) => p::Condition::has_id(ids.into_iter().map(id_out)),
    }
}

/// A ranked read.
pub fn query(collection: String, query: Query) -> p::QueryPoints {
    use p::query::Variant;
    let mut params = p::SearchParams {
        quantization: Some(p::QuantizationSearchParams {
            ignore: Some(false),
            rescore: Some(true),
            oversampling: Some(2.0),
        }),
        ..Default::default()
    };
    let (variant, using) = match query.score {
        Score::Nearest { index, vector, .. } => {
            let dense = p::vector_input::Variant::Dense(p::DenseVector { data: vector });
            (
                Variant::Nearest(p::VectorInput {
                    variant: Some(dense),
                }),
                index,
            )
        }
        Score::Keywords { text, corpus } => {
            if !corpus.is_everything() {
                params.idf = Some(p::IdfParams {
                    corpus: Some(filter(corpus)),
                });
            }
            (
                Variant::Text(p::TextQuery {
                    query: text,
                    scoring: None,
                }),
                layout::KEYWORDS.to_owned(),
            )
        }
    };
    p::QueryPoints {
        collection_name: collection,
        query: Some(p::Query {
            variant: Some(variant),
        }),
        using: Some(using),
        filter: Some(filter(query.filter)),
        params: Some(params),
        limit: Some(query.limit as u64),
        with_payload: Some(with_payload(query.read)),
        with_vectors: Some(query.read.vectors.into()),
        ..Default::default()
    }
}

/// The parts of the payload that a read needs.
pub fn with_payload(read: Read) -> p::WithPayloadSelector {
    use p::with_payload_selector::SelectorOptions;
    let mut fields = vec![layout::SCOPE.to_owned(), layout::DOCUMENT.to_owned()];
    // See [`layout::document`].
    if read.vectors {
        fields.push(layout::KEYWORDS.to_owned());
    }
    let options = if read.payload {
        SelectorOptions::Include(p::PayloadIncludeSelector { fields })
    } else {
        SelectorOptions::Enable(false)
    };
    p::WithPayloadSelector {
        selector_options: Some(options),
    }
}

pub fn id_out(id: Uuid) -> p::PointId {
    p::PointId {
        point_id_options: Some(PointIdOptions::Uuid(id.to_string())),
    }
}

fn id_in(id: Option<p::PointId>) -> Option<Uuid> {
    match id?.point_id_options? {
        PointIdOptions::Uuid(id) => Uuid::try_parse(&id).ok(),
        PointIdOptions::Num(_) => None,
    }
}

/// A point to write.
pub fn point_out(point: Point) -> p::PointStruct {
    let vector = |data| p::Vector {
        vector: Some(p::vector::Vector::Dense(p::DenseVector { data })),
        ..Default::default()
    };
    let vectors = point
        .vectors
        .into_iter()
        .map(|(name, data)| (name, vector(data)))
        .collect();
    p::PointStruct {
        id: Some(id_out(point.id)),
        payload: point
            .payload
            .into_iter()
            .map(|(key, value)| (key, value_out(value)))
            .collect(),
        vectors: Some(p::Vectors {
            vectors_options: Some(p::vectors::VectorsOptions::Vectors(p::NamedVectors {
                vectors,
            })),
        }),
    }
}

/// A point that was read; nothing when its id is not one of ours.
pub fn found(
    id: Option<p::PointId>,
    payload: HashMap<String, p::Value>,
    vectors: Option<p::VectorsOutput>,
) -> Option<Found> {
    let named = match vectors.and_then(|vectors| vectors.vectors_options) {
        Some(p::vectors_output::VectorsOptions::Vectors(named)) => named.vectors,
        _ => HashMap::new(),
    };
    let vectors = named
        .into_iter()
        .filter_map(|(name, vector)| match vector.into_vector() {
            p::vector_output::Vector::Dense(dense) => Some((name, dense.data)),
            _ => None,
        })
        .collect();
    Some(layout::found(Point {
        id: id_in(id)?,
        payload: object_in(payload),
        vectors,
    }))
}

fn object_in(fields: HashMap<String, p::Value>) -> Object {
    fields
        .into_iter()
        .map(|(key, value)| (key, value_in(value)))
        .collect()
}

/// JSON as the interface has it.
pub fn value_out(value: Value) -> p::Value {
    use p::value::Kind;
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(is) => Kind::BoolValue(is),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Kind::IntegerValue(integer),
            None => Kind::DoubleValue(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Kind::StringValue(text),
        Value::Array(items) => Kind::ListValue(p::ListValue {
            values: items.into_iter().map(value_out).collect(),
        }),
        Value::Object(fields) => Kind::StructValue(p::Struct {
            fields: fields
                .into_iter()
                .map(|(key, value)| (key, value_out(value)))
                .collect(),
        }),
    };
    p::Value { kind: Some(kind) }
}

/// The inverse of [`value_out`].
pub fn value_in(value: p::Value) -> Value {
    use p::value::Kind;
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(is)) => Value::Bool(is),
        Some(Kind::IntegerValue(integer)) => Value::from(integer),
        Some(Kind::DoubleValue(double)) => Value::from(double),
        Some(Kind::StringValue(text)) => Value::String(text),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(value_in).collect(),
        Some(Kind::StructValue(fields)) => Value::Object(object_in(fields.fields)),
    }
}
