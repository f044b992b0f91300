//! What the audit log is told of pages: a page is a part of its retriever.

use loupe_wire::PublishedRetrieverResponse;
use serde_json::json;

use crate::{
    auth::Caller,
    db::Tx,
    error::Result,
    v1::audit::{self, PartOf},
};

/// A retriever got a page, or its page was changed.
pub(super) async fn changed(
    tx: &mut Tx,
    caller: &Caller,
    before: Option<&PublishedRetrieverResponse>,
    page: &PublishedRetrieverResponse,
    now: i64,
) -> Result<()> {
    let changes = match before {
        // What pages show may be large.
        Some(before) => json!({
            "change": "page_updated", "public_name": page.public_name, "members": audit::changed_members(before, page),
        }),
        None => json!({
            "change": "page_published", "public_name": page.public_name, "password_protected": page.password_protected,
        }),
    };
    let whole = PartOf::Retriever(&page.retriever_id);
    audit::record_part(tx, caller, whole, changes, now).await
}

/// A page went over to another retriever: both are told of it.
pub(super) async fn moved(
    tx: &mut Tx,
    caller: &Caller,
    from_id: &str,
    page: &PublishedRetrieverResponse,
    now: i64,
) -> Result<()> {
    let changes = json!({
        "change": "page_moved", "public_name": page.public_name, "from": from_id, "to": page.retriever_id,
    });
    for id in [from_id, &page.retriever_id] {
        audit::record_part(tx, caller, PartOf::Retriever(id), changes.clone(), now).await?;
    }
    Ok(())
}

/// A retriever has no page any more.
pub(super) async fn ended(
    tx: &mut Tx,
    caller: &Caller,
    retriever_id: &str,
    now: i64,
) -> Result<()> {
    let changes = json!({"change": "page_unpublished"});
    audit::record_part(tx, caller, PartOf::Retriever(retriever_id), changes, now).await
}
