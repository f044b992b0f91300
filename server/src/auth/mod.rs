//! Who calls, and what it may do. The permission is an argument type: no handler can be written without saying who may
//! call it, and no store function can be called without the [`Caller`] or [`Scope`] it hands out.

pub mod key;
mod level;
pub mod origin;
mod scope;
pub mod table;

pub use level::{Admin, Delete, Level, Read, Write, operation_of, rank};
pub use scope::{Caller, OptionalScope, Org, Scope, Via, Visitor, authenticate};
pub(crate) use scope::{check_alive, check_level, identify, namespace_header, welcome};
