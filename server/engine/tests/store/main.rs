//! One suite for every document store, against an exact oracle in memory.

#![allow(clippy::unwrap_used)] // A test that cannot go on has failed.

mod edge;
mod neighbours;
mod oracle;
mod pushdown;
mod remote;
mod server;
mod suite;
mod torn;
mod world;
