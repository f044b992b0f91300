//! What pages of hosted apps tell of their visits at their own host, and the lines of their calls.

use serde_json::{Value, json};

use crate::{
    apps::{at, deploy, host, make, visit},
    both,
    harness::{Answer, Server},
};

/// What a page tells, from an origin.
async fn report(server: &Server, slug: &str, origin: &str, body: &Value) -> Answer {
    let request = at(server, slug, "POST", "/_auth/interactions").header("origin", origin);
    Server::send(request.json(body)).await
}

async fn analytics(server: &Server, app: &str) -> Value {
    let path = format!("/v1/apps/{app}/analytics");
    server.call("GET", &path, Value::Null).await.ok()
}

/// The lines of an app's calls.
async fn calls(server: &Server, app: &str, query: &str) -> Vec<Value> {
    let path = format!("/v1/apps/{app}/logs?{query}");
    let log = server.call("GET", &path, Value::Null).await.ok();
    log["results"].as_array().unwrap().clone()
}

both! {
    async fn pages_report_at_their_own_host(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Films"})).await;
        let own = format!("http://{}", host(&server, "films"));
        let told = json!({"event_type": "web_vital", "metadata": {"name": "LCP", "value": 7}});
        let taken = report(&server, "films", &own, &told).await;
        assert_eq!(taken.headers["cache-control"], "no-store");
        assert_eq!(taken.ok()["success"], true);
        assert_eq!(analytics(&server, &app).await["vitals"][0]["p50"], 7.0);

        // No page of another origin reports for this one, nothing but JSON is taken, and the address is only posted to.
        report(&server, "films", "http://elsewhere.example", &told).await.error(403, "ForbiddenError");
        let text = at(&server, "films", "POST", "/_auth/interactions").header("origin", &own);
        Server::send(text.header("content-type", "text/plain").body(told.to_string())).await.error(400, "BadRequestError");
        assert_eq!(visit(&server, "films", "/_auth/interactions").await.status, 405);
        assert_eq!(report(&server, "films", &own, &json!({})).await.status, 422);
        // Previews are the owner's own, and an owner who keeps nothing keeps no reports.
        let preview = format!("http://{}", host(&server, "films--v1"));
        report(&server, "films--v1", &preview, &told).await.ok();
        let path = format!("/v1/apps/{app}");
        server.call("PATCH", &path, json!({"monitoring_config": {"enabled": false}})).await.ok();
        report(&server, "films", &own, &told).await.ok();
        assert_eq!(analytics(&server, &app).await["total_events"], 1);

        // Who has not given the password of an app reports nothing.
        let locked = json!({"monitoring_config": {"enabled": true}, "auth_config": {"mode": "password", "password": "sesame, the second"}});
        server.call("PATCH", &path, locked).await.ok();
        assert_eq!(report(&server, "films", &own, &told).await.status, 401);
        assert_eq!(analytics(&server, &app).await["total_events"], 1);
    }

    async fn lines_of_calls_lie_together_and_are_told_one_by_one(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Films"})).await;
        server.app.clock().hold();
        // There is no namespace: each call is refused, and has a line of its own.
        let mut made = Vec::new();
        for (round, size) in [20, 20, 20].into_iter().chain([1; 52]).enumerate() {
            for number in 0..size {
                server.app.clock().advance(1);
                let path = format!("/api/retrievers?page={round}-{number}");
                assert_eq!(visit(&server, "films", &path).await.status, 403);
                made.push(server.app.clock().now().to_rfc3339());
            }
            // Reading them writes what waits.
            assert_eq!(calls(&server, &app, "limit=1").await.len(), 1);
        }
        made.reverse();
        let moments = |lines: Vec<Value>| -> Vec<String> {
            lines.iter().map(|line| line["timestamp"].as_str().unwrap().to_owned()).collect()
        };
        for most in [1, 33, 60, 100, 200] {
            let told = moments(calls(&server, &app, &format!("level=warn&limit={most}")).await);
            assert_eq!(told, made[..most.min(112)], "{most}");
        }
        let line = &calls(&server, &app, "limit=1").await[0];
        assert_eq!((&line["method"], &line["path"], &line["status"]), (&json!("GET"), &json!("/api/retrievers"), &json!(403)));
        assert_eq!((line.get("at"), line.get("lines")), (None, None));
        // A row for each time that they were written.
        let rows = server.app.db().number("SELECT CAST(COUNT(*) AS BIGINT) FROM app_events", vec![]).await.unwrap();
        assert!((55..100).contains(&rows), "{rows}");
        // Only those of the time that is asked for, though they lie with others.
        server.app.clock().advance(3_600 - 61);
        assert_eq!(calls(&server, &app, "hours=1&limit=100").await.len(), 62);
    }
}
