//! The display configuration: generated where the owner sent none, completed where it sent some.

use loupe_engine::store::ListQuery;
use loupe_wire::{
    ComponentsConfig, DisplayConfig, InputRenderingConfig, Object, ResultCardProperties,
    RetrieverMetadata, RetrieverModelOutput, SEOConfig, Value,
};
use serde_json::json;

use super::{media, retrievers};
use crate::{
    app::App,
    auth::{Level, Scope},
    error::{ApiError, Result, Violation},
};

/// Fields of extractors that make poor reading.
const DULL: [&str; 6] = [
    "_internal",
    "chunk_index",
    "total_chunks",
    "processing_time_ms",
    "thumbnail_url",
    "features",
];

/// A page from the retriever alone: its inputs, and the fields of one of its documents.
pub(super) async fn generate<L: Level>(
    app: &App,
    scope: &Scope<L>,
    retriever: &RetrieverModelOutput,
    title: &str,
) -> Result<DisplayConfig> {
    let reach = scope.reach(retriever.collection_ids.clone());
    let page = app
        .store()
        .list(
            &reach,
            ListQuery {
                limit: 1,
                ..Default::default()
            },
        )
        .await?;
    let sample = page
        .documents
        .into_iter()
        .next()
        .map(|document| document.payload)
        .unwrap_or_default();
    let mut exposed: Vec<String> = sample
        .keys()
        .filter(|name| !DULL.contains(&name.as_str()))
        .take(8)
        .cloned()
        .collect();
    if exposed.is_empty() {
        exposed.push("text".into());
    }
    // What visitors play, or open at what was found.
    let files = media::fields(&sample);
    let new = files.into_iter().filter(|name| !exposed.contains(name));
    exposed.extend(new.collect::<Vec<_>>());
    Ok(DisplayConfig {
        title: title.to_owned(),
        description: retriever.description.clone(),
        inputs: inputs(retriever),
        components: Some(ComponentsConfig {
            result_card: Some(ResultCardProperties::default()),
            ..Default::default()
        }),
        exposed_fields: exposed,
        ..Default::default()
    })
}

/// One control for each input of the schema.
fn inputs(retriever: &RetrieverModelOutput) -> Vec<InputRenderingConfig> {
    let control =
        |(order, (name, field)): (usize, (&String, &loupe_wire::RetrieverInputSchemaField))| {
            let mut label = name.replace('_', " ");
            if let Some(first) = label.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            InputRenderingConfig {
                field_name: name.clone(),
                field_schema: field.clone(),
                input_type: loupe_hosted::page::drawn_as(field).into(),
                label,
                placeholder: field.description.clone(),
                required: field.required.unwrap_or(false),
                order: i64::try_from(order).unwrap_or(0),
                ..Default::default()
            }
        };
    retriever
        .input_schema
        .iter()
        .enumerate()
        .map(control)
        .collect()
}

/// Rules that the declared limits do not say. A retriever without a schema takes any input.
pub(super) fn check(display: &DisplayConfig, retriever: &RetrieverModelOutput) -> Result<()> {
    let known = &retriever.input_schema;
    for (number, input) in display.inputs.iter().enumerate() {
        let name = &input.field_name;
        if !known.is_empty() && !known.contains_key(name) {
            let number = number.to_string();
            let path = ["display_config", "inputs", &number, "field_name"];
            let msg = format!("'{name}' is no input of the retriever");
            return Err(Violation::body(&path, "value_error", msg, json!(name)).into());
        }
    }
    for field in display.field_config.keys() {
        if !display.exposed_fields.contains(field) {
            let msg = format!("'{field}' is formatted but not among exposed_fields");
            return Err(Violation::body(
                &["display_config", "field_config", field],
                "value_error",
                msg,
                Value::Null,
            )
            .into());
        }
    }
    let mut faults = format_faults(display);
    let of_template = loupe_hosted::page::template_faults(display).into_iter();
    faults.extend(of_template.map(|fault| {
        let path = ["display_config"].into_iter();
        let path: Vec<&str> = path.chain(fault.path.iter().map(String::as_str)).collect();
        Violation::body(&path, "value_error", fault.message, Value::Null)
    }));
    match faults.is_empty() {
        true => Ok(()),
        false => Err(ApiError::Validation(faults)),
    }
}

/// What of a configuration says nothing on a page: one sentence each, for its owner.
pub(super) fn doubts(display: &DisplayConfig, retriever: &RetrieverModelOutput) -> Vec<String> {
    let mut doubts = loupe_hosted::page::doubts(display);
    let written = retrievers::written_to(&retriever.stages);
    let hidden = written.filter(|field| !display.exposed_fields.contains(field));
    doubts.extend(hidden.map(|field| {
        format!("a stage writes its text to '{field}', which is not among exposed_fields: the page does not show it")
    }));
    doubts
}

/// Numbers of formats that are too small: the declared limits do not reach into a map.
fn format_faults(display: &DisplayConfig) -> Vec<Violation> {
    let mut faults = Vec::new();
    for (field, config) in &display.field_config {
        let Some(options) = &config.format_options else {
            continue;
        };
        for (member, value, least) in [
            ("truncate_chars", options.truncate_chars, 1),
            ("width", options.width, 1),
            ("height", options.height, 1),
            ("decimals", options.decimals, 0),
            ("max_items", options.max_items, 1),
        ] {
            let Some(value) = value.filter(|value| *value < least) else {
                continue;
            };
            let path = [
                "display_config",
                "field_config",
                field,
                "format_options",
                member,
            ];
            let msg = format!("input should be greater than or equal to {least}");
            let mut fault = Violation::body(&path, "greater_than_equal", msg, json!(value));
            fault.ctx = json!({ "ge": least });
            faults.push(fault);
        }
    }
    faults
}

/// What a publication says of itself beside how it looks.
pub(super) struct About<'a> {
    pub description: Option<&'a str>,
    pub tags: &'a [String],
    /// None where the owner keeps it to themselves.
    pub metadata: Option<&'a RetrieverMetadata>,
}

/// Fills in what publishing fills in: search-engine fields and, unless the owner keeps it to themselves, the configuration that
/// the page shows.
pub(super) fn complete(
    mut display: DisplayConfig,
    retriever: &RetrieverModelOutput,
    about: &About<'_>,
) -> DisplayConfig {
    if display.inputs.is_empty() {
        display.inputs = inputs(retriever);
    }
    if display.description.is_none() {
        display.description = about
            .description
            .map(ToOwned::to_owned)
            .or_else(|| retriever.description.clone());
    }
    display.seo = Some(told(&display, retriever, about));
    display.retriever_config = about.metadata.map(|_| configuration(retriever));
    display
}

/// What search engines and link previews are told: what the owner says, else what title, description and metadata say.
pub(super) fn told(
    display: &DisplayConfig,
    retriever: &RetrieverModelOutput,
    about: &About<'_>,
) -> SEOConfig {
    let cut = |text: &str, most: usize| text.chars().take(most).collect::<String>();
    let mut seo = display.seo.clone().unwrap_or_default();
    seo.meta_title
        .get_or_insert_with(|| cut(&display.title, 60));
    if seo.meta_description.is_none() {
        let own = display.description.clone();
        let own = own.filter(|text| !text.trim().is_empty());
        let text = own.unwrap_or_else(|| sentence(&display.title, about.metadata));
        seo.meta_description = Some(cut(&text, 160));
    }
    if seo.keywords.is_empty() {
        seo.keywords.clone_from(&retriever.tags);
        let own = about
            .tags
            .iter()
            .filter(|tag| !retriever.tags.contains(tag));
        seo.keywords.extend(own.cloned());
    }
    seo
}

/// What a page is for, where nobody has said it.
fn sentence(title: &str, metadata: Option<&RetrieverMetadata>) -> String {
    let collections = metadata.into_iter().flat_map(|all| &all.collections);
    let names: Vec<&str> = collections
        .filter_map(|one| one.get("collection_name")?.as_str())
        .collect();
    match names.is_empty() {
        true => format!("Search {title}"),
        false => format!("Search {title}: {}", names.join(", ")),
    }
}

/// What a page tells of the retriever behind it.
pub(super) fn configuration(retriever: &RetrieverModelOutput) -> Object {
    let stages: Vec<Value> = retriever
        .stages
        .iter()
        .map(|stage| json!({"stage_name": stage.stage_name, "stage_id": stage.config.get("stage_id")}))
        .collect();
    let features: Vec<Value> = retriever
        .feature_dependencies
        .iter()
        .flatten()
        .map(|feature| json!({"extractor": feature.extractor, "version": feature.version, "output": feature.output}))
        .collect();
    Object::from_iter([
        ("stages".to_owned(), json!(stages)),
        ("feature_extractors".to_owned(), json!(features)),
    ])
}
