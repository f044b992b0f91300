//! Bytes in, documents and rankings out. Knows nothing of HTTP or SQL.
//!
//! - [`extract`]: files to parts of text and pixels, in a process of their own
//! - [`embed`]: texts and images to vectors, in process or through an endpoint
//! - [`store`]: documents, vectors, payload filters and keywords behind one trait
//! - [`stage`]: the stages of a retriever and the plan that runs them
//! - [`judging`]: how good rankings are
//! - [`web`]: how what fetches reaches the web
//! - [`filter`], [`template`]: the one filter grammar and the one template grammar

pub mod cluster;
pub mod crawl;
pub mod embed;
pub mod extract;
pub mod filter;
pub mod fingerprint;
#[cfg(test)]
mod hostile;
pub mod ingest;
pub mod judging;
pub mod stage;
pub mod store;
pub mod template;
pub mod web;
pub mod weight;
