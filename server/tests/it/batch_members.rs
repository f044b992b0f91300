//! Members and query parameters of batches, buckets and collections that do what they say, or are refused.

use serde_json::{Value, json};

use crate::{
    batches::{ended, library, object, process},
    both,
    harness::{Database, Server},
    objects::{beside, held_up, release, run},
    webhooks::{Receiver, is_signed, secret},
};

/// A bucket of two notes and a collection over it; answers namespace and bucket.
async fn notes(server: &Server) -> (String, String) {
    let (namespace, bucket, _) = library(server, "passthrough_extractor", "text").await;
    for number in 0..2 {
        let text = json!({"property": "text", "type": "text", "data": format!("note {number}")});
        object(server, &namespace, &bucket, "note", text).await;
    }
    (namespace, bucket)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_added_while_a_batch_is_submitted_is_counted() {
    let server = Server::start(Database::Postgres).await;
    let (namespace, bucket) = notes(&server).await;
    let call = async |path: &str, body: Value| {
        let path = format!("/v1/buckets/{bucket}{path}");
        server.call_in(&namespace, "POST", &path, body).await.ok()
    };
    let listed = call("/objects/list", json!({})).await;
    let [one, other] = [0, 1].map(|number| listed["results"][number]["object_id"].clone());
    let draft = call("/batches", json!({"object_ids": [one]})).await;
    let path = format!("/batches/{}", draft["batch_id"].as_str().unwrap());
    let (mut waits, mut counts) = (beside(&server).await, beside(&server).await);
    run(&mut waits, "BEGIN").await;
    run(&mut waits, "SELECT 1 FROM batches FOR UPDATE").await;
    // Its objects are read before the other one is among them.
    let submitted = async {
        held_up(&mut counts, 1).await;
        call(&format!("{path}/submit"), json!({})).await
    };
    let objects = format!("{path}/objects");
    let both = futures::future::join(call(&objects, json!({"object_ids": [other]})), submitted);
    let ((_, task), ()) = futures::future::join(both, release(waits, 2)).await;
    assert_eq!(task["additional_data"]["object_count"], 2, "{task:#}");
}

both! {
    async fn a_batch_is_submitted_as_it_is_made_by_any_of_the_names(server) {
        let (namespace, bucket) = notes(&server).await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        let make = async |query: &str, body: Value| {
            let path = format!("{batches}{query}");
            server.call_in(&namespace, "POST", &path, body).await.ok()
        };
        for (query, body) in [
            ("?auto_submit=true", json!({})), ("?trigger_processing=true", json!({"auto_submit": false})), ("", json!({"trigger_processing": true})),
        ] {
            let batch = make(query, body).await;
            assert!(batch["task_id"].is_string(), "{query}: {batch:#}");
            let path = format!("{batches}/{}", batch["batch_id"].as_str().unwrap());
            assert_eq!(ended(&server, &namespace, &path).await["status"], "COMPLETED");
        }
        for (query, body) in [("?auto_submit=false", json!({"trigger_processing": null})), ("", json!({"auto_submit": false}))] {
            assert_eq!(make(query, body).await["status"], "DRAFT", "{query}");
        }
    }

    async fn a_forced_submission_processes_what_is_done(server) {
        let (namespace, bucket) = notes(&server).await;
        let batch = process(&server, &namespace, &bucket).await;
        let path = format!("/v1/buckets/{bucket}/batches/{}", batch["batch_id"].as_str().unwrap());
        let submit = async |query: &str| {
            server.call_in(&namespace, "POST", &format!("{path}/submit{query}"), json!({})).await.ok();
            ended(&server, &namespace, &path).await
        };
        // What is written is told.
        let written = async || {
            let events = server.events("collection.documents.written").await;
            events.iter().map(|event| event["payload"]["count"].as_i64().unwrap()).sum::<i64>()
        };
        assert_eq!(written().await, 2);
        let forced = submit("?force=true").await;
        assert_eq!((&forced["status"], &forced["effective_dedup_strategy"]), (&json!("COMPLETED"), &json!("force")), "{forced:#}");
        assert_eq!(written().await, 4);
        let plain = submit("?force=false").await;
        assert_eq!((&plain["status"], &plain["effective_dedup_strategy"]), (&json!("COMPLETED"), &json!("skip")), "{plain:#}");
        assert_eq!(written().await, 4);
    }

    async fn a_canceled_batch_keeps_the_reason_and_its_receiver_is_told(server) {
        let server = server.restart_with(|config| config.jobs.running_batches = 0).await;
        let (namespace, bucket) = notes(&server).await;
        let receiver = Receiver::start().await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        let batch = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let path = format!("{batches}/{}", batch["batch_id"].as_str().unwrap());
        let submit = |url: &str| json!({"webhook_url": url});
        server.call_in(&namespace, "POST", &format!("{path}/submit"), submit("http://127.0.0.1:1/")).await.invalid(&["body", "webhook_url"], "value_error");
        server.call_in(&namespace, "POST", &format!("{path}/submit"), submit(&receiver.url)).await.ok();
        let task = server.call_in(&namespace, "POST", &format!("{path}/cancel?reason=wrong%20files"), Value::Null).await.ok();
        assert_eq!(task["additional_data"]["cancellation_reason"], "wrong files");
        let shown = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&shown["status"], &shown["status_message"]), (&json!("CANCELED"), &json!("wrong files")));
        let told = server.events("collection.documents.batch_completed").await;
        assert_eq!((told.len(), &told[0]["payload"]["reason"]), (1, &json!("wrong files")));
        let received = receiver.wait(1).await;
        let (headers, body) = &received[0];
        let body: Value = serde_json::from_slice(body).unwrap();
        assert_eq!((&body["event_type"], &body["payload"]["status"], &body["payload"]["reason"]), (&json!("batch.ended"), &json!("CANCELED"), &json!("wrong files")));
        assert!(headers.contains_key("webhook-id") && !headers.contains_key("webhook-signature"), "nobody shares a secret: {headers:?}");
    }

    async fn the_receiver_of_a_submission_is_told_until_it_takes_it(server) {
        let (namespace, bucket) = notes(&server).await;
        let receiver = Receiver::start().await;
        // The webhook that has the address signs.
        let webhook = json!({
            "webhook_name": "same", "event_types": ["alert.created"],
            "channels": [{"channel": "webhook", "configs": {"url": receiver.url}}],
        });
        let webhook = server.call("POST", "/v1/organizations/webhooks", webhook).await.ok();
        let batches = format!("/v1/buckets/{bucket}/batches");
        let batch = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let path = format!("{batches}/{}", batch["batch_id"].as_str().unwrap());
        receiver.answer(&[500]);
        server.call_in(&namespace, "POST", &format!("{path}/submit"), json!({"webhook_url": receiver.url})).await.ok();
        let received = receiver.wait(2).await;
        assert_eq!((received[0].0["webhook-id"].clone(), &received[0].1), (received[1].0["webhook-id"].clone(), &received[1].1), "one message, tried twice");
        let (headers, body) = &received[1];
        assert!(is_signed(headers, body, &secret(&webhook)), "{headers:?}");
        let told: Value = serde_json::from_slice(body).unwrap();
        let shown = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&told["namespace_id"], &told["payload"]["batch_id"], &told["payload"]["task_id"]), (&json!(namespace), &shown["batch_id"], &shown["task_id"]));
        assert_eq!((&told["payload"]["status"], &told["payload"]["object_count"], &told["payload"]["documents_written"]), (&json!("COMPLETED"), &json!(2), &json!(2)), "{told:#}");
        // It stays with the batch.
        server.call_in(&namespace, "POST", &format!("{path}/resubmit"), json!({})).await.ok();
        let received = receiver.wait(3).await;
        assert_ne!(received[2].0["webhook-id"], received[1].0["webhook-id"]);
    }

    async fn what_is_not_there_is_left_out_where_it_is_not_checked(server) {
        let (namespace, bucket) = notes(&server).await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        let send = async |path: String, ids: Value| server.call_in(&namespace, "POST", &path, json!({"object_ids": ids})).await;
        let all = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let (one, two) = (&all["object_ids"][0], &all["object_ids"][1]);
        send(batches.clone(), json!([one, "obj_unknown"])).await.error(404, "NotFoundError");
        send(format!("{batches}?skip_validation=false"), json!([one, "obj_unknown"])).await.error(404, "NotFoundError");
        let made = send(format!("{batches}?skip_validation=true"), json!(["obj_unknown", one])).await.ok();
        assert_eq!((&made["object_ids"], &made["status"]), (&json!([one]), &json!("DRAFT")), "{made:#}");
        send(format!("{batches}?skip_validation=true"), json!(["obj_unknown"])).await.error(404, "NotFoundError");

        let objects = format!("{batches}/{}/objects", made["batch_id"].as_str().unwrap());
        send(objects.clone(), json!([two, "obj_unknown"])).await.error(404, "NotFoundError");
        let added = send(format!("{objects}?skip_validation=true"), json!([two, "obj_unknown"])).await.ok();
        assert_eq!(added["object_ids"], json!([one, two]), "{added:#}");
        send(format!("{objects}?skip_validation=maybe"), json!([two])).await.invalid(&["query", "skip_validation"], "parsing");
    }

    async fn a_batch_that_is_resubmitted_is_queued(server) {
        let (namespace, bucket) = notes(&server).await;
        let batch = process(&server, &namespace, &bucket).await;
        let path = format!("/v1/buckets/{bucket}/batches/{}", batch["batch_id"].as_str().unwrap());
        let resubmit = async |query: &str| server.call_in(&namespace, "POST", &format!("{path}/resubmit?{query}"), json!({})).await;
        for name in ["auto_submit", "trigger_processing"] {
            resubmit(&format!("{name}=false")).await.invalid(&["query", name], "not_enabled");
        }
        assert_eq!(resubmit("auto_submit=true&trigger_processing=true").await.ok()["status"], "QUEUED");
        assert_eq!(ended(&server, &namespace, &path).await["status"], "COMPLETED");
    }

    async fn batches_are_listed_of_one_namespace(server) {
        let (namespace, bucket) = notes(&server).await;
        process(&server, &namespace, &bucket).await;
        let other = server.namespace("elsewhere").await;
        let list = async |header: &str, body: Value| server.call_in(header, "POST", "/v1/batches/list", body).await;
        assert_eq!(list(&namespace, json!({"namespace_id": namespace})).await.ok()["total_count"], 1);
        assert_eq!(list(&other, json!({})).await.ok()["total_count"], 0);
        let refused = list(&namespace, json!({"namespace_id": other})).await.error(400, "BadRequestError");
        assert_eq!(refused["error"]["code"], "namespace_mismatch");
    }

    async fn a_retry_is_of_the_tiers_named_and_says_how_often(server) {
        let (namespace, bucket) = notes(&server).await;
        let batch = process(&server, &namespace, &bucket).await;
        let id = batch["batch_id"].as_str().unwrap().to_owned();
        let path = format!("/v1/buckets/{bucket}/batches/{id}");
        let fail = "UPDATE batch_objects SET status = 'FAILED', error = 'broken', error_type = 'permanent' WHERE batch_id = $1 AND position = 0";
        let failed = server.app.db().write(move |tx| Box::pin(async move { tx.run(fail, loupe_server::args![id]).await }));
        assert_eq!(failed.await.unwrap(), 1);
        let retry = async |body: Value| server.call_in(&namespace, "POST", &format!("{path}/retry"), body).await;
        retry(json!({"retry_mode": "all", "tier_nums": [0, 1]})).await.invalid(&["body", "tier_nums", "1"], "range");
        retry(json!({"tier_nums": [0]})).await.error(400, "BadRequestError");
        let retried = retry(json!({"retry_mode": "all", "tier_nums": [0], "max_retry_count": 7})).await.ok();
        assert_eq!(retried["retried_count"], 1);
        let after = ended(&server, &namespace, &path).await;
        assert_eq!((&after["status"], &after["max_retries"], &after["failed_object_count"]), (&json!("COMPLETED"), &json!(7), &json!(0)), "{after:#}");
        retry(json!({"retry_mode": "all", "tier_nums": null})).await.error(400, "BadRequestError");
    }

    async fn buckets_and_collections_are_found_by_words(server) {
        let namespace = server.namespace("words").await;
        for (name, description) in [("fieldwork", "from walks"), ("invoices", "paid for FIELDWORK"), ("pictures", "of birdsong")] {
            let bucket = json!({"bucket_name": name, "description": description, "bucket_schema": {"properties": {"title": {"type": "string"}}}});
            server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
            let collection = json!({
                "collection_name": name, "description": description, "source": {"type": "direct_upsert"},
                "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
            });
            server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok();
        }
        for (kind, name) in [("buckets", "bucket_name"), ("collections", "collection_name")] {
            let find = async |words: &str| {
                let path = format!("/v1/{kind}?include_total=true&search={words}");
                let found = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
                let mut names: Vec<String> = found["results"].as_array().unwrap().iter().map(|one| one[name].as_str().unwrap().to_owned()).collect();
                names.sort();
                (names, found["total_count"].as_i64().unwrap())
            };
            assert_eq!(find("Fieldwork").await, (vec!["fieldwork".to_owned(), "invoices".to_owned()], 2), "{kind}");
            assert_eq!(find("BIRDSONG").await, (vec!["pictures".to_owned()], 1), "{kind}");
            assert_eq!(find("").await.1, 3, "{kind}");
        }
    }

    async fn members_that_nothing_acts_on_are_refused_and_their_absence_is_taken(server) {
        let namespace = server.namespace("members").await;
        let bucket = |more: Value| {
            let mut body = json!({"bucket_name": "files", "bucket_schema": {"properties": {"title": {"type": "string"}}}});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let collection = |more: Value| {
            let mut body = json!({
                "collection_name": "documents", "source": {"type": "direct_upsert"},
                "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
            });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let send = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await;
        let elsewhere = json!({"destination": {"connection_id": "conn_x"}});
        let stages = json!([{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {"conditions": {"AND": [{"field": "title", "operator": "exists", "value": true}]}}}}]);
        let adapter = json!({"source_adapter": {"adapter_type": "webhook"}});
        send("POST", "/v1/buckets", bucket(adapter)).await.invalid(&["body", "source_adapter"], "not_enabled");
        // There is no such connection.
        send("POST", "/v1/buckets", bucket(elsewhere.clone())).await.error(404, "NotFoundError");
        let transformed = collection(json!({"retriever_transform": {"stages": stages}}));
        // Nothing is processed into what is written by hand.
        send("POST", "/v1/collections", transformed).await.invalid(&["body", "retriever_transform"], "value_error");
        let nothing = json!({"ingest_filter": null, "destination": null});
        let made = send("POST", "/v1/buckets", bucket(nothing.clone())).await.ok();
        let path = format!("/v1/buckets/{}", made["bucket_id"].as_str().unwrap());
        for method in ["PATCH", "PUT"] {
            send(method, &path, elsewhere.clone()).await.error(404, "NotFoundError");
            send(method, &path, nothing.clone()).await.ok();
        }
        let nothing = json!({"features": [], "retriever_enrichments": [], "retriever_transform": null, "schedule": null});
        let made = send("POST", "/v1/collections", collection(nothing)).await.ok();
        let path = format!("/v1/collections/{}", made["collection_id"].as_str().unwrap());
        for tiering in [json!({"enabled": true}), json!({"idle_days": {"cold": 30}}), json!({"exempt": "asked for daily"})] {
            let whole = format!("/v1/namespaces/{namespace}");
            for (method, path, body) in [
                ("PATCH", path.as_str(), json!({"tiering": tiering})),
                ("PATCH", whole.as_str(), json!({"tiering": tiering})),
                ("POST", "/v1/namespaces", json!({"namespace_name": "tiered", "tiering": tiering})),
            ] {
                send(method, path, body).await.invalid(&["body", "tiering"], "not_enabled");
            }
        }
        send("PATCH", &path, json!({"schema_validation": "off", "index_map": {}, "tiering": {"enabled": false}, "description": "kept"})).await.ok();
    }

    async fn members_of_namespaces_that_nothing_acts_on_are_refused(server) {
        let namespace = server.namespace("members").await;
        let send = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await;
        let whole = format!("/v1/namespaces/{namespace}");
        let issuer = json!([{"issuer": "https://id.example.com", "jwks_url": "https://id.example.com/keys"}]);
        let cap = json!({"daily_usd": 1, "reason": "a trial of one day", "owner": "desk"});
        for (member, asked) in [
            ("trusted_issuers", issuer), ("infrastructure", json!({"max_workers": 3})), ("spend_budget", json!({"daily_usd": 1})), ("cost_cap_override", cap),
        ] {
            let mut body = json!({member: asked});
            send("PATCH", &whole, body.clone()).await.invalid(&["body", member], "not_enabled");
            body["namespace_name"] = json!("asking");
            send("POST", "/v1/namespaces", body).await.invalid(&["body", member], "not_enabled");
        }
        send("PATCH", &whole, json!({"repair_vectors": true})).await.invalid(&["body", "repair_vectors"], "not_enabled");
        let own = json!({"namespace_name": "asking", "vector_configs": [{"name": "plot", "dimension": 3}]});
        send("POST", "/v1/namespaces", own).await.invalid(&["body", "vector_configs"], "not_enabled");
        let nothing = json!({"trusted_issuers": [], "infrastructure": {"autoscaling_enabled": true}, "spend_budget": {}, "ttl_seconds": 3600, "adaptive_indexing": true});
        let kept = send("PATCH", &whole, nothing).await.ok();
        assert!(kept["expires_at"].is_string() && kept["adaptive_indexing"] == true, "{kept:#}");
        for (method, path) in [("PATCH", whole.as_str()), ("POST", "/v1/namespaces")] {
            let body = json!({"namespace_name": "asking", "ttl_seconds": i64::MAX});
            send(method, path, body).await.invalid(&["body", "ttl_seconds"], "less_than_equal");
        }
    }
}
