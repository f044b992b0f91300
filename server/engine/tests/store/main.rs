//! One suite for every document store, against an exact oracle in memory.

mod edge;
mod oracle;
mod pushdown;
mod remote;
mod server;
mod suite;
mod world;
