//! What keys cost and leave behind: typing errors without a read, secrets without a trace, uses without a flood of writes.

use std::{
    collections::HashMap,
    io::Write,
    sync::{Arc, Mutex},
};

use futures::StreamExt;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::{both, harness::Server};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

async fn me(server: &Server, key: &str) -> u16 {
    Server::send(server.request("GET", "/v1/me").bearer_auth(key))
        .await
        .status
}

/// What the process logs.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The first of the secrets that is somewhere in the bytes. They are read once, whatever the number of secrets: each is
/// looked for where an underscore and what follows its last one stand.
pub fn held<'a>(bytes: &[u8], secrets: &'a [String]) -> Option<&'a String> {
    let last = |secret: &str| secret.rfind('_').unwrap();
    let ends: HashMap<&[u8], &String> = secrets
        .iter()
        .map(|secret| (&secret.as_bytes()[last(secret)..][..9], secret))
        .collect();
    let underscores = bytes
        .windows(9)
        .enumerate()
        .filter(|(_, window)| window[0] == b'_');
    underscores
        .filter_map(|(at, end)| Some((at, *ends.get(end)?)))
        .find(|(at, secret)| {
            bytes[..*at].ends_with(&secret.as_bytes()[..last(secret)])
                && bytes[*at..].starts_with(&secret.as_bytes()[last(secret)..])
        })
        .map(|(_, secret)| secret)
}

both! {
    // S-1: the database is closed, so that a read would be an error of another kind.
    async fn ten_thousand_mutated_keys_are_refused_without_the_database(server) {
        let seed: u64 = std::env::var("LOUPE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_121);
        println!("LOUPE_SEED={seed}");
        let mut random = StdRng::seed_from_u64(seed);
        const LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mutated: Vec<String> = (0..10_000).map(|_| {
            let mut key = server.key.clone().into_bytes();
            let place = random.random_range(0..key.len());
            let old = key[place];
            while key[place] == old {
                key[place] = LETTERS[random.random_range(0..LETTERS.len())];
            }
            if random.random_range(0..4) == 0 {
                key.remove(random.random_range(0..key.len()));
            }
            String::from_utf8(key).unwrap()
        }).collect();
        server.app.db().close().await;
        let unknown = loupe_server::auth::key::generate(loupe_server::auth::key::Kind::Standard);
        assert_eq!(me(&server, &unknown).await, 503, "a well-formed key is looked for");
        futures::stream::iter(&mutated).for_each_concurrent(16, |key| {
            let server = &server;
            async move { assert_eq!(me(server, key).await, 401, "{key}") }
        }).await;
    }

    // S-2: rows, files, logs and figures after the whole life of a hundred keys.
    async fn a_hundred_keys_leave_no_trace_of_their_secrets(server) {
        let lines = Lines::default();
        let writer = lines.clone();
        let logged = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(move || writer.clone()).try_init();
        assert!(logged.is_ok());
        let mut secrets = vec![server.key.clone(), "to_keep_a-value-7Qz".to_owned()];
        server.call("POST", "/v1/organizations/secrets", json!({"secret_name": "kept", "secret_value": secrets[1]})).await.ok();
        for number in 0..100 {
            let request = server.request("POST", KEYS).bearer_auth(&server.key).header("idempotency-key", format!("make {number}")).json(&json!({"name": format!("key {number}")}));
            let made = Server::send(request).await.ok();
            let made = made["key"].as_str().unwrap().to_owned();
            assert_eq!(me(&server, &made).await, 200);
            let refused = server.request("GET", KEYS).bearer_auth(&made);
            Server::send(refused).await.error(403, "ForbiddenError");
            let rotated = server.call("POST", &format!("{KEYS}/key {number}/rotate"), Value::Null).await.ok();
            let rotated = rotated["key"].as_str().unwrap().to_owned();
            assert_eq!((me(&server, &rotated).await, me(&server, &made).await), (200, 401));
            secrets.extend([made, rotated]);
        }
        server.call("GET", "/v1/organizations/audit/logs", Value::Null).await.ok();
        let metrics = Server::send(server.request("GET", "/metrics")).await.body.to_string();
        let mut everything = vec![("metrics".to_owned(), metrics.into_bytes())];
        let mut folders = vec![server.folder.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    everything.push((entry.path().display().to_string(), std::fs::read(entry.path()).unwrap()));
                }
            }
        }
        if server.app.db().is_postgres() {
            let tables: Vec<(String,)> = server.app.db().all("SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = 'public'", vec![]).await.unwrap();
            for (table,) in tables {
                let sql: &'static str = Box::leak(format!("SELECT CAST(t AS TEXT) FROM {table} t").into_boxed_str());
                let rows: Vec<(String,)> = server.app.db().all(sql, vec![]).await.unwrap();
                everything.push((table, rows.into_iter().map(|(row,)| row).collect::<Vec<_>>().join("\n").into_bytes()));
            }
        }
        let logged = lines.0.lock().unwrap().clone();
        assert!(logged.len() > 1000, "nothing was logged");
        everything.push(("the log".into(), logged));
        for (place, bytes) in &everything {
            assert_eq!(held(bytes, &secrets), None, "{place} holds a secret");
        }
    }

    // S-8: a trigger counts what is written.
    async fn thousands_of_uses_of_a_key_are_one_write(server) {
        let postgres = server.app.db().is_postgres();
        server.app.db().write(move |tx| Box::pin(async move {
            tx.run("CREATE TABLE touches (at BIGINT)", vec![]).await?;
            if postgres {
                tx.run("CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO touches VALUES (1); RETURN NEW; END'", vec![]).await?;
                tx.run("CREATE TRIGGER touching AFTER UPDATE OF last_used_at ON api_keys FOR EACH ROW EXECUTE FUNCTION touched()", vec![]).await
            } else {
                tx.run("CREATE TRIGGER touching AFTER UPDATE OF last_used_at ON api_keys BEGIN INSERT INTO touches VALUES (1); END", vec![]).await
            }
        })).await.unwrap();
        let made = server.call("POST", KEYS, json!({"name": "busy"})).await.ok();
        let key = made["key"].as_str().unwrap();
        let start = std::time::Instant::now();
        let uses = if std::env::var_os("LOUPE_TEST_LONG").is_some() { 10_000 } else { 2_000 };
        futures::stream::iter(0..uses).for_each_concurrent(32, |_| async {
            assert_eq!(me(&server, key).await, 200);
        }).await;
        let minutes = start.elapsed().as_secs() / 60 + 1;
        // They are written behind the answers.
        let begun = std::time::Instant::now();
        while server.app.db().number("SELECT CAST(COUNT(*) AS BIGINT) FROM touches", vec![]).await.unwrap() == 0 {
            assert!(begun.elapsed().as_secs() < 180, "no use is written");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let writes: Vec<(i64,)> = server.app.db().all("SELECT at FROM touches", vec![]).await.unwrap();
        // The admin key that made this one was used as well.
        assert!((1..=2 * minutes as usize).contains(&writes.len()), "{} writes in {minutes} min", writes.len());
        // The key is known to be in use all the same.
        let refused = server.call("DELETE", &format!("{KEYS}/busy"), Value::Null).await;
        assert_eq!(refused.error(409, "ConflictError")["error"]["code"], "key_in_use");
    }
}
