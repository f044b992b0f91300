//! Domains of the owner's own for an app: noted, proven by a record, served, and given up.

use std::{
    collections::HashMap,
    net::{SocketAddr, UdpSocket},
    sync::{LazyLock, Mutex},
};

use hickory_resolver::proto::{
    op::{Message, ResponseCode},
    rr::{RData, Record, rdata::TXT},
};
use serde_json::{Value, json};

use crate::{
    apps::{deploy, make},
    both,
    harness::{Answer, Server, other_organization},
};

static RECORDS: LazyLock<Mutex<HashMap<String, Vec<String>>>> = LazyLock::new(Mutex::default);

/// The name server of all tests, which knows what tests told it and nothing else.
pub static NAME_SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut packet = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            let Ok(asked) = Message::from_vec(&packet[..length]) else {
                continue;
            };
            socket.send_to(&answer(asked), from).unwrap();
        }
    });
    address
});

fn answer(asked: Message) -> Vec<u8> {
    let name = asked.queries[0].name().clone();
    let texts = RECORDS.lock().unwrap();
    let texts = texts.get(name.to_lowercase().to_string().trim_end_matches('.'));
    let mut told = asked.into_response();
    match texts {
        None => told.metadata.response_code = ResponseCode::NXDomain,
        Some(texts) => {
            for text in texts {
                let text = RData::TXT(TXT::new(vec![text.clone()]));
                told.add_answer(Record::from_rdata(name.clone(), 60, text));
            }
        }
    }
    told.to_vec().unwrap()
}

/// Makes the record that proves a domain.
pub fn publish(domain: &str, texts: &[&str]) {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    let name = format!("_loupe-verify.{domain}");
    RECORDS.lock().unwrap().insert(name, texts);
}

/// Takes it away again.
pub fn unpublish(domain: &str) {
    RECORDS
        .lock()
        .unwrap()
        .remove(&format!("_loupe-verify.{domain}"));
}

async fn visit(server: &Server, host: &str) -> Answer {
    let request = server.request("GET", "/").header("host", host);
    Server::send(request.header("accept", "text/html")).await
}

async fn site(server: &Server, slug: &str, words: &str) -> String {
    let app = make(server, json!({"slug": slug, "meta": {"title": slug}})).await;
    let page = format!("<!doctype html><title>{words}</title><h1>{words}</h1>");
    deploy(server, &app, "production", json!({"index.html": page})).await;
    app
}

/// One name a run: the two databases of a test share the name server.
pub fn name(server: &Server) -> String {
    let port = server.url.rsplit(':').next().unwrap();
    format!("www-{port}.example.com")
}

both! {
    async fn a_domain_serves_its_app_once_it_is_proven(server) {
        let app = site(&server, "films", "Films of old").await;
        let path = format!("/v1/apps/{app}/domains");
        let domain = name(&server);
        let sent = json!({"domain": format!("{}.", domain.to_uppercase()), "is_primary": true});
        let added = server.call("POST", &path, sent).await.ok();
        assert_eq!(added["domain"], domain);
        assert_eq!((&added["status"], &added["is_primary"]), (&json!("pending"), &json!(true)));
        assert_eq!(added["cname_target"], "films.localhost");
        assert_eq!(added["verified_at"], Value::Null);
        server.call("POST", &path, json!({"domain": domain})).await.error(409, "AlreadyExistsError");

        // Without the record, or with another one, nothing is served there.
        let verify = format!("{path}/{domain}/verify");
        assert_eq!(server.call("POST", &verify, Value::Null).await.ok()["status"], "pending");
        publish(&domain, &["v=spf1 -all", "loupe-domain-guessed"]);
        assert_eq!(server.call("POST", &verify, Value::Null).await.ok()["status"], "pending");
        assert!(!visit(&server, &domain).await.body.to_string().contains("Films of old"));

        publish(&domain, &["v=spf1 -all", added["verification_token"].as_str().unwrap()]);
        let proven = server.call("POST", &verify, Value::Null).await.ok();
        assert_eq!(proven["status"], "active");
        assert!(proven["verified_at"].is_string());
        let page = visit(&server, &domain).await;
        assert!(page.body.to_string().contains("Films of old"), "{:#}", page.body);
        // On the app's host nothing of the server itself is reachable.
        let request = server.request("GET", "/v1/apps").header("host", &domain).bearer_auth(&server.key);
        assert_eq!(Server::send(request).await.status, 404);
        let told = server.call("GET", &format!("/v1/apps/{app}"), Value::Null).await.ok();
        assert!(told["url"].as_str().unwrap().contains(&domain), "{}", told["url"]);
        assert_eq!(told["custom_domains"][0]["status"], "active");

        let listed = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!((&listed["total"], &listed["domains"][0]["domain"]), (&json!(1), &json!(domain)));
        server.call("DELETE", &format!("{path}/{domain}"), Value::Null).await.ok();
        assert!(!visit(&server, &domain).await.body.to_string().contains("Films of old"));
        server.call("DELETE", &format!("{path}/{domain}"), Value::Null).await.error(404, "NotFoundError");
        server.call("POST", &verify, Value::Null).await.error(404, "NotFoundError");
    }

    async fn who_proves_a_domain_last_has_it(server) {
        let domain = name(&server);
        let (first, second) = (site(&server, "first", "The first").await, site(&server, "second", "The second").await);
        let mut tokens = Vec::new();
        for app in [&first, &second] {
            let added = server.call("POST", &format!("/v1/apps/{app}/domains"), json!({"domain": domain})).await.ok();
            tokens.push(added["verification_token"].as_str().unwrap().to_owned());
        }
        let verify = async |app: &str| {
            server.call("POST", &format!("/v1/apps/{app}/domains/{domain}/verify"), Value::Null).await.ok()["status"].clone()
        };
        publish(&domain, &[&tokens[0]]);
        assert_eq!(verify(&first).await, "active");
        // The proof of one app is none for another.
        assert_eq!(verify(&second).await, "pending");
        publish(&domain, &[&tokens[1]]);
        assert_eq!(verify(&second).await, "active");
        assert!(visit(&server, &domain).await.body.to_string().contains("The second"));
        let listed = server.call("GET", &format!("/v1/apps/{first}/domains"), Value::Null).await.ok();
        assert_eq!(listed["domains"][0]["status"], "pending");
        // The record that proved it before proves nothing any more, also where it was left standing.
        publish(&domain, &[&tokens[0], &tokens[1]]);
        assert_eq!(verify(&first).await, "pending");
        assert!(visit(&server, &domain).await.body.to_string().contains("The second"));
        let renewed = listed["domains"][0]["verification_token"].as_str().unwrap();
        publish(&domain, &[&tokens[1], renewed]);
        assert_eq!(verify(&first).await, "active");
        assert!(visit(&server, &domain).await.body.to_string().contains("The first"));
        assert_eq!(verify(&second).await, "pending");

        // Of two first domains the later one is it.
        for host in ["a.example.org", "b.example.org"] {
            let body = json!({"domain": host, "is_primary": true});
            server.call("POST", &format!("/v1/apps/{second}/domains"), body).await.ok();
        }
        let listed = server.call("GET", &format!("/v1/apps/{second}/domains"), Value::Null).await.ok();
        let first: Vec<_> = listed["domains"].as_array().unwrap().iter().map(|one| one["is_primary"].clone()).collect();
        assert_eq!(first, [json!(false), json!(false), json!(true)]);

        // One that is there becomes it where that is asked for, and stays what it is.
        let path = format!("/v1/apps/{second}/domains");
        let before = &listed["domains"][1];
        let again = server.call("POST", &path, json!({"domain": "a.example.org", "is_primary": true})).await.ok();
        assert_eq!((&again["domain"], &again["is_primary"]), (&json!("a.example.org"), &json!(true)));
        assert_eq!((&again["status"], &again["verification_token"]), (&before["status"], &before["verification_token"]));
        let listed = server.call("GET", &path, Value::Null).await.ok();
        let first: Vec<_> = listed["domains"].as_array().unwrap().iter().map(|one| one["is_primary"].clone()).collect();
        assert_eq!(first, [json!(false), json!(true), json!(false)]);
        server.call("POST", &path, json!({"domain": "a.example.org"})).await.error(409, "AlreadyExistsError");

        // Another organization's key sees nothing of it.
        let other = other_organization(&server).await;
        let request = server.request("GET", &format!("/v1/apps/{second}/domains")).bearer_auth(&other.key);
        Server::send(request).await.error(404, "NotFoundError");
    }

    async fn a_domain_whose_record_goes_is_to_be_proven_anew(server) {
        let app = site(&server, "films", "Films of old").await;
        let (path, domain) = (format!("/v1/apps/{app}/domains"), name(&server));
        let added = server.call("POST", &path, json!({"domain": domain})).await.ok();
        let token = added["verification_token"].as_str().unwrap();
        publish(&domain, &[token]);
        let verify = format!("{path}/{domain}/verify");
        assert_eq!(server.call("POST", &verify, Value::Null).await.ok()["status"], "active");
        let day = async || {
            server.app.clock().advance(86_401);
            loupe_server::v1::apps::recheck(&server.app).await.unwrap();
            server.call("GET", &path, Value::Null).await.ok()["domains"][0]["status"].clone()
        };
        for _ in 0..3 {
            assert_eq!(day().await, "active");
        }
        unpublish(&domain);
        let mut days = 1;
        while day().await == "active" {
            days += 1;
            assert!(days < 10, "it is still active");
        }
        assert!(days >= 6, "{days} days");
        assert!(!visit(&server, &domain).await.body.to_string().contains("Films of old"));
        publish(&domain, &[token]);
        assert_eq!(server.call("POST", &verify, Value::Null).await.ok()["status"], "active");
        assert!(visit(&server, &domain).await.body.to_string().contains("Films of old"));
    }

    async fn a_domain_of_an_app_that_serves_nothing_is_not_the_servers(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let domain = name(&server);
        let path = format!("/v1/apps/{app}/domains");
        let added = server.call("POST", &path, json!({"domain": domain})).await.ok();
        let health = async || Server::send(server.request("GET", "/v1/health").header("host", &domain)).await;
        // Before it is proven the name means nothing here.
        assert_eq!(health().await.status, 200);
        publish(&domain, &[added["verification_token"].as_str().unwrap()]);
        assert_eq!(server.call("POST", &format!("{path}/{domain}/verify"), Value::Null).await.ok()["status"], "active");
        // Not deployed yet, then deployed, then switched off.
        let nothing = async || {
            for path in ["/", "/v1/health", "/console/", "/r/films"] {
                let answer = Server::send(server.request("GET", path).header("host", &domain)).await;
                assert_eq!(answer.status, 404, "{path}: {:#}", answer.body);
                assert!(answer.body.as_str().unwrap().contains("There is no app at this address"), "{path}: {:#}", answer.body);
            }
        };
        nothing().await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Films of old</h1>"})).await;
        assert!(visit(&server, &domain).await.body.to_string().contains("Films of old"));
        server.call("PATCH", &format!("/v1/apps/{app}"), json!({"is_active": false})).await.ok();
        nothing().await;
        server.call("DELETE", &format!("{path}/{domain}"), Value::Null).await.ok();
        assert_eq!(health().await.status, 200);
    }

    async fn what_is_no_domain_of_ones_own_is_refused(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let path = format!("/v1/apps/{app}/domains");
        let long = format!("{}example.com", "a.".repeat(118));
        for bad in ["local", "localhost", "films.localhost", "example", "10.0.0.1", "[::1]", "0x7f.1", "a b.example.com", "-a.example.com",
            "a_b.example.com", "https://example.com", "example.com/path", "example.com:80", "*.example.com", "a..example.com", &long] {
            server.call("POST", &path, json!({"domain": bad})).await.invalid(&["body", "domain"], "value_error");
        }
        // What a browser sends of another alphabet.
        let added = server.call("POST", &path, json!({"domain": "Bücher.example.com"})).await.ok();
        assert_eq!(added["domain"], "xn--bcher-kva.example.com");
        for n in 1..20 {
            server.call("POST", &path, json!({"domain": format!("d{n}.example.com")})).await.ok();
        }
        server.call("POST", &path, json!({"domain": "one-more.example.com"})).await.error(409, "ConflictError");
    }
}
