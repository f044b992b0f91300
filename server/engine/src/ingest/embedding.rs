//! The vectors of a chunk: asked in batches, checked one by one, and an input that no model takes costs only its object.

use std::{future::Future, ops::Range};

use super::{Failure, Work};
use crate::{
    embed::{self, EmbedError, Encoders, ImageFeatures, Pixels},
    extract::{IndexInfo, Params, Part, image, registry::Source},
    store::layout::finite,
};

/// Inputs of one call; a refused one is looked for among so many.
const TEXTS: usize = 512;
/// Pictures are copied for their call, 768 KiB each. So many of a film are kept until they are placed.
pub(super) const PICTURES: usize = 32;
/// Inputs that fail alone before a model that never answered counts as away.
const PROBES: usize = 2;

impl From<EmbedError> for Failure {
    fn from(error: EmbedError) -> Self {
        Self {
            error_type: match error {
                EmbedError::Invalid(_) | EmbedError::Refused(_) => "permanent",
                EmbedError::Unavailable(_) | EmbedError::Failed(_) => "transient",
            },
            error: error.to_string(),
        }
    }
}

/// Whether a model's failure may yet pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Try {
    /// The chunk is tried again as a whole: nothing needs to be found out now.
    More,
    /// No other try comes: whatever fails has failed.
    Last,
}

/// Fills in every vector that a model gives. Objects whose parts get none become failures.
///
/// # Errors
/// The model is away or fails: the chunk is worth another try.
pub(super) async fn embed(
    encoders: &dyn Encoders,
    params: &Params,
    work: &mut [Work],
    attempt: Try,
) -> Result<(), EmbedError> {
    let mut all: Vec<&mut Parts> = work.iter_mut().map(|one| &mut one.parts).collect();
    pictures(encoders, params, &mut all, attempt).await?;
    let siglip = of(params, Source::ImageModel).len() > 1;
    for parts in &mut all {
        for part in parts.iter_mut().flatten() {
            if let Some(labels) = part.labels.take() {
                image::describe(part, &labels, siglip);
            }
        }
    }
    for index in of(params, Source::TextModel) {
        let (places, inputs) = inputs(&all, |part| part.text.as_ref());
        if places.is_empty() {
            continue;
        }
        let encoder = encoders.text(&index.output).await?;
        let call = |texts: Vec<String>| encoder.embed(texts);
        let outputs = each(&inputs, TEXTS, attempt, call).await?;
        let store = |part: &mut Part, vector: Vec<f32>| {
            part.vectors.insert(index.name.clone(), vector);
        };
        fill(&mut all, places, outputs, store, |vector| {
            checked(index, vector)
        });
    }
    Ok(())
}

/// Parts of one object with the vectors of their pictures, whose pixels are let go.
///
/// # Errors
/// The model is away or fails: the chunk is worth another try.
pub(super) async fn place(
    encoders: &dyn Encoders,
    params: &Params,
    parts: Vec<Part>,
    attempt: Try,
) -> Result<Parts, EmbedError> {
    let mut parts: Parts = Ok(parts);
    pictures(encoders, params, &mut [&mut parts], attempt).await?;
    for part in parts.iter_mut().flatten() {
        part.pixels = None;
    }
    Ok(parts)
}

/// Fills in the vectors of all pictures that are there.
async fn pictures(
    encoders: &dyn Encoders,
    params: &Params,
    all: &mut [&mut Parts],
    attempt: Try,
) -> Result<(), EmbedError> {
    for (number, index) in of(params, Source::ImageModel).into_iter().enumerate() {
        let (places, inputs) = inputs(all, |part| part.pixels.as_deref());
        if places.is_empty() {
            continue;
        }
        let encoder = encoders.image(&index.output).await?;
        let call = |pictures: Vec<Pixels>| encoder.embed(pictures);
        let outputs = each(&inputs, PICTURES, attempt, call).await?;
        let store = |part: &mut Part, features: ImageFeatures| {
            // The first model is the one that labels; the others only place the picture in their space.
            if number == 0 {
                part.labels = Some(features.labels);
            }
            part.vectors.insert(index.name.clone(), features.vector);
        };
        fill(all, places, outputs, store, |features| {
            checked(index, &features.vector)
        });
    }
    Ok(())
}

fn of(params: &Params, source: Source) -> Vec<&IndexInfo> {
    let indexes = params.indexes().iter();
    indexes.filter(|index| index.source == source).collect()
}

/// The parts of one object, or why there are none.
type Parts = Result<Vec<Part>, Failure>;

/// Where a part is: its object, and its place in there.
type Place = (usize, usize);

/// What there is to embed, with where it belongs.
fn inputs<'a, I>(
    all: &'a [&mut Parts],
    input: impl Fn(&Part) -> Option<&I>,
) -> (Vec<Place>, Vec<&'a I>) {
    let mut found = (Vec::new(), Vec::new());
    for (object, parts) in all.iter().enumerate() {
        for (number, part) in parts.iter().flatten().enumerate() {
            if let Some(input) = input(part) {
                found.0.push((object, number));
                found.1.push(input);
            }
        }
    }
    found
}

/// Puts outputs into their parts. An object fails with the first reason that one of its parts has.
fn fill<O>(
    all: &mut [&mut Parts],
    places: Vec<Place>,
    outputs: Vec<Result<O, Failure>>,
    store: impl Fn(&mut Part, O),
    check: impl Fn(&O) -> Result<(), Failure>,
) {
    for ((object, number), output) in places.into_iter().zip(outputs) {
        let parts = &mut *all[object];
        let output = output.and_then(|output| check(&output).map(|()| output));
        match (output, parts.as_mut()) {
            (Ok(output), Ok(found)) => store(&mut found[number], output),
            (Err(failure), Ok(_)) => *parts = Err(failure),
            (_, Err(_)) => {}
        }
    }
}

/// One bad vector would make the store refuse all documents that come with it.
fn checked(index: &IndexInfo, vector: &[f32]) -> Result<(), Failure> {
    let fault = if vector.len() != index.dims {
        let (got, dims) = (vector.len(), index.dims);
        format!("a vector of {got} dimensions; the index has {dims}")
    } else if let Err(at) = finite(vector) {
        format!("a vector that is not a finite number at {at}")
    } else {
        return Ok(());
    };
    Err(EmbedError::Failed(format!("{} gave {fault}", index.output)).into())
}

/// One output or one reason for each input. A call that fails is halved until the input that it fails on is alone.
async fn each<I, O, C>(
    inputs: &[&I],
    at_once: usize,
    attempt: Try,
    call: impl Fn(Vec<I>) -> C,
) -> Result<Vec<Result<O, Failure>>, EmbedError>
where
    I: Clone,
    C: Future<Output = embed::Result<Vec<O>>>,
{
    let mut outputs: Vec<Result<O, Failure>> = Vec::with_capacity(inputs.len());
    let (mut alive, mut failed) = (false, 0);
    // The first range is the last element: outputs arrive in the order of the inputs.
    let starts = (0..inputs.len()).step_by(at_once).rev();
    let mut ranges: Vec<Range<usize>> = starts
        .map(|start| start..inputs.len().min(start + at_once))
        .collect();
    while let Some(range) = ranges.pop() {
        let batch = inputs[range.clone()].iter().map(|input| (*input).clone());
        let error = match one_each(call(batch.collect()).await, range.len()) {
            Ok(found) => {
                alive = true;
                outputs.extend(found.into_iter().map(Ok));
                continue;
            }
            Err(error) => error,
        };
        let refused = matches!(error, EmbedError::Invalid(_));
        // Who is not let in is not let in with any other input.
        let shut = matches!(error, EmbedError::Refused(_));
        if shut || (!refused && attempt == Try::More) {
            return Err(error);
        }
        if range.len() > 1 {
            // A model that is away may take a minute to say so: ask it for little until it has answered once.
            let few = if refused || alive { range.len() / 2 } else { 1 };
            let middle = range.start + few;
            ranges.extend([middle..range.end, range.start..middle]);
            continue;
        }
        failed += 1;
        if !refused && !alive && failed >= PROBES {
            return Err(error);
        }
        outputs.push(Err(error.into()));
    }
    Ok(outputs)
}

/// Which output is whose can be told only when there is one for each input.
fn one_each<O>(answer: embed::Result<Vec<O>>, inputs: usize) -> embed::Result<Vec<O>> {
    let outputs = answer?;
    if outputs.len() == inputs {
        return Ok(outputs);
    }
    let outputs = outputs.len();
    Err(EmbedError::Failed(format!(
        "it gave {outputs} vectors for {inputs} inputs"
    )))
}
