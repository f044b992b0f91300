//! Services that a stage calls for each document.

use serde_json::{Value, json};

use super::{server, sorted, titles};
use crate::{
    harness::Server,
    machine::Seen,
    stages::{execute, retriever, stage},
};

/// Films, and a service that knows how long each of them takes.
struct Facts {
    server: Server,
    seen: Seen,
    namespace: String,
    films: String,
    address: String,
}

impl Facts {
    async fn start() -> Self {
        let (server, seen, namespace, films, address) = server().await;
        server.app.clock().hold();
        let secret = json!({"secret_name": "facts", "secret_value": "s3cret"});
        let path = "/v1/organizations/secrets";
        server.call("POST", path, secret).await.ok();
        Self {
            server,
            seen,
            namespace,
            films,
            address,
        }
    }

    /// Stages that call the service, with more or other parameters.
    fn stages(&self, more: Value) -> Vec<Value> {
        let address = &self.address;
        let mut parameters = json!({"url": format!("{address}/facts/{{{{ DOC.title }}}}"), "allowed_domains": ["127.0.0.2"],
            "auth": {"type": "bearer", "secret_ref": "facts"}, "headers": {"X-Decade": "{{ DOC.decade }}"}, "output_field": "facts",
            "response_path": "data.minutes"});
        for (name, value) in more.as_object().unwrap() {
            parameters[name] = value.clone();
        }
        vec![sorted(), stage("api_call", parameters)]
    }

    async fn retriever(&self, more: Value) -> String {
        let (server, namespace, films) = (&self.server, &self.namespace, &self.films);
        retriever(server, namespace, films, self.stages(more)).await
    }

    async fn execute(&self, retriever: &str) -> Value {
        execute(&self.server, &self.namespace, retriever, json!({})).await
    }

    async fn are_asked_with_what_the_document_says(&self) {
        let one = self.retriever(json!({})).await;
        let answer = self.execute(&one).await;
        assert_eq!(titles(&answer), ["Faust", "M", "Nosferatu"]);
        let documents = &answer["documents"];
        assert_eq!(
            (documents[0].get("facts"), &documents[1]["facts"]),
            (None, &json!(94))
        );
        let reason = answer["degraded"][0]["reason"].as_str().unwrap();
        assert!(reason.contains("404"), "{answer:#}");
        assert!(!answer.to_string().contains("s3cret"));
        let seen = self.seen.lock().unwrap();
        let (_, headers, _) = seen.iter().find(|(path, ..)| path == "/facts/M").unwrap();
        assert_eq!(
            (
                headers["authorization"].to_str().unwrap(),
                headers["x-decade"].to_str().unwrap()
            ),
            ("Bearer s3cret", "1930")
        );
    }

    async fn are_posted_to_with_a_key_in_the_address(&self) {
        let posted = json!({"on_error": "remove", "method": "POST", "body": {"name": "{{ DOC.title }}"},
            "auth": {"type": "api_key", "secret_ref": "facts", "location": "query", "key": "k"}});
        let one = self.retriever(posted).await;
        let answer = self.execute(&one).await;
        assert_eq!(titles(&answer), ["M", "Nosferatu"]);
        let seen = self.seen.lock().unwrap();
        let mut seen = seen.iter();
        let named = json!({"name": "M"});
        assert!(seen.any(|(path, _, body)| path == "/facts/M?k=s3cret" && *body == named));
    }

    /// No more often than the stage says, whoever asks.
    async fn are_asked_no_more_often_than_the_stage_says(&self) {
        let url = format!("{}/facts/M", self.address);
        let paced = json!({"url": url, "rate_limit": {"requests_per_minute": 2}});
        let one = self.retriever(paced).await;
        for (count, told) in [(2, "1 documents"), (0, "3 documents")] {
            let answer = self.execute(&one).await;
            let documents = answer["documents"].as_array().unwrap();
            let has = documents.iter().filter(|one| one["facts"] == 94).count();
            assert_eq!((documents.len(), has), (3, count), "{answer:#}");
            let reason = answer["degraded"][0]["reason"].as_str().unwrap();
            assert!(
                reason.contains(told) && reason.contains("2 calls a minute"),
                "{reason}"
            );
        }
        self.server.app.clock().advance(61);
        let answer = self.execute(&one).await;
        assert_eq!(answer["documents"][1]["facts"], 94, "{answer:#}");
    }

    /// Another domain, and an address of this machine that is not open, are not asked.
    async fn are_asked_within_their_domains(&self) {
        let asked = self.seen.lock().unwrap().len();
        for parameters in [
            json!({"allowed_domains": ["*.example.com"]}),
            json!({"url": "http://127.0.0.1:1/x", "allowed_domains": ["127.0.0.1"]}),
        ] {
            let one = self.retriever(parameters).await;
            let answer = self.execute(&one).await;
            assert_eq!(answer["degraded"][0]["resource"], "stage", "{answer:#}");
        }
        assert_eq!(self.seen.lock().unwrap().len(), asked);
    }

    /// Templates of this stage read secrets, and nothing that is answered repeats them.
    async fn are_told_secrets_by_templates(&self) {
        let plain = json!({"type": "none"});
        let told = json!({"auth": plain, "headers": {"X-Token": "Token {{ SECRET.facts }}"}});
        let one = self.retriever(told).await;
        let answer = self.execute(&one).await;
        assert_eq!(answer["documents"][1]["facts"], 94, "{answer:#}");
        assert!(!answer.to_string().contains("s3cret"));
        {
            let seen = self.seen.lock().unwrap();
            let tokens: Vec<_> = seen
                .iter()
                .filter_map(|(_, headers, _)| headers.get("x-token")?.to_str().ok())
                .collect();
            assert_eq!((tokens.len(), tokens[0]), (3, "Token s3cret"));
        }
        let lost = json!({"auth": plain, "url": "{{ secrets['facts'] }}"});
        let lost = self.execute(&self.retriever(lost).await).await;
        assert_eq!(lost["degraded"][0]["resource"], "stage", "{lost:#}");
        assert!(!lost.to_string().contains("s3cret"), "{lost:#}");
    }

    /// Only keys that manage secrets make stages that send them.
    async fn are_asked_for_those_who_manage_secrets(&self) {
        let server = &self.server;
        let body = |more: Value| json!({"retriever_name": "n", "collection_identifiers": [self.films], "stages": self.stages(more)});
        let path = "/v1/retrievers";
        let missing = body(json!({"auth": {"type": "bearer", "secret_ref": "nothing"}}));
        let missing = server.call_in(&self.namespace, "POST", path, missing).await;
        missing.error(404, "NotFoundError");
        let missing = body(json!({"body": {"token": "{{ SECRET.nothing }}"}}));
        let missing = server.call_in(&self.namespace, "POST", path, missing).await;
        missing.error(404, "NotFoundError");
        let mut shown = body(json!({}));
        shown["stages"][1] = stage("json_transform", json!({"template": "{{ SECRET.facts }}"}));
        let shown = server.call_in(&self.namespace, "POST", path, shown).await;
        let place = ["body", "stages", "1", "config", "parameters"];
        shown.invalid(&place, "invalid_template");
        let users = "/v1/organizations/users";
        let all = server.call("GET", users, Value::Null).await.ok();
        let email = all["results"][0]["email"].as_str().unwrap();
        let keys = format!("{users}/{email}/api-keys");
        let writer = json!({"name": "writer", "permissions": ["write"]});
        let key = server.call("POST", &keys, writer).await.ok();
        let request = server
            .request("POST", path)
            .bearer_auth(key["key"].as_str().unwrap())
            .header("X-Namespace", &self.namespace)
            .json(&body(json!({})));
        Server::send(request).await.error(403, "ForbiddenError");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_services_are_called_for_each_document_within_their_domains() {
    let facts = Facts::start().await;
    facts.are_asked_with_what_the_document_says().await;
    facts.are_posted_to_with_a_key_in_the_address().await;
    facts.are_told_secrets_by_templates().await;
    facts.are_asked_no_more_often_than_the_stage_says().await;
    facts.are_asked_within_their_domains().await;
    facts.are_asked_for_those_who_manage_secrets().await;
}
