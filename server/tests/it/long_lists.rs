//! Lists that are searched, filtered or sorted look at every row, however many there are, and answer what the filter itself
//! says, whatever the database leaves out by its columns.

use loupe_engine::filter::{Filter, sort_values};
use loupe_server::{
    args,
    db::MIGRATIONS,
    v1::tasks::{self, NewTask},
};
use loupe_wire::{TaskStatusEnum, TaskType};
use serde_json::{Value, json};

use crate::{both, harness::Server};

/// Lays copies of a row over the one that is looked for, seven of each moment.
pub const OBJECTS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050) INSERT INTO objects (object_id, namespace_id, bucket_id, content_hash, status, size_bytes, created_at, updated_at, data) SELECT 'obj_copy_' || CAST(i AS TEXT), namespace_id, bucket_id, content_hash, status, size_bytes, created_at + i / 7, updated_at, data FROM objects, n WHERE object_id = $1";
const UPLOADS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050) INSERT INTO uploads (upload_id, namespace_id, bucket_id, status, created_at, updated_at, expires_at, data) SELECT 'upl_copy_' || CAST(i AS TEXT), namespace_id, bucket_id, status, created_at + i / 7, updated_at, expires_at, data FROM uploads, n WHERE upload_id = $1";
const TASKS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050) INSERT INTO tasks (task_id, org_id, namespace_id, task_type, status, created_at, updated_at, ended_at, data) SELECT 'tsk_copy_' || CAST(i AS TEXT), org_id, namespace_id, task_type, status, created_at + i / 7, updated_at, ended_at, data FROM tasks, n WHERE task_id = $1";

pub async fn copy(server: &Server, sql: &'static str, id: &Value) {
    let id = id.as_str().unwrap().to_owned();
    let db = server.app.db();
    let copied = db.write(move |tx| Box::pin(async move { tx.run(sql, args![id]).await }));
    assert_eq!(copied.await.unwrap(), 10_050);
}

async fn bucket(server: &Server) -> (String, String) {
    let namespace = server.namespace("long lists").await;
    let body =
        json!({"bucket_name": "hay", "bucket_schema": {"properties": {"text": {"type": "text"}}}});
    let bucket = server
        .call_in(&namespace, "POST", "/v1/buckets", body)
        .await
        .ok();
    let id = bucket["bucket_id"].as_str().unwrap();
    (namespace, format!("/v1/buckets/{id}"))
}

fn equal(field: &str, value: &str) -> Value {
    json!({"filters": {"AND": [{"field": field, "operator": "eq", "value": value}]}})
}

/// What a list finds, and how much that is.
async fn found(server: &Server, namespace: &str, list: &str, body: Value) -> (Vec<Value>, Value) {
    let path = format!("{list}&include_total=true");
    let page = server.call_in(namespace, "POST", &path, body).await.ok();
    let results = page["results"].as_array().unwrap().clone();
    (results, page["pagination"]["total"].clone())
}

both! {
    async fn every_object_is_looked_at(server) {
        let (namespace, bucket) = bucket(&server).await;
        let mut ids = Vec::new();
        for title in ["the needle", "hay"] {
            let made = server.call_in(&namespace, "POST", &format!("{bucket}/objects"), json!({"title": title})).await.ok();
            ids.push(made["object_id"].clone());
        }
        copy(&server, OBJECTS, &ids[1]).await;
        let list = format!("{bucket}/objects/list");
        let (needle, total) = found(&server, &namespace, &format!("{list}?limit=5"), equal("title", "the needle")).await;
        assert_eq!((needle.len(), &needle[0]["object_id"], total), (1, &ids[0], json!(1)));
        let (end, total) = found(&server, &namespace, &format!("{list}?limit=100&offset=10000"), equal("title", "hay")).await;
        assert_eq!((end.len(), total), (51, json!(10_051)));
        let sort = json!({"sort": {"field": "title", "direction": "desc"}});
        let (sorted, total) = found(&server, &namespace, &format!("{list}?limit=2"), sort).await;
        assert_eq!((&sorted[0]["object_id"], &sorted[1]["title"], total), (&ids[0], &json!("hay"), json!(10_052)));
    }

    async fn every_upload_is_looked_at(server) {
        let (namespace, bucket) = bucket(&server).await;
        let path = format!("{bucket}/uploads");
        let mut ids = Vec::new();
        for name in ["needle.txt", "hay.txt"] {
            let body = json!({"filename": name, "content_type": "text/plain"});
            let made = server.call_in(&namespace, "POST", &path, body).await.ok();
            ids.push(made["upload_id"].clone());
        }
        copy(&server, UPLOADS, &ids[1]).await;
        let (needle, total) = found(&server, &namespace, &format!("{path}/list?limit=5"), equal("filename", "needle.txt")).await;
        assert_eq!((needle.len(), &needle[0]["upload_id"], total), (1, &ids[0], json!(1)));
    }

    async fn every_task_is_looked_at(server) {
        let namespace = server.namespace("long lists").await;
        let me = server.call("GET", "/v1/me", Value::Null).await.ok();
        let mut ids = Vec::new();
        for description in ["the needle", "hay"] {
            let org_id = me["organization_id"].as_str().unwrap();
            let kind = TaskType::ApiCollectionsDocumentsBulkDelete;
            let mut task = NewTask::work(org_id, &namespace, kind, "", Value::Null);
            (task.kind, task.status) = (None, TaskStatusEnum::Completed);
            task.description = description.into();
            let now = server.app.clock().micros();
            let made = server.app.db().write(move |tx| Box::pin(async move { tasks::insert(tx, task, now).await }));
            ids.push(json!(made.await.unwrap().task_id));
        }
        copy(&server, TASKS, &ids[1]).await;
        let (needle, total) = found(&server, &namespace, "/v1/tasks/list?limit=5", equal("description", "the needle")).await;
        assert_eq!((needle.len(), &needle[0]["task_id"], total), (1, &ids[0], json!(1)));
    }
}

/// Throws that are the same in every run.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = self.throw(of.len());
        &of[at]
    }
}

/// Members, and operators that make sense on them.
type Members = &'static [(&'static str, &'static [&'static str])];

fn condition(dice: &mut Dice, rows: &[Value], members: Members) -> Value {
    let (field, operators) = *dice.one_of(members);
    let operator = *dice.one_of(operators);
    let mut held = || dice.one_of(rows)[field].clone();
    let value = match operator {
        "in" | "nin" => json!([held(), held(), held()]),
        "is_null" => json!(held().is_null()),
        "starts_with" => match held().as_str() {
            Some(text) => json!(text.chars().take(2 + dice.throw(3)).collect::<String>()),
            None => json!("/"),
        },
        _ => held(),
    };
    json!({"field": field, "operator": operator, "value": value})
}

/// Any tree of conditions.
fn tree(dice: &mut Dice, rows: &[Value], members: Members, depth: usize) -> Value {
    if depth == 0 || dice.throw(3) == 0 {
        return condition(dice, rows, members);
    }
    let word = *dice.one_of(&["AND", "AND", "OR", "NOT"]);
    let below = (0..=dice.throw(3)).map(|_| tree(dice, rows, members, depth - 1));
    let below: Vec<Value> = below.collect();
    let mut node = json!({ word: below });
    if dice.throw(3) == 0 {
        node["case_sensitive"] = json!(dice.throw(3) > 0);
    }
    node
}

/// What of the rows, newest first, a list has to find.
fn expected(rows: &[Value], filter: &Value, sort: Option<(&str, bool)>) -> Vec<Value> {
    let filter = Filter::parse(filter).unwrap();
    let mut found: Vec<Value> = rows
        .iter()
        .filter(|row| filter.matches(row))
        .cloned()
        .collect();
    if let Some((field, is_descending)) = sort {
        found.sort_by(|one, other| {
            let order = sort_values(one.get(field), other.get(field));
            match is_descending {
                true => order.reverse(),
                false => order,
            }
        });
    }
    found
}

/// Asks a list for pages of whatever comes up, and compares them with what the filter says of its rows.
async fn compare(
    server: &Server,
    namespace: &str,
    (path, id): (&str, &str),
    sorts: &[&str],
    members: Members,
) {
    let all = server
        .call_in(namespace, "POST", &format!("{path}?limit=100"), json!({}))
        .await
        .ok();
    let rows = all["results"].as_array().unwrap();
    assert!(rows.len() > 8, "{all:#}");
    let (mut dice, mut matched) = (Dice(7), 0);
    for _ in 0..60 {
        let filter = json!({"AND": [tree(&mut dice, rows, members, 2)]});
        let sort = match dice.throw(3) {
            0 => None,
            by => Some((*dice.one_of(sorts), by == 1)),
        };
        let expected = expected(rows, &filter, sort);
        matched += usize::from(!expected.is_empty() && expected.len() < rows.len());
        let (limit, offset) = (1 + dice.throw(9), dice.throw(3));
        let mut body = json!({"filters": filter});
        if let Some((field, is_descending)) = sort {
            let direction = if is_descending { "desc" } else { "asc" };
            body["sort"] = json!({"field": field, "direction": direction});
        }
        let list = format!("{path}?limit={limit}&offset={offset}");
        let (page, total) = found(server, namespace, &list, body.clone()).await;
        let ids = |rows: &[Value]| rows.iter().map(|row| row[id].clone()).collect::<Vec<_>>();
        let window: Vec<Value> = expected.iter().skip(offset).take(limit).cloned().collect();
        assert_eq!(
            (ids(&page), total),
            (ids(&window), json!(expected.len())),
            "{list} {body}"
        );
        // The same page of a list that is read no further than it has to be.
        let page = server
            .call_in(namespace, "POST", &list, body.clone())
            .await
            .ok();
        let page = page["results"].as_array().unwrap();
        assert_eq!(ids(page), ids(&window), "{list} {body}");
    }
    assert!(matched > 10, "only {matched} filters say anything");
}

/// Gives every row of a bucket's table a status, by turns.
async fn set_statuses(server: &Server, sql: &'static str, ids: Vec<Value>) {
    let statuses = ["PENDING", "FAILED", "COMPLETED"];
    let changed = server.app.db().write(move |tx| {
        Box::pin(async move {
            for (id, status) in ids.iter().zip(statuses.iter().cycle()) {
                tx.run(sql, args![id.as_str().unwrap(), *status]).await?;
            }
            Ok(())
        })
    });
    changed.await.unwrap();
}

both! {
    async fn objects_are_found_as_their_filter_says(server) {
        let (namespace, bucket) = bucket(&server).await;
        let mut ids = Vec::new();
        for number in 0..20 {
            server.app.clock().advance(1);
            let mut object = json!({"title": format!("{} {}", ["red", "Blue"][number % 2], number % 3)});
            if let Some(prefix) = [None, Some("/a"), Some("/a/b"), Some("/A_%"), Some("\\a|")][number % 5] {
                object["key_prefix"] = json!(prefix);
            }
            let made = server.call_in(&namespace, "POST", &format!("{bucket}/objects"), object).await.ok();
            ids.push(made["object_id"].clone());
        }
        set_statuses(&server, "UPDATE objects SET status = $2 WHERE object_id = $1", ids).await;
        let members: Members = &[
            ("status", &["eq", "ne", "in", "nin", "starts_with"]),
            ("key_prefix", &["eq", "ne", "in", "starts_with", "is_null"]),
            ("created_at", &["eq", "gt", "gte", "lt", "lte"]),
            ("object_id", &["eq", "ne", "in"]),
            ("title", &["eq", "starts_with"]),
        ];
        let path = format!("{bucket}/objects/list");
        compare(&server, &namespace, (&path, "object_id"), &["created_at", "created_at", "title"], members).await;
        // A day is a moment, too, and a text that no database takes is found nowhere.
        for (operator, value, count) in [("gte", "2020-01-01", 20), ("lt", "2020-01-01", 0), ("lt", "no moment", 20)] {
            let filters = json!({"filters": {"AND": [{"field": "created_at", "operator": operator, "value": value}]}});
            let (_, total) = found(&server, &namespace, &format!("{path}?limit=1"), filters).await;
            assert_eq!(total, json!(count), "{operator} {value}");
        }
        let (none, total) = found(&server, &namespace, &format!("{path}?limit=1"), equal("status", "FAILED\0")).await;
        assert_eq!((none.len(), total), (0, json!(0)));
    }

    async fn objects_of_before_are_found_by_the_moment_that_they_show(server) {
        let (namespace, bucket) = bucket(&server).await;
        let made = server.call_in(&namespace, "POST", &format!("{bucket}/objects"), json!({"title": "old"})).await.ok();
        let id = made["object_id"].as_str().unwrap().to_owned();
        let step = MIGRATIONS.iter().find(|one| one.name == "0044_created").unwrap();
        let run = async |sql: &'static str, args: loupe_server::db::Args| {
            let ran = server.app.db().write(move |tx| Box::pin(async move { tx.run(sql, args).await }));
            assert!(ran.await.unwrap() > 0, "{sql}");
        };
        // As one that a snapshot brought back was written.
        run("UPDATE objects SET created_at = created_at + 86400000000 WHERE object_id = $1", args![id]).await;
        let list = format!("{bucket}/objects/list?limit=1");
        let asked = json!({"filters": {"AND": [{"field": "created_at", "operator": "lte", "value": made["created_at"]}]}});
        assert_eq!(found(&server, &namespace, &list, asked.clone()).await.1, json!(0));
        run(if server.app.db().is_postgres() { step.postgres } else { step.sqlite }, vec![]).await;
        for operator in ["lte", "gte", "eq"] {
            let mut asked = asked.clone();
            asked["filters"]["AND"][0]["operator"] = json!(operator);
            assert_eq!(found(&server, &namespace, &list, asked).await.1, json!(1), "{operator}");
        }
    }

    async fn uploads_are_found_as_their_filter_says(server) {
        let (namespace, bucket) = bucket(&server).await;
        let path = format!("{bucket}/uploads");
        let mut ids = Vec::new();
        for number in 0..12 {
            server.app.clock().advance(1);
            let body = json!({"filename": format!("{}.txt", number % 4), "content_type": "text/plain", "presigned_url_expiration": 3600});
            let made = server.call_in(&namespace, "POST", &path, body).await.ok();
            ids.push(made["upload_id"].clone());
        }
        set_statuses(&server, "UPDATE uploads SET status = $2 WHERE upload_id = $1", ids).await;
        let members: Members = &[
            ("status", &["eq", "ne", "in", "nin"]),
            ("created_at", &["gt", "gte", "lt", "lte"]),
            ("filename", &["eq", "in"]),
        ];
        compare(&server, &namespace, (&format!("{path}/list"), "upload_id"), &["created_at", "filename"], members).await;
    }

    async fn tasks_are_found_as_their_filter_says(server) {
        let namespace = server.namespace("long lists").await;
        let me = server.call("GET", "/v1/me", Value::Null).await.ok();
        let org_id = me["organization_id"].as_str().unwrap();
        for number in 0..12 {
            server.app.clock().advance(1);
            let kind = [TaskType::ApiCollectionsDocumentsBulkDelete, TaskType::ApiBucketsBatchesProcess][number % 2];
            let mut task = NewTask::work(org_id, &namespace, kind, "", Value::Null);
            task.kind = None;
            task.status = [TaskStatusEnum::Queued, TaskStatusEnum::Failed, TaskStatusEnum::Completed][number % 3];
            task.description = format!("task {}", number % 4);
            let now = server.app.clock().micros();
            let made = server.app.db().write(move |tx| Box::pin(async move { tasks::insert(tx, task, now).await }));
            made.await.unwrap();
        }
        // Some have begun: a claim writes nothing else.
        let begin = "UPDATE tasks SET status = 'PROCESSING' WHERE namespace_id = $1 AND status = 'QUEUED' AND task_type = 'api_buckets_batches_process'";
        let place = namespace.clone();
        let begun = server.app.db().write(move |tx| Box::pin(async move { tx.run(begin, args![place]).await }));
        assert_eq!(begun.await.unwrap(), 2);
        let members: Members = &[
            ("status", &["eq", "ne", "in", "nin"]),
            ("task_type", &["eq", "ne", "in"]),
            ("description", &["eq", "in", "starts_with"]),
        ];
        compare(&server, &namespace, ("/v1/tasks/list", "task_id"), &["description"], members).await;
    }

    async fn pages_go_on_behind_their_rows_whatever_comes_and_goes(server) {
        let namespace = server.namespace("steady").await;
        for (number, (total, body)) in [
            (false, json!({})),
            (true, json!({})),
            (false, json!({"search": "title"})),
            (true, json!({"search": "title"})),
        ].into_iter().enumerate() {
            let bucket = json!({"bucket_name": format!("steady {number}"), "bucket_schema": {"properties": {"text": {"type": "text"}}}});
            let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
            let objects = format!("/v1/buckets/{}/objects", bucket["bucket_id"].as_str().unwrap());
            // All of one moment, so that their ids alone put them in order.
            let made: Vec<Value> = (1..=5).map(|number| json!({"title": format!("title {number}")})).collect();
            server.call_in(&namespace, "POST", &format!("{objects}/batch"), json!({"objects": made})).await.ok();
            let page = async |query: &str| {
                let path = format!("{objects}/list?include_total={total}&{query}");
                let page = server.call_in(&namespace, "POST", &path, body.clone()).await.ok();
                let ids = page["results"].as_array().unwrap().iter().map(|one| one["object_id"].clone());
                (ids.collect::<Vec<_>>(), page["pagination"].clone())
            };
            let cursor = |pagination: &Value| format!("limit=2&cursor={}", pagination["next_cursor"].as_str().unwrap());
            let (all, _) = page("limit=100").await;
            let (first, told) = page("limit=2").await;
            assert_eq!(first, all[..2]);
            // What was shown goes, the last row too, and something comes before it.
            for id in &first {
                let path = format!("{objects}/{}", id.as_str().unwrap());
                let gone = server.call_in(&namespace, "DELETE", &path, Value::Null).await;
                assert!(gone.status < 300, "{:#}", gone.body);
            }
            server.app.clock().advance(1);
            server.call_in(&namespace, "POST", &objects, json!({"title": "title 6"})).await.ok();
            let (second, told) = page(&cursor(&told)).await;
            assert_eq!((second.as_slice(), &told["page"]), (&all[2..4], &json!(2)), "{body}");
            let (third, end) = page(&cursor(&told)).await;
            assert_eq!((third.as_slice(), end.get("next_cursor")), (&all[4..], None), "{body}");
            let count = total.then_some(json!(4));
            assert_eq!((told.get("total"), end.get("total")), (count.as_ref(), count.as_ref()), "{body}");
        }
        // Of resources, too.
        for (number, body) in [json!({}), json!({"search": "steady"})].into_iter().enumerate() {
            let page = async |query: &str| server.call_in(&namespace, "POST", &format!("/v1/buckets/list?limit=2{query}"), body.clone()).await.ok();
            let first = page("").await;
            let made = json!({"bucket_name": format!("steady too {number}"), "bucket_schema": {"properties": {}}});
            server.app.clock().advance(1);
            server.call_in(&namespace, "POST", "/v1/buckets", made).await.ok();
            let rest = page(&format!("&cursor={}", first["pagination"]["next_cursor"].as_str().unwrap())).await;
            let names = |page: &Value| page["results"].as_array().unwrap().iter().map(|one| one["bucket_id"].clone()).collect::<Vec<_>>();
            let (first, rest) = (names(&first), names(&rest));
            assert!(rest.len() == 2 && rest.iter().all(|one| !first.contains(one)), "{first:?} {rest:?}");
        }
        // A number beside a cursor has the bounds that it has alone.
        let first = server.call_in(&namespace, "GET", "/v1/buckets?limit=1", Value::Null).await.ok();
        let next = first["pagination"]["next_cursor"].as_str().unwrap();
        for (offset, kind) in [(-5, "greater_than_equal"), (10_001, "less_than_equal")] {
            let path = format!("/v1/buckets?cursor={next}&offset={offset}");
            server.call_in(&namespace, "GET", &path, Value::Null).await.invalid(&["query", "offset"], kind);
        }
    }
}
