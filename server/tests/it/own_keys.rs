//! Keys of one's own: stages that ask the language model with a secret of the organization.

use serde_json::{Value, json};

use crate::{
    harness::Server,
    machine::Seen,
    machines::{server, sorted, titles},
    stages::{execute, retriever, stage},
};

const SECRETS: &str = "/v1/organizations/secrets";
const OWN: &str = "Bearer sk-of-our-own-1";

fn body(films: &str, stages: Value) -> Value {
    json!({"retriever_name": "refused", "collection_identifiers": [films], "stages": stages})
}

/// How often the model was asked.
fn asked(seen: &Seen) -> usize {
    seen.lock().unwrap().len()
}

/// The key and the model of the last question.
fn last(seen: &Seen) -> (String, Value) {
    let seen = seen.lock().unwrap();
    let (_, headers, body) = seen.last().unwrap();
    let key = headers["authorization"].to_str().unwrap().to_owned();
    (key, body["model"].clone())
}

/// An agent, which has no answer for this machine.
async fn an_agent_asks_with_it(server: &Server, seen: &Seen, namespace: &str, films: &str) {
    let agent = json!({"system_prompt": "x", "output_schema": {"a": "string"}, "enabled_tools": [],
        "max_turns": 1, "api_key": "mine"});
    let one = retriever(
        server,
        namespace,
        films,
        vec![sorted(), stage("agentic_enrich", agent)],
    )
    .await;
    let path = format!("/v1/retrievers/{one}/execute");
    let before = asked(seen);
    server
        .call_in(namespace, "POST", &path, json!({"inputs": {}}))
        .await;
    assert!(asked(seen) > before && last(seen).0 == OWN);
    let told = server
        .call_in(
            namespace,
            "GET",
            &format!("/v1/retrievers/{one}"),
            Value::Null,
        )
        .await
        .ok()
        .to_string();
    assert!(told.contains("mine") && !told.contains("sk-of"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_ones_own_asks_the_language_model() {
    let (server, seen, namespace, films, _) = server().await;
    server.app.clock().hold();
    let secret = json!({"secret_name": "mine", "secret_value": "sk-of-our-own-1"});
    server.call("POST", SECRETS, secret).await.ok();
    let run = async |id: &str, parameters: Value| {
        let stages = vec![sorted(), stage(id, parameters)];
        let one = retriever(&server, &namespace, &films, stages).await;
        execute(&server, &namespace, &one, json!({"query": "vampire"})).await
    };
    let own = OWN.to_owned();
    let enrich = json!({"prompt": "Rate {{ DOC.title }}", "output_field": "rating", "use_vcache": true,
        "api_key": "mine", "feature_uri": "loupe://language@v1/large"});
    let answer = run("llm_enrich", enrich.clone()).await;
    assert_eq!(
        answer["documents"][0]["rating"], "said of: Rate Faust",
        "{answer:#}"
    );
    assert_eq!(
        (asked(&seen), last(&seen)),
        (3, (own.clone(), json!("large")))
    );
    // The same is known from memory; what another key was told is not.
    run("llm_enrich", enrich.clone()).await;
    assert_eq!(asked(&seen), 3);
    let mut with_the_servers = enrich;
    with_the_servers.as_object_mut().unwrap().remove("api_key");
    run("llm_enrich", with_the_servers).await;
    assert_eq!(
        (asked(&seen), last(&seen)),
        (6, ("Bearer sk-test".to_owned(), json!("large")))
    );
    // The name as a template would have it; criteria of the interface; models of somebody else.
    let filter = json!({"api_key": "{{ secret.mine }}", "provider": "google"});
    let answer = run("llm_filter", filter).await;
    assert_eq!(titles(&answer), ["Nosferatu"]);
    assert!(
        answer["warnings"][0]
            .as_str()
            .unwrap()
            .contains("`google` is not configured"),
        "{answer:#}"
    );
    assert_eq!(last(&seen), (own.clone(), json!("small")));
    let text = seen.lock().unwrap().last().unwrap().2["messages"][1]["content"].to_string();
    assert!(
        text.contains("Criteria: The document answers this query: vampire"),
        "{text}"
    );
    an_agent_asks_with_it(&server, &seen, &namespace, &films).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_ones_own_is_a_secret_of_the_organization() {
    let (server, _, namespace, films, _) = server().await;
    let secret = json!({"secret_name": "mine", "secret_value": "sk-of-our-own-1"});
    server.call("POST", SECRETS, secret).await.ok();
    let stages = |key: &str| json!([stage("llm_filter", json!({"api_key": key}))]);
    // The secrets of others are as none.
    let other = crate::harness::other_organization(&server).await;
    let theirs = json!({"secret_name": "theirs", "secret_value": "sk-of-another"});
    let request = server.request("POST", SECRETS).bearer_auth(&other.key);
    Server::send(request.json(&theirs)).await.ok();
    for name in ["theirs", "nobodys"] {
        let refused = body(&films, stages(name));
        server
            .call_in(&namespace, "POST", "/v1/retrievers", refused)
            .await
            .error(404, "NotFoundError");
    }
    // Who may not manage secrets cannot spend them.
    let keys = "/v1/organizations/users/owner@localhost/api-keys";
    let key = json!({"name": "writer", "permissions": ["read", "write"]});
    let key = server.call("POST", keys, key).await.ok();
    let request = server
        .request("POST", "/v1/retrievers")
        .bearer_auth(key["key"].as_str().unwrap())
        .header("x-namespace", &namespace);
    Server::send(request.json(&body(&films, stages("mine"))))
        .await
        .error(403, "ForbiddenError");
    // A secret that is gone is told by the stage that needs it.
    let filter = stage("llm_filter", json!({"api_key": "mine"}));
    let one = retriever(&server, &namespace, &films, vec![sorted(), filter]).await;
    server
        .call("DELETE", &format!("{SECRETS}/mine"), Value::Null)
        .await
        .ok();
    let path = format!("/v1/retrievers/{one}/execute");
    let failed = server
        .call_in(&namespace, "POST", &path, json!({"inputs": {"query": "x"}}))
        .await;
    assert_eq!(failed.status, 400, "{:#}", failed.body);
    assert!(
        failed
            .body
            .to_string()
            .contains("there is no secret `mine`"),
        "{:#}",
        failed.body
    );
}
