//! How levels are taken over, wherever a taxonomy is applied; and what no taxonomy does.

use super::*;

both! {
    async fn levels_are_taken_over_as_the_collection_says(server) {
        let namespace = server.namespace("styles").await;
        let goods = collection(&server, &namespace, "goods", &[json!({"code": "x", "dept": "goods"})]).await;
        let tools = collection(&server, &namespace, "tools", &[json!({"code": "x", "dept": "tools"})]).await;
        let finder = retriever(&server, &namespace, "both", by_code(&[&goods, &tools])).await;
        let shop = Shop { namespace, kinds: goods.clone(), finder: finder.clone() };
        let fields = json!([{"field_path": "dept"}]);
        let levels = json!({"taxonomy_name": "levels", "config": {"taxonomy_type": "hierarchical", "retriever_id": finder, "input_mappings": [{"input_key": "code", "path": "code"}],
            "hierarchical_nodes": [{"collection_id": goods, "enrichment_fields": fields}, {"collection_id": tools, "parent_collection_id": goods, "enrichment_fields": fields}]}});
        let id = shop.make(&server, levels).await;
        let things = collection(&server, &shop.namespace, "things", &[json!({"name": "a", "code": "x"})]).await;
        let style = async |style: &str| {
            let body = json!({"taxonomy_applications": [{"taxonomy_id": id, "hierarchical_enrichment_style": style}]});
            shop.call(&server, "PATCH", "/v1/collections/things", body).await.ok();
        };
        let path = format!("/v1/taxonomies/{id}/execute");
        let (chain, whole) = (json!(["goods", "tools"]), json!({"source_collection_id": things}));
        style("full_chain").await;
        let shown = shop.call(&server, "POST", &path, whole.clone()).await.ok();
        assert_eq!(shown["results"][0]["dept"], chain, "{shown:#}");
        // Documents that are sent are no collection's: the deepest level wins.
        let sent = shop.call(&server, "POST", &path, json!({"source_documents": [{"code": "x"}]})).await.ok();
        assert_eq!(sent["results"][0]["dept"], "tools", "{sent:#}");
        let mut stored = whole;
        stored["join_mode"] = json!("batch");
        let begun = shop.call(&server, "POST", &path, stored).await.ok();
        server.task_end(begun["task_id"].as_str().unwrap()).await;
        assert_eq!(shop.documents(&server, &things).await[0]["dept"], chain);
        for (name, dept) in [("best_match", json!("tools")), ("full_chain", chain), ("combined", json!("tools"))] {
            style(name).await;
            let begun = shop.call(&server, "POST", "/v1/collections/things/apply-taxonomy", json!({"taxonomy_id": id})).await.ok();
            server.task_end(begun["task_id"].as_str().unwrap()).await;
            assert_eq!(shop.documents(&server, &things).await[0]["dept"], dept, "{name}");
        }
    }

    async fn what_is_neither_inferred_nor_analysed_is_refused(server) {
        let shop = shop(&server, "inferred").await;
        let mut steps = shop.flat("steps", json!([]));
        steps["config"]["step_analytics"] = json!({"timestamp_field": "at", "sequence_id_field": "who"});
        shop.call(&server, "POST", "/v1/taxonomies", steps).await.invalid(&["body", "config", "step_analytics"], "not_enabled");
        for strategy in ["cluster", "llm"] {
            let tree = json!({"taxonomy_name": strategy, "config": {"taxonomy_type": "hierarchical", "retriever_id": shop.finder,
                "input_mappings": [{"input_key": "code", "path": "code"}], "inference_strategy": strategy, "inference_collections": [shop.kinds]}});
            shop.call(&server, "POST", "/v1/taxonomies", tree).await.invalid(&["body", "config", "inference_strategy"], "not_enabled");
        }
    }
}
