//! Lists of objects: the database leaves out what its columns rule out, and the filter looks at the rest.

use std::collections::{BTreeMap, BTreeSet};

use loupe_engine::filter::Filter;
use loupe_wire::ObjectResponse;

use super::{
    shelving,
    store::{self, Marked, read_marked},
};
use crate::{
    args,
    db::Db,
    error::{ApiError, Result},
    list::{ListParams, Mark, Page, Sieve, Walk},
    v1::tasks::name_of,
};

crate::pieces!(
    "objects",
    "object_id",
    "object_id, status, size_bytes, data, error, created_at",
    "namespace_id = $1 AND bucket_id = $2 AND ($6 = '' OR $6 LIKE '%|' || status || '|%') AND ($7 = '' OR SUBSTR(key_prefix, 1, LENGTH($7)) = $7)"
);

crate::sql! {
    // A hundred ids at once: fewer are filled up with the last one.
    // The owner is no key here: SQLite would look at all that the owner has, where the ids lead to each.
    const NAMED = "SELECT object_id, status, size_bytes, data, error, created_at FROM objects WHERE namespace_id || '' = $1 AND bucket_id || '' = $2 AND object_id IN ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69, $70, $71, $72, $73, $74, $75, $76, $77, $78, $79, $80, $81, $82, $83, $84, $85, $86, $87, $88, $89, $90, $91, $92, $93, $94, $95, $96, $97, $98, $99, $100, $101, $102)";
}

/// How many objects there are of each status.
pub type Statuses = BTreeMap<String, i64>;

/// One page of the objects that match, with a search, filters or a sort; with a total, the statuses of all that match, too.
pub async fn page(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    params: &ListParams,
) -> Result<(Page<ObjectResponse>, Statuses)> {
    let walk = Walk::of(params);
    if let Some(ids) = walk.texts("object_id") {
        let named = named(db, namespace_id, bucket_id, ids).await?;
        return page_of(named, params);
    }
    let mut sieve = Sieve::along(params, &walk)?;
    let mut statuses = Statuses::new();
    while let Some(mark) = sieve.goes_on() {
        let rows = piece(db, namespace_id, bucket_id, &walk, mark).await?;
        take(&mut sieve, rows, &mut statuses)?;
    }
    Ok((sieve.page(), statuses))
}

/// The same of objects that are named: all of them are read, so a page is found by its number.
fn page_of(
    mut named: Vec<(ObjectResponse, Mark)>,
    params: &ListParams,
) -> Result<(Page<ObjectResponse>, Statuses)> {
    let params = ListParams {
        behind: None,
        ..params.clone()
    };
    let walk = Walk::of(&params);
    let mut sieve = Sieve::along(&params, &walk)?;
    let mut statuses = Statuses::new();
    named.sort_by(|(_, one), (_, other)| walk.compare(one, other));
    take(&mut sieve, named, &mut statuses)?;
    Ok((sieve.page(), statuses))
}

/// Looks at rows, and counts those that match.
fn take(
    sieve: &mut Sieve<'_, ObjectResponse>,
    rows: Vec<(ObjectResponse, Mark)>,
    statuses: &mut Statuses,
) -> Result<()> {
    if rows.is_empty() {
        return sieve.take(rows);
    }
    for row in rows {
        let (status, before) = (row.0.status, sieve.found());
        sieve.take(vec![row])?;
        if sieve.found() > before {
            *statuses.entry(name_of(status)).or_default() += 1;
        }
    }
    Ok(())
}

/// Up to 1,000 objects behind this mark; each with its own.
pub async fn piece(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    walk: &Walk<'_>,
    (at, id): Mark,
) -> Result<Vec<(ObjectResponse, Mark)>> {
    let args = args![
        namespace_id,
        bucket_id,
        at,
        id,
        walk.end(),
        walk.words("status"),
        walk.beginning("key_prefix")
    ];
    let rows: Vec<Marked> = db.all(walk.sql(NEWEST, OLDEST), args).await?;
    Ok(rows.into_iter().map(read_marked).collect())
}

/// Those of these objects that the bucket has.
async fn named(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    ids: BTreeSet<&str>,
) -> Result<Vec<(ObjectResponse, Mark)>> {
    let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    let mut found = Vec::new();
    for some in ids.chunks(store::LOOKED_UP) {
        let mut args = args![namespace_id, bucket_id];
        args.extend(store::ids(some));
        let rows: Vec<Marked> = db.all(NAMED, args).await?;
        found.extend(rows.into_iter().map(read_marked));
    }
    Ok(found)
}

/// Ids of the objects that match, oldest first, at most `limit`. The bucket is read in pieces, never whole.
pub async fn matching(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<String>> {
    let walk = Walk::oldest(Some(filter));
    let (mut found, mut mark) = (Vec::new(), walk.start());
    loop {
        let rows = piece(db, namespace_id, bucket_id, &walk, mark).await?;
        let Some((_, last)) = rows.last() else {
            return Ok(found);
        };
        mark = last.clone();
        for (object, (_, object_id)) in rows {
            if shelving::is_shelved(object.status) {
                continue;
            }
            let value = serde_json::to_value(object).map_err(ApiError::internal)?;
            if filter.matches(&value) {
                found.push(object_id);
            }
            if found.len() == limit {
                return Ok(found);
            }
        }
    }
}
