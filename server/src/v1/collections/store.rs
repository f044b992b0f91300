use loupe_wire::CollectionResponse;

use crate::{db::Db, error::Result};

crate::table!(pub static COLLECTIONS: CollectionResponse = "collections", "collection");

crate::sql! {
    // Over all organizations: whether this installation has anything to search.
    const COUNT_ALL = "SELECT CAST(COUNT(*) AS BIGINT) FROM collections";
}

/// Whether there is no collection at all.
pub async fn is_empty(db: &Db) -> Result<bool> {
    Ok(db.number(COUNT_ALL, vec![]).await? == 0)
}
