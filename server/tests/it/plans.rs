//! R-13: no statement reads a table that grows from one end to the other. Each is explained by both databases: SQLite says what it
//! scans; PostgreSQL, told to do so only where nothing else is left, says where nothing was.

use std::collections::{BTreeMap, BTreeSet};

use loupe_server::db::Statement;
use secrecy::ExposeSecret;
use sqlx::{Connection as _, PgConnection, Row as _};

use crate::harness::{Database, Server, databases};

/// Statements by file and name.
type Listed = &'static [(&'static str, &'static [&'static str])];

/// What may, and why. What scans and is on no list is a fault; so is what is listed in vain.
const MAY_SCAN: &[(&str, Listed)] = &[
    (
        "a row of each process",
        &[
            ("jobs/holding.rs", &["LET_GO", "RENEW", "WRITING"]),
            ("jobs/store.rs", &["DROP_LEASES"]),
        ],
    ),
    (
        "a row of each organization, of which a server has few",
        &[
            ("organizations/store.rs", &["COUNT", "FIRST"]),
            ("organizations/settings.rs", &["ALL"]),
        ],
    ),
    (
        "the journal of documents, which is trimmed every two seconds",
        &[("documents/journal.rs", &["KEPT", "SWEEP"])],
    ),
    (
        "a row of each key that was used within the hour; an index of it would be written with every block of tokens",
        &[("limits/shared.rs", &["SWEEP"])],
    ),
    (
        "figures of the whole server, for whoever keeps it",
        &[
            ("src/metrics.rs", &["BATCHES"]),
            ("collections/store.rs", &["COUNT_ALL"]),
        ],
    ),
    (
        "all of them are wanted: alerts that look by the clock, and apps once at the start",
        &[
            ("alerts/store.rs", &["EVERYWHERE"]),
            ("apps/auth_config.rs", &["WITH_KEYS"]),
        ],
    ),
];

fn listed_as(statement: &Statement) -> Option<(&'static str, &'static str)> {
    let files = MAY_SCAN.iter().flat_map(|(_, files)| files.iter());
    let mut names = files.flat_map(|(file, names)| names.iter().map(move |name| (*file, *name)));
    names.find(|(file, name)| statement.file.ends_with(file) && statement.name == *name)
}

/// The tables of the database, and the indexes that hold a part of their table only: to read one whole is no scan of the table.
struct Schema {
    tables: BTreeSet<String>,
    partial: BTreeSet<String>,
}

impl Schema {
    fn of(connection: &rusqlite::Connection) -> Self {
        let names = |sql: &str| -> BTreeSet<String> {
            let mut statement = connection.prepare(sql).unwrap();
            let names = statement
                .query_map([], |row| row.get::<_, String>(0))
                .unwrap();
            names.map(Result::unwrap).collect()
        };
        Self {
            tables: names("SELECT name FROM sqlite_master WHERE type = 'table'"),
            partial: names(
                "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '% WHERE %'",
            ),
        }
    }

    /// Tables by the names that a statement has for them.
    fn named(&self, text: &str) -> BTreeMap<String, String> {
        let from = r"\b(?:FROM|JOIN|UPDATE|INTO)\s+(\w+)(?:\s+(?:AS\s+)?(\w+))?";
        let from = regex::Regex::new(from).unwrap();
        let mut named = BTreeMap::new();
        for found in from.captures_iter(text) {
            if self.tables.contains(&found[1]) {
                named.insert(found[1].to_owned(), found[1].to_owned());
                if let Some(other) = found.get(2) {
                    named.insert(other.as_str().to_owned(), found[1].to_owned());
                }
            }
        }
        named
    }

    /// Tables that SQLite reads whole.
    fn scans(&self, connection: &rusqlite::Connection, text: &str) -> BTreeSet<String> {
        let named = self.named(text);
        let mut found = BTreeSet::new();
        for step in steps(connection, text) {
            let mut words = step.split_whitespace();
            if words.next() != Some("SCAN") {
                continue;
            }
            // What is no table is a part of the statement that was read already.
            let Some(table) = words.next().and_then(|name| named.get(name)) else {
                continue;
            };
            let index = words.skip_while(|word| *word != "INDEX").nth(1);
            if index.is_none_or(|index| !self.partial.contains(index)) {
                found.insert(table.clone());
            }
        }
        found
    }
}

/// Tables that PostgreSQL has no other way into.
async fn sequential(connection: &mut PgConnection, text: &str) -> BTreeSet<String> {
    let argument = regex::Regex::new(r"\$(\d+)").unwrap();
    let numbers = argument.captures_iter(text);
    let most = numbers
        .map(|found| found[1].parse::<usize>().unwrap())
        .max();
    let nulls = vec!["NULL"; most.unwrap_or(0)].join(", ");
    let call = match most {
        Some(_) => format!("looked_at({nulls})"),
        None => "looked_at".to_owned(),
    };
    let sql = format!("PREPARE looked_at AS {text}; EXPLAIN EXECUTE {call}; DEALLOCATE looked_at");
    let plan = sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
        .fetch_all(connection)
        .await
        .unwrap_or_else(|error| panic!("{text}\n{error}"));
    let steps = plan.iter().map(|row| row.get::<String, _>(0));
    let scans = steps.filter_map(|step| {
        let (_, behind) = step.split_once("Seq Scan on ")?;
        behind.split_whitespace().next().map(ToOwned::to_owned)
    });
    scans.collect()
}

/// What is looked up by many ids is found by them, and not by looking at all that its owner has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_named_is_found_by_its_name() {
    let sqlite = Server::start(Database::Sqlite).await;
    let lite = rusqlite::Connection::open(sqlite.app.config().data.join("loupe.db")).unwrap();
    let many = regex::Regex::new(r"(?:(\w+)\.)?(\w+) IN \(\$\d+(?:, \$\d+){15,}\)").unwrap();
    let (mut count, mut faults) = (0, Vec::new());
    for statement in inventory::iter::<Statement> {
        for found in many.captures_iter(statement.text) {
            count += 1;
            let steps = steps(&lite, statement.text);
            let by = format!("{}=?", &found[2]);
            if !steps.iter().any(|step| step.contains(&by)) {
                faults.push(format!("{} {}: {steps:?}", statement.file, statement.name));
            }
        }
    }
    assert!(count > 8, "only {count} statements");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    databases::leave().await;
}

/// The steps that SQLite takes.
fn steps(connection: &rusqlite::Connection, text: &str) -> Vec<String> {
    let mut statement = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {text}"))
        .unwrap();
    // Arguments that nobody binds are null.
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get(3).unwrap());
    }
    steps
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_scans_a_table_that_grows() {
    let (sqlite, postgres) = tokio::join!(
        Server::start(Database::Sqlite),
        Server::start(Database::Postgres)
    );
    let lite = rusqlite::Connection::open(sqlite.app.config().data.join("loupe.db")).unwrap();
    let schema = Schema::of(&lite);
    let url = postgres.app.config().database_url.expose_secret();
    let mut post = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")
        .execute(&mut post)
        .await
        .unwrap();
    // Both tell of a scan where there is one.
    let scan = "SELECT batch_id FROM batches b WHERE b.updated_at > $1";
    let batches = BTreeSet::from(["batches".to_owned()]);
    assert_eq!(schema.scans(&lite, scan), batches);
    assert_eq!(sequential(&mut post, scan).await, batches);

    let (mut count, mut faults, mut used) = (0, Vec::new(), BTreeSet::new());
    for statement in inventory::iter::<Statement> {
        count += 1;
        for (database, scans) in [
            ("SQLite", schema.scans(&lite, statement.text)),
            ("PostgreSQL", sequential(&mut post, statement.text).await),
        ] {
            match listed_as(statement) {
                _ if scans.is_empty() => {}
                Some(listed) => {
                    used.insert(listed);
                }
                None => faults.push(format!(
                    "{} {} scans {scans:?} on {database}: {}",
                    statement.file, statement.name, statement.text
                )),
            }
        }
    }
    let files = MAY_SCAN.iter().flat_map(|(_, files)| files.iter());
    let all: BTreeSet<(&str, &str)> = files
        .flat_map(|(file, names)| names.iter().map(move |name| (*file, *name)))
        .collect();
    assert!(count > 600, "only {count} statements");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(
        all.difference(&used).collect::<Vec<_>>(),
        Vec::<&(&str, &str)>::new(),
        "listed in vain"
    );
    post.close().await.unwrap();
    databases::leave().await;
}
