//! What somebody who has typed so much may want: values of documents, collections, and what was searched for lately.

use std::collections::HashSet;

use axum::{extract::State, http::request::Parts};
use loupe_wire::{
    NamespaceOperation, ResourceType, TypeaheadCollectionSuggestion, TypeaheadResponse,
    TypeaheadValueSuggestion, Value,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::store;
use crate::{
    app::App,
    auth::{Read, Scope},
    error::{ApiError, Result, Violation},
    json::Json,
    list,
    openapi::routes,
    v1::collections::{COLLECTIONS, lifecycle::is_away},
};

/// Fields that are looked into where none are named, and most that may be.
const FIELDS: [&str; 3] = ["title", "name", "tags"];
const MOST_FIELDS: usize = 5;
/// Values that are counted of one field.
const COUNTED: usize = 5_000;
/// Executions whose queries are looked through.
const RECENT: i64 = 500;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_typeahead))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct TypeaheadQuery {
    /// What was typed: 1 to 200 characters.
    q: String,
    /// Fields whose values are offered, between commas: up to 5. Default: title, name, tags.
    fields: Option<String>,
    /// 1 to 50, default 10.
    limit: Option<i64>,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for TypeaheadQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        list::query(parts).await
    }
}

/// What completes a search that is being typed.
#[utoipa::path(get, path = "/v1/retrievers/typeahead", tag = "retrievers", params(TypeaheadQuery), responses((status = 200, body = TypeaheadResponse)))]
async fn get_typeahead(
    State(app): State<App>,
    scope: Scope<Read>,
    query: TypeaheadQuery,
) -> Result<Json<TypeaheadResponse>> {
    let (typed, most) = (typed(&query)?, most(&query)?);
    let (fields, warnings) = fields(query.fields.as_deref());
    let records = COLLECTIONS.all(app.db(), &scope.namespace_id).await?;
    let (kind, operation) = (ResourceType::Collection, NamespaceOperation::ReadData);
    let readable: Vec<_> = records
        .into_iter()
        .filter(|one| scope.caller.covers(kind, &one.id, operation))
        .collect();
    let here = readable.iter().filter(|one| !is_away(one));
    let ids = here.map(|one| one.id.clone()).collect();
    let values = values(&app, &scope, ids, &fields, &typed, most).await?;
    let collections = readable
        .into_iter()
        .filter(|one| begins(&one.data.0.collection_name, &typed))
        .take(most)
        .map(|one| TypeaheadCollectionSuggestion {
            collection_id: one.id,
            collection_name: one.data.0.collection_name,
        })
        .collect();
    let recent_searches = recent(&app, &scope, &typed, most).await?;
    Ok(Json(TypeaheadResponse {
        query: typed,
        suggestions: suggestions(&recent_searches, &values, most),
        values,
        collections,
        recent_searches,
        warnings,
    }))
}

fn typed(query: &TypeaheadQuery) -> Result<String> {
    let typed = query.q.trim();
    if typed.is_empty() || typed.chars().count() > 200 {
        let msg = "must have 1 to 200 characters";
        return Err(Violation::query("q", "string_length", msg, query.q.clone().into()).into());
    }
    Ok(typed.to_owned())
}

/// How many of each kind are answered.
fn most(query: &TypeaheadQuery) -> Result<usize> {
    let limit = query.limit.unwrap_or(10);
    if !(1..=50).contains(&limit) {
        let msg = "must be between 1 and 50";
        return Err(Violation::query("limit", "out_of_range", msg, limit.into()).into());
    }
    Ok(limit as usize)
}

/// What was searched for lately before what documents have, each text once.
fn suggestions(recent: &[String], values: &[TypeaheadValueSuggestion], most: usize) -> Vec<String> {
    let mut seen = HashSet::new();
    recent
        .iter()
        .chain(values.iter().map(|one| &one.value))
        .filter(|text| seen.insert(text.to_lowercase()))
        .take(most)
        .cloned()
        .collect()
}

fn fields(named: Option<&str>) -> (Vec<String>, Vec<String>) {
    let named: Vec<String> = named
        .into_iter()
        .flat_map(|list| list.split(','))
        .map(|field| field.trim().to_owned())
        .filter(|field| !field.is_empty() && field.len() <= 200)
        .collect();
    if named.is_empty() {
        return (FIELDS.map(ToOwned::to_owned).to_vec(), Vec::new());
    }
    let mut warnings = Vec::new();
    if named.len() > MOST_FIELDS {
        warnings.push(format!(
            "only the first {MOST_FIELDS} fields were looked into"
        ));
    }
    (named.into_iter().take(MOST_FIELDS).collect(), warnings)
}

/// Whether a text, or a word in it, begins as what was typed.
fn begins(text: &str, typed: &str) -> bool {
    let (text, typed) = (text.to_lowercase(), typed.to_lowercase());
    text.match_indices(&typed).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric())
    })
}

/// Values of the caller's documents that begin as typed, the commonest first.
async fn values(
    app: &App,
    scope: &Scope<Read>,
    collection_ids: Vec<String>,
    fields: &[String],
    typed: &str,
    most: usize,
) -> Result<Vec<TypeaheadValueSuggestion>> {
    if collection_ids.is_empty() {
        return Ok(Vec::new());
    }
    let reach = scope.reach(collection_ids);
    let mut found = Vec::new();
    for field in fields {
        let counts = app.store().facet(&reach, None, field, COUNTED);
        for one in counts.await? {
            let Value::String(value) = one.value else {
                continue;
            };
            if value.chars().count() <= 200 && begins(&value, typed) {
                found.push(TypeaheadValueSuggestion {
                    field: field.clone(),
                    value,
                    count: i64::try_from(one.count).unwrap_or(i64::MAX),
                });
            }
        }
    }
    found.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
    found.truncate(most);
    Ok(found)
}

/// What was searched for lately in the namespace. An end user is told nothing of the searches of others.
async fn recent(app: &App, scope: &Scope<Read>, typed: &str, most: usize) -> Result<Vec<String>> {
    if scope.caller.principal().is_some() {
        return Ok(Vec::new());
    }
    let (kind, operation) = (ResourceType::Retriever, NamespaceOperation::ReadData);
    let rows = store::recent_executions(app.db(), &scope.namespace_id, RECENT).await?;
    let mut seen = HashSet::new();
    let texts = rows.into_iter().filter_map(|(retriever, data)| {
        let text = data.get("query_summary")?.as_str()?.trim().to_owned();
        let told = begins(&text, typed) && scope.caller.covers(kind, &retriever, operation);
        (told && seen.insert(text.to_lowercase())).then_some(text)
    });
    Ok(texts.take(most).collect())
}
