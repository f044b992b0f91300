//! What an app may do is what whoever made it may do, and what its visitors take is not the owner's all.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    apps::{asked, at, deploy, host, make},
    both,
    harness::{Answer, Server, retriever},
    quotas,
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

/// A key of this level with these scopes.
async fn mint(server: &Server, level: &str, scopes: Value) -> String {
    let name = format!("{level} {scopes}");
    let name: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(60)
        .collect();
    let body = json!({"name": name, "permissions": [level], "scopes": scopes});
    let made = server.call("POST", KEYS, body).await.ok();
    made["key"].as_str().unwrap().to_owned()
}

async fn by(server: &Server, key: &str, method: &str, path: &str, body: Value) -> Answer {
    let request = server.request(method, path).bearer_auth(key).json(&body);
    Server::send(request).await
}

fn titled(slug: &str, more: Value) -> Value {
    let mut body = json!({"slug": slug, "meta": {"title": slug}});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

both! {
    async fn only_who_manages_secrets_says_where_one_is_sent(server) {
        let secret = json!({"secret_name": "openai", "secret_value": "worth money"});
        server.call("POST", "/v1/organizations/secrets", secret).await.ok();
        let writer = mint(&server, "write", json!([])).await;
        let auth = |issuer: &str, secret: Option<&str>| json!({"auth_config": {
            "mode": "sso_oidc", "oidc_issuer": issuer, "oidc_client_id": "club", "oidc_client_secret_name": secret}});
        let (good, evil) = ("https://login.example", "https://evil.example");
        let refused = by(&server, &writer, "POST", "/v1/apps", titled("club", auth(evil, Some("openai")))).await;
        refused.error(403, "ForbiddenError");
        // Without a secret it is the writer's own affair.
        by(&server, &writer, "POST", "/v1/apps", titled("plain", auth(evil, None))).await.ok();
        // Nobody names one that is not there, or that the own scopes do not cover.
        server.call("POST", "/v1/apps", titled("club", auth(good, Some("unknown")))).await.error(404, "NotFoundError");
        let organization = server.call("GET", "/v1/organizations", Value::Null).await.ok()["organization_id"].clone();
        let all_but_secrets = json!([{"resource_type": "organization", "resource_id": organization, "operations": ["read_data", "write_data"]}]);
        let narrow = mint(&server, "admin", all_but_secrets).await;
        let refused = by(&server, &narrow, "POST", "/v1/apps", titled("club", auth(good, Some("openai")))).await;
        assert_eq!(refused.error(403, "ForbiddenError")["error"]["code"], "scope_denied");

        let app = make(&server, titled("club", auth(good, Some("openai")))).await;
        let path = format!("/v1/apps/{app}");
        let change = |body: Value| by(&server, &writer, "PATCH", &path, body);
        for changed in [auth(evil, Some("openai")), auth(good, Some("other"))] {
            let refused = by(&server, &writer, "PATCH", &format!("{path}?dry_run=true"), changed.clone()).await;
            refused.error(403, "ForbiddenError");
            change(changed).await.error(403, "ForbiddenError");
        }
        let kept = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!((&kept["auth_config"]["oidc_issuer"], &kept["auth_config"]["oidc_client_secret_name"]), (&json!(good), &json!("openai")));
        // What stays as an admin set it up may be sent again.
        let mut again = auth(good, Some("openai"));
        again["auth_config"]["oidc_scopes"] = json!(["openid"]);
        again["meta"] = json!({"title": "The club"});
        assert_eq!(change(again).await.ok()["meta"]["title"], "The club");
        change(auth(evil, None)).await.ok();
        change(auth(evil, Some("openai"))).await.error(403, "ForbiddenError");
    }

    async fn a_key_of_a_retriever_inside_of_a_live_app_is_not_revoked_by_accident(server) {
        let (namespace, id) = retriever(&server, "films").await;
        let keys = format!("/v1/retrievers/{id}/api-keys");
        let made = server.call_in(&namespace, "POST", &keys, json!({"name": "browser"})).await.ok();
        let app = make(&server, titled("films", json!({}))).await;
        let script = format!("const key = '{}';", made["key"].as_str().unwrap());
        deploy(&server, &app, "production", json!({"index.html": "<p>", "main.js": script})).await;
        let path = format!("{keys}/{}", made["key_id"].as_str().unwrap());
        let refused = server.call_in(&namespace, "DELETE", &path, Value::Null).await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "key_in_use");
        assert_eq!(refused["error"]["details"]["referencing_apps"][0]["app_id"], json!(app));
        server.call_in(&namespace, "DELETE", &format!("{path}?force=true"), Value::Null).await.ok();
    }

    async fn an_app_raises_nobodys_level(server) {
        let (namespace, _) = retriever(&server, "films").await;
        // Of several an app has none of itself.
        server.namespace("other").await;
        let writer = mint(&server, "write", json!([])).await;
        let deleter = mint(&server, "delete", json!([])).await;
        let rules = |rule: Value| json!({"build_config": {"api_allow": [rule]}});
        for (number, rule) in [
            json!({"methods": ["DELETE"], "pattern": "/collections/*"}), json!({"methods": ["*"], "pattern": "/retrievers/**"}),
            json!({"pattern": "/v1/collections/**"}), json!({"methods": ["POST", "delete"], "pattern": "/collections/films/documents/*"}),
        ].into_iter().enumerate() {
            let refused = by(&server, &writer, "POST", "/v1/apps", titled("films", rules(rule.clone()))).await;
            let refused = refused.error(403, "ForbiddenError");
            assert_eq!(refused["error"]["details"]["required_permission"], "delete", "{rule}");
            by(&server, &deleter, "POST", "/v1/apps", titled(&format!("films-{number}"), rules(rule))).await.ok();
        }
        let made = by(&server, &writer, "POST", "/v1/apps", titled("films", rules(json!({"methods": ["POST"], "pattern": "/retrievers/*/execute"})))).await.ok();
        let path = format!("/v1/apps/{}", made["app_id"].as_str().unwrap());
        let deleting = rules(json!({"methods": ["DELETE"], "pattern": "/collections/*"}));
        by(&server, &writer, "PATCH", &path, deleting.clone()).await.error(403, "ForbiddenError");
        by(&server, &deleter, "PATCH", &path, deleting.clone()).await.ok();
        // What is there already may stay, but not reach further.
        by(&server, &writer, "PATCH", &path, json!({"meta": {"title": "Better"}})).await.ok();
        by(&server, &writer, "PATCH", &path, deleting.clone()).await.ok();
        let mut elsewhere = deleting.clone();
        elsewhere["build_config"]["env_vars"] = json!({"LOUPE_NAMESPACE": namespace});
        by(&server, &writer, "PATCH", &path, elsewhere).await.error(403, "ForbiddenError");
        let request = server.request("PATCH", &path).bearer_auth(&writer).header("x-namespace", &namespace).json(&json!({}));
        Server::send(request).await.error(403, "ForbiddenError");
        let kept = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!(kept["build_config"]["env_vars"], Value::Null);
        by(&server, &deleter, "DELETE", &path, json!({})).await.ok();
    }

    async fn an_app_leaves_nobodys_scope(server) {
        let (one, two) = (server.namespace("one").await, server.namespace("two").await);
        let app = make(&server, titled("theirs", json!({}))).await;
        let path = format!("/v1/apps/{app}");
        // Apps are the organization's: naming a namespace in a header makes them no part of it.
        let scoped = mint(&server, "delete", json!([{"resource_type": "namespace", "resource_id": one}])).await;
        for (method, path, body) in [
            ("GET", path.clone(), json!({})), ("PATCH", path.clone(), json!({"meta": {"title": "Mine"}})),
            ("POST", format!("{path}/deploy"), json!({"source_files": {"index.html": "mine"}})), ("DELETE", path.clone(), json!({})),
            ("POST", "/v1/apps".into(), titled("mine", json!({}))),
        ] {
            let request = server.request(method, &path).bearer_auth(&scoped).header("x-namespace", &one).json(&body);
            let refused = Server::send(request).await.error(403, "ForbiddenError");
            assert_eq!(refused["error"]["code"], "scope_denied", "{method} {path}");
        }
        // Who may make apps, and read in one namespace only, opens no other one.
        let organization = server.call("GET", "/v1/organizations", Value::Null).await.ok()["organization_id"].clone();
        let scopes = json!([{"resource_type": "organization", "resource_id": organization, "operations": ["write_data"]},
            {"resource_type": "namespace", "resource_id": one, "operations": ["read_data"]}]);
        let maker = mint(&server, "write", scopes).await;
        let of = |namespace: &str| json!({"build_config": {"env_vars": {"LOUPE_NAMESPACE": namespace}}});
        let make = |slug: &str, more: Value| by(&server, &maker, "POST", "/v1/apps", titled(slug, more));
        let refused = make("second", of(&two)).await.error(403, "ForbiddenError");
        assert_eq!(refused["error"]["code"], "scope_denied");
        make("second", of("ns_unknown")).await.error(404, "NotFoundError");
        make("second", json!({})).await.error(403, "ForbiddenError");
        let made = make("first", of(&one)).await.ok();
        let path = format!("/v1/apps/{}", made["app_id"].as_str().unwrap());
        by(&server, &maker, "PATCH", &path, of(&two)).await.error(403, "ForbiddenError");
        by(&server, &maker, "PATCH", &path, json!({"meta": {"title": "Mine"}})).await.ok();
        // By the header as by the variable.
        let sent = |namespace: &str| {
            let request = server.request("POST", "/v1/apps").bearer_auth(&maker).header("x-namespace", namespace);
            Server::send(request.json(&titled("third", json!({}))))
        };
        sent(&two).await.error(403, "ForbiddenError");
        sent(&one).await.ok();
    }

    async fn visitors_bring_no_stages_of_their_own(server) {
        let (_, id) = retriever(&server, "things").await;
        let rules = json!({"build_config": {"api_allow": [{"pattern": "/retrievers/**"}, {"pattern": "/retrievers/*"}, {"pattern": "/retrievers"}]}});
        let app = make(&server, titled("things", rules)).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Things"})).await;
        let stages = json!([{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
            "field": "title", "operator": "exists", "value": true}}}]);
        for (path, body) in [
            ("/api/retrievers/execute".to_owned(), json!({"collection_identifiers": ["things"], "stages": stages})),
            ("/api/retrievers".to_owned(), json!({"retriever_name": "mine", "collection_identifiers": ["things"], "stages": stages})),
            (format!("/api/retrievers/{id}/clone"), json!({"retriever_name": "mine", "stages": stages})),
        ] {
            let answer = Server::send(at(&server, "things", "POST", &path).json(&body)).await;
            assert_eq!(answer.status, 404, "{path}: {:#}", answer.body);
        }
        let execute = at(&server, "things", "POST", &format!("/api/retrievers/{id}/execute")).json(&json!({"inputs": {}}));
        Server::send(execute).await.ok();
        Server::send(at(&server, "things", "GET", "/api/retrievers")).await.ok();
    }

    async fn a_change_keeps_what_it_does_not_name_of_what_visitors_may_do(server) {
        let namespace = server.namespace("films").await;
        let (rules, variables) = (json!([{"methods": ["GET"], "pattern": "/collections"}]), json!({"LOUPE_PRINCIPAL": "user", "LOUPE_NAMESPACE": namespace}));
        let build = json!({"entry": "main.js", "tailwind": false, "api_allow": rules, "env_vars": variables});
        let app = make(&server, titled("films", json!({"build_config": build}))).await;
        let path = format!("/v1/apps/{app}");
        let change = async |build: Value| server.call("PATCH", &path, json!({"build_config": build})).await.ok()["build_config"].clone();
        let (before, other) = (change(json!({})).await, json!([{"pattern": "/retrievers/*/execute"}]));
        assert_eq!((&before["api_allow"], &before["env_vars"]), (&rules, &variables));
        let told = change(json!({"env_vars": {"LOUPE_PRINCIPAL": "user"}, "entry": "other.js"})).await;
        assert_eq!((&told["api_allow"], &told["env_vars"]), (&rules, &json!({"LOUPE_PRINCIPAL": "user"})));
        assert_eq!((&told["entry"], &told["tailwind"]), (&json!("other.js"), &json!(false)));
        let told = change(json!({"api_allow": other})).await;
        assert_eq!(told["env_vars"], json!({"LOUPE_PRINCIPAL": "user"}));
        assert_eq!(told["api_allow"][0]["pattern"], other[0]["pattern"]);
        // What is said to be nothing is taken away.
        let told = change(json!({"api_allow": [], "env_vars": {}})).await;
        assert_eq!((&told["api_allow"], &told["env_vars"]), (&Value::Null, &Value::Null));
        assert_eq!(told["tailwind"], false);
    }

    async fn visitors_write_nothing_by_an_execution(server) {
        let (namespace, id) = retriever(&server, "things").await;
        let shelf = json!({"collection_name": "shelf", "source": {"type": "direct_upsert"}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1",
            "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]}}});
        server.call_in(&namespace, "POST", "/v1/collections", shelf).await.ok();
        let one = json!({"title": "one", "vectors": {"own": [1.0, 0.0, 0.0]}});
        server.call_in(&namespace, "POST", "/v1/collections/things/documents", one).await.ok();
        let app = make(&server, titled("things", json!({}))).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Things"})).await;
        let execute = format!("/retrievers/{id}/execute");
        let rules = [json!([]), json!([{"pattern": &execute}]), json!([{"pattern": "/**"}])];
        for rules in rules {
            let build = json!({"build_config": {"api_allow": rules, "env_vars": {"LOUPE_NAMESPACE": &namespace}}});
            server.call("PATCH", &format!("/v1/apps/{app}"), build).await.ok();
            let ask = |body: Value| Server::send(at(&server, "things", "POST", &format!("/api{execute}")).json(&body));
            for more in [json!({}), json!({"stream": true})] {
                let mut body = json!({"inputs": {}, "target_collection_id": "shelf"});
                body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                let refused = ask(body).await.error(403, "ForbiddenError");
                assert_eq!(refused["error"]["code"], "permission_denied", "{rules}");
            }
            let found = ask(json!({"inputs": {}, "target_collection_id": null})).await.ok();
            assert_eq!(found["documents"].as_array().unwrap().len(), 1);
        }
        let kept = server.call_in(&namespace, "POST", "/v1/collections/shelf/documents/list", json!({})).await.ok();
        assert_eq!(kept["results"], json!([]));
    }

    async fn visitors_are_told_that_a_service_is_away_and_not_which(server) {
        let (namespace, _) = retriever(&server, "things").await;
        let asks = json!({"retriever_name": "asks", "collection_identifiers": ["things"], "stages": [
            {"stage_name": "asks", "config": {"stage_id": "attribute_filter", "parameters": {"natural_language": "old films"}}}]});
        let asks = server.call_in(&namespace, "POST", "/v1/retrievers", asks).await.ok();
        let path = format!("/retrievers/{}/execute", asks["retriever_id"].as_str().unwrap());
        let app = make(&server, titled("things", json!({}))).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Things"})).await;
        let owner = server.call_in(&namespace, "POST", &format!("/v1{path}"), json!({"inputs": {}})).await;
        assert!(owner.status == 503 && owner.body.to_string().contains("models.language"), "{:#}", owner.body);
        let visitor = Server::send(at(&server, "things", "POST", &format!("/api{path}")).json(&json!({"inputs": {}}))).await;
        let told = visitor.body.to_string();
        assert!(visitor.status == 503 && told.contains("not available") && !told.contains("models"), "{told}");
    }

    async fn whatever_an_app_opens_it_opens_to_nobody_who_is_signed_out(server) {
        let (namespace, id) = retriever(&server, "things").await;
        let widest = json!({"auth_config": {"mode": "clerk"}, "build_config": {"api_allow": [{"pattern": "/**"}]}});
        let app = make(&server, titled("things", widest)).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Things"})).await;
        // Nothing that opens the server, or that somebody made up, opens the app.
        let ask = |method: &str, path: &str| {
            let request = at(&server, "things", method, path).bearer_auth(&server.key);
            let request = request.header("x-namespace", &namespace).header("cookie", "loupe_app=made-up");
            Server::send(request.json(&json!({})))
        };
        let mut refused = 0;
        for row in loupe_server::auth::table::TABLE {
            let (method, path) = asked(row.operation, &id);
            ask(method, &path).await.error(401, "AuthenticationError");
            refused += 1;
        }
        assert!(refused > 200, "{refused}");
        for path in ["/api/retrievers", "/api/v1/retrievers", &format!("/api/retrievers/{id}/execute"), "/api/nothing"] {
            for method in ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] {
                assert_eq!(ask(method, path).await.status, 401, "{method} {path}");
            }
        }
    }

    async fn one_visitor_does_not_spend_what_the_owner_has(server) {
        let (_, _) = retriever(&server, "things").await;
        let app = make(&server, titled("things", json!({}))).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Things"})).await;
        // 60 requests a minute, 20 at once, 5 under way.
        quotas::set(&server, "free", false).await;
        let visit = |from: [u8; 4]| {
            #[expect(clippy::disallowed_methods, reason = "a test asks its own server")]
            let client = reqwest::Client::builder().local_address(std::net::IpAddr::from(from)).build().unwrap();
            let request = client.get(format!("{}/api/retrievers", server.url)).header("host", host(&server, "things"));
            Server::send(request)
        };
        let mut served = 0;
        for _ in 0..20 {
            served += usize::from(visit([127, 0, 0, 1]).await.status == 200);
            server.app.clock().advance(1);
        }
        // A quarter of 60 a minute, and of the 20 that are there at first.
        assert!((5..=11).contains(&served), "{served}");
        assert_eq!(visit([127, 0, 0, 3]).await.status, 200, "another visitor is not kept waiting");
        server.call("GET", "/v1/me", Value::Null).await.ok();

        // Bodies that do not come whole hold places: visitors never all of them.
        server.app.clock().advance(60);
        let address = server.url.strip_prefix("http://").unwrap();
        let head = format!(
            "POST /api/retrievers/list HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{",
            host(&server, "things")
        );
        let hold = async || {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            server.app.clock().advance(1);
            stream
        };
        let mut open = [hold().await, hold().await];
        // Held once a third one is refused for it. Until then that one may have taken the place of another.
        let start = std::time::Instant::now();
        let refused = loop {
            let answer = visit([127, 0, 0, 3]).await;
            if answer.status == 429 && answer.body["error"]["details"]["window"] == "concurrent" {
                break answer;
            }
            assert!(start.elapsed().as_secs() < 180, "a third place was given: {:#}", answer.body);
            server.app.clock().advance(10);
            for stream in &mut open {
                if stream.try_read(&mut [0]).is_ok() {
                    *stream = hold().await;
                }
            }
        };
        assert_eq!(refused.body["error"]["details"]["limit"], 2);
        server.call("GET", "/v1/me", Value::Null).await.ok();
        for mut stream in open {
            stream.write_all(b"}").await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        server.app.clock().advance(10);
        assert_eq!(visit([127, 0, 0, 3]).await.status, 200);
    }
}
