//! Rows of databases beside documents.

use serde_json::{Value, json};

use super::{server, sorted, titles};
use crate::{
    harness::{Database, Server},
    stages::{execute, retriever, stage},
};

/// A table of facts in the PostgreSQL of the tests; answers where it is, and its name.
async fn facts() -> (url::Url, String) {
    let url = std::env::var("LOUPE_TEST_POSTGRES").unwrap();
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    let table = format!("facts_{}", std::process::id());
    for statement in [
        format!("DROP TABLE IF EXISTS {table}"),
        format!(
            "CREATE TABLE {table} (title TEXT, minutes INT, seen DATE, id UUID DEFAULT gen_random_uuid())"
        ),
        format!(
            "INSERT INTO {table} VALUES ('M', 111, '1931-05-11'), ('Nosferatu', 94, '1922-03-04'), ('Nosferatu', 63, NULL)"
        ),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(&pool)
            .await
            .unwrap();
    }
    pool.close().await;
    (url.parse().unwrap(), table)
}

/// Films beside a table of facts about them.
struct Beside {
    server: Server,
    namespace: String,
    films: String,
    table: String,
}

async fn connect(server: &Server, url: &url::Url) {
    let host = url.host_str().unwrap_or("127.0.0.1").to_owned();
    let credentials = json!({"type": "username_password", "username": url.username(), "password": url.password().unwrap_or("")});
    let config = json!({"provider_type": "postgresql", "host": host, "port": url.port().unwrap_or(5432),
        "database": url.path().trim_start_matches('/'), "credentials": credentials});
    let body = json!({"name": "facts", "provider_type": "postgresql", "provider_config": config});
    let made = server
        .call("POST", "/v1/organizations/connections", body)
        .await
        .ok();
    assert_eq!(
        made["provider_config"]["credentials"]["password"],
        "********"
    );
}

impl Beside {
    async fn start() -> Self {
        let (server, _, namespace, films, _) = server().await;
        let (url, table) = facts().await;
        connect(&server, &url).await;
        Self {
            server,
            namespace,
            films,
            table,
        }
    }

    fn by_title(&self) -> String {
        let table = &self.table;
        format!("SELECT minutes, seen FROM {table} WHERE title = :title ORDER BY minutes DESC")
    }

    async fn run(&self, parameters: Value) -> Value {
        let mut with = json!({"connection_id": "facts"});
        for (name, value) in parameters.as_object().unwrap() {
            with[name] = value.clone();
        }
        let one = retriever(
            &self.server,
            &self.namespace,
            &self.films,
            vec![sorted(), stage("sql_lookup", with)],
        )
        .await;
        execute(&self.server, &self.namespace, &one, json!({})).await
    }

    /// One row, or all, or an error, as the stage says.
    async fn rows_go_to_their_documents(&self) {
        let by_title = self.by_title();
        let answer = self
            .run(json!({"query": by_title, "parameters": {"title": "{{ DOC.title }}"}}))
            .await;
        let looked = |place: usize| answer["documents"][place].get("sql_result").cloned();
        assert_eq!(
            (looked(0), looked(1), looked(2)),
            (
                None,
                Some(json!({"minutes": 111, "seen": "1931-05-11"})),
                Some(json!({"minutes": 94, "seen": "1922-03-04"}))
            ),
            "{answer:#}"
        );
        let all = self.run(json!({"query": by_title, "parameters": {"title": "{{ DOC.title }}"}, "result_handling": "all", "on_no_results": "null"})).await;
        assert_eq!(
            (
                &all["documents"][0]["sql_result"],
                all["documents"][2]["sql_result"].as_array().unwrap().len()
            ),
            (&Value::Null, 2)
        );
        let one = self.run(json!({"query": by_title, "parameters": {"title": "{{ DOC.title }}"}, "result_handling": "error_if_multiple", "on_error": "remove", "on_no_results": "error"})).await;
        assert_eq!(titles(&one), ["M"]);
    }

    /// A value is a value, whatever it says.
    async fn values_are_no_statements(&self) {
        let (table, by_title) = (&self.table, self.by_title());
        let title = format!("'; DROP TABLE {table}; --");
        let parameters = json!({"query": by_title, "parameters": {"title": title}});
        let evil = self.run(parameters).await;
        assert!(evil["documents"][1].get("sql_result").is_none());
        let query = format!(
            "SELECT count(*) AS n FROM {table} WHERE minutes = ANY(:list) AND minutes < :most AND seen > CAST(:day AS DATE)"
        );
        let parameters = json!({"list": [94, 111], "most": 200, "day": "1930-01-01"});
        let typed = json!({"query": query, "parameters": parameters});
        let typed = self.run(typed).await;
        assert_eq!(
            typed["documents"][0]["sql_result"],
            json!({"n": 1}),
            "{typed:#}"
        );
    }

    /// Functions that write are refused by the transaction, slow ones end with their time.
    async fn what_writes_or_dawdles_is_refused(&self) {
        let refused = self.run(json!({"query": "SELECT set_config('transaction_read_only', 'off', true), setval('nothing', 1)"})).await;
        assert!(
            refused["degraded"][0]["reason"]
                .as_str()
                .unwrap()
                .contains("the database says"),
            "{refused:#}"
        );
        let slow = self
            .run(json!({"query": "SELECT pg_sleep(20)", "timeout": 1, "when": {"title": "M"}}))
            .await;
        assert!(
            slow["degraded"][0]["reason"]
                .as_str()
                .unwrap()
                .contains("statement timeout"),
            "{slow:#}"
        );
    }

    /// Where nothing came before, the rows are the documents.
    async fn rows_are_documents(&self) {
        let table = &self.table;
        let rows = json!({"connection_id": "facts", "query": format!("SELECT title, minutes FROM {table} ORDER BY minutes")});
        let first = retriever(
            &self.server,
            &self.namespace,
            &self.films,
            vec![stage("sql_lookup", rows)],
        )
        .await;
        let answer = execute(&self.server, &self.namespace, &first, json!({})).await;
        assert_eq!(
            titles(&answer),
            ["Nosferatu", "Nosferatu", "M"],
            "{answer:#}"
        );
    }

    /// A database that is away is not the caller's fault: the same search may go better later.
    async fn one_that_is_away_may_come_back(&self) {
        let free = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let config = json!({"host": "127.0.0.2", "port": port, "database": "x", "credentials": {"username": "u", "password": "p"}});
        let body = json!({"name": "away", "provider_type": "postgresql", "test_before_save": false, "provider_config": config});
        self.server
            .call("POST", "/v1/organizations/connections", body)
            .await
            .ok();
        let lookup = json!({"connection_id": "away", "query": "SELECT 1"});
        let one = retriever(
            &self.server,
            &self.namespace,
            &self.films,
            vec![sorted(), stage("sql_lookup", lookup)],
        )
        .await;
        let path = format!("/v1/retrievers/{one}/execute");
        let away = self
            .server
            .call_in(&self.namespace, "POST", &path, json!({"inputs": {}}))
            .await
            .error(503, "ServiceUnavailableError");
        assert!(away.to_string().contains("cannot be reached"), "{away:#}");
    }

    /// No connection of the organization, no retriever.
    async fn a_connection_is_the_organizations(&self) {
        let (films, table) = (&self.films, &self.table);
        let other = json!({"connection_id": "conn_of_nobody", "query": format!("SELECT title, minutes FROM {table} ORDER BY minutes")});
        let body = json!({"retriever_name": "n", "collection_identifiers": [films], "stages": [stage("sql_lookup", other)]});
        self.server
            .call_in(&self.namespace, "POST", "/v1/retrievers", body)
            .await
            .error(404, "NotFoundError");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_database_are_looked_up_and_never_written() {
    let beside = Beside::start().await;
    beside.rows_go_to_their_documents().await;
    beside.values_are_no_statements().await;
    beside.what_writes_or_dawdles_is_refused().await;
    beside.rows_are_documents().await;
    beside.one_that_is_away_may_come_back().await;
    beside.a_connection_is_the_organizations().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_the_servers_own_network_is_not_asked() {
    let server = Server::start(Database::Sqlite).await;
    let config = json!({"host": "localhost", "database": "x", "credentials": {"username": "u", "password": "p"}});
    let body = json!({"name": "own", "provider_type": "postgresql", "provider_config": config});
    let refused = server
        .call("POST", "/v1/organizations/connections", body.clone())
        .await;
    let told = refused.error(400, "BadRequestError").to_string();
    assert!(told.contains("not on the public internet"), "{told}");
    let mut wrong = body;
    wrong["provider_config"]["port"] = json!(0);
    server
        .call("POST", "/v1/organizations/connections", wrong)
        .await
        .invalid(&["body", "provider_config", "port"], "value_error");
}
