//! What an owner learns of the visits of an app: counts, errors, measures, lines.

use serde_json::{Value, json};

use crate::{
    apps::{at, deploy, make, visit},
    both,
    harness::{Database, Server, config, other_organization},
};

/// Pages, calls of the API, and what pages report.
async fn visitors_come(server: &Server) {
    // Three pages; a script, a file that is not there and a preview are none.
    for place in ["/", "/films/7", "/?q=owl"] {
        assert_eq!(visit(server, "films", place).await.status, 200);
    }
    for place in ["/app.js", "/missing.js"] {
        Server::send(at(server, "films", "GET", place).header("accept", "*/*")).await;
    }
    // Nobody has seen what a browser asks for ahead, and neither an icon nor a script is a page, whoever asks for it.
    for (name, value) in [
        ("sec-purpose", "prefetch;prerender"),
        ("purpose", "prefetch"),
    ] {
        let ahead = at(server, "films", "GET", "/").header("accept", "text/html");
        let ahead = Server::send(ahead.header(name, value)).await;
        assert_eq!(ahead.status, 200);
    }
    assert_eq!(visit(server, "films", "/app.js").await.status, 200);
    assert_eq!(visit(server, "films--v1", "/").await.status, 200);
    // Two calls of the API, both refused: the app has no namespace.
    for _ in 0..2 {
        let refused = visit(server, "films", "/api/retrievers").await;
        assert!((400..500).contains(&refused.status), "{}", refused.status);
    }
    // What pages report: errors, measures, and what somebody did.
    let report = async |body: Value| {
        server
            .call("POST", "/v1/public/apps/films/interactions", body)
            .await
            .ok();
    };
    report(json!({"event_type": "error", "metadata": {"type": "TypeError", "message": "x is undefined", "url": "/films/7"}})).await;
    for value in 1..=20 {
        // The pages of twenty visitors do not report within one second.
        if value % 10 == 1 {
            server.app.clock().advance(1);
        }
        report(json!({"event_type": "web_vital", "metadata": {"name": "LCP", "value": value}}))
            .await;
    }
    report(json!({"event_type": "click", "position": 1})).await;
}

/// Lines, by kind and level, the newest first.
async fn lines_are_told_by_kind_and_level(server: &Server, path: &str) {
    let lines = async |query: &str| {
        let log = server
            .call("GET", &format!("{path}/logs{query}"), Value::Null)
            .await
            .ok();
        assert_eq!(log["results"], log["entries"]);
        log["results"].as_array().unwrap().clone()
    };
    let calls = lines("").await;
    assert_eq!(calls.len(), 2);
    assert_eq!(
        (&calls[0]["path"], &calls[0]["level"], &calls[0]["method"]),
        (&json!("/api/retrievers"), &json!("warn"), &json!("GET"))
    );
    assert_eq!(
        (
            lines("?level=warn&limit=1").await.len(),
            lines("?level=error").await.len()
        ),
        (1, 0)
    );
    assert_eq!(
        lines("?log_type=errors").await[0]["metadata"]["type"],
        "TypeError"
    );
    assert_eq!(
        lines("?log_type=interactions").await[0]["event_type"],
        "click"
    );
    let deploys = lines("?log_type=deploys").await;
    assert_eq!(
        (&deploys[0]["status"], &deploys[0]["version"]),
        (&json!("complete"), &json!(1))
    );
    // A level is asked for in every kind of line.
    for (kind, level, count) in [
        ("deploys", "info", 1),
        ("deploys", "error", 0),
        ("deploys", "warn", 0),
        ("errors", "error", 1),
        ("errors", "info", 0),
        ("interactions", "info", 1),
        ("interactions", "error", 0),
    ] {
        assert_eq!(
            lines(&format!("?log_type={kind}&level={level}"))
                .await
                .len(),
            count,
            "{kind} {level}"
        );
    }
}

async fn bad_questions_are_refused(server: &Server, path: &str) {
    for (place, name) in [
        ("analytics?hours=0", "hours"),
        ("analytics?hours=721", "hours"),
        ("error-rate?minutes=1441", "minutes"),
        ("logs?log_type=all", "log_type"),
        ("logs?level=loud", "level"),
        ("logs?limit=1001", "limit"),
        ("logs?hours=169", "hours"),
    ] {
        let refused = server
            .call("GET", &format!("{path}/{place}"), Value::Null)
            .await;
        assert_eq!(refused.status, 422, "{place}");
        assert_eq!(
            refused.body["detail"][0]["loc"],
            json!(["query", name]),
            "{place}"
        );
    }
}

both! {
    async fn strangers_do_not_fill_the_log(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let path = format!("/v1/apps/{app}");
        deploy(&server, &app, "production", json!({"index.html": "<!doctype html><h1>Films</h1>"})).await;
        server.call("POST", &format!("{path}/publish"), json!({})).await.ok();
        // What nobody may call is counted, and is no line.
        for place in ["/api/organizations/users", "/api/unknown", "/api/retrievers/x/publish"] {
            assert_eq!(visit(&server, "films", place).await.status, 404, "{place}");
        }
        assert_eq!(visit(&server, "films", "/api/retrievers").await.status, 403);
        let lines = async |kind: &str| {
            let log = server.call("GET", &format!("{path}/logs?log_type={kind}"), Value::Null).await.ok();
            log["results"].as_array().unwrap().len()
        };
        assert_eq!(lines("requests").await, 1);
        server.call("PATCH", &path, json!({"auth_config": {"mode": "clerk"}})).await.ok();
        assert_eq!(visit(&server, "films", "/api/retrievers").await.status, 401);
        server.call("PATCH", &path, json!({"auth_config": {"mode": "public"}})).await.ok();
        // No time passes: a slow machine would ask too seldom to be refused.
        server.app.clock().hold();
        while visit(&server, "films", "/api/unknown").await.status != 429 {}
        server.app.clock().advance(60);
        assert_eq!(lines("requests").await, 1);
        let minutes = "SELECT CAST(COALESCE(SUM(calls), 0) AS BIGINT) FROM app_minutes";
        assert!(server.app.db().number(minutes, vec![]).await.unwrap() > 5);

        // An owner who keeps nothing keeps no notes of pages either.
        let note = json!({"event_type": "error", "metadata": {"message": "x is undefined"}});
        server.call("POST", "/v1/public/apps/films/interactions", note.clone()).await.ok();
        assert_eq!(lines("errors").await, 1);
        // Of a long one the beginning is kept.
        let long = json!({"event_type": "click", "metadata": {"where": "x".repeat(5_000), "page": "/films"}});
        server.call("POST", "/v1/public/apps/films/interactions", long).await.ok();
        let log = server.call("GET", &format!("{path}/logs?log_type=interactions"), Value::Null).await.ok();
        let kept = &log["results"][0]["metadata"];
        assert_eq!((kept["where"].as_str().unwrap().len(), &kept["page"]), (300, &json!("/films")));
        server.call("PATCH", &path, json!({"monitoring_config": {"enabled": false}})).await.ok();
        assert_eq!(server.call("POST", "/v1/public/apps/films/interactions", note).await.ok()["success"], true);
        assert_eq!(lines("errors").await, 1);
        let told = server.call("GET", &format!("{path}/analytics"), Value::Null).await.ok();
        assert_eq!((&told["total_errors"], &told["total_events"]), (&json!(1), &json!(2)));
    }

    async fn visits_are_counted_and_their_lines_are_kept(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let path = format!("/v1/apps/{app}");
        let none = server.call("GET", &format!("{path}/analytics"), Value::Null).await.ok();
        assert_eq!((&none["total_pageviews"], &none["total_errors"], &none["period_hours"]), (&json!(0), &json!(0), &json!(24)));
        deploy(&server, &app, "production", json!({"index.html": "<!doctype html><h1>Films</h1>", "app.js": "1"})).await;

        visitors_come(&server).await;

        let told = server.call("GET", &format!("{path}/analytics?hours=2"), Value::Null).await.ok();
        assert_eq!((&told["total_pageviews"], &told["total_errors"], &told["total_events"]), (&json!(3), &json!(1), &json!(22)));
        assert_eq!(told["error_rate_per_minute"], json!(1.0 / 120.0));
        let buckets = told["errors_over_time"].as_array().unwrap();
        // The hour may have turned since.
        let counted: i64 = buckets.iter().map(|bucket| bucket["count"].as_i64().unwrap()).sum();
        assert_eq!((buckets.len(), counted), (3, 1));
        assert_eq!(told["vitals"], json!([{"metric_name": "LCP", "p50": 10.0, "p75": 15.0, "p95": 19.0, "sample_count": 20}]));
        let error = &told["recent_errors"][0];
        assert_eq!((&error["error_type"], &error["error_message"], &error["url"]), (&json!("TypeError"), &json!("x is undefined"), &json!("/films/7")));
        let rate = server.call("GET", &format!("{path}/error-rate?minutes=10"), Value::Null).await.ok();
        assert_eq!((&rate["error_count"], &rate["rate_per_minute"]), (&json!(1), &json!(0.1)));

        lines_are_told_by_kind_and_level(&server, &path).await;
        bad_questions_are_refused(&server, &path).await;

        // Nobody else's, and gone with the app.
        let other = other_organization(&server).await;
        for place in ["analytics", "error-rate", "logs"] {
            let hidden = Server::send(server.request("GET", &format!("{path}/{place}")).bearer_auth(&other.key)).await;
            assert_eq!(hidden.status, 404, "{place}");
        }
        // An owner who wants no figures gets none.
        server.call("PATCH", &path, json!({"monitoring_config": {"enabled": false}})).await.ok();
        visit(&server, "films", "/").await;
        let told = server.call("GET", &format!("{path}/analytics"), Value::Null).await.ok();
        assert_eq!(told["total_pageviews"], 3);
        server.call("DELETE", &path, Value::Null).await.ok();
        for table in ["SELECT CAST(COUNT(*) AS BIGINT) FROM app_minutes", "SELECT CAST(COUNT(*) AS BIGINT) FROM app_events"] {
            assert_eq!(server.app.db().number(table, vec![]).await.unwrap(), 0, "{table}");
        }
    }
}

/// However many addresses somebody has, an app's page tells so much and no more; a network of version 6 is one address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_are_bounded_for_networks_and_for_the_app() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.trust_proxy = true;
    let server = Server::start_with(config, folder, None).await;
    let quiet = json!({"slug": "films", "meta": {"title": "Films"}, "monitoring_config": {"enabled": false}});
    let app = make(&server, quiet).await;
    server
        .call("POST", &format!("/v1/apps/{app}/publish"), json!({}))
        .await
        .ok();
    // All of it happens within one minute of the clock.
    let second = server.app.clock().now().timestamp().rem_euclid(60);
    server.app.clock().advance(60 - second);
    server.app.clock().hold();
    let tell = |address: String| {
        let note = json!({"event_type": "click"});
        let request = server.request("POST", "/v1/public/apps/films/interactions");
        Server::send(request.header("x-forwarded-for", address).json(&note))
    };
    let mut taken = 0;
    for number in 0..30 {
        let status = tell(format!("2001:db8:1:1::{number:x}")).await.status;
        taken += usize::from(status == 200);
    }
    assert!((10..=25).contains(&taken), "{taken} of one network");
    tell("2001:db8:1:2::1".into()).await.ok();
    let mut all = taken + 1;
    for number in 0..1_400 {
        let address = format!("203.0.{}.{}", number / 250, number % 250);
        all += usize::from(tell(address).await.status == 200);
    }
    assert_eq!(all, 1_200);
}
