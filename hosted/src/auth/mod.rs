//! Sign-in of hosted apps: its pages, which work without JavaScript but for passkeys, and the script that apps speak to.

mod page;
mod passkeys;
mod sessions;
mod style;

pub use page::{Field, Page, Provider, render};
pub use passkeys::{Passkey, Passkeys};
pub use sessions::Session;
pub use style::Style;

/// `/_auth/sdk.js`.
pub const SDK: &str = include_str!("sdk.js");

/// `/_auth/form.js`.
pub const FORM: &str = include_str!("form.js");

/// `/_auth/passkeys.js`.
pub const PASSKEYS: &str = include_str!("passkeys.js");
