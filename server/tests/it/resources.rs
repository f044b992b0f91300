//! Namespaces, buckets, users: made, found, listed, changed, and refused when wrong.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Server, retriever},
};

both! {
    async fn null_takes_away_what_need_not_be_there(server) {
        let (namespace, retriever) = retriever(&server, "emptied").await;
        let bucket = json!({"bucket_name": "files", "bucket_schema": {"properties": {"title": {"type": "string"}}}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        let plain = json!({"description": "d", "metadata": {"a": 1}});
        let mut shown = plain.clone();
        shown["tags"] = json!(["t"]);
        shown["display_config"] = json!({"title": "Things", "inputs": [], "exposed_fields": ["title"]});
        for (path, said) in [
            (format!("/v1/namespaces/{namespace}"), json!({"description": "d"})),
            (format!("/v1/buckets/{}", bucket["bucket_id"].as_str().unwrap()), plain.clone()),
            ("/v1/collections/things".to_owned(), plain),
            (format!("/v1/retrievers/{retriever}"), shown),
        ] {
            let change = async |body: Value| {
                server.call_in(&namespace, "PATCH", &path, body).await.ok();
                server.call_in(&namespace, "GET", &path, Value::Null).await.ok()
            };
            let is_said = |one: &Value, name: &str| {
                let value = &one[name];
                !(value.is_null() || *value == json!({}) || *value == json!([]))
            };
            let names: Vec<&String> = said.as_object().unwrap().keys().collect();
            let set = change(said.clone()).await;
            let kept = change(json!({})).await;
            let nulls = names.iter().map(|name| ((*name).clone(), Value::Null));
            let gone = change(Value::Object(nulls.collect())).await;
            for name in names {
                assert!(is_said(&set, name) && is_said(&kept, name), "{path} {name}: {set:#}");
                assert!(!is_said(&gone, name), "{path} {name}: {gone:#}");
            }
        }
    }

    async fn buckets_are_listed_filtered_and_sorted(server) {
        let namespace = server.namespace("catalogue").await;
        for name in ["alpha", "beta", "gamma"] {
            let body = json!({"bucket_name": name, "bucket_schema": {"properties": {"title": {"type": "text"}}}});
            server.call_in(&namespace, "POST", "/v1/buckets", body).await.ok();
        }
        let taken = json!({"bucket_name": "beta", "bucket_schema": {"properties": {}}});
        server.call_in(&namespace, "POST", "/v1/buckets", taken).await.error(409, "AlreadyExistsError");

        let page = server.call_in(&namespace, "GET", "/v1/buckets?limit=2&include_total=true", Value::Null).await.ok();
        assert_eq!(page["results"].as_array().unwrap().len(), 2);
        assert_eq!(page["total_count"], 3);
        let cursor = page["pagination"]["next_cursor"].as_str().unwrap();
        let next = server.call_in(&namespace, "GET", &format!("/v1/buckets?limit=2&cursor={cursor}"), Value::Null).await.ok();
        assert_eq!(next["results"].as_array().unwrap().len(), 1);
        assert!(next["pagination"]["next_cursor"].is_null());

        let sorted = json!({"sort": {"field": "bucket_name", "direction": "desc"}});
        let sorted = server.call_in(&namespace, "POST", "/v1/buckets/list", sorted).await.ok();
        let names: Vec<&str> = sorted["results"].as_array().unwrap().iter().map(|b| b["bucket_name"].as_str().unwrap()).collect();
        assert_eq!(names, ["gamma", "beta", "alpha"]);
        let filter = json!({"filters": {"field": "bucket_name", "operator": "starts_with", "value": "al"}});
        let filtered = server.call_in(&namespace, "POST", "/v1/buckets/list", filter).await.ok();
        assert_eq!(filtered["results"].as_array().unwrap().len(), 1);
        let found = server.call_in(&namespace, "POST", "/v1/buckets/list", json!({"search": "GAM"})).await.ok();
        assert_eq!(found["results"][0]["bucket_name"], "gamma");
    }

    async fn a_schema_that_objects_may_not_fit_needs_force(server) {
        let namespace = server.namespace("schemas").await;
        let schema = |properties: Value| json!({"bucket_schema": {"properties": properties}});
        let mut body = schema(json!({"title": {"type": "string"}, "year": {"type": "integer"}}));
        body["bucket_name"] = "things".into();
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", body).await.ok();
        let path = format!("/v1/buckets/{}", bucket["bucket_id"].as_str().unwrap());
        let send = async |method: &str, query: &str, body: Value| server.call_in(&namespace, method, &format!("{path}{query}"), body).await;
        // Nothing was checked against it yet.
        send("PUT", "", schema(json!({"title": {"type": "string"}, "year": {"type": "number"}}))).await.ok();
        server.call_in(&namespace, "POST", &format!("{path}/objects"), json!({"title": "a", "year": 1.5})).await.ok();
        let dropped = schema(json!({"title": {"type": "string"}}));
        send("PATCH", "", dropped.clone()).await.error(409, "ConflictError");
        let retyped = schema(json!({"title": {"type": "string"}, "year": {"type": "integer"}}));
        let refused = send("PUT", "", retyped).await.error(409, "ConflictError");
        assert_eq!(refused["error"]["details"]["property"], "year");
        let wider = schema(json!({"title": {"type": "string"}, "year": {"type": "number"}, "own": {"type": "text"}}));
        send("PUT", "", wider).await.ok();
        let forced = send("PATCH", "?force_schema_break=true", dropped).await.ok();
        assert_eq!(forced["bucket_schema"]["properties"].as_object().unwrap().len(), 1);
        assert_eq!(forced["object_count"], 1, "a change answers as a look does");
        let put = send("PUT", "", json!({"bucket_name": "kept", "storage_class": "nearline"})).await.ok();
        assert_eq!((&put["bucket_name"], &put["storage_class"], &put["bucket_schema"]), (&json!("kept"), &json!("nearline"), &forced["bucket_schema"]));
        let adapter = json!({"source_adapter": {"adapter_type": "webhook"}});
        send("PATCH", "", adapter).await.invalid(&["body", "source_adapter"], "not_enabled");
    }

    async fn fields_that_are_passed_through_keep_their_types(server) {
        let namespace = server.namespace("types").await;
        let properties = json!({"title": {"type": "string"}, "year": {"type": "integer"}});
        let bucket = json!({"bucket_name": "films", "bucket_schema": {"properties": properties}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        let made = json!({
            "collection_name": "films", "source": {"type": "bucket", "bucket_ids": [bucket["bucket_id"]]},
            "feature_extractor": {
                "feature_extractor_name": "passthrough_extractor", "version": "v1",
                "field_passthrough": [{"source_path": "title"}, {"source_path": "year", "target_path": "made_in"}],
            },
        });
        let made = server.call_in(&namespace, "POST", "/v1/collections", made).await.ok();
        let properties = &made["output_schema"]["properties"];
        assert_eq!((&properties["title"]["type"], &properties["made_in"]["type"]), (&json!("string"), &json!("integer")), "{made:#}");
    }

    async fn a_namespace_is_renamed_by_put(server) {
        let id = server.namespace("before").await;
        let path = format!("/v1/namespaces/{id}");
        let put = server.call("PUT", &path, json!({"namespace_name": " after "})).await.ok();
        assert_eq!((&put["namespace_name"], &put["namespace_id"]), (&json!("after"), &json!(id)));
        assert_eq!((&put["bucket_count"], &put["object_count"]), (&json!(0), &json!(0)), "{put:#}");
        let found = server.call("GET", "/v1/namespaces/after", Value::Null).await.ok();
        assert_eq!(found["namespace_id"], id.as_str());
        let wrong = json!({"namespace_name": "a/b/c"});
        for method in ["PUT", "PATCH"] {
            server.call(method, &path, wrong.clone()).await.invalid(&["body", "namespace_name"], "string_pattern_mismatch");
        }
        server.namespace("other").await;
        server.call("PUT", &path, json!({"namespace_name": "other"})).await.error(409, "AlreadyExistsError");
        server.call("PUT", "/v1/namespaces/ns_unknown", json!({"namespace_name": "new"})).await.error(404, "NotFoundError");
    }

    async fn the_header_narrows_namespaces_and_names_the_one_of_the_path(server) {
        let (one, two) = (server.namespace("first").await, server.namespace("second").await);
        for (method, path) in [("GET", "/v1/namespaces"), ("POST", "/v1/namespaces/list?include_system=true&view=summary")] {
            let all = server.call(method, path, Value::Null).await.ok();
            let all = all["results"].as_array().unwrap().iter().map(|found| found["namespace_id"].clone()).collect::<Vec<_>>();
            assert!(all.contains(&json!(one)) && all.contains(&json!(two)), "{all:?}");
            let narrow = server.call_in(&two, method, path, Value::Null).await.ok();
            assert_eq!(narrow["results"].as_array().unwrap().len(), 1, "{narrow:#}");
            assert_eq!((&narrow["results"][0]["namespace_id"], &narrow["warnings"]), (&json!(two), &json!([])));
            let nothing = server.call_in("ns_unknown", method, path, Value::Null).await;
            assert_eq!(nothing.headers["x-namespace-unresolved"], "true");
            assert_eq!(nothing.ok()["results"], json!([]));
        }
        let path = format!("/v1/namespaces/{one}");
        for (method, path, body) in [
            ("GET", path.clone(), Value::Null), ("GET", "/v1/namespaces/first".into(), Value::Null),
            ("GET", format!("{path}/stats"), Value::Null), ("PATCH", path.clone(), json!({"description": "of the second"})),
            ("PUT", path.clone(), json!({"namespace_name": "third"})), ("DELETE", path.clone(), Value::Null),
            ("POST", format!("{path}/clone"), json!({"namespace_name": "third"})), ("POST", format!("{path}/snapshots"), json!({})),
            ("POST", format!("{path}/snapshots/list"), json!({})), ("GET", format!("{path}/snapshots/snap_unknown"), Value::Null),
        ] {
            let refused = server.call_in(&two, method, &path, body).await.error(400, "BadRequestError");
            assert_eq!(refused["error"]["code"], "namespace_mismatch", "{method} {path}");
        }
        for header in [one.as_str(), ""] {
            for path in [path.as_str(), "/v1/namespaces/first"] {
                assert_eq!(server.call_in(header, "GET", path, Value::Null).await.ok()["namespace_id"], one.as_str());
            }
            let list = server.call_in(header, "POST", &format!("{path}/snapshots/list"), json!({})).await.ok();
            assert_eq!((&list["total_count"], &list["warnings"]), (&json!(0), &json!([])));
        }
        server.call_in("ns_unknown", "GET", &path, Value::Null).await.error(404, "NotFoundError");
        let nowhere = server.call_in("ns_unknown", "POST", &format!("{path}/snapshots/list"), json!({})).await;
        assert_eq!(nowhere.headers["x-namespace-unresolved"], "true");
        assert_eq!(nowhere.ok()["results"], json!([]));
    }

    async fn an_empty_body_lists(server) {
        let namespace = server.namespace("empty").await;
        let request = server
            .request("POST", "/v1/buckets/list")
            .bearer_auth(&server.key)
            .header("X-Namespace", &namespace)
            .header("content-type", "application/json");
        assert_eq!(Server::send(request).await.ok()["results"], json!([]));
    }

    async fn an_unresolved_namespace_is_an_empty_page_on_lists_only(server) {
        let list = server.call_in("ns_unknown", "GET", "/v1/buckets", Value::Null).await;
        assert_eq!(list.headers["x-namespace-unresolved"], "true");
        let body = list.ok();
        assert_eq!(body["results"], json!([]));
        assert_eq!(body["warnings"][0]["reason"], "unresolved");
        assert_eq!(body["warnings"][0]["id"], "ns_unknown");
        server.call_in("ns_unknown", "GET", "/v1/buckets/bkt_x", Value::Null).await.error(404, "NotFoundError");
        server.call("GET", "/v1/buckets", Value::Null).await.error(403, "UnauthorizedError");
    }

    async fn wrong_bodies_get_the_422_list(server) {
        let namespace = server.namespace("wrong").await;
        let unknown = json!({"bucket_name": "b", "bucket_schema": {"properties": {}}, "colour": "red"});
        let fault = server.call_in(&namespace, "POST", "/v1/buckets", unknown).await.invalid(&["body", "colour"], "extra_forbidden");
        assert!(fault["ctx"]["accepted"].as_array().unwrap().contains(&json!("bucket_name")));
        assert!(fault["msg"].as_str().unwrap().contains("bucket_schema"));
        let missing = json!({"bucket_schema": {"properties": {}}});
        server.call_in(&namespace, "POST", "/v1/buckets", missing).await.invalid(&["body", "bucket_name"], "missing");
        let wrong = json!({"bucket_name": 7, "bucket_schema": {"properties": {}}});
        server.call_in(&namespace, "POST", "/v1/buckets", wrong).await.invalid(&["body", "bucket_name"], "string_type");
        let kind = json!({"bucket_name": "b", "bucket_schema": {"properties": {"x": {"type": "colour"}}}});
        let answer = server.call_in(&namespace, "POST", "/v1/buckets", kind).await;
        assert_eq!(answer.status, 422, "{}", answer.body);
        let text = server.request("POST", "/v1/buckets").bearer_auth(&server.key).header("X-Namespace", &namespace).body("{no json");
        assert_eq!(Server::send(text).await.status, 422);
        server.call_in(&namespace, "GET", "/v1/buckets?limit=0", Value::Null).await.invalid(&["query", "limit"], "greater_than_equal");
        let filter = json!({"filters": {"field": "x", "operator": "resembles", "value": 1}});
        let refused = server.call_in(&namespace, "POST", "/v1/buckets/list", filter).await;
        assert_eq!(refused.status, 422, "{}", refused.body);
    }

    async fn users_are_added_and_changed(server) {
        let body = json!({"email": "Ada@example.org", "user_name": "Ada"});
        let ada = server.call("POST", "/v1/organizations/users", body.clone()).await.ok();
        assert_eq!(ada["email"], "ada@example.org");
        server.call("POST", "/v1/organizations/users", body).await.error(409, "AlreadyExistsError");
        let changed = server.call("PATCH", "/v1/organizations/users/ada@example.org", json!({"role": "viewer"})).await.ok();
        assert_eq!(changed["role"], "viewer");
        let list = server.call("GET", "/v1/organizations/users?role=viewer", Value::Null).await.ok();
        assert_eq!(list["total"], 1);
        server.call("GET", "/v1/organizations/users/nobody@example.org", Value::Null).await.error(404, "NotFoundError");
        // The owner's key is in use, and what is in use is written beside the requests; nobody called with a key of Ada's.
        let owner = async || server.call("GET", "/v1/organizations/users/owner@localhost", Value::Null).await.ok();
        while owner().await["last_login_at"].is_null() {
            tokio::task::yield_now().await;
        }
        let list = server.call("GET", "/v1/organizations/users", Value::Null).await.ok();
        let seen = list["results"].as_array().unwrap().iter().map(|user| user["last_login_at"].is_string());
        assert_eq!(seen.collect::<Vec<_>>(), [true, false], "{list:#}");
        for (query, member) in [("skip=-1", "skip"), ("limit=0", "limit"), ("limit=1001&skip=1", "limit")] {
            let answer = server.call("GET", &format!("/v1/organizations/users?{query}"), Value::Null).await;
            answer.invalid(&["query", member], "range");
        }
    }

    async fn a_character_that_no_text_has_is_no_fault_of_the_server(server) {
        let namespace = server.namespace("nothing").await;
        for path in [
            "/v1/organizations/users/%00", "/v1/namespaces/%00", "/v1/organizations/audit/logs?resource_id=%00",
            "/v1/organizations/api-keys/%00/usage", "/v1/tasks/%00", "/v1/buckets/%00", "/v1/collections/%00", "/v1/retrievers/%00",
        ] {
            let answer = server.call_in(&namespace, "GET", path, Value::Null).await;
            assert!(matches!(answer.status, 200 | 400 | 404), "{path}: {} {:#}", answer.status, answer.body);
        }
        let schema = json!({"properties": {}});
        for (path, body) in [
            ("/v1/organizations/users", json!({"email": "eve@example.org", "user_name": "E\0ve"})),
            ("/v1/buckets", json!({"bucket_name": "a\0b", "bucket_schema": schema})),
            ("/v1/buckets", json!({"bucket_name": "ab", "description": "a\0b", "bucket_schema": schema})),
        ] {
            // PostgreSQL has no place for it, and what one database refuses the other does not keep.
            server.call_in(&namespace, "POST", path, body).await.error(400, "BadRequestError");
        }
    }

    async fn a_key_that_no_index_takes_is_no_fault_of_the_server(server) {
        let namespace = server.namespace("long").await;
        let bucket = json!({"bucket_name": "keyed", "bucket_schema": {"properties": {"sku": {"type": "string"}}}, "unique_key": {"fields": ["sku"]}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        let path = format!("/v1/buckets/{}/objects", bucket["bucket_id"].as_str().unwrap());
        // Letters that cannot be packed: too many for a page of an index, and for any row of one.
        let letters = |count: usize| -> String {
            let letters = (0..count).scan(7_u32, |state, _| {
                *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                Some(char::from(b'a' + (*state >> 24) as u8 % 26))
            });
            letters.collect()
        };
        for count in [6000, 9000] {
            let answer = server.call_in(&namespace, "POST", &path, json!({"sku": letters(count)})).await;
            if server.app.db().is_postgres() {
                let refused = answer.error(400, "BadRequestError");
                assert_eq!(refused["error"]["message"], "a name or key of this request is too long");
            } else {
                answer.ok();
            }
        }
        server.call_in(&namespace, "POST", &path, json!({"sku": "a1"})).await.ok();
    }

    async fn an_organization_has_a_name_and_addresses(server) {
        let organization = "/v1/organizations";
        for (member, sent) in [
            ("organization_name", json!(" ")), ("billing_email", json!("nobody")), ("notifications_email", json!("a b@example.org")),
            ("nsfw_check_enabled", json!(true)), ("nsfw_fail_closed", json!(true)),
        ] {
            server.call("PATCH", organization, json!({member: sent})).await.invalid(&["body", member], "value_error");
        }
        let body = json!({"organization_name": "Library", "billing_email": "bills@example.org", "nsfw_check_enabled": false});
        let changed = server.call("PATCH", organization, body).await.ok();
        assert_eq!((&changed["organization_name"], &changed["billing_email"]), (&json!("Library"), &json!("bills@example.org")));
        // Nothing would hold namespaces to it.
        let limits = json!({"spend_limits": {"namespace_default_monthly_usd": 5.0}});
        let place = ["body", "spend_limits", "namespace_default_monthly_usd"];
        server.call("PATCH", organization, limits).await.invalid(&place, "value_error");
        let limits = json!({"daily_usd": 5.0});
        assert_eq!(server.call("PATCH", organization, json!({"spend_limits": limits})).await.ok()["spend_limits"], limits);
        let gone = server.call("PATCH", organization, json!({"spend_limits": null})).await.ok();
        assert_eq!((&gone["spend_limits"], &gone["organization_name"]), (&Value::Null, &json!("Library")));
    }
}
