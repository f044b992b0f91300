//! Pictures to vectors and labels in process: EfficientNet-Lite0 by rten.

use std::sync::LazyLock;

use async_trait::async_trait;
use fast_image_resize::images::Image;
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use rten::{Model, ModelOptions, NodeId, RunOptions, Value};

use super::efficientnet_graph::{self, CLASS_COUNT, CLASSES, DIMS, FEATURES, PIXELS, SIDE};
use super::fetch::Files;
use super::workers::{Lane, Workers};
use super::{EmbedError, ImageEncoder, ImageFeatures, Pixels, Result, pth};

/// Pictures in one run: their activations still fit the caches.
const RUN_IMAGES: usize = 4;
/// The share of the shorter side that the training looked at.
const CENTRE: f64 = 224.0 / 256.0;
/// Labels given, at most, and the least probability of one.
const LABELS: usize = 5;
const LEAST_LABEL: f32 = 0.02;

/// The 1,000 class names, by index.
static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| include_str!("imagenet_labels.txt").lines().collect());

/// Features of length 1 and the labels of the pictures.
pub struct EfficientNetEncoder {
    output: String,
    workers: Workers<Vec<Pixels>, Vec<ImageFeatures>>,
}

impl EfficientNetEncoder {
    /// Loads `efficientnet-lite0-57934424.pth`. Blocking, well under a second.
    pub fn load(output: &str, files: &Files) -> Result<Self> {
        let network = Network::load(files)?;
        let workers = Workers::start("image", move |images: Vec<Pixels>, options| {
            network.embed(&images, &options)
        })?;
        Ok(Self {
            output: output.to_owned(),
            workers,
        })
    }
}

#[async_trait]
impl ImageEncoder for EfficientNetEncoder {
    fn output(&self) -> &str {
        &self.output
    }

    fn dims(&self) -> usize {
        DIMS
    }

    async fn embed(&self, images: Vec<Pixels>) -> Result<Vec<ImageFeatures>> {
        if images.len() <= 1 {
            return self.workers.submit(Lane::Query, images).await?.wait().await;
        }
        let mut pending = Vec::new();
        let mut images = images.into_iter().peekable();
        while images.peek().is_some() {
            let part = images.by_ref().take(RUN_IMAGES).collect();
            pending.push(self.workers.submit(Lane::Bulk, part).await?);
        }
        let mut features = Vec::new();
        for part in pending {
            features.extend(part.wait().await?);
        }
        Ok(features)
    }
}

struct Network {
    model: Model,
    pixels: NodeId,
    features: NodeId,
    classes: NodeId,
}

impl Network {
    fn load(files: &Files) -> Result<Self> {
        let tensors = pth::read(&files.read("efficientnet-lite0-57934424.pth")?)?;
        let model = ModelOptions::with_all_ops()
            .prepack_weights(true)
            .load(efficientnet_graph::write(&tensors)?)
            .map_err(unreadable)?;
        let node = |name: &str| model.node_id(name).map_err(unreadable);
        let (pixels, features, classes) = (node(PIXELS)?, node(FEATURES)?, node(CLASSES)?);
        Ok(Self {
            model,
            pixels,
            features,
            classes,
        })
    }

    fn embed(&self, images: &[Pixels], options: &RunOptions) -> Result<Vec<ImageFeatures>> {
        if images.is_empty() {
            return Ok(Vec::new());
        }
        let mut planes = Vec::with_capacity(images.len() * 3 * SIDE * SIDE);
        for image in images {
            prepare(image, &mut planes)?;
        }
        let pixels = Value::from_shape([images.len(), 3, SIDE, SIDE], planes).map_err(failed)?;
        let inputs = vec![(self.pixels, pixels.into())];
        let outputs = [self.features, self.classes];
        let run = self.model.run_n(inputs, outputs, Some(options.clone()));
        let [features, classes] = run.map_err(failed)?;
        let (_, features) = features.into_shape_vec::<f32, 2>().map_err(failed)?;
        let (_, classes) = classes.into_shape_vec::<f32, 2>().map_err(failed)?;
        let rows = features
            .chunks_exact(DIMS)
            .zip(classes.chunks_exact(CLASS_COUNT));
        let rows = rows.map(|(vector, classes)| {
            let mut vector = vector.to_vec();
            super::normalize(&mut vector);
            let labels = labels(classes);
            ImageFeatures { vector, labels }
        });
        Ok(rows.collect())
    }
}

/// The best classes, best first.
fn labels(classes: &[f32]) -> Vec<(String, f32)> {
    let mut best: Vec<(usize, f32)> = classes.iter().copied().enumerate().collect();
    best.sort_by(|a, b| b.1.total_cmp(&a.1));
    let best = best.into_iter().take(LABELS);
    best.filter(|(_, share)| *share >= LEAST_LABEL)
        .filter_map(|(class, share)| Some(((*NAMES.get(class)?).to_owned(), share)))
        .collect()
}

/// The centre of the picture, resized as in training, appended as three planes of numbers around 0.
fn prepare(image: &Pixels, planes: &mut Vec<f32>) -> Result<()> {
    let (width, height) = (image.width, image.height);
    image.check()?;
    // Four channels: it is the one kind that the scaling is compiled for.
    let (rgb, _) = image.rgb.as_chunks::<3>();
    let rgba = rgb.iter().flat_map(|&[r, g, b]| [r, g, b, u8::MAX]);
    let source = Image::from_vec_u8(width, height, rgba.collect(), PixelType::U8x4);
    let source = source.map_err(failed)?;
    let mut small = Image::new(SIDE as u32, SIDE as u32, PixelType::U8x4);
    let side = f64::from(width.min(height)) * CENTRE;
    let (left, top) = (
        (f64::from(width) - side) / 2.0,
        (f64::from(height) - side) / 2.0,
    );
    let options = ResizeOptions::new()
        .crop(left, top, side, side)
        .use_alpha(false)
        .resize_alg(ResizeAlg::Convolution(FilterType::CatmullRom));
    Resizer::new()
        .resize(&source, &mut small, &options)
        .map_err(failed)?;
    let (pixels, _) = small.buffer().as_chunks::<4>();
    for channel in 0..3 {
        let plane = pixels.iter().map(|pixel| f32::from(pixel[channel]));
        planes.extend(plane.map(|value| (value - 127.0) / 128.0));
    }
    Ok(())
}

fn unreadable(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Unavailable(format!("the image model cannot be read: {error}"))
}

fn failed(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Failed(error.to_string())
}
