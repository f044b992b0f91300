use loupe_wire::{TaxonomyListStats, TaxonomyResponse};

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
};

crate::table!(pub static TAXONOMIES: TaxonomyResponse = "taxonomies", "taxonomy");

crate::sql! {
    const INSERT_VERSION = "INSERT INTO taxonomy_versions (taxonomy_id, namespace_id, version, created_at, data) VALUES ($1, $2, $3, $4, $5)";
    const VERSIONS = "SELECT data FROM taxonomy_versions WHERE namespace_id = $1 AND taxonomy_id = $2 ORDER BY version DESC LIMIT $3";
    const VERSION = "SELECT data FROM taxonomy_versions WHERE namespace_id = $1 AND taxonomy_id = $2 AND version = $3";
    const DELETE_VERSIONS = "DELETE FROM taxonomy_versions WHERE namespace_id = $1 AND taxonomy_id = $2";
}

type Row = (Json<TaxonomyResponse>,);

/// Keeps a version as it is now.
pub async fn insert_version(
    tx: &mut Tx,
    namespace_id: &str,
    taxonomy: &TaxonomyResponse,
    now: i64,
) -> Result<()> {
    let id = taxonomy.taxonomy_id.as_deref().unwrap_or_default();
    let row = args![id, namespace_id, taxonomy.version, now, Arg::json(taxonomy)];
    tx.run(INSERT_VERSION, row).await?;
    Ok(())
}

/// Newest first.
pub async fn versions(
    db: &Db,
    namespace_id: &str,
    id: &str,
    most: i64,
) -> Result<Vec<TaxonomyResponse>> {
    let rows: Vec<Row> = db.all(VERSIONS, args![namespace_id, id, most]).await?;
    Ok(rows.into_iter().map(|row| row.0.0).collect())
}

pub async fn version(
    db: &Db,
    namespace_id: &str,
    id: &str,
    version: i64,
) -> Result<TaxonomyResponse> {
    let row: Option<Row> = db.one(VERSION, args![namespace_id, id, version]).await?;
    row.map(|row| row.0.0)
        .ok_or_else(|| ApiError::not_found("taxonomy version", &format!("{id}@{version}")))
}

pub async fn delete_versions(tx: &mut Tx, namespace_id: &str, id: &str) -> Result<()> {
    tx.run(DELETE_VERSIONS, args![namespace_id, id]).await?;
    Ok(())
}

/// What a page of taxonomies adds up to.
pub fn stats(taxonomies: &[TaxonomyResponse]) -> TaxonomyListStats {
    let count = |keep: &dyn Fn(&&TaxonomyResponse) -> bool| {
        i64::try_from(taxonomies.iter().filter(keep).count()).unwrap_or(i64::MAX)
    };
    let is_flat =
        |one: &&TaxonomyResponse| matches!(one.config, loupe_wire::TaxonomyConfig::Flat(_));
    TaxonomyListStats {
        total_taxonomies: count(&|_| true),
        flat_taxonomies: count(&is_flat),
        hierarchical_taxonomies: count(&|one| !is_flat(one)),
        taxonomies_with_retrievers: count(&|one| one.retriever_id.is_some()),
    }
}
