use std::collections::BTreeSet;

use loupe_wire::{PublishedRetrieverResponse, RetrieverModelOutput};

use crate::{
    app::App,
    args,
    db::{self, Arg, Db, Json, Tx},
    error::Result,
};

crate::sql! {
    const INSERT = "INSERT INTO published_retrievers (public_id, org_id, namespace_id, retriever_id, public_name, is_active, created_at, updated_at, data, title, is_locked, is_indexed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    const UPDATE = "UPDATE published_retrievers SET public_name = $3, is_active = $4, updated_at = $5, data = $6, title = $7, is_locked = $8, is_indexed = $9 WHERE namespace_id = $1 AND retriever_id = $2";
    const MOVE = "UPDATE published_retrievers SET retriever_id = $3, updated_at = $4, data = $5 WHERE namespace_id = $1 AND retriever_id = $2";
    const MOVE_NAMES = "UPDATE page_names SET retriever_id = $3 WHERE namespace_id = $1 AND retriever_id = $2";
    const MOVE_LOCK = "UPDATE page_passwords SET retriever_id = $3 WHERE namespace_id = $1 AND retriever_id = $2";
    const FIND = "SELECT data FROM published_retrievers WHERE namespace_id = $1 AND retriever_id = $2";
    const HOLD = "UPDATE published_retrievers SET updated_at = updated_at WHERE namespace_id = $1 AND retriever_id = $2";
    const LIST = "SELECT data FROM published_retrievers WHERE namespace_id = $1 ORDER BY created_at DESC, public_id";
    const NAMES = "SELECT retriever_id FROM published_retrievers WHERE namespace_id = $1";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM published_retrievers WHERE namespace_id = $1";
    const DELETE = "DELETE FROM published_retrievers WHERE namespace_id = $1 AND retriever_id = $2";
    // Public names are unique over all organizations, and strangers find a page by its name alone: one that a page had leads to
    // it, and is free within its organization only.
    const TAKEN = "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT 1 AS taken FROM published_retrievers WHERE public_name = $1 AND retriever_id <> $2 UNION ALL SELECT 1 AS taken FROM page_names WHERE public_name = $1 AND org_id <> $3) AS names";
    const FIND_PUBLIC = "SELECT p.org_id AS org_id, p.namespace_id AS namespace_id, p.data AS data, COALESCE(w.hash, '') AS hash FROM published_retrievers p LEFT JOIN page_passwords w ON w.public_id = p.public_id WHERE p.public_name = $1";
    // What leads to a page that was called so, where no other is.
    const FIND_MOVED = "SELECT p.org_id AS org_id, p.namespace_id AS namespace_id, p.data AS data, COALESCE(w.hash, '') AS hash FROM page_names n JOIN published_retrievers p ON p.namespace_id = n.namespace_id AND p.retriever_id = n.retriever_id LEFT JOIN page_passwords w ON w.public_id = p.public_id WHERE n.public_name = $1";
    const KEEP_NAME = "INSERT INTO page_names (public_name, org_id, namespace_id, retriever_id, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (public_name) DO UPDATE SET org_id = excluded.org_id, namespace_id = excluded.namespace_id, retriever_id = excluded.retriever_id, created_at = excluded.created_at";
    const TAKE_NAME = "DELETE FROM page_names WHERE public_name = $1";
    const FORGET_NAMES = "DELETE FROM page_names WHERE namespace_id = $1 AND retriever_id = $2";
    // What has a password is counted and not told.
    const COUNT_PUBLIC = "SELECT CAST(COUNT(*) AS BIGINT), CAST(COALESCE(SUM(CASE WHEN is_locked = TRUE THEN 1 ELSE 0 END), 0) AS BIGINT) FROM published_retrievers WHERE is_active = TRUE";
    const LIST_OPEN = "SELECT org_id, namespace_id, data, '' AS hash FROM published_retrievers WHERE is_active = TRUE AND is_locked = FALSE AND ($1 = '' OR title LIKE $1 ESCAPE '!' OR public_name LIKE $1 ESCAPE '!') ORDER BY created_at DESC, public_id LIMIT $2 OFFSET $3";
    const COUNT_OPEN = "SELECT CAST(COUNT(*) AS BIGINT) FROM published_retrievers WHERE is_active = TRUE AND is_locked = FALSE AND ($1 = '' OR title LIKE $1 ESCAPE '!' OR public_name LIKE $1 ESCAPE '!')";
    const OPEN_NAMES = "SELECT public_name, updated_at FROM published_retrievers WHERE is_active = TRUE AND is_locked = FALSE AND is_indexed = TRUE ORDER BY created_at DESC, public_id LIMIT $1";
    const LOCK = "INSERT INTO page_passwords (public_id, org_id, namespace_id, retriever_id, secret_name, hash, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (public_id) DO UPDATE SET secret_name = excluded.secret_name, hash = excluded.hash, updated_at = excluded.updated_at";
    const UNLOCK = "DELETE FROM page_passwords WHERE namespace_id = $1 AND retriever_id = $2";
    const LOCKED_BY = "SELECT CAST(COUNT(*) AS BIGINT) FROM page_passwords WHERE org_id = $1 AND secret_name = $2";
    // The same password: it was changed at no other moment than before.
    const RENEW = "UPDATE page_passwords SET hash = $4 WHERE org_id = $1 AND public_id = $2 AND hash = $3";
    const RELOCK = "UPDATE page_passwords SET hash = $3, updated_at = $4 WHERE org_id = $1 AND secret_name = $2";
}

/// Letters of a title that a search of pages reads.
const TITLE: usize = 500;

/// Pages of the sitemap.
const LISTED: i64 = 10_000;

type Row = (Json<PublishedRetrieverResponse>,);

crate::row! {
    /// A publication with what its searches run as.
    #[derive(Debug, Clone)]
    pub struct Published {
        pub org_id: String,
        pub namespace_id: String,
        pub data: Json<PublishedRetrieverResponse>,
        /// The hash of its password; empty without one.
        pub hash: String,
    }
}

/// The password of a page: the secret that holds it, and its hash.
#[derive(Debug, Clone)]
pub(super) struct Lock {
    pub secret_name: String,
    pub hash: String,
}

pub(super) async fn lock(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    published: &PublishedRetrieverResponse,
    lock: &Lock,
    now: i64,
) -> Result<()> {
    let args = args![
        &published.public_id,
        org_id,
        namespace_id,
        &published.retriever_id,
        &lock.secret_name,
        &lock.hash,
        now
    ];
    tx.run(LOCK, args).await?;
    Ok(())
}

pub(super) async fn unlock(tx: &mut Tx, namespace_id: &str, retriever_id: &str) -> Result<()> {
    tx.run(UNLOCK, args![namespace_id, retriever_id]).await?;
    Ok(())
}

/// Pages whose password is in this secret.
pub(super) async fn locked_by(db: &Db, org_id: &str, secret_name: &str) -> Result<i64> {
    db.number(LOCKED_BY, args![org_id, secret_name]).await
}

/// Pages whose password is in this secret have another one from now on.
pub async fn relock(
    tx: &mut Tx,
    org_id: &str,
    secret_name: &str,
    hash: &str,
    now: i64,
) -> Result<()> {
    tx.run(RELOCK, args![org_id, secret_name, hash, now])
        .await?;
    Ok(())
}

/// The password of a page has another hash, unless it was changed meanwhile.
pub(super) async fn renew(
    tx: &mut Tx,
    (org_id, public_id): (&str, &str),
    old: &str,
    hash: &str,
) -> Result<()> {
    tx.run(RENEW, args![org_id, public_id, old, hash]).await?;
    Ok(())
}

/// The title as searches of pages read it.
fn title(published: &PublishedRetrieverResponse) -> String {
    let title = published.display_config.title.to_lowercase();
    title.chars().take(TITLE).collect()
}

/// Whether the owner lets search engines list the page.
fn is_indexed(published: &PublishedRetrieverResponse) -> bool {
    let seo = published.display_config.seo.as_ref();
    let said = seo.map_or("", |seo| seo.robots.as_str());
    let refuses = |word: &str| matches!(word.to_ascii_lowercase().as_str(), "noindex" | "none");
    !said.split(',').map(str::trim).any(refuses)
}

/// A page is called so from now on: no page was called so before.
pub(super) async fn take_name(tx: &mut Tx, public_name: &str) -> Result<()> {
    tx.run(TAKE_NAME, args![public_name]).await?;
    Ok(())
}

/// The name that the page had leads to the one that it has.
pub(super) async fn keep_name(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    before: &PublishedRetrieverResponse,
    now: i64,
) -> Result<()> {
    let args = args![
        &before.public_name,
        org_id,
        namespace_id,
        &before.retriever_id,
        now
    ];
    tx.run(KEEP_NAME, args).await?;
    Ok(())
}

pub(super) async fn insert(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    published: &PublishedRetrieverResponse,
    now: i64,
) -> Result<()> {
    let args = args![
        &published.public_id,
        org_id,
        namespace_id,
        &published.retriever_id,
        &published.public_name,
        published.is_active,
        now,
        now,
        Arg::json(published),
        title(published),
        published.password_protected,
        is_indexed(published),
    ];
    tx.run(INSERT, args).await?;
    Ok(())
}

pub(super) async fn update(
    tx: &mut Tx,
    namespace_id: &str,
    published: &PublishedRetrieverResponse,
    now: i64,
) -> Result<()> {
    let args = args![
        namespace_id,
        &published.retriever_id,
        &published.public_name,
        published.is_active,
        now,
        Arg::json(published),
        title(published),
        published.password_protected,
        is_indexed(published),
    ];
    tx.run(UPDATE, args).await?;
    Ok(())
}

/// The page that was this retriever's is that of the one that it names now, with its old names and its password.
pub(super) async fn move_from(
    tx: &mut Tx,
    (namespace_id, retriever_id): (&str, &str),
    published: &PublishedRetrieverResponse,
    now: i64,
) -> Result<()> {
    let to = &published.retriever_id;
    let page = args![namespace_id, retriever_id, to, now, Arg::json(published)];
    tx.run(MOVE, page).await?;
    tx.run(MOVE_NAMES, args![namespace_id, retriever_id, to])
        .await?;
    tx.run(MOVE_LOCK, args![namespace_id, retriever_id, to])
        .await?;
    Ok(())
}

pub(super) async fn find(
    db: &Db,
    namespace_id: &str,
    retriever_id: &str,
) -> Result<Option<PublishedRetrieverResponse>> {
    Ok(db
        .one::<Row>(FIND, args![namespace_id, retriever_id])
        .await?
        .map(|(data,)| data.0))
}

/// The publication, held against every other change until the transaction ends.
pub(super) async fn hold(
    tx: &mut Tx,
    namespace_id: &str,
    retriever_id: &str,
) -> Result<Option<PublishedRetrieverResponse>> {
    tx.run(HOLD, args![namespace_id, retriever_id]).await?;
    Ok(tx
        .one::<Row>(FIND, args![namespace_id, retriever_id])
        .await?
        .map(|(data,)| data.0))
}

/// The pages of a namespace, newest first.
///
/// # Errors
/// The database fails.
pub async fn list(db: &Db, namespace_id: &str) -> Result<Vec<PublishedRetrieverResponse>> {
    let rows: Vec<Row> = db.all(LIST, args![namespace_id]).await?;
    Ok(rows.into_iter().map(|(data,)| data.0).collect())
}

pub(super) async fn count(tx: &mut Tx, namespace_id: &str) -> Result<i64> {
    tx.number(COUNT, args![namespace_id]).await
}

pub(super) async fn is_taken(
    tx: &mut Tx,
    org_id: &str,
    public_name: &str,
    retriever_id: &str,
) -> Result<bool> {
    let args = args![public_name, retriever_id, org_id];
    Ok(tx.number(TAKEN, args).await? > 0)
}

/// Rows removed: one or none.
pub async fn delete_of(tx: &mut Tx, namespace_id: &str, retriever_id: &str) -> Result<u64> {
    unlock(tx, namespace_id, retriever_id).await?;
    tx.run(FORGET_NAMES, args![namespace_id, retriever_id])
        .await?;
    tx.run(DELETE, args![namespace_id, retriever_id]).await
}

/// The publication of this name, active or not.
pub async fn find_public(db: &Db, public_name: &str) -> Result<Option<Published>> {
    db.one(FIND_PUBLIC, args![public_name]).await
}

/// The publication that had this name before, active or not.
pub(super) async fn find_moved(db: &Db, public_name: &str) -> Result<Option<Published>> {
    db.one(FIND_MOVED, args![public_name]).await
}

/// Active pages, and those among them that have a password.
pub async fn count_public(db: &Db) -> Result<(i64, i64)> {
    let counts: Option<(i64, i64)> = db.one(COUNT_PUBLIC, vec![]).await?;
    Ok(counts.unwrap_or_default())
}

/// Active pages without a password whose title or name has these words, newest first: some of them, and how many there are.
pub async fn list_open(
    db: &Db,
    words: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<Published>, i64)> {
    let words: String = words.to_lowercase().chars().take(TITLE + 1).collect();
    let pattern = match words.is_empty() {
        true => words,
        false => format!("%{}%", db::verbatim(&words)),
    };
    let found = db.all(LIST_OPEN, args![&pattern, limit, offset]).await?;
    let count = db.number(COUNT_OPEN, args![&pattern]).await?;
    Ok((found, count))
}

/// Names of active pages without a password that search engines may list, newest first, and when each was changed.
pub async fn open_names(db: &Db) -> Result<Vec<(String, i64)>> {
    db.all(OPEN_NAMES, args![LISTED]).await
}

/// Says of each retriever whether it is published, in one query for all.
pub async fn mark_published(
    app: &App,
    namespace_id: &str,
    retrievers: &mut [RetrieverModelOutput],
) -> Result<()> {
    let names: Vec<(String,)> = app.db().all(NAMES, args![namespace_id]).await?;
    let published: BTreeSet<String> = names.into_iter().map(|(name,)| name).collect();
    for retriever in retrievers {
        retriever.is_published = retriever
            .retriever_id
            .as_ref()
            .is_some_and(|id| published.contains(id));
    }
    Ok(())
}
