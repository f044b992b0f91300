//! What is sent again later reaches the channel that it was meant for, whatever became of the others.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{id, make, results};
use crate::{
    both,
    harness::{Server, retriever},
    webhooks::Receiver,
};

fn telling(receivers: &[&Receiver]) -> Value {
    let channels = receivers
        .iter()
        .map(|one| json!({"channel_type": "webhook", "config": {"url": one.url}}));
    json!({"channels": channels.collect::<Vec<_>>()})
}

/// Waits until a delivery of the alert lies in the queue for later, and lets that time pass.
async fn later(server: &Server) {
    let sql = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE kind = 'alert_delivery' AND status = 'QUEUED' AND run_after > $1";
    let start = Instant::now();
    loop {
        let now = server.app.clock().micros();
        let found = server.app.db().number(sql, loupe_server::args![now]).await;
        if found.unwrap() > 0 {
            break;
        }
        assert!(
            start.elapsed() < Duration::from_secs(180),
            "nothing waits to be sent again"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.app.clock().advance(20);
}

both! {
    async fn what_waits_reaches_the_channel_that_it_was_meant_for(server) {
        let (namespace, retriever) = retriever(&server, "moved").await;
        let (away, there) = (Receiver::start().await, Receiver::start().await);
        away.answer(&[500, 500]);
        let id = id(&make(&server, &namespace, json!({
            "name": "nothing there", "retriever_id": retriever, "trigger_on": "no_results", "execution_mode": "on_demand",
            "notification_config": telling(&[&away, &there]),
        })).await);
        server.app.clock().hold();
        let path = format!("/v1/alerts/{id}");
        server.call_in(&namespace, "POST", &format!("{path}/execute"), Value::Null).await.ok();
        let states = |look: &Value| [look["deliveries"][0]["status"].clone(), look["deliveries"][1]["status"].clone()];
        results(&server, &namespace, &id, |look| states(look)[1] == "delivered").await;
        // Each stands where the other one stood.
        let turned = json!({"notification_config": telling(&[&there, &away])});
        server.call_in(&namespace, "PATCH", &path, turned).await.ok();
        later(&server).await;
        away.wait(2).await;
        // The one that is away is given up.
        let left = json!({"notification_config": telling(&[&there])});
        server.call_in(&namespace, "PATCH", &path, left).await.ok();
        later(&server).await;
        let look = results(&server, &namespace, &id, |look| states(look)[0] == "failed").await;
        assert_eq!((states(&look), &look["deliveries"][0]["error"]), ([json!("failed"), json!("delivered")], &json!("the channel was removed")), "{look:#}");
        away.wait(2).await;
        there.wait(1).await;
    }
}
