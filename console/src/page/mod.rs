//! One file per page.

pub mod batch;
pub mod batches;
pub mod bucket;
pub mod buckets;
pub mod collections;
pub mod demo;
pub mod document;
pub mod documents;
pub mod keys;
pub mod namespaces;
pub mod playground;
pub mod publish;
pub mod published;
pub mod results;
pub mod retrievers;
pub mod sign_in;
pub mod tasks;
pub mod template;
pub mod upload;
