//! A page as its owner would publish it, at an address that nobody guesses, for an hour: looked at before anybody else does.

use chrono::{DateTime, Utc};
use loupe_wire::{NamespaceOperation, PublishRetrieverRequest, PublishedRetrieverResponse};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Published, asked, display::doubts, public_url, retrievers};
use crate::{
    app::App,
    args,
    auth::{Scope, Write},
    clock,
    db::{Arg, Db, Json},
    error::Result,
};

crate::sql! {
    const INSERT = "INSERT INTO page_previews (hash, org_id, namespace_id, retriever_id, created_at, data) VALUES ($1, $2, $3, $4, $5, $6)";
    const DELETE_OLD = "DELETE FROM page_previews WHERE namespace_id = $1 AND retriever_id = $2 AND created_at < $3";
    // Whoever knows the name may look: it was given to an owner alone.
    const FIND = "SELECT org_id, namespace_id, data, '' AS hash FROM page_previews WHERE hash = $1 AND created_at > $2";
    const SWEEP = "DELETE FROM page_previews WHERE created_at < $1";
}

/// Begins the names of previews. No page is called so: names have no `_`.
const PREFIX: &str = "preview_";

/// How long a preview can be looked at.
const KEPT: i64 = 3_600_000_000;

/// How long one can while newer ones of the retriever are made: an editor makes one after each change.
const REPLACED: i64 = 600_000_000;

/// Where a page can be looked at before it is published.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct PublishPreviewResponse {
    /// The page's address, for whoever has it.
    pub preview_url: String,
    /// When there will be nothing at it.
    pub expires_at: DateTime<Utc>,
    /// What of the display configuration says nothing here and is passed over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Whether a publication is a preview.
pub fn is_preview(published: &PublishedRetrieverResponse) -> bool {
    published.public_name.starts_with(PREFIX)
}

fn hash(name: &str) -> String {
    hex::encode(Sha256::digest(name))
}

/// Keeps the page that a request asks for, and tells where it is.
///
/// # Errors
/// As publishing.
pub(super) async fn preview(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: PublishRetrieverRequest,
) -> Result<PublishPreviewResponse> {
    let operation = NamespaceOperation::CreateRetriever;
    let retriever = retrievers::find(app, scope, identifier, operation).await?;
    let mut published = asked(app, scope, &retriever, request).await?;
    let warnings = doubts(&published.display_config, &retriever);
    let name = format!("{PREFIX}{}", uuid::Uuid::new_v4().simple());
    published.public_name.clone_from(&name);
    // Previews of a retriever share what a page may be asked for in a minute.
    published.public_id = format!("{PREFIX}{}", published.retriever_id);
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    let hash = hash(&name);
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let retriever_id = published.retriever_id.clone();
                let old = args![&namespace_id, &retriever_id, now - REPLACED];
                tx.run(DELETE_OLD, old).await?;
                let data = Arg::json(&published);
                let new = args![hash, org_id, namespace_id, retriever_id, now, data];
                tx.run(INSERT, new).await
            })
        })
        .await?;
    Ok(PublishPreviewResponse {
        preview_url: public_url(app, &name),
        expires_at: clock::time(now + KEPT),
        warnings,
    })
}

/// The preview of this name; none for names of pages.
///
/// # Errors
/// The database does not answer.
pub(super) async fn find(db: &Db, name: &str, now: i64) -> Result<Option<Published>> {
    if !name.starts_with(PREFIX) {
        return Ok(None);
    }
    type Row = (String, String, Json<PublishedRetrieverResponse>, String);
    let row: Option<Row> = db.one(FIND, args![hash(name), now - KEPT]).await?;
    Ok(row.map(|(org_id, namespace_id, data, hash)| Published {
        org_id,
        namespace_id,
        data,
        hash,
    }))
}

/// Forgets previews that nobody can look at any more.
///
/// # Errors
/// The database does not answer.
pub async fn sweep(app: &App) -> Result<()> {
    let before = app.clock().micros() - KEPT;
    app.db()
        .write(move |tx| Box::pin(async move { tx.run(SWEEP, args![before]).await.map(drop) }))
        .await
}
