//! A host with a few documents, and what a browser would see of its pages.

// Each test binary uses its own part of it.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use loupe_hosted::{
    Facet, FacetValue, Hit, Host, HostError, Listed, Page, SearchAnswer, SearchRequest, Seen, Step,
    Unlock, Visitor, Written,
};
use scraper::{Html, Selector};
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub struct Fake {
    pub page: Page,
    pub hits: Vec<Hit>,
    pub total: u64,
    pub error: Option<fn() -> HostError>,
    pub facets: Vec<Facet>,
    pub asked: Mutex<Vec<SearchRequest>>,
    /// Taken down by its owner.
    pub is_active: bool,
    /// Opens the page, where it has one.
    pub password: Option<&'static str>,
    /// Something did not answer in time.
    pub is_partial: bool,
    /// Searches take longer than anybody waits.
    pub is_slow: bool,
    /// What a language model wrote.
    pub written: Vec<Written>,
}

impl Fake {
    fn is_open_for(&self, visitor: &Visitor) -> bool {
        self.password
            .is_none_or(|password| visitor.cookies == format!("key={password}"))
    }
}

#[async_trait::async_trait]
impl Host for Fake {
    fn base_url(&self) -> String {
        "https://search.example.com".into()
    }
    fn now(&self) -> loupe_wire::Timestamp {
        chrono::DateTime::UNIX_EPOCH
    }
    fn asset(&self, name: &str) -> Option<String> {
        Some(format!("/assets/{name}"))
    }
    async fn page(&self, name: &str, visitor: &Visitor) -> Result<Seen, HostError> {
        Ok(match name == self.page.public_name && self.is_active {
            false => Seen::Nothing,
            true if !self.is_open_for(visitor) => Seen::Locked,
            true => Seen::Page(Box::new(self.page.clone())),
        })
    }
    async fn unlock(&self, name: &str, password: &str) -> Result<Unlock, HostError> {
        if name != self.page.public_name || !self.is_active {
            return Ok(Unlock::Nothing);
        }
        if password == "again and again" {
            return Err(HostError::Busy { retry_after_s: 7 });
        }
        Ok(match self.password {
            None => Unlock::Open,
            Some(right) if right == password => Unlock::Cookie(format!("key={right}")),
            Some(_) => Unlock::Wrong,
        })
    }
    async fn search(
        &self,
        _: &str,
        visitor: &Visitor,
        request: SearchRequest,
    ) -> Result<SearchAnswer, HostError> {
        assert!(self.is_open_for(visitor));
        self.asked.lock().unwrap().push(request);
        if self.is_slow {
            std::future::pending::<()>().await;
        }
        if let Some(steps) = &visitor.steps {
            for found in [None, Some(2)] {
                let step = Step {
                    at: 1,
                    of: 1,
                    found,
                    ms: found,
                };
                steps.send(step).await.unwrap();
            }
        }
        match self.error {
            Some(error) => Err(error()),
            None => Ok(SearchAnswer {
                documents: self.hits.clone(),
                total: self.total,
                facets: self.facets.clone(),
                took_ms: 7,
                warnings: vec!["internal: feature_uri mismatch".into()],
                execution_id: format!("exec_{}", self.asked.lock().unwrap().len()),
                is_partial: self.is_partial,
                written: self.written.clone(),
            }),
        }
    }
    async fn item(&self, _: &str, visitor: &Visitor, id: &str) -> Result<Option<Hit>, HostError> {
        assert!(self.is_open_for(visitor));
        Ok(self.hits.iter().find(|hit| hit.document_id == id).cloned())
    }
    async fn named(
        &self,
        _: &str,
        visitor: &Visitor,
        ids: &[String],
    ) -> Result<Vec<Hit>, HostError> {
        assert!(self.is_open_for(visitor));
        let hits = self.hits.iter().cloned();
        Ok(hits.filter(|hit| ids.contains(&hit.document_id)).collect())
    }
    async fn listed(&self) -> Result<Vec<Listed>, HostError> {
        Ok(vec![Listed {
            public_name: "books".into(),
            updated_at: chrono::DateTime::UNIX_EPOCH,
        }])
    }
}

pub fn display() -> Value {
    json!({
        "title": "Old books", "description": "All of them.",
        "inputs": [{"field_name": "query", "field_schema": {"type": "text"}, "label": "Search", "required": false,
                    "suggestions": ["sea stories"]}],
        "exposed_fields": ["title", "description", "tags", "year"],
        "components": {"show_filters": true},
        "field_config": {"tags": {"format": "array"}, "year": {"format": "number"}}
    })
}

pub fn fake(display: Value, fields: &[Value]) -> Fake {
    let hits: Vec<Hit> = fields
        .iter()
        .enumerate()
        .map(|(index, fields)| Hit {
            document_id: format!("doc_{index}"),
            score: Some(0.5),
            fields: fields.as_object().cloned().unwrap(),
            thumbnail: None,
            media: None,
            original: None,
        })
        .collect();
    Fake {
        page: Page {
            public_name: "books".into(),
            display_config: serde_json::from_value(display).unwrap(),
            allows_empty_query: true,
            collections: vec!["shelf".into()],
            ..Page::default()
        },
        total: hits.len() as u64,
        hits,
        error: None,
        facets: vec![Facet {
            field: "tags".into(),
            values: vec![FacetValue {
                value: json!("sea"),
                count: 2,
            }],
        }],
        asked: Mutex::default(),
        is_active: true,
        password: None,
        is_partial: false,
        is_slow: false,
        written: Vec::new(),
    }
}

pub fn books() -> Fake {
    fake(
        display(),
        &[
            json!({"title": "The sea wolf", "description": "A tale of the sea.", "tags": ["sea"], "year": 1904, "secret": "s3cr3t"}),
            json!({"title": "Moby-Dick", "description": "A whale.", "tags": ["sea"], "year": 1851, "secret": "s3cr3t"}),
            json!({"title": "Walden", "description": "A pond.", "tags": [], "year": 1854}),
        ],
    )
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

pub async fn get(host: &Arc<Fake>, path: &str) -> Reply {
    get_with(host, path, None).await
}

pub async fn get_with(host: &Arc<Fake>, path: &str, tag: Option<&str>) -> Reply {
    let mut request = Request::get(path);
    if let Some(tag) = tag {
        request = request.header("if-none-match", tag);
    }
    send(host, request.body(Body::empty()).unwrap()).await
}

pub async fn send(host: &Arc<Fake>, request: Request<Body>) -> Reply {
    let router = loupe_hosted::page::router(host.clone());
    let reply = router.oneshot(request).await.unwrap();
    let (status, headers) = (reply.status(), reply.headers().clone());
    let body = to_bytes(reply.into_body(), usize::MAX).await.unwrap();
    Reply {
        status,
        headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

impl Reply {
    pub fn dom(&self) -> Html {
        Html::parse_document(&self.body)
    }
    pub fn texts(&self, selector: &str) -> Vec<String> {
        let selector = Selector::parse(selector).unwrap();
        self.dom()
            .select(&selector)
            .map(|element| element.text().collect())
            .collect()
    }
    pub fn attributes(&self, selector: &str, name: &str) -> Vec<String> {
        let selector = Selector::parse(selector).unwrap();
        self.dom()
            .select(&selector)
            .filter_map(|element| element.value().attr(name).map(str::to_owned))
            .collect()
    }
    pub fn robots(&self) -> String {
        self.attributes("meta[name=robots]", "content").concat()
    }
}
