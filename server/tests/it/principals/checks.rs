//! Each way of reading and writing, beside what the world knows.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use serde_json::{Value, json};

use super::{PEOPLE, THINGS, UNKNOWN, World};

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
pub async fn check_lists(world: &World<'_>, key: &str, seen: &BTreeSet<String>) {
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
    check_counts(world, key, seen).await;
}

/// Counts, wherever they are told.
async fn check_counts(world: &World<'_>, key: &str, seen: &BTreeSet<String>) {
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
pub async fn check_search(world: &World<'_>, key: &str, retriever: &str, seen: &BTreeSet<String>) {
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
pub async fn check_expand(world: &World<'_>, key: &str, seen: &BTreeSet<String>) {
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
pub async fn check_gets(world: &World<'_>, person: usize) {
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
pub async fn feed(world: &World<'_>, key: &str, kind: &str) -> BTreeSet<String> {
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

/// Ids of what the whole world holds of these.
async fn held(world: &World<'_>, body: Value) -> BTreeSet<String> {
    let path = format!("{THINGS}/list");
    let page = world.call(&world.server.key, "POST", &path, body).await;
    ids(array(&page.ok()["results"]))
}

async fn marked(world: &World<'_>, mark: &str) -> BTreeSet<String> {
    let filter = json!({"field": "mark", "operator": "eq", "value": mark});
    held(world, json!({"filters": filter, "limit": 1000})).await
}

/// What is changed or deleted in bulk, and what the feed tells of it.
pub async fn check_bulk(world: &World<'_>, person: usize) {
    let documents = world.documents.iter();
    let own = documents.filter(|one| one.changes(person));
    let own: BTreeSet<String> = own.map(|one| one.id.clone()).collect();
    check_changes(world, person, &own).await;
    check_deletions(world, person, &own).await;
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

/// All that one may change is changed, by a filter and by name.
async fn check_changes(world: &World<'_>, person: usize, own: &BTreeSet<String>) {
    let key = &world.keys[person];
    let path = format!("{THINGS}/bulk");
    let body = json!({"update_data": {"mark": "bulk"}});
    let answer = world.call(key, "PATCH", &path, body).await.ok();
    assert_eq!(answer["updated_count"], own.len());
    assert_eq!(&marked(world, "bulk").await, own);
    let all = world.documents.iter();
    let updates: Vec<Value> = all
        .map(|one| json!({"document_id": one.id, "update_data": {"mark": "each"}}))
        .collect();
    let others = updates.len() - own.len();
    let path = format!("{THINGS}/batch");
    let body = json!({"updates": updates});
    let answer = world.call(key, "POST", &path, body).await.ok();
    assert_eq!(
        (
            answer["updated_count"].as_u64(),
            answer["failed_count"].as_u64()
        ),
        (Some(own.len() as u64), Some(others as u64))
    );
    assert_eq!(&marked(world, "each").await, own);
}

/// All that one may change is deleted, half of it by name and the rest by a filter.
async fn check_deletions(world: &World<'_>, person: usize, own: &BTreeSet<String>) {
    let key = &world.keys[person];
    let before = held(world, json!({"limit": 1000})).await;
    let half: Vec<&String> = own.iter().take(own.len() / 2).collect();
    let others = world.documents.iter().filter(|one| !one.changes(person));
    let sent: Vec<&String> = half
        .iter()
        .copied()
        .chain(others.map(|one| &one.id))
        .collect();
    let path = format!("{THINGS}/batch");
    let body = json!({"document_ids": sent});
    let answer = world.call(key, "DELETE", &path, body).await.ok();
    assert_eq!(answer["deleted_count"], half.len());
    let body = json!({"filters": {"field": "title", "operator": "exists", "value": true}});
    let answer = world.call(key, "DELETE", &path, body).await.ok();
    assert_eq!(answer["deleted_count"], own.len() - half.len());
    let after = held(world, json!({"limit": 1000})).await;
    assert_eq!(after, before.difference(own).cloned().collect());
}
