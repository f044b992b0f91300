//! Stages that reach beyond the documents: code in its sandbox, pages of the web, what they say without what they need.

use std::collections::HashMap;

use async_trait::async_trait;
use bytes::Bytes;

use super::*;
use crate::extract::Extraction;
use crate::web::{Answer, Ask, Web, WebError};

fn q() -> Value {
    json!({"query": "1,0"})
}

async fn coded(parameters: Value) -> Result<Outcome, RunError> {
    let mut with = run(store(), json!({"query": "1,0", "plus": 10}));
    with.outside.code = Some(CodeConfig {
        enabled: true,
        memory_mb: 16,
    });
    let list = json!({"sort_attribute": {"field": "document_id", "direction": "asc"},
        "limit": {"limit": 2}, "code_execution": parameters});
    plan(list).run(with).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_makes_something_of_each_document() {
    let out = coded(
        json!({"language": "javascript", "output_field": "made.of_it", "env": {"word": "x{{INPUT.plus}}"},
        "code": "let result = {sum: DOC.n + INPUT.plus, word: ENV.word, same: `{{ not a template }}`};"}),
    )
    .await
    .unwrap();
    assert_eq!(
        out.documents[0]["made"]["of_it"],
        json!({"sum": 13, "word": "x10", "same": "{{ not a template }}"})
    );
    assert_eq!(out.documents[1]["made"]["of_it"]["sum"], 11);
    // Members of a document are data, whatever they are called.
    let out = coded(
        json!({"language": "javascript", "result_variable": "r", "code": "var r = Object.keys(DOC).includes('color')"}),
    )
    .await
    .unwrap();
    assert_eq!(out.documents[0]["computed"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_fails_is_treated_as_the_stage_says() {
    let failing = |on_error: &str| {
        json!({"language": "javascript", "on_error": on_error, "timeout_ms": 1000,
            "code": "if (DOC.document_id === 'a') throw new Error('not this one'); const result = 1;"})
    };
    let out = coded(failing("skip")).await.unwrap();
    assert_eq!(
        (ids(&out), out.documents[0].get("computed")),
        (vec!["a", "b"], None)
    );
    assert!(
        out.degraded[0].reason.contains("not this one"),
        "{:?}",
        out.degraded
    );
    assert_eq!(ids(&coded(failing("remove")).await.unwrap()), ["b"]);
    let raised = coded(failing("raise")).await.err().unwrap().to_string();
    assert!(raised.contains("document `a`"), "{raised}");
    let endless = coded(
        json!({"language": "javascript", "on_error": "raise", "timeout_ms": 200, "code": "for (;;) {}"}),
    );
    let told = endless.await.err().unwrap().to_string();
    assert!(told.contains("longer than 200 ms"), "{told}");
    let large = coded(
        json!({"language": "javascript", "on_error": "raise", "max_output_size": 1024, "code": "const result = 'x'.repeat(2000)"}),
    );
    let told = large.await.err().unwrap().to_string();
    assert!(told.contains("larger than 1024 bytes"), "{told}");
    // Off, unless the settings say otherwise.
    let list = json!({"limit": {"limit": 1}, "code_execution": {"language": "javascript", "code": "const result = 1"}});
    assert!(failure(list, q()).await.contains("set `code.enabled`"));
}

/// A few pages; `-> address` leads on to another.
#[derive(Default)]
struct Site(HashMap<&'static str, &'static str>);

#[async_trait]
impl Web for Site {
    async fn ask(&self, ask: Ask) -> Result<Answer, WebError> {
        let mut at = ask.url.as_str();
        if let Some(to) = self.0.get(at).and_then(|page| page.strip_prefix("-> ")) {
            at = to;
        }
        let page = self.0.get(at);
        let mut headers = reqwest::header::HeaderMap::new();
        headers.insert(
            "content-type",
            reqwest::header::HeaderValue::from_static("text/html"),
        );
        Ok(Answer {
            status: if page.is_some() {
                reqwest::StatusCode::OK
            } else {
                reqwest::StatusCode::NOT_FOUND
            },
            url: url::Url::parse(at).unwrap(),
            headers,
            body: Bytes::from_static(page.copied().unwrap_or("nothing").as_bytes()),
        })
    }
}

#[tokio::test]
async fn a_query_by_url_is_read_from_there() {
    let by = |url: &str| {
        let mut with = run(store(), json!({ "url": url }));
        with.web = Some(Arc::new(Site(
            [("https://x.example/query.txt", "0,1")].into(),
        )));
        let query = json!({"input_mode": "content", "value": {"url": "{{INPUT.url}}"}});
        let list = one(json!({"query": query}));
        async move { plan(list).run(with).await }
    };
    let out = by("https://x.example/query.txt").await.unwrap();
    assert_eq!(ids(&out)[0], "d");
    let told = by("https://x.example/gone").await.unwrap_err().to_string();
    assert!(told.contains("it answered 404"), "{told}");
}

async fn scraped(parameters: Value) -> Outcome {
    scraped_of(site(), parameters).await
}

#[tokio::test]
async fn pages_that_are_gone_count_as_pages() {
    let mut site = site();
    let home = "<title>Home</title><body><p>Boats.</p><a href='/gone1'>1</a><a href='/gone2'>2</a><a href='/b'>b</a>";
    site.0.insert("https://a.example/", home);
    let pages = async |site: Site, most: i64| {
        let out = scraped_of(site, json!({"max_depth": 1, "max_pages": most})).await;
        out.documents[0]["web_content"]["pages"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(pages(Site(site.0.clone()), 3).await, 0);
    assert_eq!(pages(site, 4).await, 1);
}

#[tokio::test]
async fn the_domain_of_a_page_is_where_it_was_read() {
    let mut site = site();
    let home = "<title>Home</title><body><p>Boats.</p><a href='/b'>b</a><a href='/away'>away</a>";
    let more = [
        ("https://a.example/", "-> https://www.a.example/"),
        ("https://www.a.example/", home),
        (
            "https://www.a.example/b",
            "<title>B</title><body><p>Bridges.</p><a href='/'>home</a></body>",
        ),
        ("https://www.a.example/away", "-> https://z.example/"),
        (
            "https://z.example/",
            "<title>Z</title><body><p>Somebody else's.</p></body>",
        ),
    ];
    site.0.extend(more);
    let titles = |out: &Outcome| -> Vec<String> {
        let pages = out.documents[0]["web_content"]["pages"].as_array();
        let titles = pages.unwrap().iter().map(|page| page["title"].as_str());
        titles.map(|title| title.unwrap().to_owned()).collect()
    };
    let crawl = |own: bool| json!({"max_depth": 2, "max_pages": 9, "same_domain_only": own});
    let near = scraped_of(Site(site.0.clone()), crawl(true)).await;
    assert_eq!(titles(&near), ["B"]);
    let all = scraped_of(site, crawl(false)).await;
    assert_eq!(titles(&all), ["B", "Z"]);
}

fn site() -> Site {
    Site(HashMap::from([
        (
            "https://a.example/",
            "<title>Home</title><body><p>The first page tells of boats and of rivers.</p> <a href='/b'>b</a> <a href='/private/c'>c</a> <a href='https://z.example/'>z</a></body>",
        ),
        (
            "https://a.example/b",
            "<title>B</title><body><p>The second page tells of bridges.</p><a href='/'>home</a></body>",
        ),
        (
            "https://a.example/private/c",
            "<title>C</title><body><p>Nobody should read this.</p></body>",
        ),
    ]))
}

async fn scraped_of(site: Site, parameters: Value) -> Outcome {
    let memory = Memory {
        documents: vec![
            document("a", [1.0, 0.0], "", json!({"link": "https://a.example/"})),
            document(
                "b",
                [1.0, 0.0],
                "",
                json!({"link": "https://a.example/gone"}),
            ),
        ],
        ..Memory::default()
    };
    let mut with = run(memory, q());
    with.web = Some(Arc::new(site));
    with.outside.extraction = Some(Extraction::in_process());
    let mut list = json!({"url_field": "link", "delay_between_requests": 0});
    for (name, value) in parameters.as_object().unwrap() {
        list[name] = value.clone();
    }
    plan(json!({"web_scrape": list})).run(with).await.unwrap()
}

#[tokio::test]
async fn pages_are_read_and_what_they_lead_to_where_asked() {
    let out = scraped(json!({"include_html": true})).await;
    let page = &out.documents[0]["web_content"];
    assert_eq!(
        (&page["title"], &page["thin"]),
        (&json!("Home"), &json!(true))
    );
    assert!(
        page["content"].as_str().unwrap().contains("boats"),
        "{page}"
    );
    assert!(page["html"].as_str().unwrap().contains("<title>"), "{page}");
    assert!(page.get("pages").is_none() && out.documents[1].get("web_content").is_none());
    assert!(out.degraded[0].reason.contains("404"), "{:?}", out.degraded);
    let crawl = json!({"max_depth": 2, "max_pages": 5, "url_patterns": {"exclude": ["*/private/*"]},
        "url": "{{ DOC.link }}", "on_error": "remove"});
    let out = scraped(crawl).await;
    assert_eq!(ids(&out), ["a"]);
    let pages = out.documents[0]["web_content"]["pages"].as_array().unwrap();
    let urls: Vec<&str> = pages.iter().map(|p| p["url"].as_str().unwrap()).collect();
    assert_eq!(urls, ["https://a.example/b"]);
    let one = scraped(json!({"max_depth": 2, "max_pages": 1})).await;
    assert_eq!(one.documents[0]["web_content"]["pages"], json!([]));
    let listed = scraped(json!({"url_patterns": {"include": ["https://other.example/*"]}})).await;
    assert!(listed.degraded[0].reason.contains("url_patterns"));
}

#[test]
fn what_cannot_run_is_refused_with_its_reason() {
    let of = |id: &str, parameters: Value| {
        let stage =
            json!({"stage_name": "s", "config": {"stage_id": id, "parameters": parameters}});
        let stage = serde_json::from_value(stage).unwrap();
        let found = Plan::compile(&[stage], &IndexMap::new())
            .err()
            .unwrap_or_default();
        found
            .into_iter()
            .map(|p| (p.loc[4..].join("."), p.r#type, p.msg))
            .collect::<Vec<_>>()
    };
    for parameters in [
        json!({}),
        json!({"language": "python"}),
        json!({"language": "typescript"}),
    ] {
        let found = of("code_execution", parameters);
        assert_eq!(
            (found[0].0.as_str(), found[0].1),
            ("language", "not_implemented")
        );
        assert!(found[0].2.contains("JavaScript"), "{found:?}");
    }
    assert_eq!(
        of(
            "code_execution",
            json!({"language": "javascript", "result_variable": "a;b"})
        )[0]
        .0,
        "result_variable"
    );
    let lookup = |query: &str, connection: &str| {
        of(
            "sql_lookup",
            json!({"connection_id": connection, "query": query}),
        )
    };
    assert_eq!(lookup("SELECT '{{DOC.x}}'", "c")[0].0, "query");
    assert_eq!(lookup("SELECT 1", "{{INPUT.c}}")[0].0, "connection_id");
    assert_eq!(lookup("DROP TABLE t", "c")[0].0, "query");
    assert!(lookup("SELECT 1", "c").is_empty());
    assert_eq!(
        of("agent_search", json!({"stages": ["rerank"]}))[0].0,
        "stages.0"
    );
    assert_eq!(
        of("agent_search", json!({"strategy": "custom"}))[0].0,
        "system_prompt"
    );
    let tools =
        json!({"system_prompt": "x", "output_schema": {"a": "string"}, "enabled_tools": ["shell"]});
    assert_eq!(of("agentic_enrich", tools)[0].0, "enabled_tools.0");
    let looked_at = |provider: Value| {
        let parameters = json!({"system_prompt": "x", "output_schema": {"a": "string"},
            "enabled_tools": ["analyze_content"], "analysis_provider": provider});
        let found = of("agentic_enrich", parameters).into_iter();
        found.map(|one| (one.0, one.1)).collect::<Vec<_>>()
    };
    let own = json!({"provider": "google", "model_name": "large", "api_key": "{{ secret.mine }}"});
    assert!(looked_at(own).is_empty());
    let wrong = json!({"provider": "nobody", "url": "https://a.example"});
    let here = |name: &str| format!("analysis_provider.{name}");
    assert_eq!(
        looked_at(wrong),
        [(here("provider"), "enum"), (here("url"), "extra_forbidden")]
    );
    assert_eq!(
        looked_at(json!("google")),
        [("analysis_provider".to_owned(), "dict_type")]
    );
}

#[tokio::test]
async fn without_what_they_need_stages_say_so() {
    let limited =
        |stage: &str, parameters: Value| json!({"limit": {"limit": 1}, stage: parameters});
    for (stage, parameters, word) in [
        (
            "agent_search",
            json!({}),
            "is configured; set `models.language`",
        ),
        (
            "agentic_enrich",
            json!({"system_prompt": "x", "output_schema": {"a": "string"}}),
            "is configured; set `models.language`",
        ),
        (
            "external_reverse_image",
            json!({"image_url": "https://a.example/x.jpg"}),
            "set `reverse_image`",
        ),
        (
            "sql_lookup",
            json!({"connection_id": "c", "query": "SELECT 1"}),
            "not asked here",
        ),
        (
            "web_scrape",
            json!({"url": "https://a.example"}),
            "not read here",
        ),
    ] {
        let wrong = failure(limited(stage, parameters), q()).await;
        assert!(wrong.contains(word), "{stage}: {wrong}");
    }
    let told = catalogue(Configured {
        code: true,
        ..Configured::default()
    });
    let of = |id: &str| told.iter().find(|one| one.stage_id == id).unwrap();
    assert!(of("code_execution").available && of("limit").available);
    assert!(!of("agent_search").available);
    assert!(
        of("llm_filter")
            .unavailable_reason
            .as_deref()
            .unwrap()
            .contains("models.language")
    );
}
