//! What an owner learns of the visits of an app: counts, errors, measures, lines.

use serde_json::{Value, json};

use crate::{
    apps::{at, deploy, make, visit},
    both,
    harness::{Server, other_organization},
};

both! {
    async fn visits_are_counted_and_their_lines_are_kept(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let path = format!("/v1/apps/{app}");
        let none = server.call("GET", &format!("{path}/analytics"), Value::Null).await.ok();
        assert_eq!((&none["total_pageviews"], &none["total_errors"], &none["period_hours"]), (&json!(0), &json!(0), &json!(24)));
        deploy(&server, &app, "production", json!({"index.html": "<!doctype html><h1>Films</h1>", "app.js": "1"})).await;

        // Three pages; a script, a file that is not there and a preview are none.
        for place in ["/", "/films/7", "/?q=owl"] {
            assert_eq!(visit(&server, "films", place).await.status, 200);
        }
        for place in ["/app.js", "/missing.js"] {
            Server::send(at(&server, "films", "GET", place).header("accept", "*/*")).await;
        }
        assert_eq!(visit(&server, "films--v1", "/").await.status, 200);
        // Two calls of the API, both refused: the app has no namespace.
        for _ in 0..2 {
            let refused = visit(&server, "films", "/api/retrievers").await;
            assert!((400..500).contains(&refused.status), "{}", refused.status);
        }
        // What pages report: errors, measures, and what somebody did.
        let report = async |body: Value| {
            server.call("POST", "/v1/public/apps/films/interactions", body).await.ok();
        };
        report(json!({"event_type": "error", "metadata": {"type": "TypeError", "message": "x is undefined", "url": "/films/7"}})).await;
        for value in 1..=20 {
            // The pages of twenty visitors do not report within one second.
            if value % 10 == 1 {
                server.app.clock().advance(1);
            }
            report(json!({"event_type": "web_vital", "metadata": {"name": "LCP", "value": value}})).await;
        }
        report(json!({"event_type": "click", "position": 1})).await;

        let told = server.call("GET", &format!("{path}/analytics?hours=2"), Value::Null).await.ok();
        assert_eq!((&told["total_pageviews"], &told["total_errors"], &told["total_events"]), (&json!(3), &json!(1), &json!(22)));
        assert_eq!(told["error_rate_per_minute"], json!(1.0 / 120.0));
        let buckets = told["errors_over_time"].as_array().unwrap();
        assert_eq!((buckets.len(), buckets.last().unwrap()["count"].as_i64()), (3, Some(1)));
        assert_eq!(told["vitals"], json!([{"metric_name": "LCP", "p50": 10.0, "p75": 15.0, "p95": 19.0, "sample_count": 20}]));
        let error = &told["recent_errors"][0];
        assert_eq!((&error["error_type"], &error["error_message"], &error["url"]), (&json!("TypeError"), &json!("x is undefined"), &json!("/films/7")));
        let rate = server.call("GET", &format!("{path}/error-rate?minutes=10"), Value::Null).await.ok();
        assert_eq!((&rate["error_count"], &rate["rate_per_minute"]), (&json!(1), &json!(0.1)));

        // Lines, by kind and level, the newest first.
        let lines = async |query: &str| {
            let log = server.call("GET", &format!("{path}/logs{query}"), Value::Null).await.ok();
            assert_eq!(log["results"], log["entries"]);
            log["results"].as_array().unwrap().clone()
        };
        let calls = lines("").await;
        assert_eq!(calls.len(), 2);
        assert_eq!((&calls[0]["path"], &calls[0]["level"], &calls[0]["method"]), (&json!("/api/retrievers"), &json!("warn"), &json!("GET")));
        assert_eq!((lines("?level=warn&limit=1").await.len(), lines("?level=error").await.len()), (1, 0));
        assert_eq!(lines("?log_type=errors").await[0]["metadata"]["type"], "TypeError");
        assert_eq!(lines("?log_type=interactions").await[0]["event_type"], "click");
        let deploys = lines("?log_type=deploys").await;
        assert_eq!((&deploys[0]["status"], &deploys[0]["version"]), (&json!("complete"), &json!(1)));
        for (place, name) in [
            ("analytics?hours=0", "hours"), ("analytics?hours=721", "hours"), ("error-rate?minutes=1441", "minutes"),
            ("logs?log_type=all", "log_type"), ("logs?level=loud", "level"), ("logs?limit=1001", "limit"), ("logs?hours=169", "hours"),
        ] {
            let refused = server.call("GET", &format!("{path}/{place}"), Value::Null).await;
            assert_eq!(refused.status, 422, "{place}");
            assert_eq!(refused.body["detail"][0]["loc"], json!(["query", name]), "{place}");
        }

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
