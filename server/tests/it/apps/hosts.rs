//! Apps below a domain of the installation's own (`apps.domain`).

use serde_json::{Value, json};

use super::{deploy, make};
use crate::{
    both,
    harness::{Answer, Server},
};

/// What somebody who goes to a host gets there, with the owner's key, which opens the server and nothing else.
async fn go(server: &Server, host: &str, path: &str) -> Answer {
    let request = server.request("GET", path).bearer_auth(&server.key);
    let request = request.header("host", host).header("accept", "text/html");
    Server::send(request).await
}

both! {
    async fn apps_have_their_names_below_the_domain_of_the_settings(server) {
        let server = server.restart_with(|config| config.apps.domain = "apps.example.net".into()).await;
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Films</h1>"})).await;
        let port = server.url.rsplit(':').next().unwrap();
        let told = server.call("GET", &format!("/v1/apps/{app}"), Value::Null).await.ok();
        let url = format!("http://films.apps.example.net:{port}");
        assert_eq!((&told["url"], &told["environments"]["production"]["url"]), (&json!(url), &json!(url)));
        let preview = format!("http://films--v1.apps.example.net:{port}");
        assert_eq!(told["environments"]["production"]["preview_url"], preview);

        for (host, is_preview) in [
            ("films.apps.example.net", false), ("FILMS.apps.example.net.", false), ("films.apps.example.net:8443", false),
            ("films--v1.apps.example.net", true),
        ] {
            // What is a path of the server's is one of the app's there.
            for path in ["/", "/v1/me"] {
                let page = go(&server, host, path).await;
                assert!(page.status == 200 && page.body.to_string().contains("<h1>Films"), "{host}{path}: {}", page.body);
                assert_eq!(page.headers.contains_key("x-robots-tag"), is_preview, "{host}{path}");
            }
        }
        for host in ["nobody.apps.example.net", "films--v9.apps.example.net", "a.films.apps.example.net"] {
            assert_eq!(go(&server, host, "/v1/me").await.status, 404, "{host}");
        }
        // The domain itself, and the names that apps have elsewhere, are the server's.
        let own = format!("127.0.0.1:{port}");
        for host in [own.as_str(), "localhost", "apps.example.net", "films.localhost", "films.example.net"] {
            let me = go(&server, host, "/v1/me").await.ok();
            assert!(me["organization_id"].is_string(), "{host}: {me:#}");
        }
    }
}
