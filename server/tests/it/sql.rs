//! Every statement prepares on both databases, and both schemas are the same.

use std::collections::BTreeSet;

use loupe_server::db::{Db, MIGRATIONS, Statement};

use crate::harness::{Database, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_prepares_on_both_databases() {
    let (sqlite, postgres) = tokio::join!(
        Server::start(Database::Sqlite),
        Server::start(Database::Postgres)
    );
    let mut count = 0;
    for statement in inventory::iter::<Statement> {
        for server in [&sqlite, &postgres] {
            let prepared = server.app.db().prepare(statement.text).await;
            prepared
                .unwrap_or_else(|error| panic!("{}: {}\n{error}", statement.file, statement.text));
        }
        count += 1;
    }
    assert!(count > 20, "only {count} statements are registered");
}

#[test]
fn every_statement_is_registered() {
    let registered: BTreeSet<&str> = inventory::iter::<Statement>
        .into_iter()
        .map(|statement| statement.file)
        .collect();
    let mut folders = vec![std::path::PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/v1"
    ))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap() == "store.rs" {
                let name = path.to_str().unwrap();
                assert!(
                    registered.iter().any(|file| name.ends_with(file)),
                    "{name} registers no statement"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_schemas_have_the_same_tables_and_columns() {
    let (sqlite, postgres) = tokio::join!(
        Server::start(Database::Sqlite),
        Server::start(Database::Postgres)
    );
    let lite: Vec<(String, String)> = sqlite
        .app
        .db()
        .all(
            "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'",
            vec![],
        )
        .await
        .unwrap();
    let post: Vec<(String, String)> = postgres
        .app
        .db()
        .all(
            "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT) FROM information_schema.columns WHERE table_schema = 'public'",
            vec![],
        )
        .await
        .unwrap();
    assert_eq!(
        lite.into_iter().collect::<BTreeSet<_>>(),
        post.into_iter().collect::<BTreeSet<_>>()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrating_twice_changes_nothing_and_a_newer_schema_is_refused() {
    let server = Server::start(Database::Sqlite).await;
    let file = server.app.config().data.join("loupe.db");
    let again = Db::sqlite(&file).await.unwrap();
    again
        .write(|tx| {
            Box::pin(async move {
                tx.run(
                    "INSERT INTO schema_migrations (number, name) VALUES (9999, 'future')",
                    vec![],
                )
                .await
            })
        })
        .await
        .unwrap();
    let refused = Db::sqlite(&file)
        .await
        .err()
        .expect("a newer schema is refused");
    assert!(refused.to_string().contains("newer Loupe"), "{refused}");
    assert!(
        MIGRATIONS
            .windows(2)
            .all(|pair| pair[0].number < pair[1].number)
    );
}

/// Statements that name no owner, by file, and why they need none. One more of them is one more line here.
const WITHOUT_OWNER: &[(&str, &[(&str, usize)])] = &[
    (
        "sweeps and counts over everything, whoever owns it",
        &[
            ("idempotency.rs", 1),
            ("src/metrics.rs", 3),
            ("uploads/store.rs", 2),
            ("documents/journal.rs", 3),
            ("collections/store.rs", 1),
            ("organizations/settings.rs", 1),
            ("notifications/store.rs", 1),
            ("webhooks/store.rs", 1),
            ("triggers/store.rs", 2),
            ("alerts/store.rs", 2),
            ("interactions/store.rs", 1),
            ("retrievers/store.rs", 1),
            ("exports/store.rs", 1),
            ("publishing/preview.rs", 1),
            ("syncs/store.rs", 1),
            ("auth/store.rs", 5),
            ("apps/store.rs", 2),
        ],
    ),
    (
        "the work queue is everybody's; a claim is fenced by its lease",
        &[
            ("jobs/store.rs", 10),
            ("tasks/store.rs", 2),
            ("webhooks/store.rs", 1),
            ("syncs/store.rs", 1),
        ],
    ),
    (
        "batches are admitted in one order for all, and changed in the transaction that found them with their owner",
        &[("batches/store.rs", 9), ("batches/store/objects.rs", 1)],
    ),
    (
        "names of public pages and of apps are unique over all organizations: they are all that a visitor sends",
        &[("publishing/store.rs", 6), ("apps/store.rs", 3)],
    ),
    (
        "the hash of a secret is what proves its owner",
        &[("api_keys/store.rs", 1), ("publishing/preview.rs", 1)],
    ),
    (
        "an answer is kept for one key, and opens with its secret alone",
        &[("idempotency.rs", 1)],
    ),
    (
        "whoever sits at the server looks for the first organization",
        &[("organizations/store.rs", 2)],
    ),
    (
        "ids of namespaces are unique over all organizations",
        &[("namespaces/store.rs", 1)],
    ),
];

/// Tables that a statement names, in lower case.
fn tables_of(text: &str) -> Vec<String> {
    let words: Vec<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    words
        .windows(2)
        .filter(|pair| matches!(pair[0], "FROM" | "JOIN" | "UPDATE" | "INTO"))
        .map(|pair| pair[1].to_lowercase())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_on_a_table_with_owners_names_the_owner() {
    let server = Server::start(Database::Sqlite).await;
    let columns: Vec<(String, String)> = server
        .app
        .db()
        .all(
            "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'",
            vec![],
        )
        .await
        .unwrap();
    const OWNERS: [&str; 3] = ["org_id", "namespace_id", "owner"];
    let owned: BTreeSet<&String> = columns
        .iter()
        .filter(|(_, column)| OWNERS.contains(&column.as_str()))
        .map(|(table, _)| table)
        .collect();
    assert!(owned.len() > 12, "{owned:?}");
    let mut without: std::collections::BTreeMap<&str, Vec<&str>> = Default::default();
    let mut count = 0;
    for statement in inventory::iter::<Statement> {
        if !tables_of(statement.text)
            .iter()
            .any(|table| owned.contains(table))
        {
            continue;
        }
        count += 1;
        // What an insert names is its columns; every other statement chooses its rows behind WHERE or ON.
        let choosing = if statement.text.starts_with("INSERT") {
            statement.text
        } else {
            let start = [" WHERE ", " ON "]
                .iter()
                .filter_map(|word| statement.text.find(word))
                .min();
            start.map_or("", |start| &statement.text[start..])
        };
        let named = choosing
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(|word| OWNERS.contains(&word));
        if !named {
            without
                .entry(statement.file)
                .or_default()
                .push(statement.text);
        }
    }
    assert!(count > 60, "only {count} statements");
    assert!(WITHOUT_OWNER.len() <= 10);
    for (file, texts) in without {
        let allowed: usize = WITHOUT_OWNER
            .iter()
            .flat_map(|(_, files)| files.iter())
            .filter(|(name, _)| file.ends_with(name))
            .map(|(_, count)| count)
            .sum();
        assert_eq!(texts.len(), allowed, "{file}: {texts:#?}");
    }
}
