//! What another owner is told of the retriever behind a page, to build the same.

use loupe_engine::filter::Filter;
use loupe_wire::{Object, PublicRetrieverTemplateResponse, StageConfigOutput, Value};
use serde_json::json;

use super::{Open, publishing, retrievers};
use crate::{app::App, error::Result, v1::retrievers::cast};

/// Members of stages that hold conditions on documents.
const CONDITIONS: [&str; 5] = [
    "conditions",
    "filters",
    "pre_filters",
    "post_filters",
    "when",
];

/// What another owner needs to build the same page.
///
/// # Errors
/// The stages cannot be told.
pub fn template(app: &App, open: Open) -> Result<PublicRetrieverTemplateResponse> {
    let stages = open.stages_told()?;
    let retriever = open.retriever;
    let collections = open.published.retriever_metadata;
    let collections = collections.map(|metadata| metadata.collections);
    let collections = collections.unwrap_or_default();
    let name = |collection: &Object| {
        let name = collection.get("collection_name")?.as_str()?;
        Some(name.to_owned())
    };
    Ok(PublicRetrieverTemplateResponse {
        retriever_name: retriever.retriever_name.clone(),
        description: retriever.description.clone(),
        collection_identifiers: collections.iter().filter_map(name).collect(),
        stages,
        input_schema: retriever.input_schema.clone(),
        budget_limits: retriever
            .budget_limits
            .as_ref()
            .map(cast)
            .transpose()?
            .unwrap_or_default(),
        tags: retriever.tags.clone(),
        display_config: Some(open.published.display_config),
        source_public_url: publishing::public_url(app, &open.published.public_name),
        source_public_name: open.published.public_name,
        feature_extractors: Some(collections),
    })
}

impl Open {
    /// The stages, as others are told them. Who keeps the metadata to themselves keeps these too.
    fn stages_told(&self) -> Result<Vec<Object>> {
        if self.published.retriever_metadata.is_none() {
            return Ok(Vec::new());
        }
        let stages = self.retriever.stages.iter();
        stages.map(|stage| self.stage_told(stage)).collect()
    }

    /// A stage as it is where it works on its own with what visitors see; of any other its name and its kind. Whom it asks, with
    /// which words and in whose name, and what is in fields that nobody is shown, is its owner's to know.
    fn stage_told(&self, stage: &StageConfigOutput) -> Result<Object> {
        let mut parameters = stage.config.values();
        if retrievers::is_own(stage) && !parameters.any(|one| self.asks_hidden(one)) {
            return cast(stage);
        }
        let told = json!({
            "stage_name": stage.stage_name,
            "stage_type": stage.stage_type,
            "config": {"stage_id": stage.config.get("stage_id")},
        });
        Ok(told.as_object().cloned().unwrap_or_default())
    }

    /// Whether there is a condition in it on a field that visitors are not shown: it tells what is in there.
    fn asks_hidden(&self, written: &Value) -> bool {
        let members = match written {
            Value::Array(items) => return items.iter().any(|one| self.asks_hidden(one)),
            Value::Object(members) => members,
            _ => return false,
        };
        let is_condition = members.contains_key("operator") || members.contains_key("value");
        let field = members.get("field").filter(|_| is_condition);
        field.is_some_and(|field| !self.shows(field))
            || members.iter().any(|(name, member)| match name.as_str() {
                name if CONDITIONS.contains(&name) => self.is_on_hidden(member),
                _ => self.asks_hidden(member),
            })
    }

    fn is_on_hidden(&self, conditions: &Value) -> bool {
        if conditions.is_null() {
            return false;
        }
        let Ok(filter) = Filter::parse(conditions) else {
            return true;
        };
        let mut is_on_hidden = false;
        filter.for_each_condition(&mut |one| {
            is_on_hidden |= !self.shows(&Value::from(one.field.as_str()));
        });
        is_on_hidden
    }
}
