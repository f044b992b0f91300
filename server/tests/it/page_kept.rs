//! What a public page keeps to itself: how its retriever asks others, and what is in fields that nobody is shown.

use serde_json::{Value, json};

use crate::{
    both,
    harness::Server,
    public_pages::ask,
    stages::{collection, retriever, stage},
};

fn page(name: &str, exposed: &[&str]) -> Value {
    json!({"public_name": name, "display_config": {"title": "Films", "inputs": [], "exposed_fields": exposed}})
}

both! {
    async fn others_are_told_how_a_page_asks_nobody_else(server) {
        let secret = json!({"secret_name": "lookupkey", "secret_value": "open sesame"});
        server.call("POST", "/v1/organizations/secrets", secret).await.ok();
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "M", "status": "public"})]).await;
        let call = json!({"url": "https://inside.example/x", "allowed_domains": ["inside.example"], "headers": {"x-key": "{{ SECRET.lookupkey }}"}, "output_field": "facts"});
        let stages = vec![
            stage("attribute_filter", json!({"field": "status", "operator": "eq", "value": "internal-word"})),
            stage("attribute_filter", json!({"conditions": {"AND": [{"field": "title", "operator": "exists"}, {"field": "status", "operator": "ne", "value": "hidden-word"}]}})),
            stage("sort_attribute", json!({"field": "title", "direction": "asc"})),
            stage("attribute_filter", json!({"field": "title", "operator": "contains", "value": "shown-word"})),
            stage("limit", json!({"limit": 7, "pre_filters": {"status": "shorthand-word"}})),
            stage("api_call", call),
        ];
        let id = retriever(&server, &namespace, &films, stages).await;
        server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/publish"), page("films", &["title"])).await.ok();
        for place in ["/v1/public/retrievers", "/v1/marketplace/catalog"] {
            let told = ask(&server, "GET", &format!("{place}/films/template"), Value::Null).await.ok();
            let text = told.to_string();
            for kept in ["inside.example", "lookupkey", "internal-word", "hidden-word", "shorthand-word", "facts"] {
                assert!(!text.contains(kept), "{kept}: {told:#}");
            }
            let stages = told["stages"].as_array().unwrap();
            let ids: Vec<&str> = stages.iter().map(|stage| stage["config"]["stage_id"].as_str().unwrap()).collect();
            assert_eq!(ids, ["attribute_filter", "attribute_filter", "sort_attribute", "attribute_filter", "limit", "api_call"]);
            // What a stage does by itself with what everybody sees is how to build another.
            assert_eq!(stages[2]["config"]["parameters"]["direction"], "asc", "{told:#}");
            assert_eq!(stages[3]["config"]["parameters"]["value"], "shown-word", "{told:#}");
            let config = ask(&server, "GET", &format!("{place}/films/config"), Value::Null).await.ok().to_string();
            assert!(!config.contains("inside.example") && !config.contains("lookupkey") && !config.contains("-word"), "{config}");
        }
    }

    async fn no_input_orders_or_picks_by_a_hidden_field(server) {
        let namespace = server.namespace("people").await;
        let people = [json!({"name": "Ada", "salary": 9}), json!({"name": "Bea", "salary": 3})];
        let people = collection(&server, &namespace, "people", &people).await;
        let optional = json!({"type": "text", "required": false});
        let stages = vec![
            stage("attribute_filter", json!({"field": "{{ INPUT.of }}", "operator": "eq", "value": "{{ INPUT.is }}"})),
            stage("sort_attribute", json!({"field": "{{ INPUT.by }}", "direction": "asc"})),
        ];
        let body = json!({"retriever_name": "people", "collection_identifiers": [people], "stages": stages,
            "input_schema": {"of": {"type": "text", "default": "name"}, "is": optional, "by": {"type": "text", "default": "name"}}});
        let id = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
        let path = format!("/v1/retrievers/{}", id["retriever_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &format!("{path}/publish"), page("people", &["name"])).await.ok();
        let search = async |inputs: Value| ask(&server, "POST", "/v1/public/retrievers/people/execute", json!({"inputs": inputs})).await;
        // The owner orders by any, first of all: what is kept of that is not told to others.
        let own = server.call_in(&namespace, "POST", &format!("{path}/execute"), json!({"inputs": {"by": "salary"}})).await.ok();
        assert_eq!(own["documents"][0]["name"], "Bea", "{own:#}");
        for (inputs, count) in [(json!({"by": "name"}), 2), (json!({"of": "name", "is": "Ada"}), 1), (json!({}), 2)] {
            let told = search(inputs.clone()).await.ok();
            assert_eq!(told["documents"].as_array().unwrap().len(), count, "{inputs}: {told:#}");
            assert_eq!(told["documents"][0]["name"], "Ada", "{inputs}: {told:#}");
        }
        // A field that is not there is refused in the same words as one that is hidden.
        let mut words = Vec::new();
        for inputs in [json!({"by": "salary"}), json!({"by": "score"}), json!({"by": "nothing"}), json!({"of": "salary", "is": "9"}), json!({"of": "salary", "is": "3"})] {
            let refused = search(inputs).await;
            assert_eq!(refused.status, 400);
            words.push(refused.body["error"]["message"].clone());
        }
        words.dedup();
        assert_eq!(words.len(), 1, "{words:?}");
        assert_eq!(ask(&server, "GET", "/r/people?by=salary", Value::Null).await.status, 400);
    }

    async fn a_hidden_field_called_score_is_no_score(server) {
        let namespace = server.namespace("exams").await;
        let exams = [json!({"name": "Ada", "score": 87.5}), json!({"name": "Bea", "score": 12.5})];
        let exams = collection(&server, &namespace, "exams", &exams).await;
        let sorted = stage("sort_attribute", json!({"field": "name", "direction": "asc"}));
        let all = stage("attribute_filter", json!({"field": "name", "operator": "exists"}));
        let id = retriever(&server, &namespace, &exams, vec![all, sorted]).await;
        let path = format!("/v1/retrievers/{id}/publish");
        let search = async |pagination: Value| {
            let body = json!({"inputs": {}, "pagination": pagination});
            ask(&server, "POST", "/v1/public/retrievers/exams/execute", body).await.ok()
        };
        for (exposed, told) in [(&["name"][..], false), (&["name", "score"], true)] {
            server.call_in(&namespace, "POST", &path, page("exams", exposed)).await.ok();
            for pagination in [json!({"method": "offset"}), json!({"method": "keyset", "limit": 1}), json!({"method": "cursor", "limit": 1})] {
                let answer = search(pagination).await;
                assert_eq!(answer["documents"][0].get("score").is_some(), told, "{answer:#}");
                assert!(told || !answer.to_string().contains("87.5"), "{answer:#}");
            }
        }
        // Nothing is asked for by it, and the key that was told leads on.
        server.call_in(&namespace, "POST", &path, page("exams", &["name"])).await.ok();
        let first = search(json!({"method": "keyset", "limit": 1})).await;
        let next = search(json!({"method": "keyset", "limit": 1, "after": first["pagination"]["after"]})).await;
        assert_eq!(next["documents"][0]["name"], "Bea", "{next:#}");
    }

    async fn an_answer_is_known_by_what_is_shown_of_it(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[]).await;
        let path = format!("/v1/collections/{films}/documents");
        let made = server.call_in(&namespace, "POST", &path, json!({"title": "M", "salary": 3})).await.ok();
        let document = format!("{path}/{}", made["document_id"].as_str().unwrap());
        let all = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let id = retriever(&server, &namespace, &films, vec![all]).await;
        let publish = format!("/v1/retrievers/{id}/publish");
        server.call_in(&namespace, "POST", &publish, page("films", &["title"])).await.ok();
        // Addresses of files last an hour: nothing else is to change.
        server.app.clock().hold();
        let search = async |known: &str| {
            let request = server.request("POST", "/v1/public/retrievers/films/execute").header("if-none-match", known);
            let answer = Server::send(request.json(&json!({"inputs": {}}))).await;
            (answer.status, answer.headers["etag"].to_str().unwrap().to_owned())
        };
        let (_, first) = search("").await;
        server.call_in(&namespace, "PATCH", &document, json!({"salary": 4})).await.ok();
        assert_eq!(search(&first).await, (304, first.clone()));
        server.call_in(&namespace, "PATCH", &document, json!({"title": "Faust"})).await.ok();
        let (status, second) = search(&first).await;
        assert_eq!((status, second == first), (200, false));
        // Who is shown more does not know the answer.
        let more = json!({"display_config": page("", &["title", "salary"])["display_config"]});
        server.call_in(&namespace, "PATCH", &publish, more).await.ok();
        let (status, third) = search(&second).await;
        assert_eq!((status, third == second), (200, false));
    }
}
