//! Templates: the server's own, each of which makes something, and those that are kept of resources.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server, other_organization},
    stages::{collection, stage},
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

/// A namespace in which templates are used.
struct Place<'s> {
    server: &'s Server,
    namespace: String,
}

impl<'s> Place<'s> {
    async fn new(server: &'s Server, name: &str) -> Self {
        let namespace = server.namespace(name).await;
        Self { server, namespace }
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        let path = format!("/v1/{path}");
        self.server
            .call_in(&self.namespace, method, &path, body)
            .await
    }

    async fn get(&self, path: &str) -> Value {
        self.call("GET", path, Value::Null).await.ok()
    }

    /// Makes something of a template; answers its id.
    async fn make(&self, kind: &str, template: &str, body: Value) -> String {
        let path = format!("templates/{kind}s/{template}/instantiate");
        let path = path.replace("taxonomys", "taxonomies");
        let made = self.call("POST", &path, body).await.ok();
        assert_eq!(
            (&made["template_id"], &made["status"]),
            (&json!(template), &json!("created"))
        );
        assert!(made["created_at"].is_string(), "{made:#}");
        made[format!("{kind}_id")].as_str().unwrap().to_owned()
    }

    /// Keeps something as a template; answers the template's id.
    async fn keep(&self, kind: &str, id: &str, body: Value) -> String {
        let path = format!("templates/{kind}s/from-{kind}/{id}");
        let path = path.replace("taxonomys", "taxonomies");
        let kept = self.call("POST", &path, body).await.ok();
        assert_eq!(
            (&kept["source_resource_id"], &kept["template_type"]),
            (&json!(id), &json!(kind))
        );
        let template = kept["template_id"].as_str().unwrap();
        let rest = template.strip_prefix("tmpl_").unwrap();
        assert!(
            rest.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
            "{template}"
        );
        template.to_owned()
    }

    async fn template(&self, kinds: &str, id: &str) -> Value {
        self.get(&format!("templates/{kinds}/{id}")).await
    }

    /// The ids that a list shows.
    async fn listed(&self, kinds: &str, body: Value) -> Vec<String> {
        let path = format!("templates/{kinds}");
        ids(&self.call("POST", &path, body).await.ok()["results"])
    }

    /// Sends the requests that a template of a namespace is.
    async fn follow(&self, configuration: &Value) {
        for kinds in [
            "buckets",
            "collections",
            "retrievers",
            "taxonomies",
            "clusters",
        ] {
            for request in configuration[kinds].as_array().into_iter().flatten() {
                self.call("POST", kinds, request.clone()).await.ok();
            }
        }
    }
}

fn ids(templates: &Value) -> Vec<String> {
    let all = templates.as_array().unwrap().iter();
    all.map(|one| one["template_id"].as_str().unwrap().to_owned())
        .collect()
}

/// A key whose scopes cover one namespace.
async fn narrow_key(server: &Server, namespace: &str) -> String {
    let scopes = json!([{"resource_type": "namespace", "resource_id": namespace}]);
    let body = json!({"name": "narrow", "permissions": ["admin"], "scopes": scopes});
    let made = server.call("POST", KEYS, body).await.ok();
    made["key"].as_str().unwrap().to_owned()
}

both! {
    async fn every_template_of_the_server_makes_something(server) {
        let place = Place::new(&server, "made").await;
        let mut made = 0;
        for (name, template) in [("texts", "texts"), ("pictures", "pictures"), ("papers", "documents"), ("products", "products")] {
            let id = place.make("bucket", &format!("tmpl_bucket_{template}"), json!({"bucket_name": name})).await;
            let bucket = place.get(&format!("buckets/{id}")).await;
            assert_eq!(bucket["bucket_name"], name);
            assert!(bucket["description"].as_str().unwrap().contains(": one object a"), "{bucket:#}");
            made += 1;
        }
        for (name, template, bucket) in [
            ("passages", "texts", "texts"), ("labelled", "pictures", "pictures"), ("pages", "pages", "papers"),
            ("descriptions", "products", "products"), ("looks", "pictures", "products"),
        ] {
            let body = json!({"collection_name": name, "bucket_ids": [bucket], "description": "said by the caller"});
            let id = place.make("collection", &format!("tmpl_collection_{template}"), body).await;
            let collection = place.get(&format!("collections/{id}")).await;
            assert_eq!((&collection["description"], &collection["source"]["type"]), (&json!("said by the caller"), &json!("bucket")));
            assert!(collection["vector_indexes"].as_array().unwrap().len() > usize::from(template == "pictures"), "{collection:#}");
            made += usize::from(name != "looks");
        }
        for (template, collection) in [
            ("hybrid_text", "passages"), ("context", "passages"), ("closest", "passages"), ("pictures", "labelled"), ("pages", "pages"),
            ("products", "descriptions"),
        ] {
            let body = json!({"retriever_name": template, "collection_identifiers": [collection], "tags": ["own"]});
            let id = place.make("retriever", &format!("tmpl_retriever_{template}"), body).await;
            let retriever = place.get(&format!("retrievers/{id}")).await;
            assert_eq!(retriever["tags"], json!(["own"]));
            // It finds nothing where nothing is; that it runs is what is asked.
            let inputs = match template {
                "pictures" => json!({}),
                "closest" => json!({"text": "bread"}),
                _ => json!({"query": "bread"}),
            };
            let found = place.call("POST", &format!("retrievers/{id}/execute"), json!({"inputs": inputs})).await.ok();
            assert_eq!(found["degraded"].as_array().map_or(0, Vec::len), 0, "{template}: {found:#}");
            made += 1;
        }
        let places = json!({"source_collection": "passages", "retriever": "closest"});
        let id = place.make("taxonomy", "tmpl_taxonomy_topics", json!({"taxonomy_name": "topics", "collection_config": places})).await;
        let taxonomy = place.get(&format!("taxonomies/{id}")).await;
        assert!(taxonomy["retriever_id"].as_str().unwrap().starts_with("ret_"), "{taxonomy:#}");
        made += 1;
        for (template, collection) in [("topics", "passages"), ("lookalikes", "labelled"), ("shelves", "descriptions")] {
            let body = json!({"cluster_name": template, "collection_ids": [collection]});
            place.make("cluster", &format!("tmpl_cluster_{template}"), body).await;
            made += 1;
        }
        let mut own = 0;
        for kinds in ["buckets", "collections", "retrievers", "taxonomies", "clusters"] {
            let listed = place.call("POST", &format!("templates/{kinds}"), json!({})).await.ok();
            let results = listed["results"].as_array().unwrap();
            assert_eq!(listed["total_count"], results.len());
            assert!(results.iter().all(|one| one["scope"] == "system" && one["is_public"] == true), "{listed:#}");
            own += results.len();
        }
        assert_eq!(own, made, "a template of the server is not used here");
    }

    async fn what_a_template_of_a_namespace_lists_makes_one(server) {
        let templates = server.call("GET", "/v1/public/templates/namespaces", Value::Null).await.ok();
        let templates = templates.as_array().unwrap();
        assert_eq!(templates.len(), 4);
        for (number, template) in templates.iter().enumerate() {
            let place = Place::new(&server, &format!("space {number}")).await;
            place.follow(&template["configuration"]).await;
            let collections = place.get("collections").await;
            assert_eq!(collections["results"].as_array().map(Vec::len), template["configuration"]["collections"].as_array().map(Vec::len));
        }
    }

    async fn the_servers_own_are_shown_to_everybody(server) {
        let place = Place::new(&server, "shown").await;
        let things = collection(&server, &place.namespace, "things", &[]).await;
        let id = crate::stages::retriever(&server, &place.namespace, &things, vec![stage("sort_attribute", json!({"field": "a"}))]).await;
        let own = place.keep("retriever", &id, json!({"template_name": "Ours", "category": "text"})).await;
        let public = async |path: &str| Server::send(server.request("GET", &format!("/v1/public/templates/{path}"))).await;
        let all = ids(&public("retrievers").await.ok());
        assert!(all.contains(&"tmpl_retriever_pages".to_owned()) && !all.contains(&own), "{all:?}");
        assert_eq!(ids(&public("retrievers?category=document").await.ok()), ["tmpl_retriever_pages"]);
        assert_eq!(ids(&public("namespaces?category=commerce").await.ok()), ["tmpl_namespace_products"]);
        assert_eq!(public("namespaces/tmpl_namespace_texts").await.ok()["name"], "A search of texts");
        assert_eq!(public("retrievers/tmpl_retriever_context").await.ok()["template_type"], "retriever");
        // Neither one of another kind, nor one of an organization.
        public("namespaces/tmpl_retriever_context").await.error(404, "NotFoundError");
        public(&format!("retrievers/{own}")).await.error(404, "NotFoundError");
        server.call("DELETE", "/v1/templates/tmpl_retriever_context", Value::Null).await.error(409, "ConflictError");
    }

    async fn buckets_and_collections_are_kept_without_what_is_theirs_alone(server) {
        let place = Place::new(&server, "kept").await;
        let schema = json!({"properties": {"sku": {"type": "string"}, "text": {"type": "text"}}});
        let bucket = json!({"bucket_name": "goods", "description": "what is sold", "bucket_schema": schema, "unique_key": {"fields": ["sku"]},
            "metadata": {"floor": 2}});
        let bucket = place.call("POST", "buckets", bucket).await.ok()["bucket_id"].as_str().unwrap().to_owned();
        let kept = place.keep("bucket", &bucket, json!({"template_name": "Goods", "category": "shop", "tags": ["a", "b"]})).await;
        let template = place.template("buckets", &kept).await;
        assert_eq!((&template["description"], &template["scope"], &template["mode"]), (&json!("what is sold"), &json!("organization"), &json!("config")));
        assert_eq!(template["configuration"]["unique_key"], json!({"fields": ["sku"]}));
        assert!(!template["configuration"].to_string().contains("goods"), "{template:#}");
        let again = place.make("bucket", &kept, json!({"bucket_name": "more goods"})).await;
        let again = place.get(&format!("buckets/{again}")).await;
        assert_eq!((&again["metadata"], &again["unique_key"]), (&json!({"floor": 2}), &json!({"fields": ["sku"]})));
        // The rules are those of every bucket.
        let path = format!("templates/buckets/{kept}/instantiate");
        place.call("POST", &path, json!({"bucket_name": "goods"})).await.error(409, "AlreadyExistsError");
        place.call("POST", &path, json!({})).await.invalid(&["body", "bucket_name"], "missing");

        let scraper = json!({"collection_name": "crawled", "source": {"type": "bucket", "bucket_ids": [bucket]}, "metadata": {"team": "web"},
            "feature_extractor": {"feature_extractor_name": "web_scraper", "version": "v1", "input_mappings": {"url": "sku"},
                "parameters": {"generate_image_embeddings": false, "custom_headers": {"authorization": "a secret"}}}});
        let crawled = place.call("POST", "collections", scraper).await.ok()["collection_id"].as_str().unwrap().to_owned();
        let kept = place.keep("collection", &crawled, json!({"template_name": "Crawled"})).await;
        let template = place.template("collections", &kept).await;
        let text = template["configuration"].to_string();
        assert!(!text.contains("custom_headers") && !text.contains("sealed") && !text.contains("bkt_"), "{text}");
        assert_eq!(template["requirements"], json!(["left out: headers that the extractor sends"]));
        let path = format!("templates/collections/{kept}/instantiate");
        place.call("POST", &path, json!({"collection_name": "of nothing"})).await.invalid(&["body", "bucket_ids"], "missing");
        let both = json!({"collection_name": "of both", "bucket_ids": [bucket], "collection_id": crawled});
        place.call("POST", &path, both).await.invalid(&["body", "collection_id"], "value_error");
        let nothing = json!({"collection_name": "of nothing", "bucket_ids": ["bkt_nothing"]});
        place.call("POST", &path, nothing).await.error(404, "NotFoundError");
        let body = json!({"collection_name": "crawled again", "bucket_ids": ["more goods"], "tags": ["web"]});
        let again = place.make("collection", &kept, body).await;
        let again = place.get(&format!("collections/{again}")).await;
        assert_eq!(again["metadata"], json!({"team": "web", "tags": ["web"]}));
        assert_eq!(again["feature_extractor"]["feature_extractor_name"], "web_scraper");
    }

    async fn collections_that_stages_name_are_named_anew(server) {
        let place = Place::new(&server, "named").await;
        let films = collection(&server, &place.namespace, "films", &[json!({"title": "M", "by": "Lang"})]).await;
        let people = collection(&server, &place.namespace, "people", &[json!({"name": "Lang", "born": 1890})]).await;
        let places = collection(&server, &place.namespace, "places", &[]).await;
        let enrich = |name: &str, target: &str| json!({"stage_name": name, "config": {"stage_id": "document_enrich", "parameters": {
            "target_collection_id": target, "source_field": "by", "target_field": "name", "fields_to_merge": ["born"]}}});
        let body = json!({"retriever_name": "films with people", "collection_identifiers": [films, people], "tags": ["film"],
            "stages": [stage("attribute_filter", json!({"field": "title", "operator": "exists"})), enrich("people", &people), enrich("places", &places)]});
        let id = place.call("POST", "retrievers", body).await.ok()["retriever_id"].as_str().unwrap().to_owned();
        let kept = place.keep("retriever", &id, json!({"template_name": "Films"})).await;
        let template = place.template("retrievers", &kept).await;
        let text = template["configuration"].to_string();
        assert!(text.contains("{{TEMPLATE.collection_2}}") && !text.contains("col_"), "{text}");
        assert_eq!(template["requirements"], json!(["a collection named 'places'"]));

        // In another namespace of the organization, where things have other ids.
        let other = Place::new(&server, "elsewhere").await;
        collection(&server, &other.namespace, "new films", &[json!({"title": "Faust", "by": "Murnau"})]).await;
        let authors = collection(&server, &other.namespace, "authors", &[json!({"name": "Murnau", "born": 1888})]).await;
        let path = format!("templates/retrievers/{kept}/instantiate");
        let one = json!({"retriever_name": "r", "collection_identifiers": ["new films"]});
        other.call("POST", &path, one).await.invalid(&["body", "collection_identifiers"], "too_short");
        let two = json!({"retriever_name": "r", "collection_identifiers": ["new films", authors]});
        other.call("POST", &path, two.clone()).await.error(404, "NotFoundError");
        collection(&server, &other.namespace, "places", &[]).await;
        let made = other.make("retriever", &kept, two).await;
        let found = other.call("POST", &format!("retrievers/{made}/execute"), json!({"inputs": {}})).await.ok();
        let faust = found["documents"].as_array().unwrap().iter().find(|one| one["title"] == "Faust").unwrap();
        assert_eq!(faust["born"], 1888);
        assert_eq!(other.get(&format!("retrievers/{made}")).await["tags"], json!(["film"]));

        // What names a document is of no use elsewhere.
        let by_id = stage("attribute_filter", json!({"field": "document_id", "operator": "eq", "value": "doc_00000000000000000000"}));
        let id = crate::stages::retriever(&server, &place.namespace, &films, vec![by_id]).await;
        let refused = place.call("POST", &format!("templates/retrievers/from-retriever/{id}"), json!({"template_name": "One"})).await;
        assert_eq!(refused.error(409, "ConflictError")["error"]["details"]["id"], "doc_00000000000000000000");
    }

    async fn taxonomies_and_clusters_are_kept_and_made_again(server) {
        let place = Place::new(&server, "sorted").await;
        let roots = collection(&server, &place.namespace, "Big kinds", &[json!({"code": "f"})]).await;
        let leaves = collection(&server, &place.namespace, "kinds", &[json!({"code": "f"})]).await;
        let by_code = stage("attribute_filter", json!({"field": "code", "operator": "eq", "value": "{{INPUT.code}}"}));
        let finder = json!({"retriever_name": "by code", "collection_identifiers": [roots, leaves], "stages": [by_code],
            "input_schema": {"code": {"type": "string", "required": true}}});
        place.call("POST", "retrievers", finder).await.ok();
        let mappings = json!([{"input_key": "code", "source_type": "payload", "path": "code"}]);
        // Everything is called by its name, the parent of a node, too.
        let tree = json!({"taxonomy_name": "tree", "config": {"taxonomy_type": "hierarchical", "retriever_id": "by code", "input_mappings": mappings,
            "hierarchical_nodes": [{"collection_id": "Big kinds", "label": "Big"}, {"collection_id": "kinds", "parent_collection_id": "Big kinds"}]}});
        let tree = place.call("POST", "taxonomies", tree).await.ok();
        assert_eq!(tree["config"]["hierarchical_nodes"][1]["parent_collection_id"], roots);
        let kept = place.keep("taxonomy", tree["taxonomy_id"].as_str().unwrap(), json!({"template_name": "Tree"})).await;
        let template = place.template("taxonomies", &kept).await;
        let nodes = &template["configuration"]["config"]["hierarchical_nodes"];
        assert_eq!((&nodes[1]["collection_id"], &nodes[1]["parent_collection_id"]), (&json!("{{TEMPLATE.kinds}}"), &json!("{{TEMPLATE.big_kinds}}")));
        assert_eq!(template["requirements"].as_array().map(Vec::len), Some(3), "{template:#}");
        let path = format!("templates/taxonomies/{kept}/instantiate");
        let some = json!({"taxonomy_name": "again", "collection_config": {"big_kinds": roots, "kinds": leaves, "small_kinds": leaves}});
        let refused = place.call("POST", &path, some).await;
        refused.clone().invalid(&["body", "collection_config", "retriever"], "missing");
        refused.invalid(&["body", "collection_config", "small_kinds"], "extra_forbidden");
        let all = json!({"taxonomy_name": "again", "collection_config": {"big_kinds": "Big kinds", "kinds": leaves, "retriever": "by code"}});
        let again = place.make("taxonomy", &kept, all).await;
        let again = place.get(&format!("taxonomies/{again}")).await;
        assert_eq!(again["config"]["hierarchical_nodes"], tree["config"]["hierarchical_nodes"]);

        let cluster = json!({"cluster_name": "by code", "collection_ids": [leaves], "cluster_type": "attribute", "attribute_config": {"attributes": ["code"]}});
        let cluster = place.call("POST", "clusters", cluster).await.ok()["cluster_id"].as_str().unwrap().to_owned();
        let kept = place.keep("cluster", &cluster, json!({"template_name": "By code"})).await;
        let made = place.make("cluster", &kept, json!({"cluster_name": "by code again", "collection_ids": ["Big kinds"], "description": "new"})).await;
        let made = place.get(&format!("clusters/{made}")).await;
        assert_eq!((&made["input_collections"], &made["clustered_attributes"], &made["description"]), (&json!([roots]), &json!(["code"]), &json!("new")));

        // All of it as one template, a cluster without a name, too, followed in another namespace.
        let nameless = json!({"collection_ids": [leaves], "cluster_type": "attribute", "attribute_config": {"attributes": ["code"]}});
        place.call("POST", "clusters", nameless).await.ok();
        let kept = place.keep("namespace", &place.namespace, json!({"template_name": "Sorted", "description": "kinds of things"})).await;
        let template = place.template("namespaces", &kept).await;
        assert_eq!(template["description"], "kinds of things");
        let counts = ["buckets", "collections", "retrievers", "taxonomies", "clusters"].map(|kinds| template["configuration"][kinds].as_array().unwrap().len());
        assert_eq!(counts, [0, 2, 1, 2, 3]);
        let other = Place::new(&server, "sorted again").await;
        other.follow(&template["configuration"]).await;
        let copy = other.get("taxonomies/tree").await;
        let node = &copy["config"]["hierarchical_nodes"][1];
        assert!(node["collection_id"].as_str().unwrap().starts_with("col_") && node["collection_id"] != tree["config"]["hierarchical_nodes"][1]["collection_id"], "{copy:#}");
        assert_eq!(node["parent_collection_id"], copy["config"]["hierarchical_nodes"][0]["collection_id"]);
    }

    async fn lists_are_narrowed_and_templates_removed(server) {
        let place = Place::new(&server, "listed").await;
        let bucket = json!({"bucket_name": "b", "bucket_schema": {"properties": {}}});
        let bucket = place.call("POST", "buckets", bucket).await.ok()["bucket_id"].as_str().unwrap().to_owned();
        let one = place.keep("bucket", &bucket, json!({"template_name": "Zebra", "category": "own", "tags": ["x", "y"]})).await;
        server.app.clock().advance(1);
        let two = place.keep("bucket", &bucket, json!({"template_name": "Ant", "scope": "user", "tags": ["x"]})).await;
        let all = place.listed("buckets", Value::Null).await;
        assert_eq!(all[..2], [two.clone(), one.clone()]);
        assert_eq!(all.len(), 6);
        for (body, expected) in [
            (json!({"scope": "organization"}), vec![&one]), (json!({"scope": "user"}), vec![&two]), (json!({"category": "own"}), vec![&one]),
            (json!({"tags": ["x", "y"]}), vec![&one]), (json!({"tags": ["x"], "sort": {"field": "name", "direction": "asc"}}), vec![&two, &one]),
            (json!({"search": "zebr"}), vec![&one]), (json!({"is_active": false}), vec![]),
            (json!({"filters": {"field": "name", "operator": "eq", "value": "Ant"}}), vec![&two]),
        ] {
            assert_eq!(place.listed("buckets", body.clone()).await.iter().collect::<Vec<_>>(), expected, "{body}");
        }
        for (query, expected) in [("", 4), ("?scope=system&category=text", 1), ("?scope=organization", 0), ("?is_active=false", 0)] {
            assert_eq!(ids(&place.get(&format!("templates/namespaces{query}")).await).len(), expected, "{query}");
        }
        let path = format!("templates/buckets/from-bucket/{bucket}");
        for (body, member, kind) in [
            (json!({"template_name": "t", "scope": "system"}), "scope", "value_error"), (json!({"template_name": "t", "scope": "public"}), "scope", "not_enabled"),
            (json!({"template_name": "t", "is_public": true}), "is_public", "not_enabled"), (json!({"template_name": ""}), "template_name", "string_too_short"),
            (json!({}), "template_name", "missing"),
        ] {
            place.call("POST", &path, body).await.invalid(&["body", member], kind);
        }

        // A template outlives what it was made of, and its namespace.
        let gone = server.call("DELETE", &format!("/v1/namespaces/{}", place.namespace), Value::Null).await.ok();
        server.task_end(gone["task_id"].as_str().unwrap()).await;
        let place = Place::new(&server, "later").await;
        place.make("bucket", &one, json!({"bucket_name": "b"})).await;
        server.call("DELETE", &format!("/v1/templates/{one}"), Value::Null).await.ok();
        place.call("GET", &format!("templates/buckets/{one}"), Value::Null).await.error(404, "NotFoundError");
        server.call("DELETE", &format!("/v1/templates/{one}"), Value::Null).await.error(404, "NotFoundError");
        let log = server.call("GET", "/v1/organizations/audit/logs", Value::Null).await.ok();
        assert!(log.to_string().contains(&format!("{{\"after\":null,\"before\":\"{one}\"}}")) || log.to_string().contains(&format!("{{\"before\":\"{one}\",\"after\":null}}")), "{log:#}");
    }

    async fn templates_are_seen_by_those_they_are_for(server) {
        let place = Place::new(&server, "mine").await;
        let bucket = json!({"bucket_name": "b", "bucket_schema": {"properties": {}}});
        let bucket = place.call("POST", "buckets", bucket).await.ok()["bucket_id"].as_str().unwrap().to_owned();
        let ours = place.keep("bucket", &bucket, json!({"template_name": "Ours"})).await;
        let mine = place.keep("bucket", &bucket, json!({"template_name": "Mine", "scope": "user"})).await;
        let ask = async |key: &str, method: &str, path: &str, body: Value| {
            let request = server.request(method, &format!("/v1/{path}")).bearer_auth(key).header("x-namespace", &place.namespace);
            Server::send(if body.is_null() { request } else { request.json(&body) }).await
        };
        let (ours_path, mine_path) = (format!("templates/buckets/{ours}"), format!("templates/buckets/{mine}"));

        // Another user of the organization.
        server.call("POST", "/v1/organizations/users", json!({"email": "ada@example.com", "user_name": "Ada"})).await.ok();
        let keys = "/v1/organizations/users/ada@example.com/api-keys";
        let ada = server.call("POST", keys, json!({"name": "ada", "permissions": ["delete"]})).await.ok()["key"].as_str().unwrap().to_owned();
        ask(&ada, "GET", &ours_path, Value::Null).await.ok();
        ask(&ada, "GET", &mine_path, Value::Null).await.error(404, "NotFoundError");
        ask(&ada, "DELETE", &format!("templates/{mine}"), Value::Null).await.error(404, "NotFoundError");
        let from = format!("templates/buckets/from-bucket/{bucket}");
        let hers = ask(&ada, "POST", &from, json!({"template_name": "Hers", "scope": "user"})).await.ok()["template_id"].as_str().unwrap().to_owned();
        let listed = ids(&ask(&ada, "POST", "templates/buckets", json!({})).await.ok()["results"]);
        assert!(listed.contains(&ours) && listed.contains(&hers) && !listed.contains(&mine), "{listed:?}");
        // What only she saw goes with her.
        server.call("DELETE", "/v1/organizations/users/ada@example.com", Value::Null).await.ok();
        let left: Vec<(String,)> = server.app.db().all("SELECT template_id FROM templates ORDER BY created_at, template_id", vec![]).await.unwrap();
        let left: Vec<String> = left.into_iter().map(|(id,)| id).collect();
        assert!(left.len() == 2 && left.contains(&ours) && left.contains(&mine), "{left:?}");

        // A key of one namespace has the server's own alone, and makes things of them there.
        let narrow = narrow_key(&server, &place.namespace).await;
        let listed = ids(&ask(&narrow, "POST", "templates/buckets", json!({})).await.ok()["results"]);
        assert!(listed.len() == 4 && listed.iter().all(|id| id.starts_with("tmpl_bucket_")), "{listed:?}");
        ask(&narrow, "GET", &ours_path, Value::Null).await.error(403, "ForbiddenError");
        ask(&narrow, "POST", &from, json!({"template_name": "n"})).await.error(403, "ForbiddenError");
        ask(&narrow, "DELETE", &format!("templates/{ours}"), Value::Null).await.error(403, "ForbiddenError");
        ask(&narrow, "POST", "templates/buckets/tmpl_bucket_texts/instantiate", json!({"bucket_name": "texts"})).await.ok();

        // For another organization none of it is there.
        let elsewhere = other_organization(&server).await;
        let theirs = server.request("POST", "/v1/namespaces").bearer_auth(&elsewhere.key).json(&json!({"namespace_name": "theirs"}));
        let theirs = Server::send(theirs).await.ok()["namespace_id"].as_str().unwrap().to_owned();
        for (method, path, body) in [
            ("GET", ours_path.clone(), Value::Null), ("POST", format!("{ours_path}/instantiate"), json!({"bucket_name": "b"})),
            ("DELETE", format!("templates/{ours}"), Value::Null),
        ] {
            let request = server.request(method, &format!("/v1/{path}")).bearer_auth(&elsewhere.key).header("x-namespace", &theirs);
            Server::send(if body.is_null() { request } else { request.json(&body) }).await.error(404, "NotFoundError");
        }
        place.template("buckets", &ours).await;
    }
}
