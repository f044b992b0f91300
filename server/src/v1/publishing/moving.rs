//! A page goes over to another retriever: stages cannot be changed, and whoever links to a page need not know.

use loupe_wire::{NamespaceOperation, PublishedRetrieverResponse};

use super::{
    again::Made,
    describe,
    display::{self, About},
    noted, retrievers, store,
};
use crate::{
    app::App,
    auth::{Scope, Write},
    clock,
    error::{ApiError, Result},
};

/// Moves the page of a retriever to another one of the namespace, at once: its addresses, its password, its limits and what was
/// told of it stay.
///
/// # Errors
/// There is no such page or retriever, the other one has a page, or does not take what the page asks for.
pub(super) async fn page(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    target: &str,
) -> Result<PublishedRetrieverResponse> {
    let operation = NamespaceOperation::CreateRetriever;
    let from = retrievers::find(app, scope, identifier, operation).await?;
    let to = retrievers::find(app, scope, target, operation).await?;
    let from_id = from.retriever_id.clone().unwrap_or_default();
    let to_id = to.retriever_id.clone().unwrap_or_default();
    let found = store::find(app.db(), &scope.namespace_id, &from_id).await?;
    let found = found.ok_or_else(|| ApiError::not_found("published_retriever", &from_id))?;
    if from_id == to_id {
        return Ok(found);
    }
    display::check(&found.display_config, &to)?;
    let metadata = describe(app, scope, &to).await?;
    let (namespace_id, now) = (scope.namespace_id.clone(), app.clock().micros());
    let (here, caller) = (app.clone(), scope.caller.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // Gone meanwhile, it would leave a page that nothing answers and nobody can take down. In the order of their ids, so
                // that pages that change places do not wait for each other.
                let mut both = [&from_id, &to_id];
                both.sort();
                for id in both {
                    retrievers::RETRIEVERS.hold(tx, &namespace_id, id).await?;
                }
                let page = store::hold(tx, &namespace_id, &from_id).await?;
                let mut page =
                    page.ok_or_else(|| ApiError::not_found("published_retriever", &from_id))?;
                // The page may have been changed since it was looked at.
                display::check(&page.display_config, &to)?;
                if store::hold(tx, &namespace_id, &to_id).await?.is_some() {
                    let message = "the retriever has a page of its own";
                    return Err(ApiError::already_exists("retriever_published", message));
                }
                let made = Made::of(&here, &page, &from);
                // What the owner keeps to themselves stays so.
                page.retriever_metadata = page.retriever_metadata.map(|_| metadata);
                let tells = page.retriever_metadata.is_some();
                page.display_config.retriever_config = tells.then(|| display::configuration(&to));
                made.forget(&mut page.display_config);
                let about = About {
                    description: page.description.as_deref(),
                    tags: &page.tags,
                    metadata: page.retriever_metadata.as_ref(),
                };
                page.display_config.seo = Some(display::told(&page.display_config, &to, &about));
                page.retriever_id = to_id;
                page.updated_at = clock::time(now);
                store::move_from(tx, (&namespace_id, &from_id), &page, now).await?;
                noted::moved(tx, &caller, &from_id, &page, now).await?;
                Ok(page)
            })
        })
        .await
}
