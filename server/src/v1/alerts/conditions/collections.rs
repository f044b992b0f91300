//! Conditions of collections.

use std::collections::HashMap;

use loupe_engine::store::Reach;
use loupe_wire::reading;
use serde_json::json;

use super::{Look, written};
use crate::{
    args,
    error::Result,
    v1::{collections::COLLECTIONS, triggers::condition},
};

crate::sql! {
    // The end of each collection's part of an index, instead of all that was ever processed.
    const LAST_PROCESSED = "SELECT c.id, CAST(COALESCE((SELECT MAX(p.updated_at) FROM processed p WHERE p.collection_id = c.id), c.created_at) AS BIGINT) FROM collections c WHERE c.owner = $1";
}

/// A collection that the condition looks at.
pub(super) struct Meant {
    pub(super) id: String,
    name: String,
    created_at: i64,
    pub(super) reach: Reach,
}

async fn meant(look: &Look<'_>, namespace_id: &str) -> Result<Vec<Meant>> {
    let records = COLLECTIONS.all(look.app.db(), namespace_id).await?;
    let meant = records
        .into_iter()
        .filter(|record| look.is_meant("collection_id", &record.id))
        .map(|record| Meant {
            reach: Reach {
                namespace_id: namespace_id.to_owned(),
                collection_ids: vec![record.id.clone()],
                principal: None,
            },
            id: record.id,
            name: record.name,
            created_at: record.created_at,
        });
    Ok(meant.collect())
}

pub(super) async fn empty(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    for one in meant(look, namespace_id).await? {
        if look.app.store().count(&one.reach, None).await? == 0 {
            look.find(one.id, format!("collection {} is empty", one.name));
        }
    }
    Ok(())
}

/// Nothing new came into it for `stall_minutes`, a day if it is not said, neither by a batch nor through the API.
pub(super) async fn stale(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let rows: Vec<(String, i64)> = look
        .app
        .db()
        .all(LAST_PROCESSED, args![namespace_id])
        .await?;
    let last: HashMap<String, i64> = rows.into_iter().collect();
    let since = look.stalled(1440.0);
    let known = meant(look, namespace_id).await?.into_iter().map(|one| {
        let at = last.get(&one.id).copied().unwrap_or(one.created_at);
        (one, at)
    });
    let quiet: Vec<(Meant, i64)> = known.filter(|(_, at)| *at < since).collect();
    if quiet.is_empty() {
        return Ok(());
    }
    for (one, at) in written::since(look, namespace_id, since, quiet).await? {
        if at < since {
            let text = format!(
                "nothing new came into collection {} since {}",
                one.name,
                crate::clock::time(at).format("%Y-%m-%d %H:%M UTC")
            );
            look.find(one.id, text);
        }
    }
    Ok(())
}

/// How far the mean vector moved since the look that found it where it was then. What moved far is the next one's measure.
pub(super) async fn drift(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let most = look.number("drift_threshold", 0.15);
    for one in meant(look, namespace_id).await? {
        let (index, mean) = condition::mean(look.app, &one.reach).await?;
        if mean.is_empty() {
            continue;
        }
        let was = look
            .baseline
            .get(&one.id)
            .filter(|was| was["index"] == json!(index))
            .and_then(|was| reading::from_value::<Vec<f64>>(&was["mean"]).ok())
            .filter(|was| was.len() == mean.len());
        let moved = was.map(|was| condition::cosine_distance(&was, &mean));
        if moved.is_none_or(|moved| moved >= most) {
            let measure = json!({ "index": index, "mean": mean });
            look.baseline.insert(one.id.clone(), measure);
        }
        if let Some(moved) = moved.filter(|moved| *moved >= most) {
            let text = format!(
                "the documents of collection {} drifted by {moved:.3}",
                one.name
            );
            look.find(one.id, text);
        }
    }
    Ok(())
}
