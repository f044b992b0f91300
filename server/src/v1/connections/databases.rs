//! The databases that an organization's connections lead to, for stages that look rows up.

use async_trait::async_trait;
use loupe_engine::stage::{Lookup, NotAsked, Tables};
use loupe_wire::{NamespaceOperation, Object, StorageConnectionModel};
use tokio::sync::Semaphore;

use super::{CONNECTIONS, allow, opened, postgres::Target};
use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, Result},
};

/// Connections to databases of others that are open at once.
static OPEN: Semaphore = Semaphore::const_new(8);

const NO_DATABASE: &str = "this connection leads to no database that stages read";

/// One organization's.
pub struct Databases {
    app: App,
    org_id: String,
}

impl Databases {
    pub fn new(app: &App, org_id: &str) -> Self {
        Self {
            app: app.clone(),
            org_id: org_id.to_owned(),
        }
    }

    async fn target(&self, identifier: &str) -> Result<Target> {
        let found = CONNECTIONS.find(self.app.db(), &self.org_id, identifier);
        let found = found.await?;
        active(&found.data.0)?;
        let config = opened(&self.app, &self.org_id, &found)?;
        Target::read(found.provider_type, &config)?
            .ok_or_else(|| ApiError::bad_request("", NO_DATABASE))
    }
}

#[async_trait]
impl Tables for Databases {
    async fn look_up(
        &self,
        connection_id: &str,
        lookup: Lookup,
    ) -> std::result::Result<Vec<std::result::Result<Vec<Object>, String>>, NotAsked> {
        let target = self.target(connection_id).await;
        let target = target.map_err(|error| match error.is_transient() {
            true => NotAsked::Away(error.message()),
            false => NotAsked::Refused(error.message()),
        })?;
        let open = OPEN.acquire().await;
        let _open = open.map_err(|error| NotAsked::Away(error.to_string()))?;
        target.look_up(self.app.outbound(), lookup).await
    }
}

/// Refuses a connection that is switched off.
pub(super) fn active(connection: &StorageConnectionModel) -> Result<()> {
    if connection.is_active {
        return Ok(());
    }
    let message = "this storage connection is not active";
    Err(ApiError::bad_request("", message))
}

/// Whether the caller may let a retriever read the database of a connection.
///
/// # Errors
/// There is none of this id or name, the caller's scopes do not cover it, or it leads to no database.
pub async fn check_database(app: &App, caller: &Caller, identifier: &str) -> Result<()> {
    let found = CONNECTIONS.find(app.db(), &caller.org_id, identifier);
    let found = found.await?;
    allow(caller, &found.id, NamespaceOperation::ReadData)?;
    let config = opened(app, &caller.org_id, &found)?;
    match Target::read(found.provider_type, &config)? {
        Some(_) => Ok(()),
        None => Err(ApiError::bad_request("", NO_DATABASE)),
    }
}
