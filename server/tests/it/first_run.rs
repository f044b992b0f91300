//! The first start, the second one, and what a caller without a right key gets.

use serde_json::{Value, json};

use crate::{both, harness::Server};

both! {
    async fn the_first_key_works_and_is_kept_only_as_a_hash(server) {
        let me = server.call("GET", "/v1/me", Value::Null).await.ok();
        assert!(me["organization_id"].as_str().unwrap().starts_with("org_"));
        assert_eq!(me["key"]["permissions"], json!(["admin"]));
        let organization = server.call("GET", "/v1/organizations", Value::Null).await.ok();
        assert_eq!(organization["requires_plan"], false);
        let keys = server.call("GET", "/v1/organizations/users/owner@localhost/api-keys", Value::Null).await.ok();
        assert_eq!(keys["total"], 1);
        assert!(!keys.to_string().contains(&server.key));
        let files = std::fs::read_dir(server.folder.path().join("data")).unwrap();
        for file in files.flatten().filter(|file| file.file_type().unwrap().is_file()) {
            let bytes = std::fs::read(file.path()).unwrap();
            let secret = server.key.as_bytes();
            assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{:?}", file.path());
        }
    }

    async fn processes_that_start_together_make_one_organization(server) {
        use loupe_server::v1::organizations::create_first;

        for all in ["DELETE FROM api_keys", "DELETE FROM users", "DELETE FROM organizations"] {
            server.app.db().write(move |tx| Box::pin(async move { tx.run(all, vec![]).await })).await.unwrap();
        }
        let starts = (0..6).map(|_| create_first(&server.app));
        let made: Vec<bool> = futures::future::join_all(starts).await.into_iter().map(|made| made.unwrap().is_some()).collect();
        assert_eq!(made.iter().filter(|made| **made).count(), 1, "{made:?}");
        let count = "SELECT CAST(COUNT(*) AS BIGINT) FROM organizations";
        assert_eq!(server.app.db().number(count, vec![]).await.unwrap(), 1);
    }

    async fn the_data_folder_is_its_owners_alone(server) {
        use std::os::unix::fs::PermissionsExt;

        let folder = std::fs::metadata(&server.app.config().data).unwrap();
        assert_eq!(folder.permissions().mode() & 0o077, 0);
    }

    async fn wrong_keys_are_401_in_the_envelope(server) {
        let none = Server::send(server.request("GET", "/v1/namespaces")).await;
        none.error(401, "AuthenticationError");
        let mut typo = server.key.clone();
        let last = if typo.ends_with('a') { "b" } else { "a" };
        typo.replace_range(typo.len() - 1.., last);
        for wrong in ["nonsense", "loupe_sk_", typo.as_str()] {
            let answer = Server::send(server.request("GET", "/v1/me").bearer_auth(wrong)).await;
            answer.error(401, "AuthenticationError");
        }
    }

    async fn the_console_answers_its_page_everywhere_and_404_for_missing_files(server) {
        for path in ["/console/", "/console/namespaces"] {
            let page = Server::send(server.request("GET", path)).await;
            // Without a web build the page says how to make one.
            assert!(page.status == 200 || page.body.as_str().unwrap().contains("cargo xtask web"), "{path}");
        }
        Server::send(server.request("GET", "/console/missing.js")).await.error(404, "NotFoundError");
    }

    async fn a_key_does_what_its_level_allows(server) {
        let path = "/v1/organizations/users/owner@localhost/api-keys";
        let made = server.call("POST", path, json!({"name": "reader", "permissions": ["read"]})).await.ok();
        let reader = made["key"].as_str().unwrap();
        assert!(reader.starts_with("loupe_sk_"));
        let list = Server::send(server.request("GET", "/v1/namespaces").bearer_auth(reader)).await;
        assert_eq!(list.status, 200);
        let refused = Server::send(
            server.request("POST", "/v1/namespaces").bearer_auth(reader).json(&json!({"namespace_name": "mine"})),
        )
        .await;
        refused.error(403, "ForbiddenError");
        server.call("POST", path, json!({"name": "reader"})).await.error(409, "AlreadyExistsError");
        server.call("POST", path, json!({"name": ""})).await.invalid(&["body", "name"], "string_too_short");
    }
}

#[tokio::test]
async fn a_second_process_on_the_folder_is_told_so() {
    let server = Server::start(crate::harness::Database::Sqlite).await;
    let config = server.app.config().clone();
    let error = loupe_server::boot::open(config)
        .await
        .err()
        .expect("the folder is taken");
    assert!(
        error
            .to_string()
            .contains("another Loupe uses the data folder"),
        "{error}"
    );
}
