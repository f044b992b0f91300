//! The EfficientNet-Lite0 graph as ONNX bytes, batch norms folded into the convolutions.

use std::collections::HashMap;

use super::onnx::{Attr, Dim, Graph};
use super::pth::Tensor;
use super::{EmbedError, Result};

pub(super) const PIXELS: &str = "pixels";
pub(super) const FEATURES: &str = "features";
pub(super) const CLASSES: &str = "classes";

/// Width and height of the pictures it was trained on.
pub(super) const SIDE: usize = 224;
pub(super) const DIMS: usize = 1280;
pub(super) const CLASS_COUNT: usize = 1000;

const EPSILON: f32 = 1e-3;

/// Repeats, stride of the first, expansion: the seven stages of Lite0. Sizes are the weights' own.
const STAGES: [(usize, usize, usize); 7] = [
    (1, 1, 1),
    (2, 2, 6),
    (2, 2, 6),
    (3, 2, 6),
    (3, 1, 6),
    (4, 2, 6),
    (1, 1, 6),
];

/// Writes the graph: pixels `[batch, 3, 224, 224]` in, features `[batch, 1280]` and class probabilities
/// `[batch, 1000]` out.
pub(super) fn write(tensors: &HashMap<String, Tensor>) -> Result<Vec<u8>> {
    let mut graph = Graph::new("efficientnet_lite0");
    let batch = || Dim::Named("batch");
    let side = || Dim::Fixed(SIDE);
    let input = graph.input_floats(PIXELS, &[batch(), Dim::Fixed(3), side(), side()]);
    let low = graph.floats("clip_low", &[], &[0.0]);
    let high = graph.floats("clip_high", &[], &[6.0]);
    let mut writer = Writer {
        graph,
        tensors,
        clip: [low, high],
        side: SIDE,
    };
    let mut value = writer.conv("_conv_stem", "_bn0", &input, 2, false)?;
    value = writer.relu6(&value);
    let mut block = 0;
    for (repeats, first_stride, expansion) in STAGES {
        for repeat in 0..repeats {
            let stride = if repeat == 0 { first_stride } else { 1 };
            value = writer.block(block, &value, stride, expansion != 1, repeat > 0)?;
            block += 1;
        }
    }
    value = writer.conv("_conv_head", "_bn1", &value, 1, false)?;
    value = writer.relu6(&value);
    writer.head(&value)?;
    Ok(writer.graph.into_bytes())
}

struct Writer<'a> {
    graph: Graph,
    tensors: &'a HashMap<String, Tensor>,
    clip: [String; 2],
    /// Width and height of the current value.
    side: usize,
}

impl<'a> Writer<'a> {
    fn tensor(&self, name: &str) -> Result<&'a Tensor> {
        self.tensors.get(name).ok_or_else(|| {
            EmbedError::Unavailable(format!("the image model cannot be read: {name} is missing"))
        })
    }

    fn block(
        &mut self,
        block: usize,
        value: &str,
        stride: usize,
        expands: bool,
        skips: bool,
    ) -> Result<String> {
        let path = format!("_blocks.{block}");
        let mut inner = value.to_owned();
        if expands {
            let conv = format!("{path}._expand_conv");
            inner = self.conv(&conv, &format!("{path}._bn0"), &inner, 1, false)?;
            inner = self.relu6(&inner);
        }
        let conv = format!("{path}._depthwise_conv");
        inner = self.conv(&conv, &format!("{path}._bn1"), &inner, stride, true)?;
        inner = self.relu6(&inner);
        let conv = format!("{path}._project_conv");
        inner = self.conv(&conv, &format!("{path}._bn2"), &inner, 1, false)?;
        if skips {
            inner = self.graph.op("Add", &[&inner, value], &[]);
        }
        Ok(inner)
    }

    /// A convolution with its batch norm folded in and TensorFlow's "same" padding: the odd pixel goes last.
    fn conv(
        &mut self,
        conv: &str,
        norm: &str,
        value: &str,
        stride: usize,
        depthwise: bool,
    ) -> Result<String> {
        let weight = self.tensor(&format!("{conv}.weight"))?;
        let shape = weight.shape.clone();
        let [outputs, _, kernel, _] = shape[..] else {
            let reason = format!("the image model cannot be read: {conv} is no convolution");
            return Err(EmbedError::Unavailable(reason));
        };
        let (weights, shifts) = self.folded(weight, norm, outputs)?;
        let weights = self
            .graph
            .floats(&format!("{conv}.weight"), &shape, &weights);
        let shifts = self
            .graph
            .floats(&format!("{conv}.bias"), &[outputs], &shifts);
        let after = self.side.div_ceil(stride);
        let padding = ((after - 1) * stride + kernel).saturating_sub(self.side);
        let (before, behind) = ((padding / 2) as i64, padding.div_ceil(2) as i64);
        self.side = after;
        let attributes = [
            Attr::Ints("kernel_shape", &[kernel as i64; 2]),
            Attr::Ints("strides", &[stride as i64; 2]),
            Attr::Ints("pads", &[before, before, behind, behind]),
            Attr::Int("group", if depthwise { outputs as i64 } else { 1 }),
        ];
        Ok(self
            .graph
            .op("Conv", &[value, &weights, &shifts], &attributes))
    }

    fn folded(&self, weight: &Tensor, norm: &str, outputs: usize) -> Result<(Vec<f32>, Vec<f32>)> {
        let part = |name: &str| self.tensor(&format!("{norm}.{name}"));
        let (scale, shift) = (part("weight")?, part("bias")?);
        let (mean, variance) = (part("running_mean")?, part("running_var")?);
        if [scale, shift, mean, variance]
            .iter()
            .any(|t| t.values.len() != outputs)
        {
            let reason = format!("the image model cannot be read: {norm} has another size");
            return Err(EmbedError::Unavailable(reason));
        }
        let factors: Vec<f32> = scale
            .values
            .iter()
            .zip(&variance.values)
            .map(|(scale, variance)| scale / (variance + EPSILON).sqrt())
            .collect();
        let filters = weight.values.chunks_exact(weight.values.len() / outputs);
        let weights = filters.zip(&factors);
        let weights = weights.flat_map(|(filter, factor)| filter.iter().map(move |w| w * factor));
        let means = shift.values.iter().zip(&mean.values).zip(&factors);
        let shifts = means.map(|((shift, mean), factor)| shift - mean * factor);
        Ok((weights.collect(), shifts.collect()))
    }

    fn relu6(&mut self, value: &str) -> String {
        let [low, high] = &self.clip;
        self.graph.op("Clip", &[value, low, high], &[])
    }

    fn head(&mut self, value: &str) -> Result<()> {
        let (weight, bias) = (self.tensor("_fc.weight")?, self.tensor("_fc.bias")?);
        let weight = self
            .graph
            .floats("fc.weight", &weight.shape, &weight.values);
        let bias = self.graph.floats("fc.bias", &bias.shape, &bias.values);
        let mean = self.graph.op("GlobalAveragePool", &[value], &[]);
        let flat = [Attr::Int("axis", 1)];
        let features = self.graph.named_op("Flatten", FEATURES, &[&mean], &flat);
        let turned = [Attr::Int("transB", 1)];
        let scores = self.graph.op("Gemm", &[&features, &weight, &bias], &turned);
        let last = [Attr::Int("axis", -1)];
        self.graph.named_op("Softmax", CLASSES, &[&scores], &last);
        let batch = || Dim::Named("batch");
        self.graph.output(FEATURES, &[batch(), Dim::Fixed(DIMS)]);
        self.graph
            .output(CLASSES, &[batch(), Dim::Fixed(CLASS_COUNT)]);
        Ok(())
    }
}
