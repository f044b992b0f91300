//! What goes with its namespace and is told to the change feed one by one: alerts, triggers, taxonomies, clusters. Buckets and
//! retrievers have no events; documents and their annotations go with their collections.

use loupe_wire::Value;
use serde_json::json;

use crate::{
    args,
    db::{Json, Tx},
    error::Result,
    v1::namespaces::push_event,
};

crate::sql! {
    const TAXONOMIES = "DELETE FROM taxonomies WHERE owner = $1 RETURNING id, name";
    const CLUSTERS = "DELETE FROM clusters WHERE owner = $1 RETURNING id, name";
    const ALERTS = "DELETE FROM alerts WHERE owner = $1 RETURNING id, name";
    const TRIGGERS = "DELETE FROM triggers WHERE namespace_id = $1 RETURNING trigger_id, status, data";
}

/// The id of a trigger, its status, and what it is: nothing but told, so that one that cannot be read is in nobody's way.
type Trigger = (String, String, Json<Value>);

/// The status of triggers that were removed.
const DISABLED: &str = "disabled";

/// Removes them, and tells of each. All rows are held before the first event, which is a lock too.
pub(super) async fn remove(tx: &mut Tx, org_id: &str, namespace_id: &str, now: i64) -> Result<()> {
    let mut gone = Vec::new();
    for (sql, kind, member) in [
        (TAXONOMIES, "taxonomy.deleted", "taxonomy_id"),
        (CLUSTERS, "cluster.deleted", "cluster_id"),
        (ALERTS, "alert.deleted", "alert_id"),
    ] {
        let rows: Vec<(String, String)> = tx.all(sql, args![namespace_id]).await?;
        gone.extend(rows.into_iter().map(|(id, name)| {
            let mut payload = json!({ "name": name });
            payload[member] = id.into();
            (kind, payload)
        }));
    }
    let triggers: Vec<Trigger> = tx.all(TRIGGERS, args![namespace_id]).await?;
    // One that was removed before was told of then.
    let triggers = triggers.iter().filter(|(_, status, _)| status != DISABLED);
    gone.extend(triggers.map(told));
    for (kind, payload) in gone {
        push_event(tx, org_id, namespace_id, kind, payload, now).await?;
    }
    Ok(())
}

/// As triggers tell of themselves.
fn told((id, _, trigger): &Trigger) -> (&'static str, Value) {
    let payload = json!({
        "trigger_id": id, "name": trigger["name"], "action_type": trigger["action_type"],
        "trigger_type": trigger["trigger_type"], "status": DISABLED,
        "task_id": trigger["last_execution_task_id"],
    });
    ("trigger.deleted", payload)
}
