use loupe_wire::StorageConnectionModel;

crate::table!(pub static CONNECTIONS: StorageConnectionModel = "connections", "connection");
