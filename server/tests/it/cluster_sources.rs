//! Clusters of other sources than documents: of executions, of clusters, inside of clusters; and executions that come by
//! themselves, as batches end and by the triggers of clusters.

use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    clusters::{by_vectors, executed, make, things, write},
    harness::Server,
};

fn names(value: &Value) -> Vec<&str> {
    let list = value.as_array().unwrap().iter();
    list.map(|one| one.as_str().unwrap()).collect()
}

async fn run_id(server: &Server, namespace: &str, name: &str, parameters: Value) -> String {
    let id = make(
        server,
        namespace,
        by_vectors(name, "agglomerative", parameters),
    )
    .await;
    let (task, run) = executed(server, namespace, &id, Value::Null).await;
    assert_eq!(task["status"], "COMPLETED", "{task:#}");
    run["run_id"].as_str().unwrap().to_owned()
}

/// So many executions that ended, in the end.
async fn ran(server: &Server, namespace: &str, id: &str, count: i64) -> Value {
    for _ in 0..1_200 {
        loupe_server::v1::triggers::count_events(&server.app)
            .await
            .unwrap();
        loupe_server::v1::triggers::tick(&server.app).await.unwrap();
        let path = format!("/v1/clusters/{id}/executions/list?include_total=true");
        let page = server
            .call_in(namespace, "POST", &path, json!({}))
            .await
            .ok();
        let done = page["stats"]["executions_by_status"]["completed"]
            .as_i64()
            .unwrap_or(0);
        assert!(done <= count, "{page:#}");
        if done == count && page["total_count"] == count {
            return page;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{id} has not {count} executions");
}

/// One that makes its cluster.
async fn a_trigger_makes_its_cluster(server: &Server, namespace: &str, id: &str) {
    let call = async |path: &str, body: Value| {
        let path = format!("/v1/clusters/triggers{path}");
        server.call_in(namespace, "POST", &path, body).await
    };
    let asked = |config: Value| {
        json!({"trigger_type": "interval", "schedule_config": {"interval_seconds": 3600, "start_immediately": true},
            "execution_config": {"collection_ids": ["things"], "config": config}})
    };
    assert_eq!(
        call("", asked(json!({"vector_config": 7}))).await.status,
        422
    );
    call("", asked(json!({"cluster_kind": "round"})))
        .await
        .invalid(
            &["body", "execution_config", "config", "cluster_kind"],
            "extra_forbidden",
        );
    let before = server
        .call_in(
            namespace,
            "GET",
            "/v1/clusters?include_total=true",
            Value::Null,
        )
        .await
        .ok();
    let mut late = asked(
        json!({"cluster_name": "late", "vector_config": {"feature_uri": "own", "clustering_method": "auto"}}),
    );
    late["schedule_config"]["interval_seconds"] = json!("often");
    call("", late.clone())
        .await
        .invalid(&["body", "schedule_config"], "value_error");
    let after = server
        .call_in(
            namespace,
            "GET",
            "/v1/clusters?include_total=true",
            Value::Null,
        )
        .await
        .ok();
    assert_eq!(before["total_count"], after["total_count"]);
    late["schedule_config"]["interval_seconds"] = json!(60);
    let made = call("", late).await.ok();
    let own = server
        .call_in(namespace, "GET", "/v1/clusters/late", Value::Null)
        .await
        .ok();
    assert_eq!(own["cluster_id"], made["cluster_id"]);
    let mut both = asked(json!({}));
    both["cluster_id"] = json!(id);
    call("", both)
        .await
        .invalid(&["body", "execution_config"], "value_error");
    let mut of_nothing = asked(json!({}));
    of_nothing["execution_config"]["collection_ids"] = json!([]);
    let path = ["body", "execution_config", "collection_ids"];
    call("", of_nothing).await.invalid(&path, "too_short");
}

both! {
    async fn executions_are_composed(server) {
        let namespace = things(&server, "composed").await;
        // One by the sea and the kitchen, one by all three: alike clusters of both become one.
        let coarse = {
            let mut body = by_vectors("two", "agglomerative", json!({"n_clusters": 2, "linkage": "average"}));
            body["filters"] = json!({"field": "kind", "operator": "ne", "value": "music"});
            let id = make(&server, &namespace, body).await;
            executed(&server, &namespace, &id, Value::Null).await.1["run_id"].as_str().unwrap().to_owned()
        };
        let fine = run_id(&server, &namespace, "three", json!({"n_clusters": 3, "linkage": "average"})).await;
        let body = by_vectors("composed", "agglomerative", json!({"distance_threshold": 0.3, "linkage": "average"}));
        let id = make(&server, &namespace, body).await;
        let ask = json!({"mode": "composite", "source_execution_ids": [coarse, fine]});
        let (task, run) = executed(&server, &namespace, &id, ask).await;
        assert_eq!((&task["status"], &run["mode"], &run["num_clusters"], &run["num_points"]), (&json!("COMPLETED"), &json!("composite"), &json!(3), &json!(30)), "{run:#}");
        assert_eq!(names(&run["source_execution_ids"]), [&coarse, &fine]);
        let mut sizes: Vec<usize> = Vec::new();
        for one in run["centroids"].as_array().unwrap() {
            assert_eq!(one["num_members"], 10, "{run:#}");
            let made = run["composite_mapping"][one["cluster_id"].as_str().unwrap()].as_array().unwrap();
            assert!(made.iter().all(|source| source["num_members"] == 10 && source["original_cluster_id"].as_str().unwrap().starts_with("cl_")));
            sizes.push(made.len());
        }
        sizes.sort_unstable();
        // Music is in the second execution only; documents of both are where the first has them.
        assert_eq!(sizes, [1, 1, 1], "{run:#}");
        let text = run["centroids"].to_string();
        assert!(["sea", "oven", "violins"].iter().all(|word| text.contains(word)), "{text}");

        let path = format!("/v1/clusters/{id}/execute");
        let ask = async |body: Value| server.call_in(&namespace, "POST", &path, body).await;
        ask(json!({"mode": "composite"})).await.invalid(&["body", "source_execution_ids"], "missing");
        ask(json!({"source_execution_ids": [fine]})).await.invalid(&["body", "source_execution_ids"], "value_error");
        ask(json!({"mode": "composite", "source_execution_ids": [fine, fine]})).await.invalid(&["body", "source_execution_ids"], "missing");
        ask(json!({"mode": "composite", "source_execution_ids": ["run_none"]})).await.error(404, "NotFoundError");
        ask(json!({"mode": "composite", "source_execution_ids": [fine], "filters": {"kind": "sea"}})).await.invalid(&["body", "filters"], "value_error");
        // Values have no middles to gather by.
        let by_kind = json!({"cluster_name": "kinds", "collection_ids": ["things"], "cluster_type": "attribute", "attribute_config": {"attributes": ["kind"]}});
        let kinds = make(&server, &namespace, by_kind).await;
        let (_, of_kinds) = executed(&server, &namespace, &kinds, Value::Null).await;
        let (task, run) = executed(&server, &namespace, &id, json!({"mode": "composite", "source_execution_ids": [of_kinds["run_id"]]})).await;
        assert_eq!(task["status"], "FAILED");
        assert!(run["error_message"].as_str().unwrap().contains("no clusters by vectors"), "{run:#}");
    }

    async fn clusters_are_made_of_clusters(server) {
        let namespace = things(&server, "of clusters").await;
        let fine = make(&server, &namespace, by_vectors("fine", "kmeans", json!({"n_clusters": 6}))).await;
        let body = |sources: Value| json!({"cluster_name": "coarse", "source_cluster_ids": sources, "enrich_source_collection": true,
            "vector_config": {"clustering_method": "agglomerative", "algorithm_params": {"n_clusters": 3, "linkage": "average"}}});
        let post = async |body: Value| server.call_in(&namespace, "POST", "/v1/clusters", body).await;
        post(body(json!(["nothing"]))).await.error(404, "NotFoundError");
        let mut both = body(json!(["fine"]));
        both["collection_ids"] = json!(["things"]);
        post(both).await.invalid(&["body", "source_cluster_ids"], "value_error");
        let made = post(body(json!(["fine"]))).await.ok();
        assert_eq!((names(&made["source_cluster_ids"]), made["input_collections"].as_array().unwrap().len()), (vec![fine.as_str()], 1));
        let id = made["cluster_id"].as_str().unwrap().to_owned();
        let path = format!("/v1/clusters/{id}");
        server.call_in(&namespace, "PATCH", &path, json!({"source_cluster_ids": [id]})).await.invalid(&["body", "source_cluster_ids", "0"], "value_error");
        server.call_in(&namespace, "PATCH", &format!("/v1/clusters/{fine}"), json!({"source_cluster_ids": [id]})).await.invalid(&["body", "source_cluster_ids"], "value_error");
        server.call_in(&namespace, "POST", &format!("{path}/execute"), json!({"mode": "assign"})).await.invalid(&["body", "mode"], "value_error");
        // What was never executed has no clusters.
        let (task, run) = executed(&server, &namespace, &id, Value::Null).await;
        assert_eq!(task["status"], "FAILED");
        assert!(run["error_message"].as_str().unwrap().contains("no completed execution"), "{run:#}");
        let (_, first) = executed(&server, &namespace, &fine, Value::Null).await;
        assert_eq!(first["num_clusters"], 6, "{first:#}");
        let (task, run) = executed(&server, &namespace, &id, Value::Null).await;
        assert_eq!((&task["status"], &run["num_clusters"], &run["num_points"]), (&json!("COMPLETED"), &json!(3), &json!(30)), "{run:#}");
        assert_eq!(names(&run["source_execution_ids"]), [first["run_id"].as_str().unwrap()]);
        let sources: usize = run["composite_mapping"].as_object().unwrap().values().map(|one| one.as_array().unwrap().len()).sum();
        assert_eq!(sources, 6);
        let body = json!({"sort": {"field": "number", "direction": "asc"}, "limit": 100});
        let page = server.call_in(&namespace, "POST", "/v1/collections/things/documents/list", body).await.ok();
        for place in 0..30 {
            assert_eq!(page["results"][place]["cluster_id"], page["results"][place % 3]["cluster_id"]);
        }
        let picture = server.call_in(&namespace, "GET", &format!("{path}/visualization"), Value::Null).await.ok();
        assert_eq!(picture["total_points"], 30);
    }

    async fn clusters_are_divided(server) {
        let (namespace, _) = crate::harness::retriever(&server, "divided").await;
        // Two directions, in each of which two lie apart.
        for number in 0..40 {
            let near = 0.004 * f64::from(number / 4);
            let vector = match number % 4 {
                0 => [1.0, near, 0.25],
                1 => [1.0, near, -0.25],
                2 => [-1.0, near, 0.25],
                _ => [-1.0, near, -0.25],
            };
            write(&server, &namespace, ["ship sail", "ship engine", "bread rye", "bread wheat"][number as usize % 4], number, vector).await;
        }
        let mut body = by_vectors("divided", "kmeans", json!({"n_clusters": 2}));
        body["vector_config"]["hierarchical"] = json!(true);
        body["vector_config"]["max_hierarchy_depth"] = json!(2);
        let id = make(&server, &namespace, body).await;
        let (task, run) = executed(&server, &namespace, &id, Value::Null).await;
        assert_eq!((&task["status"], &run["num_clusters"]), (&json!("COMPLETED"), &json!(4)), "{run:#}");
        let nodes = run["hierarchy_relationships"].as_array().unwrap();
        assert_eq!(nodes.len(), 2, "{run:#}");
        let mut children: Vec<&str> = Vec::new();
        for (place, node) in nodes.iter().enumerate() {
            assert_eq!((&node["cluster_id"], &node["depth"], &node["num_members"], node.get("parent_cluster_id")), (&json!(format!("cl_{}", place + 4)), &json!(0), &json!(20), None));
            children.extend(names(&node["child_cluster_ids"]));
        }
        children.sort_unstable();
        assert_eq!(children, ["cl_0", "cl_1", "cl_2", "cl_3"]);
        let labels: Vec<&str> = nodes.iter().map(|node| node["label"].as_str().unwrap()).collect();
        assert!(["ship", "bread"].iter().all(|word| labels.iter().any(|label| label.contains(word))), "{labels:?}");
        let told = server.call_in(&namespace, "GET", &format!("/v1/clusters/{id}"), Value::Null).await.ok();
        assert_eq!((&told["hierarchy_detected"], told["hierarchy_relationships"].as_array().unwrap().len(), &told["hierarchical_vector"]), (&json!(true), 2, &json!(true)));

        // Attributes nest in their order.
        let nested = json!({"cluster_name": "nested", "collection_ids": ["things"], "cluster_type": "attribute",
            "attribute_config": {"attributes": ["kind", "title"], "hierarchical_grouping": true}});
        let id = make(&server, &namespace, nested).await;
        let (_, run) = executed(&server, &namespace, &id, Value::Null).await;
        let nodes = run["hierarchy_relationships"].as_array().unwrap();
        assert_eq!(nodes.len(), 3, "{run:#}");
        let sum: i64 = nodes.iter().map(|node| node["num_members"].as_i64().unwrap()).sum();
        assert_eq!(sum, 40);
        assert!(nodes.iter().all(|node| matches!(node["label"].as_str(), Some("sea" | "food" | "music"))), "{nodes:?}");
    }

    async fn batches_execute_what_a_collection_applies(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let by_title = |name: &str| json!({"cluster_name": name, "collection_ids": [collection], "cluster_type": "attribute", "attribute_config": {"attributes": ["title"]}});
        let applied = make(&server, &namespace, by_title("applied")).await;
        let mut own = by_title("own");
        own["auto_execute_on_batch"] = json!(true);
        own["auto_execute_min_documents"] = json!(4);
        own["auto_execute_cooldown_seconds"] = json!(0);
        let own = make(&server, &namespace, own).await;
        let patch = async |applications: Value| {
            let path = format!("/v1/collections/{collection}");
            server.call_in(&namespace, "PATCH", &path, json!({"cluster_applications": applications})).await
        };
        patch(json!([{"cluster_id": "nothing"}])).await.error(404, "NotFoundError");
        patch(json!([{"cluster_id": "applied", "cooldown_seconds": -1}])).await.invalid(&["body", "cluster_applications", "0", "cooldown_seconds"], "value_error");
        let told = patch(json!([{"cluster_id": "applied", "cooldown_seconds": 600}])).await.ok();
        assert_eq!(told["cluster_applications"][0]["cluster_id"], applied);
        let triggers = async || server.call_in(&namespace, "POST", "/v1/clusters/triggers/list", json!({"status": "active", "direction": "asc"})).await.ok();
        let kept = triggers().await;
        assert_eq!((&kept["total"], &kept["results"][0]["cluster_id"], &kept["results"][0]["created_by"]), (&json!(2), &json!(own), &json!(own)));
        assert_eq!((&kept["results"][1]["cluster_id"], &kept["results"][1]["created_by"]), (&json!(applied), &json!(collection)));

        let batch = async |count: usize| {
            for number in 0..count {
                let blob = json!({"property": "text", "type": "text", "data": "a sentence"});
                object(&server, &namespace, &bucket, &format!("title {number}"), blob).await;
            }
            process(&server, &namespace, &bucket).await;
        };
        batch(2).await;
        let page = ran(&server, &namespace, &applied, 1).await;
        assert_eq!(page["results"][0]["num_points"], 2, "{page:#}");
        // Two documents are fewer than four; the batch after it brings all four.
        ran(&server, &namespace, &own, 0).await;
        batch(2).await;
        ran(&server, &namespace, &own, 1).await;
        // The other one rests, and makes up for it when it has rested.
        ran(&server, &namespace, &applied, 1).await;
        server.app.clock().advance(601);
        ran(&server, &namespace, &applied, 2).await;

        // What is not applied any more is executed no more; a cluster that goes takes its triggers along.
        patch(json!([])).await.ok();
        assert_eq!(triggers().await["total"], 1);
        patch(json!([{"cluster_id": "own"}])).await.ok();
        assert_eq!(triggers().await["total"], 2);
        let changes = server.events("collection.updated").await.len();
        server.call_in(&namespace, "DELETE", &format!("/v1/clusters/{own}"), Value::Null).await.ok();
        assert_eq!(triggers().await["total"], 0);
        let told = server.events("collection.updated").await;
        assert_eq!((told.len(), &told[changes]["payload"]["collection_id"]), (changes + 1, &json!(collection)), "{told:#?}");
        let told = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}"), Value::Null).await.ok();
        assert_eq!(told["cluster_applications"], json!([]));
    }

    async fn clusters_have_triggers(server) {
        let namespace = things(&server, "scheduled").await;
        let id = make(&server, &namespace, by_vectors("kinds", "kmeans", json!({"n_clusters": 3}))).await;
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, &format!("/v1/clusters/triggers{path}"), body).await;
        let hourly = json!({"trigger_type": "interval", "schedule_config": {"interval_seconds": 3600, "start_immediately": true}});
        let with = |member: &str, value: Value| {
            let mut body = hourly.clone();
            body[member] = value;
            body
        };
        call("POST", "", hourly.clone()).await.invalid(&["body", "cluster_id"], "missing");
        call("POST", "", with("cluster_id", json!("clust_none"))).await.error(404, "NotFoundError");
        let made = call("POST", "", with("cluster_id", json!("kinds"))).await.ok();
        assert_eq!((&made["cluster_id"], &made["status"], &made["execution_config"]["config"]["vector_config"]["clustering_method"]), (&json!(id), &json!("active"), &json!("kmeans")), "{made:#}");
        let path = format!("/{}", made["trigger_id"].as_str().unwrap());
        // It is a trigger as any other.
        let same = server.call_in(&namespace, "GET", &format!("/v1/triggers{path}"), Value::Null).await.ok();
        assert_eq!((&same["action_type"], &same["action_config"]["cluster_id"]), (&json!("cluster"), &json!(id)));
        loupe_server::v1::triggers::tick(&server.app).await.unwrap();
        let mut history = Value::Null;
        for _ in 0..1_200 {
            history = call("POST", &format!("{path}/history"), json!({})).await.ok();
            if history["executions"][0]["status"] == "COMPLETED" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let first = &history["executions"][0];
        assert_eq!((&history["total"], &first["num_clusters"], &first["num_documents"]), (&json!(1), &json!(3), &json!(30)), "{history:#}");
        assert!(first["execution_time_ms"].is_i64());
        let failed = call("POST", &format!("{path}/history"), json!({"status_filter": "failed"})).await.ok();
        assert_eq!((&failed["total"], &failed["executions"]), (&json!(0), &json!([])));
        let told = call("GET", &path, Value::Null).await.ok();
        assert_eq!((&told["execution_count"], &told["last_execution_job_id"]), (&json!(1), &first["job_id"]));
        assert_eq!(call("POST", &format!("{path}/pause"), Value::Null).await.ok()["status"], "paused");
        assert_eq!(call("POST", &format!("{path}/resume"), Value::Null).await.ok()["status"], "active");
        let changed = call("PATCH", &path, json!({"description": "by day", "schedule_config": {"interval_seconds": 86_400}})).await.ok();
        assert_eq!((&changed["description"], &changed["schedule_config"]["interval_seconds"]), (&json!("by day"), &json!(86_400)));
        call("PATCH", &path, json!({"schedule_config": {"interval_seconds": 0}})).await.invalid(&["body", "schedule_config", "interval_seconds"], "value_error");

        a_trigger_makes_its_cluster(&server, &namespace, &id).await;

        // Lists hold those of clusters only; another trigger is none of them.
        let retriever = server.call_in(&namespace, "GET", "/v1/retrievers", Value::Null).await.ok();
        let other = json!({"trigger_type": "interval", "schedule_config": {"interval_seconds": 60}, "action_type": "retriever_execution",
            "action_config": {"retriever_id": retriever["results"][0]["retriever_id"]}});
        let other = server.call_in(&namespace, "POST", "/v1/triggers", other).await.ok();
        call("GET", &format!("/{}", other["trigger_id"].as_str().unwrap()), Value::Null).await.error(404, "NotFoundError");
        let page = call("POST", "/list", json!({})).await.ok();
        assert_eq!((&page["total"], &page["results"][1]["cluster_id"]), (&json!(2), &json!(id)));
        let page = call("POST", "/list", json!({"cluster_id": id})).await.ok();
        assert_eq!((&page["total"], &page["limit"]), (&json!(1), &json!(50)));
        assert_eq!(call("DELETE", &path, Value::Null).await.status, 204);
        assert_eq!(call("GET", &path, Value::Null).await.ok()["status"], "disabled");
        call("POST", &format!("{path}/resume"), Value::Null).await.error(409, "ConflictError");
    }
}
