//! Triggers that fire once a condition holds: volume, drift and metrics.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{executed, id, make, search, write};
use crate::{
    both,
    harness::{Server, retriever},
    webhooks::Receiver,
};

/// The trigger once its condition has found this number.
async fn found(server: &Server, namespace: &str, id: &str, value: f64) -> Value {
    let start = Instant::now();
    loop {
        let path = format!("/v1/triggers/{id}");
        let trigger = server.call_in(namespace, "GET", &path, Value::Null).await;
        let trigger = trigger.ok();
        if trigger["last_volume_measurement"]["value"] == value {
            return trigger;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{trigger:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The trigger once its volume is held against so many documents.
async fn based(server: &Server, namespace: &str, id: &str, documents: i64) -> Value {
    let start = Instant::now();
    loop {
        let path = format!("/v1/triggers/{id}");
        let trigger = server.call_in(namespace, "GET", &path, Value::Null).await;
        let trigger = trigger.ok();
        if trigger["baseline_snapshot"]["documents"] == documents {
            return trigger;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{trigger:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

both! {
    async fn a_collection_that_grows_or_drifts_fires(server) {
        let (namespace, retriever) = retriever(&server, "measured").await;
        for title in ["one", "two"] {
            write(&server, &namespace, title).await;
        }
        let condition = |kind: &str, threshold: f64| json!({
            "condition_type": kind, "threshold": threshold, "collection_id": "things", "check_interval_seconds": 60,
        });
        let volume = id(&make(&server, &namespace, search(&retriever, "conditional", condition("volume", 0.5))).await);
        let drift = id(&make(&server, &namespace, search(&retriever, "conditional", condition("drift", 0.2))).await);
        let checked = async |id: &str| {
            let start = Instant::now();
            loop {
                let trigger = server.call_in(&namespace, "GET", &format!("/v1/triggers/{id}"), Value::Null).await.ok();
                let at = trigger["last_condition_check_at"].as_str().map(|at| at.parse::<chrono::DateTime<chrono::Utc>>().unwrap());
                if at.is_some_and(|at| server.app.clock().now() - at < chrono::Duration::seconds(50)) {
                    return trigger;
                }
                assert!(start.elapsed() < Duration::from_secs(180), "{trigger:#}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        assert_eq!(checked(&volume).await["baseline_snapshot"], json!({"documents": 2}));
        checked(&drift).await;
        // One document more, at a right angle: half as many again, and the mean has turned.
        let path = "/v1/collections/things/documents";
        server.call_in(&namespace, "POST", path, json!({"title": "three", "vectors": {"own": [0.0, 5.0, 0.0]}})).await.ok();
        server.app.clock().advance(61);
        let fired = executed(&server, &namespace, &volume, 1).await;
        assert_eq!((&fired["last_volume_measurement"]["change"], &fired["baseline_snapshot"]["documents"]), (&json!(0.5), &json!(3)));
        let fired = checked(&drift).await;
        assert!(fired["last_drift_measurement"]["distance"].as_f64().unwrap() > 0.1, "{fired:#}");
        server.app.clock().advance(61);
        checked(&volume).await;
        executed(&server, &namespace, &volume, 1).await;
    }

    async fn a_metric_fires_when_it_begins_to_hold(server) {
        let (namespace, retriever) = retriever(&server, "metrics").await;
        for title in ["one", "two"] {
            write(&server, &namespace, title).await;
        }
        // No collection is named: the retriever's are meant.
        let condition = |more: Value| {
            let mut condition = json!({"condition_type": "metric", "metric": "document_count", "threshold": 3, "check_interval_seconds": 60});
            condition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            condition
        };
        let more = id(&make(&server, &namespace, search(&retriever, "conditional", condition(json!({})))).await);
        assert_eq!(found(&server, &namespace, &more, 2.0).await["execution_count"], 0);
        // What is so from the start has begun to be so.
        let fewer = search(&retriever, "conditional", condition(json!({"operator": "lt"})));
        let fewer = id(&make(&server, &namespace, fewer).await);
        executed(&server, &namespace, &fewer, 1).await;
        write(&server, &namespace, "three").await;
        server.app.clock().advance(61);
        executed(&server, &namespace, &more, 1).await;
        write(&server, &namespace, "four").await;
        server.app.clock().advance(61);
        let again = found(&server, &namespace, &more, 4.0).await;
        assert_eq!((&again["execution_count"], &again["baseline_snapshot"]["held"]), (&json!(1), &json!(true)));
        executed(&server, &namespace, &fewer, 1).await;
        let strange = search(&retriever, "conditional", condition(json!({"metric": "mood"})));
        server.call_in(&namespace, "POST", "/v1/triggers", strange).await
            .invalid(&["body", "schedule_config", "metric"], "value_error");
    }

    async fn a_condition_that_is_changed_forgets_what_it_measured(server) {
        let (namespace, retriever) = retriever(&server, "changed").await;
        server.call_in(&namespace, "POST", "/v1/collections", json!({
            "collection_name": "more", "source": {"type": "direct_upsert"},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
        })).await.ok();
        for title in ["one", "two"] {
            write(&server, &namespace, title).await;
        }
        for title in ["a", "b", "c", "d", "e"] {
            server.call_in(&namespace, "POST", "/v1/collections/more/documents", json!({"title": title})).await.ok();
        }
        let condition = |kind: &str, metric: &str, threshold: f64, collection: &str| json!({
            "condition_type": kind, "metric": metric, "threshold": threshold, "collection_id": collection, "check_interval_seconds": 60,
        });
        let volume = |collection: &str| condition("volume", "relative", 1.0, collection);
        let metric = |collection: &str| condition("metric", "document_count", 2.0, collection);
        let grown = id(&make(&server, &namespace, search(&retriever, "conditional", volume("things"))).await);
        let held = id(&make(&server, &namespace, search(&retriever, "conditional", metric("things"))).await);
        let patch = async |id: &str, config: Value| {
            let path = format!("/v1/triggers/{id}");
            server.call_in(&namespace, "PATCH", &path, json!({"schedule_config": config})).await.ok()
        };
        based(&server, &namespace, &grown, 2).await;
        executed(&server, &namespace, &held, 1).await;
        // What is sent as it was changes nothing.
        assert_eq!(patch(&grown, volume("things")).await["baseline_snapshot"], json!({"documents": 2}));
        assert_eq!(patch(&held, metric("things")).await["baseline_snapshot"]["held"], true);
        // Another collection has not grown, but is over the threshold by itself.
        assert_eq!(patch(&grown, volume("more")).await["baseline_snapshot"], Value::Null);
        assert_eq!(patch(&held, metric("more")).await["baseline_snapshot"], Value::Null);
        server.app.clock().advance(61);
        assert_eq!(based(&server, &namespace, &grown, 5).await["execution_count"], 0);
        executed(&server, &namespace, &held, 2).await;
    }

    async fn a_condition_measures_what_the_key_that_makes_it_may_read(server) {
        let (namespace, retriever) = retriever(&server, "sight").await;
        let things = server.call_in(&namespace, "GET", "/v1/collections/things", Value::Null).await.ok()["collection_id"].clone();
        let receiver = Receiver::start().await;
        let alert = crate::alerts::watch("watch", &retriever, &receiver.url);
        let alert = crate::alerts::make(&server, &namespace, alert).await["alert_id"].clone();
        let whole = json!({"resource_type": "namespace", "resource_id": namespace, "operations": ["write_data", "execute_retriever", "execute_job"]});
        let key = async |name: &str, scopes: Value| {
            let body = json!({"name": name, "permissions": ["write"], "scopes": scopes});
            let made = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", body).await.ok();
            made["key"].as_str().unwrap().to_owned()
        };
        let blind = key("blind", json!([whole])).await;
        let of_things = json!({"resource_type": "collection", "resource_id": things, "operations": ["read_data"]});
        let seeing = key("seeing", json!([whole, of_things])).await;
        let call = async |key: &str, method: &str, path: &str, body: Value| {
            let request = server.request(method, path).bearer_auth(key).header("x-namespace", &namespace);
            Server::send(request.json(&body)).await
        };
        let measures = |condition: Value| search(&retriever, "conditional", condition);
        let volume = json!({"condition_type": "volume", "threshold": 1.0});
        let named = json!({"condition_type": "volume", "threshold": 1.0, "collection_id": "things"});
        let figure = |metric: &str| json!({"condition_type": "metric", "metric": metric, "threshold": 1.0});
        let mut of_alert = measures(volume.clone());
        of_alert["action_type"] = "alert_evaluation".into();
        of_alert["action_config"] = json!({"alert_id": alert});
        // Nothing names a collection: all of the namespace are measured, by whoever may read it.
        let all = [of_alert, measures(figure("error_rate")), measures(figure("latency_ms"))];
        let some = [measures(volume.clone()), measures(named.clone()), measures(figure("document_count"))];
        for (key, bodies) in [(&blind, &all), (&blind, &some), (&seeing, &all)] {
            for body in bodies {
                let refused = call(key, "POST", "/v1/triggers", body.clone()).await.error(403, "ForbiddenError");
                assert_eq!(refused["error"]["code"], "scope_denied", "{body}");
            }
        }
        for body in &some {
            call(&seeing, "POST", "/v1/triggers", body.clone()).await.ok();
        }
        for body in &all {
            make(&server, &namespace, body.clone()).await;
        }
        call(&blind, "POST", "/v1/triggers", search(&retriever, "interval", json!({"interval_seconds": 60}))).await.ok();
        // The same goes for what is changed.
        let path = format!("/v1/triggers/{}", id(&make(&server, &namespace, measures(named.clone())).await));
        for (key, schedule, is_let) in [(&blind, named, false), (&seeing, volume, true), (&seeing, figure("error_rate"), false)] {
            let answer = call(key, "PATCH", &path, json!({"schedule_config": schedule})).await;
            assert_eq!(answer.status, if is_let { 200 } else { 403 }, "{schedule}");
        }
        call(&blind, "PATCH", &path, json!({"name": "another"})).await.ok();
    }

    async fn every_metric_is_measured(server) {
        let (namespace, retriever) = retriever(&server, "figures").await;
        write(&server, &namespace, "one").await;
        let asked = json!({"inputs": {}});
        let path = format!("/v1/retrievers/{retriever}/execute");
        server.call_in(&namespace, "POST", &path, asked).await;
        // Where nothing tells a figure, nothing holds, and nothing fails.
        for metric in [
            "error_rate", "latency_ms", "no_result_rate", "silhouette_score", "davies_bouldin_index", "calinski_harabasz_score",
            "noise_ratio", "avg_cluster_size", "cluster_size_entropy", "mean_cosine_to_centroid",
        ] {
            let condition = json!({"condition_type": "metric", "metric": metric, "threshold": 1e12});
            let id = id(&make(&server, &namespace, search(&retriever, "conditional", condition)).await);
            let start = Instant::now();
            loop {
                let trigger = server.call_in(&namespace, "GET", &format!("/v1/triggers/{id}"), Value::Null).await.ok();
                if trigger["baseline_snapshot"]["metric"] == metric {
                    assert_eq!(trigger["consecutive_failures"], 0, "{trigger:#}");
                    break;
                }
                assert!(start.elapsed() < Duration::from_secs(180), "{trigger:#}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}
