//! A PostgreSQL database of its own for each test, which goes when the test has passed.

use std::{
    cell::RefCell,
    hash::{DefaultHasher, Hash, Hasher},
    sync::atomic::{AtomicU32, Ordering},
};

use loupe_server::db::{Db, MIGRATIONS};
use sqlx::{Connection as _, PgConnection};
use url::Url;

static NUMBER: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Databases that tests of this thread have made.
    static MADE: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn server() -> Url {
    let url = std::env::var("LOUPE_TEST_POSTGRES")
        .expect("LOUPE_TEST_POSTGRES names the PostgreSQL for tests; scripts/test starts one");
    Url::parse(&url).unwrap()
}

/// A database on the test PostgreSQL: a copy of one that has the newest schema. Answers its address.
pub(super) async fn make() -> String {
    let url = server();
    let at = |name: &str| {
        let mut url = url.clone();
        url.set_path(name);
        url.to_string()
    };
    let mut admin = PgConnection::connect(url.as_str()).await.unwrap();
    let mut digest = DefaultHasher::new();
    for migration in MIGRATIONS {
        migration.postgres.hash(&mut digest);
    }
    let newest = format!("loupe_newest_{:016x}", digest.finish());
    // Tests are processes of their own: the first one brings a database up to date, the others wait for it.
    run(&mut admin, "SELECT pg_advisory_lock(725317)".to_owned()).await;
    let known: Option<(i32,)> = sqlx::query_as("SELECT 1 FROM pg_database WHERE datname = $1")
        .bind(&newest)
        .fetch_optional(&mut admin)
        .await
        .unwrap();
    if known.is_none() {
        let draft = format!("{newest}_draft");
        run(
            &mut admin,
            format!("DROP DATABASE IF EXISTS {draft} WITH (FORCE)"),
        )
        .await;
        run(&mut admin, format!("CREATE DATABASE {draft}")).await;
        Db::postgres(&at(&draft), 2).await.unwrap().close().await;
        run(
            &mut admin,
            format!("ALTER DATABASE {draft} RENAME TO {newest}"),
        )
        .await;
    }
    run(&mut admin, "SELECT pg_advisory_unlock(725317)".to_owned()).await;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("loupe_{}_{number}", std::process::id());
    // Left by a process of this number, where the PostgreSQL is older than this run.
    run(&mut admin, format!("DROP DATABASE IF EXISTS {name}")).await;
    run(
        &mut admin,
        format!("CREATE DATABASE {name} TEMPLATE {newest}"),
    )
    .await;
    admin.close().await.unwrap();
    let address = at(&name);
    MADE.with_borrow_mut(|made| made.push(name));
    address
}

/// Drops the databases of a test that has passed: hundreds of them fill a disk. Those of one that fails stay, to be looked at.
pub async fn leave() {
    let made = MADE.take();
    // Nothing of this is for a test to fail of.
    let Ok(mut admin) = PgConnection::connect(server().as_str()).await else {
        return;
    };
    for name in made {
        // Its server may be at work in the background still.
        let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        let _ = sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&mut admin)
            .await;
    }
}

/// Runs a statement that names a database, which no parameter can.
async fn run(admin: &mut PgConnection, sql: String) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(admin)
        .await
        .unwrap();
}
