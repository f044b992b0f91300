//! Public search pages: rendered on the server, complete without JavaScript, safe for whatever the owner typed.
//!
//! The crate knows the interface's types and nothing of the server: what it needs of it is the trait [`Host`].

#![recursion_limit = "256"]

pub mod app;
pub mod auth;
mod host;
pub mod page;

pub use host::{
    Facet, FacetValue, Hit, Host, HostError, Listed, Media, MediaKind, Page, Picture, SearchAnswer,
    SearchRequest, Seen, Step, Unlock, Visitor, Written,
};
