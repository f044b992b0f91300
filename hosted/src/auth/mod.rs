//! Sign-in of hosted apps: its pages, which work without JavaScript, and the script that apps speak to.

mod page;

pub use page::{Field, Page, Provider, Style, render};

/// `/_auth/sdk.js`.
pub const SDK: &str = include_str!("sdk.js");
