//! PostgreSQL databases of others: asked by stages that look rows up, and never written to.

use std::{
    mem::{Discriminant, discriminant},
    net::IpAddr,
    str::FromStr,
    time::Duration,
};

use loupe_engine::stage::{Lookup, NotAsked};
use loupe_wire::{Object, StorageProvider, Value};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _,
    postgres::{PgConnectOptions, PgConnection, PgRow, PgSslMode},
};

use super::s3::text;
use crate::{
    error::{ApiError, Result, Violation},
    outbound::Outbound,
};

/// Time to connect, with the test of a connection in it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of the rows of one lookup.
const MOST_BYTES: usize = 10 << 20;

/// What PostgreSQL says of itself when it is about to go away, or has no room for anybody: another try may go better.
const AWAY: [&str; 3] = ["08", "53", "57P"];

const NO_ANSWER: &str = "the database does not answer";

/// A configuration that was checked.
pub struct Target {
    host: String,
    port: u16,
    database: String,
    schema: String,
    username: String,
    password: String,
    encryption: PgSslMode,
}

fn fault(path: &[&str], msg: impl Into<String>) -> ApiError {
    let path: Vec<&str> = std::iter::once("provider_config")
        .chain(path.iter().copied())
        .collect();
    Violation::body(&path, "value_error", msg, Value::Null).into()
}

impl Target {
    /// Reads a configuration whose secrets are open; nothing where the provider is none of databases.
    ///
    /// # Errors
    /// A member that is missing or cannot be used.
    pub fn read(provider: StorageProvider, config: &Object) -> Result<Option<Self>> {
        if provider != StorageProvider::Postgresql {
            return Ok(None);
        }
        let needed = |name: &str| {
            let found = text(config, name).map(ToOwned::to_owned);
            found.ok_or_else(|| fault(&[name], "field required"))
        };
        let credentials = config.get("credentials").and_then(Value::as_object);
        let credentials = credentials.ok_or_else(|| fault(&["credentials"], "field required"))?;
        let secret = |name: &str| {
            let found = credentials.get(name).and_then(Value::as_str);
            found
                .map(ToOwned::to_owned)
                .ok_or_else(|| fault(&["credentials", name], "field required"))
        };
        let port = config.get("port").filter(|port| !port.is_null());
        let port = port.map_or(Some(5432), |port| {
            port.as_u64()
                .and_then(|port| u16::try_from(port).ok())
                .filter(|port| *port > 0)
        });
        let mode = text(config, "ssl_mode").unwrap_or("prefer");
        let modes = "must be one of disable, allow, prefer, require, verify-ca, verify-full";
        Ok(Some(Self {
            host: needed("host")?,
            port: port.ok_or_else(|| fault(&["port"], "must be between 1 and 65535"))?,
            database: needed("database")?,
            schema: text(config, "schema").unwrap_or("public").to_owned(),
            username: secret("username")?,
            password: secret("password")?,
            encryption: PgSslMode::from_str(mode).map_err(|_| fault(&["ssl_mode"], modes))?,
        }))
    }

    /// Whom the password is told, as whose, and how well hidden.
    pub fn told(&self) -> (&str, u16, &str, Discriminant<PgSslMode>) {
        let encryption = discriminant(&self.encryption);
        (&self.host, self.port, &self.username, encryption)
    }

    /// Asks the database for its own name.
    ///
    /// # Errors
    /// It cannot be reached or refuses the credentials, in words for who made the connection.
    pub async fn test(&self, outbound: &Outbound) -> Result<&'static str, String> {
        let open = self.open(outbound).await;
        let mut open = open.map_err(|failed| match failed {
            NotAsked::Away(reason) | NotAsked::Refused(reason) => reason,
        })?;
        let asked = sqlx::query("SELECT 1").execute(&mut open);
        let asked = tokio::time::timeout(PATIENCE, asked).await;
        asked
            .map_err(|_| NO_ANSWER.to_owned())?
            .map_err(|error| said(&error))?;
        Ok("the database accepts the credentials")
    }

    /// Every name is looked up and judged before anything is sent there. The connection goes to the address that was judged;
    /// where the certificate is to be held against the name it goes by name, and then a name that has come to lead elsewhere
    /// finds nobody with its certificate there.
    async fn open(&self, outbound: &Outbound) -> Result<PgConnection, NotAsked> {
        let addresses = outbound.addresses(&self.host).await;
        let addresses = addresses.map_err(|error| match error.is_transient() {
            true => NotAsked::Away(error.to_string()),
            false => NotAsked::Refused(error.to_string()),
        })?;
        let address = addresses.first().map(IpAddr::to_string);
        let address =
            address.ok_or_else(|| NotAsked::Away(format!("'{}' has no address", self.host)))?;
        let by_name = matches!(self.encryption, PgSslMode::VerifyCa | PgSslMode::VerifyFull);
        let options = PgConnectOptions::new_without_pgpass()
            .host(if by_name { &self.host } else { &address })
            .port(self.port)
            .database(&self.database)
            .username(&self.username)
            .password(&self.password)
            .ssl_mode(self.encryption)
            .application_name("loupe")
            .disable_statement_logging();
        let open = tokio::time::timeout(PATIENCE, PgConnection::connect_with(&options)).await;
        open.map_err(|_| NotAsked::Away(NO_ANSWER.to_owned()))?
            .map_err(|error| failed(&error))
    }

    /// The rows of each list of values.
    ///
    /// # Errors
    /// The database cannot be reached, goes away meanwhile, or refuses the credentials.
    pub async fn look_up(
        &self,
        outbound: &Outbound,
        lookup: Lookup,
    ) -> Result<Vec<Result<Vec<Object>, String>>, NotAsked> {
        let mut open = self.open(outbound).await?;
        let mut found = Vec::with_capacity(lookup.values.len());
        for values in &lookup.values {
            let asked = self.ask(&mut open, &lookup, values);
            // The database ends a statement by itself; this is for one that does not answer at all.
            match tokio::time::timeout(lookup.timeout + PATIENCE, asked).await {
                Ok(Ok(rows)) => found.push(Ok(rows)),
                Ok(Err(NotAsked::Refused(reason))) => found.push(Err(reason)),
                Ok(Err(away)) => return Err(away),
                Err(_) => return Err(NotAsked::Away(NO_ANSWER.to_owned())),
            }
        }
        // What is not closed with a farewell is closed by the database all the same.
        let _ = open.close().await;
        Ok(found)
    }

    /// One lookup in a transaction that may only read.
    async fn ask(
        &self,
        open: &mut PgConnection,
        lookup: &Lookup,
        values: &[Value],
    ) -> Result<Vec<Object>, NotAsked> {
        let told = |error: sqlx::Error| failed(&error);
        let mut turn = open
            .begin_with("BEGIN TRANSACTION READ ONLY")
            .await
            .map_err(told)?;
        // With this first query the transaction can no longer be made one that writes.
        let settings =
            "SELECT set_config('statement_timeout', $1, true), set_config('search_path', $2, true)";
        sqlx::query(settings)
            .bind(lookup.timeout.as_millis().to_string())
            .bind(&self.schema)
            .execute(&mut *turn)
            .await
            .map_err(told)?;
        // As a part of another statement it can be nothing but one that reads, and gives rows of JSON whatever its types.
        let statement = format!(
            "SELECT CAST(row_to_json(loupe_row) AS TEXT) FROM (\n{}\n) AS loupe_row LIMIT {}",
            lookup.statement, lookup.most
        );
        let mut query = sqlx::query::<sqlx::Postgres>(AssertSqlSafe(statement)).persistent(false);
        for value in values {
            query = match value {
                Value::Null => query.bind(None::<String>),
                Value::Bool(flag) => query.bind(*flag),
                Value::Number(number) => match number.as_i64() {
                    Some(whole) => query.bind(whole),
                    None => query.bind(number.as_f64()),
                },
                Value::String(text) => query.bind(text.clone()),
                Value::Array(items) if items.iter().all(Value::is_i64) => {
                    query.bind(items.iter().filter_map(Value::as_i64).collect::<Vec<_>>())
                }
                Value::Array(items) => query.bind(items.iter().map(word).collect::<Vec<_>>()),
                Value::Object(_) => query.bind(value.to_string()),
            };
        }
        let rows = read(query.fetch(&mut *turn)).await?;
        turn.rollback().await.map_err(told)?;
        Ok(rows)
    }
}

/// Rows as they come, as many bytes of them as are taken.
async fn read(
    mut rows: futures::stream::BoxStream<'_, std::result::Result<PgRow, sqlx::Error>>,
) -> Result<Vec<Object>, NotAsked> {
    use futures::TryStreamExt as _;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.try_next().await.map_err(|error| failed(&error))? {
        let text: String = row.try_get(0).map_err(|error| failed(&error))?;
        bytes += text.len();
        if bytes > MOST_BYTES {
            let reason = format!("the rows are larger than {MOST_BYTES} bytes");
            return Err(NotAsked::Refused(reason));
        }
        let row = serde_json::from_str(&text);
        found.push(row.map_err(|error| NotAsked::Refused(error.to_string()))?);
    }
    Ok(found)
}

fn word(value: &Value) -> String {
    let text = value.as_str().map(ToOwned::to_owned);
    text.unwrap_or_else(|| value.to_string())
}

fn failed(error: &sqlx::Error) -> NotAsked {
    let is_away = match error.as_database_error() {
        Some(told) => {
            let code = told.code().unwrap_or_default();
            AWAY.iter().any(|class| code.starts_with(class))
        }
        // No connection, or one that broke.
        None => matches!(error, sqlx::Error::Io(_) | sqlx::Error::Protocol(_)),
    };
    match is_away {
        true => NotAsked::Away(said(error)),
        false => NotAsked::Refused(said(error)),
    }
}

/// What the database said, or that it said nothing: the library's own words may hold its address.
fn said(error: &sqlx::Error) -> String {
    match error.as_database_error() {
        Some(error) => format!("the database says: {}", error.message()),
        None => {
            tracing::warn!(%error, "a database of a connection failed");
            "the database cannot be reached".to_owned()
        }
    }
}
