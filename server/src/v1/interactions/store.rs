use loupe_wire::InteractionResponse;

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::Result,
};

crate::sql! {
    const INSERT = "INSERT INTO interactions (interaction_id, namespace_id, retriever_id, execution_id, feature_id, user_id, session_id, public_id, kinds, fingerprint, occurred_at, created_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (namespace_id, fingerprint) DO NOTHING";
    const SAME = "SELECT data FROM interactions WHERE namespace_id = $1 AND fingerprint = $2";
    const FIND = "SELECT data FROM interactions WHERE namespace_id = $1 AND interaction_id = $2";
    const LIST = "SELECT data FROM interactions WHERE namespace_id = $1 AND ($2 = '' OR retriever_id = $2) AND ($3 = '' OR execution_id = $3) AND ($4 = '' OR feature_id = $4) AND ($5 = '' OR user_id = $5) AND ($6 = '' OR session_id = $6) AND (CAST($7 AS BIGINT) = 0 OR (kinds & CAST($7 AS BIGINT)) <> 0) ORDER BY created_at DESC, interaction_id LIMIT $8 OFFSET $9";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM interactions WHERE namespace_id = $1 AND ($2 = '' OR retriever_id = $2) AND ($3 = '' OR execution_id = $3) AND ($4 = '' OR feature_id = $4) AND ($5 = '' OR user_id = $5) AND ($6 = '' OR session_id = $6) AND (CAST($7 AS BIGINT) = 0 OR (kinds & CAST($7 AS BIGINT)) <> 0)";
    const DELETE = "DELETE FROM interactions WHERE namespace_id = $1 AND interaction_id = $2";
    const SWEEP = "DELETE FROM interactions WHERE created_at < $1";
}

/// One interaction on its way into the table.
pub(super) struct Entry {
    pub interaction: InteractionResponse,
    pub public_id: String,
    pub kinds: i64,
    pub fingerprint: String,
    pub occurred_at: i64,
}

/// What a list is narrowed to; empty members match everything.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub retriever_id: String,
    pub execution_id: String,
    pub feature_id: String,
    pub user_id: String,
    pub session_id: String,
    /// Bits of the kinds that are asked for; 0 is all of them.
    pub kinds: i64,
}

impl Wanted {
    fn args(&self, namespace_id: &str) -> Vec<Arg> {
        args![
            namespace_id,
            &self.retriever_id,
            &self.execution_id,
            &self.feature_id,
            &self.user_id,
            &self.session_id,
            self.kinds
        ]
    }
}

type Row = (Json<InteractionResponse>,);

/// Keeps it; what was told before is answered as it was then.
pub(super) async fn insert(
    tx: &mut Tx,
    namespace_id: &str,
    entry: Entry,
    now: i64,
) -> Result<InteractionResponse> {
    let one = &entry.interaction;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let row = args![
        text(&one.interaction_id),
        namespace_id,
        text(&one.retriever_id),
        text(&one.execution_id),
        &one.feature_id,
        text(&one.user_id),
        text(&one.session_id),
        &entry.public_id,
        entry.kinds,
        &entry.fingerprint,
        entry.occurred_at,
        now,
        Arg::json(one)
    ];
    if tx.run(INSERT, row).await? > 0 {
        return Ok(entry.interaction);
    }
    let same: Option<Row> = tx
        .one(SAME, args![namespace_id, &entry.fingerprint])
        .await?;
    let mut interaction = same.map_or(entry.interaction, |(data,)| data.0);
    interaction.deduplicated = true;
    Ok(interaction)
}

pub(super) async fn find(
    db: &Db,
    namespace_id: &str,
    id: &str,
) -> Result<Option<InteractionResponse>> {
    let row: Option<Row> = db.one(FIND, args![namespace_id, id]).await?;
    Ok(row.map(|(data,)| data.0))
}

/// Newest first.
pub async fn list(
    db: &Db,
    namespace_id: &str,
    wanted: &Wanted,
    limit: i64,
    offset: i64,
) -> Result<Vec<InteractionResponse>> {
    let mut page = wanted.args(namespace_id);
    page.extend(args![limit, offset]);
    let rows: Vec<Row> = db.all(LIST, page).await?;
    Ok(rows.into_iter().map(|(data,)| data.0).collect())
}

pub(super) async fn count(db: &Db, namespace_id: &str, wanted: &Wanted) -> Result<i64> {
    db.number(COUNT, wanted.args(namespace_id)).await
}

pub(super) async fn delete(tx: &mut Tx, namespace_id: &str, id: &str) -> Result<bool> {
    Ok(tx.run(DELETE, args![namespace_id, id]).await? > 0)
}

/// Forgets what is older than this.
pub(super) async fn sweep(tx: &mut Tx, before: i64) -> Result<u64> {
    tx.run(SWEEP, args![before]).await
}
