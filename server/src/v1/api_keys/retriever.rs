//! Keys that execute one retriever and can do nothing else, made for browsers.

use loupe_wire::{
    APIKeyCreateRequest, APIKeyModel, CreateRetrieverAPIKeyRequest, NamespaceOperation, Permission,
    ResourceScope, ResourceType,
};

use super::{Mint, check, lifecycle, mint, shown, store};
use crate::{
    app::App,
    auth::{Admin, Level, Scope, key},
    error::Result,
    v1::{
        namespaces::NAMESPACES,
        retrievers::{self, RETRIEVERS},
        users,
    },
};

async fn retriever_id<L: Level>(app: &App, scope: &Scope<L>, identifier: &str) -> Result<String> {
    let operation = NamespaceOperation::ManagePermissions;
    let retriever = retrievers::find(app, scope, identifier, operation).await?;
    Ok(retriever.retriever_id.unwrap_or_default())
}

/// Mints a key whose permissions and scope are fixed: this retriever, executed.
pub async fn create_for_retriever(
    app: &App,
    scope: &Scope<Admin>,
    retriever: &str,
    request: CreateRetrieverAPIKeyRequest,
) -> Result<(APIKeyModel, String)> {
    let now = app.clock().micros();
    let mut faults = Vec::new();
    check::origins(request.allowed_origins.as_deref(), &mut faults);
    check::expiry(request.expires_at, now, &mut faults);
    check::done(faults)?;
    let retriever_id = retriever_id(app, scope, retriever).await?;
    let only = ResourceScope {
        resource_type: ResourceType::Retriever,
        resource_id: retriever_id.clone(),
        operations: Some(vec![NamespaceOperation::ExecuteRetriever]),
    };
    let request = APIKeyCreateRequest {
        name: request.name,
        description: request.description.or(request.note),
        permissions: Some(vec![Permission::Read]),
        scopes: Some(vec![only]),
        expires_at: request.expires_at,
        allowed_origins: request.allowed_origins,
        ..Default::default()
    };
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // The retriever first, as whoever removes it has it: no key is made for one that is gone.
                RETRIEVERS.hold(tx, &namespace_id, &retriever_id).await?;
                store::hold(tx, &caller.org_id).await?;
                NAMESPACES
                    .find_in(tx, &caller.org_id, &namespace_id)
                    .await?;
                let user = users::find_by_id_in(tx, &caller.org_id, &caller.key.user_id).await?;
                check::is_active(&user)?;
                let how = Mint {
                    kind: key::Kind::Retriever,
                    protected: false,
                    caller: &caller,
                    now,
                };
                mint(tx, &user, request, how).await
            })
        })
        .await
}

/// The retriever's keys, newest first, without secrets.
pub async fn list_for_retriever(
    app: &App,
    scope: &Scope<Admin>,
    retriever: &str,
    include_revoked: bool,
) -> Result<Vec<APIKeyModel>> {
    let retriever_id = retriever_id(app, scope, retriever).await?;
    let keys = store::list_retriever(app.db(), &scope.caller.org_id, &retriever_id).await?;
    Ok(shown(app, keys, include_revoked))
}

/// Revokes a key of the retriever, at once. Without `force` one that is in use is kept.
pub async fn revoke_for_retriever(
    app: &App,
    scope: &Scope<Admin>,
    retriever: &str,
    key_id: &str,
    force: bool,
) -> Result<()> {
    let retriever_id = retriever_id(app, scope, retriever).await?;
    lifecycle::revoke_of_retriever(app, &scope.caller, &retriever_id, key_id, force).await
}
