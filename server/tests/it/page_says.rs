//! What a page says beside its results: texts of language models, what results are like, a picture of an item that lasts; and what
//! its owner is told of what it passes over.

use loupe_engine::store::{CollectionSpec, Document, document_id};
use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Database, Server, databases},
    machines,
    stages::{collection, retriever, stage},
};

/// Asks as a visitor does; where it is led on is an answer.
async fn look(server: &Server, path: &str) -> Answer {
    #[expect(clippy::disallowed_methods, reason = "a test asks its own server")]
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    Server::send(client.get(format!("{}{path}", server.url))).await
}

fn text(answer: &Answer) -> &str {
    answer.body.as_str().unwrap()
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.headers[name].to_str().unwrap()
}

fn page(exposed: &[&str]) -> Value {
    json!({"public_name": "films", "display_config": {"title": "Films", "inputs": [], "exposed_fields": exposed}})
}

fn all() -> Value {
    stage(
        "attribute_filter",
        json!({"field": "title", "operator": "exists"}),
    )
}

/// A document with a picture, on a page whose namespace and path of publishing are told with it.
async fn print(server: &Server) -> (String, String, String) {
    let namespace = server.namespace("prints").await;
    let prints = collection(server, &namespace, "prints", &[]).await;
    let id = document_id(&prints, "obj_print", "0");
    let small = json!({"field": "thumbnail", "role": "thumbnail", "type": "image", "content_type": "image/webp", "url": "blob://small.webp", "filename": "small.webp"});
    let internal = json!({"document_id": id, "collection_id": prints, "namespace_id": namespace, "mime_type": "image/png", "document_blobs": [small]});
    let payload = json!({"title": "A heron", "_internal": internal});
    let document = Document {
        document_id: id.clone(),
        collection_id: prints.clone(),
        payload: payload.as_object().cloned().unwrap().into(),
        ..Default::default()
    };
    let spec = CollectionSpec {
        namespace_id: namespace.clone(),
        collection_id: prints.clone(),
        vectors: Vec::new(),
    };
    let store = server.app.store();
    store.upsert(&spec, vec![document]).await.unwrap();
    let retriever = retriever(server, &namespace, &prints, vec![all()]).await;
    (namespace, format!("/v1/retrievers/{retriever}/publish"), id)
}

both! {
    async fn links_to_an_item_have_a_picture_that_lasts(server) {
        let gate = json!({"secret_name": "gate", "secret_value": "open sesame"});
        server.call("POST", "/v1/organizations/secrets", gate).await.ok();
        let (namespace, publish, id) = print(&server).await;
        server.call_in(&namespace, "POST", &publish, page(&["title"])).await.ok();
        let path = format!("/r/films/item/{id}/picture");
        let item = look(&server, &format!("/r/films/item/{id}")).await;
        let lasting = format!("{}{path}", server.app.config().address());
        assert!(text(&item).contains(&format!("property=\"og:image\" content=\"{lasting}\"")) || text(&item).contains(&format!("content=\"{lasting}\" property=\"og:image\"")), "{}", text(&item));
        assert!(text(&item).contains(&format!("\"thumbnailUrl\":\"{lasting}\"")), "{}", text(&item));
        let first = look(&server, &path).await;
        assert_eq!((first.status, header(&first, "cache-control")), (302, "public, max-age=600"));
        assert!(header(&first, "location").contains("small.webp"));
        // The file's own address is another one by then.
        server.app.clock().advance(3 * 3600);
        let later = look(&server, &path).await;
        assert_eq!(later.status, 302);
        assert_ne!(header(&later, "location"), header(&first, "location"));
        assert_eq!(look(&server, "/r/films/item/doc_none/picture").await.status, 404);
        // What is closed has none, and an owner who shows no pictures shows none here.
        let mut without = page(&["title"])["display_config"].clone();
        without["components"] = json!({"result_card": {"show_thumbnail": false}});
        for closed in [
            json!({"display_config": without}),
            json!({"password_secret_name": "gate"}),
            json!({"password_secret_name": "", "is_active": false, "display_config": page(&["title"])["display_config"]}),
        ] {
            server.call_in(&namespace, "PATCH", &publish, closed.clone()).await.ok();
            let refused = look(&server, &path).await;
            assert_eq!((refused.status, text(&refused)), (404, "not found\n"), "{closed}");
            assert!(!refused.headers.contains_key("location"));
        }
        // Whoever has it in a frame reads so instead of an error of the browser's.
        let framed = look(&server, "/r/films/embed").await;
        assert_eq!(framed.status, 404);
        assert!(header(&framed, "content-security-policy").ends_with("frame-ancestors *"));
    }

    async fn results_say_what_they_are_like(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "Nosferatu", "secret": "s3cr3t"}), json!({"title": "Faust"})]).await;
        let listed = server.call_in(&namespace, "GET", &format!("/v1/collections/{films}/documents"), Value::Null).await.ok();
        let listed = listed["results"].as_array().unwrap();
        let id = listed.iter().find(|one| one["title"] == "Nosferatu").unwrap()["document_id"].as_str().unwrap();
        let schema = json!({"query": {"type": "text", "required": false}, "similar_to": {"type": "document_reference", "required": false}});
        let body = json!({"retriever_name": "films", "collection_identifiers": [films], "stages": [all()], "input_schema": schema});
        let made = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
        let publish = format!("/v1/retrievers/{}/publish", made["retriever_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &publish, page(&["title"])).await.ok();
        let like = look(&server, &format!("/r/films?similar_to={id}")).await;
        assert_eq!(like.status, 200, "{}", text(&like));
        for said in ["2 results like Nosferatu", "<title>like Nosferatu · Films</title>", "aria-label=\"Drop: like Nosferatu\""] {
            assert!(text(&like).contains(said), "{said}: {}", text(&like));
        }
        assert!(!text(&like).contains("s3cr3t"));
    }

    async fn owners_are_told_what_a_page_passes_over(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "M"})]).await;
        let id = retriever(&server, &namespace, &films, vec![all()]).await;
        let publish = format!("/v1/retrievers/{id}/publish");
        let mut body = page(&["title"]);
        let plain = server.call_in(&namespace, "POST", &publish, body.clone()).await.ok();
        assert_eq!(plain.get("warnings"), None, "{plain:#}");
        body["display_config"]["field_mappings"] = json!({"badge": "secret"});
        body["display_config"]["theme"] = json!({"primary_color": "reddish", "border_radius": "round"});
        body["display_config"]["layout"] = json!({"mode": "carousel"});
        body["display_config"]["extensions"] = json!({"facets": ["title", "year"], "embed": {"frame_ancestors": ["shop.example"]}});
        let members = ["badge: 'secret'", "primary_color: 'reddish'", "border_radius: 'round'", "mode: 'carousel'", "facets: 'year'", "'shop.example'"];
        let change = json!({"display_config": body["display_config"]});
        for (method, path, body) in [
            ("POST", format!("{publish}/preview"), body.clone()),
            ("POST", publish.clone(), body.clone()),
            ("PATCH", publish.clone(), change),
        ] {
            let told = server.call_in(&namespace, method, &path, body).await.ok();
            let warnings = told["warnings"].as_array().unwrap_or_else(|| panic!("{told:#}"));
            assert_eq!(warnings.len(), members.len(), "{told:#}");
            for member in members {
                assert!(warnings.iter().any(|one| one.as_str().unwrap().contains(member)), "{member}: {told:#}");
            }
        }
        // Told once, with the change.
        let kept = server.call_in(&namespace, "GET", &publish, Value::Null).await.ok();
        assert_eq!((kept.get("warnings"), &kept["display_config"]["layout"]["mode"]), (None, &json!("carousel")));
    }

    async fn a_pages_own_icon_is_taken_away(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "M"})]).await;
        let id = retriever(&server, &namespace, &films, vec![all()]).await;
        let publish = format!("/v1/retrievers/{id}/publish");
        let mut body = page(&["title"]);
        body["icon_base64"] = json!("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==");
        server.call_in(&namespace, "POST", &publish, body).await.ok();
        assert_eq!(look(&server, "/r/films/icon").await.status, 200);
        let mut display = page(&["title"])["display_config"].clone();
        display["icon_base64"] = json!("");
        let told = server.call_in(&namespace, "PATCH", &publish, json!({"display_config": display})).await.ok();
        assert_eq!(told.get("warnings"), None, "{told:#}");
        assert_eq!(look(&server, "/r/films/icon").await.status, 404);
        let listed = server.call("GET", "/v1/public/retrievers/", Value::Null).await.ok();
        assert!(listed["results"][0]["icon_base64"].is_null(), "{listed:#}");
    }

    async fn an_icon_that_a_page_was_published_with_is_taken_away(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "M"})]).await;
        let id = retriever(&server, &namespace, &films, vec![all()]).await;
        let publish = format!("/v1/retrievers/{id}/publish");
        let icon = json!("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==");
        let mut body = page(&["title"]);
        body["icon_base64"] = icon.clone();
        server.call_in(&namespace, "POST", &publish, body).await.ok();
        for (change, status) in [(json!({"icon_base64": null}), 404), (json!({"icon_base64": icon}), 200), (json!({"category": "film"}), 200), (json!({"icon_base64": ""}), 404)] {
            let told = server.call_in(&namespace, "PATCH", &publish, change.clone()).await.ok();
            assert_eq!(told.get("icon_base64").is_some_and(Value::is_string), status == 200, "{told:#}");
            assert_eq!(look(&server, "/r/films/icon").await.status, status, "{change}");
        }
    }

    async fn what_search_engines_are_told_follows_the_page(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "M"})]).await;
        let id = retriever(&server, &namespace, &films, vec![all()]).await;
        let publish = format!("/v1/retrievers/{id}/publish");
        let call = async |method: &str, body: Value| server.call_in(&namespace, method, &publish, body).await.ok();
        let told = async || {
            let page = call("GET", Value::Null).await;
            let seo = &page["display_config"]["seo"];
            [seo["meta_title"].clone(), seo["meta_description"].clone(), seo["keywords"].clone()]
        };
        let mut body = page(&["title"]);
        body["tags"] = json!(["silent"]);
        call("POST", body).await;
        assert_eq!(told().await, [json!("Films"), json!("Search Films: films"), json!(["silent"])]);
        // Who reads a page, changes a part of it and sends it back has chosen nothing else.
        let changed = async |member: &str, value: Value| {
            let mut display = call("GET", Value::Null).await["display_config"].clone();
            display[member] = value;
            display
        };
        let display = changed("title", json!("Old films")).await;
        call("PATCH", json!({"display_config": display})).await;
        assert_eq!(told().await, [json!("Old films"), json!("Search Old films: films"), json!(["silent"])]);
        let display = changed("description", json!("All of them.")).await;
        call("POST", json!({"display_config": display})).await;
        assert_eq!(told().await, [json!("Old films"), json!("All of them."), json!(["silent"])]);
        call("PATCH", json!({"tags": ["loud"]})).await;
        assert_eq!(told().await[2], json!(["loud"]));
        call("POST", json!({"tags": ["quiet"], "display_name": "New films"})).await;
        assert_eq!(told().await, [json!("New films"), json!("All of them."), json!(["quiet"])]);
        let page = look(&server, "/r/films").await;
        assert!(text(&page).contains("<title>New films</title>"), "{}", text(&page));
        // What was chosen stays.
        let seo = json!({"meta_title": "Mine", "keywords": ["own"]});
        let display = changed("seo", seo).await;
        call("PATCH", json!({"display_config": display})).await;
        let mut display = changed("title", json!("Others")).await;
        display["description"] = json!("A few.");
        call("PATCH", json!({"display_config": display, "tags": ["sea"]})).await;
        assert_eq!(told().await, [json!("Mine"), json!("A few."), json!(["own"])]);
        // The address of a page is told where nobody names another.
        let mut seo = call("GET", Value::Null).await["display_config"]["seo"].clone();
        seo["canonical_url"] = json!(format!("{}/r/films", server.app.config().address()));
        let display = changed("seo", seo).await;
        call("POST", json!({"public_name": "others", "display_config": display})).await;
        let page = look(&server, "/r/others").await;
        let canonical = format!("{}/r/others\"", server.app.config().address());
        assert!(text(&page).contains(&canonical) && !text(&page).contains("/r/films"), "{}", text(&page));
    }

    async fn numbers_of_a_list_are_chosen_from_it(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "M"})]).await;
        let schema = json!({"level": {"type": "integer", "enum": [1, 2], "required": false}});
        let body = json!({"retriever_name": "films", "collection_identifiers": [films], "stages": [all()], "input_schema": schema});
        let made = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
        let publish = format!("/v1/retrievers/{}/publish", made["retriever_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &publish, page(&["title"])).await.ok();
        let kept = server.call_in(&namespace, "GET", &publish, Value::Null).await.ok();
        assert_eq!(kept["display_config"]["inputs"][0]["input_type"], "select", "{kept:#}");
        assert_eq!(look(&server, "/r/films?level=2").await.status, 200);
        let other = look(&server, "/r/films?level=3").await;
        assert_eq!(other.status, 400);
        assert!(text(&other).contains("Choose one that is offered."), "{}", text(&other));
    }
}

async fn a_summary(database: Database) {
    let (server, _, namespace, films, _) = machines::server_on(database).await;
    let summary = stage(
        "summarize",
        json!({"group_by": "decade", "prompt": "**{{GROUP_VALUE}}** <b>{{DOC_COUNT}}</b>"}),
    );
    let id = retriever(
        &server,
        &namespace,
        &films,
        vec![machines::sorted(), summary],
    )
    .await;
    let publish = format!("/v1/retrievers/{id}/publish");
    let hidden = server
        .call_in(&namespace, "POST", &publish, page(&["title"]))
        .await
        .ok();
    assert!(
        hidden["warnings"][0]
            .as_str()
            .unwrap()
            .contains("'summary'"),
        "{hidden:#}"
    );
    let unseen = look(&server, "/r/films").await;
    assert!(!text(&unseen).contains("said of"), "{}", text(&unseen));

    let told = server
        .call_in(&namespace, "POST", &publish, page(&["title", "summary"]))
        .await
        .ok();
    assert_eq!(told.get("warnings"), None, "{told:#}");
    let shown = look(&server, "/r/films").await;
    let shown = text(&shown);
    for said in [
        "class=\"written\"",
        "Written by a language model",
        "said of: <strong>1920</strong> &lt;b&gt;2&lt;/b&gt;",
        ">Nosferatu</a>",
        ">M</a>",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    // A text is no result, and what the documents of a group share is a field like any other.
    assert!(
        !shown.contains("<article") && !shown.contains("<h3>1920"),
        "{shown}"
    );
    server
        .call_in(
            &namespace,
            "POST",
            &publish,
            page(&["title", "summary", "decade"]),
        )
        .await
        .ok();
    assert!(text(&look(&server, "/r/films").await).contains("<h3>1920</h3>"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_of_a_language_model_stands_above_the_results_on_sqlite() {
    a_summary(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_of_a_language_model_stands_above_the_results_on_postgres() {
    a_summary(Database::Postgres).await;
    databases::leave().await;
}
