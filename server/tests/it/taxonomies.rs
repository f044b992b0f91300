//! Taxonomies: nodes found by retrievers, what documents take over, at once, by a task, as they come, and in searches.

mod failing;
mod figures;
mod promoting;
mod styles;

use serde_json::{Value, json};

use crate::{
    both,
    harness::Server,
    stages::{collection, execute, stage},
};

/// A place with three kinds of things and a retriever that finds the kind of a code.
struct Shop {
    namespace: String,
    kinds: String,
    finder: String,
}

async fn retriever(server: &Server, namespace: &str, name: &str, body: Value) -> String {
    let mut body = body;
    body["retriever_name"] = name.into();
    let made = server
        .call_in(namespace, "POST", "/v1/retrievers", body)
        .await
        .ok();
    made["retriever_id"].as_str().unwrap().to_owned()
}

/// Finds documents whose `code` is the input.
fn by_code(collections: &[&str]) -> Value {
    json!({
        "collection_identifiers": collections,
        "input_schema": {"code": {"type": "string", "required": true}},
        "stages": [stage("attribute_filter", json!({"conditions": {"AND": [{"field": "code", "operator": "eq", "value": "{{INPUT.code}}"}]}}))],
    })
}

async fn shop(server: &Server, name: &str) -> Shop {
    let namespace = server.namespace(name).await;
    let kinds = [
        json!({"label": "Fruit", "code": "f", "tax": 7, "facts": ["sweet", "round"]}),
        json!({"label": "Tools", "code": "t", "tax": 20, "facts": ["hard"]}),
    ];
    let kinds = collection(server, &namespace, "kinds", &kinds).await;
    let finder = retriever(server, &namespace, "kind of a code", by_code(&[&kinds])).await;
    Shop {
        namespace,
        kinds,
        finder,
    }
}

impl Shop {
    fn flat(&self, name: &str, fields: Value) -> Value {
        json!({"taxonomy_name": name, "config": {
            "taxonomy_type": "flat", "retriever_id": self.finder,
            "input_mappings": [{"input_key": "code", "source_type": "payload", "path": "article.code"}],
            "source_collection": {"collection_id": self.kinds, "enrichment_fields": fields},
        }})
    }

    async fn make(&self, server: &Server, body: Value) -> String {
        let path = "/v1/taxonomies";
        let made = server
            .call_in(&self.namespace, "POST", path, body)
            .await
            .ok();
        made["taxonomy_id"].as_str().unwrap().to_owned()
    }

    async fn call(
        &self,
        server: &Server,
        method: &str,
        path: &str,
        body: Value,
    ) -> crate::harness::Answer {
        server.call_in(&self.namespace, method, path, body).await
    }

    async fn documents(&self, server: &Server, collection: &str) -> Vec<Value> {
        let path = format!("/v1/collections/{collection}/documents/list");
        let body = json!({"sort": {"field": "name", "direction": "asc"}});
        let page = self.call(server, "POST", &path, body).await.ok();
        page["results"].as_array().unwrap().clone()
    }
}

fn tax_and_facts() -> Value {
    json!([{"field_path": "tax", "target_field": "price.tax"}, {"field_path": "facts", "merge_mode": "append"}])
}

/// By a trigger, only what was not done before.
async fn a_trigger_takes_what_is_new(server: &Server, shop: &Shop, id: &str, things: &str) {
    let fresh = json!({"name": "zinc saw", "article": {"code": "t"}});
    shop.call(
        server,
        "POST",
        &format!("/v1/collections/{things}/documents"),
        fresh,
    )
    .await
    .ok();
    let trigger = json!({"name": "enrich", "trigger_type": "interval", "schedule_config": {"interval_seconds": 3600}, "action_type": "taxonomy_enrichment",
        "action_config": {"taxonomy_id": id, "collection_id": things, "incremental": true, "filters": {"field": "name", "operator": "ne", "value": "stone"}}});
    let trigger = shop
        .call(server, "POST", "/v1/triggers", trigger)
        .await
        .ok();
    let task = shop
        .call(
            server,
            "POST",
            &format!(
                "/v1/triggers/{}/execute",
                trigger["trigger_id"].as_str().unwrap()
            ),
            Value::Null,
        )
        .await
        .ok();
    let task = server.task_end(task["task_id"].as_str().unwrap()).await;
    assert_eq!(
        (
            &task["status"],
            &task["outputs"][0]["processed_docs"],
            &task["outputs"][0]["enriched"]
        ),
        (&json!("COMPLETED"), &json!(1), &json!(1)),
        "{task:#}"
    );
    let unknown = json!({"name": "no", "trigger_type": "interval", "schedule_config": {"interval_seconds": 3600}, "action_type": "taxonomy_enrichment",
        "action_config": {"taxonomy_id": "tax_none", "collection_id": things}});
    shop.call(server, "POST", "/v1/triggers", unknown)
        .await
        .error(404, "NotFoundError");
}

both! {
    async fn taxonomies_are_made_listed_versioned_cloned_and_removed(server) {
        let shop = shop(&server, "shop").await;
        let id = shop.make(&server, shop.flat("kinds", tax_and_facts())).await;
        let path = format!("/v1/taxonomies/{id}");
        let made = shop.call(&server, "GET", &path, Value::Null).await.ok();
        assert_eq!((&made["version"], &made["retriever_id"], &made["config"]["top_k"]), (&json!(1), &json!(shop.finder), &json!(1)));
        let listed = shop.call(&server, "POST", "/v1/taxonomies/list?include_total=true", json!({"search": "kinds"})).await.ok();
        assert_eq!((&listed["total_count"], &listed["stats"]["flat_taxonomies"]), (&json!(1), &json!(1)));
        shop.call(&server, "POST", "/v1/taxonomies", shop.flat("kinds", json!(null))).await.error(409, "AlreadyExistsError");

        let named = shop.call(&server, "PATCH", &path, json!({"taxonomy_name": "sorts", "metadata": {"by": "Ada"}})).await.ok();
        assert_eq!((&named["taxonomy_name"], &named["metadata"]["by"], &named["version"]), (&json!("sorts"), &json!("Ada"), &json!(1)));
        let bare = shop.call(&server, "PATCH", &path, json!({"metadata": null, "description": null})).await.ok();
        assert_eq!((&bare["metadata"]["by"], &bare["description"], &bare["taxonomy_name"]), (&Value::Null, &Value::Null, &json!("sorts")));
        shop.call(&server, "PATCH", &path, json!({"config": {}})).await.invalid(&["body", "config"], "extra_forbidden");
        // A version has other settings around the same core.
        let mut config = made["config"].clone();
        config["top_k"] = json!(3);
        let second = shop.call(&server, "POST", &format!("{path}/versions"), json!({"config": config, "description": "three"})).await.ok();
        assert_eq!((&second["version"], &second["config"]["top_k"]), (&json!(2), &json!(3)));
        config["input_mappings"][0]["path"] = json!("code");
        shop.call(&server, "POST", &format!("{path}/versions"), json!({"config": config})).await
            .invalid(&["body", "config", "input_mappings"], "immutable_field");
        let first = shop.call(&server, "GET", &format!("{path}?version=1"), Value::Null).await.ok();
        assert_eq!((&first["config"]["top_k"], &first["taxonomy_name"]), (&json!(1), &json!("sorts")));
        shop.call(&server, "GET", &format!("{path}?version=3"), Value::Null).await.error(404, "NotFoundError");
        let versions = shop.call(&server, "GET", "/v1/taxonomies/sorts/versions", Value::Null).await.ok();
        assert_eq!((&versions["total_count"], &versions["results"][0]["version"]), (&json!(2), &json!(2)));

        let other = retriever(&server, &shop.namespace, "another", by_code(&[&shop.kinds])).await;
        let clone = shop.call(&server, "POST", &format!("{path}/clone"), json!({"taxonomy_name": "copy", "retriever_id": other})).await.ok();
        assert_eq!((&clone["source_taxonomy_id"], &clone["taxonomy"]["config"]["retriever_id"], &clone["taxonomy"]["version"]), (&json!(id), &json!(other), &json!(1)));
        assert_eq!(clone["taxonomy_id"], clone["taxonomy"]["taxonomy_id"]);

        shop.call(&server, "DELETE", &path, Value::Null).await.ok();
        shop.call(&server, "GET", &path, Value::Null).await.error(404, "NotFoundError");
        shop.call(&server, "GET", &format!("{path}/versions"), Value::Null).await.error(404, "NotFoundError");
        for (kind, count) in [("taxonomy.created", 2), ("taxonomy.updated", 3), ("taxonomy.deleted", 1)] {
            assert_eq!(server.events(kind).await.len(), count, "{kind}");
        }
    }

    async fn what_cannot_be_is_refused_with_its_place(server) {
        let shop = shop(&server, "refusing").await;
        let refuse = async |body: Value, loc: &[&str], kind: &str| {
            let loc: Vec<&str> = ["body", "config"].iter().chain(loc).copied().collect();
            shop.call(&server, "POST", "/v1/taxonomies", body).await.invalid(&loc, kind);
        };
        let with = |pointer: &str, value: Value| {
            let mut body = shop.flat("wrong", tax_and_facts());
            *body["config"].pointer_mut(pointer).unwrap() = value;
            body
        };
        refuse(with("/input_mappings/0/input_key", json!("colour")), &["input_mappings", "0", "input_key"], "value_error").await;
        refuse(with("/input_mappings/0/source_type", json!("blob")), &["input_mappings", "0", "source_type"], "not_enabled").await;
        refuse(with("/input_mappings", json!([])), &["input_mappings"], "value_error").await;
        refuse(with("/source_collection/enrichment_fields/0/target_field", json!("_internal.x")), &["source_collection", "enrichment_fields", "0", "target_field"], "value_error").await;
        let things = collection(&server, &shop.namespace, "things", &[]).await;
        refuse(with("/source_collection/collection_id", json!(things)), &["source_collection", "collection_id"], "value_error").await;
        shop.call(&server, "POST", "/v1/taxonomies", with("/retriever_id", json!("ret_none"))).await.error(404, "NotFoundError");
        let tree = |more: Value| {
            let mut config = json!({"taxonomy_type": "hierarchical", "retriever_id": shop.finder, "input_mappings": [{"input_key": "code", "path": "code"}]});
            config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"taxonomy_name": "tree", "config": config})
        };
        refuse(tree(json!({})), &["hierarchical_nodes"], "value_error").await;
        refuse(tree(json!({"inference_strategy": "llm"})), &["inference_strategy"], "not_enabled").await;
        refuse(tree(json!({"hierarchical_nodes": [{"collection_id": shop.kinds, "parent_collection_id": "col_x"}]})), &["hierarchical_nodes", "0", "parent_collection_id"], "value_error").await;
        let id = shop.make(&server, shop.flat("fine", json!(null))).await;
        let path = format!("/v1/taxonomies/{id}/execute");
        shop.call(&server, "POST", &path, json!({})).await.invalid(&["body", "source_documents"], "missing");
        shop.call(&server, "POST", &path, json!({"source_documents": vec![json!({}); 101]})).await.invalid(&["body", "source_documents"], "too_long");
        shop.call(&server, "POST", &path, json!({"join_mode": "batch", "source_documents": [{}]})).await.invalid(&["body", "join_mode"], "value_error");
        shop.call(&server, "POST", &path, json!({"taxonomy": {"taxonomy_id": "tax_other"}, "source_documents": []})).await.invalid(&["body", "taxonomy", "taxonomy_id"], "value_error");
    }

    async fn documents_are_shown_enriched_and_stored_by_a_task(server) {
        let shop = shop(&server, "enriching").await;
        let id = shop.make(&server, shop.flat("kinds", tax_and_facts())).await;
        let path = format!("/v1/taxonomies/{id}/execute");
        let shown = shop.call(&server, "POST", &path, json!({"source_documents": [
            {"name": "apple", "article": {"code": "f"}, "facts": "red"}, {"name": "stone", "article": {"code": "s"}}, {"name": "nothing"},
        ]})).await.ok();
        assert_eq!(shown["stats"], json!({"processed_docs": 3, "batches": 1, "errors": 1, "enriched": 1}));
        assert_eq!(shown["results"][0], json!({"name": "apple", "article": {"code": "f"}, "facts": ["red", "sweet", "round"], "price": {"tax": 7}}));
        assert_eq!((&shown["results"][1]["price"], &shown["matches"][0]["label"], &shown["matches"][0]["path"]), (&Value::Null, &json!("Fruit"), &json!(["Fruit"])));
        assert_eq!(shown["matches"][0]["enriched_fields"], json!(["price.tax", "facts"]));
        assert!(shown["first_error"].as_str().unwrap().contains("code"), "{shown:#}");

        let things = [json!({"name": "apple", "article": {"code": "f"}}), json!({"name": "hammer", "article": {"code": "t"}}), json!({"name": "stone", "article": {"code": "s"}})];
        let things = collection(&server, &shop.namespace, "things", &things).await;
        let preview = shop.call(&server, "POST", &path, json!({"source_collection_id": "things", "scroll_filters": {"field": "name", "operator": "eq", "value": "hammer"}})).await.ok();
        assert_eq!((preview["results"].as_array().unwrap().len(), &preview["results"][0]["price"]["tax"]), (1, &json!(20)));
        assert_eq!(shop.documents(&server, &things).await[0].get("price"), None);

        let begun = shop.call(&server, "POST", &path, json!({"source_collection_id": things, "join_mode": "batch"})).await.ok();
        let task = server.task_end(begun["task_id"].as_str().unwrap()).await;
        assert_eq!((&task["status"], &task["task_type"], &task["outputs"][0]["enriched"]), (&json!("COMPLETED"), &json!("api_taxonomies_materialize"), &json!(2)));
        assert_eq!(task["additional_data"]["progress"]["processed"], 3);
        let start = std::time::Instant::now();
        let told = loop {
            if let Some(event) = server.events("resource.executed").await.pop() {
                break event["payload"].clone();
            }
            assert!(start.elapsed().as_secs() < 180, "the change feed is not told");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        assert_eq!((&told["resource_type"], &told["resource_id"], &told["task_id"], &told["enriched"]), (&json!("taxonomy"), &json!(id), &begun["task_id"], &json!(2)));
        // Again, by the collection: nothing grows.
        let applied = shop.call(&server, "POST", "/v1/collections/things/apply-taxonomy", json!({"taxonomy_id": "kinds"})).await.ok();
        assert_eq!((&applied["taxonomy_id"], &applied["collection_id"], &applied["estimated_documents"]), (&json!(id), &json!(things), &json!(3)));
        server.task_end(applied["task_id"].as_str().unwrap()).await;
        let stored = shop.documents(&server, &things).await;
        assert_eq!((&stored[0]["price"]["tax"], &stored[0]["facts"], stored[2].get("price")), (&json!(7), &json!(["sweet", "round"]), None));
        let lineage = stored[0]["_internal"]["processing"]["taxonomy_lineage"].as_array().unwrap();
        assert_eq!((lineage.len(), &lineage[0]["taxonomy_id"], &lineage[0]["label"], &lineage[0]["version"]), (1, &json!(id), &json!("Fruit"), &json!(1)));
        assert_eq!(server.events("documents.updated.batch").await.len(), 2);

        // Into another collection: the same copies again when it is done again.
        let shelf = collection(&server, &shop.namespace, "shelf", &[]).await;
        for _ in 0..2 {
            let body = json!({"source_collection_id": things, "target_collection_id": "shelf", "join_mode": "batch"});
            let begun = shop.call(&server, "POST", &path, body).await.ok();
            server.task_end(begun["task_id"].as_str().unwrap()).await;
        }
        let copies = shop.documents(&server, &shelf).await;
        assert_eq!((copies.len(), &copies[1]["price"]["tax"]), (2, &json!(20)));
        assert_eq!(copies[0]["_internal"]["lineage"]["source_document_id"], stored[0]["document_id"]);

        a_trigger_takes_what_is_new(&server, &shop, &id, &things).await;
    }

    async fn collections_apply_taxonomies_to_what_comes(server) {
        let shop = shop(&server, "coming").await;
        let id = shop.make(&server, shop.flat("kinds", tax_and_facts())).await;
        let applications = json!([{"taxonomy_id": "kinds", "scroll_filters": {"field": "name", "operator": "ne", "value": "secret"}}]);
        let written = json!({"collection_name": "written", "source": {"type": "direct_upsert"}, "taxonomy_applications": applications,
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        let made = shop.call(&server, "POST", "/v1/collections", written).await.ok();
        assert_eq!(made["taxonomy_applications"][0]["taxonomy_id"], id.as_str());
        let path = "/v1/collections/written/documents";
        let apple = shop.call(&server, "POST", path, json!({"name": "apple", "article": {"code": "f"}})).await.ok();
        assert_eq!((&apple["price"]["tax"], &apple["facts"]), (&json!(7), &json!(["sweet", "round"])));
        let secret = shop.call(&server, "POST", path, json!({"name": "secret", "article": {"code": "f"}})).await.ok();
        assert_eq!(secret.get("price"), None);
        // A document is kept without what could not be found for it, and says why.
        let lacking = shop.call(&server, "POST", path, json!({"name": "lacking"})).await.ok();
        assert!(lacking["_internal"]["processing"]["taxonomy_lineage"][0]["error"].as_str().unwrap().contains("code"));

        // The same by a batch, and into another collection.
        let bucket = json!({"bucket_name": "goods", "bucket_schema": {"properties": {"name": {"type": "string"}, "article": {"type": "object"}}}});
        let bucket = shop.call(&server, "POST", "/v1/buckets", bucket).await.ok()["bucket_id"].as_str().unwrap().to_owned();
        let shelf = collection(&server, &shop.namespace, "shelf", &[]).await;
        let filled = json!({"collection_name": "filled", "source": {"type": "bucket", "bucket_ids": [bucket]},
            "taxonomy_applications": [{"taxonomy_id": id}, {"taxonomy_id": id, "target_collection_id": "shelf", "execution_phase": 2}],
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1", "include_all_source_fields": true}});
        let filled = shop.call(&server, "POST", "/v1/collections", filled).await.ok()["collection_id"].as_str().unwrap().to_owned();
        for (name, code) in [("pear", "f"), ("saw", "t")] {
            let object = json!({"name": name, "article": {"code": code}});
            shop.call(&server, "POST", &format!("/v1/buckets/{bucket}/objects"), object).await.ok();
        }
        let batch = crate::batches::process(&server, &shop.namespace, &bucket).await;
        assert_eq!(batch["documents_written"], 2, "{batch:#}");
        let documents = shop.documents(&server, &filled).await;
        assert_eq!((&documents[0]["price"]["tax"], &documents[1]["price"]["tax"]), (&json!(7), &json!(20)), "{documents:#?}");
        assert_eq!(shop.documents(&server, &shelf).await.len(), 2);

        // A taxonomy that goes is applied no more, and the collections that applied it are told of.
        let changes = async |id: &Value| {
            let told = server.events("collection.updated").await;
            told.iter().filter(|event| event["payload"]["collection_id"] == *id).count()
        };
        let written = shop.call(&server, "GET", "/v1/collections/written", Value::Null).await.ok()["collection_id"].clone();
        let before = [changes(&written).await, changes(&json!(filled)).await];
        shop.call(&server, "DELETE", &format!("/v1/taxonomies/{id}"), Value::Null).await.ok();
        let left = shop.call(&server, "GET", "/v1/collections/written", Value::Null).await.ok();
        assert_eq!(left["taxonomy_applications"], json!([]));
        assert_eq!([changes(&written).await, changes(&json!(filled)).await], before.map(|count| count + 1));
        let plain = shop.call(&server, "POST", path, json!({"name": "late apple", "article": {"code": "f"}})).await.ok();
        assert_eq!(plain.get("price"), None);
    }

    async fn levels_and_places_make_trees(server) {
        let namespace = server.namespace("trees").await;
        let goods = collection(&server, &namespace, "goods", &[json!({"code": "x", "dept": "goods", "team": "A"}), json!({"code": "y", "dept": "goods", "team": "B"})]).await;
        let tools = collection(&server, &namespace, "tools", &[json!({"code": "x", "dept": "tools"})]).await;
        let both = retriever(&server, &namespace, "both", by_code(&[&goods, &tools])).await;
        let shop = Shop { namespace, kinds: goods.clone(), finder: both.clone() };
        let fields = json!([{"field_path": "dept"}, {"field_path": "team"}]);
        let levels = json!({"taxonomy_name": "levels", "config": {"taxonomy_type": "hierarchical", "retriever_id": both, "input_mappings": [{"input_key": "code", "path": "code"}],
            "hierarchical_nodes": [{"collection_id": tools, "parent_collection_id": goods, "label": "Tools", "enrichment_fields": fields},
                {"collection_id": goods, "label": "Goods", "enrichment_fields": fields}]}});
        let id = shop.make(&server, levels).await;
        let told = shop.call(&server, "GET", &format!("/v1/taxonomies/{id}"), Value::Null).await.ok();
        assert_eq!((&told["nodes"][0]["path"], &told["nodes"][0]["level"], &told["nodes"][1]["level"]), (&json!(["Goods", "Tools"]), &json!(1), &json!(0)));
        let shown = shop.call(&server, "POST", &format!("/v1/taxonomies/{id}/execute"), json!({"source_documents": [{"code": "x"}, {"code": "y"}, {"code": "z"}]})).await.ok();
        assert_eq!(shown["results"], json!([{"code": "x", "dept": "tools", "team": "A"}, {"code": "y", "dept": "goods", "team": "B"}, {"code": "z"}]));
        assert_eq!((&shown["matches"][1]["path"], &shown["matches"][1]["hierarchy_level"], &shown["matches"][1]["node_id"]), (&json!(["Goods", "Tools"]), &json!(1), &json!(tools)));
        // The styles of a collection that applies it.
        for (style, dept) in [("combined", json!("tools")), ("full_chain", json!(["goods", "tools"]))] {
            let body = json!({"collection_name": style, "source": {"type": "direct_upsert"}, "taxonomy_applications": [{"taxonomy_id": id, "hierarchical_enrichment_style": style}],
                "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
            shop.call(&server, "POST", "/v1/collections", body).await.ok();
            let made = shop.call(&server, "POST", &format!("/v1/collections/{style}/documents"), json!({"code": "x"})).await.ok();
            assert_eq!(made["dept"], dept, "{style}");
        }

        let places = [json!({"code": "a", "place": "Food/Fruit/Apples"}), json!({"code": "b", "place": "Food / Bread"})];
        let places = collection(&server, &shop.namespace, "places", &places).await;
        let finder = retriever(&server, &shop.namespace, "place of a code", by_code(&[&places])).await;
        let tree = json!({"taxonomy_name": "places", "config": {"taxonomy_type": "hierarchical", "retriever_id": finder, "input_mappings": [{"input_key": "code", "path": "code"}], "path_field": "place"}});
        let id = shop.make(&server, tree).await;
        let told = shop.call(&server, "GET", &format!("/v1/taxonomies/{id}"), Value::Null).await.ok();
        let nodes: Vec<&str> = told["nodes"].as_array().unwrap().iter().map(|node| node["node_id"].as_str().unwrap()).collect();
        assert_eq!(nodes, ["Food", "Food/Bread", "Food/Fruit", "Food/Fruit/Apples"]);
        let shown = shop.call(&server, "POST", &format!("/v1/taxonomies/{id}/execute"), json!({"source_documents": [{"code": "a"}]})).await.ok();
        assert_eq!((&shown["matches"][0]["label"], &shown["matches"][0]["hierarchy_level"], &shown["results"][0]["place"]), (&json!("Apples"), &json!(2), &json!("Food/Fruit/Apples")));

        // A document that tells a path without end has its first levels.
        let deep = json!({"code": "c", "place": "deep/".repeat(5_000)});
        let path = format!("/v1/collections/{places}/documents");
        let made = shop.call(&server, "POST", &path, deep).await.ok();
        let told = shop.call(&server, "GET", &format!("/v1/taxonomies/{id}"), Value::Null).await.ok();
        assert_eq!(told["nodes"].as_array().unwrap().len(), 4 + 32);
        shop.call(&server, "DELETE", &format!("{path}/{}", made["document_id"].as_str().unwrap()), Value::Null).await;

        // Strangers see the tree that an app sorts by, and no other.
        let by_place = json!({"collection_identifiers": [places], "stages": [stage("sort_attribute", json!({"field": "code"})), stage("taxonomy_enrich", json!({"taxonomy_id": "places"}))]});
        let sorted = retriever(&server, &shop.namespace, "by place", by_place).await;
        let tab = json!({"tab_id": "all", "label": "All", "retriever_id": sorted, "display_config": {"title": "All", "inputs": [], "exposed_fields": ["place"]}});
        let app = server.call("POST", "/v1/apps", json!({"slug": "orchard", "meta": {"title": "Orchard"}, "tabs": [tab]})).await.ok();
        let public = async |taxonomy: &str| Server::send(server.request("GET", &format!("/v1/public/apps/orchard/taxonomies/{taxonomy}/tree"))).await;
        public(&id).await.error(404, "NotFoundError");
        server.call("POST", &format!("/v1/apps/{}/publish", app["app_id"].as_str().unwrap()), json!({})).await.ok();
        let seen = public(&id).await.ok();
        let food = &seen["nodes"][0];
        assert_eq!((&seen["taxonomy_id"], seen["nodes"].as_array().unwrap().len(), &food["label"]), (&json!(id), 1, &json!("Food")), "{seen:#}");
        assert_eq!((&food["children"][0]["label"], &food["children"][0]["children"], &food["children"][1]["children"][0]["path"]), (&json!("Bread"), &json!([]), &json!(["Food", "Fruit", "Apples"])), "{seen:#}");
        public("places").await.error(404, "NotFoundError");
        let levels = shop.call(&server, "GET", "/v1/taxonomies/levels", Value::Null).await.ok();
        public(levels["taxonomy_id"].as_str().unwrap()).await.error(404, "NotFoundError");
    }

    async fn searches_enrich_by_a_taxonomy_and_clones_take_it_along(server) {
        let shop = shop(&server, "searching").await;
        let id = shop.make(&server, shop.flat("kinds", tax_and_facts())).await;
        let things = [json!({"name": "apple", "article": {"code": "f"}}), json!({"name": "stone"})];
        let things = collection(&server, &shop.namespace, "things", &things).await;
        let sorted = stage("sort_attribute", json!({"field": "name", "direction": "asc"}));
        let enrich = |taxonomy: &str, more: Value| {
            let mut parameters = json!({"taxonomy_id": taxonomy});
            parameters.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"collection_identifiers": [things], "stages": [sorted.clone(), stage("taxonomy_enrich", parameters)]})
        };
        let one = retriever(&server, &shop.namespace, "enriched", enrich(&id, json!({}))).await;
        let answer = execute(&server, &shop.namespace, &one, json!({})).await;
        let (apple, stone) = (&answer["documents"][0], &answer["documents"][1]);
        assert_eq!((&apple["price"]["tax"], &apple["taxonomy_matches"][0]["label"], stone.get("taxonomy_matches")), (&json!(7), &json!("Fruit"), None), "{answer:#}");
        assert!(answer["warnings"][0].as_str().unwrap().contains("left as they are"), "{answer:#}");
        let own = retriever(&server, &shop.namespace, "own fields", enrich("kinds", json!({"fields": [{"field_path": "label", "target_field": "kind"}], "when": {"name": "apple"}}))).await;
        let answer = execute(&server, &shop.namespace, &own, json!({})).await;
        assert_eq!((&answer["documents"][0]["kind"], answer["documents"][0].get("price"), &answer["warnings"]), (&json!("Fruit"), None, &json!([])));
        let unknown = json!({"retriever_name": "x", "collection_identifiers": [things], "stages": [stage("taxonomy_enrich", json!({"taxonomy_id": "none"}))]});
        shop.call(&server, "POST", "/v1/retrievers", unknown).await.error(404, "NotFoundError");

        // A clone of the namespace enriches by its own copy.
        shop.call(&server, "PATCH", "/v1/collections/things", json!({"taxonomy_applications": [{"taxonomy_id": id}]})).await.ok();
        let wanted = json!({"namespace_name": "cloned", "include_resources": {"collections": true, "retrievers": true, "taxonomies": true}});
        let cloned = server.call("POST", &format!("/v1/namespaces/{}/clone", shop.namespace), wanted).await.ok();
        server.task_end(cloned["task_id"].as_str().unwrap()).await;
        let ids = &cloned["cloned_resources"];
        let copy = cloned["namespace"]["namespace_id"].as_str().unwrap();
        let taxonomy = server.call_in(copy, "GET", "/v1/taxonomies/kinds", Value::Null).await.ok();
        assert_eq!((&taxonomy["taxonomy_id"], &taxonomy["config"]["retriever_id"]), (&ids["taxonomies"][&id], &ids["retrievers"][&shop.finder]));
        assert_eq!(taxonomy["config"]["source_collection"]["collection_id"], ids["collections"][&shop.kinds]);
        let answer = execute(&server, copy, ids["retrievers"][&one].as_str().unwrap(), json!({})).await;
        assert_eq!(answer["documents"][0]["price"]["tax"], 7);
        let pear = server.call_in(copy, "POST", "/v1/collections/things/documents", json!({"name": "pear", "article": {"code": "f"}})).await.ok();
        assert_eq!(pear["price"]["tax"], 7);
    }

    async fn vectors_find_nodes_and_no_document_is_its_own(server) {
        let namespace = server.namespace("vectors").await;
        let body = json!({"collection_name": "kinds", "source": {"type": "direct_upsert"}, "feature_extractor": {"feature_extractor_name": "passthrough_extractor",
            "version": "v1", "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]}}});
        let kinds = server.call_in(&namespace, "POST", "/v1/collections", body).await.ok()["collection_id"].as_str().unwrap().to_owned();
        let path = format!("/v1/collections/{kinds}/documents");
        for (label, vector) in [("red", [1.0, 0.0, 0.0]), ("reddish", [0.9, 0.3, 0.0]), ("blue", [0.0, 0.0, 1.0])] {
            server.call_in(&namespace, "POST", &path, json!({"label": label, "vectors": {"own": vector}})).await.ok();
        }
        let finder = retriever(&server, &namespace, "nearest", json!({"collection_identifiers": [kinds], "input_schema": {"like": {"type": "array", "required": true}},
            "stages": [stage("feature_search", json!({"searches": [{"feature_uri": "own", "query": {"input_mode": "vector", "value": "{{INPUT.like}}"}, "top_k": 5}], "final_top_k": 5}))]})).await;
        let shop = Shop { namespace, kinds: kinds.clone(), finder: finder.clone() };
        let body = json!({"taxonomy_name": "nearest", "config": {"taxonomy_type": "flat", "retriever_id": finder, "top_k": 2,
            "input_mappings": [{"input_key": "like", "source_type": "vector", "path": "own"}],
            "source_collection": {"collection_id": kinds, "enrichment_fields": [{"field_path": "label", "target_field": "near", "merge_mode": "append"}]}}});
        let id = shop.make(&server, body).await;
        let path = format!("/v1/taxonomies/{id}/execute");
        let shown = shop.call(&server, "POST", &path, json!({"source_documents": [{"vectors": {"own": [0.1, 0.0, 1.0]}}]})).await.ok();
        assert_eq!((&shown["matches"][0]["label"], shown["matches"].as_array().unwrap().len()), (&json!("blue"), 2));
        assert!(shown["matches"][0]["score"].as_f64().unwrap() > shown["matches"][1]["score"].as_f64().unwrap());
        let own = shop.call(&server, "POST", &path, json!({"source_collection_id": kinds, "scroll_filters": {"field": "label", "operator": "eq", "value": "red"}})).await.ok();
        assert_eq!(own["results"][0]["near"], json!(["reddish", "blue"]));
    }

    async fn what_belongs_together_becomes_nodes(server) {
        let (namespace, _) = crate::harness::retriever(&server, "promoted").await;
        let write = async |title: &str, vector: [f64; 3]| {
            let body = json!({"title": title, "vectors": {"own": vector}});
            let made = server.call_in(&namespace, "POST", "/v1/collections/things/documents", body).await.ok();
            made["document_id"].as_str().unwrap().to_owned()
        };
        let sea = [write("a ship", [1.0, 0.1, 0.0]).await, write("a whale", [0.9, 0.0, 0.1]).await];
        let food = [write("bread", [0.0, 1.0, 0.1]).await, write("soup", [0.1, 1.0, 0.0]).await];
        let refs = |ids: &[String]| -> Value {
            ids.iter().map(|id| json!({"collection_id": "things", "document_id": id})).collect()
        };
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await;
        let mut documents = refs(&sea);
        documents.as_array_mut().unwrap().push(json!({"collection_id": "things", "document_id": "doc_nothing"}));
        let body = json!({"taxonomy_name": "subjects", "node_label": "Sea", "documents": documents, "enrichment_target_field": "subject"});
        let made = call("/v1/taxonomies/from-documents", body.clone()).await.ok();
        assert_eq!((&made["documents_used"], &made["vector_name"], &made["vector_dimensions"], &made["taxonomy_created"]), (&json!(2), &json!("own"), &json!(3), &json!(true)));
        assert_eq!(made["documents_skipped"][0]["document_id"], "doc_nothing");
        call("/v1/taxonomies/from-documents", body).await.error(409, "AlreadyExistsError");

        let path = format!("/v1/taxonomies/{}", made["taxonomy_id"].as_str().unwrap());
        let added = call(&format!("{path}/nodes/from-documents"), json!({"node_label": "Food", "documents": refs(&food)})).await.ok();
        assert_eq!((&added["taxonomy_created"], &added["node_collection_id"]), (&json!(false), &made["node_collection_id"]));
        let task = call("/v1/collections/things/apply-taxonomy", json!({"taxonomy_id": "subjects"})).await.ok();
        server.task_end(task["task_id"].as_str().unwrap()).await;
        for (ids, subject) in [(&sea, "Sea"), (&food, "Food")] {
            for id in ids {
                let one = server.call_in(&namespace, "GET", &format!("/v1/collections/things/documents/{id}"), Value::Null).await.ok();
                assert_eq!(one["subject"], subject, "{one:#}");
            }
        }

        // The clusters of an execution are nodes too.
        let cluster = json!({"cluster_name": "kinds", "collection_ids": ["things"], "vector_config": {
            "feature_uri": "own", "clustering_method": "kmeans", "algorithm_params": {"n_clusters": 2}}});
        let cluster = call("/v1/clusters", cluster).await.ok();
        let cluster = cluster["cluster_id"].as_str().unwrap();
        let task = call(&format!("/v1/clusters/{cluster}/execute"), Value::Null).await.ok();
        let run = task["additional_data"]["run_id"].clone();
        server.task_end(task["task_id"].as_str().unwrap()).await;
        let made = call("/v1/taxonomies/from-documents", json!({"taxonomy_name": "kinds", "cluster_run": {"cluster_id": cluster, "run_id": run}})).await.ok();
        let nodes = made["nodes"].as_array().unwrap();
        assert_eq!((nodes.len(), &nodes[0]["member_count"], &made["documents_used"]), (2, &json!(2), &json!(4)), "{made:#}");

        for (body, member) in [
            (json!({"taxonomy_name": "x"}), "documents"),
            (json!({"taxonomy_name": "x", "documents": refs(&sea)}), "node_label"),
            (json!({"taxonomy_name": "x", "node_label": "n", "documents": [{"collection_id": "things", "document_id": "doc_nothing"}]}), "documents"),
            (json!({"taxonomy_name": "x", "node_label": "n", "documents": refs(&sea), "vector_name": "shape"}), "documents"),
        ] {
            call("/v1/taxonomies/from-documents", body).await.invalid(&["body", member], "value_error");
        }
    }
}
