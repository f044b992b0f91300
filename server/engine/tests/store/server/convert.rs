//! The words of the gRPC interface in those of the embedded engine, and back.

use std::collections::HashMap;

use loupe_wire::Value;
use qdrant_client::qdrant as p;
use qdrant_edge as q;
use serde_json::Map;

pub fn path(path: &str) -> q::JsonPath {
    path.parse().unwrap()
}

pub fn id(id: p::PointId) -> q::PointId {
    match id.point_id_options.unwrap() {
        p::point_id::PointIdOptions::Uuid(text) => q::PointId::Uuid(text.parse().unwrap()),
        p::point_id::PointIdOptions::Num(number) => q::PointId::NumId(number),
    }
}

pub fn id_out(id: q::PointId) -> p::PointId {
    let options = p::point_id::PointIdOptions::Uuid(id.to_string());
    p::PointId {
        point_id_options: Some(options),
    }
}

pub fn filter(filter: p::Filter) -> q::Filter {
    let list = |conditions: Vec<p::Condition>| {
        (!conditions.is_empty()).then(|| conditions.into_iter().map(condition).collect::<Vec<_>>())
    };
    q::Filter {
        should: list(filter.should),
        must: list(filter.must),
        must_not: list(filter.must_not),
        min_should: None,
    }
}

fn condition(condition: p::Condition) -> q::Condition {
    use p::condition::ConditionOneOf as C;
    use p::r#match::MatchValue as M;
    match condition.condition_one_of.unwrap() {
        C::Filter(inner) => q::Condition::Filter(filter(inner)),
        C::HasId(ids) => q::Condition::HasId(ids.has_id.into_iter().map(id).collect()),
        C::Field(field) => {
            let found = match field.r#match.unwrap().match_value.unwrap() {
                M::Keywords(list) => {
                    q::AnyVariants::Strings(list.strings.into_iter().collect()).into()
                }
                M::Integers(list) => {
                    q::AnyVariants::Integers(list.integers.into_iter().collect()).into()
                }
                M::Boolean(is) => q::Match::from(is),
                other => panic!("no store asks for {other:?}"),
            };
            q::Condition::Field(q::FieldCondition::new_match(path(&field.key), found))
        }
        other => panic!("no store asks for {other:?}"),
    }
}

pub fn with_payload(selector: Option<p::WithPayloadSelector>) -> q::WithPayloadInterface {
    use p::with_payload_selector::SelectorOptions as S;
    match selector.and_then(|selector| selector.selector_options) {
        Some(S::Include(include)) => {
            q::WithPayloadInterface::Fields(include.fields.iter().map(|f| path(f)).collect())
        }
        Some(S::Enable(enable)) => q::WithPayloadInterface::Bool(enable),
        _ => q::WithPayloadInterface::Bool(false),
    }
}

pub fn with_vectors(selector: Option<p::WithVectorsSelector>) -> q::WithVector {
    let all = p::with_vectors_selector::SelectorOptions::Enable(true);
    q::WithVector::Bool(selector.and_then(|selector| selector.selector_options) == Some(all))
}

pub fn point(point: p::PointStruct) -> q::PointStructPersisted {
    let named = match point.vectors.and_then(|vectors| vectors.vectors_options) {
        Some(p::vectors::VectorsOptions::Vectors(named)) => named.vectors,
        _ => HashMap::new(),
    };
    let dense = |vector: p::Vector| match vector.vector {
        Some(p::vector::Vector::Dense(dense)) => q::VectorPersisted::Dense(dense.data),
        other => panic!("no store writes {other:?}"),
    };
    q::PointStructPersisted {
        id: id(point.id.unwrap()),
        vector: q::VectorStructPersisted::Named(
            named
                .into_iter()
                .map(|(name, v)| (name, dense(v)))
                .collect(),
        ),
        payload: Some(q::Payload(
            point
                .payload
                .into_iter()
                .map(|(key, value)| (key, json_of(value)))
                .collect(),
        )),
    }
}

pub fn record(record: q::Record) -> p::RetrievedPoint {
    p::RetrievedPoint {
        id: Some(id_out(record.id)),
        payload: payload_out(record.payload),
        vectors: vectors_out(record.vector),
        ..Default::default()
    }
}

pub fn vectors_out(vectors: Option<q::VectorStructInternal>) -> Option<p::VectorsOutput> {
    let q::VectorStructInternal::Named(named) = vectors? else {
        return None;
    };
    let out = |vector| match vector {
        q::VectorInternal::Dense(data) => p::VectorOutput {
            vector: Some(p::vector_output::Vector::Dense(p::DenseVector { data })),
            ..Default::default()
        },
        other => panic!("nobody wrote {other:?}"),
    };
    let vectors = named
        .into_iter()
        .map(|(name, vector)| (name, out(vector)))
        .collect();
    let options = p::vectors_output::VectorsOptions::Vectors(p::NamedVectorsOutput { vectors });
    Some(p::VectorsOutput {
        vectors_options: Some(options),
    })
}

pub fn payload_out(payload: Option<q::Payload>) -> HashMap<String, p::Value> {
    payload
        .into_iter()
        .flat_map(|payload| payload.0)
        .map(|(key, value)| (key, value_of(value)))
        .collect()
}

fn json_of(value: p::Value) -> Value {
    use p::value::Kind as K;
    match value.kind {
        None | Some(K::NullValue(_)) => Value::Null,
        Some(K::BoolValue(is)) => is.into(),
        Some(K::IntegerValue(integer)) => integer.into(),
        Some(K::DoubleValue(double)) => double.into(),
        Some(K::StringValue(text)) => text.into(),
        Some(K::ListValue(list)) => list.values.into_iter().map(json_of).collect(),
        Some(K::StructValue(object)) => Value::Object(
            object
                .fields
                .into_iter()
                .map(|(key, value)| (key, json_of(value)))
                .collect::<Map<_, _>>(),
        ),
    }
}

fn value_of(value: Value) -> p::Value {
    use p::value::Kind as K;
    let kind = match value {
        Value::Null => K::NullValue(0),
        Value::Bool(is) => K::BoolValue(is),
        Value::Number(n) => n
            .as_i64()
            .map_or_else(|| K::DoubleValue(n.as_f64().unwrap()), K::IntegerValue),
        Value::String(text) => K::StringValue(text),
        Value::Array(items) => K::ListValue(p::ListValue {
            values: items.into_iter().map(value_of).collect(),
        }),
        Value::Object(fields) => K::StructValue(p::Struct {
            fields: fields
                .into_iter()
                .map(|(key, value)| (key, value_of(value)))
                .collect(),
        }),
    };
    p::Value { kind: Some(kind) }
}
