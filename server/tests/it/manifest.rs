//! Manifests: checked, compared, applied, written, and written by a language model.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Database, Server, config, form, other_organization},
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

/// A namespace with one of everything, where a bucket asks a retriever that is made after it.
const SHOP: &str = r#"
version: "1.0"
metadata: {name: shop}
namespaces:
  - name: book shop
    description: Books and what they are about
buckets:
  - name: books
    description: One object a book
    schema:
      properties:
        title: {type: string, required: true}
        blurb: {type: text}
    ingest_filter: {retriever_id: "every book", on_error: keep}
collections:
  - name: blurbs
    description: A vector for every blurb
    source: {type: bucket, bucket_ids: [books]}
    feature_extractor:
      feature_extractor_name: text_extractor
      version: v1
      input_mappings: {text: blurb}
      field_passthrough: [{source_path: title}]
    document_schema: {type: object}
    schema_validation: warn
  - name: titles
    source: {type: collection, collection_id: blurbs}
    feature_extractor: {feature_extractor_name: passthrough_extractor, version: v1}
retrievers:
  - name: every book
    description: All of them
    collection_identifiers: [blurbs]
    input_schema:
      query: {type: text}
    stages:
      - stage_name: all
        stage_type: filter
        config:
          stage_id: attribute_filter
          parameters: {field: title, operator: exists, value: true}
clusters:
  - name: shelves
    cluster_type: attribute
    collection_ids: [blurbs]
    attribute_config: {attributes: [title]}
alerts:
  - name: nothing left
    retriever_id: every book
    trigger_on: no_results
    execution_mode: on_demand
    notification_config:
      channels: [{channel_type: email, config: {to_addresses: [owner@shop.example]}}]
triggers:
  - name: every night
    action_type: cluster
    action_config: {cluster_id: shelves}
    trigger_type: cron
    schedule_config: {cron_expression: "0 3 * * *"}
    status: paused
"#;

async fn send(server: &Server, key: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
    let request = server.request("POST", &format!("/v1/manifest/{path}"));
    Server::send(form(request.bearer_auth(key), fields)).await
}

async fn manifest(server: &Server, path: &str, text: &str) -> Answer {
    send(server, &server.key, path, &[("manifest_file", text)]).await
}

async fn apply(server: &Server, text: &str) -> Value {
    manifest(server, "apply", text).await.ok()
}

/// The statuses of an apply, by name.
fn statuses(result: &Value) -> Vec<(String, String)> {
    let all = result["resources"].as_array().unwrap().iter();
    all.map(|one| {
        let text = |member: &str| one[member].as_str().unwrap().to_owned();
        (text("name"), text("status"))
    })
    .collect()
}

fn status<'r>(result: &'r Value, name: &str) -> &'r Value {
    let all = result["resources"].as_array().unwrap();
    let found = all.iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {result:#}"))
}

async fn key(server: &Server, body: Value) -> String {
    let made = server.call("POST", KEYS, body).await.ok();
    made["key"].as_str().unwrap().to_owned()
}

both! {
    async fn what_is_missing_is_made_once_and_told(server) {
        let dry = manifest(&server, "apply?dry_run=true", SHOP).await.ok();
        assert_eq!((&dry["success"], &dry["dry_run"], &dry["would_create_count"]), (&json!(true), &json!(true), &json!(8)), "{dry:#}");
        let there = server.call("GET", "/v1/namespaces", Value::Null).await.ok();
        assert!(!there.to_string().contains("book shop"), "{there:#}");

        let made = apply(&server, SHOP).await;
        assert_eq!((&made["success"], &made["created_count"]), (&json!(true), &json!(8)), "{made:#}");
        assert_eq!(statuses(&made)[0], ("book shop".to_owned(), "created".to_owned()));
        let namespace = status(&made, "book shop")["resource_id"].as_str().unwrap().to_owned();
        // The bucket asks a retriever that is made of the bucket.
        let bucket = server.call_in(&namespace, "GET", "/v1/buckets/books", Value::Null).await.ok();
        let retriever = status(&made, "every book")["resource_id"].clone();
        assert_eq!(bucket["ingest_filter"]["retriever_id"], retriever, "{bucket:#}");
        let collection = server.call_in(&namespace, "GET", "/v1/collections/blurbs", Value::Null).await.ok();
        assert_eq!((&collection["source"]["bucket_ids"][0], &collection["schema_validation"]), (&bucket["bucket_id"], &json!("warn")));
        assert_eq!(server.events("manifest.apply.resource_state").await.len(), 8);
        assert_eq!(server.events("collection.created").await.len(), 2);

        let again = apply(&server, SHOP).await;
        assert_eq!((&again["success"], &again["created_count"], &again["updated_count"]), (&json!(true), &json!(0), &json!(0)), "{again:#}");
        assert!(statuses(&again).iter().all(|(_, status)| status == "exists"), "{again:#}");
        assert_eq!(server.events("manifest.apply.resource_state").await.len(), 8);
        let diff = manifest(&server, "diff", SHOP).await.ok();
        assert_eq!(diff, json!({"to_create": [], "in_system_only": [], "differences": []}), "{diff:#}");

        let refused = manifest(&server, "apply?mode=create_only", SHOP).await.ok();
        assert_eq!((&refused["success"], &refused["created_count"]), (&json!(false), &json!(0)));
    }

    async fn what_is_otherwise_is_changed_where_it_can_be(server) {
        apply(&server, SHOP).await;
        let other = SHOP
            .replace("One object a book", "Every book")
            .replace("operator: exists, value: true", "operator: exists, value: false")
            .replace("  - name: titles\n    source: {type: collection, collection_id: blurbs}\n    feature_extractor: {feature_extractor_name: passthrough_extractor, version: v1}\n", "")
            + "taxonomies: []\n";
        let diff = manifest(&server, "diff", &other).await.ok();
        let told: Vec<(&Value, &Value)> = diff["differences"].as_array().unwrap().iter().map(|one| (&one["name"], &one["action"])).collect();
        assert_eq!(told, [(&json!("books"), &json!("update")), (&json!("every book"), &json!("conflict"))], "{diff:#}");
        assert_eq!(diff["in_system_only"][0]["name"], "titles", "{diff:#}");

        let left = manifest(&server, "apply?mode=create_missing", &other).await.ok();
        assert_eq!((&left["success"], &status(&left, "books")["status"]), (&json!(true), &json!("drifted")), "{left:#}");
        let changed = apply(&server, &other).await;
        assert_eq!((&changed["success"], &changed["updated_count"], &changed["failed_count"]), (&json!(false), &json!(1), &json!(1)), "{changed:#}");
        let books = status(&changed, "books");
        assert_eq!((&books["status"], &books["drift"]), (&json!("updated"), &json!(["description"])));
        let refused = status(&changed, "every book");
        assert_eq!((&refused["status"], &refused["refused"]), (&json!("failed"), &json!(["stages"])));
        assert!(refused["error"].as_str().unwrap().contains("cannot be changed in place"));
    }

    async fn what_is_exported_makes_the_same_elsewhere(server) {
        apply(&server, SHOP).await;
        let export = Server::send(server.request("GET", "/v1/manifest/export?manifest_name=copy").bearer_auth(&server.key)).await;
        assert!(export.headers["content-type"].to_str().unwrap().starts_with("application/yaml"));
        let text = export.ok().as_str().unwrap().to_owned();
        for prefix in ["ns_", "bkt_", "col_", "ret_", "clust_", "alt_", "trg_"] {
            assert!(!text.contains(prefix), "{prefix} in\n{text}");
        }
        let diff = manifest(&server, "diff", &text).await.ok();
        assert_eq!(diff, json!({"to_create": [], "in_system_only": [], "differences": []}), "{diff:#}\n{text}");
        let same = server.call("GET", "/v1/manifest/export?format=json", Value::Null).await.ok();
        assert_eq!(same["buckets"][0]["name"], "books");
        let posted = server.call("POST", "/v1/manifest/export?manifest_name=copy", json!({"namespace_ids": ["book shop"]})).await.ok();
        assert_eq!((&posted["manifest"], &posted["format"]), (&json!(text), &json!("yaml")));
        let short = server.call("GET", "/v1/manifest/export?format=json&detail=summary", Value::Null).await.ok();
        assert_eq!(short["buckets"], json!([{"name": "books", "namespace": "book shop", "description": "One object a book"}]));

        // Into an organization that has nothing, and out of it again.
        let other = other_organization(&server).await;
        let file = [("manifest_file", text.as_str())];
        let made = send(&server, &other.key, "apply", &file).await.ok();
        assert_eq!((&made["success"], &made["created_count"]), (&json!(true), &json!(8)), "{made:#}\n{text}");
        let diff = send(&server, &other.key, "diff", &file).await.ok();
        assert_eq!(diff, json!({"to_create": [], "in_system_only": [], "differences": []}), "{diff:#}");
        let back = server.request("GET", "/v1/manifest/export?manifest_name=copy").bearer_auth(&other.key);
        assert_eq!(Server::send(back).await.ok(), json!(text));
    }

    async fn secrets_stay_where_they_are(server) {
        let text = "version: '1.0'\nnamespaces: [{name: shop}]\nalerts:\n  - name: told\n    source: system\n    system_condition: {type: collection_empty}\n    notification_config:\n      channels:\n        - channel_type: slack\n          config: {webhook_url: '${{ secrets.chat }}'}\n";
        let checked = manifest(&server, "validate", text).await.ok();
        assert_eq!((&checked["valid"], &checked["missing_secrets"]), (&json!(false), &json!(["chat"])), "{checked:#}");
        manifest(&server, "apply", text).await.invalid(&["body", "manifest_file", "alerts", "0"], "value_error");
        let secret = json!({"secret_name": "chat", "secret_value": "https://chat.example/hooks/hunter-two"});
        server.call("POST", "/v1/organizations/secrets", secret).await.ok();
        // Whoever sends a secret elsewhere could read it.
        let namespace = server.namespace("shop").await;
        let writer = key(&server, json!({"name": "writer", "permissions": ["write"]})).await;
        let refused = send(&server, &writer, "apply", &[("manifest_file", text)]).await.ok();
        assert_eq!(status(&refused, "told")["status"], "failed", "{refused:#}");

        let made = apply(&server, text).await;
        assert_eq!(made["success"], true, "{made:#}");
        let alerts = server.call_in(&namespace, "GET", "/v1/alerts", Value::Null).await.ok();
        assert_eq!(alerts["results"][0]["notification_config"]["channels"][0]["config"]["webhook_url"], "********");
        let again = apply(&server, text).await;
        let told = status(&again, "told");
        assert_eq!((&told["status"], &told["drift_not_compared"]), (&json!("exists"), &json!(["notification_config"])), "{again:#}");
        let export = server.call("GET", "/v1/manifest/export", Value::Null).await.ok();
        let export = export.as_str().unwrap();
        assert!(export.contains("${{ secrets.alert_told_") && !export.contains("hunter"), "{export}");
    }

    async fn what_failed_half_way_goes_on_by_another_apply(server) {
        let broken = SHOP.replace("    cluster_type: attribute\n", "    cluster_type: attribute\n    filters: {field: title, operator: nonsense, value: 1}\n");
        let half = apply(&server, &broken).await;
        assert_eq!(half["success"], false, "{half:#}");
        assert_eq!(status(&half, "shelves")["status"], "failed");
        let skipped = status(&half, "every night");
        assert_eq!(skipped["status"], "skipped");
        assert!(skipped["error"].as_str().unwrap().contains("the cluster 'shelves'"));
        assert_eq!((&half["created_count"], &half["rollback_performed"]), (&json!(6), &json!(false)), "{half:#}");
        let whole = apply(&server, SHOP).await;
        assert_eq!((&whole["success"], &whole["created_count"]), (&json!(true), &json!(2)), "{whole:#}");
    }

    async fn faults_tell_their_lines_and_advice_is_given(server) {
        let text = "version: '1.0'\nparameters:\n  - {name: shelf, enum: [a, b]}\nnamespaces:\n  - name: shop\nbuckets:\n  - name: \"${{ parameters.shelf }}\"\n    bucket_schema: {properties: {}}\ncollections:\n  - name: things\n    source: {type: bucket, bucket_ids: [elsewhere]}\n    feature_extractor: {feature_extractor_name: passthrough_extractor, version: v1}\n";
        let values = [("manifest_file", text), ("parameters", "{\"shelf\": \"a\"}")];
        let checked = send(&server, &server.key, "validate", &values).await.ok();
        assert_eq!(checked["resources"], json!({"namespaces": 1, "buckets": 1, "collections": 1}));
        assert_eq!(checked["parameters"][0]["name"], "shelf");
        let errors = checked["errors"].as_array().unwrap();
        let only = errors[0].as_str().unwrap();
        assert!(errors.len() == 1 && only.starts_with("line 11, collections.0.source.bucket_ids.0:") && only.contains("elsewhere"), "{checked:#}");
        send(&server, &server.key, "apply", &values).await.invalid(&["body", "manifest_file", "collections", "0", "source", "bucket_ids", "0"], "value_error");
        send(&server, &server.key, "diff", &[values[0], ("parameters", "{\"shelf\": \"c\"}")]).await.invalid(&["body", "manifest_file", "parameters", "shelf"], "value_error");
        send(&server, &server.key, "diff", &[values[0], ("parameters", "[]")]).await.invalid(&["body", "parameters"], "json_invalid");
        send(&server, &server.key, "lint", &[]).await.invalid(&["body", "manifest_file"], "missing");
        manifest(&server, "validate", "a: &a [1]\nb: *a").await.ok()["errors"].as_array().unwrap().iter().for_each(|one| {
            assert!(one.as_str().unwrap().contains("aliases are not taken"), "{one}");
        });
        manifest(&server, "apply", "version: '1.0'\nnamespaces: [").await.invalid(&["body", "manifest_file"], "yaml_invalid");

        let advice = manifest(&server, "lint", SHOP).await.ok();
        assert_eq!((&advice["valid"], &advice["summary"]["error"]), (&json!(true), &json!(0)), "{advice:#}");
        let codes = |advice: &Value| -> Vec<String> {
            advice["results"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap().to_owned()).collect()
        };
        assert!(codes(&advice).contains(&"unsearched-collection".to_owned()), "{advice:#}");
        let fewer = manifest(&server, "lint?skip_rules=unsearched-collection&skip_rules=missing-description", SHOP).await.ok();
        assert_eq!(codes(&fewer), Vec::<String>::new(), "{fewer:#}");
    }

    async fn keys_apply_as_far_as_they_may(server) {
        let writer = key(&server, json!({"name": "writer", "permissions": ["write"]})).await;
        let file = [("manifest_file", SHOP)];
        // Namespaces are made by admins.
        let refused = send(&server, &writer, "apply", &file).await.ok();
        assert_eq!((&refused["created_count"], &status(&refused, "book shop")["status"]), (&json!(0), &json!("failed")), "{refused:#}");
        let namespace = server.namespace("book shop").await;
        let inside = SHOP.replace("    description: Books and what they are about\n", "");
        let made = send(&server, &writer, "apply", &[("manifest_file", inside.as_str())]).await.ok();
        assert_eq!((&made["success"], &made["created_count"]), (&json!(true), &json!(7)), "{made:#}");
        let reader = key(&server, json!({"name": "reader", "permissions": ["read"]})).await;
        send(&server, &reader, "apply", &file).await.error(403, "ForbiddenError");
        send(&server, &reader, "diff", &file).await.ok();

        // A key sees what its scopes cover.
        let bucket = status(&made, "books")["resource_id"].clone();
        let scopes = json!([{"resource_type": "namespace", "resource_id": "ns_other"}, {"resource_type": "bucket", "resource_id": bucket}]);
        let narrow = key(&server, json!({"name": "narrow", "permissions": ["read"], "scopes": scopes})).await;
        let export = server.request("GET", "/v1/manifest/export?format=json").bearer_auth(&narrow);
        assert_eq!(Server::send(export).await.ok()["namespaces"], Value::Null);
        let path = format!("/v1/manifest/export?namespace_id={namespace}");
        Server::send(server.request("GET", &path).bearer_auth(&narrow)).await.error(404, "NotFoundError");
        // Nor does a comparison tell whether it guessed what it may not read.
        server.call("PATCH", &format!("/v1/namespaces/{namespace}"), json!({"description": "hidden"})).await.ok();
        let guess = |text: &str| format!("version: '1.0'\nnamespaces: [{{name: book shop, description: {text}}}]");
        let (right, wrong) = (guess("hidden"), guess("open"));
        let right = send(&server, &narrow, "diff", &[("manifest_file", right.as_str())]).await.ok();
        let wrong = send(&server, &narrow, "diff", &[("manifest_file", wrong.as_str())]).await.ok();
        assert_eq!(right, wrong, "{right:#}");
        // Another organization's namespace of this name is not there.
        let other = other_organization(&server).await;
        let diff = send(&server, &other.key, "diff", &file).await.ok();
        assert_eq!((diff["to_create"].as_array().unwrap().len(), &diff["in_system_only"]), (8, &json!([])), "{diff:#}");
    }

    async fn a_manifest_is_written_by_a_language_model_only(server) {
        let path = "/v1/manifest/generate?description=books";
        let refused = server.call("POST", path, Value::Null).await;
        assert!(refused.status == 503 && refused.body.to_string().contains("models.language"), "{:#}", refused.body);
        server.call("POST", "/v1/manifest/generate?description=", Value::Null).await.invalid(&["query", "description"], "value_error");
    }
}

/// Writes a manifest that is wrong, and a right one once it is told so.
async fn chat(axum::Json(body): axum::Json<Value>) -> axum::Json<Value> {
    let text = body["messages"][1]["content"].as_str().unwrap();
    let written = match text.contains("It is wrong:") {
        false => {
            "```yaml\nversion: '1.0'\nnamespaces: [{name: shop}]\nbuckets: [{name: books, colour: red}]\n```"
        }
        true => {
            "version: '1.0'\nnamespaces: [{name: shop}]\nbuckets: [{name: books, bucket_schema: {properties: {title: {type: string}}}}]"
        }
    };
    axum::Json(json!({"choices": [{"message": {"content": written}}]}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_language_model_is_told_what_is_wrong_with_its_manifest() {
    let router = axum::Router::new().route("/v1/chat/completions", axum::routing::post(chat));
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    let language = json!({"url": address, "model": "small"});
    config.models.language = Some(serde_json::from_value(language).unwrap());
    let server = Server::start_with(config, folder, None).await;
    let path = "/v1/manifest/generate?description=books&manifest_name=shop";
    let written = server.call("POST", path, Value::Null).await.ok();
    assert_eq!(
        (&written["manifest_name"], &written["format"]),
        (&json!("shop"), &json!("yaml"))
    );
    let text = written["manifest"].as_str().unwrap();
    let made = apply(&server, text).await;
    assert_eq!(
        (&made["success"], &made["created_count"]),
        (&json!(true), &json!(2)),
        "{made:#}"
    );
}
