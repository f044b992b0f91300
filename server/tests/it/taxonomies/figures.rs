//! Figures of what taxonomies gave to documents.

use super::*;

async fn get(server: &Server, namespace: &str, path: &str) -> crate::harness::Answer {
    let path = format!("/v1/analytics/taxonomies/{path}");
    server.call_in(namespace, "GET", &path, Value::Null).await
}

both! {
    async fn what_taxonomies_gave_is_counted(server) {
        let shop = shop(&server, "counting").await;
        let id = shop.make(&server, shop.flat("kinds", tax_and_facts())).await;
        let none = get(&server, &shop.namespace, &format!("{id}/assignments")).await.ok();
        assert_eq!((&none["metrics"], &none["summary"]["assignment_count"]), (&json!([]), &json!(0)), "{none:#}");
        // Two of a kind, one of another, one that fails, one of no kind.
        let things = [
            json!({"name": "apple", "article": {"code": "f"}}), json!({"name": "pear", "article": {"code": "f"}}),
            json!({"name": "hammer", "article": {"code": "t"}}), json!({"name": "nothing"}), json!({"name": "stone", "article": {"code": "s"}}),
        ];
        let things = collection(&server, &shop.namespace, "things", &things).await;
        let path = format!("/v1/collections/{things}/apply-taxonomy");
        let begun = shop.call(&server, "POST", &path, json!({"taxonomy_id": id})).await.ok();
        server.task_end(begun["task_id"].as_str().unwrap()).await;
        // One more that fails, as it comes.
        let written = json!({"collection_name": "written", "source": {"type": "direct_upsert"}, "taxonomy_applications": [{"taxonomy_id": id}],
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        shop.call(&server, "POST", "/v1/collections", written).await.ok();
        shop.call(&server, "POST", "/v1/collections/written/documents", json!({"name": "lacking"})).await.ok();

        let told = get(&server, &shop.namespace, &format!("{id}/assignments?group_by=month")).await.ok();
        let summary = &told["summary"];
        assert_eq!((&told["taxonomy_id"], &summary["assignment_count"], &summary["unique_labels"], &summary["is_exact"]), (&json!(id), &json!(3), &json!(2), &json!(true)), "{told:#}");
        let counts = told["metrics"].as_array().unwrap().iter().map(|one| one["assignment_count"].as_i64().unwrap());
        assert_eq!(counts.sum::<i64>(), 3);
        let labels = get(&server, &shop.namespace, "kinds/labels").await.ok();
        let given: Vec<_> = labels["labels"].as_array().unwrap().iter().map(|one| (one["label"].as_str().unwrap(), one["count"].as_i64().unwrap())).collect();
        assert_eq!((given, &labels["total_labels"], &labels["total_assignments"], &labels["truncated"]), (vec![("Fruit", 2), ("Tools", 1)], &json!(2), &json!(3), &json!(false)));
        let first = get(&server, &shop.namespace, &format!("{id}/labels?limit=1")).await.ok();
        assert_eq!((&first["labels_returned"], &first["total_labels"], &first["truncated"]), (&json!(1), &json!(2), &json!(true)));
        let history = get(&server, &shop.namespace, &format!("{id}/enrichments")).await.ok();
        let summary = &history["summary"];
        assert_eq!((&summary["enrichment_count"], &summary["success_count"], &summary["failure_count"]), (&json!(5), &json!(3), &json!(2)), "{history:#}");
        assert!(summary["avg_latency_ms"].as_f64().unwrap() > 0.0 && summary["success_rate"] == 0.6, "{history:#}");

        // Only what was given in the time counts.
        let before = get(&server, &shop.namespace, &format!("{id}/enrichments?end_date=2020-01-01")).await.ok();
        assert_eq!((&before["metrics"], &before["summary"]["enrichment_count"]), (&json!([]), &json!(0)));
        server.app.clock().advance(3 * 86_400);
        let late = get(&server, &shop.namespace, &format!("{id}/labels?hours=24")).await.ok();
        assert_eq!((&late["labels"], &late["total_assignments"]), (&json!([]), &json!(0)));

        for (path, name, kind) in [("labels?limit=0", "limit", "range"), ("confidence?hours=721", "hours", "range"), ("assignments?group_by=minute", "group_by", "enum")] {
            get(&server, &shop.namespace, &format!("{id}/{path}")).await.invalid(&["query", name], kind);
        }
        for figures in ["assignments", "confidence", "enrichments", "labels"] {
            get(&server, &shop.namespace, &format!("tax_none/{figures}")).await.error(404, "NotFoundError");
        }
    }

    async fn scores_are_told_by_their_range(server) {
        let (namespace, _) = crate::harness::retriever(&server, "subjects").await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await.ok();
        let mut ids = Vec::new();
        for (title, vector) in [("a ship", [1.0, 0.0, 0.0]), ("a boat", [0.99, 0.1, 0.0]), ("bread", [0.0, 1.0, 0.0])] {
            ids.push(call("/v1/collections/things/documents", json!({"title": title, "vectors": {"own": vector}})).await["document_id"].clone());
        }
        let body = json!({"taxonomy_name": "subjects", "node_label": "Sea", "documents": [{"collection_id": "things", "document_id": ids[0]}]});
        let made = call("/v1/taxonomies/from-documents", body).await;
        let task = call("/v1/collections/things/apply-taxonomy", json!({"taxonomy_id": "subjects"})).await;
        server.task_end(task["task_id"].as_str().unwrap()).await;
        let id = made["taxonomy_id"].as_str().unwrap();
        let told = get(&server, &namespace, &format!("{id}/confidence")).await.ok();
        let ranges: Vec<&str> = told["distribution"].as_array().unwrap().iter().map(|one| one["confidence_range"].as_str().unwrap()).collect();
        assert_eq!(ranges, ["0.0-0.2", "0.2-0.4", "0.4-0.6", "0.6-0.8", "0.8-1.0"]);
        let counts: Vec<i64> = told["distribution"].as_array().unwrap().iter().map(|one| one["count"].as_i64().unwrap()).collect();
        assert_eq!((counts.iter().sum::<i64>(), counts[4]), (told["low_confidence_count"].as_i64().unwrap() + 2, 2), "{told:#}");
        let labels = get(&server, &namespace, &format!("{id}/labels")).await.ok();
        assert_eq!((&labels["labels"][0]["label"], &labels["labels"][0]["avg_confidence"]), (&json!("Sea"), &told["avg_confidence"]));
    }
}
