//! Models that are asked directly, and what is remembered of what they said.

use serde_json::{Value, json};

use super::server;
use crate::harness::{Server, other_organization};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_that_means_the_same_is_answered_from_memory() {
    let (server, seen, namespace, ..) = server().await;
    let asked = || seen.lock().unwrap().len();
    let infer = async |body: Value| {
        let answer = server.call_in(&namespace, "POST", "/v1/inference", body);
        answer.await.ok()
    };
    let prompt = |text: &str, delta: Option<f64>| {
        let mut body = json!({"inputs": {"prompt": text}});
        if let Some(delta) = delta {
            body["enable_semantic_cache"] = json!(true);
            body["cache_delta"] = json!(delta);
        }
        body
    };
    // Nobody asked for it: the model may say something else each time.
    for count in [1, 2] {
        let told = infer(prompt("name a film about a vampire", None)).await;
        assert_eq!((&told["cached"], asked()), (&json!(false), count));
        assert!(told["tokens_used"]["total"].as_i64() > Some(0), "{told:#}");
    }
    let text = "name a film about a vampire";
    let first = infer(prompt(text, Some(0.0))).await;
    let same = infer(prompt(text, Some(0.0))).await;
    assert_eq!(
        (&first["cached"], &same["cached"]),
        (&json!(false), &json!(true))
    );
    assert_eq!((&same["data"], asked()), (&first["data"], 3));
    // Another prompt is another question, unless it lies near enough.
    let near = infer(prompt("name a film about vampires", Some(0.5))).await;
    assert_eq!(
        (&near["cached"], &near["data"]),
        (&json!(true), &first["data"])
    );
    let far = infer(prompt("the weather of tomorrow", Some(0.0))).await;
    assert_eq!((&far["cached"], asked()), (&json!(false), 4));
    // Other words for the model make it another question, and nobody else's answer is told.
    let mut colder = prompt(text, Some(0.5));
    colder["parameters"] = json!({"system": "Answer in one word."});
    assert_eq!(
        (infer(colder).await["cached"].clone(), asked()),
        (json!(false), 5)
    );
    let other = other_organization(&server).await;
    let request = |path: &str| server.request("POST", path).bearer_auth(&other.key);
    let theirs = json!({"namespace_name": "theirs"});
    let theirs = Server::send(request("/v1/namespaces").json(&theirs));
    let theirs = theirs.await.ok()["namespace_id"].clone();
    let request = request("/v1/inference")
        .header("X-Namespace", theirs.as_str().unwrap())
        .json(&prompt(text, Some(0.5)));
    let told = Server::send(request).await.ok();
    assert_eq!((&told["cached"], asked()), (&json!(false), 6));
}
