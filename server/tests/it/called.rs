//! Retrievers that run other retrievers for each document.

use serde_json::{Value, json};

use crate::{
    both,
    harness::Server,
    stages::{collection, execute, retriever, stage},
};

/// A retriever of people by their name, which it has to be told; answers its id.
async fn people_by_name(server: &Server, namespace: &str, people: &str) -> String {
    let body = json!({"retriever_name": "people by name", "collection_identifiers": [people], "stages": by_name(),
        "input_schema": {"name": {"type": "text", "required": true}}});
    let made = server
        .call_in(namespace, "POST", "/v1/retrievers", body)
        .await;
    made.ok()["retriever_id"].as_str().unwrap().to_owned()
}

fn by_name() -> Value {
    json!([
        stage(
            "attribute_filter",
            json!({"field": "name", "value": "{{INPUT.name}}"})
        ),
        stage(
            "sort_attribute",
            json!({"field": "born", "direction": "asc"})
        ),
    ])
}

fn sorted() -> Value {
    stage(
        "sort_attribute",
        json!({"field": "title", "direction": "desc"}),
    )
}

/// Films, and people of whom two have one name.
async fn films_and_people(server: &Server, namespace: &str) -> (String, String) {
    let films = [
        json!({"title": "M", "by": "Lang"}),
        json!({"title": "Faust", "by": "Murnau"}),
        json!({"title": "Destiny", "by": "Lang"}),
        json!({"title": "Caligari"}),
    ];
    let films = collection(server, namespace, "films", &films).await;
    let people = [
        json!({"name": "Lang", "born": 1890}),
        json!({"name": "Lang", "born": 1901}),
    ];
    let people = collection(server, namespace, "people", &people).await;
    (films, people)
}

both! {
    async fn a_retriever_is_run_for_each_document(server) {
        let namespace = server.namespace("nested").await;
        let (films, people) = films_and_people(&server, &namespace).await;
        let inner = people_by_name(&server, &namespace, &people).await;
        let enriched = async |more: Value| {
            let mut parameters = json!({"retriever_id": inner, "retriever_inputs": {"name": "{{ DOC.by }}"}, "fields_to_merge": ["born"]});
            parameters.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let one = retriever(&server, &namespace, &films, vec![sorted(), stage("document_enrich", parameters)]).await;
            execute(&server, &namespace, &one, json!({})).await
        };
        let born = |answer: &Value| -> Vec<Value> {
            answer["documents"].as_array().unwrap().iter().map(|one| json!([one["title"], one["born"]])).collect()
        };
        let answer = enriched(json!({})).await;
        assert_eq!(born(&answer), [json!(["M", 1890]), json!(["Faust", null]), json!(["Destiny", 1890]), json!(["Caligari", null])]);
        // Two names are two searches; what gives no name is told.
        assert_eq!(answer["stage_statistics"]["stages"]["document_enrich"]["metadata"]["runs"], 2);
        let told = answer["degraded"][0]["reason"].as_str().unwrap();
        assert!(told.starts_with("1 of 4 documents") && told.contains("`name` is required"), "{told}");
        let answer = enriched(json!({"strategy": "append", "allow_missing": false})).await;
        assert_eq!(born(&answer), [json!(["M", [1890, 1901]]), json!(["Destiny", [1890, 1901]]), json!(["Caligari", null])]);

        // What is wrong with each of them fails the stage.
        let parameters = json!({"retriever_id": inner, "retriever_inputs": {"nam": "x"}});
        let wrong = retriever(&server, &namespace, &films, vec![stage("document_enrich", parameters)]).await;
        let path = format!("/v1/retrievers/{wrong}/execute");
        let refused = server.call_in(&namespace, "POST", &path, json!({"inputs": {}})).await;
        assert!(refused.status == 400 && refused.body.to_string().contains("there is no input `nam`"), "{:#}", refused.body);

        // A clone of the namespace runs its own copy.
        let body = json!({"namespace_name": "nested_copy"});
        let cloned = server.call("POST", &format!("/v1/namespaces/{namespace}/clone"), body).await.ok();
        server.task_end(cloned["task_id"].as_str().unwrap()).await;
        let ids = &cloned["cloned_resources"]["retrievers"];
        let copy = cloned["namespace"]["namespace_id"].as_str().unwrap();
        let path = format!("/v1/retrievers/{}", ids[&wrong].as_str().unwrap());
        let told = server.call_in(copy, "GET", &path, Value::Null).await.ok();
        assert_eq!(told["stages"][0]["config"]["parameters"]["retriever_id"], ids[&inner]);
    }

    async fn a_retriever_is_run_in_the_collection_that_the_stage_names(server) {
        let namespace = server.namespace("targeted").await;
        let (films, people) = films_and_people(&server, &namespace).await;
        let others = collection(&server, &namespace, "others", &[json!({"name": "Lang", "born": 1700})]).await;
        let inner = json!({"retriever_name": "all people", "collection_identifiers": [people, others], "stages": by_name(),
            "input_schema": {"name": {"type": "text", "required": true}}});
        let inner = server.call_in(&namespace, "POST", "/v1/retrievers", inner).await.ok()["retriever_id"].clone();
        let asked = async |target: &str| {
            let parameters = json!({"retriever_id": inner, "target_collection_id": target, "retriever_inputs": {"name": "{{ DOC.by }}"}});
            let one = retriever(&server, &namespace, &films, vec![sorted(), stage("document_enrich", parameters)]).await;
            let path = format!("/v1/retrievers/{one}/execute");
            server.call_in(&namespace, "POST", &path, json!({"inputs": {}})).await
        };
        for (target, born) in [("{{COLLECTION_ID}}", 1700), ("others", 1700), (people.as_str(), 1890)] {
            let answer = asked(target).await.ok();
            assert_eq!(answer["documents"][0]["born"], born, "{target}: {answer:#}");
        }
        let refused = asked(&films).await;
        assert!(refused.status == 400 && refused.body.to_string().contains("does not search the collection"), "{:#}", refused.body);
    }

    async fn a_retriever_inherits_the_inputs_that_it_takes(server) {
        let namespace = server.namespace("inherited").await;
        let (films, people) = films_and_people(&server, &namespace).await;
        let inner = people_by_name(&server, &namespace, &people).await;
        let enrich = stage("document_enrich", json!({"retriever_id": inner, "fields_to_merge": ["born"]}));
        let body = json!({"retriever_name": "outer", "collection_identifiers": [films], "stages": [sorted(), enrich],
            "input_schema": {"name": {"type": "text"}, "mood": {"type": "text"}}});
        let outer = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
        let outer = outer["retriever_id"].as_str().unwrap();
        let answer = execute(&server, &namespace, outer, json!({"name": "Lang", "mood": "dark"})).await;
        let found = answer["documents"].as_array().unwrap();
        assert!(found.len() == 4 && found.iter().all(|one| one["born"] == 1890), "{answer:#}");
        assert_eq!(answer["stage_statistics"]["stages"]["document_enrich"]["metadata"]["runs"], 1);
    }

    async fn a_retriever_is_written_out_where_it_is_run(server) {
        let namespace = server.namespace("written_out").await;
        let (films, people) = films_and_people(&server, &namespace).await;
        let config = json!({"collection_identifiers": [people], "stages": by_name()});
        let parameters = |config: &Value| json!({"retriever_config": config, "retriever_inputs": {"name": "{{ DOC.by }}"}, "output_field": "person"});
        let one = retriever(&server, &namespace, &films, vec![sorted(), stage("document_enrich", parameters(&config))]).await;
        let answer = execute(&server, &namespace, &one, json!({})).await;
        assert_eq!(answer["documents"][0]["person"]["born"], 1890, "{answer:#}");
        assert_eq!(answer["documents"][1].get("person"), None);

        // Without collections of its own it searches the stage's.
        let there = json!({"target_collection_id": people, "retriever_config": {"stages": by_name()}, "retriever_inputs": {"name": "{{ DOC.by }}"}, "output_field": "person"});
        let one = retriever(&server, &namespace, &films, vec![sorted(), stage("document_enrich", there)]).await;
        let answer = execute(&server, &namespace, &one, json!({})).await;
        assert_eq!(answer["documents"][0]["person"]["born"], 1890, "{answer:#}");

        let refused = async |parameters: Value| {
            let body = json!({"retriever_name": "refused", "collection_identifiers": [films], "stages": [stage("document_enrich", parameters)]});
            server.call_in(&namespace, "POST", "/v1/retrievers", body).await
        };
        let at = |more: &[&'static str]| [&["body", "stages", "0", "config", "parameters"][..], more].concat();
        let mut wrong = config.clone();
        wrong["stages"][0]["config"]["parameters"]["fild"] = json!("name");
        let place = at(&["retriever_config", "stages", "0", "config", "parameters", "fild"]);
        refused(parameters(&wrong)).await.invalid(&place, "extra_forbidden");
        let nested = json!({"stages": [stage("document_enrich", parameters(&config))]});
        refused(parameters(&nested)).await.invalid(&at(&["retriever_config"]), "invalid_stage");
        refused(json!({"retriever_inputs": {"name": "x"}})).await.invalid(&at(&["retriever_id"]), "missing");
        let elsewhere = server.namespace("elsewhere").await;
        let foreign = collection(&server, &elsewhere, "foreign", &[]).await;
        let foreign = json!({"collection_identifiers": [foreign], "stages": by_name()});
        refused(parameters(&foreign)).await.error(404, "NotFoundError");
    }

    async fn retrievers_run_three_deep_inside_of_one_another(server) {
        let namespace = server.namespace("deep").await;
        let things = collection(&server, &namespace, "things", &[json!({"name": "a"}), json!({"name": "b"})]).await;
        let mut last = retriever(&server, &namespace, &things, vec![stage("limit", json!({"limit": 5}))]).await;
        for depth in 1..=4 {
            let around = stage("document_enrich", json!({"retriever_id": last, "output_field": "inner"}));
            last = retriever(&server, &namespace, &things, vec![around]).await;
            let path = format!("/v1/retrievers/{last}/execute");
            let answer = server.call_in(&namespace, "POST", &path, json!({"inputs": {}})).await;
            let told = answer.body.to_string();
            match depth {
                4 => assert!(answer.status == 400 && told.contains("3 deep inside of one another"), "{told}"),
                _ => assert_eq!(answer.status, 200, "{told}"),
            }
        }
    }

    async fn a_retriever_that_is_run_is_one_of_the_namespace_and_reads_for_its_caller(server) {
        let namespace = server.namespace("friends").await;
        let things = collection(&server, &namespace, "things", &[]).await;
        let inner = stage("attribute_filter", json!({"field": "group", "value": "all"}));
        let inner = retriever(&server, &namespace, &things, vec![inner]).await;
        let around = |named: &str| stage("document_enrich", json!({"retriever_id": named, "output_field": "friend", "strategy": "append"}));
        let elsewhere = server.namespace("elsewhere").await;
        let others = collection(&server, &elsewhere, "others", &[]).await;
        let foreign = retriever(&server, &elsewhere, &others, vec![stage("limit", json!({"limit": 1}))]).await;
        for named in ["nobody", foreign.as_str(), "{{INPUT.which}}"] {
            let body = json!({"retriever_name": "refused", "collection_identifiers": [things], "stages": [around(named)]});
            server.call_in(&namespace, "POST", "/v1/retrievers", body).await.error(404, "NotFoundError");
        }

        let outer = retriever(&server, &namespace, &things, vec![around(&inner)]).await;
        let request = |path: &str, key: &str, body: Value| {
            server.request("POST", path).bearer_auth(key).header("x-namespace", &namespace).json(&body)
        };
        let mut keys: Vec<String> = Vec::new();
        for person in ["ada", "bo"] {
            let body = json!({"name": person, "principal_id": person, "permissions": ["delete"]});
            let made = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", body).await.ok();
            let key = made["key"].as_str().unwrap().to_owned();
            for number in 0..2 {
                let thing = json!({"name": format!("{person} {number}"), "group": "all"});
                Server::send(request(&format!("/v1/collections/{things}/documents"), &key, thing)).await.ok();
            }
            keys.push(key);
        }
        for (person, key) in ["ada", "bo"].iter().zip(&keys) {
            let path = format!("/v1/retrievers/{outer}/execute");
            let answer = Server::send(request(&path, key, json!({"inputs": {}}))).await.ok();
            let found = answer["documents"].as_array().unwrap();
            assert_eq!(found.len(), 2, "{answer:#}");
            for one in found {
                // Its own other document, and nobody else's.
                let friend = one["friend"]["name"].as_str().unwrap();
                assert!(friend.starts_with(person) && one["name"] != friend, "{answer:#}");
            }
        }
    }
}
