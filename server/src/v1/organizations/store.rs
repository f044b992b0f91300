use loupe_wire::OrganizationModelResponse;

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
};

crate::sql! {
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM organizations";
    const INSERT = "INSERT INTO organizations (org_id, created_at, updated_at, data) VALUES ($1, $2, $3, $4)";
    const FIND = "SELECT data FROM organizations WHERE org_id = $1";
    const FIRST = "SELECT data FROM organizations ORDER BY created_at, org_id LIMIT 1";
    const UPDATE = "UPDATE organizations SET updated_at = $2, data = $3 WHERE org_id = $1";
}

type Row = (Json<OrganizationModelResponse>,);

pub(super) async fn count(tx: &mut Tx) -> Result<i64> {
    tx.number(COUNT, vec![]).await
}

pub(super) async fn insert(
    tx: &mut Tx,
    organization: &OrganizationModelResponse,
    now: i64,
) -> Result<()> {
    tx.run(
        INSERT,
        args![
            &organization.organization_id,
            now,
            now,
            Arg::json(organization)
        ],
    )
    .await?;
    Ok(())
}

pub async fn find(db: &Db, org_id: &str) -> Result<OrganizationModelResponse> {
    let found: Option<Row> = db.one(FIND, args![org_id]).await?;
    found
        .map(|(data,)| data.0)
        .ok_or_else(|| ApiError::not_found("organization", org_id))
}

/// The organization of the first start.
pub(super) async fn find_first(db: &Db) -> Result<OrganizationModelResponse> {
    let found: Option<Row> = db.one(FIRST, vec![]).await?;
    found
        .map(|(data,)| data.0)
        .ok_or_else(|| ApiError::not_found("organization", ""))
}

pub(super) async fn find_in(tx: &mut Tx, org_id: &str) -> Result<OrganizationModelResponse> {
    let found: Option<Row> = tx.one(FIND, args![org_id]).await?;
    found
        .map(|(data,)| data.0)
        .ok_or_else(|| ApiError::not_found("organization", org_id))
}

pub(super) async fn update(
    tx: &mut Tx,
    organization: &OrganizationModelResponse,
    now: i64,
) -> Result<()> {
    tx.run(
        UPDATE,
        args![&organization.organization_id, now, Arg::json(organization)],
    )
    .await?;
    Ok(())
}
