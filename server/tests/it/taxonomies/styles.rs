//! How levels are taken over, wherever a taxonomy is applied; which are inferred, and what no taxonomy does.

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
        // Levels that name no fields give all that the document lacks, in the same ways.
        let bare = json!({"taxonomy_name": "bare", "config": {"taxonomy_type": "hierarchical", "retriever_id": shop.finder, "input_mappings": [{"input_key": "code", "path": "code"}],
            "hierarchical_nodes": [{"collection_id": goods}, {"collection_id": tools, "parent_collection_id": goods}]}});
        let bare = shop.make(&server, bare).await;
        let sent = shop.call(&server, "POST", &format!("/v1/taxonomies/{bare}/execute"), json!({"source_documents": [{"code": "x"}]})).await.ok();
        assert_eq!(sent["results"][0]["dept"], "tools", "{sent:#}");
        let others = collection(&server, &shop.namespace, "others", &[json!({"code": "x"})]).await;
        let body = json!({"taxonomy_applications": [{"taxonomy_id": bare, "hierarchical_enrichment_style": "full_chain"}]});
        shop.call(&server, "PATCH", "/v1/collections/others", body).await.ok();
        let shown = shop.call(&server, "POST", &format!("/v1/taxonomies/{bare}/execute"), json!({"source_collection_id": others})).await.ok();
        assert_eq!(shown["results"][0]["dept"], json!(["goods", "tools"]), "{shown:#}");
    }

    async fn what_is_neither_inferred_nor_analysed_is_refused(server) {
        let shop = shop(&server, "inferred").await;
        let mut steps = shop.flat("steps", json!([]));
        steps["config"]["step_analytics"] = json!({"timestamp_field": "at", "sequence_id_field": "who"});
        shop.call(&server, "POST", "/v1/taxonomies", steps).await.invalid(&["body", "config", "step_analytics"], "not_enabled");
        let tree = json!({"taxonomy_name": "llm", "config": {"taxonomy_type": "hierarchical", "retriever_id": shop.finder,
            "input_mappings": [{"input_key": "code", "path": "code"}], "inference_strategy": "llm", "inference_collections": [shop.kinds]}});
        shop.call(&server, "POST", "/v1/taxonomies", tree).await.invalid(&["body", "config", "inference_strategy"], "not_enabled");
    }

    async fn clusters_tell_which_collection_is_below_which(server) {
        let namespace = server.namespace("overlapping").await;
        let documents = |codes: &[&str]| codes.iter().map(|code| json!({"code": code})).collect::<Vec<_>>();
        let all = collection(&server, &namespace, "all", &documents(&["f", "t", "m"])).await;
        let most = collection(&server, &namespace, "most", &documents(&["f", "t", "t"])).await;
        // Three of four of its documents lie where others do.
        let few = collection(&server, &namespace, "few", &documents(&["t", "t", "t", "z"])).await;
        let finder = retriever(&server, &namespace, "kind of a code", by_code(&[&all, &most, &few])).await;
        let cluster = json!({"cluster_name": "codes", "collection_ids": [all, most, few], "cluster_type": "attribute", "attribute_config": {"attributes": ["code"]}});
        let cluster = crate::clusters::make(&server, &namespace, cluster).await;
        let make = async |name: &str, more: Value| {
            let mut config = json!({"taxonomy_type": "hierarchical", "retriever_id": finder, "input_mappings": [{"input_key": "code", "path": "code"}],
                "inference_strategy": "cluster", "cluster_ids": ["codes"]});
            config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            server.call_in(&namespace, "POST", "/v1/taxonomies", json!({"taxonomy_name": name, "config": config})).await
        };
        let path = |member: &'static str| ["body", "config", member];
        make("early", json!({})).await.invalid(&["body", "config", "cluster_ids", "0"], "value_error");
        crate::clusters::executed(&server, &namespace, &cluster, Value::Null).await;
        make("none", json!({"cluster_ids": []})).await.invalid(&path("cluster_ids"), "value_error");
        make("gone", json!({"cluster_ids": ["clu_none"]})).await.error(404, "NotFoundError");
        make("low", json!({"cluster_overlap_threshold": 0})).await.invalid(&path("cluster_overlap_threshold"), "out_of_range");

        let parents = |made: &Value| {
            let nodes = made["config"]["hierarchical_nodes"].as_array().unwrap().iter();
            let parent = |node: &Value| (node["collection_id"].as_str().unwrap().to_owned(), node["parent_collection_id"].clone());
            nodes.map(parent).collect::<std::collections::BTreeMap<_, _>>()
        };
        // What lies in as many clusters is not above.
        let made = make("codes", json!({})).await.ok();
        let told = parents(&made);
        assert_eq!((&told[&all], &told[&most], &told[&few]), (&Value::Null, &json!(all), &json!(all)), "{made:#}");
        let strict = make("strict", json!({"cluster_overlap_threshold": 0.8})).await.ok();
        let told = parents(&strict);
        assert_eq!((&told[&most], &told[&few]), (&json!(all), &Value::Null), "{strict:#}");
        let two = make("two", json!({"inference_collections": ["most", "all"]})).await.ok();
        assert_eq!(parents(&two).len(), 2, "{two:#}");
        // It is a taxonomy as others are.
        let execute = format!("/v1/taxonomies/{}/execute", made["taxonomy_id"].as_str().unwrap());
        let shown = server.call_in(&namespace, "POST", &execute, json!({"source_documents": [{"code": "t"}]})).await.ok();
        assert_eq!(shown["matches"][0]["path"][0], "all", "{shown:#}");
    }
}
