use loupe_wire::InteractionResponse;

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::Result,
    list::{Mark, Walk, Window},
};

crate::sql! {
    const INSERT = "INSERT INTO interactions (interaction_id, namespace_id, retriever_id, execution_id, feature_id, user_id, session_id, public_id, kinds, fingerprint, occurred_at, created_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (namespace_id, fingerprint) DO NOTHING";
    const SAME = "SELECT data FROM interactions WHERE namespace_id = $1 AND fingerprint = $2";
    const FIND = "SELECT data FROM interactions WHERE namespace_id = $1 AND interaction_id = $2";
    const LIST = "SELECT data, created_at, interaction_id FROM interactions WHERE namespace_id = $1 AND ($2 = '' OR retriever_id = $2) AND ($3 = '' OR execution_id = $3) AND ($4 = '' OR feature_id = $4) AND ($5 = '' OR user_id = $5) AND ($6 = '' OR session_id = $6) AND (CAST($7 AS BIGINT) = 0 OR (kinds & CAST($7 AS BIGINT)) <> 0) AND created_at <= $10 AND (created_at < $10 OR interaction_id > $11) ORDER BY created_at DESC, interaction_id LIMIT $8 OFFSET $9";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM interactions WHERE namespace_id = $1 AND ($2 = '' OR retriever_id = $2) AND ($3 = '' OR execution_id = $3) AND ($4 = '' OR feature_id = $4) AND ($5 = '' OR user_id = $5) AND ($6 = '' OR session_id = $6) AND (CAST($7 AS BIGINT) = 0 OR (kinds & CAST($7 AS BIGINT)) <> 0)";
    const DELETE = "DELETE FROM interactions WHERE namespace_id = $1 AND interaction_id = $2";
    const SWEEP = "DELETE FROM interactions WHERE created_at < $1";
}

crate::pieces!(
    "interactions",
    "interaction_id",
    "data, created_at, interaction_id",
    "namespace_id = $1 AND ($2 = '' OR retriever_id = $2) AND ($6 = '' OR execution_id = $6) AND ($7 = '' OR feature_id = $7) AND ($8 = '' OR user_id = $8) AND ($9 = '' OR session_id = $9) AND (CAST($10 AS BIGINT) = 0 OR (kinds & CAST($10 AS BIGINT)) <> 0)"
);

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
    /// Asks the database, too, for what a filter has every interaction be; the filter itself is asked of what comes.
    pub(super) fn narrow(&mut self, walk: &Walk<'_>) {
        for (field, member) in [
            ("retriever_id", &mut self.retriever_id),
            ("execution_id", &mut self.execution_id),
            ("feature_id", &mut self.feature_id),
            ("user_id", &mut self.user_id),
            ("session_id", &mut self.session_id),
        ] {
            let said = walk.texts(field).unwrap_or_default();
            if let (true, 1, Some(one)) = (member.is_empty(), said.len(), said.first()) {
                (*one).clone_into(member);
            }
        }
    }

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
    window: Window,
) -> Result<Vec<(InteractionResponse, Mark)>> {
    let mut page = wanted.args(namespace_id);
    page.extend(args![window.limit, window.offset, window.at, window.id]);
    let rows: Vec<(Json<InteractionResponse>, i64, String)> = db.all(LIST, page).await?;
    let marked = rows.into_iter().map(|(data, at, id)| (data.0, (at, id)));
    Ok(marked.collect())
}

/// Up to 1,000 interactions behind this mark; each with its own.
pub(super) async fn piece(
    db: &Db,
    namespace_id: &str,
    wanted: &Wanted,
    walk: &Walk<'_>,
    (at, id): Mark,
) -> Result<Vec<(InteractionResponse, Mark)>> {
    let args = args![
        namespace_id,
        &wanted.retriever_id,
        at,
        id,
        walk.end(),
        &wanted.execution_id,
        &wanted.feature_id,
        &wanted.user_id,
        &wanted.session_id,
        wanted.kinds
    ];
    let rows: Vec<(Json<InteractionResponse>, i64, String)> =
        db.all(walk.sql(NEWEST, OLDEST), args).await?;
    let interaction = |(Json(data), at, id)| (data, (at, id));
    Ok(rows.into_iter().map(interaction).collect())
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
