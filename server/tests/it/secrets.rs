//! Secrets go in and never come out, and lie encrypted.

use serde_json::{Value, json};

use crate::{both, harness::Server};

const SECRETS: &str = "/v1/organizations/secrets";

both! {
    async fn secrets_are_kept_changed_and_removed_and_never_told(server) {
        let made = server.call("POST", SECRETS, json!({"secret_name": "openai", "secret_value": "hunter-two-1"})).await.ok();
        assert_eq!(made, json!({"secret_name": "openai", "created": true}));
        server.call("POST", SECRETS, json!({"secret_name": "openai", "secret_value": "x"})).await.error(409, "AlreadyExistsError");
        server.call("POST", SECRETS, json!({"secret_name": "", "secret_value": "x"})).await.invalid(&["body", "secret_name"], "string_too_short");
        server.call("POST", SECRETS, json!({"secret_name": "other", "secret_value": "hunter-two-2"})).await.ok();
        assert_eq!(server.call("GET", SECRETS, Value::Null).await.ok(), json!({"secrets": ["openai", "other"], "count": 2}));
        let path = format!("{SECRETS}/openai");
        let changed = server.call("PUT", &path, json!({"secret_value": "hunter-two-3"})).await.ok();
        assert_eq!(changed, json!({"secret_name": "openai", "updated": true}));
        server.call("PUT", &format!("{SECRETS}/unknown"), json!({"secret_value": "x"})).await.error(404, "NotFoundError");

        // What runs inside the server reads the value; the rows do not tell it.
        let org = server.call("GET", "/v1/organizations", Value::Null).await.ok();
        let org = org["organization_id"].as_str().unwrap();
        assert_eq!(loupe_server::v1::secrets::value(&server.app, org, "openai").await.unwrap(), "hunter-two-3");
        assert!(loupe_server::v1::secrets::value(&server.app, "org_other", "openai").await.is_err());
        let rows: Vec<(String,)> = server.app.db().all("SELECT sealed FROM secrets", vec![]).await.unwrap();
        assert!(rows.len() == 2 && rows.iter().all(|(sealed,)| !sealed.contains("hunter")));
        let log = server.call("GET", "/v1/organizations/audit/logs?resource_type=secret", Value::Null).await.ok();
        let actions: Vec<&str> = log["results"].as_array().unwrap().iter().map(|one| one["action"].as_str().unwrap()).collect();
        assert_eq!(actions.len(), 3);
        assert!(actions.contains(&"secret_created") && actions.contains(&"secret_updated"));
        assert!(!log.to_string().contains("hunter"));

        // Nothing of the organization's settings would read them.
        let settings = json!({"default_llm_credentials": {"openai": "openai"}});
        server.call("PATCH", "/v1/organizations", settings).await.invalid(&["body", "default_llm_credentials"], "value_error");
        server.call("PATCH", "/v1/organizations", json!({"default_llm_credentials": {}})).await.ok();

        assert_eq!(server.call("DELETE", &path, Value::Null).await.ok(), json!({"secret_name": "openai", "deleted": true}));
        server.call("DELETE", &path, Value::Null).await.error(404, "NotFoundError");
        // The master key outlives the process.
        let server = server.restart().await;
        let again = server.call("GET", "/v1/organizations", Value::Null).await.ok();
        let org = again["organization_id"].as_str().unwrap();
        assert_eq!(loupe_server::v1::secrets::value(&server.app, org, "other").await.unwrap(), "hunter-two-2");
    }

    async fn a_key_with_scopes_sees_the_secrets_that_they_cover(server) {
        for name in ["web-a", "web-b", "mail"] {
            server.call("POST", SECRETS, json!({"secret_name": name, "secret_value": "v"})).await.ok();
        }
        let scopes = json!([{"resource_type": "secret", "resource_id": "web-*"}]);
        let made = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", json!({"name": "web", "permissions": ["admin"], "scopes": scopes})).await.ok();
        let key = made["key"].as_str().unwrap();
        let list = Server::send(server.request("GET", SECRETS).bearer_auth(key)).await.ok();
        assert_eq!(list["secrets"], json!(["web-a", "web-b"]));
        let refused = server.request("DELETE", &format!("{SECRETS}/mail")).bearer_auth(key);
        Server::send(refused).await.error(403, "ForbiddenError");
        let gone = server.request("DELETE", &format!("{SECRETS}/web-a")).bearer_auth(key);
        Server::send(gone).await.ok();
    }
}
