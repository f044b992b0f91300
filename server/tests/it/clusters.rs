//! Clusters: gathered by vectors and attributes, named, told to documents, measured against the execution before.

mod beside;
mod naming;
mod parameters;
mod pictures;

use serde_json::{Value, json};

use crate::{both, harness::Server, stages::collection};

/// Thirty documents in three directions, each speaking of its own.
pub async fn things(server: &Server, name: &str) -> String {
    let (namespace, _) = crate::harness::retriever(server, name).await;
    let subjects = [
        "sailors on a ship at sea",
        "bread from the oven",
        "violins in the concert",
    ];
    for number in 0..30 {
        let kind = number % 3;
        let near = 0.02 * f64::from(number / 3);
        let mut vector = [near, near, near];
        vector[kind as usize] = 1.0;
        write(server, &namespace, subjects[kind as usize], number, vector).await;
    }
    namespace
}

pub async fn write(server: &Server, namespace: &str, title: &str, number: i32, vector: [f64; 3]) {
    let kind = ["sea", "food", "music"][(number % 3) as usize];
    let body = json!({"title": title, "number": number, "kind": kind,
        "vectors": {"own": vector}});
    let path = "/v1/collections/things/documents";
    server.call_in(namespace, "POST", path, body).await.ok();
}

pub async fn make(server: &Server, namespace: &str, body: Value) -> String {
    let made = server
        .call_in(namespace, "POST", "/v1/clusters", body)
        .await
        .ok();
    made["cluster_id"].as_str().unwrap().to_owned()
}

/// Executes to the end; answers the task and the execution.
pub async fn executed(server: &Server, namespace: &str, id: &str, body: Value) -> (Value, Value) {
    let path = format!("/v1/clusters/{id}/execute");
    let task = server.call_in(namespace, "POST", &path, body).await.ok();
    assert_eq!(task["task_type"], "engine_cluster_build");
    let task = server.task_end(task["task_id"].as_str().unwrap()).await;
    let path = format!("/v1/clusters/{id}/executions");
    let run = server
        .call_in(namespace, "GET", &path, Value::Null)
        .await
        .ok();
    (task, run)
}

pub fn by_vectors(name: &str, method: &str, parameters: Value) -> Value {
    json!({"cluster_name": name, "collection_ids": ["things"], "vector_config": {
        "feature_uri": "own", "clustering_method": method, "algorithm_params": parameters}})
}

/// Labels and names of one's own.
async fn labels_are_set(server: &Server, namespace: &str, id: &str, run_id: &str) {
    let get = async |path: &str| {
        let path = format!("/v1/clusters/{id}{path}");
        server.call_in(namespace, "GET", &path, Value::Null).await
    };
    let path = format!("/v1/clusters/{id}/executions/{run_id}");
    server
        .call_in(
            namespace,
            "PATCH",
            &format!("{path}/labels"),
            json!({"labels": {"cl_9": "x"}}),
        )
        .await
        .invalid(&["body", "labels", "cl_9"], "value_error");
    server
        .call_in(
            namespace,
            "PATCH",
            &format!("{path}/labels"),
            json!({"labels": {"cl_0": "my own"}}),
        )
        .await
        .ok();
    server
        .call_in(
            namespace,
            "PATCH",
            &format!("{path}/name"),
            json!({"run_name": "the first"}),
        )
        .await
        .ok();
    assert_eq!(get("/groups").await.ok()["groups"][0]["label"], "my own");
    assert_eq!(
        get(&format!("/executions/{run_id}")).await.ok()["run_name"],
        "the first"
    );
}

/// As a file: every document, or those of one label.
async fn files_hold_documents(server: &Server, namespace: &str, id: &str, run_id: &str) {
    let get = async |path: &str| {
        let path = format!("/v1/clusters/{id}{path}");
        server.call_in(namespace, "GET", &path, Value::Null).await
    };
    let file = get(&format!("/executions/{run_id}/export")).await;
    assert_eq!(file.headers["content-type"], "text/csv; charset=utf-8");
    let text = file.ok();
    let lines: Vec<&str> = text.as_str().unwrap().lines().collect();
    assert_eq!(
        (lines[0], lines.len()),
        ("document_id,collection_id,cluster_id,cluster_label,x,y", 31)
    );
    let own = get(&format!(
        "/executions/{run_id}/export?format=json&cluster_label=my%20own"
    ))
    .await
    .ok();
    assert_eq!(
        (
            own.as_array().unwrap().len(),
            &own[0]["cluster_id"],
            &own[0]["cluster_label"]
        ),
        (10, &json!("cl_0"), &json!("my own"))
    );
    get(&format!("/executions/{run_id}/export?format=xml"))
        .await
        .invalid(&["query", "format"], "enum");
}

both! {
    async fn vectors_are_gathered_named_and_drawn(server) {
        let namespace = things(&server, "gathered").await;
        let id = make(&server, &namespace, by_vectors("kinds", "kmeans", json!({"n_clusters": 3}))).await;
        let get = async |path: &str| server.call_in(&namespace, "GET", &format!("/v1/clusters/{id}{path}"), Value::Null).await;
        get("/executions").await.error(404, "NotFoundError");
        assert_eq!(get("/groups").await.ok()["total_groups"], 0);
        let (task, run) = executed(&server, &namespace, &id, Value::Null).await;
        assert_eq!((&task["status"], &task["outputs"][0]["num_clusters"]), (&json!("COMPLETED"), &json!(3)), "{task:#}");
        assert_eq!((&run["status"], &run["num_points"], &run["vectors_clustered"], &run["input_reconciliation_ok"]), (&json!("completed"), &json!(30), &json!(30), &json!(true)), "{run:#}");
        assert!(run["metrics"]["silhouette_score"].as_f64().unwrap() > 0.7, "{run:#}");
        let mut labels: Vec<String> = Vec::new();
        for one in run["centroids"].as_array().unwrap() {
            assert_eq!((&one["num_members"], one["representative_ids"].as_array().unwrap().len(), one.get("centroid_vector")), (&json!(10), 5, None));
            labels.push(one["label"].as_str().unwrap().to_owned());
        }
        for word in ["sea", "oven", "violins"] {
            assert_eq!(labels.iter().filter(|label| label.contains(word)).count(), 1, "{labels:?}");
        }
        let told = get("").await.ok();
        assert_eq!((&told["status"], &told["num_clusters"], &told["algorithm"], &told["last_run_id"]), (&json!("COMPLETED"), &json!(3), &json!("kmeans"), &run["run_id"]));
        let run_id = run["run_id"].as_str().unwrap();
        let with = get(&format!("/executions/{run_id}?include_vectors=true")).await.ok();
        assert_eq!(with["centroids"][0]["centroid_vector"].as_array().unwrap().len(), 3);
        let groups = get("/groups").await.ok();
        assert_eq!((&groups["total_groups"], &groups["total_documents"], &groups["run_id"]), (&json!(3), &json!(30), &run["run_id"]));
        let picture = get("/visualization").await.ok();
        assert_eq!((&picture["dimensions"], &picture["total_points"], picture["centroids"].as_array().unwrap().len()), (&json!(2), &json!(30), 3));
        assert_eq!(picture["points"][0]["position"].as_array().unwrap().len(), 2);
        let few = get("/visualization?max_points=10&compact=true").await.ok();
        assert_eq!((few["points"].as_array().unwrap().len(), few["points"][0][0].as_array().unwrap().len()), (10, 2));

        labels_are_set(&server, &namespace, &id, run_id).await;
        files_hold_documents(&server, &namespace, &id, run_id).await;

        // The same documents make the same clusters; more of them in another direction move them.
        let (_, again) = executed(&server, &namespace, &id, Value::Null).await;
        let drift = &again["metrics"]["drift"];
        assert_eq!(drift["since_run_id"], run["run_id"]);
        assert!(drift["distance"].as_f64().unwrap().abs() < 1e-6, "{drift}");
        for number in 0..30 {
            write(&server, &namespace, "clouds", number, [-1.0, -0.5, 0.0]).await;
        }
        let (task, moved) = executed(&server, &namespace, &id, Value::Null).await;
        assert!(moved["metrics"]["drift"]["distance"].as_f64().unwrap() > 0.05, "{moved:#}");
        assert_eq!(task["outputs"][0]["drift"]["since_run_id"], again["run_id"]);
        let listed = server.call_in(&namespace, "POST", &format!("/v1/clusters/{id}/executions/list?include_total=true"), json!({})).await.ok();
        assert_eq!((&listed["total_count"], &listed["stats"]["executions_by_status"]["completed"], &listed["results"][2]["run_id"]), (&json!(3), &json!(3), &run["run_id"]));
        for (kind, count) in [("cluster.created", 1), ("cluster.execution.started", 3), ("cluster.execution.completed", 3)] {
            assert_eq!(server.events(kind).await.len(), count, "{kind}");
        }
        assert_eq!(server.files(&format!("{namespace}/clusters")).len(), 3);
        server.call_in(&namespace, "DELETE", &format!("/v1/clusters/{id}?cascade_output_collections=true"), Value::Null).await.ok();
        get("").await.error(404, "NotFoundError");
        server.files_become(&format!("{namespace}/clusters"), 0).await;
    }

    async fn every_method_finds_what_is_there(server) {
        let namespace = things(&server, "methods").await;
        for (method, parameters) in [
            ("hdbscan", json!({"min_cluster_size": 4})), ("dbscan", json!({"eps": 0.4, "min_samples": 3})), ("agglomerative", json!({"n_clusters": 3, "linkage": "average"})),
            ("spectral", json!({"n_clusters": 3})), ("gaussian_mixture", json!({"n_components": 3})), ("auto", json!({})),
            ("mean_shift", json!({"bandwidth": 0.5})), ("optics", json!({"min_samples": 3, "xi": 0.2})), ("leiden", json!({"n_neighbors": 6})),
            ("evoc", json!({"n_neighbors": 6, "approx_n_clusters": 3, "min_samples": 3})),
        ] {
            let id = make(&server, &namespace, by_vectors(method, method, parameters)).await;
            let (task, run) = executed(&server, &namespace, &id, json!({"vis_n_components": 3})).await;
            assert_eq!((&task["status"], &run["num_clusters"]), (&json!("COMPLETED"), &json!(3)), "{method}: {run:#}");
        }
        // Laid out before they are compared; the picture is of the layout, what is told of clusters of the vectors.
        for step in [json!({"method": "umap", "n_components": 2, "n_neighbors": 8}), json!({"method": "tsne"}), json!({"method": "whitening", "regularization": 0.01})] {
            let name = step["method"].as_str().unwrap();
            let mut laid = by_vectors(name, "kmeans", json!({"n_clusters": 3}));
            laid["vector_config"]["preprocessing_steps"] = json!([step, {"method": "none"}]);
            let id = make(&server, &namespace, laid).await;
            let (task, run) = executed(&server, &namespace, &id, Value::Null).await;
            assert_eq!((&task["status"], &run["num_clusters"], &run["centroids"][0]["num_members"]), (&json!("COMPLETED"), &json!(3), &json!(10)), "{name}: {run:#}");
            let path = format!("/v1/clusters/{id}/visualization");
            let drawn = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
            executed(&server, &namespace, &id, Value::Null).await;
            let again = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
            assert_eq!((drawn["points"].as_array().unwrap().len(), &drawn["points"]), (30, &again["points"]), "{name}");
        }
        // A sample is compared, and said to be one.
        let mut sampled = by_vectors("sampled", "kmeans", json!({"n_clusters": 3}));
        sampled["vector_config"]["sample_size"] = json!(12);
        let id = make(&server, &namespace, sampled).await;
        let (_, run) = executed(&server, &namespace, &id, Value::Null).await;
        assert_eq!((&run["num_points"], &run["input_reconciliation_ok"]), (&json!(30), &json!(false)));
        assert!(run["input_reconciliation_reasons"][0].as_str().unwrap().contains("12 of 30"), "{run:#}");
        let page = server.call_in(&namespace, "GET", "/v1/clusters?search=spectral&include_total=true", Value::Null).await.ok();
        assert_eq!((&page["total_count"], &page["results"][0]["cluster_name"]), (&json!(1), &json!("spectral")));
    }

    async fn documents_are_told_of_their_clusters_and_others_assigned(server) {
        let namespace = things(&server, "told").await;
        let mut body = by_vectors("told", "kmeans", json!({"n_clusters": 3}));
        body["enrich_source_collection"] = json!(true);
        body["source_enrichment_config"] = json!({"field_mappings": [{"source_field": "cluster_id", "target_field": "group.id"}, {"source_field": "label", "target_field": "group.name"}]});
        let id = make(&server, &namespace, body).await;
        executed(&server, &namespace, &id, Value::Null).await;
        let listed = async || {
            let body = json!({"sort": {"field": "number", "direction": "asc"}, "limit": 100});
            let page = server.call_in(&namespace, "POST", "/v1/collections/things/documents/list", body).await.ok();
            page["results"].as_array().unwrap().clone()
        };
        let documents = listed().await;
        for place in 0..30 {
            assert_eq!(documents[place]["group"], documents[place % 3]["group"]);
            assert!(documents[place]["group"]["name"].is_string());
        }
        // They are found by it, and still by their words.
        let name = documents[0]["group"]["name"].as_str().unwrap();
        let body = json!({"filters": {"field": "group.name", "operator": "eq", "value": name}, "limit": 100});
        let found = server.call_in(&namespace, "POST", "/v1/collections/things/documents/list", body).await.ok();
        assert_eq!(found["results"].as_array().unwrap().len(), 10);
        let found = server.call_in(&namespace, "POST", "/v1/collections/things/documents/list", json!({"search": "violins", "limit": 100})).await.ok();
        assert_eq!(found["results"].as_array().unwrap().len(), 10);
        assert_eq!(server.events("documents.updated.batch").await.len(), 1);

        // What came since is assigned where it is like a cluster; the clusters stay what they are.
        write(&server, &namespace, "a boat", 30, [0.9, 0.1, 0.0]).await;
        write(&server, &namespace, "nothing of these", 31, [-1.0, -1.0, -1.0]).await;
        let (task, run) = executed(&server, &namespace, &id, json!({"mode": "assign", "assignment_threshold": 0.8})).await;
        assert_eq!((&task["status"], &run["mode"], &run["num_clusters"], &run["pipeline_drop"]), (&json!("COMPLETED"), &json!("assign"), &json!(3), &json!(1)), "{run:#}");
        let documents = listed().await;
        assert_eq!((&documents[30]["group"], documents[31].get("group")), (&documents[0]["group"], None));
    }

    async fn attributes_make_clusters_too(server) {
        let namespace = server.namespace("attributes").await;
        let cars: Vec<Value> = [("A", 4), ("A", 4), ("B", 4), ("A", 2)].iter().map(|(maker, doors)| json!({"maker": maker, "doors": doors, "title": format!("car of {maker}")})).collect();
        let cars = [cars, vec![json!({"title": "no car"})]].concat();
        collection(&server, &namespace, "cars", &cars).await;
        let body = json!({"cluster_name": "makes", "collection_ids": ["cars"], "cluster_type": "attribute", "attribute_config": {"attributes": ["maker", "doors"]}, "enrich_source_collection": true});
        let id = make(&server, &namespace, body).await;
        let (task, run) = executed(&server, &namespace, &id, Value::Null).await;
        assert_eq!((&task["status"], &run["num_clusters"], &run["num_points"], &run["pipeline_drop"]), (&json!("COMPLETED"), &json!(3), &json!(5), &json!(1)), "{run:#}");
        assert_eq!((&run["centroids"][0]["label"], &run["centroids"][0]["num_members"]), (&json!("A / 4"), &json!(2)));
        let found = server.call_in(&namespace, "POST", "/v1/collections/cars/documents/list", json!({"filters": {"cluster_label": "A / 4"}})).await.ok();
        assert_eq!(found["results"].as_array().unwrap().len(), 2);
        let picture = server.call_in(&namespace, "GET", &format!("/v1/clusters/{id}/visualization"), Value::Null).await.ok();
        assert_eq!((&picture["dimensions"], &picture["points"]), (&json!(0), &json!([])));
        let only = json!({"filters": {"field": "maker", "operator": "eq", "value": "B"}});
        let (_, run) = executed(&server, &namespace, &id, only).await;
        assert_eq!((&run["num_clusters"], &run["num_points"]), (&json!(1), &json!(1)));
    }

    async fn one_execution_at_a_time_and_it_can_be_canceled(server) {
        let namespace = things(&server, "canceled").await;
        let id = make(&server, &namespace, by_vectors("kinds", "kmeans", json!({"n_clusters": 3}))).await;
        // Nobody works any more.
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let path = format!("/v1/clusters/{id}/execute");
        let task = server.call_in(&namespace, "POST", &path, Value::Null).await.ok();
        let run_id = task["additional_data"]["run_id"].as_str().unwrap().to_owned();
        let refused = server.call_in(&namespace, "POST", &path, json!({})).await.error(409, "ConflictError");
        assert_eq!((&refused["error"]["code"], &refused["error"]["details"]["run_id"]), (&json!("cluster_run_in_progress"), &json!(run_id)));
        let cancel = format!("/v1/clusters/{id}/executions/{run_id}/cancel");
        let canceled = server.call_in(&namespace, "POST", &cancel, Value::Null).await.ok();
        assert_eq!(canceled["status"], "canceled");
        server.call_in(&namespace, "POST", &cancel, Value::Null).await.error(409, "ConflictError");
        let told = server.call_in(&namespace, "GET", &format!("/v1/tasks/{}", task["task_id"].as_str().unwrap()), Value::Null).await.ok();
        assert_eq!(told["status"], "CANCELED");
        // Several that ask at once begin one; a cluster that goes takes it along.
        let asks = (0..6).map(|_| server.call_in(&namespace, "POST", &path, Value::Null));
        let answers = futures::future::join_all(asks).await;
        let begun: Vec<&Value> = answers.iter().filter(|answer| answer.status == 200).map(|answer| &answer.body).collect();
        assert_eq!(begun.len(), 1);
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 409)));
        let task = begun[0]["task_id"].as_str().unwrap();
        server.call_in(&namespace, "DELETE", &format!("/v1/clusters/{id}"), Value::Null).await.ok();
        let told = server.call_in(&namespace, "GET", &format!("/v1/tasks/{task}"), Value::Null).await.ok();
        assert_eq!(told["status"], "CANCELED");
    }

    async fn what_cannot_be_is_refused_and_failures_are_told(server) {
        let namespace = things(&server, "failing").await;
        let refuse = async |body: Value, loc: &[&str], kind: &str| {
            let loc: Vec<&str> = ["body"].iter().chain(loc).copied().collect();
            server.call_in(&namespace, "POST", "/v1/clusters", body).await.invalid(&loc, kind);
        };
        refuse(json!({"collection_ids": ["things"]}), &["vector_config"], "missing").await;
        refuse(by_vectors("x", "attribute_based", json!({})), &["vector_config", "clustering_method"], "value_error").await;
        for (method, name, value, kind) in [
            ("leiden", "resolution", json!(0), "float_type"), ("leiden", "n_neighbors", json!(1), "int_type"), ("leiden", "n_iterations", json!(0), "value_error"),
            ("leiden", "objective_function", json!("chance"), "enum"), ("optics", "min_samples", json!(1), "int_type"), ("optics", "xi", json!(1.5), "float_type"),
            ("optics", "cluster_method", json!("knn"), "enum"), ("optics", "p", json!(1), "not_enabled"), ("optics", "min_cluster_size", json!(2.5), "value_error"),
            ("mean_shift", "bandwidth", json!(0), "float_type"), ("mean_shift", "bin_seeding", json!("yes"), "bool_type"), ("mean_shift", "seeds", json!([[1.0]]), "not_enabled"),
            ("mean_shift", "bandwidth_quantile", json!(2), "float_type"), ("evoc", "noise_level", json!(2), "float_type"), ("evoc", "base_min_cluster_size", json!(1), "int_type"),
        ] {
            refuse(by_vectors("x", method, json!({name: value})), &["vector_config", "algorithm_params", name], kind).await;
        }
        refuse(by_vectors("x", "optics", json!({"cluster_method": "dbscan"})), &["vector_config", "algorithm_params", "eps"], "missing").await;
        for (step, name, kind) in [
            (json!({"method": "pca"}), "method", "enum"), (json!({}), "method", "missing"), (json!({"method": "umap", "n_components": 1}), "n_components", "int_type"),
            (json!({"method": "tsne", "n_components": 10}), "n_components", "not_enabled"), (json!({"method": "whitening", "regularization": -1}), "regularization", "float_type"),
        ] {
            let mut body = by_vectors("x", "kmeans", json!({}));
            body["vector_config"]["preprocessing_steps"] = json!([step]);
            refuse(body, &["vector_config", "preprocessing_steps", "0", name], kind).await;
        }
        refuse(by_vectors("x", "kmeans", json!({"n_clusters": 1})), &["vector_config", "algorithm_params", "n_clusters"], "int_type").await;
        refuse(by_vectors("x", "agglomerative", json!({"linkage": "none"})), &["vector_config", "algorithm_params", "linkage"], "enum").await;
        let mut unknown = by_vectors("x", "kmeans", json!({}));
        unknown["vector_config"]["feature_uri"] = json!("loupe://text_extractor@v1/none");
        refuse(unknown, &["vector_config", "feature_uri"], "invalid_feature_uri").await;
        refuse(json!({"collection_ids": []}), &["collection_ids"], "too_short").await;
        refuse(json!({"collection_ids": ["things"], "cluster_type": "attribute"}), &["attribute_config"], "missing").await;
        refuse(json!({"collection_ids": ["things"], "auto_execute_on_batch": true, "auto_execute_cooldown_seconds": -1}), &["auto_execute_cooldown_seconds"], "value_error").await;
        let mut nowhere = by_vectors("x", "kmeans", json!({}));
        nowhere["collection_ids"] = json!(["nothing"]);
        server.call_in(&namespace, "POST", "/v1/clusters", nowhere).await.error(404, "NotFoundError");

        let id = make(&server, &namespace, by_vectors("fine", "kmeans", json!({}))).await;
        let path = format!("/v1/clusters/{id}");
        server.call_in(&namespace, "POST", &format!("{path}/execute"), json!({"vis_n_components": 4})).await.invalid(&["body", "vis_n_components"], "enum");
        server.call_in(&namespace, "PATCH", &path, json!({"algorithm_params": {"n_clusters": "many"}})).await.invalid(&["body", "vector_config", "algorithm_params", "n_clusters"], "int_type");
        let changed = server.call_in(&namespace, "PATCH", &path, json!({"cluster_name": "finer", "algorithm_params": {"n_clusters": 2}, "sample_size": 20})).await.ok();
        assert_eq!((&changed["cluster_name"], &changed["vector_config"]["sample_size"], &changed["vector_config"]["algorithm_params"]["n_clusters"]), (&json!("finer"), &json!(20), &json!(2)));
        assert_eq!(server.events("cluster.updated").await.len(), 1);
        let whole = server.call_in(&namespace, "PATCH", &path, json!({"sample_size": null, "metadata": null, "description": null})).await.ok();
        assert_eq!((&whole["vector_config"]["sample_size"], &whole["cluster_name"]), (&Value::Null, &json!("finer")), "{whole:#}");
        // Nothing to gather, and nothing to assign to.
        for body in [json!({"filters": {"field": "number", "operator": "gt", "value": 1000}}), json!({"mode": "assign"})] {
            let (task, run) = executed(&server, &namespace, &id, body).await;
            assert_eq!((&task["status"], &run["status"]), (&json!("FAILED"), &json!("failed")), "{task:#}");
            assert!(run["error_message"].as_str().unwrap().starts_with("there "), "{run:#}");
        }
        let told = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!(told["status"], "FAILED");
        assert_eq!(server.events("cluster.execution.failed").await.len(), 2);
        // Named by a model that is not there: by its words, and the answer says so.
        let (_, run) = executed(&server, &namespace, &id, json!({"llm_labeling": {"enabled": true}})).await;
        assert!(run["llm_labeling_errors"][0].as_str().unwrap().contains("no language model"), "{run:#}");
    }

    async fn triggers_execute_clusters(server) {
        let namespace = things(&server, "triggered").await;
        let id = make(&server, &namespace, by_vectors("kinds", "kmeans", json!({"n_clusters": 3}))).await;
        let trigger = |action: Value| json!({"name": "gather", "trigger_type": "interval", "schedule_config": {"interval_seconds": 3600},
            "action_type": "cluster", "action_config": action});
        for action in [json!({"cluster_id": "kinds"}), json!({"collection_id": "things", "mode": "assign"})] {
            let made = server.call_in(&namespace, "POST", "/v1/triggers", trigger(action)).await.ok();
            let path = format!("/v1/triggers/{}/execute", made["trigger_id"].as_str().unwrap());
            let task = server.call_in(&namespace, "POST", &path, Value::Null).await.ok();
            let task = server.task_end(task["task_id"].as_str().unwrap()).await;
            assert_eq!((&task["status"], &task["outputs"][0]["num_clusters"], &task["outputs"][0]["cluster_id"]), (&json!("COMPLETED"), &json!(3), &json!(id)), "{task:#}");
        }
        // Found by the cluster, however the action names it.
        let found = server.call_in(&namespace, "POST", "/v1/triggers/list", json!({"resource_id": id})).await.ok();
        assert_eq!(found["total"], 2, "{found:#}");
        server.call_in(&namespace, "POST", "/v1/triggers", trigger(json!({"cluster_id": "clust_none"}))).await.error(404, "NotFoundError");
        server.call_in(&namespace, "POST", "/v1/triggers", trigger(json!({}))).await.invalid(&["body", "action_config", "cluster_id"], "missing");
        // An execution that finds no document has failed, but its trigger has not: there was nothing to do.
        let nothing = trigger(json!({"cluster_id": id, "filters": {"field": "number", "operator": "gt", "value": 1000}}));
        let made = server.call_in(&namespace, "POST", "/v1/triggers", nothing).await.ok();
        let path = format!("/v1/triggers/{}", made["trigger_id"].as_str().unwrap());
        let task = server.call_in(&namespace, "POST", &format!("{path}/execute"), Value::Null).await.ok();
        let task = server.task_end(task["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "SKIPPED");
        let told = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&told["last_execution_status"], &told["consecutive_failures"]), (&json!("SKIPPED"), &json!(0)));
        let run = server.call_in(&namespace, "GET", &format!("/v1/clusters/{id}/executions"), Value::Null).await.ok();
        assert_eq!(run["status"], "failed");
    }

    async fn a_cluster_that_is_busy_is_no_failure_of_its_trigger(server) {
        let namespace = things(&server, "busy").await;
        let id = make(&server, &namespace, by_vectors("kinds", "kmeans", json!({"n_clusters": 3}))).await;
        executed(&server, &namespace, &id, Value::Null).await;
        let end = async |status: &'static str| {
            let (id, set) = (id.clone(), "UPDATE cluster_runs SET status = $2 WHERE cluster_id = $1");
            server.app.db().write(move |tx| Box::pin(async move { tx.run(set, loupe_server::args![id, status]).await })).await.unwrap();
        };
        end("processing").await;
        let body = json!({"name": "as they come", "trigger_type": "event", "schedule_config": {"event_type": "document.created"},
            "action_type": "cluster", "action_config": {"cluster_id": id}});
        let made = server.call_in(&namespace, "POST", "/v1/triggers", body).await.ok();
        let path = format!("/v1/triggers/{}", made["trigger_id"].as_str().unwrap());
        let told = async || server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        let fired = async |count: i64, status: &str| {
            let start = std::time::Instant::now();
            loop {
                let told = told().await;
                if (&told["execution_count"], &told["last_execution_status"]) == (&json!(count), &json!(status)) {
                    return told;
                }
                assert!(start.elapsed().as_secs() < 180, "{told:#}");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        write(&server, &namespace, "a boat", 30, [0.9, 0.1, 0.0]).await;
        let skipped = fired(1, "SKIPPED").await;
        assert_eq!((&skipped["consecutive_failures"], &skipped["event_counter"], &skipped["status"]), (&json!(0), &json!(1), &json!("active")), "{skipped:#}");
        let task = server.task_end(skipped["last_execution_task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "SKIPPED");
        let history = server.call_in(&namespace, "GET", &format!("{path}/history"), Value::Null).await.ok();
        assert_eq!(history["executions"][0]["status"], "SKIPPED");
        // What it counted is not lost: it fires when the execution may be over.
        end("completed").await;
        server.app.clock().advance(61);
        let done = fired(2, "COMPLETED").await;
        assert_eq!((&done["event_counter"], &done["next_scheduled_at"]), (&json!(0), &Value::Null));
    }
}
