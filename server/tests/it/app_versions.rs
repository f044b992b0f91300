//! What an app was: versions that overtake each other, go and leave nothing, and the name that it had.

use serde_json::{Value, json};

use crate::{
    apps::{bundle, deploy, make, visit},
    both,
    harness::{Server, other_organization},
};

/// Changes rows behind the server's back.
async fn run(server: &Server, sql: &'static str) {
    let run = server
        .app
        .db()
        .write(move |tx| Box::pin(async move { tx.run(sql, vec![]).await }));
    assert!(run.await.unwrap() > 0, "{sql}");
}

fn page(words: &str) -> Value {
    json!({"index.html": format!("<!doctype html><title>{words}</title><h1>{words}</h1>")})
}

both! {
    async fn a_slow_deploy_is_kept_and_a_newer_one_stays(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", page("Newer")).await;
        // As if that one had been asked for an hour after the next.
        run(&server, "UPDATE app_deploys SET created_at = created_at + 3600000000").await;
        let late = deploy(&server, &app, "production", page("Older")).await;
        assert_eq!((&late["status"], &late["error"]), (&json!("complete"), &Value::Null));
        assert!(visit(&server, "films", "/").await.body.to_string().contains("Newer"));
        assert!(visit(&server, "films--v2", "/").await.body.to_string().contains("Older"));
        let told = server.call("GET", &format!("/v1/apps/{app}"), Value::Null).await.ok();
        assert_eq!(told["version"], 1);
        // Another environment is none of its business.
        deploy(&server, &app, "staging", page("Tried")).await;
        assert!(visit(&server, "films--staging", "/").await.body.to_string().contains("Tried"));
    }

    async fn going_back_passes_over_what_is_gone(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        for words in ["One", "Two", "Three"] {
            deploy(&server, &app, "production", page(words)).await;
        }
        run(&server, "DELETE FROM app_versions WHERE version = 2").await;
        let path = format!("/v1/apps/{app}/rollback");
        assert_eq!(server.call("POST", &path, json!({})).await.ok()["version"], 1);
        assert!(visit(&server, "films", "/").await.body.to_string().contains("One"));
        server.call("POST", &path, json!({})).await.error(409, "ConflictError");
    }

    async fn old_versions_go_with_their_files_and_archives(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let path = format!("/v1/apps/{app}");
        deploy(&server, &app, "production", page("One")).await;
        server.call("GET", &format!("{path}/versions/1/download"), Value::Null).await.ok();
        server.files_become(&format!("apps/{app}/archives"), 1).await;
        deploy(&server, &app, "production", page("Two")).await;
        deploy(&server, &app, "staging", page("Tried")).await;
        for _ in 0..49 {
            server.call("POST", &format!("{path}/publish"), json!({})).await.ok();
        }
        // The fifty-third version: the first two are too old, the third is served.
        deploy(&server, &app, "production", page("Three")).await;
        server.files_become(&format!("apps/{app}/archives"), 0).await;
        server.files_become(&format!("apps/{app}/files"), 3).await;
        let versions = server.call("GET", &format!("{path}/versions"), Value::Null).await.ok();
        assert_eq!(versions["total"], 51);
        for (slug, words) in [("films", "Three"), ("films--v52", "Two"), ("films--staging", "Tried")] {
            assert!(visit(&server, slug, "/").await.body.to_string().contains(words), "{slug}");
        }
        server.call("POST", &format!("{path}/versions/1/restore"), json!({})).await.error(404, "NotFoundError");
    }

    async fn a_bundle_that_nobody_deploys_goes(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let path = format!("/v1/apps/{app}/deploy/upload-url");
        let place = server.call("POST", &path, json!({"filename": "dist.zip"})).await.ok();
        let put = server.request("PUT", place["upload_url"].as_str().unwrap()).body(bundle(&[("index.html", "")]));
        Server::send(put).await.ok();
        loupe_server::v1::apps::sweep(&server.app).await.unwrap();
        assert_eq!(server.files("apps").len(), 1, "a deploy may still come");
        server.app.clock().advance(2 * 3600 + 1);
        loupe_server::v1::apps::sweep(&server.app).await.unwrap();
        server.files_become("apps", 0).await;
    }

    async fn a_name_that_served_something_stays_with_its_organization(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", page("Films")).await;
        let draft = make(&server, json!({"slug": "draft", "meta": {"title": "Draft"}})).await;
        let other = other_organization(&server).await;
        let take = async |slug: &str| {
            let body = json!({"slug": slug, "meta": {"title": "Theirs"}});
            Server::send(server.request("POST", "/v1/apps").bearer_auth(&other.key).json(&body)).await
        };
        server.call("PATCH", &format!("/v1/apps/{app}"), json!({"slug": "pictures"})).await.ok();
        take("films").await.error(409, "AlreadyExistsError");
        server.call("DELETE", &format!("/v1/apps/{app}"), Value::Null).await.ok();
        take("pictures").await.error(409, "AlreadyExistsError");
        // Nobody was ever at this one.
        server.call("DELETE", &format!("/v1/apps/{draft}"), Value::Null).await.ok();
        take("draft").await.ok();
        for slug in ["films", "pictures"] {
            make(&server, json!({"slug": slug, "meta": {"title": "Ours again"}})).await;
        }
    }
}
