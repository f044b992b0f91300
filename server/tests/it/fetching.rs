//! Objects from addresses: by http through the guarded client, from S3 through a storage connection.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::Request,
    http::{StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{both, harness::Server};

const PNG: &[u8] = include_bytes!("../../../docs/picture.png");
const CONNECTIONS: &str = "/v1/organizations/connections";
const KEY_ID: &str = "AKIAEXAMPLE";
const SECRET: &str = "a secret of the storage 7Qz";

/// A server where the tests' settings allow one; its address.
pub async fn serve(router: Router, at: &str) -> String {
    let listener = tokio::net::TcpListener::bind((at, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}")
}

/// Files as a web server gives them.
async fn web(at: &str) -> String {
    let picture = || async { ([(header::CONTENT_TYPE, "image/png")], PNG) };
    let named = || async {
        let name = "attachment; filename=\"the picture.png\"";
        ([(header::CONTENT_DISPOSITION, name)], PNG)
    };
    let large = || async { vec![7_u8; 3 << 20] };
    let router = Router::new()
        .route("/a%20picture.png", get(picture))
        .route("/named", get(named))
        .route("/large", get(large))
        .route("/moved", get(|| async { Redirect::temporary("/named") }))
        .route(
            "/inside",
            get(|| async { Redirect::temporary("http://127.0.0.1:8420/") }),
        );
    serve(router, at).await
}

async fn bucket(server: &Server) -> (String, String) {
    let namespace = server.namespace("fetching").await;
    let schema = json!({"properties": {"picture": {"type": "image"}}});
    let body = json!({"bucket_name": "pictures", "bucket_schema": schema});
    let made = server
        .call_in(&namespace, "POST", "/v1/buckets", body)
        .await
        .ok();
    let bucket = made["bucket_id"].as_str().unwrap().to_owned();
    (namespace, format!("/v1/buckets/{bucket}/objects"))
}

fn object(address: &str, metadata: Value) -> Value {
    json!({"blobs": [{"property": "picture", "type": "image", "data": address, "metadata": metadata}]})
}

/// The bytes of an object's only file.
async fn bytes(server: &Server, namespace: &str, path: &str) -> Vec<u8> {
    let path = format!("{path}?return_presigned_urls=true");
    let object = server
        .call_in(namespace, "GET", &path, Value::Null)
        .await
        .ok();
    let url = object["blobs"][0]["presigned_url"].as_str().unwrap();
    let file = server.request("GET", url).send().await.unwrap();
    assert_eq!(file.status(), 200);
    file.bytes().await.unwrap().to_vec()
}

/// The test tells what the storage says, and the connection remembers it. A secret that is sent as it is shown stays; another one
/// takes its place.
async fn connections_are_tested_and_mended(
    server: &Server,
    mut config: Value,
    id: &str,
    failing: &str,
) {
    let tested = server
        .call("POST", &format!("{CONNECTIONS}/archive/test"), Value::Null)
        .await
        .ok();
    assert_eq!(tested["success"], true, "{tested}");
    let tested = server
        .call("POST", &format!("{failing}/test"), Value::Null)
        .await
        .ok();
    assert_eq!(
        (tested["success"].clone(), tested["message"].clone()),
        (
            false.into(),
            "the storage answered 403 SignatureDoesNotMatch".into()
        )
    );
    let shown = server.call("GET", failing, Value::Null).await.ok();
    assert_eq!(shown["consecutive_failures"], 1);
    config["credentials"]["secret_access_key"] = "********".into();
    server
        .call(
            "PATCH",
            &format!("{CONNECTIONS}/archive"),
            json!({"provider_config": config, "name": "the archive"}),
        )
        .await
        .ok();
    let tested = server
        .call("POST", &format!("{CONNECTIONS}/{id}/test"), Value::Null)
        .await
        .ok();
    assert_eq!(tested["success"], true, "{tested}");
    config["credentials"]["secret_access_key"] = SECRET.into();
    let mended = server
        .call("PATCH", failing, json!({"provider_config": config}))
        .await
        .ok();
    assert_eq!(mended["consecutive_failures"], 0);
    let tested = server
        .call("POST", &format!("{failing}/test"), Value::Null)
        .await
        .ok();
    assert_eq!(tested["success"], true, "{tested}");
}

both! {
    async fn a_file_is_fetched_from_its_address(server) {
        let web = web("127.0.0.2").await;
        let (namespace, objects) = bucket(&server).await;
        for (path, name, mime) in [
            ("/a%20picture.png?token=not-to-be-kept", "a picture.png", "image/png"),
            ("/named", "the picture.png", "image/png"),
            ("/moved", "the picture.png", "image/png"),
        ] {
            let made = server.call_in(&namespace, "POST", &objects, object(&format!("{web}{path}"), json!({"by": "me"}))).await.ok();
            let blob = &made["blobs"][0];
            assert_eq!(blob["details"], json!({
                "filename": name, "mime_type": mime, "size_bytes": PNG.len(), "hash": hex::encode(Sha256::digest(PNG)),
            }));
            assert_eq!(blob["properties"]["by"], "me");
            assert!(!made.to_string().contains("not-to-be-kept"), "{made:#}");
            let id = made["object_id"].as_str().unwrap();
            assert_eq!(bytes(&server, &namespace, &format!("{objects}/{id}")).await, PNG);
        }
        // The same file again is the same object, whatever address it has.
        let mut again = object(&format!("{web}/named"), json!({}));
        again["skip_duplicates"] = true.into();
        let many = json!({"objects": [again, object(&format!("{web}/nothing"), json!({}))]});
        let made = server.call_in(&namespace, "POST", &format!("{objects}/batch"), many).await.ok();
        assert_eq!(made["succeeded"][0]["replayed"], true, "{made:#}");
        assert_eq!(made["failed"][0]["error"], "the address answers 404", "{made:#}");
    }

    async fn an_address_that_is_refused_or_fails_leaves_nothing(server) {
        let open = web("127.0.0.2").await;
        let closed = web("127.0.0.1").await;
        let (namespace, objects) = bucket(&server).await;
        let place = ["body", "blobs", "0", "data"];
        for address in [
            format!("{closed}/named"),
            closed.replace("127.0.0.1", "localhost"),
            closed.replace("127.0.0.1", "0x7f.1"),
            format!("{open}/inside"),
            "http://169.254.169.254/latest/meta-data/".into(),
            format!("{open}/nothing"),
        ] {
            let answer = server.call_in(&namespace, "POST", &objects, object(&address, json!({}))).await;
            answer.invalid(&place, "value_error");
        }
        let mut checked = object(&format!("{open}/large"), json!({}));
        checked["blobs"][0]["checksum"] = "0".repeat(64).into();
        let fault = server.call_in(&namespace, "POST", &objects, checked).await.invalid(&place, "value_error");
        assert_eq!(fault["msg"], "the file has another sha256");
        // A second file that fails takes the first one along.
        let mut two = object(&format!("{open}/named"), json!({}));
        let second = json!({"property": "other", "type": "image", "data": format!("{open}/nothing")});
        two["blobs"].as_array_mut().unwrap().push(second);
        assert_eq!(server.call_in(&namespace, "POST", &objects, two).await.status, 422);
        assert_eq!(server.files(&format!("{namespace}/")), Vec::<String>::new());
    }

    async fn files_come_from_s3_through_a_connection(server) {
        let (storage, heard) = s3().await;
        let config = json!({
            "credentials": {"type": "access_key", "access_key_id": KEY_ID, "secret_access_key": SECRET},
            "endpoint_url": storage, "region": "eu-west-1",
        });
        let body = json!({"name": "archive", "provider_type": "s3", "provider_config": config});
        let made = server.call("POST", CONNECTIONS, body.clone()).await.ok();
        assert_eq!(made["provider_config"]["credentials"]["secret_access_key"], "********");
        assert_eq!(made["provider_config"]["credentials"]["access_key_id"], KEY_ID);
        let id = made["connection_id"].as_str().unwrap();
        assert!(id.starts_with("conn_"));
        server.call("POST", CONNECTIONS, body.clone()).await.error(409, "AlreadyExistsError");

        let (namespace, objects) = bucket(&server).await;
        let from = object("s3://media/deep/er/a picture.png", json!({}));
        let object_made = server.call_in(&namespace, "POST", &objects, from).await.ok();
        assert_eq!(object_made["blobs"][0]["details"]["filename"], "a picture.png");
        assert_eq!(object_made["blobs"][0]["details"]["mime_type"], "image/png");
        let path = format!("{objects}/{}", object_made["object_id"].as_str().unwrap());
        assert_eq!(bytes(&server, &namespace, &path).await, PNG);
        assert!(heard.lock().unwrap().iter().any(|path| path == "/media/deep/er/a%20picture.png"), "{heard:?}");

        let gone = object("s3://media/nothing.png", json!({}));
        let fault = server.call_in(&namespace, "POST", &objects, gone).await.invalid(&["body", "blobs", "0", "data"], "value_error");
        assert_eq!(fault["msg"], "the storage has no such file");

        // Two connections: which one has to be said.
        let mut wrong = body.clone();
        wrong["name"] = "broken".into();
        wrong["provider_config"]["credentials"]["secret_access_key"] = "another".into();
        let refused = server.call("POST", CONNECTIONS, wrong.clone()).await.error(400, "BadRequestError");
        assert!(refused["error"]["message"].as_str().unwrap().contains("SignatureDoesNotMatch"), "{refused}");
        wrong["test_before_save"] = false.into();
        let broken = server.call("POST", CONNECTIONS, wrong).await.ok();
        let from = object("s3://media/deep/er/a picture.png", json!({}));
        let fault = server.call_in(&namespace, "POST", &objects, from).await.invalid(&["body", "blobs", "0", "data"], "value_error");
        assert!(fault["msg"].as_str().unwrap().contains("several"), "{fault}");
        let from = object("s3://media/deep/er/a picture.png", json!({"connection_id": "archive"}));
        server.call_in(&namespace, "POST", &objects, from).await.ok();

        let failing = format!("{CONNECTIONS}/{}", broken["connection_id"].as_str().unwrap());
        connections_are_tested_and_mended(&server, config, id, &failing).await;

        let list = server.call("POST", &format!("{CONNECTIONS}/list"), json!({"provider_type": "s3"})).await.ok();
        assert_eq!(list["total"], 2);
        server.call("DELETE", &failing, Value::Null).await.ok();
        server.call("GET", &failing, Value::Null).await.error(404, "NotFoundError");
        assert!(!list.to_string().contains(SECRET));
        for row in server.app.db().all::<(String,)>("SELECT CAST(data AS TEXT) FROM connections", vec![]).await.unwrap() {
            assert!(!row.0.contains(SECRET) && !row.0.contains("another"), "{}", row.0);
        }
    }

    async fn a_connection_is_checked_before_it_is_kept(server) {
        let credentials = json!({"type": "access_key", "access_key_id": KEY_ID, "secret_access_key": SECRET});
        for (change, loc) in [
            (json!({"provider_type": "box"}), vec!["body", "provider_type"]),
            (json!({"provider_config": {}}), vec!["body", "provider_config", "credentials"]),
            (json!({"provider_config": {"credentials": {"access_key_id": "a"}}}), vec!["body", "provider_config", "credentials", "secret_access_key"]),
            (json!({"provider_config": {"credentials": {"type": "iam_role"}}}), vec!["body", "provider_config", "credentials", "type"]),
            (json!({"provider_config": {"credentials": credentials, "endpoint_url": "http://127.0.0.1:9000"}}), vec!["body", "provider_config", "endpoint_url"]),
            (json!({"provider_config": {"credentials": credentials, "endpoint_url": "http://169.254.169.254"}}), vec!["body", "provider_config", "endpoint_url"]),
            (json!({"provider_config": {"credentials": credentials, "region": "a/../b"}}), vec!["body", "provider_config", "region"]),
            (json!({"provider_config": {"credentials": credentials, "verify_ssl": false}}), vec!["body", "provider_config", "verify_ssl"]),
        ] {
            let mut body = json!({"name": "x", "provider_type": "s3", "provider_config": {"credentials": credentials}, "test_before_save": false});
            body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            server.call("POST", CONNECTIONS, body).await.invalid(&loc, "value_error");
        }
    }

    async fn secrets_that_are_kept_stay_with_their_place(server) {
        let ((storage, _), (other, heard)) = (s3().await, s3().await);
        let files = json!({
            "credentials": {"type": "access_key", "access_key_id": KEY_ID, "secret_access_key": SECRET}, "endpoint_url": storage,
        });
        let rows = json!({
            "credentials": {"username": "reader", "password": "one of a database"}, "host": "one.example", "port": 5432, "database": "facts",
        });
        for (provider, name, secret, config, elsewhere, same) in [
            ("s3", "files", "secret_access_key", files, vec![
                json!({"endpoint_url": other}),
                json!({"credentials": {"access_key_id": "AKIASOMEBODYELSE", "secret_access_key": "********"}}),
            ], json!({"session_hint": "archive"})),
            ("postgresql", "rows", "password", rows, vec![
                json!({"host": "two.example"}),
                json!({"port": 6432}),
                json!({"credentials": {"username": "somebody", "password": "********"}}),
            ], json!({"database": "other"})),
        ] {
            let body = json!({"name": name, "provider_type": provider, "provider_config": config, "test_before_save": false});
            server.call("POST", CONNECTIONS, body).await.ok();
            let path = format!("{CONNECTIONS}/{name}");
            let shown = server.call("GET", &path, Value::Null).await.ok()["provider_config"].clone();
            let with = |change: &Value| {
                let mut config = shown.clone();
                config.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
                config
            };
            let place = ["body", "provider_config", "credentials", secret];
            for change in &elsewhere {
                let refused = server.call("PATCH", &path, json!({"provider_config": with(change)})).await;
                let fault = refused.invalid(&place, "value_error");
                assert!(fault["msg"].as_str().unwrap().contains("send the secret itself"), "{fault}");
                assert_eq!(server.call("GET", &path, Value::Null).await.ok()["provider_config"], shown);
            }
            if provider == "s3" {
                let tested = server.call("POST", &format!("{path}/test"), Value::Null).await.ok();
                assert_eq!(tested["success"], true, "{tested}");
            }
            // What leads nowhere else keeps it, and who sends it may go anywhere.
            server.call("PATCH", &path, json!({"provider_config": with(&same)})).await.ok();
            let mut moved = with(&elsewhere[0]);
            moved["credentials"][secret] = "another".into();
            server.call("PATCH", &path, json!({"provider_config": moved})).await.ok();
        }
        assert_eq!(heard.lock().unwrap().len(), 0, "{heard:?}");
    }
}

type Heard = Arc<Mutex<Vec<String>>>;

/// A small S3: it lists its buckets and gives one file, to whoever signs rightly.
async fn s3() -> (String, Heard) {
    let heard = Heard::default();
    let ears = heard.clone();
    let answer = move |request: Request| {
        let ears = ears.clone();
        async move {
            let path = request.uri().path().to_owned();
            ears.lock().unwrap().push(path.clone());
            if signature(&request) != Some(expected(&request)) {
                return refusal(StatusCode::FORBIDDEN, "SignatureDoesNotMatch");
            }
            match path.as_str() {
                "/" => {
                    "<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>".into_response()
                }
                "/media/deep/er/a%20picture.png" => (
                    [
                        (header::CONTENT_TYPE, "image/png"),
                        (header::ETAG, "\"1\""),
                        (header::LAST_MODIFIED, "Sat, 21 Nov 2026 10:00:00 GMT"),
                    ],
                    PNG,
                )
                    .into_response(),
                _ => refusal(StatusCode::NOT_FOUND, "NoSuchKey"),
            }
        }
    };
    (
        serve(Router::new().fallback(answer), "127.0.0.2").await,
        heard,
    )
}

fn refusal(status: StatusCode, code: &str) -> Response {
    (
        status,
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>"),
    )
        .into_response()
}

/// Members of the `Authorization` header of AWS's fourth signature.
fn members(request: &Request) -> BTreeMap<String, String> {
    let text = request.headers()[header::AUTHORIZATION].to_str().unwrap();
    let (_, rest) = text.split_once(' ').unwrap();
    let pairs = rest
        .split(',')
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn signature(request: &Request) -> Option<String> {
    request.headers().get(header::AUTHORIZATION)?;
    members(request).remove("Signature")
}

/// The signature that the test's secret gives this request.
fn expected(request: &Request) -> String {
    let members = members(request);
    let header = |name: &str| request.headers()[name].to_str().unwrap().to_owned();
    let names = &members["SignedHeaders"];
    let signed: String = names
        .split(';')
        .map(|name| format!("{name}:{}\n", header(name)))
        .collect();
    let canonical = format!(
        "{}\n{}\n{}\n{signed}\n{names}\n{}",
        request.method(),
        request.uri().path(),
        request.uri().query().unwrap_or_default(),
        header("x-amz-content-sha256"),
    );
    let (key, scope) = members["Credential"].split_once('/').unwrap();
    assert_eq!(key, KEY_ID);
    let text = format!(
        "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
        header("x-amz-date"),
        hex::encode(Sha256::digest(canonical))
    );
    let mac = |key: &[u8], text: &str| {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap();
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().to_vec()
    };
    let key = scope
        .split('/')
        .fold(format!("AWS4{SECRET}").into_bytes(), |key, piece| {
            mac(&key, piece)
        });
    hex::encode(mac(&key, &text))
}
