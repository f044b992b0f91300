//! S-4: an id of another organization answers exactly as an id that does not exist, wherever it is sent, and nothing of the
//! other organization changes.

mod bodies;

use std::collections::BTreeMap;

use loupe_server::auth::table::{Access, TABLE};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::bodies::bodies;
use crate::{
    both,
    harness::{Answer, Server, other_organization},
};

/// One of everything that an organization can hold, by the name that addresses give it.
struct Tenant {
    key: String,
    namespace: String,
    ids: BTreeMap<&'static str, String>,
    /// A page's end in its lists and in its feed.
    cursors: Vec<String>,
}

async fn call(
    server: &Server,
    key: &str,
    namespace: &str,
    method: &str,
    path: &str,
    body: Value,
) -> Answer {
    let mut request = server
        .request(method, path)
        .bearer_auth(key)
        .header("x-namespace", namespace);
    if !body.is_null() {
        request = request.json(&body);
    }
    Server::send(request).await
}

fn text(value: &Value, member: &str) -> String {
    value[member]
        .as_str()
        .unwrap_or_else(|| panic!("no {member} in {value:#}"))
        .to_owned()
}

async fn tenant(server: &Server, key: &str, email: &str, word: &str) -> Tenant {
    let send = |namespace: String, method: &'static str, path: String, body: Value| async move {
        call(server, key, &namespace, method, &path, body)
            .await
            .ok()
    };
    let namespace = text(
        &send(
            String::new(),
            "POST",
            "/v1/namespaces".into(),
            json!({"namespace_name": format!("{word} space")}),
        )
        .await,
        "namespace_id",
    );
    let inside = |method: &'static str, path: String, body: Value| {
        send(namespace.clone(), method, path, body)
    };
    let schema = json!({"properties": {"title": {"type": "string"}, "text": {"type": "text"}}});
    let bucket = text(
        &inside(
            "POST",
            "/v1/buckets".into(),
            json!({"bucket_name": format!("{word} bucket"), "bucket_schema": schema}),
        )
        .await,
        "bucket_id",
    );
    let object =
        json!({"title": word, "blobs": [{"property": "text", "type": "text", "data": "words"}]});
    let object = text(
        &inside("POST", format!("/v1/buckets/{bucket}/objects"), object).await,
        "object_id",
    );
    let batch = text(
        &inside(
            "POST",
            format!("/v1/buckets/{bucket}/batches"),
            json!({"object_ids": [object]}),
        )
        .await,
        "batch_id",
    );
    let upload = inside(
        "POST",
        format!("/v1/buckets/{bucket}/uploads"),
        json!({"filename": "a.txt", "content_type": "text/plain"}),
    )
    .await;
    let collection = json!({
        "collection_name": format!("{word}-things"), "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1",
            "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]}},
    });
    let collection = text(
        &inside("POST", "/v1/collections".into(), collection).await,
        "collection_id",
    );
    let documents = format!("/v1/collections/{collection}/documents");
    let mut made = Vec::new();
    for number in 0..3 {
        let body =
            json!({"title": format!("{word} {number}"), "vectors": {"own": [1.0, number, 0.0]}});
        made.push(text(
            &inside("POST", documents.clone(), body).await,
            "document_id",
        ));
    }
    let retriever = json!({
        "retriever_name": format!("{word} search"), "collection_identifiers": [collection], "input_schema": {},
        "stages": [{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
            "conditions": {"AND": [{"field": "title", "operator": "exists", "value": true}]}}}}],
    });
    let retriever = text(
        &inside("POST", "/v1/retrievers".into(), retriever).await,
        "retriever_id",
    );
    let found = inside(
        "POST",
        format!("/v1/retrievers/{retriever}/execute"),
        json!({"inputs": {}}),
    )
    .await;
    inside(
        "POST",
        format!("/v1/retrievers/{retriever}/publish"),
        json!({"public_name": format!("{word}-page"), "display_name": word}),
    )
    .await;
    let taxonomy = json!({"taxonomy_name": format!("{word} kinds"), "config": {"taxonomy_type": "flat", "retriever_id": retriever,
        "input_mappings": [{"input_key": "title", "path": "title"}], "source_collection": {"collection_id": collection}}});
    let taxonomy = text(
        &inside("POST", "/v1/taxonomies".into(), taxonomy).await,
        "taxonomy_id",
    );
    let candidate = json!({"retriever_name": format!("{word} candidate")});
    let candidate = inside(
        "POST",
        format!("/v1/retrievers/{retriever}/clone"),
        candidate,
    )
    .await;
    let benchmark = json!({"benchmark_name": word, "baseline_retriever_id": retriever, "candidate_retriever_ids": [candidate["retriever_id"]]});
    let path = "/v1/retrievers/benchmarks".to_owned();
    let benchmark = text(&inside("POST", path, benchmark).await, "benchmark_id");
    let queries = json!([{"query_id": "q", "query_input": {}, "relevant_documents": [made[0]]}]);
    let dataset = json!({"dataset_name": format!("{word}-judgements"), "queries": queries});
    let path = "/v1/retrievers/evaluations/datasets".to_owned();
    let dataset = text(&inside("POST", path, dataset).await, "dataset_id");
    let run = json!({"dataset_name": dataset});
    let path = format!("/v1/retrievers/{retriever}/evaluations");
    let mut run = call(server, key, &namespace, "POST", &path, run).await;
    assert_eq!(run.status, 202, "{:#}", run.body);
    let run = run.body.take();
    ended(server, key, &text(&run, "task_id")).await;
    let told = json!({"feature_id": made[0], "interaction_type": ["click"], "position": 0, "retriever_id": retriever});
    let told = inside("POST", "/v1/retrievers/interactions".into(), told).await;
    let cluster = json!({"cluster_name": format!("{word} groups"), "collection_ids": [collection],
        "vector_config": {"feature_uri": "own", "clustering_method": "kmeans", "algorithm_params": {"n_clusters": 2}}});
    let cluster = text(
        &inside("POST", "/v1/clusters".into(), cluster).await,
        "cluster_id",
    );
    let begun = inside(
        "POST",
        format!("/v1/clusters/{cluster}/execute"),
        Value::Null,
    )
    .await;
    ended(server, key, &text(&begun, "task_id")).await;
    let gathering = text(&begun["additional_data"], "run_id");
    let path = format!("/v1/templates/retrievers/from-retriever/{retriever}");
    let template = inside("POST", path, json!({"template_name": word})).await;
    let keys = format!("/v1/organizations/users/{email}/api-keys");
    let minted = inside("POST", keys, json!({"name": format!("{word}-robot")})).await;
    inside(
        "POST",
        format!("/v1/retrievers/{retriever}/api-keys"),
        json!({"name": format!("{word}-widget")}),
    )
    .await;
    let user = format!("{word}@people.example");
    inside(
        "POST",
        "/v1/organizations/users".into(),
        json!({"email": user, "user_name": word}),
    )
    .await;
    inside(
        "POST",
        "/v1/organizations/secrets".into(),
        json!({"secret_name": format!("{word}-secret"), "secret_value": "v"}),
    )
    .await;
    let connection = json!({
        "name": format!("{word}-storage"), "provider_type": "s3", "test_before_save": false, "provider_config": {
            "credentials": {"access_key_id": word, "secret_access_key": "s"}, "endpoint_url": "http://127.0.0.2:39999"},
    });
    let path = "/v1/organizations/connections".to_owned();
    let connection = inside("POST", path, connection).await;
    // The storage does not answer: the look ends, and nothing of the sync moves after it.
    let follow =
        json!({"connection_id": connection["connection_id"], "source_path": "s3://media/new"});
    let path = format!("/v1/buckets/{bucket}/syncs");
    let sync = inside("POST", path, follow).await;
    ended(server, key, sync["task_ids"][0].as_str().unwrap()).await;
    let app = json!({"slug": format!("{word}-app"), "meta": {"title": word}});
    let app = inside("POST", "/v1/apps".into(), app).await;
    let clone = inside(
        "POST",
        format!("/v1/collections/{collection}/clone"),
        json!({"collection_name": format!("{word}-copy")}),
    )
    .await;
    let task = inside("GET", "/v1/tasks".into(), Value::Null).await["results"][0]["task_id"]
        .as_str()
        .map(ToOwned::to_owned);
    assert!(clone.is_object());
    if let Some(task) = &task {
        ended(server, key, task).await;
    }
    let log = inside("GET", "/v1/organizations/audit/logs".into(), Value::Null).await;
    let page = inside("GET", format!("{documents}?limit=1"), Value::Null).await;
    let feed = inside("GET", "/v1/events?limit=1".into(), Value::Null).await;
    let cursors = [&page["pagination"]["next_cursor"], &feed["next_cursor"]]
        .into_iter()
        .map(|cursor| cursor.as_str().unwrap().to_owned())
        .collect();
    let ids = BTreeMap::from([
        ("namespace_identifier", namespace.clone()),
        ("namespace_id", namespace.clone()),
        ("template_id", text(&template, "template_id")),
        ("bucket_id", bucket.clone()),
        ("bucket_identifier", bucket),
        ("sync_config_id", text(&sync, "sync_config_id")),
        ("sync_job_id", text(&sync, "current_sync_run_id")),
        ("object_identifier", object.clone()),
        ("object_id", object),
        ("batch_id", batch),
        ("upload_id", text(&upload, "upload_id")),
        ("collection_id", collection.clone()),
        ("collection_identifier", collection),
        ("document_id", made.remove(0)),
        ("retriever_id", retriever),
        ("taxonomy_identifier", taxonomy.clone()),
        ("taxonomy_id", taxonomy),
        ("cluster_identifier", cluster.clone()),
        ("cluster_id", cluster),
        ("run_id", gathering),
        ("execution_id", text(&found, "execution_id")),
        ("interaction_id", text(&told, "interaction_id")),
        ("dataset_identifier", dataset),
        ("benchmark_id", benchmark),
        ("evaluation_id", text(&run, "evaluation_id")),
        ("key_name", format!("{word}-robot")),
        ("key_id", text(&minted, "key_id")),
        ("user_email", user),
        ("secret_name", format!("{word}-secret")),
        ("connection_identifier", text(&connection, "connection_id")),
        ("app_id", text(&app, "app_id")),
        ("task_id", task.unwrap_or_else(|| "task".into())),
        ("audit_id", text(&log["results"][0], "audit_id")),
    ]);
    Tenant {
        key: key.to_owned(),
        namespace,
        ids,
        cursors,
    }
}

async fn ended(server: &Server, key: &str, task: &str) {
    let start = std::time::Instant::now();
    loop {
        let answer = call(
            server,
            key,
            "",
            "GET",
            &format!("/v1/tasks/{task}"),
            Value::Null,
        )
        .await;
        if answer.status != 200
            || !matches!(
                answer.body["status"].as_str(),
                Some("QUEUED" | "PROCESSING" | "PENDING" | "IN_PROGRESS")
            )
        {
            return;
        }
        assert!(start.elapsed().as_secs() < 180, "{:#}", answer.body);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// An id of the same form that nothing has.
fn unknown(id: &str) -> String {
    match id.split_once('@') {
        Some(_) => "nobody@people.example".to_owned(),
        None if id.contains('-') && !id.starts_with("doc_") => "nothing-there".to_owned(),
        None => {
            let (prefix, rest) = id
                .rsplit_once('_')
                .map_or(("", id), |(prefix, rest)| (&id[..=prefix.len()], rest));
            // Hexadecimal ids stay so.
            let swap = |c: char| match c {
                '0'..='9' => char::from(b'0' + (b'9' - c as u8)),
                'G'..='Z' | 'g'..='z' if c.eq_ignore_ascii_case(&'z') => 'q',
                'G'..='Z' | 'g'..='z' => 'z',
                other => other,
            };
            let swapped: String = rest.chars().map(swap).collect();
            assert_ne!(swapped, rest);
            format!("{prefix}{swapped}")
        }
    }
}

/// An answer without what differs from request to request: the id that was sent, new ids and moments.
fn masked(answer: &Answer, sent: &[&str]) -> String {
    fn mask(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(mask),
            Value::Object(members) => members.iter_mut().for_each(|(name, member)| {
                let fresh = name.ends_with("_id")
                    || name.ends_with("_at")
                    || name.ends_with("_ms")
                    || name.ends_with("_usd")
                    || name.contains("time")
                    || name.contains("cursor")
                    || matches!(name.as_str(), "key" | "key_hash" | "key_prefix" | "seq");
                if fresh && !member.is_null() {
                    *member = "fresh".into()
                } else {
                    mask(member)
                }
            }),
            _ => {}
        }
    }
    let mut body = answer.body.clone();
    // What an error says of the id is compared as it is; only what was made anew is hidden.
    if answer.status < 400 {
        mask(&mut body);
    }
    let mut text = format!("{} {body}", answer.status);
    for id in sent {
        text = text.replace(id, "SENT");
    }
    text
}

/// Every row of a tenant, hashed, without the records of its own use.
async fn rows(server: &Server, marks: &[String], own: &[String]) -> String {
    let db = server.app.db();
    let listing = if db.is_postgres() {
        "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT) FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"
    } else {
        "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid"
    };
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (table, column) in db.all::<(String, String)>(listing, vec![]).await.unwrap() {
        tables.entry(table).or_default().push(column);
    }
    let mut found = Vec::new();
    for (table, columns) in tables {
        // Tokens, leases and last uses change by themselves.
        if matches!(
            table.as_str(),
            "key_usage"
                | "key_latency"
                | "rate_limits"
                | "leases"
                | "schema_migrations"
                | "document_journal"
        ) {
            continue;
        }
        let columns = columns
            .iter()
            .filter(|column| *column != "last_used_at")
            .map(|column| format!("COALESCE(CAST({column} AS TEXT), '-')"));
        let sql = format!(
            "SELECT {} FROM {table}",
            columns.collect::<Vec<_>>().join(" || '|' || ")
        );
        let rows: Vec<(String,)> = db
            .all(Box::leak(sql.into_boxed_str()), vec![])
            .await
            .unwrap();
        found.extend(
            rows.into_iter()
                .map(|(row,)| format!("{table}: {row}"))
                .filter(|row| {
                    marks.iter().any(|mark| row.contains(mark))
                        // Rows of one's own may name the ids that were sent.
                        && !own.iter().any(|mark| row.contains(mark))
                }),
        );
    }
    assert!(found.len() > 20, "only {} rows", found.len());
    found.sort();
    hex::encode(Sha256::digest(found.join("\n")))
}

/// With ids of `theirs` for `$`, of `own` for `@`.
fn filled(template: &str, own: &Tenant, theirs: &BTreeMap<&'static str, String>) -> String {
    let mut text = template.to_owned();
    // Longer names first: one may begin another.
    let mut names: Vec<_> = theirs.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        text = text.replace(&format!("${name}"), &theirs[name]);
        if let Some(id) = own.ids.get(name) {
            text = text.replace(&format!("@{name}"), id);
        }
    }
    text
}

async fn probe(
    server: &Server,
    own: &Tenant,
    operation: &str,
    body: &Value,
    ids: &BTreeMap<&'static str, String>,
    masks: &[&str],
) -> String {
    let operation = filled(operation, own, ids);
    let body = filled(&body.to_string(), own, ids);
    let (method, path) = operation.split_once(' ').unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    let answer = call(server, &own.key, &own.namespace, method, path, body).await;
    masked(&answer, masks)
}

both! {
    async fn ids_of_another_organization_are_ids_of_nothing(server) {
        let elsewhere = other_organization(&server).await;
        let own = tenant(&server, &server.key, "owner@localhost", "mine").await;
        let theirs = tenant(&server, &elsewhere.key, "owner@elsewhere.example", "theirs").await;
        let mut marks: Vec<String> = theirs.ids.values().filter(|id| id.contains('_')).cloned().collect();
        marks.push(elsewhere.org_id.clone());
        let mut foreign = theirs.ids.clone();
        let mut nothing: BTreeMap<&'static str, String> = foreign.iter().map(|(name, id)| (*name, unknown(id))).collect();
        let organization = server.call("GET", "/v1/organizations", Value::Null).await.ok();
        let mine = [text(&organization, "organization_id"), own.namespace.clone()];
        let tested: Vec<String> = foreign.values().chain(nothing.values()).cloned().collect();
        let mut masks: Vec<&str> = tested.iter().map(String::as_str).collect();
        masks.sort_by_key(|id| std::cmp::Reverse(id.len()));
        let before = rows(&server, &marks, &mine).await;
        let (mut probes, mut faults) = (0, Vec::new());

        // Every id in the address: all of them theirs, or the last one theirs behind parents of one's own.
        for row in TABLE.iter().filter(|row| row.access != Access::Public && row.operation.contains('{')) {
            let last = row.operation.rfind('{').unwrap();
            let all = row.operation.replace('{', "$").replace('}', "");
            let behind = format!("{}{}", row.operation[..last].replace('{', "@").replace('}', ""), row.operation[last..].replace('{', "$").replace('}', ""));
            for template in [all, behind] {
                if template.contains("$feature_extractor_id") {
                    continue;
                }
                for body in [json!({}), json!({"title": "x", "description": "x"})] {
                    let body = if row.operation.starts_with("GET") { Value::Null } else { body };
                    let one = probe(&server, &own, &template, &body, &foreign, &masks).await;
                    let other = probe(&server, &own, &template, &body, &nothing, &masks).await;
                    probes += 1;
                    if one != other || one.starts_with("200") && !template.contains("/list") && !template.contains("availability") {
                        faults.push(format!("{template}\n  theirs: {one}\n  nothing: {other}"));
                    }
                }
            }
        }
        // Their namespace in the header. What is read stays read: the second of two askings finds nothing left.
        for row in TABLE.iter().filter(|row| row.access != Access::Public && !row.operation.contains("quickstart") && !row.operation.ends_with("/read/all")) {
            let (method, path) = row.operation.split_once(' ').unwrap();
            let path = filled(&path.replace('{', "$").replace('}', ""), &own, &foreign);
            let body = if method == "GET" { Value::Null } else { json!({}) };
            let mut answers = Vec::new();
            for namespace in [&theirs.namespace, &nothing["namespace_identifier"]] {
                let answer = call(&server, &own.key, namespace, method, &path, body.clone()).await;
                answers.push(masked(&answer, &masks));
            }
            probes += 1;
            if answers[0] != answers[1] {
                faults.push(format!("{} in their namespace\n  theirs: {}\n  nothing: {}", row.operation, answers[0], answers[1]));
            }
        }
        // Bodies, filters, scopes, clones and queries.
        foreign.insert("cursor", theirs.cursors[0].clone());
        nothing.insert("cursor", own.cursors[0].clone());
        for (operation, body) in bodies() {
            let one = probe(&server, &own, operation, &body, &foreign, &masks).await;
            let other = probe(&server, &own, operation, &body, &nothing, &masks).await;
            probes += 1;
            // A cursor is a place, not an id: theirs may lead elsewhere in one's own list, never into theirs.
            let leaks = one.contains("theirs 0") || one.contains("theirs 1") || one.contains("theirs 2");
            if leaks || (one != other && !operation.contains("cursor") && !body.to_string().contains("cursor")) {
                faults.push(format!("{operation} {body}\n  theirs: {one}\n  nothing: {other}"));
            }
        }
        let feed = call(&server, &own.key, "", "GET", &format!("/v1/events?limit=1000&cursor={}", theirs.cursors[1]), Value::Null).await.ok();
        assert!(!feed.to_string().contains(&theirs.namespace));
        println!("{probes} probes");
        assert!(faults.is_empty(), "{} of {probes}:\n{}", faults.len(), faults.join("\n"));
        assert!(probes > 200, "{probes}");
        assert!(before == rows(&server, &marks, &mine).await, "a row of the other organization changed");
    }

    async fn a_resource_of_another_namespace_does_not_exist(server) {
        let mine = server.namespace("mine").await;
        let other = server.namespace("other").await;
        let body = json!({"bucket_name": "secret", "bucket_schema": {"properties": {}}});
        let bucket = server.call_in(&other, "POST", "/v1/buckets", body).await.ok();
        let id = bucket["bucket_id"].as_str().unwrap();
        let foreign = server.call_in(&mine, "GET", &format!("/v1/buckets/{id}"), Value::Null).await;
        let unknown = server.call_in(&mine, "GET", "/v1/buckets/bkt_unknown", Value::Null).await;
        assert_eq!(foreign.status, 404);
        assert_eq!(foreign.body.to_string().replace(id, "ID"), unknown.body.to_string().replace("bkt_unknown", "ID"));
    }
}
