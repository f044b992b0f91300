use loupe_wire::CollectionResponse;

crate::table!(pub static COLLECTIONS: CollectionResponse = "collections", "collection");
