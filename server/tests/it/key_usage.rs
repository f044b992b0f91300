//! What all keys of an organization were used for, in one answer.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server, other_organization},
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";
const ALL: &str = "/v1/organizations/usage/api-keys";

async fn by(server: &Server, key: &str, path: &str) -> Answer {
    Server::send(server.request("GET", path).bearer_auth(key)).await
}

fn ids(list: &Value) -> Vec<&str> {
    let results = list["results"].as_array().unwrap().iter();
    results.map(|one| one["key_id"].as_str().unwrap()).collect()
}

both! {
    async fn one_answer_tells_what_each_key_was_used_for(server) {
        let mut keys = Vec::new();
        for (name, times) in [("busy", 5), ("calm", 2), ("idle", 0)] {
            let made = server.call("POST", KEYS, json!({"name": name})).await.ok();
            let (id, secret) = (made["key_id"].as_str().unwrap().to_owned(), made["key"].as_str().unwrap().to_owned());
            for _ in 0..times {
                by(&server, &secret, "/v1/me").await.ok();
            }
            keys.push(id);
        }
        // The key of the story itself, too; another organization's, never.
        let other = other_organization(&server).await;
        by(&server, &other.key, "/v1/me").await.ok();
        let (start, end) = ("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z");
        let list = server.call("GET", &format!("{ALL}?start={start}&end={end}"), Value::Null).await.ok();
        let of = |id: &str| list["results"].as_array().unwrap().iter().find(|one| one["key_id"] == id);
        assert_eq!((of(&keys[0]).unwrap()["requests"].as_i64(), of(&keys[1]).unwrap()["requests"].as_i64()), (Some(5), Some(2)), "{list:#}");
        assert!(of(&keys[2]).is_none() && of("key_other").is_none(), "{list:#}");
        assert_eq!(list["total"], json!(ids(&list).len()));
        let counts: Vec<i64> = list["results"].as_array().unwrap().iter().map(|one| one["requests"].as_i64().unwrap()).collect();
        assert!(counts.is_sorted_by(|one, next| one >= next), "{counts:?}");
        // Each is what the key's own answer says.
        for id in &keys[..2] {
            let path = format!("/v1/organizations/api-keys/{id}/usage?start={start}&end={end}");
            assert_eq!(&server.call("GET", &path, Value::Null).await.ok(), of(id).unwrap());
        }
        let before = server.call("GET", &format!("{ALL}?start=2020-01-01&end=2020-02-01"), Value::Null).await.ok();
        assert_eq!(before, json!({"results": [], "total": 0}));
        let backwards = format!("{ALL}?start=2021-01-01&end=2020-01-01");
        server.call("GET", &backwards, Value::Null).await.invalid(&["query", "start"], "value_error");
        assert_eq!(ids(&by(&server, &other.key, ALL).await.ok()), ["key_other"]);
        // A key with scopes is told of the keys that they cover.
        let scopes = json!([{"resource_type": "api_key", "resource_id": keys[1]}]);
        let narrow = server.call("POST", KEYS, json!({"name": "narrow", "permissions": ["admin"], "scopes": scopes})).await.ok();
        assert_eq!(ids(&by(&server, narrow["key"].as_str().unwrap(), ALL).await.ok()), [keys[1].as_str()]);
    }
}
