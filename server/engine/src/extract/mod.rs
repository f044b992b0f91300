//! Files to parts of text and pixels.
//!
//! What strangers sent is decoded ([`decode`]) in a process of its own ([`worker`], driven by [`Extraction`]); what is
//! left, plain texts and small pictures, is cut into parts by one file per feature extractor ([`text`], [`document`],
//! [`image`], [`multimodal`], [`passthrough`] and others). [`registry`] lists them.

mod absent;
mod data;
pub mod decode;
pub mod document;
pub mod dropped;
pub mod image;
pub mod media;
pub mod multimodal;
pub mod needs;
pub mod paper;
mod parquet;
pub mod passthrough;
mod pool;
mod probe;
pub mod registry;
pub mod shape;
pub(crate) mod split;
mod stored;
pub mod text;
pub mod tools;
pub mod transcoding;
mod unbuilt;
pub mod universal;
pub mod web_scraper;
pub mod worker;

#[cfg(test)]
pub(crate) mod samples;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use loupe_wire::Object;
use serde::{Deserialize, Serialize};

use crate::embed::Pixels;

pub use data::{Data, Folder, Place};
pub use decode::{Decoded, Format, Gaps, Picture, TextFile};
pub use dropped::Dropped;
pub use needs::{Need, Services};
pub use pool::Extraction;
pub use registry::{ExtractorInfo, IndexInfo, Outputs, Params, Violation, catalogue, find};

/// Whether a failed object is worth another try. The words are those of failed documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The same bytes will fail again.
    Permanent,
    /// Something around the object failed.
    Transient,
    /// The same of a model behind an endpoint, which others may miss as well.
    Away,
    /// The object needs more memory, time or room than the limits give; a retry without higher limits fails again.
    Resource,
}

/// Why an object gave no documents, in words for the object's owner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct ExtractError {
    pub kind: ErrorKind,
    pub message: String,
}

impl ExtractError {
    pub fn permanent(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Permanent,
            message: message.into(),
        }
    }

    pub fn transient(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Transient,
            message: message.into(),
        }
    }

    pub fn away(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Away,
            message: message.into(),
        }
    }

    pub fn resource(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Resource,
            message: message.into(),
        }
    }

    /// With the place where it happened in front.
    #[must_use]
    pub(crate) fn at(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

pub type Result<T> = std::result::Result<T, ExtractError>;

/// What the sender says about a file. Checked against the bytes, never trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Claim {
    pub filename: Option<String>,
    pub mime: Option<String>,
    /// The type of the bucket's property, such as `pdf`.
    pub property_type: Option<String>,
}

impl Claim {
    /// The file name's ending in lower case, without the dot.
    pub fn extension(&self) -> Option<String> {
        let (_, extension) = self.filename.as_deref()?.rsplit_once('.')?;
        Some(extension.to_ascii_lowercase())
    }

    /// True when the property type, the MIME type or the file name says `what`.
    pub fn says(&self, property_type: &str, mime: &str, extensions: &[&str]) -> bool {
        self.property_type.as_deref() == Some(property_type)
            || self
                .mime
                .as_deref()
                .is_some_and(|claimed| claimed.to_ascii_lowercase().starts_with(mime))
            || self
                .extension()
                .is_some_and(|extension| extensions.contains(&extension.as_str()))
    }
}

/// What is wanted of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// The text of anything that has one, by pages.
    Text,
    /// The same, and of pages of the web where they lead and what they say of themselves.
    Page,
    /// Pixels, EXIF and, when asked for, a thumbnail and a large copy for programs that read what is written in it.
    Picture { thumbnail: bool, large: bool },
}

/// A file made from the object's own, to be stored beside the document.
#[derive(Debug, Clone)]
pub struct Generated {
    /// `thumbnail`.
    pub field: String,
    /// `image`, as blob references say it.
    pub kind: &'static str,
    pub filename: String,
    pub content_type: String,
    pub bytes: Data,
}

/// One future document: what an extractor makes of one piece of an object.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Unique within the object and the same on every run: the document's id is made from it.
    pub key: String,
    /// Outputs that win over a passed-through field of the same name.
    pub fields: Object,
    /// Outputs that give way to a passed-through field of the same name.
    pub extras: Object,
    /// Goes to `_internal.metadata`.
    pub metadata: Object,
    /// What the text indexes embed. Absent: no text vector.
    pub text: Option<String>,
    /// What the image indexes embed. Pages of one site share theirs.
    pub pixels: Option<Arc<Pixels>>,
    /// What the first picture model saw in them, with probabilities, until the part's words tell of it.
    pub labels: Option<Vec<(String, f32)>>,
    /// Vectors that the object brought along, by index name.
    pub vectors: BTreeMap<String, Vec<f32>>,
    /// For keyword search, besides the passed-through strings.
    pub keywords: Vec<String>,
    pub generated: Vec<Generated>,
    /// The object's file, by its position, that this was made of. Absent: a field.
    pub blob: Option<usize>,
    /// The row that this was made of: what is passed through comes from here first.
    pub row: Option<Object>,
}
