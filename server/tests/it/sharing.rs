//! However slow the receivers of one organization are, and however many: messages of others do not wait for them.

use serde_json::{Value, json};

use crate::{
    alerts::{execute, id, is_delivered, make, results, watch},
    harness::{Database, Server, config, other_organization, retriever},
    webhooks::{HANG, Receiver, happen, webhook},
};

/// What has to be sent at once: more than a process sends.
const MESSAGES: usize = 10;

/// Seconds that a receiver has: longer than any of this lasts.
const PATIENCE: u64 = 30;

/// A server that sends eight messages at once, so many percent of them for one organization.
async fn server(database: Database, share: usize) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(database, &folder).await;
    config.outbound.messages = 8;
    config.outbound.share = share;
    // Nobody is taken for dead, however busy the machine is.
    config.jobs.lease_seconds = 60;
    Server::start_with(config, folder, None).await
}

/// A receiver that takes what comes and never answers.
async fn slow() -> Receiver {
    let receiver = Receiver::start().await;
    receiver.answer(&[HANG; MESSAGES]);
    receiver
}

async fn hook(server: &Server, name: &str, url: &str) {
    let mut body = webhook(name, url);
    body["channels"][0]["configs"]["timeout"] = json!(PATIENCE);
    let path = "/v1/organizations/webhooks";
    server.call("POST", path, body).await.ok();
}

async fn webhooks_of_others_do_not_wait(database: Database) {
    let mut server = server(database, 50).await;
    let other = other_organization(&server).await;
    let (slow, well) = (slow().await, Receiver::start().await);
    for number in 0..MESSAGES {
        hook(&server, &format!("slow {number}"), &slow.url).await;
    }
    let namespace = server.namespace("slow").await;
    happen(&server, &namespace, "books").await;
    slow.wait(4).await;

    server.key = other.key;
    hook(&server, "well", &well.url).await;
    let namespace = server.namespace("well").await;
    happen(&server, &namespace, "books").await;
    well.wait(1).await;
    slow.wait(4).await;
}

/// An alert that fires at once, told to a receiver.
async fn fire(
    server: &Server,
    namespace: &str,
    retriever: &str,
    number: usize,
    url: &str,
) -> Value {
    let mut body = watch(&format!("nothing {number}"), retriever, url);
    body["trigger_on"] = json!("no_results");
    body["execution_mode"] = json!("on_demand");
    body["notification_config"]["channels"][0]["config"]["timeout"] = json!(PATIENCE);
    let alert = make(server, namespace, body).await;
    let found = execute(server, namespace, &id(&alert)).await;
    assert_eq!(found["triggered"], true);
    alert
}

async fn alerts_of_others_do_not_wait(database: Database) {
    let mut server = server(database, 25).await;
    let other = other_organization(&server).await;
    let (slow, well) = (slow().await, Receiver::start().await);
    let (namespace, finds) = retriever(&server, "slow").await;
    for number in 0..MESSAGES {
        fire(&server, &namespace, &finds, number, &slow.url).await;
    }
    slow.wait(2).await;

    server.key = other.key;
    let (namespace, finds) = retriever(&server, "well").await;
    let alert = fire(&server, &namespace, &finds, 0, &well.url).await;
    results(&server, &namespace, &id(&alert), is_delivered).await;
    well.wait(1).await;
    slow.wait(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_of_others_do_not_wait_on_sqlite() {
    webhooks_of_others_do_not_wait(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_of_others_do_not_wait_on_postgres() {
    webhooks_of_others_do_not_wait(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_of_others_do_not_wait_on_sqlite() {
    alerts_of_others_do_not_wait(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_of_others_do_not_wait_on_postgres() {
    alerts_of_others_do_not_wait(Database::Postgres).await;
}
