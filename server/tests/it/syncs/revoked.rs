//! Storages that let nobody in any more, for a while.

use loupe_server::{args, db::Json};

use super::*;

/// As if so many looks had failed one after the other.
async fn have_failed(server: &Server, place: &Place, failures: i64) {
    let (find, set) = (
        "SELECT data FROM syncs WHERE namespace_id = $1",
        "UPDATE syncs SET data = $2 WHERE namespace_id = $1",
    );
    let namespace = place.namespace.clone();
    let written = server.app.db().write(move |tx| {
        Box::pin(async move {
            let found: Option<(Json<Value>,)> = tx.one(find, args![&namespace]).await?;
            let mut data = found.unwrap().0.0;
            data["consecutive_failures"] = failures.into();
            let data = loupe_server::db::Arg::json(&data);
            tx.run(set, args![&namespace, data]).await
        })
    });
    written.await.unwrap();
}

both! {
    async fn credentials_that_are_revoked_are_told_of_and_cost_no_object(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}}})).await;
        place.put("in/a.txt", "dear all");
        server.app.clock().hold();
        let connection = async || {
            let path = format!("/v1/organizations/connections/{}", place.connection);
            server.call("GET", &path, Value::Null).await.ok()
        };
        assert_eq!(connection().await["last_used_at"], Value::Null);
        let sync = place.follow(&server, json!({"source_path": "s3://media/in", "skip_batch_submission": true})).await;
        place.still(&server, &sync).await;
        let used = connection().await;
        assert!(used["last_used_at"].is_string() && used["last_error"].is_null(), "{used:#}");
        // Fetching a file is a use, too.
        server.app.clock().advance(61);
        let objects = format!("/v1/buckets/{}/objects", place.bucket);
        let from = json!({"connection_id": place.connection});
        let object = json!({"blobs": [{"property": "letter", "type": "text", "data": "s3://media/in/a.txt", "metadata": from}]});
        place.call(&server, "POST", &objects, object).await;
        assert_ne!(connection().await["last_used_at"], used["last_used_at"]);

        place.put(REVOKED, "");
        have_failed(&server, &place, 8).await;
        let failed = place.look(&server, &sync).await;
        let why = failed["last_error"].as_str().unwrap();
        assert!(why.starts_with("the storage does not list its bucket for these credentials"), "{why}");
        assert_eq!((&failed["status"], &failed["paused"]), (&json!("FAILED"), &json!(false)), "{failed:#}");
        let told = connection().await;
        assert_eq!((&told["last_error"], &told["consecutive_failures"]), (&failed["last_error"], &json!(1)), "{told:#}");
        let jobs = place.call(&server, "POST", &format!("{sync}/jobs"), json!({})).await;
        assert_eq!((&jobs["results"][0]["status"], &jobs["results"][0]["error"]), (&json!("failed"), &failed["last_error"]), "{jobs:#}");
        // The tenth has the sync rest, and people are told once.
        for _ in 0..2 {
            let paused = place.look(&server, &sync).await;
            assert_eq!((&paused["paused"], &paused["next_sync_at"]), (&json!(true), &Value::Null), "{paused:#}");
        }
        let notices = server.call("POST", "/v1/notifications/list", json!({"priority": "high"})).await.ok();
        let notice = &notices["results"][0];
        assert_eq!((&notices["total"], &notice["title"]), (&json!(1), &json!("The sync of s3://media/in was paused")), "{notices:#}");
        assert!(notice["content"].as_str().unwrap().contains(why), "{notice:#}");
        assert_eq!(place.objects(&server).await.len(), 2);

        place.take(REVOKED);
        place.call(&server, "POST", &format!("{sync}/resume"), Value::Null).await;
        let begun = Instant::now();
        while connection().await["consecutive_failures"] != 0 {
            assert!(begun.elapsed() < Duration::from_secs(180), "nobody looks again");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let well = place.still(&server, &sync).await;
        assert_eq!((&well["status"], &well["last_error"]), (&json!("COMPLETED"), &Value::Null), "{well:#}");
        assert_eq!(connection().await["last_error"], Value::Null);
    }

    async fn a_connection_stays_while_syncs_look_through_it(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}}})).await;
        let connection = format!("/v1/organizations/connections/{}", place.connection);
        let sync = place.follow(&server, json!({"source_path": "s3://media/in"})).await;
        // One that rests would have nothing to be resumed with.
        place.call(&server, "POST", &format!("{sync}/pause"), Value::Null).await;
        let id = sync.rsplit('/').next().unwrap();
        let refused = server.call("DELETE", &connection, Value::Null).await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "connection_in_use", "{refused:#}");
        let named = json!([{"sync_config_id": id, "bucket_id": place.bucket, "namespace_id": place.namespace}]);
        assert_eq!(refused["error"]["details"]["syncs"], named, "{refused:#}");
        place.call(&server, "DELETE", &sync, Value::Null).await;
        server.call("DELETE", &connection, Value::Null).await.ok();
        let body = json!({"source_path": "s3://media/in", "connection_id": place.connection});
        server.call_in(&place.namespace, "POST", &place.path(), body).await.error(404, "NotFoundError");
    }
}
