//! An id of another organization answers exactly as an id that does not exist.

use serde_json::{Value, json};

use crate::both;

both! {
    async fn a_resource_of_another_namespace_does_not_exist(server) {
        let mine = server.namespace("mine").await;
        let other = server.namespace("other").await;
        let body = json!({"bucket_name": "secret", "bucket_schema": {"properties": {}}});
        let bucket = server.call_in(&other, "POST", "/v1/buckets", body).await.ok();
        let id = bucket["bucket_id"].as_str().unwrap();
        let foreign = server.call_in(&mine, "GET", &format!("/v1/buckets/{id}"), Value::Null).await;
        let unknown = server.call_in(&mine, "GET", "/v1/buckets/bkt_unknown", Value::Null).await;
        assert_eq!(foreign.status, 404);
        assert_eq!(foreign.body.to_string().replace(id, "ID"), unknown.body.to_string().replace("bkt_unknown", "ID"));
    }
}
