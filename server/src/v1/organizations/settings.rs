//! What an organization has set beside what it is.

use std::collections::BTreeMap;

use loupe_wire::RateLimitOverrides;
use serde::{Deserialize, Serialize};

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::Result,
    v1::{billing::Spending, notifications::Preferences},
};

crate::sql! {
    const FIND = "SELECT settings FROM organizations WHERE org_id = $1";
    // Of every organization: budgets are looked after by one leader.
    const ALL = "SELECT org_id, settings FROM organizations ORDER BY org_id";
    const HOLD = "UPDATE organizations SET updated_at = updated_at WHERE org_id = $1";
    const UPDATE = "UPDATE organizations SET updated_at = $2, settings = $3 WHERE org_id = $1";
}

/// Settings; what was never set is as at first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Whether the audit log is told of reads.
    pub audits_reads: bool,
    /// Limits by kind of operation, as far as the organization has set them.
    pub rates: RateLimitOverrides,
    /// Whether they are kept in the organization itself, as they once were.
    pub sets_rates: bool,
    pub notifications: Preferences,
    pub spending: Spending,
    /// The part of each quota that was told of, in percent, by what it is kept of.
    pub quotas: BTreeMap<String, i64>,
}

type Row = (Json<Settings>,);

/// # Errors
/// The database does not answer.
pub async fn find(db: &Db, org_id: &str) -> Result<Settings> {
    let row: Option<Row> = db.one(FIND, args![org_id]).await?;
    Ok(row.map(|(settings,)| settings.0).unwrap_or_default())
}

/// # Errors
/// The database does not answer.
pub async fn find_in(tx: &mut Tx, org_id: &str) -> Result<Settings> {
    let row: Option<Row> = tx.one(FIND, args![org_id]).await?;
    Ok(row.map(|(settings,)| settings.0).unwrap_or_default())
}

/// As [`find_in`]; nobody else changes them until the transaction ends.
///
/// # Errors
/// The database does not answer.
pub async fn hold(tx: &mut Tx, org_id: &str) -> Result<Settings> {
    tx.run(HOLD, args![org_id]).await?;
    find_in(tx, org_id).await
}

/// Of every organization, by its id.
///
/// # Errors
/// The database does not answer.
pub async fn all(db: &Db) -> Result<Vec<(String, Settings)>> {
    let rows: Vec<(String, Json<Settings>)> = db.all(ALL, vec![]).await?;
    let settings = |(id, settings): (String, Json<Settings>)| (id, settings.0);
    Ok(rows.into_iter().map(settings).collect())
}

/// # Errors
/// The database does not answer.
pub async fn update(tx: &mut Tx, org_id: &str, settings: &Settings, now: i64) -> Result<()> {
    tx.run(UPDATE, args![org_id, now, Arg::json(settings)])
        .await?;
    Ok(())
}
