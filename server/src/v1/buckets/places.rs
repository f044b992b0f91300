//! Where files of buckets are that this server does not keep itself: each holds its connection.

use crate::{args, db::Tx, error::Result};

crate::sql! {
    // One that is there already is where the connection leads by now: where it led before nobody gets through it any more. It
    // is written anew all the same, so that whoever found it unused sees that it is used meanwhile.
    const HOLD = "INSERT INTO blob_places (namespace_id, place_id, org_id, bucket_id, connection_id, address, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (namespace_id, place_id) DO UPDATE SET address = excluded.address, created_at = excluded.created_at";
}

/// One of them.
pub(super) struct Place<'p> {
    pub id: String,
    pub org_id: &'p str,
    pub namespace_id: &'p str,
    pub bucket_id: &'p str,
    pub connection_id: &'p str,
    /// Empty where files are only read, each at an address of its own.
    pub address: &'p str,
}

/// Holds the connection of a place, which is held by whoever calls, from now on.
pub(super) async fn hold(tx: &mut Tx, place: Place<'_>, now: i64) -> Result<()> {
    let Place {
        id,
        org_id,
        namespace_id,
        bucket_id,
        connection_id,
        address,
    } = place;
    let args = args![
        namespace_id,
        id,
        org_id,
        bucket_id,
        connection_id,
        address,
        now
    ];
    tx.run(HOLD, args).await.map(drop)
}
