//! What methods are told changes what they find, or is refused; and what executions tell of how it went.

use super::*;

/// Executes a cluster that is made so; answers what was found.
async fn found(server: &Server, namespace: &str, method: &str, parameters: Value) -> Value {
    let name = format!("{method} {parameters}");
    let name: String = name.chars().take(100).collect();
    let id = make(server, namespace, by_vectors(&name, method, parameters)).await;
    let (task, run) = executed(server, namespace, &id, Value::Null).await;
    assert_eq!(task["status"], "COMPLETED", "{name}: {task:#}");
    run
}

fn sizes(run: &Value) -> Vec<i64> {
    let clusters = run["centroids"].as_array().unwrap().iter();
    clusters
        .map(|one| one["num_members"].as_i64().unwrap())
        .collect()
}

both! {
    async fn parameters_change_what_is_found(server) {
        let namespace = things(&server, "told").await;
        // Documents of a kind are 0.03 apart on the straight line, by their angle less than a thousandth.
        for (metric, clusters) in [("euclidean", 0), ("cosine", 3)] {
            let run = found(&server, &namespace, "dbscan", json!({"eps": 0.01, "min_samples": 3, "metric": metric})).await;
            assert_eq!(run["num_clusters"], clusters, "{metric}: {run:#}");
            let metrics = &run["metrics"];
            assert_eq!(metrics["degenerate"], json!(clusters == 0), "{metrics:#}");
            assert_eq!(metrics.get("degenerate_detail").is_some(), clusters == 0, "{metrics:#}");
        }
        let run = found(&server, &namespace, "hdbscan", json!({"min_cluster_size": 4, "max_cluster_size": 9})).await;
        assert!(sizes(&run).iter().all(|size| *size < 10), "{run:#}");
        let run = found(&server, &namespace, "agglomerative", json!({"affinity": "cosine", "linkage": "average", "distance_threshold": 0.1, "n_clusters": null})).await;
        assert_eq!(sizes(&run), [10, 10, 10], "{run:#}");
        // One group is all there is, and tells nothing.
        let run = found(&server, &namespace, "gaussian_mixture", json!({"n_components": 1})).await;
        assert_eq!((sizes(&run), &run["metrics"]["degenerate"]), (vec![30], &json!(true)), "{run:#}");
        // What is the default anyway may be said.
        for (method, parameters) in [
            ("kmeans", json!({"n_clusters": 3, "max_iter": 300, "random_state": 42, "n_init": 10, "tol": 0.0001, "init": "k-means++", "verbose": 0, "copy_x": true, "algorithm": "lloyd"})),
            ("hdbscan", json!({"min_cluster_size": 4, "min_samples": null, "cluster_selection_epsilon": 0.0, "max_cluster_size": null, "metric": "euclidean", "alpha": 1.0,
                "cluster_selection_method": "eom", "allow_single_cluster": false, "prediction_data": false, "match_reference_implementation": false})),
            ("dbscan", json!({"eps": 0.4, "min_samples": 3, "metric": "euclidean", "metric_params": {}, "algorithm": "auto", "leaf_size": 30, "p": 2, "n_jobs": 1})),
            ("agglomerative", json!({"n_clusters": 3, "affinity": "euclidean", "memory": null, "connectivity": null, "compute_full_tree": "auto", "linkage": "ward",
                "distance_threshold": null, "compute_distances": false})),
            ("spectral", json!({"n_clusters": 3, "eigen_solver": null, "n_components": null, "random_state": 42, "n_init": 10, "gamma": 1.0, "affinity": "rbf", "n_neighbors": 10,
                "eigen_tol": 0.0, "assign_labels": "kmeans", "degree": 3, "coef0": 1, "kernel_params": null, "n_jobs": 1, "verbose": false})),
            ("gaussian_mixture", json!({"n_components": 3, "covariance_type": "full", "tol": 0.001, "reg_covar": 0.000001, "max_iter": 100, "n_init": 1, "init_params": "kmeans",
                "weights_init": null, "means_init": null, "precisions_init": null, "random_state": 42, "warm_start": false, "verbose": 0, "verbose_interval": 10})),
        ] {
            let run = found(&server, &namespace, method, parameters).await;
            assert_eq!(run["num_clusters"], 3, "{method}: {run:#}");
        }
    }

    async fn parameters_that_would_do_nothing_are_refused(server) {
        let namespace = things(&server, "refused").await;
        let refuse = async |body: Value, loc: &[&str], kind: &str| {
            let loc: Vec<&str> = ["body", "vector_config"].iter().chain(loc).copied().collect();
            server.call_in(&namespace, "POST", "/v1/clusters", body).await.invalid(&loc, kind);
        };
        for (method, name, value, kind) in [
            ("kmeans", "eps", json!(0.5), "extra_forbidden"), ("kmeans", "init", json!("random-ish"), "enum"), ("kmeans", "tol", json!(-1), "float_type"),
            ("dbscan", "p", json!(1), "not_enabled"), ("dbscan", "metric", json!("manhattan"), "enum"), ("dbscan", "metric_params", json!({"w": 1}), "not_enabled"),
            ("hdbscan", "alpha", json!(0.5), "not_enabled"), ("hdbscan", "cluster_selection_method", json!("leaf"), "not_enabled"), ("hdbscan", "max_cluster_size", json!(3), "value_error"),
            ("hdbscan", "match_reference_implementation", json!(true), "not_enabled"), ("auto", "n_clusters", json!(3), "extra_forbidden"),
            ("agglomerative", "connectivity", json!([[1]]), "not_enabled"), ("agglomerative", "affinity", json!("cosine"), "value_error"), ("agglomerative", "metric", json!("l1"), "enum"),
            ("spectral", "affinity", json!("poly"), "enum"), ("spectral", "assign_labels", json!("discretize"), "not_enabled"), ("spectral", "degree", json!(2), "not_enabled"),
            ("gaussian_mixture", "covariance_type", json!("tied"), "enum"), ("gaussian_mixture", "means_init", json!([[1.0]]), "not_enabled"), ("gaussian_mixture", "warm_start", json!(true), "not_enabled"),
            ("leiden", "n_clusters", json!(3), "extra_forbidden"), ("optics", "n_clusters", json!(3), "extra_forbidden"), ("mean_shift", "n_clusters", json!(3), "extra_forbidden"),
            ("evoc", "n_clusters", json!(3), "extra_forbidden"),
        ] {
            refuse(by_vectors("x", method, json!({name: value})), &["algorithm_params", name], kind).await;
        }
        // Those of another method nobody would read, and of one said twice those in one place.
        let mut other = by_vectors("x", "hdbscan", json!({}));
        other["vector_config"]["kmeans_parameters"] = json!({"n_clusters": 3});
        refuse(other, &["kmeans_parameters"], "value_error").await;
        let mut twice = by_vectors("x", "kmeans", json!({"n_clusters": 3}));
        twice["vector_config"]["kmeans_parameters"] = json!({"n_clusters": 4});
        refuse(twice, &["algorithm_params"], "value_error").await;
        // What nothing is done by, half of a name, and weights of what is not clustered or without a bound.
        let with = |more: Value| {
            let mut body = by_vectors("x", "kmeans", json!({"n_clusters": 3}));
            body["vector_config"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        for (more, loc, kind) in [
            (json!({"effective_feature_method": "medoid"}), &["effective_feature_method"][..], "not_enabled"),
            (json!({"feature_uri": null, "feature_extractor_name": "passthrough_extractor", "output_name": "own"}), &["version"], "missing"),
            (json!({"feature_uri": "own", "feature_weights": {"other": 1.0}}), &["feature_weights", "other"], "value_error"),
            (json!({"feature_uri": "own", "feature_weights": {"own": 1e300}}), &["feature_weights", "own"], "value_error"),
            (json!({"feature_uri": "own", "feature_weights": {"own": 0.0}}), &["feature_weights"], "value_error"),
        ] {
            refuse(with(more), loc, kind).await;
        }
        let weighed = json!({"effective_feature_method": "mean", "feature_weights": {"own": 2.0}});
        let mut weighed = with(weighed);
        weighed["cluster_name"] = json!("weighed");
        make(&server, &namespace, weighed).await;
        let mut auto = by_vectors("auto", "auto", json!({}));
        auto["vector_config"]["hdbscan_parameters"] = json!({"min_cluster_size": 4});
        make(&server, &namespace, auto).await;
    }

    async fn covariances_that_would_take_for_ever_are_refused(server) {
        let namespace = server.namespace("wide").await;
        let collection = json!({"collection_name": "things", "source": {"type": "direct_upsert"}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1",
            "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 2048}]}}});
        server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok();
        for number in 0..12 {
            let mut vector = vec![0.0; 2048];
            vector[number % 3] = 1.0;
            vector[3 + number] = 0.1;
            let body = json!({"title": "wide", "vectors": {"own": vector}});
            server.call_in(&namespace, "POST", "/v1/collections/things/documents", body).await.ok();
        }
        // The default is as the interface has it: each number is held against each.
        for (parameters, fails) in [
            (json!({"n_components": 10}), true), (json!({"n_components": 10, "covariance_type": "full"}), true),
            (json!({"n_components": 10, "covariance_type": "diag"}), false), (json!({"n_components": 10, "covariance_type": "spherical"}), false),
        ] {
            let name = parameters.to_string();
            let id = make(&server, &namespace, by_vectors(&name, "gaussian_mixture", parameters)).await;
            let (task, run) = executed(&server, &namespace, &id, Value::Null).await;
            assert_eq!(task["status"] == "FAILED", fails, "{task:#}");
            let told = run["error_message"].as_str().unwrap_or_default();
            assert_eq!(told.contains("covariance_type"), fails, "{run:#}");
        }
    }

    async fn executions_tell_whether_it_is_time_to_gather_anew(server) {
        let namespace = things(&server, "anew").await;
        let id = make(&server, &namespace, by_vectors("kinds", "kmeans", json!({"n_clusters": 3}))).await;
        let run = async |request: Value| executed(&server, &namespace, &id, request).await.1["metrics"].clone();
        assert_eq!(run(Value::Null).await.get("should_recluster"), None);
        assert!(run(Value::Null).await["should_recluster"].as_f64().unwrap() < 1e-6);
        // Half of the documents are like no cluster.
        for number in 0..30 {
            write(&server, &namespace, "clouds", number, [-1.0, -0.5, 0.0]).await;
        }
        let assigned = run(json!({"mode": "assign"})).await;
        assert!((assigned["should_recluster"].as_f64().unwrap() - 0.5).abs() < 1e-6, "{assigned:#}");
        let anew = run(Value::Null).await;
        assert!(anew["should_recluster"].as_f64().unwrap() > 0.05, "{anew:#}");
    }
}
