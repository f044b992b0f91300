//! `/docs`: the reference of the API, made from its description. One page of operations and one of models, complete without
//! scripts, nothing from elsewhere.

use std::sync::{Arc, OnceLock};

use axum::{
    Router,
    http::{HeaderName, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use loupe_wire::Value;
use minijinja::{Environment, context, value::Serde};
use serde::Serialize;

use crate::{
    app::App,
    error::{ApiError, Result},
    openapi::INTERFACE_VERSION,
    web,
};

const CSP: &str = "default-src 'none'; style-src 'self'; script-src 'self'; font-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEADERS: [(HeaderName, &str); 3] = [
    (header::CONTENT_SECURITY_POLICY, CSP),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// For servers whose console was not built: without the fonts, which are files of that build.
const PLAIN_STYLE: &str = concat!(
    include_str!("../../../style/tokens.css"),
    include_str!("../../../style/base.css"),
    include_str!("../../../style/docs.css"),
);

/// What the template shows as one foldable entry.
#[derive(Default, Serialize)]
struct Entry {
    id: String,
    label: String,
    heading: String,
    about: String,
    verb: String,
    level: String,
    example: String,
    parameters: Vec<Row>,
    body: Vec<Row>,
    answers: Vec<Row>,
    fields: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    kind: String,
    /// The model that the kind names.
    link: Option<String>,
    about: String,
}

#[derive(Serialize)]
struct Area {
    name: String,
    about: String,
    entries: Vec<Entry>,
}

pub fn router(app: &App) -> Router<App> {
    let pages = Arc::new(Pages {
        address: app.config().address(),
        operations: OnceLock::new(),
        models: OnceLock::new(),
    });
    let models = pages.clone();
    Router::new()
        .route("/docs", get(move || show(pages, Pages::operations)))
        .route("/docs/models", get(move || show(models, Pages::models)))
        .route(
            "/docs/style.css",
            get(|| file("text/css; charset=utf-8", plain_style())),
        )
        .route(
            "/docs/find.js",
            get(|| {
                let script = include_str!("find.js").to_owned();
                file("text/javascript; charset=utf-8", script)
            }),
        )
}

fn plain_style() -> String {
    let fonts = |line: &&str| !line.contains("url(\"fonts/");
    PLAIN_STYLE
        .lines()
        .filter(fonts)
        .collect::<Vec<_>>()
        .join("\n")
}

async fn file(kind: &'static str, text: String) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text)
}

async fn show(pages: Arc<Pages>, page: fn(&Pages) -> Result<String>) -> Result<Response> {
    // Made once, at the first look; that takes a moment of a processor.
    let text = tokio::task::spawn_blocking(move || page(&pages)).await;
    let text = text.map_err(ApiError::internal)??;
    Ok((HEADERS, Html(text)).into_response())
}

fn described() -> Result<Value> {
    serde_json::from_slice(&crate::openapi::text()).map_err(ApiError::internal)
}

struct Pages {
    address: String,
    operations: OnceLock<String>,
    models: OnceLock<String>,
}

impl Pages {
    fn operations(&self) -> Result<String> {
        if let Some(page) = self.operations.get() {
            return Ok(page.clone());
        }
        let document = described()?;
        let mut areas: Vec<Area> = Vec::new();
        for (path, item) in members(&document["paths"]) {
            for (method, operation) in members(item) {
                if !operation["responses"].is_object() {
                    continue;
                }
                let tag = &operation["tags"][0];
                let name = text(tag).replace('_', " ");
                let own = &item["servers"][0]["variables"]["app_url"]["default"];
                let entry = self.operation(&document, (own.as_str(), method, path), operation);
                match areas.iter_mut().find(|area| area.name == name) {
                    Some(area) => area.entries.push(entry),
                    None => {
                        let told = items(&document["tags"]).find(|one| one["name"] == *tag);
                        areas.push(Area {
                            name,
                            about: told
                                .map(|one| text(&one["description"]))
                                .unwrap_or_default(),
                            entries: vec![entry],
                        });
                    }
                }
            }
        }
        areas.sort_by(|one, other| one.name.cmp(&other.name));
        let page = self.render("The API", true, &areas)?;
        Ok(self.operations.get_or_init(|| page).clone())
    }

    fn models(&self) -> Result<String> {
        if let Some(page) = self.models.get() {
            return Ok(page.clone());
        }
        let document = described()?;
        let entries = members(&document["components"]["schemas"]).map(|(name, schema)| Entry {
            id: name.clone(),
            label: name.clone(),
            heading: name.clone(),
            about: text(&schema["description"]),
            fields: fields(schema),
            ..Entry::default()
        });
        let mut entries: Vec<Entry> = entries.collect();
        entries.sort_by(|one, other| one.id.cmp(&other.id));
        let areas = [Area {
            name: "Models".into(),
            about: String::new(),
            entries,
        }];
        let page = self.render("Models", false, &areas)?;
        Ok(self.models.get_or_init(|| page).clone())
    }

    fn render(&self, title: &str, is_reference: bool, areas: &[Area]) -> Result<String> {
        let mut templates = Environment::new();
        templates
            .add_template("page.html", include_str!("page.html"))
            .map_err(ApiError::internal)?;
        let style = web::asset("docs.css").unwrap_or_else(|| "/docs/style.css".into());
        let icon = web::asset("favicon.svg").unwrap_or_else(|| "data:,".into());
        let (version, address) = (INTERFACE_VERSION, self.address.as_str());
        let areas = minijinja::Value::from(Serde(areas));
        let template = templates.get_template("page.html");
        template
            .and_then(|template| {
                template
                    .render(context! { title, is_reference, areas, style, icon, version, address })
            })
            .map_err(ApiError::internal)
    }

    fn operation(
        &self,
        document: &Value,
        // A server of its own where it has one.
        (own, method, path): (Option<&str>, &str, &str),
        operation: &Value,
    ) -> Entry {
        let verb = method.to_uppercase();
        let body = members(&operation["requestBody"]["content"]).next();
        let parameters = items(&operation["parameters"]);
        let parameters = parameters.map(|one| parameter(referred(document, one)));
        let answers = members(&operation["responses"]);
        Entry {
            id: text(&operation["operationId"]),
            label: text(&operation["summary"])
                .split(['.', ';', ','])
                .next()
                .filter(|label| (1..60).contains(&label.len()))
                .map_or_else(|| format!("{verb} {path}"), ToOwned::to_owned),
            heading: path.to_owned(),
            about: text(&operation["summary"]),
            level: text(&operation["x-required-permission"]),
            example: self.example((own, &verb, path), operation, body.map(|(_, body)| body)),
            parameters: parameters.collect(),
            body: body.map_or_else(Vec::new, |(_, body)| {
                let name = text(&body["schema"]["$ref"]);
                let schema = document.pointer(name.trim_start_matches('#'));
                fields(schema.unwrap_or(&body["schema"]))
            }),
            answers: answers
                .map(|(status, told)| answer(status, referred(document, told)))
                .collect(),
            verb,
            fields: Vec::new(),
        }
    }

    /// The example of the description as a line for the shell.
    fn example(
        &self,
        (own, verb, path): (Option<&str>, &str, &str),
        operation: &Value,
        body: Option<&Value>,
    ) -> String {
        let mut path = path.to_owned();
        let mut query = Vec::new();
        for parameter in items(&operation["parameters"]) {
            let (name, example) = (text(&parameter["name"]), &parameter["example"]);
            match (parameter["in"].as_str(), example.is_null()) {
                (Some("path"), false) => {
                    path = path.replace(&format!("{{{name}}}"), &text(example));
                }
                (Some("query"), false) => query.push(format!("{name}={}", text(example))),
                _ => {}
            }
        }
        let mark = if query.is_empty() { "" } else { "?" };
        let mut lines = vec![format!(
            "curl -X {verb} '{}{path}{mark}{}'",
            own.unwrap_or(&self.address),
            query.join("&")
        )];
        if own.is_some() {
            lines.push("-b \"loupe_app=$SESSION\"".into());
        } else if let Some(needs) = items(&operation["security"]).next() {
            lines.push("-H \"Authorization: Bearer $LOUPE_KEY\"".into());
            if needs["namespace"].is_array() {
                lines.push("-H 'X-Namespace: ns_7Qm2Zk41Xw9LcT0bRfVd'".into());
            }
        }
        match body.map(|body| &body["example"]) {
            Some(Value::String(text)) => lines.push(format!("--data '{text}'")),
            Some(Value::Null) | None => {}
            Some(body) => {
                lines.push("-H 'Content-Type: application/json'".into());
                let body = serde_json::to_string_pretty(body).unwrap_or_default();
                // How a shell writes an apostrophe inside of apostrophes.
                lines.push(format!("-d '{}'", body.replace('\'', r"'\''")));
            }
        }
        lines.join(" \\\n  ")
    }
}

/// What a reference names; anything else is itself.
fn referred<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let name = value["$ref"].as_str().unwrap_or_default();
    let found = document.pointer(name.trim_start_matches('#'));
    found.filter(|_| !name.is_empty()).unwrap_or(value)
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The members of an object's schema, its parts included.
fn fields(schema: &Value) -> Vec<Row> {
    let required: Vec<&str> = items(&schema["required"])
        .filter_map(Value::as_str)
        .collect();
    let own = members(&schema["properties"]).map(|(name, member)| {
        let (kind, link) = kind(member);
        let required = if required.contains(&name.as_str()) {
            "Required. "
        } else {
            ""
        };
        let about = format!(
            "{required}{} {}",
            text(&member["description"]),
            limits(member)
        );
        Row {
            name: name.clone(),
            kind,
            link,
            about: about.trim().to_owned(),
        }
    });
    let mut rows: Vec<Row> = own.collect();
    for part in ["allOf", "oneOf", "anyOf"] {
        for (index, one) in items(&schema[part]).enumerate() {
            if one["$ref"].is_null() {
                rows.extend(fields(one));
            } else {
                let (kind, link) = kind(one);
                rows.push(Row {
                    name: format!("{part} {}", index + 1),
                    kind,
                    link,
                    about: String::new(),
                });
            }
        }
    }
    if rows.is_empty() {
        let (kind, link) = kind(schema);
        rows.push(Row {
            name: "value".into(),
            kind,
            link,
            about: limits(schema),
        });
    }
    rows
}

fn limits(schema: &Value) -> String {
    let words = [
        ("minLength", "at least", "characters"),
        ("maxLength", "at most", "characters"),
        ("minItems", "at least", "items"),
        ("maxItems", "at most", "items"),
        ("minimum", "from", ""),
        ("maximum", "to", ""),
        ("default", "default", ""),
    ];
    let said = words
        .iter()
        .filter(|(name, ..)| !schema[*name].is_null())
        .map(|(name, before, after)| format!("{before} {} {after}", text(&schema[*name])));
    let said: Vec<String> = said.map(|one| one.trim_end().to_owned()).collect();
    said.join(", ")
}

fn parameter(parameter: &Value) -> Row {
    let (kind, link) = kind(&parameter["schema"]);
    let required = if parameter["required"] == true {
        "Required. "
    } else {
        ""
    };
    let (about, limits) = (
        text(&parameter["description"]),
        limits(&parameter["schema"]),
    );
    let told = format!("{required}{about} {limits}");
    Row {
        name: text(&parameter["name"]),
        kind: format!("{kind}, {}", text(&parameter["in"])),
        link,
        about: told.trim_end().to_owned(),
    }
}

fn answer(status: &str, answer: &Value) -> Row {
    let content = members(&answer["content"]).next();
    let (kind, link) = match content {
        Some((kind, content)) if content["schema"].is_null() => (kind.clone(), None),
        Some((_, content)) => kind(&content["schema"]),
        None => ("no body".to_owned(), None),
    };
    let about = text(&answer["description"]);
    Row {
        name: status.to_owned(),
        kind,
        link,
        about: if status.starts_with('2') && about.is_empty() {
            "Done".into()
        } else {
            about
        },
    }
}

/// How a type is called, and the model that it is.
fn kind(schema: &Value) -> (String, Option<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return (name.to_owned(), Some(name.to_owned()));
    }
    let all = items(&schema["allOf"]);
    let variants = items(&schema["oneOf"])
        .chain(items(&schema["anyOf"]))
        .chain(all);
    let mut variants = variants.filter(|one| one["type"] != "null");
    if let Some(first) = variants.next() {
        return kind(first);
    }
    if !schema["enum"].is_null() {
        let words: Vec<String> = items(&schema["enum"]).map(text).collect();
        return (words.join(" | "), None);
    }
    let name = match &schema["type"] {
        Value::Array(types) => {
            let types: Vec<String> = types.iter().map(text).collect();
            types
                .into_iter()
                .find(|one| one != "null")
                .unwrap_or_default()
        }
        one => text(one),
    };
    match name.as_str() {
        "" => ("anything".into(), None),
        "array" => {
            let (of, link) = kind(&schema["items"]);
            (format!("list of {of}"), link)
        }
        _ => (name, None),
    }
}
