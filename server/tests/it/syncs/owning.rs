//! Whose objects are whose: an object goes with the file that brought it, and with nothing else.

use super::*;

/// A bucket with a unique key that every file of a sync has.
fn unique() -> Value {
    json!({"unique_key": {"fields": ["kind"]}, "bucket_schema": {"properties": {"letter": {"type": "text"}, "kind": {"type": "string"}}}})
}

fn constant(value: &str) -> Value {
    json!({"mappings": {"kind": {"target_type": "field", "source": {"type": "constant", "value": value}}}})
}

fn id(object: &Value) -> String {
    object["object_id"].as_str().unwrap().to_owned()
}

impl Place {
    /// Waits until the objects have these names.
    async fn named(&self, server: &Server, names: &[&str]) -> Vec<Value> {
        let began = Instant::now();
        while self.names(server).await != names {
            let found = self.names(server).await;
            assert!(
                began.elapsed() < Duration::from_secs(180),
                "{found:?}, not {names:?}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.objects(server).await
    }

    async fn read_again(&self, server: &Server, sync: &str) -> Value {
        let path = format!("{sync}/trigger?full_sync=true");
        self.call(server, "POST", &path, Value::Null).await;
        self.still(server, sync).await
    }
}

both! {
    async fn a_file_that_only_looks_new_keeps_its_object(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}, "kind": {"type": "string"}}})).await;
        place.put("in/a.txt", "dear all");
        place.put("in/b.txt", "dear none");
        let sync = place.follow(&server, json!({"source_path": "s3://media/in", "skip_batch_submission": true})).await;
        place.still(&server, &sync).await;
        let before: Vec<String> = place.objects(&server).await.iter().map(id).collect();
        assert_eq!(before.len(), 2);
        // The same bytes with other ETags, and all of them once more.
        place.put(LOOKS, "anew");
        let looked = place.look(&server, &sync).await;
        assert_eq!(looked["stats"]["last_run_objects_synced"], 2, "{looked:#}");
        place.read_again(&server, &sync).await;
        let after: Vec<String> = place.objects(&server).await.iter().map(id).collect();
        assert_eq!(after, before);
        // What the mapping says by now arrives with a full look.
        place.call(&server, "PATCH", &sync, json!({"schema_mapping": constant("letter")})).await;
        assert_eq!(place.look(&server, &sync).await["stats"]["last_run_objects_synced"], 0);
        place.read_again(&server, &sync).await;
        let mapped = place.named(&server, &["a.txt", "b.txt"]).await;
        assert!(mapped.iter().all(|one| one["kind"] == "letter"), "{mapped:#?}");
        // They are the files' own still.
        place.take("in/a.txt");
        place.look(&server, &sync).await;
        assert_eq!(place.names(&server).await, ["b.txt"]);
    }

    async fn an_object_that_was_updated_survives_a_full_look(server) {
        let place = place_with(&server, unique()).await;
        place.put("in/a.txt", "dear all");
        let sync = place.follow(&server, json!({"source_path": "s3://media/in", "skip_batch_submission": true, "schema_mapping": constant("letter")})).await;
        place.still(&server, &sync).await;
        let first = id(&place.objects(&server).await[0]);
        place.put("in/a.txt", "dear somebody");
        place.look(&server, &sync).await;
        place.read_again(&server, &sync).await;
        place.look(&server, &sync).await;
        let objects = place.objects(&server).await;
        assert_eq!((objects.len(), id(&objects[0])), (1, first));
        assert_eq!(objects[0]["blobs"][0]["details"]["size_bytes"], 13);
        place.take("in/a.txt");
        place.look(&server, &sync).await;
        assert_eq!(place.names(&server).await, [""; 0]);
    }

    async fn a_file_whose_content_was_in_anothers_object_gets_its_own_when_that_goes(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}}})).await;
        place.put("in/a.txt", "dear all");
        place.put("in/z.txt", "dear all");
        let sync = place.follow(&server, json!({"source_path": "s3://media/in", "skip_batch_submission": true})).await;
        place.still(&server, &sync).await;
        assert_eq!(place.names(&server).await, ["a.txt"]);
        // Of twins, the one with the object goes; the look after it is not waited for.
        place.take("in/a.txt");
        place.look(&server, &sync).await;
        place.named(&server, &["z.txt"]).await;
        // A file gets a name before its old one.
        place.still(&server, &sync).await;
        place.put("in/b.txt", "dear all");
        place.take("in/z.txt");
        place.look(&server, &sync).await;
        place.named(&server, &["b.txt"]).await;
        // An object of somebody else with this content, and without it.
        place.still(&server, &sync).await;
        place.put("in/c.txt", "dear none");
        let objects = format!("/v1/buckets/{}/objects", place.bucket);
        let own = json!({"blobs": [{"property": "letter", "type": "text", "data": "dear none"}]});
        let own = place.call(&server, "POST", &objects, own).await;
        place.look(&server, &sync).await;
        assert_eq!(place.objects(&server).await.len(), 2);
        let gone = server.call_in(&place.namespace, "DELETE", &format!("{objects}/{}", id(&own)), Value::Null).await;
        assert_eq!(gone.status, 204);
        place.look(&server, &sync).await;
        assert_eq!(place.names(&server).await, ["b.txt", "c.txt"]);
    }

    async fn an_object_that_a_file_goes_into_is_not_the_files_to_remove(server) {
        let place = place_with(&server, unique()).await;
        let objects = format!("/v1/buckets/{}/objects", place.bucket);
        let own = place.call(&server, "POST", &objects, json!({"kind": "letter"})).await;
        place.put("in/a.txt", "dear all");
        let sync = place.follow(&server, json!({"source_path": "s3://media/in", "skip_batch_submission": true, "schema_mapping": constant("letter")})).await;
        place.still(&server, &sync).await;
        let taken = place.objects(&server).await;
        assert_eq!((taken.len(), id(&taken[0])), (1, id(&own)));
        assert_eq!(place.names(&server).await, ["a.txt"]);
        place.put("in/a.txt", "dear somebody");
        place.look(&server, &sync).await;
        place.take("in/a.txt");
        let looked = place.look(&server, &sync).await;
        assert_eq!(looked["status"], "COMPLETED", "{looked:#}");
        assert_eq!(id(&place.objects(&server).await[0]), id(&own));
    }

    async fn many_files_that_are_gone_go_a_hundred_at_a_time(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}}})).await;
        for number in 0..130 {
            place.put(&format!("in/{number:03}.txt"), &format!("dear {number}"));
        }
        let sync = place.follow(&server, json!({"source_path": "s3://media/in", "skip_batch_submission": true, "batch_size": 100})).await;
        place.still(&server, &sync).await;
        place.files.lock().unwrap().retain(|key, _| key == "in/129.txt");
        let looked = place.look(&server, &sync).await;
        assert_eq!(looked["status"], "COMPLETED", "{looked:#}");
        assert_eq!(place.names(&server).await, ["129.txt"]);
        let steps = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE namespace_id = $1 AND kind = 'remove_objects'";
        let steps = server.app.db().number(steps, loupe_server::args![&place.namespace]).await;
        assert_eq!(steps.unwrap(), 2);
    }

    async fn a_sync_processes_nothing_that_its_maker_may_not(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}}})).await;
        let key = json!({"name": "writer", "permissions": ["delete"], "scopes": [
            {"resource_type": "bucket", "resource_id": place.bucket, "operations": ["write_data", "read_data"]},
            {"resource_type": "storage_connection", "resource_id": place.connection},
        ]});
        let key = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", key).await.ok();
        let call = async |method: &str, path: &str, body: Value| {
            let request = server.request(method, path).bearer_auth(key["key"].as_str().unwrap());
            Server::send(request.header("x-namespace", &place.namespace).json(&body)).await
        };
        let mut body = json!({"source_path": "s3://media/in", "connection_id": place.connection});
        call("POST", &place.path(), body.clone()).await.error(403, "ForbiddenError");
        let sync = place.follow(&server, json!({"source_path": "s3://media/in"})).await;
        place.still(&server, &sync).await;
        for (method, path, body) in [
            ("PATCH", sync.clone(), json!({"polling_interval_seconds": 60})), ("POST", format!("{sync}/trigger"), json!({})),
            ("POST", format!("{sync}/resume"), json!({})),
        ] {
            call(method, &path, body).await.error(403, "ForbiddenError");
        }
        call("POST", &format!("{sync}/pause"), json!({})).await.ok();
        body["skip_batch_submission"] = true.into();
        let made = call("POST", &place.path(), body).await.ok();
        let sync = format!("{}/{}", place.path(), made["sync_config_id"].as_str().unwrap());
        call("PATCH", &sync, json!({"description": "mine"})).await.ok();
        call("PATCH", &sync, json!({"skip_batch_submission": false})).await.error(403, "ForbiddenError");
    }
}
