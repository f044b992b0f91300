//! The part of the ONNX format that the graphs written here need.
//!
//! Loupe reads the official weights and writes the graph itself, so it needs no converted file of a third party.

use prost::Message;

const IR_VERSION: i64 = 9;
const OPSET: i64 = 20;
const FLOAT: i32 = 1;
const INT64: i32 = 7;

#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(int64, optional, tag = "1")]
    ir_version: Option<i64>,
    #[prost(string, tag = "2")]
    producer_name: String,
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    opset_import: Vec<OperatorSetId>,
}

#[derive(Clone, PartialEq, Message)]
struct OperatorSetId {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(int64, optional, tag = "2")]
    version: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    node: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<ValueInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    output: Vec<String>,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    op_type: String,
    #[prost(message, repeated, tag = "5")]
    attribute: Vec<AttributeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct AttributeProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(float, optional, tag = "2")]
    f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    i: Option<i64>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    ints: Vec<i64>,
    #[prost(int32, optional, tag = "20")]
    kind: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, optional, tag = "2")]
    data_type: Option<i32>,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "vec", tag = "9")]
    raw_data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfo {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    kind: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeProto {
    #[prost(message, optional, tag = "1")]
    tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorType {
    #[prost(int32, tag = "1")]
    element: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
struct Shape {
    #[prost(message, repeated, tag = "1")]
    dim: Vec<Dimension>,
}

#[derive(Clone, PartialEq, Message)]
struct Dimension {
    #[prost(int64, optional, tag = "1")]
    value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    param: Option<String>,
}

/// A dimension of an input or output.
pub(super) enum Dim {
    Fixed(usize),
    Named(&'static str),
}

/// An attribute of an operator.
pub(super) enum Attr<'a> {
    Int(&'static str, i64),
    Ints(&'static str, &'a [i64]),
    Float(&'static str, f32),
}

/// Writes a graph node by node; every value is named by the method that makes it.
pub(super) struct Graph {
    proto: GraphProto,
}

impl Graph {
    pub fn new(name: &str) -> Self {
        Self {
            proto: GraphProto {
                name: name.to_owned(),
                ..GraphProto::default()
            },
        }
    }

    pub fn input_floats(&mut self, name: &str, dims: &[Dim]) -> String {
        self.proto.input.push(value_info(name, FLOAT, dims));
        name.to_owned()
    }

    pub fn input_ints(&mut self, name: &str, dims: &[Dim]) -> String {
        self.proto.input.push(value_info(name, INT64, dims));
        name.to_owned()
    }

    /// Marks a value as a result of the graph.
    pub fn output(&mut self, name: &str, dims: &[Dim]) {
        self.proto.output.push(value_info(name, FLOAT, dims));
    }

    pub fn floats(&mut self, name: &str, dims: &[usize], values: &[f32]) -> String {
        let raw = bytemuck::cast_slice(values).to_vec();
        self.constant(name, FLOAT, dims, raw)
    }

    pub fn ints(&mut self, name: &str, values: &[i64]) -> String {
        let raw = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant(name, INT64, &[values.len()], raw)
    }

    fn constant(&mut self, name: &str, kind: i32, dims: &[usize], raw_data: Vec<u8>) -> String {
        self.proto.initializer.push(TensorProto {
            dims: dims.iter().map(|dim| *dim as i64).collect(),
            data_type: Some(kind),
            name: name.to_owned(),
            raw_data,
        });
        name.to_owned()
    }

    /// Adds an operator with one result and gives the result's name.
    pub fn op(&mut self, kind: &str, inputs: &[&str], attributes: &[Attr]) -> String {
        let name = format!("{}_{kind}", self.proto.node.len());
        self.named_op(kind, &name, inputs, attributes)
    }

    /// As [`Graph::op`], with a result that is looked up by this name later.
    pub fn named_op(&mut self, kind: &str, name: &str, inputs: &[&str], attrs: &[Attr]) -> String {
        self.proto.node.push(NodeProto {
            input: inputs.iter().map(|input| (*input).to_owned()).collect(),
            output: vec![name.to_owned()],
            name: format!("node_{name}"),
            op_type: kind.to_owned(),
            attribute: attrs.iter().map(attribute).collect(),
        });
        name.to_owned()
    }

    pub fn into_bytes(self) -> Vec<u8> {
        let model = ModelProto {
            ir_version: Some(IR_VERSION),
            producer_name: "loupe".to_owned(),
            graph: Some(self.proto),
            opset_import: vec![OperatorSetId {
                domain: String::new(),
                version: Some(OPSET),
            }],
        };
        model.encode_to_vec()
    }
}

fn attribute(attribute: &Attr) -> AttributeProto {
    let empty = AttributeProto::default();
    match attribute {
        Attr::Float(name, value) => AttributeProto {
            name: (*name).to_owned(),
            f: Some(*value),
            kind: Some(1),
            ..empty
        },
        Attr::Int(name, value) => AttributeProto {
            name: (*name).to_owned(),
            i: Some(*value),
            kind: Some(2),
            ..empty
        },
        Attr::Ints(name, values) => AttributeProto {
            name: (*name).to_owned(),
            ints: values.to_vec(),
            kind: Some(7),
            ..empty
        },
    }
}

fn value_info(name: &str, element: i32, dims: &[Dim]) -> ValueInfo {
    let dim = dims.iter().map(|dim| match dim {
        Dim::Fixed(value) => Dimension {
            value: Some(*value as i64),
            param: None,
        },
        Dim::Named(name) => Dimension {
            value: None,
            param: Some((*name).to_owned()),
        },
    });
    ValueInfo {
        name: name.to_owned(),
        kind: Some(TypeProto {
            tensor: Some(TensorType {
                element,
                shape: Some(Shape { dim: dim.collect() }),
            }),
        }),
    }
}
