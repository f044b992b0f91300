//! Hosted apps: what is taken out of a bundle, which file answers a path, and with which headers.

pub mod bundle;
pub mod files;
pub mod headers;
mod inject;
mod policy;
mod smoke;

pub use inject::{Injector, inject};
pub use policy::permit;
pub use smoke::faults;
