//! Serves the pages over a handful of made-up documents, to look at them: `cargo run -p loupe-hosted --example preview`.
//! Pages: `/r/portraits`, `/r/films`, `/r/papers`, `/r/masonry`, `/r/dark`, `/r/warm`, `/r/plain`, `/r/answers`, and the
//! protected `/r/locked`. The word "nothing" finds nothing, "fail" fails.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::header;
use axum::routing::get;
use loupe_hosted::{
    Facet, FacetValue, Hit, Host, HostError, Listed, Page, Picture, SearchAnswer, SearchRequest,
    Seen, Unlock, Visitor, Written,
};
use loupe_wire::Value;
use serde_json::json;

struct Preview;

const NAMES: [&str; 8] = [
    "portraits",
    "films",
    "papers",
    "masonry",
    "dark",
    "warm",
    "plain",
    "answers",
];

fn display(name: &str) -> Value {
    let input = json!({
        "field_name": "query", "field_schema": {"type": "text"}, "label": "Search the archive", "order": 0,
        "placeholder": "A blue hat, a harbour, someone laughing…", "required": false,
        "suggestions": ["blue hat", "harbour at dusk", "two sisters", "studio light"]
    });
    let mut display = json!({
        "title": "Portrait archive",
        "description": "12,480 portraits from five decades, searched by what is in the picture.",
        "inputs": [input.clone()],
        "exposed_fields": ["title", "description", "year", "place", "tags", "duration", "recorded_at", "page_number", "source", "restored"],
        "template_type": "portrait-gallery",
        "field_config": {
            "place": {"format": "text"},
            "tags": {"format": "array", "format_options": {"max_items": 3}},
            "source": {"format": "url", "format_options": {"show_domain": true}},
            "restored": {"format": "boolean", "format_options": {"true_label": "Restored", "false_label": "As found"}}
        },
        "components": {"show_filters": true, "result_card": {"card_fields": ["place"]}},
        "external_links": [{"name": "The museum", "url": "https://example.org"}],
        "custom_cta": {"label": "About", "markdown_content": "# How it works\n\nEvery picture is described by a model; the search compares **meaning**, not file names.\n\n* Ask in your own words\n* Open a picture for its story"},
        "markdowns": [{"title": "Where the pictures come from", "content": "From **three** donated collections."}, {"title": "Use and licence", "content": "All pictures are CC0."}]
    });
    let change = match name {
        "films" => {
            json!({"title": "Harbour film library", "description": "Scenes, searched by what happens in them.",
            "template_type": "media-search", "components": {"show_filters": true, "result_card": {"card_fields": ["place", "tags"], "show_find_similar": true}},
            "inputs": [input, {"field_name": "similar_to", "field_schema": {"type": "document_reference"}, "label": "Like", "required": false, "order": 1}]})
        }
        "papers" => {
            json!({"title": "Field notes", "description": "Eleven thousand pages of expedition diaries and letters, readable at last.",
            "template_type": "document-search", "components": {"show_filters": true, "result_card": {"card_fields": ["place", "year", "source"], "show_score": true}}})
        }
        "masonry" => {
            json!({"title": "Atelier", "template_type": null, "layout": {"mode": "masonry", "columns": 4, "gap": "14px"},
            "theme": {"primary_color": "#0f766e", "background_color": "#faf7f2", "text_color": "#1f2937", "heading_font_family": "Georgia", "border_radius": "4px", "card_style": "flat"}})
        }
        "dark" => {
            json!({"title": "Night sky", "theme": {"primary_color": "#f59e0b", "background_color": "#0b1020", "text_color": "#cbd5e1", "card_style": "elevated", "card_hover_effect": "glow"}})
        }
        "warm" => {
            json!({"title": "Garden letters", "extensions": {"color_scheme": "auto"}, "theme": {"primary_color": "#b4530a", "secondary_color": "#0f766e",
            "background_color": "#fdf3e3", "surface_color": "#fffaf0", "text_color": "#33261a", "muted_color": "#7d6a55", "border_color": "#e3cfae"}})
        }
        "answers" => json!({"title": "Ask the archive", "template_type": null}),
        "plain" => json!({"title": "Inputs of every kind", "template_type": null, "inputs": [
            {"field_name": "query", "field_schema": {"type": "text"}, "label": "Words", "order": 0, "helper_text": "In any language."},
            {"field_name": "place", "field_schema": {"type": "string", "enum": ["Oslo", "Lima", "Porto"]}, "input_type": "select", "label": "Place", "order": 1},
            {"field_name": "from", "field_schema": {"type": "date"}, "input_type": "date", "label": "From", "order": 2},
            {"field_name": "least", "field_schema": {"type": "number"}, "input_type": "number", "label": "At least", "order": 3},
            {"field_name": "kinds", "field_schema": {"type": "array", "items": {"type": "string", "enum": ["film", "photo", "note"]}}, "input_type": "multiselect", "label": "Kinds", "required": false, "order": 4},
            {"field_name": "open", "field_schema": {"type": "boolean"}, "label": "Open access only", "order": 5},
            {"field_name": "names", "field_schema": {"type": "array", "items": {"type": "string"}}, "label": "Names", "required": false, "order": 6},
            {"field_name": "story", "field_schema": {"type": "text"}, "input_type": "textarea", "label": "What happens", "required": false, "order": 7},
            {"field_name": "more", "field_schema": {"type": "object"}, "label": "Anything else", "required": false, "order": 8}]}),
        _ => json!({}),
    };
    if let (Some(display), Some(change)) = (display.as_object_mut(), change.as_object()) {
        display.extend(change.clone());
    }
    display
}

fn hit(name: &str, index: u64) -> Hit {
    const TITLES: [&str; 8] = [
        "Woman with a blue hat",
        "Harbour pilot, evening watch",
        "Two sisters",
        "The glassblower",
        "Conductor before the concert",
        "Boy on the ice",
        "Keeper of the lighthouse",
        "Market at first light",
    ];
    const PLACES: [&str; 4] = ["Oslo", "Lima", "Porto", "Kyoto"];
    let at = index as usize;
    let text = "The sitter looks past the camera, a blue hat tilted against the wind. Behind her the harbour is already in shadow; \
        the print was made the same evening and carries the studio's stamp on its back, with a note on the exposure in pencil.";
    let fields = json!({
        "title": TITLES[at % 8], "description": text, "place": PLACES[at % 4], "year": 1921 + index * 3,
        "tags": ["portrait", "wind", "harbour", "studio"], "duration": 65 + index * 611, "recorded_at": format!("19{:02}-06-1{}T18:00:00Z", 22 + index % 70, index % 10), "page_number": 3 + index * 9,
        "source": "https://www.example.org/archive", "restored": index.is_multiple_of(2)
    });
    let heights = [420, 560, 480, 640, 400];
    let height = if name == "masonry" {
        heights[at % 5]
    } else {
        500
    };
    Hit {
        document_id: format!("doc_{index}"),
        score: Some(0.93 - index as f64 * 0.013),
        fields: fields.as_object().cloned().unwrap_or_default(),
        thumbnail: Some(Picture {
            url: format!("/pictures/{index}/{height}"),
            width: Some(400),
            height: Some(height),
        }),
        media: None,
        original: None,
    }
}

#[async_trait::async_trait]
impl Host for Preview {
    fn base_url(&self) -> String {
        "http://localhost:4173".to_owned()
    }

    fn now(&self) -> loupe_wire::Timestamp {
        std::time::SystemTime::now().into()
    }

    fn asset(&self, logical_name: &str) -> Option<String> {
        match logical_name {
            "public.css" => Some("/style.css".to_owned()),
            "search.js" => Some("/search.js".to_owned()),
            _ => None,
        }
    }

    async fn page(&self, public_name: &str, _: &Visitor) -> Result<Seen, HostError> {
        if public_name == "locked" {
            return Ok(Seen::Locked);
        }
        if !NAMES.contains(&public_name) {
            return Ok(Seen::Nothing);
        }
        let display_config = serde_json::from_value(display(public_name))
            .map_err(|error| HostError::Failed(error.to_string()))?;
        Ok(Seen::Page(Box::new(Page {
            public_name: public_name.to_owned(),
            display_config,
            allows_empty_query: public_name != "plain",
            collections: vec!["portraits".to_owned()],
            ..Page::default()
        })))
    }

    async fn unlock(&self, _: &str, _: &str) -> Result<Unlock, HostError> {
        Ok(Unlock::Wrong)
    }

    async fn search(
        &self,
        public_name: &str,
        _: &Visitor,
        request: SearchRequest,
    ) -> Result<SearchAnswer, HostError> {
        let words = request
            .inputs
            .get("query")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if words == "fail" {
            return Err(HostError::Failed("asked to".to_owned()));
        }
        if words == "nothing" {
            return Ok(SearchAnswer::default());
        }
        let value = |value: &str, count| FacetValue {
            value: json!(value),
            count,
        };
        let facet = Facet {
            field: "tags".to_owned(),
            values: vec![
                value("portrait", 1204),
                value("studio", 733),
                value("harbour", 210),
            ],
        };
        let truths = Facet {
            field: "restored".to_owned(),
            values: vec![
                FacetValue {
                    value: json!(true),
                    count: 540,
                },
                FacetValue {
                    value: json!(false),
                    count: 312,
                },
            ],
        };
        if public_name == "answers" && !words.is_empty() {
            let text = "The archive has **two** pictures of the harbour at dusk:\n\n* *Harbour pilot, evening watch*, taken from the mole\n* *Keeper \
                of the lighthouse*, in which the harbour is behind the sitter\n\nBoth were printed in the same studio.";
            return Ok(SearchAnswer {
                written: vec![Written {
                    text: text.to_owned(),
                    group: None,
                    sources: vec!["doc_1".to_owned(), "doc_6".to_owned()],
                }],
                ..SearchAnswer::default()
            });
        }
        let first = u64::from(request.page - 1) * u64::from(request.page_size);
        Ok(SearchAnswer {
            documents: (first..first + u64::from(request.page_size))
                .map(|index| hit(public_name, index))
                .collect(),
            total: 240,
            facets: vec![facet, truths],
            warnings: Vec::new(),
            took_ms: 12,
            execution_id: "exec_preview".to_owned(),
            ..SearchAnswer::default()
        })
    }

    async fn item(
        &self,
        public_name: &str,
        _: &Visitor,
        document_id: &str,
    ) -> Result<Option<Hit>, HostError> {
        let index = document_id
            .strip_prefix("doc_")
            .and_then(|index| index.parse().ok());
        Ok(index.map(|index| hit(public_name, index)))
    }

    async fn named(
        &self,
        public_name: &str,
        visitor: &Visitor,
        ids: &[String],
    ) -> Result<Vec<Hit>, HostError> {
        let mut found = Vec::new();
        for id in ids {
            found.extend(self.item(public_name, visitor, id).await?);
        }
        Ok(found)
    }

    async fn listed(&self) -> Result<Vec<Listed>, HostError> {
        Ok(Vec::new())
    }
}

/// A drawn picture: a gradient with a figure in it.
async fn picture(
    Path((index, height)): Path<(u64, u64)>,
) -> ([(header::HeaderName, &'static str); 1], String) {
    let hue = index * 47 % 360;
    let middle = height * 2 / 5;
    let svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 400 {height}' width='400' height='{height}'><defs><linearGradient id='g' x2='1' y2='1'>\
         <stop stop-color='hsl({hue} 45% 78%)'/><stop offset='1' stop-color='hsl({} 50% 52%)'/></linearGradient></defs>\
         <rect width='400' height='{height}' fill='url(#g)'/><circle cx='200' cy='{middle}' r='72' fill='hsl({hue} 40% 34%)'/>\
         <path d='M60 {height}a140 170 0 0 1 280 0z' fill='hsl({hue} 42% 28%)'/></svg>",
        (hue + 40) % 360
    );
    ([(header::CONTENT_TYPE, "image/svg+xml")], svg)
}

/// The style sheets one after the other, as the build would join them.
async fn style() -> ([(header::HeaderName, &'static str); 1], String) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../style/");
    let mut css = String::new();
    let mut files = vec![format!("{root}tokens.css"), format!("{root}base.css")];
    if let Ok(mut parts) = tokio::fs::read_dir(format!("{root}parts")).await {
        while let Ok(Some(part)) = parts.next_entry().await {
            files.push(part.path().to_string_lossy().into_owned());
        }
    }
    files[2..].sort();
    files.push(format!("{root}public.css"));
    for file in files {
        css.push_str(&tokio::fs::read_to_string(file).await.unwrap_or_default());
    }
    ([(header::CONTENT_TYPE, "text/css")], css)
}

/// The script, when `npm run build` in `sdk-js` has made it.
async fn script() -> ([(header::HeaderName, &'static str); 1], String) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk-js/dist/search.js");
    let script = tokio::fs::read_to_string(path).await.unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/javascript")], script)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let router = Router::new()
        .route("/pictures/{index}/{height}", get(picture))
        .route("/style.css", get(style))
        .route("/search.js", get(script))
        .merge(loupe_hosted::page::router(Arc::new(Preview)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:4173").await?;
    for name in NAMES {
        println!("http://localhost:4173/r/{name}");
    }
    axum::serve(listener, router).await?;
    Ok(())
}
