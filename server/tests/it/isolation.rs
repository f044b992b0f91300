//! S-4: an id of another organization answers exactly as an id that does not exist, wherever it is sent, and nothing of the
//! other organization changes.

mod bodies;
mod tenant;

use std::collections::BTreeMap;

use loupe_server::auth::table::{Access, TABLE};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::{
    bodies::bodies,
    tenant::{Tenant, tenant},
};
use crate::{
    both,
    harness::{Answer, Server, other_organization},
};

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
fn masked(answer: &Answer, sent: &[String]) -> String {
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
                    || matches!(name.as_str(), "key" | "key_hash" | "key_prefix" | "seq")
                    // How much the caller asked for so far.
                    || matches!(name.as_str(), "start" | "end" | "requests" | "by_category");
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

/// Requests with ids of another organization, each beside the same with ids of nothing.
struct Probes<'a> {
    server: &'a Server,
    own: &'a Tenant,
    theirs: &'a Tenant,
    foreign: BTreeMap<&'static str, String>,
    nothing: BTreeMap<&'static str, String>,
    /// Every id that is sent, the longest first.
    sent: Vec<String>,
    count: usize,
    faults: Vec<String>,
}

impl<'a> Probes<'a> {
    fn new(server: &'a Server, own: &'a Tenant, theirs: &'a Tenant) -> Self {
        let foreign = theirs.ids.clone();
        let nothing: BTreeMap<&'static str, String> = foreign
            .iter()
            .map(|(name, id)| (*name, unknown(id)))
            .collect();
        let mut sent: Vec<String> = foreign.values().chain(nothing.values()).cloned().collect();
        sent.sort_by_key(|id| std::cmp::Reverse(id.len()));
        Self {
            server,
            own,
            theirs,
            foreign,
            nothing,
            sent,
            count: 0,
            faults: Vec::new(),
        }
    }

    async fn ask(
        &self,
        operation: &str,
        body: &Value,
        ids: &BTreeMap<&'static str, String>,
    ) -> String {
        let (server, own) = (self.server, self.own);
        let operation = filled(operation, own, ids);
        let body = filled(&body.to_string(), own, ids);
        let (method, path) = operation.split_once(' ').unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        let answer = call(server, &own.key, &own.namespace, method, path, body).await;
        masked(&answer, &self.sent)
    }

    /// What is answered to their ids, and to those of nothing.
    async fn ask_both(&mut self, operation: &str, body: &Value) -> (String, String) {
        self.count += 1;
        (
            self.ask(operation, body, &self.foreign).await,
            self.ask(operation, body, &self.nothing).await,
        )
    }

    fn note(&mut self, asked: &str, theirs: &str, nothing: &str) {
        let fault = format!("{asked}\n  theirs: {theirs}\n  nothing: {nothing}");
        self.faults.push(fault);
    }

    /// Every id in the address: all of them theirs, or the last one theirs behind parents of one's own.
    async fn in_addresses(&mut self) {
        let rows = TABLE.iter().filter(|row| row.access != Access::Public);
        for row in rows.filter(|row| row.operation.contains('{')) {
            let ids_of = |text: &str, mark: &str| text.replace('{', mark).replace('}', "");
            let (parents, last) = row.operation.split_at(row.operation.rfind('{').unwrap());
            let behind = ids_of(parents, "@") + &ids_of(last, "$");
            for template in [ids_of(row.operation, "$"), behind] {
                if template.contains("$feature_extractor_id") {
                    continue;
                }
                for body in [json!({}), json!({"title": "x", "description": "x"})] {
                    let body = match row.operation.starts_with("GET") {
                        true => Value::Null,
                        false => body,
                    };
                    let (one, other) = self.ask_both(&template, &body).await;
                    let is_told = one.starts_with("200")
                        && !template.contains("/list")
                        && !template.contains("availability");
                    if one != other || is_told {
                        self.note(&template, &one, &other);
                    }
                }
            }
        }
    }

    /// Their namespace in the header. What is read stays read: the second of two askings finds nothing left.
    async fn in_headers(&mut self) {
        let rows = TABLE.iter().filter(|row| row.access != Access::Public);
        for row in rows.filter(|row| {
            !row.operation.contains("quickstart") && !row.operation.ends_with("/read/all")
        }) {
            let (method, path) = row.operation.split_once(' ').unwrap();
            let path = path.replace('{', "$").replace('}', "");
            let path = filled(&path, self.own, &self.foreign);
            let body = match method {
                "GET" => Value::Null,
                _ => json!({}),
            };
            let ask = async |namespace: &str| {
                let (server, key) = (self.server, &self.own.key);
                let answer = call(server, key, namespace, method, &path, body.clone()).await;
                masked(&answer, &self.sent)
            };
            let one = ask(&self.theirs.namespace).await;
            let other = ask(&self.nothing["namespace_identifier"]).await;
            self.count += 1;
            if one != other {
                let asked = format!("{} in their namespace", row.operation);
                self.note(&asked, &one, &other);
            }
        }
    }

    /// Bodies, filters, scopes, clones and queries.
    async fn in_bodies(&mut self) {
        self.foreign
            .insert("cursor", self.theirs.cursors[0].clone());
        self.nothing.insert("cursor", self.own.cursors[0].clone());
        for (operation, body) in bodies() {
            let (one, other) = self.ask_both(operation, &body).await;
            // A cursor is a place, not an id: theirs may lead elsewhere in one's own list, never into theirs.
            let leaks = ["theirs 0", "theirs 1", "theirs 2"];
            let leaks = leaks.iter().any(|title| one.contains(title));
            let asked = format!("{operation} {body}");
            if leaks || (one != other && !asked.contains("cursor")) {
                self.note(&asked, &one, &other);
            }
        }
    }
}

both! {
    async fn ids_of_another_organization_are_ids_of_nothing(server) {
        let elsewhere = other_organization(&server).await;
        let own = tenant(&server, &server.key, "owner@localhost", "mine").await;
        let theirs = tenant(&server, &elsewhere.key, "owner@elsewhere.example", "theirs").await;
        let mut marks: Vec<String> = theirs.ids.values().filter(|id| id.contains('_')).cloned().collect();
        marks.push(elsewhere.org_id.clone());
        let organization = server.call("GET", "/v1/organizations", Value::Null).await.ok();
        let mine = [text(&organization, "organization_id"), own.namespace.clone()];
        let before = rows(&server, &marks, &mine).await;
        let mut probes = Probes::new(&server, &own, &theirs);
        probes.in_addresses().await;
        probes.in_headers().await;
        probes.in_bodies().await;
        let (count, faults) = (probes.count, probes.faults);
        let feed = call(&server, &own.key, "", "GET", &format!("/v1/events?limit=1000&cursor={}", theirs.cursors[1]), Value::Null).await.ok();
        assert!(!feed.to_string().contains(&theirs.namespace));
        println!("{count} probes");
        assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
        assert!(count > 200, "{count}");
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
