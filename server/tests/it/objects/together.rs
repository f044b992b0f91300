//! Objects that are made and removed by several at once, and writes that fail.

use std::time::{Duration, Instant};

use secrecy::ExposeSecret;
use sqlx::{Connection, PgConnection};

use super::*;
use crate::harness::Database;

/// A connection of its own to the database of this server.
pub async fn beside(server: &Server) -> PgConnection {
    let url = server.app.config().database_url.expose_secret();
    PgConnection::connect(url).await.unwrap()
}

pub async fn run(connection: &mut PgConnection, sql: &'static str) {
    sqlx::query(sql).execute(connection).await.unwrap();
}

/// Who waits for a lock in this database.
const WAITING: &str = "SELECT COUNT(DISTINCT pid) FROM pg_locks WHERE NOT granted AND pid IN \
    (SELECT pid FROM pg_locks WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database()))";

/// Until so many others wait for what this connection holds.
pub async fn held_up(connection: &mut PgConnection, count: i64) {
    let start = Instant::now();
    loop {
        let waiting = sqlx::query_scalar(WAITING).fetch_one(&mut *connection);
        let waiting: i64 = waiting.await.unwrap();
        if waiting >= count {
            return;
        }
        assert!(start.elapsed().as_secs() < 60, "{waiting} wait");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Commits what holds others up, once so many wait for it.
pub async fn release(mut connection: PgConnection, count: i64) {
    held_up(&mut connection, count).await;
    run(&mut connection, "COMMIT").await;
}

/// An object as another process writes it, with these keys; not committed.
async fn written_beside(server: &Server, unique_key: Option<&str>, mark: &str) -> PgConnection {
    let mut beside = beside(server).await;
    run(&mut beside, "BEGIN").await;
    let copy = "INSERT INTO objects (object_id, namespace_id, bucket_id, unique_key, content_hash, idempotency_key, status, created_at, updated_at, data) \
        SELECT 'obj_beside', namespace_id, bucket_id, $1, 'other', $2, status, created_at, updated_at, jsonb_set(data, '{object_id}', '\"obj_beside\"') FROM objects";
    let copied = sqlx::query(copy).bind(unique_key).bind(mark);
    copied.execute(&mut beside).await.unwrap();
    beside
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_makes_at_the_same_time_is_found() {
    let server = Server::start(Database::Postgres).await;
    let (namespace, bucket) = bucket(&server, json!({})).await;
    let path = format!("{bucket}/objects");
    let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await;
    call(&path, json!({"title": "first"})).await.ok();
    let waits = written_beside(&server, None, "k").await;
    let many = json!({"objects": [{"title": "a"}, {"title": "b", "idempotency_key": "k"}, {"title": "c"}]});
    let batch = format!("{path}/batch");
    let (made, ()) = futures::future::join(call(&batch, many), release(waits, 1)).await;
    let made = made.ok();
    assert_eq!(
        (&made["succeeded_count"], &made["failed_count"]),
        (&json!(3), &json!(0)),
        "{made:#}"
    );
    assert_eq!(id(&made["succeeded"][1]), "obj_beside");
    assert_eq!(made["succeeded"][1]["replayed_by"], "idempotency_key");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unique_key_that_somebody_takes_at_the_same_time_is_updated_or_refused() {
    let server = Server::start(Database::Postgres).await;
    let unique = json!({"unique_key": {"fields": ["title"]}});
    let (namespace, bucket) = bucket(&server, unique).await;
    let path = format!("{bucket}/objects");
    let call =
        async |path: String, body: Value| server.call_in(&namespace, "POST", &path, body).await;
    call(path.clone(), json!({"title": "first"})).await.ok();
    let waits = written_beside(&server, Some(r#"["a"]"#), "k").await;
    let asked = futures::future::join(
        call(
            format!("{path}?policy=upsert"),
            json!({"title": "a", "year": 3}),
        ),
        call(path.clone(), json!({"title": "a", "year": 4})),
    );
    let ((updated, refused), ()) = futures::future::join(asked, release(waits, 2)).await;
    let updated = updated.ok();
    assert_eq!(
        (id(&updated), &updated["year"]),
        ("obj_beside".into(), &json!(3))
    );
    let refused = refused.error(409, "ConflictError");
    assert_eq!(refused["error"]["code"], "unique_key_conflict");
    assert_eq!(refused["error"]["details"]["object_id"], "obj_beside");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_is_told_once() {
    let server = Server::start(Database::Postgres).await;
    let (namespace, bucket) = bucket(&server, json!({})).await;
    let path = format!("{bucket}/objects");
    let made = server
        .call_in(&namespace, "POST", &path, json!({"title": "a"}))
        .await
        .ok();
    let one = format!("{path}/{}", id(&made));
    let mut waits = beside(&server).await;
    run(&mut waits, "BEGIN").await;
    run(&mut waits, "SELECT 1 FROM objects FOR UPDATE").await;
    let remove = async || {
        server
            .call_in(&namespace, "DELETE", &one, Value::Null)
            .await
    };
    let both = futures::future::join(remove(), remove());
    futures::future::join(both, release(waits, 2)).await;
    assert_eq!(server.events("object.deleted").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unique_key_that_somebody_takes_beside_a_change_refuses_it() {
    let server = Server::start(Database::Postgres).await;
    let unique = json!({"unique_key": {"fields": ["title"]}});
    let (namespace, bucket) = bucket(&server, unique).await;
    let path = format!("{bucket}/objects");
    let made = server
        .call_in(&namespace, "POST", &path, json!({"title": "first"}))
        .await
        .ok();
    let one = format!("{path}/{}", id(&made));
    let waits = written_beside(&server, Some(r#"["a"]"#), "k").await;
    let change = server.call_in(&namespace, "PATCH", &one, json!({"title": "a"}));
    let (refused, ()) = futures::future::join(change, release(waits, 1)).await;
    let refused = refused.error(409, "ConflictError");
    assert_eq!(refused["error"]["code"], "unique_key_conflict");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_two_send_in_either_order_are_both_written() {
    let server = Server::start(Database::Postgres).await;
    let unique = json!({"unique_key": {"fields": ["title"], "default_policy": "upsert"}});
    let (namespace, bucket) = bucket(&server, unique).await;
    let path = format!("{bucket}/objects");
    let batch = format!("{path}/batch");
    let send = |titles: [&str; 2], year: i64| {
        let objects = titles.map(|title| json!({"title": title, "year": year}));
        server.call_in(&namespace, "POST", &batch, json!({"objects": objects}))
    };
    send(["a", "b"], 1).await.ok();
    let (mut waits, mut counts) = (beside(&server).await, beside(&server).await);
    run(&mut waits, "BEGIN").await;
    run(
        &mut waits,
        "SELECT 1 FROM objects WHERE unique_key = '[\"a\"]' FOR UPDATE",
    )
    .await;
    // The first one waits for the object that is held, then the second, which comes to the other object before.
    let second = async {
        held_up(&mut counts, 1).await;
        send(["b", "a"], 3).await
    };
    let both = futures::future::join(send(["a", "b"], 2), second);
    let ((first, second), ()) = futures::future::join(both, release(waits, 2)).await;
    for (answer, year) in [(first, 2), (second, 3)] {
        let answer = answer.ok();
        assert_eq!(answer["succeeded_count"], 2, "{answer:#}");
        assert_eq!(answer["succeeded"][1]["year"], year, "{answer:#}");
    }
}

/// What is read, edited and written back whole is held meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_two_change_beside_each_other_both_hold() {
    let server = Server::start(Database::Postgres).await;
    let (namespace, bucket) = bucket(&server, json!({})).await;
    let collection = json!({"collection_name": "texts", "source": {"type": "bucket", "bucket_ids": [bucket.rsplit('/').next()]},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
    let retriever = json!({"retriever_name": "all", "collection_identifiers": ["texts"], "input_schema": {}, "stages": [
        {"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
            "conditions": {"AND": [{"field": "title", "operator": "exists", "value": true}]}}}}]});
    let call = async |method: &str, path: &str, body: Value| {
        server.call_in(&namespace, method, path, body).await.ok()
    };
    let object = call("POST", &format!("{bucket}/objects"), json!({"title": "a"})).await;
    let object = format!("{bucket}/objects/{}", id(&object));
    call("POST", "/v1/collections", collection).await;
    call("POST", "/v1/retrievers", retriever).await;
    let said = json!({"description": "said"});
    let own = json!({"metadata": {"by": "another"}});
    let changes = [
        (
            object,
            "objects",
            json!({"year": 1}),
            json!({"own": "more"}),
        ),
        (bucket, "buckets", said.clone(), own.clone()),
        (
            "/v1/collections/texts".into(),
            "collections",
            said.clone(),
            own,
        ),
        (
            "/v1/retrievers/all".into(),
            "retrievers",
            said,
            json!({"tags": ["new"]}),
        ),
    ];
    for (path, table, one, other) in changes {
        let mut waits = beside(&server).await;
        run(&mut waits, "BEGIN").await;
        let hold = format!("SELECT 1 FROM {table} FOR UPDATE");
        let hold = sqlx::query(sqlx::AssertSqlSafe(hold));
        hold.execute(&mut waits).await.unwrap();
        let both = futures::future::join(
            call("PATCH", &path, one.clone()),
            call("PATCH", &path, other.clone()),
        );
        futures::future::join(both, release(waits, 2)).await;
        let shown = call("GET", &path, Value::Null).await;
        for sent in [one, other] {
            for (name, value) in sent.as_object().unwrap() {
                assert_eq!(&shown[name], value, "{path}: {shown:#}");
            }
        }
    }
}

both! {
    async fn content_that_several_send_at_once_is_kept_once(server) {
        let (namespace, bucket) = bucket(&server, json!({})).await;
        let path = format!("{bucket}/objects");
        let one = |title: &str| json!({"title": title, "skip_duplicates": true, "blobs": [{"property": "body", "type": "text", "data": "some words"}]});
        // In both orders: who waits for one of them may not hold the other.
        let many = [["a", "b"], ["b", "a"]].map(|titles| json!({"objects": titles.map(one)}));
        let batch = format!("{path}/batch");
        let send = |number: usize| server.call_in(&namespace, "POST", &batch, many[number % 2].clone());
        let made = futures::future::join_all((0..8).map(send)).await;
        let mut created = 0;
        let mut ids: Vec<String> = Vec::new();
        for answer in made {
            let answer = answer.ok();
            assert_eq!(answer["succeeded_count"], 2, "{answer:#}");
            for object in answer["succeeded"].as_array().unwrap() {
                created += usize::from(object["replayed"] == false);
                ids.push(id(object));
            }
        }
        ids.sort();
        ids.dedup();
        assert_eq!((created, ids.len()), (2, 2), "{ids:?}");
        let page = server.call_in(&namespace, "GET", &format!("{path}?include_total=true"), Value::Null).await.ok();
        assert_eq!(page["pagination"]["total"], 2);
        // Files of those that were not made are gone.
        assert_eq!(server.files(&format!("{namespace}/objects")).len(), 2);
    }

    async fn a_write_that_fails_leaves_no_files_behind(server) {
        let (namespace, bucket) = bucket(&server, json!({})).await;
        let path = format!("{bucket}/objects");
        let body = json!({"title": "a", "blobs": [{"property": "body", "type": "text", "data": "some words"}]});
        let postgres = server.app.db().is_postgres();
        server.app.db().write(move |tx| Box::pin(async move {
            if postgres {
                tx.run("CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'", vec![]).await?;
                tx.run("CREATE TRIGGER refusing BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refused()", vec![]).await
            } else {
                tx.run("CREATE TRIGGER refusing BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no'); END", vec![]).await
            }
        })).await.unwrap();
        server.call_in(&namespace, "POST", &path, body.clone()).await.error(500, "InternalServerError");
        let many = json!({"objects": [body, {"title": "b"}]});
        server.call_in(&namespace, "POST", &format!("{path}/batch"), many).await.error(500, "InternalServerError");
        assert_eq!(server.files(&format!("{namespace}/objects")), [""; 0]);
    }
}
