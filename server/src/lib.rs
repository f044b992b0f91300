//! The server: the `/v1` API, the console, the public search pages.

pub mod app;
pub mod auth;
pub mod blob;
pub mod body;
pub mod boot;
pub mod clock;
pub mod command;
pub mod config;
pub mod db;
pub mod error;
pub mod folder;
pub mod gate;
pub mod id;
pub mod idempotency;
pub mod jobs;
pub mod limits;
pub mod list;
pub mod openapi;
pub mod progress;
pub mod usage;
pub mod v1;
pub mod web;
