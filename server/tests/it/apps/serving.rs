//! What an app serves: its pages and files, its versions, and what is staged.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{at, deploy, host, visit};
use crate::harness::Server;

const SCRIPT: &str = "/assets/main-4f2a9c1b.js";

/// Pages, files, their headers, and the app's own addresses.
pub async fn pages_have_their_headers(server: &Server) {
    let page = visit(server, "films", "/").await;
    assert_eq!(page.status, 200, "{:#}", page.body);
    assert!(page.body.as_str().unwrap().contains("<h1>One</h1>"));
    assert!(
        !page.body.as_str().unwrap().contains("_auth"),
        "no sign-in, no script"
    );
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("x-content-type-options", "nosniff"),
        (
            "content-security-policy",
            "object-src 'none'; base-uri 'none'; frame-ancestors 'none'",
        ),
    ] {
        assert_eq!(page.headers[name], value, "{name}");
    }
    let deep = visit(server, "films", "/films/7?a=b").await;
    assert_eq!((deep.status, deep.body), (200, page.body.clone()));
    let missing =
        Server::send(at(server, "films", "GET", "/assets/missing.js").header("accept", "*/*"))
            .await;
    assert_eq!(missing.status, 404);
    let folder = visit(server, "films", "/docs").await;
    assert_eq!(
        (folder.status, folder.headers["location"].to_str().unwrap()),
        (308, "/docs/")
    );
    let drawing = visit(server, "films", "/drawing.svg").await;
    assert!(
        drawing.headers["content-security-policy"]
            .to_str()
            .unwrap()
            .contains("sandbox")
    );
}

/// A file with a hash in its name is kept for good, sent small, and read in parts.
pub async fn a_script_is_kept_small_and_in_parts(server: &Server, script: &str) {
    let path = SCRIPT;
    let whole = visit(server, "films", path).await;
    assert_eq!(whole.body, json!(script));
    assert_eq!(
        whole.headers["cache-control"],
        "public, max-age=31536000, immutable"
    );
    let small =
        Server::send(at(server, "films", "GET", path).header("accept-encoding", "gzip, br")).await;
    assert_eq!(small.headers["content-encoding"], "br");
    assert_ne!(small.headers["etag"], whole.headers["etag"]);
    let length: usize = small.headers["content-length"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(length < script.len() / 5, "{length}");
    let known = at(server, "films", "GET", path).header("if-none-match", &whole.headers["etag"]);
    assert_eq!(Server::send(known).await.status, 304);
    let part = Server::send(at(server, "films", "GET", path).header("range", "bytes=8-10")).await;
    assert_eq!((part.status, part.body), (206, json!("log")));
    assert_eq!(
        part.headers["content-range"],
        json!(format!("bytes 8-10/{}", script.len()))
            .as_str()
            .unwrap()
    );
    let beyond = at(server, "films", "GET", path).header("range", "bytes=999999-");
    let beyond = Server::send(beyond).await;
    assert_eq!(beyond.status, 416);
    assert_eq!(
        beyond.headers["content-range"],
        format!("bytes */{}", script.len()).as_str()
    );
    assert_eq!(beyond.headers["x-content-type-options"], "nosniff");
    let head = at(server, "films", "HEAD", path);
    assert_eq!(
        Server::send(head).await.headers["content-length"],
        script.len().to_string().as_str()
    );
    let posted = at(server, "films", "POST", path);
    assert_eq!(Server::send(posted).await.status, 405);
}

/// The page of this host has this word.
async fn shows(server: &Server, slug: &str, word: &str) {
    let page = visit(server, slug, "/").await;
    let text = page.body.as_str().unwrap();
    assert!(text.contains(word), "{slug}, {word}: {text}");
}

/// A second version is live at once, the first one stays where it was.
pub async fn versions_come_and_go_back(server: &Server, app: &str) {
    let two = json!({"index.html": "<h1>Two</h1>", "new.txt": "new"});
    assert_eq!(
        deploy(server, app, "production", two).await["status"],
        "complete"
    );
    shows(server, "films", "Two").await;
    shows(server, "films--v1", "One").await;
    assert_eq!(
        visit(server, "films--v1", "/").await.headers["x-robots-tag"],
        "noindex"
    );
    assert_eq!(
        visit(server, "films", SCRIPT).await.body.as_str().unwrap(),
        "<h1>Two</h1>",
        "a navigation gets the app"
    );
    let path = format!("/v1/apps/{app}");
    let diff = server
        .call("GET", &format!("{path}/versions/1/diff/2"), Value::Null)
        .await
        .ok();
    assert_eq!(
        diff["summary"],
        json!({"added": 1, "removed": 3, "modified": 1, "unchanged": 0})
    );
    let texts = diff["source_diff"].as_object().unwrap();
    assert_eq!(texts.len(), 5, "{texts:#?}");
    assert_eq!(
        texts["index.html"],
        "--- a/index.html\n+++ b/index.html\n@@ -1,1 +1,1 @@\n\
         -<!doctype html><head><title>One</title></head><h1>One</h1>\n\\ No newline at end of file\n\
         +<h1>Two</h1>\n\\ No newline at end of file\n"
    );
    assert_eq!(
        texts["new.txt"],
        "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,1 @@\n+new\n\\ No newline at end of file\n"
    );
    let back = server
        .call("POST", &format!("{path}/rollback"), json!({}))
        .await
        .ok();
    assert_eq!(back["version"], 1);
    shows(server, "films", "One").await;
    server
        .call("POST", &format!("{path}/rollback"), json!({}))
        .await
        .error(409, "ConflictError");
    server
        .call("POST", &format!("{path}/versions/2/restore"), json!({}))
        .await
        .ok();
    shows(server, "films", "Two").await;
    server
        .call("POST", &format!("{path}/versions/9/restore"), json!({}))
        .await
        .error(404, "NotFoundError");
}

/// Staging is another host; what is good there is promoted.
pub async fn what_is_staged_is_promoted(server: &Server, app: &str) {
    let path = format!("/v1/apps/{app}");
    server
        .call("POST", &format!("{path}/promote"), json!({}))
        .await
        .error(409, "ConflictError");
    deploy(
        server,
        app,
        "staging",
        json!({"index.html": "<h1>Three</h1>"}),
    )
    .await;
    shows(server, "films--staging", "Three").await;
    shows(server, "films", "Two").await;
    let promoted = server
        .call("POST", &format!("{path}/promote"), json!({}))
        .await
        .ok();
    assert_eq!(promoted["version"], 3);
    shows(server, "films", "Three").await;
    let versions = server
        .call("GET", &format!("{path}/versions"), Value::Null)
        .await
        .ok();
    assert_eq!(versions["total"], 3);
    assert_eq!(
        versions["versions"][0]["is_active"],
        json!({"production": true, "staging": true})
    );
}

/// A version comes back as an archive.
pub async fn a_version_is_packed(server: &Server, app: &str) {
    let path = format!("/v1/apps/{app}");
    let packed = server
        .call("GET", &format!("{path}/versions/2/download"), Value::Null)
        .await
        .ok();
    let bytes = server
        .request("GET", packed["download_url"].as_str().unwrap())
        .send()
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
    assert_eq!(
        std::io::read_to_string(archive.by_name("new.txt").unwrap()).unwrap(),
        "new"
    );
}

/// A browser keeps what nobody knows instead of showing it, also where somebody goes to it.
pub async fn what_is_not_known_is_a_download(server: &Server) {
    for path in ["/setup.exe", "/LICENSE"] {
        let fetched = Server::send(at(server, "odd", "GET", path)).await;
        for answer in [fetched, visit(server, "odd", path).await] {
            assert_eq!(answer.status, 200, "{path}");
            for (name, value) in [
                ("content-type", "application/octet-stream"),
                ("content-disposition", "attachment"),
                ("x-content-type-options", "nosniff"),
            ] {
                assert_eq!(answer.headers[name], value, "{path}");
            }
        }
    }
    let page = visit(server, "odd", "/").await;
    assert!(!page.headers.contains_key("content-disposition"));
}

/// Asks for a path as it stands, which clients tidy up; answers the status and all that came.
async fn as_it_stands(server: &Server, path: &str, accept: &str) -> (u16, String) {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let host = host(server, "odd");
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {host}\r\naccept: {accept}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

/// S-31: no spelling of another place is one of a file, neither for a program nor for who goes there.
pub async fn odd_spellings_lead_to_no_file(server: &Server) {
    const DOTS: [&str; 11] = [
        "..",
        "%2e%2e",
        "%2E.",
        ".%2e",
        "..%2f..",
        "..%5c",
        "..\\",
        "%2e%2e%2f",
        ".",
        "%00",
        "..;",
    ];
    let mut count = 0;
    for start in ["", "/assets"] {
        for dots in DOTS {
            for end in ["/index.html", "%2findex.html", "/etc/passwd"] {
                let path = format!("{start}/{dots}{end}");
                let (status, answer) = as_it_stands(server, &path, "*/*").await;
                assert!(matches!(status, 400 | 404), "{path}: {answer}");
                let (status, answer) = as_it_stands(server, &path, "text/html").await;
                // A name like any other, which the app's page may know.
                let is_name = dots == "..;" && end.starts_with('/');
                if is_name {
                    assert!(
                        status == 200 && answer.ends_with("<h1>Odd</h1>"),
                        "{path}: {answer}"
                    );
                } else {
                    assert!(matches!(status, 400 | 404), "{path}: {answer}");
                    assert!(!answer.contains("<h1>"), "{path}: {answer}");
                }
                count += 2;
            }
        }
    }
    assert_eq!(count, 132);
}
