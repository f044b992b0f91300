//! Permission levels as types: read < write < delete < admin.

use loupe_wire::{NamespaceOperation, Permission};

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

/// What a key of this level does to whatever its scopes have to cover.
pub const fn operation_of(permission: Permission) -> NamespaceOperation {
    match permission {
        Permission::Read => NamespaceOperation::ReadData,
        Permission::Write => NamespaceOperation::WriteData,
        Permission::Delete => NamespaceOperation::DeleteData,
        Permission::Admin => NamespaceOperation::ManagePermissions,
    }
}
