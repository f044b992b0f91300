//! Usage in dollars, the rate card, estimates, and the limits that an organization sets itself.

mod spent;

use chrono::Datelike as _;
use serde_json::{Value, json};

use crate::{both, harness::Server};

const CAPS: &str = "/v1/organizations/billing/spending-caps";
const THINGS: &str = "/v1/collections/things/documents";

fn close(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
}

/// Moves the clock away from the end of a month: what is spent in one is not told of in the next.
pub fn amid_a_month(server: &Server) {
    let (clock, day) = (server.app.clock(), std::time::Duration::from_secs(86_400));
    if (clock.now() + day).month() != clock.now().month() {
        clock.advance(86_400);
    }
}

async fn search(server: &Server, namespace: &str, retriever: &str) -> crate::harness::Answer {
    let path = format!("/v1/retrievers/{retriever}/execute");
    server
        .call_in(
            namespace,
            "POST",
            &path,
            json!({"inputs": {}, "skip_cache": true}),
        )
        .await
}

both! {
    async fn spend_is_told_by_category_with_what_is_left_of_the_pool(server) {
        amid_a_month(&server);
        let (namespace, retriever) = crate::harness::retriever(&server, "spend").await;
        for number in 0..4 {
            let vectors = json!({"own": [1.0, number, 0.0]});
            server.call_in(&namespace, "POST", THINGS, json!({"title": "x", "vectors": vectors})).await.ok();
        }
        for _ in 0..3 {
            search(&server, &namespace, &retriever).await.ok();
        }
        let usage = server.call("GET", "/v1/organizations/usage", Value::Null).await.ok();
        assert_eq!((&usage["tier"], &usage["currency"]), (&json!("enterprise"), &json!("usd")));
        close(&usage["spend"]["search_usd"], 6e-6);
        close(&usage["spend"]["ingestion_usd"], 0.0);
        close(&usage["spend"]["total_usd"], 6e-6 + usage["spend"]["storage_usd"].as_f64().unwrap());
        assert!(usage["pool"]["reset_date"].as_str().unwrap() > usage["period_start"].as_str().unwrap());
        let before = server.call("GET", "/v1/organizations/usage?start=2020-01-01&end=2020-02-01", Value::Null).await.ok();
        close(&before["spend"]["total_usd"], 0.0);
        server.call("GET", "/v1/organizations/usage?start=2021-01-01&end=2020-01-01", Value::Null).await.invalid(&["query", "start"], "value_error");

        let month = server.call("GET", "/v1/organizations/billing/usage/current", Value::Null).await.ok();
        assert_eq!(month["current_month_usage"], 1, "a credit that is begun is whole: {month:#}");
        let organization = server.call("GET", "/v1/organizations", Value::Null).await.ok();
        assert_eq!(organization["current_month_usage"], 1, "{organization:#}");
        close(&month["estimated_cost_usd"], usage["spend"]["total_usd"].as_f64().unwrap());
        close(&month["usage_v2"]["search_usd"], 6e-6);
        assert_eq!((&month["billing_period_end"], &month["next_invoice_date"]), (&usage["pool"]["reset_date"], &usage["pool"]["reset_date"]));
        let plan = &month["plan_usage"];
        assert_eq!((&plan["tier"], &plan["plan_name"], &plan["vectors_stored"], &plan["cap_state"]), (&json!("enterprise"), &json!("Enterprise"), &json!(4), &json!("ok")));

        let path = "/v1/organizations/billing/usage/breakdown";
        // Executions are written behind their answers.
        let start = std::time::Instant::now();
        let parts = loop {
            let parts = server.call("GET", path, Value::Null).await.ok();
            if parts["by_retriever"] != json!({}) || start.elapsed().as_secs() > 180 {
                break parts;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        assert_eq!((&parts["total_credits"], &parts["by_operation"]["search"]), (&json!(1), &json!(1)), "{parts:#}");
        assert_eq!(parts["total_cost_usd"], usage["spend"]["total_usd"]);
        let of = |name: &str| parts[name].as_object().unwrap().len();
        assert_eq!((of("by_namespace"), of("by_extractor")), (1, 0), "documents were written by hand: {parts:#}");
        let past = server.call("GET", &format!("{path}?billing_month=2020-02"), Value::Null).await.ok();
        assert_eq!((&past["total_credits"], &past["by_retriever"]), (&json!(0), &json!({})));

        spent::vectors_are_counted_by_the_month(&server).await;
    }

    async fn searches_of_strangers_are_the_owners_to_pay_for(server) {
        amid_a_month(&server);
        let (namespace, retriever) = crate::harness::retriever(&server, "shown").await;
        let publish = format!("/v1/retrievers/{retriever}/publish");
        server.call_in(&namespace, "POST", &publish, json!({"public_name": "shown"})).await.ok();
        let path = "/v1/public/retrievers/shown/execute";
        let spent = async || server.call("GET", "/v1/organizations/usage", Value::Null).await.ok()["spend"]["search_usd"].clone();
        for _ in 0..3 {
            Server::send(server.request("POST", path).json(&json!({"inputs": {}, "skip_cache": true}))).await.ok();
        }
        close(&spent().await, 6e-6);
        // What fails costs nothing, nor does what is answered from memory.
        Server::send(server.request("POST", path).json(&json!({"inputs": {}, "filters": {"secret": 1}}))).await.invalid(&["body", "filters", "secret"], "invalid_filter");
        let mut made = 3;
        for _ in 0..3 {
            let answer = Server::send(server.request("POST", path).json(&json!({"inputs": {}}))).await;
            assert_eq!(answer.status, 200, "{:#}", answer.body);
            made += i32::from(answer.headers["x-cache"] != "HIT");
        }
        assert!(made > 3);
        close(&spent().await, f64::from(made) * 2e-6);
        // One row for all of an hour, by the retriever, and no steps of how long each took.
        let list = server.call("GET", "/v1/organizations/billing/transactions", Value::Null).await.ok();
        let acts: Vec<&Value> = list["transactions"].as_array().unwrap().iter().collect();
        assert!(acts.len() < 3 && acts.iter().all(|act| act["resource_type"] == "retriever" && act["resource_id"] == json!(retriever)), "{list:#}");
        let steps = server.app.db().number("SELECT CAST(COUNT(*) AS BIGINT) FROM key_latency WHERE path LIKE '/v1/public/%'", vec![]).await.unwrap();
        assert_eq!(steps, 0);
    }

    async fn the_rate_card_is_public_and_estimates_follow_it(server) {
        amid_a_month(&server);
        let card = Server::send(server.request("GET", "/v1/billing/pricing")).await.ok();
        assert_eq!(card["usage_pools"], json!({"build": 10.0, "scale": 100.0, "enterprise": 0.0}));
        close(&card["mvs_usage_rates"]["storage_gb_month_usd"], 0.33);
        close(&card["reads"]["query_million_usd"], 2.0);
        assert_eq!(card["managed_plans"][0]["resource_limits"]["documents"], 10_000);
        assert_eq!(card["managed_plans"][1]["rate_limits"]["requests_per_minute"], 600);
        assert!(card["extractors"].as_array().unwrap().iter().any(|one| one["feature_extractor_name"] == "text_extractor"));

        let path = "/v1/organizations/billing/estimate";
        let items = json!([{"mime_type": "image/png", "count": 1000}, {"mime_type": "application/pdf", "count": 2, "pages": 50}, {"mime_type": "text/plain", "tokens": 10_000}]);
        let quote = server.call("POST", path, json!({"items": items})).await.ok();
        close(&quote["total_usd"], 1.0 + 0.05 + 0.001);
        close(&quote["estimated_overage_usd"], quote["total_usd"].as_f64().unwrap());
        assert_eq!(quote["line_items"].as_array().unwrap().len(), 3);
        let full = server.call("POST", path, json!({"items": items, "full_res": true, "features": ["a", "b"]})).await.ok();
        close(&full["total_usd"], 2.0 * (2.0 + 0.05 + 0.001));
        server.call("POST", path, json!({"items": [{"mime_type": "image/png", "count": -1}]})).await.invalid(&["body", "items", "0", "count"], "greater_than_equal");
        Server::send(server.request("POST", path).json(&json!({"items": items}))).await.error(401, "AuthenticationError");
    }

    async fn what_an_organization_lets_itself_spend_is_held(server) {
        amid_a_month(&server);
        let (namespace, retriever) = crate::harness::retriever(&server, "frugal").await;
        search(&server, &namespace, &retriever).await.ok();
        let changed = server.call("PATCH", "/v1/organizations", json!({"spend_limits": {"monthly_usd": 1.5e-6}})).await.ok();
        assert_eq!(changed["spend_limits"], json!({"monthly_usd": 1.5e-6}));
        let refused = search(&server, &namespace, &retriever).await.error(403, "QuotaExceededError");
        assert_eq!(refused["error"]["details"]["resource"], "monthly_spend_usd");
        let changed = server.call("PATCH", "/v1/organizations", json!({"spend_limits": {"daily_usd": 1.0, "monthly_usd": 5.0}})).await.ok();
        assert_eq!(changed["spend_limits"], json!({"monthly_usd": 5.0, "daily_usd": 1.0}));
        search(&server, &namespace, &retriever).await.ok();
        server.call("PATCH", "/v1/organizations", json!({"spend_limits": {"daily_usd": -1}})).await.invalid(&["body", "spend_limits", "daily_usd"], "greater_than_equal");
        let log = server.call("GET", "/v1/organizations/audit/logs?action=organization_updated", Value::Null).await.ok();
        assert_eq!(log["total"], 2);
        assert_eq!(log["results"][0]["resource_type"], "organization");
    }

    async fn limits_by_kind_of_operation_are_held(server) {
        amid_a_month(&server);
        let (namespace, retriever) = crate::harness::retriever(&server, "slow").await;
        // What was never set is what the plan allows, and one that is sent alone leaves the others to it.
        let plan = server.call("GET", "/v1/me", Value::Null).await.ok()["rate_limits"]["requests_per_second"].clone();
        let mut all = json!({"metadata": plan, "data": plan, "search": plan, "upload": plan, "compute": plan});
        assert_eq!(server.call("GET", "/v1/organizations", Value::Null).await.ok()["rate_limits"], all);
        all["search"] = 1000.into();
        let one = json!({"rate_limit_overrides": {"search": 1000}});
        assert_eq!(server.call("PATCH", "/v1/organizations", one).await.ok()["rate_limits"], all);
        for _ in 0..25 {
            assert_eq!(server.call("GET", "/v1/organizations", Value::Null).await.ok()["rate_limits"], all);
        }
        all["search"] = plan;
        let none = server.call("PATCH", "/v1/organizations", json!({"rate_limit_overrides": null})).await.ok();
        assert_eq!(none["rate_limits"], all);
        let nothing = json!({"rate_limit_overrides": {"data": 0}});
        server.call("PATCH", "/v1/organizations", nothing).await.invalid(&["body", "rate_limit_overrides", "data"], "greater_than_equal");

        all["search"] = 2.into();
        let changed = server.call("PATCH", "/v1/organizations", json!({"rate_limit_overrides": {"search": 2}})).await.ok();
        assert_eq!(changed["rate_limits"], all);
        let mut statuses = Vec::new();
        for _ in 0..6 {
            let answer = search(&server, &namespace, &retriever).await;
            statuses.push(answer.status);
            if answer.status == 429 {
                let error = answer.error(429, "TooManyRequestsError")["error"].clone();
                assert_eq!((&error["details"]["kind"], &error["details"]["limit"]), (&json!("search"), &json!(2)));
                assert!(error["message"].as_str().unwrap().contains("search"), "{error:#}");
            }
        }
        assert_eq!(statuses[..2], [200, 200], "{statuses:?}");
        assert!(statuses.contains(&429), "{statuses:?}");
        for _ in 0..6 {
            server.call_in(&namespace, "GET", THINGS, Value::Null).await.ok();
        }
    }

    async fn kinds_that_were_not_set_follow_the_plan(server) {
        amid_a_month(&server);
        server.app.clock().hold();
        let subscribe = "/v1/organizations/billing/subscribe";
        let kinds = |figure: &Value, data: &Value, search: &Value| json!({"metadata": figure, "data": data, "search": search, "upload": figure, "compute": figure});
        let shown = async || server.call("GET", "/v1/organizations", Value::Null).await.ok()["rate_limits"].clone();
        let set = async |sent: Value| server.call("PATCH", "/v1/organizations", json!({"rate_limit_overrides": sent})).await.ok()["rate_limits"].clone();
        let high = shown().await["search"].clone();
        let (ten, five, thousand) = (json!(10), json!(5), json!(1000));
        assert_eq!(set(json!({"search": 5})).await, kinds(&high, &high, &five));
        assert_eq!(set(json!({})).await, kinds(&high, &high, &five));
        server.call("POST", subscribe, json!({"plan": "build", "success_url": "https://example.com/done"})).await.ok();
        assert_eq!(shown().await, kinds(&ten, &ten, &five));
        // Nothing is let through beyond the plan.
        assert_eq!(set(json!({"data": 1000})).await, kinds(&ten, &ten, &five));
        server.call("POST", subscribe, json!({"plan": "enterprise"})).await.ok();
        assert_eq!(shown().await, kinds(&high, &thousand, &five));
        assert_eq!(set(Value::Null).await, kinds(&high, &high, &high));
        assert_eq!(set(json!({})).await, kinds(&high, &high, &high));
    }

    async fn a_limit_that_is_set_holds_whatever_its_figure(server) {
        amid_a_month(&server);
        // A figure that every organization begins with is one like any other where it was set.
        let tens = json!({"metadata": 10, "data": 10, "search": 10, "upload": 10, "compute": 10});
        let changed = server.call("PATCH", "/v1/organizations", json!({"rate_limit_overrides": tens})).await.ok();
        assert_eq!(changed["rate_limits"], tens);
        // No token comes while they are counted.
        server.app.clock().hold();
        for _ in 0..10 {
            assert_eq!(server.call("GET", "/v1/organizations", Value::Null).await.ok()["rate_limits"], tens);
        }
        server.call("GET", "/v1/organizations", Value::Null).await.error(429, "TooManyRequestsError");
    }

    async fn a_hard_cap_holds_and_a_budget_is_told_of(server) {
        amid_a_month(&server);
        let (namespace, retriever) = crate::harness::retriever(&server, "capped").await;
        search(&server, &namespace, &retriever).await.ok();
        let caps = server.call("GET", CAPS, Value::Null).await.ok();
        assert_eq!((&caps["hard_cap_enabled"], &caps["spending_alert_thresholds"], &caps["hard_spending_cap"]), (&json!(false), &json!([80, 95]), &Value::Null), "{caps:#}");
        close(&caps["current_spending_usd"], 2e-6);
        assert_eq!(caps["current_spending_cents"], 1, "a cent that is begun is whole");
        server.call("POST", CAPS, json!({"hard_cap_enabled": true})).await.invalid(&["body", "hard_spending_cap"], "missing");
        let set = server.call("POST", CAPS, json!({"hard_spending_cap": 0, "hard_cap_enabled": true})).await.ok();
        assert_eq!((&set["hard_spending_cap"], &set["hard_spending_cap_usd"]), (&json!(0), &json!(0.0)));
        let refused = search(&server, &namespace, &retriever).await.error(403, "QuotaExceededError");
        assert_eq!(refused["error"]["details"]["resource"], "hard_spending_cap_usd");
        let batch = spent::batches_are_paid_for_too(&server, &namespace).await;
        let gone = server.call("POST", CAPS, json!({"hard_cap_enabled": false, "hard_spending_cap": null})).await.ok();
        assert_eq!((&gone["hard_spending_cap"], &gone["hard_cap_enabled"]), (&Value::Null, &json!(false)));
        search(&server, &namespace, &retriever).await.ok();

        spent::a_budget_is_told_of(&server).await;
        spent::bad_caps_are_refused(&server).await;

        spent::what_was_paid_for_is_told_act_by_act(&server, &namespace, &batch).await;
        spent::nobody_is_billed(&server).await;
        spent::bad_lists_are_refused(&server).await;
    }

    async fn a_namespace_pays_for_its_objects_however_many_collections_they_fill(server) {
        amid_a_month(&server);
        let objects: Vec<Value> = (0..14).map(|number| json!({"note": format!("note {number}")})).collect();
        let mut namespaces = Vec::new();
        for (name, collections) in [("once", 1), ("thrice", 3)] {
            let namespace = server.namespace(name).await;
            let bucket = json!({"bucket_name": "notes", "bucket_schema": {"properties": {"note": {"type": "string"}}}});
            let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok()["bucket_id"].as_str().unwrap().to_owned();
            for number in 0..collections {
                let collection = json!({"collection_name": format!("notes{number}"), "source": {"type": "bucket", "bucket_ids": [bucket]},
                    "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
                server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok();
            }
            server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/objects/batch"), json!({"objects": objects})).await.ok();
            let batches = format!("/v1/buckets/{bucket}/batches");
            let batch = server.call_in(&namespace, "POST", &batches, json!({"auto_submit": true})).await.ok();
            crate::batches::ended(&server, &namespace, &format!("{batches}/{}", batch["batch_id"].as_str().unwrap())).await;
            namespaces.push(namespace);
        }
        let parts = server.call("GET", "/v1/organizations/billing/usage/breakdown", Value::Null).await.ok();
        assert_eq!(parts["by_operation"]["ingestion"], 3, "{parts:#}");
        // More than a credit each: begun ones are whole.
        for namespace in namespaces {
            assert_eq!(parts["by_namespace"][namespace], 2, "{parts:#}");
        }
        let extractors: Vec<&Value> = parts["by_extractor"].as_object().unwrap().values().collect();
        assert_eq!(extractors, [3], "{parts:#}");
    }

    async fn an_extractor_is_told_of_what_is_processed_again_as_it_is_paid_again(server) {
        amid_a_month(&server);
        let namespace = server.namespace("again").await;
        let bucket = json!({"bucket_name": "notes", "bucket_schema": {"properties": {"note": {"type": "string"}}}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok()["bucket_id"].as_str().unwrap().to_owned();
        for name in ["kept", "gone"] {
            let collection = json!({"collection_name": name, "source": {"type": "bucket", "bucket_ids": [bucket]},
                "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
            server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok();
        }
        let objects: Vec<Value> = (0..14).map(|number| json!({"note": format!("note {number}")})).collect();
        server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/objects/batch"), json!({"objects": objects})).await.ok();
        let batches = format!("/v1/buckets/{bucket}/batches");
        for _ in 0..3 {
            let batch = json!({"auto_submit": true, "dedup_strategy": "force"});
            let batch = server.call_in(&namespace, "POST", &batches, batch).await.ok();
            crate::batches::ended(&server, &namespace, &format!("{batches}/{}", batch["batch_id"].as_str().unwrap())).await;
        }
        let path = "/v1/organizations/billing/usage/breakdown";
        let parts = async || server.call("GET", path, Value::Null).await.ok();
        // 42 objects are 4.2 credits, and a credit that is begun is whole.
        let told = parts().await;
        assert_eq!((&told["by_operation"]["ingestion"], &told["by_extractor"]), (&json!(5), &json!({"passthrough_extractor": 5})), "{told:#}");
        // What filled a collection that is gone is nobody's.
        server.call_in(&namespace, "DELETE", "/v1/collections/gone", Value::Null).await.ok();
        let told = parts().await;
        assert_eq!((&told["by_operation"]["ingestion"], &told["by_extractor"]), (&json!(5), &json!({"passthrough_extractor": 3})), "{told:#}");
    }

    async fn a_plan_is_chosen_and_its_credits_are_counted(server) {
        amid_a_month(&server);
        let (namespace, retriever) = crate::harness::retriever(&server, "plans").await;
        search(&server, &namespace, &retriever).await.ok();
        let balance = server.call("GET", "/v1/organizations/billing/balance", Value::Null).await.ok();
        assert_eq!((&balance["account_tier"], &balance["credit_balance"], balance.get("next_tier")), (&json!("enterprise"), &json!(0), None), "{balance:#}");
        let subscription = "/v1/organizations/billing/subscription";
        let before = server.call("GET", subscription, Value::Null).await.ok();
        assert_eq!((&before["has_subscription"], &before["plan_slug"], &before["status"]), (&json!(true), &json!("enterprise"), &json!("active")));
        let subscribe = "/v1/organizations/billing/subscribe";
        let told = server.call("POST", subscribe, json!({"plan": "build", "success_url": "https://example.com/done"})).await.ok();
        assert_eq!(told["checkout_url"], "https://example.com/done");
        // The rates of the plan hold at once: an idle key has its burst.
        server.app.clock().advance(60);
        assert_eq!(server.call("GET", subscription, Value::Null).await.ok()["plan_slug"], "build");
        let balance = server.call("GET", "/v1/organizations/billing/balance", Value::Null).await.ok();
        assert_eq!((&balance["credit_balance"], &balance["next_tier"]), (&json!(9_999), &json!("scale")), "{balance:#}");
        assert!(balance["daily_burn_rate"].as_f64().unwrap() > 0.0 && balance["estimated_days_remaining"].as_i64().unwrap() > 0, "{balance:#}");
        let credits = server.call("GET", "/v1/organizations/credits", Value::Null).await.ok();
        assert_eq!((&credits["credits_included"], &credits["credits_used"], &credits["credit_balance"]), (&json!(10_000), &json!(1), &json!(9_999)), "{credits:#}");
        assert_eq!(server.call("GET", "/v1/me", Value::Null).await.ok()["rate_limits"]["requests_per_minute"], 60);
        server.call("POST", subscribe, json!({"plan": "gold"})).await.invalid(&["body", "plan"], "enum");
        server.call("POST", subscribe, json!({"plan": "free"})).await.invalid(&["body", "plan"], "enum");
        let told = server.call("POST", subscribe, json!({"plan": "enterprise"})).await.ok();
        assert_eq!(told["checkout_url"], format!("{}/console/", server.url));
        let log = server.call("GET", "/v1/organizations/audit/logs?action=organization_updated", Value::Null).await.ok();
        assert_eq!(log["results"][0]["changes"]["account_type"], json!({"before": "build", "after": "enterprise"}), "{log:#}");
    }
}
