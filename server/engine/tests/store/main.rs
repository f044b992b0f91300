//! One suite for every document store, against an exact oracle in memory.

mod edge;
mod oracle;
mod suite;
mod world;
