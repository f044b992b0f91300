//! Every statement prepares on both databases, and both schemas are the same.

use std::collections::{BTreeMap, BTreeSet};

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

/// Statements that name no owner, by file and name, and why they need none.
type Exceptions = &'static [(&'static str, &'static [&'static str])];

/// At most ten kinds (S-5). What is found without its owner, and is on no list, is a fault; so is what is listed in vain.
const WITHOUT_OWNER: &[(&str, Exceptions)] = &[
    (
        "sweeps over everything, whoever owns it: the server itself removes what is old, or looks for what is due",
        &[
            ("src/idempotency.rs", &["SWEEP"]),
            ("src/usage.rs", &["SWEEP"]),
            ("v1/annotations/store.rs", &["DELETE"]),
            (
                "hosting/auth/store.rs",
                &[
                    "SWEEP_SESSIONS",
                    "SWEEP_TOKENS",
                    "SWEEP_EVENTS",
                    "SWEEP_REQUESTS",
                    "SWEEP_MINUTES",
                ],
            ),
            ("alerts/store.rs", &["EVERYWHERE", "SWEEP"]),
            ("apps/auth_config.rs", &["WITH_KEYS"]),
            ("apps/store.rs", &["UNCHECKED", "OLD_BUNDLES"]),
            ("batches/store/groups.rs", &["OPEN"]),
            ("batches/supervising.rs", &["DUE"]),
            ("documents/journal.rs", &["MARK", "LEFT"]),
            ("exports/store.rs", &["EXPIRED"]),
            ("interactions/store.rs", &["SWEEP"]),
            ("notifications/store.rs", &["SWEEP"]),
            ("organizations/settings.rs", &["ALL"]),
            ("publishing/preview.rs", &["SWEEP"]),
            ("retrievers/store.rs", &["SWEEP_EXECUTIONS"]),
            ("syncs/store.rs", &["DUE", "SWEEP_JOBS"]),
            ("triggers/store.rs", &["SWEEP", "SWEEP_REMOVED"]),
            ("uploads/store.rs", &["RECLAIM", "DUE", "LATE"]),
            ("webhooks/store.rs", &["SWEEP"]),
        ],
    ),
    (
        "figures of the whole server: how many there are, and of whom nothing",
        &[
            ("src/metrics.rs", &["BATCHES", "TASKS", "QUEUE"]),
            ("collections/store.rs", &["COUNT_ALL"]),
            ("documents/journal.rs", &["KEPT"]),
        ],
    ),
    (
        "the work queue is everybody's; a claim is fenced by its lease, and a task by that of its parent",
        &[
            (
                "jobs/store.rs",
                &[
                    "RENEW",
                    "FINISH",
                    "HOLDS",
                    "REQUEUE",
                    "RELEASE",
                    "RECLAIM",
                    "CANCEL_CHILDREN",
                    "HAND_BACK",
                    "UNFINISHED",
                    "CLEAR",
                ],
            ),
            ("jobs/holding.rs", &["POSTPONE"]),
            ("tasks/store.rs", &["UPDATE", "HOLD", "READ"]),
        ],
    ),
    (
        "batches are admitted in one order for all",
        &[
            (
                "batches/store.rs",
                &["LOCK", "READ", "WAITING", "QUEUED", "CRAWLING", "RUNNING"],
            ),
            ("batches/waiting.rs", &["RECENT"]),
        ],
    ),
    (
        "names of public pages and of apps are unique over all organizations: they are all that a visitor sends",
        &[
            ("apps/store.rs", &["TAKEN", "BY_SLUG", "RELEASE_DOMAIN"]),
            (
                "publishing/store.rs",
                &[
                    "FIND_PUBLIC",
                    "TAKE_NAME",
                    "COUNT_PUBLIC",
                    "LIST_OPEN",
                    "COUNT_OPEN",
                    "OPEN_NAMES",
                ],
            ),
        ],
    ),
    (
        "the hash of a secret is what proves its owner",
        &[
            ("api_keys/store.rs", &["FIND_BY_HASH"]),
            ("publishing/preview.rs", &["FIND"]),
        ],
    ),
    (
        "whoever sits at the server looks for the first organization",
        &[("organizations/store.rs", &["COUNT", "FIRST"])],
    ),
];

/// What says whose a row is, in the words of its table.
const OWNERS: [&str; 2] = ["org_id", "namespace_id"];

/// Tables of resources call it so, whatever owns them; in tables that have one of the above it is something else.
const OWNER: &str = "owner";

/// Tables whose owner is a process.
const OF_PROCESSES: [&str; 1] = ["leases"];

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

/// Where a statement chooses its rows: what an insert names is its columns, everything else chooses behind WHERE or ON.
fn choosing(text: &str) -> &str {
    if text.starts_with("INSERT") {
        return text;
    }
    let start = [" WHERE ", " ON "]
        .iter()
        .filter_map(|word| text.find(word))
        .min();
    start.map_or("", |start| &text[start..])
}

/// Whether a statement touches a table with owners, and names the owner.
fn names_owner(text: &str, columns: &BTreeMap<String, BTreeSet<String>>) -> Option<bool> {
    let has = |table: &String, column: &str| {
        columns
            .get(table)
            .is_some_and(|columns| columns.contains(column))
    };
    let tables = tables_of(text);
    let plain = |table: &String| OWNERS.iter().any(|column| has(table, column));
    let by_owner = |table: &String| {
        !plain(table) && has(table, OWNER) && !OF_PROCESSES.contains(&table.as_str())
    };
    let any_by_owner = tables.iter().any(by_owner);
    if !any_by_owner && !tables.iter().any(plain) {
        return None;
    }
    let mut words = choosing(text).split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    Some(words.any(|word| OWNERS.contains(&word) || (any_by_owner && word == OWNER)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_on_a_table_with_owners_names_the_owner() {
    let server = Server::start(Database::Sqlite).await;
    let listed: Vec<(String, String)> = server
        .app
        .db()
        .all(
            "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'",
            vec![],
        )
        .await
        .unwrap();
    let mut columns: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (table, column) in listed {
        columns.entry(table).or_default().insert(column);
    }
    let mut allowed: BTreeSet<(&str, &str)> = WITHOUT_OWNER
        .iter()
        .flat_map(|(_, files)| files.iter())
        .flat_map(|(file, names)| names.iter().map(move |name| (*file, *name)))
        .collect();
    let (mut count, mut faults) = (0, Vec::new());
    for Statement { file, name, text } in inventory::iter::<Statement> {
        let Some(named) = names_owner(text, &columns) else {
            continue;
        };
        count += 1;
        let found = allowed
            .iter()
            .find(|(end, listed)| file.ends_with(end) && listed == name)
            .copied();
        match (named, found) {
            (true, _) => {}
            (false, Some(exception)) => {
                allowed.remove(&exception);
            }
            (false, None) => faults.push(format!("{file} {name}: {text}")),
        }
    }
    assert!(count > 400, "only {count} statements");
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(allowed, BTreeSet::new(), "listed in vain");
    assert!(WITHOUT_OWNER.len() <= 10);
}

#[test]
fn an_owner_counts_only_where_rows_are_chosen() {
    let columns = [
        ("batches", vec!["org_id", "namespace_id"]),
        ("buckets", vec!["owner"]),
        ("idempotency_keys", vec!["org_id", "owner"]),
        ("leases", vec!["owner"]),
    ];
    let columns = columns.map(|(table, columns)| {
        let columns = columns.into_iter().map(str::to_owned);
        let columns = columns.collect::<BTreeSet<String>>();
        (table.to_owned(), columns)
    });
    let columns: BTreeMap<String, BTreeSet<String>> = columns.into();
    for (text, named) in [
        (
            "SELECT org_id FROM batches WHERE batch_id = $1",
            Some(false),
        ),
        ("SELECT data FROM batches WHERE org_id = $1", Some(true)),
        ("SELECT data FROM batches", Some(false)),
        ("SELECT data FROM buckets WHERE owner = $1", Some(true)),
        ("UPDATE buckets SET owner = $1 WHERE id = $2", Some(false)),
        (
            "DELETE FROM idempotency_keys WHERE key_id = $1 AND owner = $2",
            Some(false),
        ),
        ("DELETE FROM leases WHERE owner = $1", None),
        ("SELECT number FROM schema_migrations", None),
    ] {
        assert_eq!(names_owner(text, &columns), named, "{text}");
    }
}

/// Takes one name, waits until the other change has its own, and asks for that.
async fn cross(
    server: &Server,
    names: [&'static str; 2],
    both: std::sync::Arc<tokio::sync::Barrier>,
) -> Result<(), loupe_server::error::ApiError> {
    let write = server.app.db().write(move |tx| {
        Box::pin(async move {
            tx.lock(names[0]).await?;
            both.wait().await;
            tx.lock(names[1]).await
        })
    });
    write.await
}

/// Whoever is undone because each of two waited for the other may come again: it is no fault of this server's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_another_one_stood_in_the_way_of_may_come_again() {
    let server = Server::start(Database::Postgres).await;
    let both = std::sync::Arc::new(tokio::sync::Barrier::new(2));
    let (one, other) = tokio::join!(
        cross(&server, ["a", "b"], both.clone()),
        cross(&server, ["b", "a"], both),
    );
    let mut undone = [one, other].into_iter().filter_map(Result::err);
    let error = undone.next().expect("one of them is undone");
    assert!(undone.next().is_none(), "the other one goes on");
    assert!(error.is_transient(), "{error}");
    assert_eq!(error.comes_back(), Some(1), "{error}");
    crate::harness::databases::leave().await;
}
