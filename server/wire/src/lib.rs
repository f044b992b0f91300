//! Every type that crosses `/v1`, with its limits. The wire types are the model: there is no third copy of the fields.
//!
//! Feature `schema` adds what only the server needs: the OpenAPI schemas and the limit checks.

mod access;
mod account;
mod aggregation;
mod annotation;
mod api_key;
mod audit;
mod batch;
mod billing;
mod bucket;
mod collection;
mod common;
mod connection;
mod display;
mod document;
mod error;
mod evaluation;
mod event;
mod execution;
mod extractor;
mod extractor_params;
mod health;
mod interaction;
mod internal;
mod namespace;
mod notification;
mod object;
mod organization;
mod provenance;
mod public;
mod publish;
mod retriever;
mod retriever_run;
mod schema;
mod secret;
mod stage;
mod task;
mod taxonomy;
mod trigger;
mod upload;
mod usage;
mod user;
mod vector;
mod webhook;

mod base;
#[doc(hidden)]
pub mod defaults;
#[cfg(feature = "schema")]
#[doc(hidden)]
pub mod patterns;

pub use access::*;
pub use account::*;
pub use aggregation::*;
pub use annotation::*;
pub use api_key::*;
pub use audit::*;
pub use base::*;
pub use batch::*;
pub use billing::*;
pub use bucket::*;
pub use collection::*;
pub use common::*;
pub use connection::*;
pub use display::*;
pub use document::*;
pub use error::*;
pub use evaluation::*;
pub use event::*;
pub use execution::*;
pub use extractor::*;
pub use extractor_params::*;
pub use health::*;
pub use interaction::*;
pub use internal::*;
pub use namespace::*;
pub use notification::*;
pub use object::*;
pub use organization::*;
pub use provenance::*;
pub use public::*;
pub use publish::*;
pub use retriever::*;
pub use retriever_run::*;
pub use schema::*;
pub use secret::*;
pub use stage::*;
pub use task::*;
pub use taxonomy::*;
pub use trigger::*;
pub use upload::*;
pub use usage::*;
pub use user::*;
pub use vector::*;
pub use webhook::*;
