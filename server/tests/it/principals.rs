//! S-6: 1,000 documents, 10 end users, grants. Every way of reading answers exactly what the user owns or was granted,
//! counts and facets included, and every way of writing changes nothing else.

mod checks;

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

use self::checks::{check_bulk, check_expand, check_gets, check_lists, check_search, feed};
use crate::{
    both,
    harness::{Answer, Server},
};

const PEOPLE: usize = 10;
const EACH: usize = 90;
const OFFICE: usize = 100;
const THINGS: &str = "/v1/collections/things/documents";
const UNKNOWN: &str = "doc_00000000000000000000000000000000";

/// One document of the world, as the test knows it.
struct Known {
    id: String,
    owner: Option<usize>,
    color: &'static str,
    parent: Option<String>,
    reads: BTreeSet<usize>,
    writes: BTreeSet<usize>,
    public: bool,
}

impl Known {
    fn shows(&self, person: usize) -> bool {
        self.public
            || self.owner == Some(person)
            || self.reads.contains(&person)
            || self.writes.contains(&person)
    }

    fn changes(&self, person: usize) -> bool {
        self.owner == Some(person) || self.writes.contains(&person)
    }
}

struct World<'s> {
    server: &'s Server,
    namespace: String,
    keys: Vec<String>,
    documents: Vec<Known>,
}

impl World<'_> {
    async fn call(&self, key: &str, method: &str, path: &str, body: Value) -> Answer {
        let mut request = self
            .server
            .request(method, path)
            .bearer_auth(key)
            .header("x-namespace", &self.namespace);
        if !body.is_null() {
            request = request.json(&body);
        }
        Server::send(request).await
    }

    /// Key of the owner of a document, the organization's when nobody owns it.
    fn key_of(&self, owner: Option<usize>) -> &str {
        owner.map_or(&self.server.key, |person| &self.keys[person])
    }

    fn seen(&self, person: usize) -> BTreeSet<String> {
        self.documents
            .iter()
            .filter(|one| one.shows(person))
            .map(|one| one.id.clone())
            .collect()
    }

    fn find(&self, id: &str) -> &Known {
        self.documents.iter().find(|one| one.id == id).unwrap()
    }

    async fn make(&mut self) {
        let mut people: Vec<Option<usize>> = (0..PEOPLE * EACH).map(|n| Some(n % PEOPLE)).collect();
        people.extend(vec![None; OFFICE]);
        for (round, owners) in people.chunks(100).enumerate() {
            // Each document is made from one of the round before, which is mostly somebody else's.
            let before: Vec<String> = self
                .documents
                .iter()
                .rev()
                .take(100)
                .map(|one| one.id.clone())
                .collect();
            let world = &*self;
            let makes = owners.iter().enumerate().map(|(place, owner)| {
                let number = round * 100 + place;
                let parent = before.get(place).cloned();
                let color = ["red", "green", "blue"][number % 3];
                let body = json!({
                    "title": format!("document {number} of {owner:?}"), "color": color, "number": number,
                    "source_document_id": parent, "related": before.iter().skip(place).take(5).collect::<Vec<_>>(),
                    "vectors": {"own": [number as f64, 1.0, (number % 7) as f64]},
                });
                async move {
                    let made = world.call(world.key_of(*owner), "POST", THINGS, body).await.ok();
                    let id = made["document_id"].as_str().unwrap().to_owned();
                    let mut known = Known { id, owner: *owner, color, parent, reads: BTreeSet::new(), writes: BTreeSet::new(), public: number % 113 == 0 };
                    if number % 10 == 0 {
                        known.reads.insert((number / 10 + 3) % PEOPLE);
                    }
                    if number % 15 == 7 {
                        known.writes.insert((number / 15 + 1) % PEOPLE);
                    }
                    let name = |people: &BTreeSet<usize>| people.iter().map(|person| format!("person-{person}")).collect::<Vec<_>>();
                    if known.public || !known.reads.is_empty() || !known.writes.is_empty() {
                        let acl = json!({"read": name(&known.reads), "write": name(&known.writes), "public": known.public});
                        world.call(world.key_of(*owner), "PATCH", &format!("{THINGS}/{}/acl", known.id), acl).await.ok();
                    }
                    Ok::<_, ()>(known)
                }
            });
            let made: Vec<Known> = futures::stream::iter(makes)
                .buffered(16)
                .try_collect()
                .await
                .unwrap();
            self.documents.extend(made);
        }
    }
}

async fn world(server: &Server) -> (World<'_>, String) {
    let (namespace, _) = crate::harness::retriever(server, "world").await;
    let body = json!({
        "retriever_name": "search", "collection_identifiers": ["things"], "input_schema": {"like": {"type": "string", "required": false}},
        "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
            "searches": [{"feature_uri": "own", "query": {"input_mode": "vector", "value": [1.0, 1.0, 1.0]}, "top_k": 5000}],
            "final_top_k": 5000, "facets": [{"key": "color", "limit": 10}],
        }}}],
    });
    let made = server
        .call_in(&namespace, "POST", "/v1/retrievers", body)
        .await
        .ok();
    let mut keys = Vec::new();
    for person in 0..PEOPLE {
        let name = format!("person-{person}");
        let body = json!({"name": name, "principal_id": name, "permissions": ["delete"]});
        let made = server
            .call(
                "POST",
                "/v1/organizations/users/owner@localhost/api-keys",
                body,
            )
            .await
            .ok();
        keys.push(made["key"].as_str().unwrap().to_owned());
    }
    let mut world = World {
        server,
        namespace,
        keys,
        documents: Vec::new(),
    };
    world.make().await;
    (world, made["retriever_id"].as_str().unwrap().to_owned())
}

both! {
    async fn each_way_of_reading_shows_exactly_what_the_person_may_see(server) {
        let (world, retriever) = world(&server).await;
        assert_eq!(world.documents.len(), 1000);
        for person in 0..PEOPLE {
            let (key, seen) = (&world.keys[person], world.seen(person));
            assert!(seen.len() > EACH && seen.len() < 200, "{}", seen.len());
            check_lists(&world, key, &seen).await;
            check_search(&world, key, &retriever, &seen).await;
            check_expand(&world, key, &seen).await;
            check_gets(&world, person).await;
            assert_eq!(feed(&world, key, "document.created").await, seen);
            assert_eq!(feed(&world, key, "").await, seen);
        }
        let hidden = world.documents.iter().find(|one| !one.shows(0)).unwrap();
        let like = json!({
            "retriever_name": "like", "collection_identifiers": ["things"], "input_schema": {"like": {"type": "string"}},
            "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                "searches": [{"feature_uri": "own", "query": {"input_mode": "document", "document_ref": {"document_id": "{{INPUT.like}}"}}, "top_k": 10}],
            }}}],
        });
        let like = world.call(&server.key, "POST", "/v1/retrievers", like).await.ok();
        let path = format!("/v1/retrievers/{}/execute", like["retriever_id"].as_str().unwrap());
        let answer = world.call(&world.keys[0], "POST", &path, json!({"inputs": {"like": hidden.id}})).await;
        let missing = world.call(&world.keys[0], "POST", &path, json!({"inputs": {"like": UNKNOWN}})).await;
        assert_eq!(answer.body.to_string().replace(&hidden.id, UNKNOWN), missing.body.to_string());
        world.call(&server.key, "POST", &path, json!({"inputs": {"like": hidden.id}})).await.ok();
        check_bulk(&world, 4).await;
    }

    async fn an_end_user_cannot_reach_around_the_documents(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "around").await;
        let office = server.call_in(&namespace, "POST", THINGS, json!({"title": "office"})).await.ok();
        let body = json!({"name": "eve", "principal_id": "eve", "permissions": ["admin"]});
        let made = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", body).await.ok();
        let world = World { server: &server, namespace, keys: vec![made["key"].as_str().unwrap().into()], documents: Vec::new() };
        let eve = &world.keys[0];
        for (method, path) in [
            ("GET", "/v1/buckets"), ("GET", "/v1/tasks"), ("GET", "/v1/organizations/users"), ("GET", "/v1/organizations"),
            ("DELETE", "/v1/collections/things"), ("POST", "/v1/collections/things/clone"), ("POST", "/v1/retrievers"),
            ("POST", &format!("/v1/retrievers/{retriever}/publish")), ("POST", &format!("/v1/retrievers/{retriever}/executions/list")),
        ] {
            let body = if method == "GET" { Value::Null } else { json!({}) };
            let refused = world.call(eve, method, path, body).await.error(403, "ForbiddenError");
            assert_eq!(refused["error"]["code"], "permission_denied", "{method} {path}");
        }
        // Neither she nor anybody else writes over a document by choosing its id.
        let taken = json!({"document_id": office["document_id"], "title": "taken"});
        for key in [eve, &server.key] {
            world.call(key, "POST", THINGS, taken.clone()).await.invalid(&["body", "document_id"], "value_error");
        }
        let path = format!("{THINGS}/{}", office["document_id"].as_str().unwrap());
        assert_eq!(world.call(&server.key, "GET", &path, Value::Null).await.ok()["title"], "office");
        // A document that she makes cannot name another owner.
        let made = world.call(eve, "POST", THINGS, json!({"title": "hers", "_internal": {"_acl": {"owner": "adam", "public": true}}})).await.ok();
        assert_eq!(made["_internal"]["_acl"], json!({"owner": "eve", "read": [], "write": [], "public": false}));
    }
}
