//! One file per page.

pub mod audit;
pub mod batch;
pub mod batches;
pub mod bucket;
pub mod buckets;
pub mod collections;
pub mod demo;
pub mod document;
pub mod documents;
pub mod key_form;
pub mod key_usage;
pub mod keys;
pub mod namespaces;
pub mod organization;
pub mod playground;
pub mod publish;
pub mod published;
pub mod results;
pub mod retriever_form;
pub mod retrievers;
pub mod sign_in;
pub mod tasks;
pub mod template;
pub mod upload;
pub mod users;
