//! The server as a caller sees it: every test starts a whole server on port 0 and speaks HTTP, and runs on SQLite and
//! on PostgreSQL from one body.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod harness;

mod alerts;
mod annotations;
mod answers;
mod anywhere;
mod app_sign_in;
mod app_visits;
mod apps;
mod audit;
mod bad_input;
mod batches;
mod billing;
mod cloning;
mod clusters;
mod demo;
mod documents;
mod evaluations;
mod examples;
mod extractors;
mod fetching;
mod first_run;
mod gate;
mod holding;
mod idempotency;
mod intake;
mod interactions;
mod isolation;
mod keys;
mod limits;
mod locked;
mod machines;
mod mail;
mod matrix;
mod migrations;
mod notifications;
mod objects;
mod openapi;
mod operations;
mod principal;
mod principals;
mod quotas;
mod removal;
mod reprocessing;
mod resources;
mod secrets;
mod snapshots;
mod sql;
mod stages;
mod taxonomies;
mod tolerance;
mod triggers;
mod uploads;
mod webhooks;
