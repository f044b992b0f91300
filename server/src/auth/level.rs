//! Permission levels as types: read < write < delete < admin.

use loupe_wire::Permission;

/// A level that a route asks for.
pub trait Level: Send + Sync + 'static {
    const PERMISSION: Permission;
}

macro_rules! levels {
    ($($name:ident),*) => {
        $(#[derive(Debug, Clone, Copy)]
        pub struct $name;
        impl Level for $name {
            const PERMISSION: Permission = Permission::$name;
        })*
    };
}

levels!(Read, Write, Delete, Admin);

/// The place of a level in the hierarchy; a higher one implies the lower ones.
pub const fn rank(permission: Permission) -> u8 {
    match permission {
        Permission::Read => 0,
        Permission::Write => 1,
        Permission::Delete => 2,
        Permission::Admin => 3,
    }
}
