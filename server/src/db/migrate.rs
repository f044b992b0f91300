//! Migrations: the same numbers and names for both databases, embedded in the binary.

use anyhow::Context;

use super::{Db, Link, TxLink};

/// One step, with its text for each database.
pub struct Migration {
    pub number: i64,
    pub name: &'static str,
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

macro_rules! migrations {
    ($($number:literal $name:literal),* $(,)?) => {
        &[$(Migration {
            number: $number,
            name: $name,
            sqlite: include_str!(concat!("../../../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../../../migrations/postgres/", $name, ".sql")),
        }),*]
    };
}

/// Every step so far, in order.
pub const MIGRATIONS: &[Migration] = migrations![
    1 "0001_base",
    2 "0002_resources",
    3 "0003_work",
    4 "0004_gate",
    5 "0005_uploads",
    6 "0006_secrets",
    7 "0007_connections",
    8 "0008_annotations",
    9 "0009_notifications",
    10 "0010_webhooks",
    11 "0011_triggers",
    12 "0012_groups",
    13 "0013_judging",
    14 "0014_alerts",
    15 "0015_snapshots",
    16 "0016_migrations",
    17 "0017_apps",
    18 "0018_tiers",
    19 "0019_exports",
    20 "0020_app_visits",
    22 "0022_recent_executions",
    24 "0024_settings",
    25 "0025_syncs",
    26 "0026_sync_files",
    27 "0027_public_pages",
    28 "0028_moves",
    29 "0029_removed_namespaces",
    30 "0030_search_figures",
    31 "0031_journal_order",
    32 "0032_page_previews",
    33 "0033_app_hosts",
    34 "0034_feed_age",
    35 "0035_pages",
    36 "0036_signals",
    37 "0037_supervision",
    38 "0038_fillings",
    39 "0039_upload_batches",
    40 "0040_batch_groups",
    41 "0041_failed_executions",
    42 "0042_under_way",
    43 "0043_latency",
    44 "0044_created",
    45 "0045_upload_parts",
    46 "0046_expiry",
    47 "0047_templates",
    48 "0048_filled",
    49 "0049_passkeys",
    50 "0050_looks_on",
    51 "0051_blob_places",
    52 "0052_event_traces",
    53 "0053_no_scans",
    54 "0054_tries",
    55 "0055_looks_again",
    56 "0056_browsers_of_sessions",
    57 "0057_lean_objects",
    58 "0058_counted_batches",
    59 "0059_failed_looks",
    60 "0060_channel_health",
    61 "0061_ended_annotations",
    62 "0062_reasons",
    63 "0063_ways_of_sessions",
    64 "0064_causes",
    65 "0065_starters",
    66 "0066_syncs_of_organizations",
];

const SCHEMA: &str =
    "CREATE TABLE IF NOT EXISTS schema_migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL)";

/// Applies what is missing, each step in its own transaction.
pub(super) async fn run(db: &Db) -> anyhow::Result<()> {
    match &db.opened().link {
        Link::Sqlite { .. } => {
            db.write(|tx| {
                Box::pin(async move {
                    tx.run(SCHEMA, vec![]).await?;
                    Ok(())
                })
            })
            .await?;
        }
        Link::Postgres(pool) => {
            // Several processes may start at once; the first one migrates, the others wait.
            let mut connection = pool.acquire().await?;
            sqlx::query("SELECT pg_advisory_lock(725316)")
                .execute(&mut *connection)
                .await?;
            let outcome = async {
                sqlx::query(SCHEMA).execute(&mut *connection).await?;
                apply(db).await
            }
            .await;
            sqlx::query("SELECT pg_advisory_unlock(725316)")
                .execute(&mut *connection)
                .await?;
            return outcome;
        }
    }
    apply(db).await
}

async fn apply(db: &Db) -> anyhow::Result<()> {
    let newest = db
        .number(
            "SELECT CAST(COALESCE(MAX(number), 0) AS BIGINT) FROM schema_migrations",
            vec![],
        )
        .await?;
    let known = MIGRATIONS.last().map_or(0, |migration| migration.number);
    anyhow::ensure!(
        newest <= known,
        "the data was written by a newer Loupe (schema {newest}, this one knows {known}): install that version or restore a backup"
    );
    let fresh = newest == 0;
    for migration in MIGRATIONS
        .iter()
        .filter(|migration| migration.number > newest)
    {
        step(db, migration)
            .await
            .with_context(|| format!("migration {} failed", migration.name))?;
        // What happens to data that is there is told step by step; a new schema is one thing.
        if !fresh {
            tracing::info!(migration = migration.name, "schema brought up to date");
        }
    }
    if fresh {
        tracing::info!(schema = known, "schema made");
    }
    Ok(())
}

async fn step(db: &Db, migration: &'static Migration) -> anyhow::Result<()> {
    let text = if db.is_postgres() {
        migration.postgres
    } else {
        migration.sqlite
    };
    db.write(move |tx| {
        Box::pin(async move {
            match &mut tx.link {
                TxLink::Sqlite(connection) => connection.execute_batch(text)?,
                TxLink::Postgres(tx) => sqlx::raw_sql(text).execute(&mut **tx).await.map(|_| ())?,
                TxLink::Ended => {}
            }
            let record = "INSERT INTO schema_migrations (number, name) VALUES ($1, $2)";
            tx.run(record, crate::args![migration.number, migration.name])
                .await?;
            Ok(())
        })
    })
    .await?;
    Ok(())
}
