//! Passwords of pages. The owner names a secret that holds the password; the page keeps its hash, and gets another one when
//! the secret's value changes.

use loupe_wire::{NamespaceOperation, PublishedRetrieverResponse, ResourceType};

use super::store::{self, Lock, Published};
use crate::{app::App, auth::Caller, db::Tx, error::Result, password, v1::secrets};

/// What a request does to a page's password.
#[derive(Debug, Clone)]
pub(super) enum Password {
    Keep,
    Remove,
    Set(Lock),
}

impl Password {
    /// A name sets the password, an empty name removes it, none leaves it as it is.
    ///
    /// # Errors
    /// There is no such secret, or the caller's scopes do not cover it.
    pub async fn asked(app: &App, caller: &Caller, name: Option<&str>) -> Result<Self> {
        let Some(name) = name else {
            return Ok(Self::Keep);
        };
        if name.is_empty() {
            return Ok(Self::Remove);
        }
        caller.allow(ResourceType::Secret, name, NamespaceOperation::ReadData)?;
        let value = secrets::value(app, &caller.org_id, name).await?;
        Ok(Self::Set(Lock {
            secret_name: name.to_owned(),
            hash: password::hash(app, &value).await?,
        }))
    }

    /// Changes the page and its row of passwords together.
    pub async fn apply(
        &self,
        tx: &mut Tx,
        org_id: &str,
        namespace_id: &str,
        published: &mut PublishedRetrieverResponse,
        now: i64,
    ) -> Result<()> {
        match self {
            Self::Keep => Ok(()),
            Self::Remove => {
                published.password_protected = false;
                store::unlock(tx, namespace_id, &published.retriever_id).await
            }
            Self::Set(lock) => {
                published.password_protected = true;
                store::lock(tx, org_id, namespace_id, published, lock, now).await
            }
        }
    }
}

/// Keeps what a visitor came with who was let in as passwords of today are kept. A failure keeps nobody out.
pub async fn renew(app: &App, published: &Published, password: &str) {
    let Some(hash) = password::renewed(app, &published.hash, password).await else {
        return;
    };
    let (org_id, public_id) = (published.org_id.clone(), published.data.public_id.clone());
    let old = published.hash.clone();
    let written = app.db().write(move |tx| {
        Box::pin(async move { store::renew(tx, (&org_id, &public_id), &old, &hash).await })
    });
    if let Err(error) = written.await {
        tracing::warn!(%error, "the weak hash of a page's password could not be replaced");
    }
}

/// The hash that pages need whose password is in this secret; none when there is no such page.
///
/// # Errors
/// The database does not answer, or too many passwords are hashed just now.
pub async fn hash_for_pages(
    app: &App,
    org_id: &str,
    secret_name: &str,
    value: &str,
) -> Result<Option<String>> {
    if store::locked_by(app.db(), org_id, secret_name).await? == 0 {
        return Ok(None);
    }
    password::hash(app, value).await.map(Some)
}
