//! Documents: what extractors make of objects, or what callers write themselves.

mod expand;
mod journal;
mod listing;
mod routes;
mod view;
mod writing;

pub use expand::expand;
pub use journal::{recover, trim};
pub use listing::{Listing, list, parse_sort};
pub use routes::router;
pub use view::{Shape, VectorNames, presign, view};
pub use writing::{create, delete, keywords, patch, replace, set_acl, update_many};

use loupe_engine::store::{Document, WithVectors};
use loupe_wire::{CollectionResponse, NamespaceOperation};

use crate::{
    app::App,
    auth::{Level, Scope},
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
) -> Result<(CollectionResponse, Document)> {
    let collection = collections::find(app, scope, collection, operation).await?;
    let reach = scope.reach(collection.collection_id.iter().cloned().collect());
    let mut found = app
        .store()
        .get(&reach, &[document_id.to_owned()], vectors)
        .await?;
    match found.pop() {
        Some(document) => Ok((collection, document)),
        None => Err(ApiError::not_found("document", document_id)),
    }
}
