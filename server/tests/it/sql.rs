//! Every statement prepares on both databases, and both schemas are the same.

use std::collections::BTreeSet;

use loupe_server::db::{Db, MIGRATIONS, Statement};
use sqlx::{Executor, SqlSafeStr};

use crate::harness::{Database, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_prepares_on_both_databases() {
    let (sqlite, postgres) = tokio::join!(
        Server::start(Database::Sqlite),
        Server::start(Database::Postgres)
    );
    let (Db::Sqlite { read, .. }, Db::Postgres(pool)) = (sqlite.app.db(), postgres.app.db()) else {
        panic!("each server uses the database it was given");
    };
    let mut count = 0;
    for statement in inventory::iter::<Statement> {
        for outcome in [
            read.acquire()
                .await
                .unwrap()
                .prepare(statement.text.into_sql_str())
                .await
                .map(drop),
            pool.acquire()
                .await
                .unwrap()
                .prepare(statement.text.into_sql_str())
                .await
                .map(drop),
        ] {
            outcome
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
