//! Apps whose visitors see only what is theirs (`LOUPE_PRINCIPAL=user`): documents, counts and facets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    app_sign_in::sign_up,
    apps::{at, host},
    browser::{Browser, Mails, app, server_with_mail},
    harness::{Answer, Database, Server, retriever},
};

const THINGS: &str = "/collections/things/documents";

/// A call of the app's own API, as its pages make it.
async fn api(browser: &mut Browser<'_>, method: &str, path: &str, body: Value) -> Answer {
    let (server, slug) = (browser.server, browser.slug);
    // No visitor asks more than thirty times a second.
    server.app.clock().advance(1);
    let origin = format!("http://{}", host(server, slug));
    let mut request = at(server, slug, method, &format!("/api{path}")).header("origin", origin);
    if !body.is_null() {
        request = request.json(&body);
    }
    browser.send(request).await
}

fn ids(documents: &Value) -> BTreeSet<String> {
    let documents = documents.as_array().unwrap().iter();
    documents
        .map(|one| one["document_id"].as_str().unwrap().to_owned())
        .collect()
}

fn thing(color: &str) -> Value {
    json!({"title": format!("a {color} thing"), "color": color, "vectors": {"own": [1.0, 2.0, 3.0]}})
}

/// A visitor, and what is theirs: ids with their colors.
struct Visitor<'s> {
    browser: Browser<'s>,
    own: BTreeMap<String, &'static str>,
}

impl Visitor<'_> {
    async fn write(&mut self, color: &'static str) {
        let made = api(&mut self.browser, "POST", THINGS, thing(color)).await;
        let made = made.ok();
        let me = self.browser.get("/_auth/me").await.ok();
        assert_eq!(made["_internal"]["_acl"]["owner"], me["id"]);
        let id = made["document_id"].as_str().unwrap().to_owned();
        self.own.insert(id, color);
    }

    fn ids(&self) -> BTreeSet<String> {
        self.own.keys().cloned().collect()
    }

    fn colors(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for color in self.own.values() {
            *counts.entry((*color).to_owned()).or_insert(0) += 1;
        }
        counts
    }

    async fn call(&mut self, method: &str, path: &str, body: Value) -> Value {
        api(&mut self.browser, method, path, body).await.ok()
    }

    /// Every way of reading tells of the own documents and of nothing else.
    async fn reads_what_is_own(&mut self, retriever: &str) {
        let (ids_of_own, colors, count) = (self.ids(), self.colors(), self.own.len());
        let path = format!("{THINGS}?limit=100&include_total=true");
        let list = self.call("GET", &path, Value::Null).await;
        assert_eq!(ids(&list["results"]), ids_of_own);
        assert_eq!(list["pagination"]["total"], count);
        let path = "/documents/list";
        let list = self
            .call("POST", path, json!({"include_total": true}))
            .await;
        assert_eq!(ids(&list["results"]), ids_of_own);
        assert_eq!(list["total_documents"], count);
        let told = self
            .call("GET", &format!("{THINGS}/count"), Value::Null)
            .await;
        assert_eq!(told["count"], count);
        let told = self.call("GET", "/collections/things", Value::Null).await;
        assert_eq!(told["document_count"], count);

        let asked = json!({"group_by": [{"field": "color"}], "aggregations": [{"function": "count", "alias": "n"}]});
        let figures = self
            .call("POST", &format!("{THINGS}/aggregate"), asked)
            .await;
        let groups = figures["results"].as_array().unwrap().iter();
        let groups = groups.map(|one| {
            let color = one["group"]["color"].as_str().unwrap().to_owned();
            (color, one["metrics"]["n"].as_u64().unwrap())
        });
        assert_eq!(groups.collect::<BTreeMap<_, _>>(), colors);
        let path = format!("{THINGS}/distinct");
        let values = self.call("POST", &path, json!({"field": "color"})).await;
        assert_eq!(values["total_distinct"], colors.len());

        let path = format!("/retrievers/{retriever}/execute");
        let found = self.call("POST", &path, json!({"inputs": {}})).await;
        assert_eq!(ids(&found["documents"]), ids_of_own);
        let facets = found["facets"][0]["values"].as_array().unwrap().iter();
        let facets = facets.map(|one| {
            let color = one["value"].as_str().unwrap().to_owned();
            (color, one["count"].as_u64().unwrap())
        });
        assert_eq!(facets.collect::<BTreeMap<_, _>>(), colors);
    }

    /// What is somebody else's is as what is not there.
    async fn reaches_nothing_of(&mut self, others: &BTreeSet<String>) {
        let unknown = "doc_00000000000000000000000000000000";
        for id in others {
            let path = |id: &str| format!("{THINGS}/{id}");
            for (method, body) in [
                ("GET", Value::Null),
                ("PATCH", json!({"title": "taken"})),
                ("DELETE", Value::Null),
            ] {
                let refused = api(&mut self.browser, method, &path(id), body.clone()).await;
                let missing = api(&mut self.browser, method, &path(unknown), body).await;
                assert_eq!((refused.status, missing.status), (404, 404), "{method}");
                let told = refused.body.to_string().replace(id.as_str(), unknown);
                assert_eq!(told, missing.body.to_string(), "{method}");
            }
        }
    }
}

/// The retriever that searches by a vector and counts colors.
async fn searching(server: &Server, namespace: &str) -> String {
    let body = json!({
        "retriever_name": "nearest", "collection_identifiers": ["things"], "input_schema": {},
        "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
            "searches": [{"feature_uri": "own", "query": {"input_mode": "vector", "value": [1.0, 1.0, 1.0]}, "top_k": 100}],
            "final_top_k": 100, "facets": [{"key": "color", "limit": 10}],
        }}}],
    });
    let made = server.call_in(namespace, "POST", "/v1/retrievers", body);
    let made = made.await.ok();
    made["retriever_id"].as_str().unwrap().to_owned()
}

/// Two people who signed up.
async fn two<'s>(server: &'s Server, mails: &Mails) -> Vec<Visitor<'s>> {
    let mut people = Vec::new();
    for (number, email) in ["ada@example.com", "bob@example.com"].iter().enumerate() {
        let mut browser = Browser::new(server, "shelf");
        sign_up(&mut browser, mails, email, number + 1).await;
        people.push(Visitor {
            browser,
            own: BTreeMap::new(),
        });
    }
    people
}

async fn visitors_see_only_what_is_theirs(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let (namespace, _) = retriever(&server, "shelf").await;
    let search = searching(&server, &namespace).await;
    let mut office = BTreeSet::new();
    for color in ["red", "black"] {
        let path = format!("/v1{THINGS}");
        let made = server.call_in(&namespace, "POST", &path, thing(color));
        let made = made.await.ok();
        office.insert(made["document_id"].as_str().unwrap().to_owned());
    }
    let auth = json!({"mode": "clerk", "clerk_allowed_providers": ["email"]});
    let id = app(&server, "shelf", auth).await;
    let with = |variables: Value| {
        let rules = json!([
            {"pattern": "/collections/**"}, {"pattern": "/documents/**"},
            {"methods": ["POST"], "pattern": "/retrievers/*/execute"},
        ]);
        let build = json!({"build_config": {"env_vars": variables, "api_allow": rules}});
        let path = format!("/v1/apps/{id}");
        let server = &server;
        async move { server.call("PATCH", &path, build).await.ok() }
    };
    with(json!({"LOUPE_NAMESPACE": namespace, "LOUPE_PRINCIPAL": "user"})).await;

    let mut people = two(&server, &mails).await;
    let [ada, bob] = &mut people[..] else {
        panic!("two people");
    };
    for color in ["red", "red", "green"] {
        ada.write(color).await;
    }
    for color in ["blue", "red"] {
        bob.write(color).await;
    }
    // In turns: an answer that was kept for one is none for the other.
    for _ in 0..2 {
        ada.reads_what_is_own(&search).await;
        bob.reads_what_is_own(&search).await;
    }
    let (adas, bobs) = (ada.ids(), bob.ids());
    ada.reaches_nothing_of(&bobs.union(&office).cloned().collect())
        .await;
    bob.reaches_nothing_of(&adas.union(&office).cloned().collect())
        .await;
    ada.reads_what_is_own(&search).await;
    bob.reads_what_is_own(&search).await;
    // Whoever is signed out sees nothing at all.
    let mut nobody = Browser::new(&server, "shelf");
    let refused = api(&mut nobody, "GET", THINGS, Value::Null).await;
    refused.error(401, "AuthenticationError");

    // Without the variable the app shows everybody everything.
    with(json!({"LOUPE_NAMESPACE": namespace})).await;
    let path = format!("{THINGS}?limit=100&include_total=true");
    let list = ada.call("GET", &path, Value::Null).await;
    assert_eq!(list["pagination"]["total"], 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn visitors_see_only_what_is_theirs_on_sqlite() {
    visitors_see_only_what_is_theirs(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn visitors_see_only_what_is_theirs_on_postgres() {
    visitors_see_only_what_is_theirs(Database::Postgres).await;
}
