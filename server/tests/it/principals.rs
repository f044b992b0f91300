//! S-6: 1,000 documents, 10 end users, grants. Every way of reading answers exactly what the user owns or was granted,
//! counts and facets included, and every way of writing changes nothing else.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

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

fn ids<'v>(documents: impl IntoIterator<Item = &'v Value>) -> BTreeSet<String> {
    documents
        .into_iter()
        .map(|one| one["document_id"].as_str().unwrap().to_owned())
        .collect()
}

fn array(value: &Value) -> &Vec<Value> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("not a list: {value:#}"))
}

/// Lists, by both methods, paged, searched and grouped; counts.
async fn check_lists(world: &World<'_>, key: &str, seen: &BTreeSet<String>) {
    let (mut listed, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = world
            .call(
                key,
                "GET",
                &format!("{THINGS}?limit=150&include_total=true&cursor={cursor}"),
                Value::Null,
            )
            .await
            .ok();
        assert_eq!(
            page["pagination"]["total"],
            seen.len(),
            "the total counts no other document"
        );
        for id in ids(array(&page["results"])) {
            assert!(listed.insert(id), "a document is listed twice");
        }
        match page["pagination"]["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(&listed, seen);
    let body = json!({"search": "red", "limit": 1000});
    let found = world
        .call(key, "POST", &format!("{THINGS}/list"), body)
        .await
        .ok();
    let red = seen.iter().filter(|id| world.find(id).color == "red");
    assert_eq!(ids(array(&found["results"])), red.cloned().collect());
    let body = json!({"filters": {"field": "color", "operator": "in", "value": ["red", "blue", "green"]}, "group_by": "color", "limit": 1000, "include_total": true});
    let grouped = world
        .call(key, "POST", &format!("{THINGS}/list"), body)
        .await
        .ok();
    let members: Vec<&Value> = array(&grouped["groups"])
        .iter()
        .flat_map(|group| array(&group["documents"]))
        .collect();
    assert_eq!(&ids(members.iter().copied()), seen);
    assert_eq!(
        array(&grouped["groups"])
            .iter()
            .map(|group| group["count"].as_u64().unwrap())
            .sum::<u64>(),
        seen.len() as u64
    );
    assert_eq!(grouped["total_documents"], seen.len());
    let count = world
        .call(key, "GET", &format!("{THINGS}/count"), Value::Null)
        .await
        .ok();
    assert_eq!(count["count"], seen.len());
    let collection = world
        .call(key, "GET", "/v1/collections/things", Value::Null)
        .await
        .ok();
    assert_eq!(collection["document_count"], seen.len());
    let collections = world
        .call(key, "GET", "/v1/collections", Value::Null)
        .await
        .ok();
    assert_eq!(collections["results"][0]["document_count"], seen.len());
    let namespace = world
        .call(
            key,
            "GET",
            &format!("/v1/namespaces/{}", world.namespace),
            Value::Null,
        )
        .await
        .ok();
    assert!(
        namespace["object_count"].is_null() && namespace["document_count"].is_null(),
        "{namespace:#}"
    );
}

/// Searches with their facets and totals, and what explains them.
async fn check_search(world: &World<'_>, key: &str, retriever: &str, seen: &BTreeSet<String>) {
    let (mut found, mut offset) = (BTreeSet::new(), 0);
    loop {
        let body = json!({"inputs": {}, "pagination": {"method": "offset", "page_size": 100, "page_number": offset / 100 + 1}});
        let page = world
            .call(
                key,
                "POST",
                &format!("/v1/retrievers/{retriever}/execute"),
                body,
            )
            .await
            .ok();
        let mut facets = BTreeMap::new();
        for id in seen {
            *facets.entry(world.find(id).color).or_insert(0_u64) += 1;
        }
        for value in array(&page["facets"][0]["values"]) {
            assert_eq!(
                facets.remove(value["value"].as_str().unwrap()),
                value["count"].as_u64(),
                "{}",
                page["facets"]
            );
        }
        assert!(facets.is_empty());
        if let Some(total) = page["pagination"]["total"].as_u64() {
            assert_eq!(total, seen.len() as u64);
        }
        let here = ids(array(&page["documents"]));
        if here.is_empty() {
            break;
        }
        offset += 100;
        found.extend(here);
    }
    assert_eq!(&found, seen);
    let explained = world
        .call(
            key,
            "POST",
            &format!("/v1/retrievers/{retriever}/execute/explain"),
            json!({}),
        )
        .await
        .ok();
    assert_eq!(
        explained["optimization_details"]["documents_in_reach"],
        seen.len()
    );
}

/// Documents under documents: parents, children and named fields.
async fn check_expand(world: &World<'_>, key: &str, seen: &BTreeSet<String>) {
    let body = json!({"expand": ["parent", "children", "related"], "limit": 1000});
    let page = world
        .call(key, "POST", &format!("{THINGS}/list"), body)
        .await
        .ok();
    let mut hidden = 0;
    for shown in array(&page["results"]) {
        let known = world.find(shown["document_id"].as_str().unwrap());
        let expanded = &shown["expanded"];
        let parent = known.parent.as_ref().filter(|id| seen.contains(*id));
        hidden += usize::from(known.parent.is_some() && parent.is_none());
        assert_eq!(
            expanded["parent"]["document_id"].as_str(),
            parent.map(String::as_str)
        );
        let children: BTreeSet<String> = world
            .documents
            .iter()
            .filter(|one| one.parent.as_ref() == Some(&known.id) && seen.contains(&one.id))
            .map(|one| one.id.clone())
            .collect();
        assert_eq!(ids(array(&expanded["children"])), children);
        let related: BTreeSet<String> = array(&shown["related"])
            .iter()
            .map(|id| id.as_str().unwrap().to_owned())
            .filter(|id| seen.contains(id))
            .collect();
        assert_eq!(ids(array(&expanded["related"])), related);
    }
    assert!(
        hidden > 0,
        "no document has a parent that is somebody else's"
    );
}

/// Ids that the user may not see answer as unknown ones.
async fn check_gets(world: &World<'_>, person: usize) {
    let key = &world.keys[person];
    let missing = world
        .call(key, "GET", &format!("{THINGS}/{UNKNOWN}"), Value::Null)
        .await;
    let some = world.documents.iter().skip(person % 4).step_by(4);
    futures::stream::iter(some)
        .for_each_concurrent(8, |one| {
            let missing = missing.body.to_string();
            async move {
                let answer = world
                    .call(key, "GET", &format!("{THINGS}/{}", one.id), Value::Null)
                    .await;
                if one.shows(person) {
                    assert_eq!(answer.ok()["document_id"], one.id);
                } else {
                    assert_eq!(answer.body.to_string().replace(&one.id, UNKNOWN), missing);
                }
            }
        })
        .await;
}

/// Ids named by the feed, read to its end.
async fn feed(world: &World<'_>, key: &str, kind: &str) -> BTreeSet<String> {
    let (mut told, mut cursor, mut last) = (BTreeSet::new(), String::new(), 0);
    loop {
        let page = world
            .call(
                key,
                "GET",
                &format!("/v1/events?limit=100&event_type={kind}&cursor={cursor}"),
                Value::Null,
            )
            .await
            .ok();
        for event in array(&page["results"]) {
            let seq = event["seq"].as_i64().unwrap();
            assert!(seq > last);
            last = seq;
            assert!(event["payload"]["_readers"].is_null());
            let one = event["payload"]["document_id"]
                .as_str()
                .map(ToOwned::to_owned);
            let many: Vec<String> = event["payload"]["document_ids"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|id| id.as_str().unwrap().to_owned())
                .collect();
            assert!(
                one.is_some() || !many.is_empty(),
                "an event of no document: {event:#}"
            );
            assert!(many.is_empty() || event["payload"]["count"] == many.len());
            told.extend(one.into_iter().chain(many));
        }
        if page["has_more"] == false {
            return told;
        }
        cursor = page["next_cursor"].as_str().unwrap().to_owned();
    }
}

/// What is changed or deleted in bulk, and what the feed tells of it.
async fn check_bulk(world: &World<'_>, person: usize) {
    let key = &world.keys[person];
    let own: BTreeSet<String> = world
        .documents
        .iter()
        .filter(|one| one.changes(person))
        .map(|one| one.id.clone())
        .collect();
    let all: Vec<&str> = world.documents.iter().map(|one| one.id.as_str()).collect();
    let marked = |mark: &'static str| async move {
        let body =
            json!({"filters": {"field": "mark", "operator": "eq", "value": mark}, "limit": 1000});
        let page = world
            .call(&world.server.key, "POST", &format!("{THINGS}/list"), body)
            .await
            .ok();
        ids(array(&page["results"]))
    };
    let answer = world
        .call(
            key,
            "PATCH",
            &format!("{THINGS}/bulk"),
            json!({"update_data": {"mark": "bulk"}}),
        )
        .await
        .ok();
    assert_eq!(answer["updated_count"], own.len());
    assert_eq!(marked("bulk").await, own);
    let updates: Vec<Value> = all
        .iter()
        .map(|id| json!({"document_id": id, "update_data": {"mark": "each"}}))
        .collect();
    let answer = world
        .call(
            key,
            "POST",
            &format!("{THINGS}/batch"),
            json!({"updates": updates}),
        )
        .await
        .ok();
    assert_eq!(
        (
            answer["updated_count"].as_u64(),
            answer["failed_count"].as_u64()
        ),
        (Some(own.len() as u64), Some((all.len() - own.len()) as u64))
    );
    assert_eq!(marked("each").await, own);

    let before = ids(array(
        &world
            .call(
                &world.server.key,
                "POST",
                &format!("{THINGS}/list"),
                json!({"limit": 1000}),
            )
            .await
            .ok()["results"],
    ));
    let half: BTreeSet<String> = own.iter().take(own.len() / 2).cloned().collect();
    let others: Vec<&String> = world
        .documents
        .iter()
        .filter(|one| !one.changes(person))
        .map(|one| &one.id)
        .collect();
    let sent: Vec<&String> = half.iter().chain(others).collect();
    let answer = world
        .call(
            key,
            "DELETE",
            &format!("{THINGS}/batch"),
            json!({"document_ids": sent}),
        )
        .await
        .ok();
    assert_eq!(answer["deleted_count"], half.len());
    let answer = world
        .call(
            key,
            "DELETE",
            &format!("{THINGS}/batch"),
            json!({"filters": {"field": "title", "operator": "exists", "value": true}}),
        )
        .await
        .ok();
    assert_eq!(answer["deleted_count"], own.len() - half.len());
    let after = ids(array(
        &world
            .call(
                &world.server.key,
                "POST",
                &format!("{THINGS}/list"),
                json!({"limit": 1000}),
            )
            .await
            .ok()["results"],
    ));
    assert_eq!(after, before.difference(&own).cloned().collect());
    for reader in 0..PEOPLE {
        let told: BTreeSet<String> =
            feed(world, &world.keys[reader], "documents.deleted.batch").await;
        let saw: BTreeSet<String> = own
            .iter()
            .filter(|id| world.find(id).shows(reader))
            .cloned()
            .collect();
        assert_eq!(told, saw, "person {reader} is told of deletions");
    }
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
