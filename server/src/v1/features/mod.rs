//! Search by one feature, without a retriever.

mod routes;

use loupe_wire::{
    FeatureSearchQuery, FeatureSearchRequest, NamespaceOperation, Object, ResourceType,
    RetrieverModelOutput, RetrieverPagination, ScrollPaginationParams, StageConfigInput, Value,
    reading,
};
use serde_json::json;

pub use routes::router;

use super::{
    collections::{self, COLLECTIONS},
    retrievers::{self, Execute},
};
use crate::{
    app::App,
    auth::{Read, Scope},
    error::{ApiError, Result, Violation},
};

/// What a feature given without its own name stands for: the extractor's one.
const ANY: &str = "/embedding";

/// The input that the query is read from.
const ASKED: &str = "asked";

/// The nearest documents of the collections that have the feature.
pub async fn search(
    app: &App,
    scope: &Scope<Read>,
    request: FeatureSearchRequest,
) -> Result<Object> {
    let feature = request.feature_uri.strip_suffix(ANY);
    let feature = feature.unwrap_or(&request.feature_uri);
    let (query, asked) = asked(&request.query)?;
    let search = json!({"feature_uri": feature, "query": query, "top_k": request.top_k});
    let parameters = json!({"searches": [search], "final_top_k": request.top_k});
    let stage = json!({"stage_name": "feature_search", "stage_type": "filter",
        "config": {"stage_id": "feature_search", "parameters": parameters}});
    let stage: StageConfigInput = reading::from_value(&stage).map_err(ApiError::internal)?;
    let retriever = RetrieverModelOutput {
        retriever_name: "feature search".into(),
        collection_ids: reach(app, scope, request.collection_identifiers).await?,
        stages: vec![retrievers::stage_output(stage)],
        input_schema: reading::from_value(&json!({ASKED: {"type": "text"}}))
            .map_err(ApiError::internal)?,
        ..Default::default()
    };
    let inputs = asked.map(|text| (ASKED.to_owned(), Value::from(text)));
    let ask = Execute {
        inputs: inputs.into_iter().collect(),
        filters: request.filters,
        pagination: Some(RetrieverPagination::Scroll(ScrollPaginationParams {
            limit: request.top_k,
            ..Default::default()
        })),
        unrecorded: true,
        ..Default::default()
    };
    let answer = retrievers::execute(app, scope, &retriever, ask).await?;
    let told = json!({
        "feature_uri": request.feature_uri, "results": *answer.documents, "total": answer.documents.len(),
        "degraded": answer.degraded, "warnings": answer.warnings, "budget": answer.budget,
    });
    Ok(told.as_object().cloned().unwrap_or_default())
}

/// The collections that are named, or all that the caller may read.
async fn reach(app: &App, scope: &Scope<Read>, named: Option<Vec<String>>) -> Result<Vec<String>> {
    let kind = ResourceType::Collection;
    let operation = NamespaceOperation::ReadData;
    let Some(named) = named.filter(|named| !named.is_empty()) else {
        let all = COLLECTIONS.all(app.db(), &scope.namespace_id).await?;
        let ids = all.into_iter().map(|collection| collection.id);
        return Ok(ids
            .filter(|id| scope.caller.covers(kind, id, operation))
            .collect());
    };
    let found = collections::resolve(app, &scope.namespace_id, &named).await?;
    let ids = found.iter().filter_map(|one| one.collection_id.clone());
    let ids: Vec<String> = ids.collect();
    for id in &ids {
        scope.caller.allow(kind, id, operation)?;
    }
    Ok(ids)
}

/// The query in the words of a search stage, and the input that it reads: sent words are no template.
fn asked(query: &FeatureSearchQuery) -> Result<(Value, Option<String>)> {
    let read = format!("{{{{INPUT.{ASKED}}}}}");
    let missing = |member: &str| {
        let msg = format!("input_mode {} takes `{member}`", query.input_mode);
        ApiError::from(Violation::body(
            &["query", member],
            "missing",
            msg,
            Value::Null,
        ))
    };
    let given = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
    Ok(match query.input_mode.as_str() {
        "text" => {
            let text = given(&query.text).ok_or_else(|| missing("text"))?;
            (json!({"input_mode": "text", "value": read}), Some(text))
        }
        "vector" => {
            let vector = query.vector.clone().ok_or_else(|| missing("vector"))?;
            (json!({"input_mode": "vector", "value": vector}), None)
        }
        "image" => {
            let image = given(&query.image).ok_or_else(|| missing("image"))?;
            let value = json!({ "base64": read });
            (
                json!({"input_mode": "content", "value": value}),
                Some(image),
            )
        }
        "url" => {
            let url = given(&query.url).ok_or_else(|| missing("url"))?;
            (
                json!({"input_mode": "content", "value": {"url": read}}),
                Some(url),
            )
        }
        other => {
            let msg = "input_mode is text, vector, image or url";
            let sent = Value::from(other);
            return Err(Violation::body(&["query", "input_mode"], "enum", msg, sent).into());
        }
    })
}
