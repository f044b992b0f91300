//! What a language model decides in stages: which condition a sentence is, which documents are relevant, what pictures show.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    batches::{library, object, process, red_square},
    both,
    harness::{self, Database, Server},
    machine::{Seen, machine},
    machines::{server, sorted, titles},
    stages::{collection, execute, retriever, stage},
};

/// A stage that takes its condition in words.
fn in_words(sentence: &str, more: Value) -> Value {
    let mut parameters = json!({"natural_language": sentence, "field_hints": ["decade"]});
    parameters
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    stage("attribute_filter", parameters)
}

fn the_model_is_told_the_fields(seen: &Seen) {
    let seen = seen.lock().unwrap();
    let asked = seen[0].2["messages"][1]["content"].as_str().unwrap();
    for part in [
        "- decade (number): ",
        "1920",
        "- title (text): ",
        "\"Faust\"",
        "likely to be meant: decade\n",
        "Sentence: silent films",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentence_becomes_a_filter() {
    let (server, seen, namespace, films, _) = server().await;
    let ask = async |stages: Vec<Value>, query: &str| {
        let one = retriever(&server, &namespace, &films, stages).await;
        let path = format!("/v1/retrievers/{one}/execute");
        let body = json!({"inputs": {"query": query}});
        server.call_in(&namespace, "POST", &path, body).await
    };
    let template = || in_words("{{INPUT.query}} films", json!({}));
    let answer = ask(vec![template(), sorted()], "silent").await.ok();
    assert_eq!(titles(&answer), ["Faust", "Nosferatu"]);
    let metadata = &answer["stage_statistics"]["stages"]["attribute_filter"]["metadata"];
    assert_eq!(metadata["filter"], "decade lt 1930");
    the_model_is_told_the_fields(&seen);
    // Conditions that are written out hold beside it; what it was told before is known.
    let both = in_words(
        "{{INPUT.query}} films",
        json!({"field": "title", "value": "Faust"}),
    );
    let answer = ask(vec![both], "silent").await.ok();
    assert_eq!(
        (titles(&answer), seen.lock().unwrap().len()),
        (vec!["Faust"], 1)
    );
    // A filter that cannot be read is said once more, with what is wrong with it.
    let answer = ask(vec![sorted(), template()], "called F").await.ok();
    assert_eq!(
        (titles(&answer), seen.lock().unwrap().len()),
        (vec!["Faust"], 3)
    );
    // What is no filter, or more than values, fails the stage, which may be left out.
    for (query, reason) in [
        ("unheard", "`like` is no operator"),
        ("secret", "values only"),
    ] {
        let mut lenient = template();
        lenient["on_error"] = json!("skip");
        let answer = ask(vec![sorted(), lenient], query).await.ok();
        assert_eq!(titles(&answer).len(), 3);
        let told = answer["degraded"][0]["reason"].as_str().unwrap();
        assert!(told.contains(reason), "{told}");
        let failed = ask(vec![template()], query).await;
        let told = failed.body.to_string();
        assert!(failed.status == 400 && told.contains(reason), "{told}");
    }
    // A sentence that turns out empty is no condition, and is told.
    let empty = in_words("{{INPUT.nothing}}", json!({}));
    let answer = ask(vec![empty], "x").await.ok();
    assert_eq!(titles(&answer).len(), 3);
    let told = answer["interpretation"]["relaxations"][0].as_str().unwrap();
    assert!(told.contains("sentence is empty"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_filter_in_words_by_what_they_are_shown() {
    let (server, seen, namespace, films, _) = server().await;
    let ask = async |name: &str, hints: Value, exposed: Value| {
        let parameters = json!({"natural_language": "{{INPUT.query}} films", "field_hints": hints});
        let stages = vec![stage("attribute_filter", parameters), sorted()];
        let one = retriever(&server, &namespace, &films, stages).await;
        let page = json!({"public_name": name, "display_config": {"title": name, "inputs": [], "exposed_fields": exposed}});
        let path = format!("/v1/retrievers/{one}/publish");
        server.call_in(&namespace, "POST", &path, page).await.ok();
        let path = format!("/v1/public/retrievers/{name}/execute");
        let body = json!({"inputs": {"query": "silent"}});
        Server::send(server.request("POST", &path).json(&body)).await
    };
    // The model says a condition on a field that the page hides, twice; neither it nor the stranger is told of the field.
    let failed = ask("hiding", json!([]), json!(["title"])).await;
    let told = failed.body.to_string();
    assert!(
        failed.status == 400 && told.contains("fields that are shown"),
        "{told}"
    );
    assert!(!told.contains("decade"), "{told}");
    {
        let seen = seen.lock().unwrap();
        let first = seen[0].2["messages"][1]["content"].as_str().unwrap();
        assert!(first.contains("- title (text): "), "{first}");
        assert!(
            !first.contains("decade") && !first.contains("content"),
            "{first}"
        );
        assert_eq!(seen.len(), 2);
    }
    let answer = ask("showing", json!([]), json!(["title", "decade"]))
        .await
        .ok();
    assert_eq!(titles(&answer), ["Faust", "Nosferatu"]);
    // What the owner says to be meant may be meant.
    let answer = ask("hinting", json!(["decade"]), json!(["title"]))
        .await
        .ok();
    assert_eq!(titles(&answer), ["Faust", "Nosferatu"]);
    // A page that shows nothing has nothing to filter by.
    let failed = ask("silent", json!([]), json!(["poster"])).await;
    assert_eq!(failed.status, 400, "{:#}", failed.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentence_knows_the_fields_of_the_last_of_many_collections() {
    let (server, _, namespace, films, _) = server().await;
    let mut all = Vec::new();
    for number in 0..20 {
        all.push(collection(&server, &namespace, &format!("empty{number}"), &[]).await);
    }
    all.push(films);
    let told = stage(
        "attribute_filter",
        json!({"natural_language": "silent films"}),
    );
    let body = json!({"retriever_name": "wide", "collection_identifiers": all, "stages": [told, sorted()]});
    let made = server
        .call_in(&namespace, "POST", "/v1/retrievers", body)
        .await
        .ok();
    let wide = made["retriever_id"].as_str().unwrap();
    let answer = execute(&server, &namespace, wide, json!({})).await;
    assert_eq!(titles(&answer), ["Faust", "Nosferatu"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_rated_by_criteria() {
    let (server, seen, namespace, films, _) = server().await;
    let ask = async |more: Value| {
        let mut parameters = json!({"relevance_criteria": "about {{INPUT.query}}s", "decision_model": "large",
            "max_candidates": 3, "batch_size": 2});
        let members = parameters.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let stages = vec![sorted(), stage("rerank", parameters)];
        let one = retriever(&server, &namespace, &films, stages).await;
        let answer = execute(&server, &namespace, &one, json!({"query": "vampire"})).await;
        assert_eq!(titles(&answer), ["Nosferatu", "Faust", "M"]);
        assert_eq!(answer["documents"][0]["scores"]["rerank"], 0.9);
        assert_eq!(answer["warnings"], json!([]));
        let told = &answer["stage_statistics"]["stages"]["rerank"];
        assert_eq!(told["metadata"]["model"], "large");
        told["stage_cache_hit"].clone()
    };
    let asked = || seen.lock().unwrap().len();
    assert_eq!((ask(json!({})).await, asked()), (json!(false), 2));
    {
        let seen = seen.lock().unwrap();
        let text = seen[0].2["messages"][1]["content"].as_str().unwrap();
        assert!(
            text.starts_with("Criteria: about vampires\nQuery: vampire\n"),
            "{text}"
        );
        assert_eq!(seen[0].2["model"], "large");
    }
    // The same texts for the same query are known, unless the stage wants to remember nothing.
    assert_eq!((ask(json!({})).await, asked()), (json!(true), 2));
    let off = json!({"cache_behavior": "disabled"});
    assert_eq!((ask(off).await, asked()), (Value::Null, 4));
    let none = json!({"cache_ttl_seconds": 0});
    assert_eq!((ask(none).await, asked()), (Value::Null, 6));
    let other = json!({"relevance_criteria": "about ships"});
    assert_eq!((ask(other).await, asked()), (json!(false), 8));
}

/// A server whose language model looks at pictures, or does not, with a collection of an object that has one and of one that
/// has none.
async fn illustrated(pictures: bool) -> (Server, Seen, String, String) {
    let (address, seen) = machine().await;
    let (server, namespace, things) = illustrated_by(&address, pictures).await;
    (server, seen, namespace, things)
}

/// The same with the language model at this address.
pub async fn illustrated_by(address: &str, pictures: bool) -> (Server, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = harness::config(Database::Sqlite, &folder).await;
    let language = json!({"url": format!("{address}/v1"), "model": "small", "pictures": pictures});
    config.models.language = Some(serde_json::from_value(language).unwrap());
    let server = Server::start_with(config, folder, None).await;
    let (namespace, bucket, things) = library(&server, "passthrough_extractor", "image").await;
    let picture = json!({"property": "image", "type": "image", "data": STANDARD.encode(red_square()), "metadata": {"filename": "red.png"}});
    object(&server, &namespace, &bucket, "red", picture).await;
    let path = format!("/v1/buckets/{bucket}/objects");
    let plain = json!({"title": "plain"});
    server.call_in(&namespace, "POST", &path, plain).await.ok();
    let batch = process(&server, &namespace, &bucket).await;
    assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
    (server, namespace, things)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_language_model_looks_at_the_pictures_of_documents() {
    let (server, seen, namespace, things) = illustrated(true).await;
    let run = async |id: &str, parameters: Value, inputs: Value| {
        let stages = vec![sorted(), stage(id, parameters)];
        let one = retriever(&server, &namespace, &things, stages).await;
        execute(&server, &namespace, &one, inputs).await
    };
    let parameters = json!({"criteria": "it is red", "include_media": true});
    let answer = run("llm_filter", parameters, json!({})).await;
    assert_eq!(titles(&answer), ["red"]);
    let told = &answer["stage_statistics"]["stages"]["llm_filter"]["metadata"];
    assert_eq!(told["pictures"], 1);
    {
        let seen = seen.lock().unwrap();
        let sent = seen[0].2["messages"][1]["content"][1]["image_url"]["url"].as_str();
        let jpeg = sent.unwrap().strip_prefix("data:image/jpeg;base64,");
        assert!(
            STANDARD
                .decode(jpeg.unwrap())
                .unwrap()
                .starts_with(&[0xff, 0xd8])
        );
    }
    let given = format!("data:image/png;base64,{}", STANDARD.encode(red_square()));
    let inputs = json!({"cover": "image", "none": "{{ DOC.nothing }}", "given": "{{INPUT.given}}"});
    let parameters = json!({"prompt": "What is it?", "output_field": "seen", "multimodal_inputs": inputs, "thinking_level": "low"});
    let answer = run("llm_enrich", parameters, json!({"given": given})).await;
    assert_eq!(
        seen.lock().unwrap().last().unwrap().2["reasoning_effort"],
        "low"
    );
    let said: Vec<&Value> = ["plain", "red"]
        .iter()
        .zip(answer["documents"].as_array().unwrap())
        .map(|(title, one)| {
            assert_eq!(one["title"], *title);
            &one["seen"]
        })
        .collect();
    assert_eq!(
        said,
        [
            &json!("said of: What is it?\n\nPicture 1: given"),
            &json!("said of: What is it?\n\nPicture 1: cover\n\nPicture 2: given"),
        ]
    );
    // What is no picture is told, and the rest goes on without it.
    let parameters = json!({"prompt": "What is it?", "output_field": "seen", "multimodal_inputs": {"given": "{{INPUT.given}}"}});
    let given = format!("data:image/png;base64,{}", STANDARD.encode("no picture"));
    let answer = run("llm_enrich", parameters, json!({"given": given})).await;
    assert_eq!(answer["documents"][0]["seen"], "said of: What is it?");
    let told = answer["warnings"][0].as_str().unwrap();
    assert!(told.contains("a picture was not looked at"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_language_model_that_does_not_look_at_pictures_says_so() {
    let (server, _, namespace, things) = illustrated(false).await;
    for (id, parameters) in [
        (
            "llm_filter",
            json!({"criteria": "it is red", "include_media": true}),
        ),
        (
            "llm_enrich",
            json!({"multimodal_inputs": {"cover": "image"}}),
        ),
    ] {
        let one = retriever(&server, &namespace, &things, vec![stage(id, parameters)]).await;
        let path = format!("/v1/retrievers/{one}/execute");
        let body = json!({"inputs": {}});
        let failed = server.call_in(&namespace, "POST", &path, body).await;
        let told = failed.body.to_string();
        assert!(
            failed.status == 503 && told.contains("models.language.pictures"),
            "{told}"
        );
    }
}

both! {
    async fn a_sentence_needs_a_language_model(server) {
        let namespace = server.namespace("wordless").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "M"})]).await;
        let told = stage("attribute_filter", json!({"natural_language": "old films"}));
        let one = retriever(&server, &namespace, &films, vec![told]).await;
        let path = format!("/v1/retrievers/{one}/execute");
        let failed = server.call_in(&namespace, "POST", &path, json!({"inputs": {}})).await;
        let told = failed.body.to_string();
        assert!(failed.status == 503 && told.contains("models.language"), "{told}");
    }
}
