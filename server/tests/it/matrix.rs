//! S-3: every operation of the description with every kind of key, its status read from one declared table. The table is
//! `matrix.txt`; `UPDATE_SNAPSHOTS=1` writes what the server answers, and the rules at the end of the test say what no
//! table may declare.

use std::collections::BTreeMap;

use loupe_server::auth::{
    rank,
    table::{Access, Row, TABLE},
};
use loupe_wire::Permission;
use serde_json::{Value, json};

use crate::{
    both,
    harness::{Server, other_organization},
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";
const KINDS: [&str; 16] = [
    "none",
    "garbage",
    "revoked",
    "expired",
    "read",
    "write",
    "delete",
    "admin",
    "usr",
    "ret",
    "prk",
    "origin",
    "scope",
    "namespace",
    "other",
    "no-plan",
];
/// Not sent with a key that may: the demo takes a minute, and what it does is tested elsewhere.
const SLOW: &str = "POST /v1/quickstart/demo";

struct Ring {
    namespace: String,
    keys: BTreeMap<&'static str, String>,
}

async fn mint(server: &Server, name: &str, body: Value) -> String {
    let mut body = body;
    body["name"] = format!("the {name} key").into();
    let made = server.call("POST", KEYS, body).await.ok();
    made["key"].as_str().unwrap().to_owned()
}

async fn ring(server: &Server) -> Ring {
    let (namespace, retriever) = crate::harness::retriever(server, "matrix").await;
    let mut keys = BTreeMap::from([
        ("garbage", "loupe_sk_garbage".to_owned()),
        // The keys that pages once had are never made, and open nothing.
        ("prk", format!("prk_{}", "0aB".repeat(12))),
    ]);
    let at = server.app.clock().now() + chrono::Duration::seconds(30);
    keys.insert(
        "expired",
        mint(
            server,
            "expired",
            json!({"permissions": ["admin"], "expires_at": at}),
        )
        .await,
    );
    server.app.clock().advance(31);
    for level in ["read", "write", "delete", "admin"] {
        keys.insert(
            level,
            mint(server, level, json!({"permissions": [level]})).await,
        );
    }
    let scopes = json!([{"resource_type": "bucket", "resource_id": "bkt_none"}]);
    for (name, body) in [
        ("revoked", json!({"permissions": ["admin"]})),
        (
            "usr",
            json!({"permissions": ["admin"], "principal_id": "user-7"}),
        ),
        (
            "origin",
            json!({"permissions": ["admin"], "allowed_origins": ["https://here.example"]}),
        ),
        ("scope", json!({"permissions": ["admin"], "scopes": scopes})),
    ] {
        keys.insert(name, mint(server, name, body).await);
    }
    server
        .call("DELETE", &format!("{KEYS}/the revoked key"), Value::Null)
        .await
        .ok();
    let path = format!("/v1/retrievers/{retriever}/api-keys");
    let made = server
        .call_in(&namespace, "POST", &path, json!({"name": "ret"}))
        .await
        .ok();
    keys.insert("ret", made["key"].as_str().unwrap().to_owned());
    keys.insert("other", other_organization(server).await.key);
    keys.insert("namespace", keys["admin"].clone());
    keys.insert("no-plan", keys["admin"].clone());
    Ring { namespace, keys }
}

/// The operation about things that are not there, with an empty body.
async fn status(server: &Server, ring: &Ring, operation: &str, kind: &str) -> u16 {
    let (method, path) = operation.split_once(' ').unwrap();
    let pieces = path.split('/').map(|piece| {
        if piece.starts_with('{') {
            "unknown"
        } else {
            piece
        }
    });
    let path = pieces.collect::<Vec<_>>().join("/");
    let namespace = if kind == "namespace" {
        "ns_unknown"
    } else {
        &ring.namespace
    };
    let mut request = server
        .request(method, &path)
        .header("x-namespace", namespace)
        .header("origin", "https://other.example");
    if let Some(key) = ring.keys.get(kind) {
        request = request.bearer_auth(key);
    }
    if method != "GET" {
        request = request.json(&json!({}));
    }
    Server::send(request).await.status
}

async fn set_plan(server: &Server, requires_plan: bool) {
    let row: Vec<(String, loupe_server::db::Json<Value>)> = server
        .app
        .db()
        .all(
            "SELECT org_id, data FROM organizations ORDER BY created_at",
            vec![],
        )
        .await
        .unwrap();
    let (org_id, loupe_server::db::Json(mut organization)) = row.into_iter().next().unwrap();
    organization["requires_plan"] = requires_plan.into();
    let organization: loupe_wire::OrganizationModelResponse =
        serde_json::from_value(organization).unwrap();
    server
        .app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let args = loupe_server::args![org_id, loupe_server::db::Arg::json(&organization)];
                tx.run("UPDATE organizations SET data = $2 WHERE org_id = $1", args)
                    .await
            })
        })
        .await
        .unwrap();
    server.app.limits.forget_tiers();
}

/// What holds for every operation, whatever a table declares.
fn check(row: &Row, cells: &BTreeMap<&str, u16>) {
    let name = row.operation;
    for (kind, status) in cells {
        assert!(*status < 500, "{name} with {kind}: {status}");
    }
    if row.access == Access::Public {
        assert!(
            cells.values().all(|status| *status == cells["none"]),
            "{name} is public"
        );
        return;
    }
    for kind in ["none", "garbage", "prk", "revoked", "expired"] {
        assert_eq!(cells[kind], 401, "{name} with {kind}");
    }
    assert_eq!(cells["origin"], 403, "{name} from another origin");
    let needed = match row.access {
        Access::Level(level) => level,
        _ => Permission::Read,
    };
    let admin = cells["admin"];
    for (kind, level) in [
        ("read", Permission::Read),
        ("write", Permission::Write),
        ("delete", Permission::Delete),
        ("admin", Permission::Admin),
    ] {
        let enough = rank(level) >= rank(needed);
        let expected = if enough { admin } else { 403 };
        assert_eq!(cells[kind], expected, "{name} with {kind}");
    }
    let ret = matches!(row.access, Access::AnyKey | Access::Execute);
    assert!(ret || cells["ret"] == 403, "{name} with a retriever's key");
    // What is paid for takes a plan, whatever is asked for.
    if loupe_server::limits::paid::is(name) {
        assert_eq!(cells["no-plan"], 403, "{name} without a plan");
    }
    let usr = row.end_users && needed != Permission::Admin;
    assert!(usr || cells["usr"] == 403, "{name} with an end user's key");
    // Another organization's key and a namespace that is not there are told nothing else than an unknown resource.
    assert!(
        matches!(cells["scope"], 200 | 400 | 403 | 404 | 422),
        "{name}"
    );
}

both! {
    async fn every_operation_answers_every_kind_of_key_as_declared(server) {
        let start = std::time::Instant::now();
        let ring = ring(&server).await;
        let mut cells: BTreeMap<&str, BTreeMap<&str, u16>> = BTreeMap::new();
        for kind in KINDS {
            if kind == "no-plan" {
                set_plan(&server, true).await;
            }
            for row in TABLE.iter().filter(|row| row.operation != SLOW) {
                let status = status(&server, &ring, row.operation, kind).await;
                cells.entry(row.operation).or_default().insert(kind, status);
            }
        }
        let mut now = format!("# operation | {}\n", KINDS.join(" "));
        for row in TABLE.iter().filter(|row| row.operation != SLOW) {
            let cells = &cells[row.operation];
            check(row, cells);
            let statuses: Vec<String> = KINDS.iter().map(|kind| cells[kind].to_string()).collect();
            now += &format!("{} | {}\n", row.operation, statuses.join(" "));
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/matrix.txt");
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(path, &now).unwrap();
        }
        let declared = std::fs::read_to_string(path).unwrap_or_default();
        let differences: Vec<(&str, &str)> = declared.lines().zip(now.lines()).filter(|(one, other)| one != other).collect();
        assert!(differences.is_empty() && declared.lines().count() == now.lines().count(), "declared, answered: {differences:#?}");
        println!("{} cells in {:?}", (TABLE.len() - 1) * KINDS.len(), start.elapsed());
        // A minute where nothing else runs; other tests share the processors.
        assert!(start.elapsed().as_secs() < 600);
    }
}
