//! Keys and people that are changed beside each other: no change is undone by another one that began before it ended. A test
//! goes as many rounds as it takes for two requests to meet.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server},
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";
const ROUNDS: usize = 15;

fn secret(key: &Value) -> &str {
    key["key"].as_str().unwrap()
}

async fn me(server: &Server, secret: &str) -> Answer {
    Server::send(server.request("GET", "/v1/me").bearer_auth(secret)).await
}

/// An organization-wide key of the owner.
async fn make(server: &Server, name: &str) -> Value {
    server
        .call("POST", KEYS, json!({ "name": name }))
        .await
        .ok()
}

both! {
    async fn a_key_stays_rotated_beside_a_change(server) {
        let mut held = make(&server, "robot").await;
        let path = format!("{KEYS}/robot");
        for round in 1..=ROUNDS {
            let rotate = format!("{path}/rotate");
            let (rotated, changed) = tokio::join!(
                server.call("POST", &rotate, Value::Null),
                server.call("PATCH", &path, json!({"rate_limit_override": 1_000 + round})),
            );
            let rotated = rotated.ok();
            changed.ok();
            me(&server, secret(&held)).await.error(401, "AuthenticationError");
            let told = me(&server, secret(&rotated)).await.ok();
            assert_eq!(told["rate_limits"]["requests_per_minute"], 1_000 + round, "round {round}");
            held = rotated;
        }
    }

    async fn a_key_stays_narrowed_and_renamed_beside_each_other(server) {
        let made = make(&server, "wide").await;
        let path = format!("{KEYS}/{}", made["key_id"].as_str().unwrap());
        for round in 1..=ROUNDS {
            let level = if round % 2 == 0 { "read" } else { "write" };
            let (narrowed, noted) = tokio::join!(
                server.call("PATCH", &path, json!({"permissions": [level]})),
                server.call("PATCH", &path, json!({"note": format!("round {round}")})),
            );
            narrowed.ok();
            noted.ok();
            let list = server.call("GET", KEYS, Value::Null).await.ok();
            let kept = list["results"].as_array().unwrap().iter().find(|key| key["key_id"] == made["key_id"]).unwrap();
            assert_eq!((&kept["permissions"], &kept["note"]), (&json!([level]), &json!(format!("round {round}"))));
        }
    }

    async fn a_key_stays_revoked_beside_a_change(server) {
        for round in 0..ROUNDS {
            let name = format!("key {round}");
            let made = make(&server, &name).await;
            let path = format!("{KEYS}/{name}");
            let end = format!("{path}?force=true");
            let (revoked, changed) = tokio::join!(
                server.call("DELETE", &end, Value::Null),
                server.call("PATCH", &path, json!({"note": "still here"})),
            );
            revoked.ok();
            assert!(matches!(changed.status, 200 | 409), "{:#}", changed.body);
            me(&server, secret(&made)).await.error(401, "AuthenticationError");
        }
    }

    async fn a_suspended_user_gets_no_key_on_the_way(server) {
        for round in 0..ROUNDS {
            let email = format!("ada{round}@example.org");
            let user = format!("/v1/organizations/users/{email}");
            let keys = format!("{user}/api-keys");
            server.call("POST", "/v1/organizations/users", json!({"email": email, "user_name": "Ada"})).await.ok();
            let (suspended, named, made) = tokio::join!(
                server.call("PATCH", &user, json!({"status": "suspended"})),
                server.call("PATCH", &user, json!({"user_name": "Ada L."})),
                server.call("POST", &keys, json!({"name": "on the way"})),
            );
            suspended.ok();
            named.ok();
            if made.status == 200 {
                me(&server, secret(&made.body)).await.error(401, "AuthenticationError");
            } else {
                assert_eq!(made.error(409, "ConflictError")["error"]["code"], "user_suspended");
            }
            let kept = server.call("GET", &user, Value::Null).await.ok();
            assert_eq!((&kept["status"], &kept["user_name"]), (&json!("suspended"), &json!("Ada L.")));
        }
    }

    async fn keys_of_a_retriever_end_with_its_namespace(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "closing").await;
        let (other, beside) = crate::harness::retriever(&server, "staying").await;
        let keys = |retriever: &str| format!("/v1/retrievers/{retriever}/api-keys");
        let made = server.call_in(&namespace, "POST", &keys(&retriever), json!({"name": "browser"})).await.ok();
        let kept = server.call_in(&other, "POST", &keys(&beside), json!({"name": "neighbour"})).await.ok();
        let held = async || {
            let quotas = server.call("GET", "/v1/organizations/quotas", Value::Null).await.ok();
            let quotas = quotas["quotas"].as_array().unwrap();
            quotas.iter().find(|one| one["resource"] == "api_keys").unwrap()["current"].as_i64().unwrap()
        };
        for key in [&made, &kept] {
            me(&server, secret(key)).await.ok();
        }
        assert_eq!(held().await, 2);
        server.call("DELETE", &format!("/v1/namespaces/{namespace}"), Value::Null).await.ok();
        assert_eq!(me(&server, secret(&made)).await.error(401, "AuthenticationError")["error"]["code"], "api_key_revoked");
        me(&server, secret(&kept)).await.ok();
        // Its place and its name are free again.
        assert_eq!(held().await, 1);
        make(&server, "browser").await;
        let id = made["key_id"].as_str().unwrap();
        let told = server.call("GET", &format!("/v1/organizations/audit/logs?action=api_key_revoked&resource_id={id}"), Value::Null).await.ok();
        assert_eq!(told["total"], 1, "{told:#}");
        // Nor is one made for what is gone.
        server.call_in(&namespace, "POST", &keys(&retriever), json!({"name": "late"})).await.error(404, "NotFoundError");
    }
}
