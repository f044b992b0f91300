//! Objects that give more documents than are held at once: they are made a slice at a time, as often as they are asked for,
//! and the same each time.

use std::sync::Arc;

use tokio::{
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
};

use super::{
    CollectionPlan, Failure, GeneratedBlob, ObjectInput,
    assemble::{Making, permanent},
    rows::{self, RowParts},
};
use crate::{
    extract::{ExtractError, Params, Part, passthrough::PassthroughParams},
    store::Document,
};

/// Documents of one object that are held at once.
pub(super) const SLICE: usize = 512;
/// Bytes of the rows that they are made of.
pub(super) const SLICE_BYTES: usize = 8 << 20;

/// Some documents of an object, with the files made for them.
#[derive(Debug, Default)]
pub struct Slice {
    pub documents: Vec<Document>,
    pub generated: Vec<GeneratedBlob>,
}

/// The documents of one object, still to be made. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sliced(Arc<Source>);

/// What the documents are made of.
#[derive(Debug)]
pub(super) struct Source {
    pub plan: CollectionPlan,
    pub object: ObjectInput,
    /// Texts of fields that the extractor read.
    pub read: Vec<String>,
    /// Detected types of the object's files.
    pub types: Vec<String>,
    pub now: String,
    /// None: the rows of the object's files.
    pub parts: Option<Vec<Part>>,
}

/// One way through the documents of an object, from the first to the last.
#[derive(Debug)]
pub struct Walk {
    slices: mpsc::Receiver<Result<Slice, Failure>>,
    making: Option<JoinHandle<()>>,
}

impl Sliced {
    pub(super) fn new(source: Source) -> Self {
        Self(Arc::new(source))
    }

    /// Begins with the first documents. They are made on a thread of their own, one slice ahead of what is taken; it ends
    /// with the walk.
    pub fn walk(&self) -> Walk {
        let (sender, slices) = mpsc::channel(1);
        let source = Arc::clone(&self.0);
        let making = spawn_blocking(move || source.make(&Slices(sender)));
        Walk {
            slices,
            making: Some(making),
        }
    }
}

impl Walk {
    /// The next documents; none after the last ones.
    ///
    /// # Errors
    /// The object gives no documents after all: those that came before are none either.
    pub async fn slice(&mut self) -> Result<Option<Slice>, Failure> {
        if let Some(slice) = self.slices.recv().await {
            return slice.map(Some);
        }
        let stopped = match self.making.take() {
            Some(making) => making.await.is_err(),
            None => false,
        };
        match stopped {
            true => Err(ExtractError::transient("extraction was stopped").into()),
            false => Ok(None),
        }
    }
}

/// Where slices go.
struct Slices(mpsc::Sender<Result<Slice, Failure>>);

impl Slices {
    /// Whether somebody waits for the next one.
    fn send(&self, slice: Result<Slice, Failure>) -> bool {
        self.0.blocking_send(slice).is_ok()
    }
}

impl Source {
    fn make(&self, to: &Slices) {
        let made = match (&self.parts, &self.plan.params) {
            (None, Params::Passthrough(params)) => self.of_rows(params, to),
            (parts, _) => self.of_parts(parts.as_deref().unwrap_or_default(), to),
        };
        if let Err(failure) = made {
            to.send(Err(failure));
        }
    }

    fn of_parts(&self, parts: &[Part], to: &Slices) -> Result<(), Failure> {
        for some in parts.chunks(SLICE) {
            if !to.send(Ok(self.slice(some.to_vec())?)) {
                break;
            }
        }
        Ok(())
    }

    fn of_rows(&self, params: &PassthroughParams, to: &Slices) -> Result<(), Failure> {
        let mut rows = RowParts::of(params, &self.object);
        let (mut parts, mut bytes) = (Vec::new(), 0);
        while let Some(part) = rows.part()? {
            let weight = rows::weight(&part);
            if rows::is_full(&parts, bytes + weight) {
                bytes = 0;
                if !to.send(Ok(self.slice(std::mem::take(&mut parts))?)) {
                    return Ok(());
                }
            }
            bytes += weight;
            parts.push(part);
        }
        to.send(Ok(self.slice(parts)?));
        Ok(())
    }

    fn slice(&self, parts: Vec<Part>) -> Result<Slice, Failure> {
        let mut making = Making {
            plan: &self.plan,
            object: &self.object,
            cut: &self.read,
            read: &self.read,
            types: &self.types,
            now: &self.now,
            generated: Vec::new(),
        };
        let documents = making.documents(parts).map_err(permanent)?;
        Ok(Slice {
            documents,
            generated: making.generated,
        })
    }
}
