//! Who calls, and what it may do. The permission is an argument type: no handler can be written without saying who may
//! call it, and no store function can be called without the [`Caller`] or [`Scope`] it hands out.

pub mod key;
mod level;
mod scope;

pub use level::{Admin, Delete, Level, Read, Write};
pub use scope::{Caller, ListScope, OptionalScope, Org, Scope, authenticate};
