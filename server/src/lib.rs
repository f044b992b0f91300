//! The server: the `/v1` API, the console, the public search pages.

pub mod aggregate;
pub mod app;
pub mod auth;
pub mod blob;
pub mod body;
pub mod boot;
pub mod cause;
pub mod clock;
pub mod command;
pub mod config;
pub mod cors;
pub mod db;
pub mod docs;
pub mod error;
pub mod fail;
pub mod figures;
pub mod folder;
pub mod front;
pub mod gate;
#[cfg(test)]
#[path = "../engine/src/hostile.rs"]
mod hostile;
pub mod hosting;
pub mod id;
pub mod idempotency;
pub mod jobs;
pub mod json;
pub mod limits;
pub mod list;
pub mod mail;
pub mod metrics;
pub mod openapi;
pub mod outbound;
pub mod password;
pub mod progress;
pub mod serving;
#[cfg(test)]
mod strangers;
pub mod tolerance;
pub mod unread;
pub mod unresolved;
pub mod usage;
pub mod v1;
pub mod vault;
pub mod watched;
pub mod web;
pub mod words;
