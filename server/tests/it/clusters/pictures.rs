//! Pictures that lie as the ones before, where that is asked for.

use super::*;

async fn drawn(server: &Server, namespace: &str, id: &str) -> Vec<Value> {
    let path = format!("/v1/clusters/{id}/visualization");
    let picture = server.call_in(namespace, "GET", &path, Value::Null).await;
    picture.ok()["points"].as_array().unwrap().clone()
}

/// How far the documents of one picture are from their places in another on average.
fn apart(one: &[Value], other: &[Value]) -> f64 {
    let mut sum = 0.0;
    for point in one {
        let mut others = other.iter();
        let same = others.find(|was| was["document_id"] == point["document_id"]);
        let at = |point: &Value, axis: usize| point["position"][axis].as_f64().unwrap();
        let same = same.unwrap();
        sum += (at(point, 0) - at(same, 0)).hypot(at(point, 1) - at(same, 1));
    }
    sum / one.len() as f64
}

both! {
    async fn a_picture_is_laid_onto_the_one_before(server) {
        let namespace = things(&server, "laid").await;
        let mut body = by_vectors("kinds", "kmeans", json!({"n_clusters": 3}));
        body["vector_config"]["layout_stability"] = json!("align");
        let id = make(&server, &namespace, body).await;
        let told = |run: &Value| (run["layout_stability_applied"].clone(), run.get("layout_stability_reason").cloned());
        let run = async |request: Value| executed(&server, &namespace, &id, request).await.1;
        // What the cluster says holds for its executions; the first has nothing to lie on.
        let first = run(Value::Null).await;
        assert_eq!(told(&first), (json!("none"), Some(json!("there is no execution before"))), "{first:#}");
        let before = drawn(&server, &namespace, &id).await;
        assert_eq!(told(&run(Value::Null).await), (json!("aligned"), None));
        assert!(apart(&before, &drawn(&server, &namespace, &id).await) < 1e-3);
        // Documents in another direction turn the picture, unless it is laid.
        for number in 0..40 {
            write(&server, &namespace, "clouds", number, [-0.2, -1.0, 0.5]).await;
        }
        assert_eq!(told(&run(Value::Null).await), (json!("aligned"), None));
        let laid = apart(&before, &drawn(&server, &namespace, &id).await);
        assert_eq!(told(&run(json!({"layout_stability": "none"})).await), (json!("none"), None));
        let free = apart(&before, &drawn(&server, &namespace, &id).await);
        assert!(laid < free, "{laid} {free}");
        // What cannot be done is said.
        for (request, why) in [
            (json!({"layout_stability": "transform"}), "no layout is kept"),
            (json!({"vis_n_components": 3}), "two dimensions"),
            (Value::Null, "fewer than three"),
            (json!({"defer_visualization": true}), "no picture"),
        ] {
            let (applied, reason) = told(&run(request).await);
            assert_eq!(applied, "none");
            assert!(reason.unwrap().as_str().unwrap().contains(why), "{why}");
        }
    }
}
