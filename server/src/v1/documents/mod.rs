//! Documents: what extractors make of objects, or what callers write themselves.

mod answers;
mod anywhere;
mod applying;
mod bulk;
mod checking;
mod editing;
mod expand;
mod figures;
mod files;
mod journal;
mod keeping;
mod listing;
mod noted;
mod others;
mod processing;
pub mod reembedding;
mod related;
mod removing;
mod routes;
pub mod schema;
mod sharing;
mod sight;
mod turns;
mod upserting;
mod vectors;
mod view;
mod writing;

pub use answers::{One, show};
pub use bulk::update_many;
pub use checking::{hold_back, is_own, refused};
pub use editing::{patch, replace, rewrite, set_acl};
pub use expand::{ROOT, expand};
pub use files::{addresses, is_told};
pub use journal::{reapply, recover, settle, settle_all, trim};
pub use keeping::without_nul;
pub use listing::{Listing, by_batch, list, parse_sort};
pub use others::Journalled;
pub use processing::note_processing;
pub use removing::{delete, removal_events};
pub use routes::router;
pub use sight::{Sight, everywhere, of_patterns, open};
pub use turns::{Turn, Writers};
pub use upserting::{checked, find_sent, upsert};
pub use view::{Shape, VectorNames, presign, view};
pub use writing::{create, keywords};

use std::sync::Arc;

use loupe_engine::store::{Document, WithVectors};
use loupe_wire::{CollectionResponse, NamespaceOperation};

use crate::{
    app::App,
    auth::{Caller, Level, Scope},
    db::Record,
    error::{ApiError, Result},
    v1::collections,
};

/// A document that the caller may see, with its collection.
pub async fn find<L: Level>(
    app: &App,
    scope: &Scope<L>,
    collection: &str,
    document_id: &str,
    operation: NamespaceOperation,
    vectors: WithVectors,
) -> Result<(Arc<Record<CollectionResponse>>, Document)> {
    let (collection, sight) = open(app, scope, collection, operation).await?;
    collections::lifecycle::check_here(&collection)?;
    let ids = [document_id.to_owned()];
    let mut found = match operation {
        NamespaceOperation::ReadData => app.store().get(&sight.reach, &ids, vectors).await?,
        _ => others::current(app, &sight.reach, &ids, vectors).await?,
    };
    let Some(document) = found.pop() else {
        return Err(ApiError::not_found("document", document_id));
    };
    sight.check(&scope.caller, &document)?;
    if !may(&scope.caller, &document, operation) {
        return Err(ApiError::forbidden(
            "permission_denied",
            "the document was shared for reading only",
        ));
    }
    Ok((collection, document))
}

/// Whether an end user may do this to a document that the user sees: change it as its owner or where granted, share it as
/// its owner alone. Other keys may do what their level says.
fn may(caller: &Caller, document: &Document, operation: NamespaceOperation) -> bool {
    let Some(principal) = caller.principal() else {
        return true;
    };
    if operation == NamespaceOperation::ReadData {
        return true;
    }
    let acl = &document.payload.get("_internal").map(|i| &i["_acl"]);
    let owns = acl.is_some_and(|acl| acl["owner"] == principal);
    let granted = acl
        .and_then(|acl| acl["write"].as_array())
        .is_some_and(|people| people.iter().any(|one| one == principal));
    owns || (granted && operation != NamespaceOperation::ManagePermissions)
}

/// Whether an access list lets a principal see its document: as the store decides for a document that it holds.
pub fn shows(acl: &loupe_wire::Value, principal: &str) -> bool {
    let named = |list: &str| {
        acl[list]
            .as_array()
            .is_some_and(|people| people.iter().any(|one| one == principal))
    };
    acl["public"] == true || acl["owner"] == principal || named("read") || named("write")
}
