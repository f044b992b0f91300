//! What strangers may do with a published retriever: read its configuration and search it. Only exposed fields leave.

mod beacon;
mod counts;
mod door;
mod host;
mod items;
mod parts;
mod ranked;
mod routes;
mod template;
mod written;

use std::sync::Arc;

use loupe_wire::{
    APIKeyModel, APIKeyType, DegradedEntry, ExecuteRetrieverResponse, Object, PageTab, Permission,
    PublicExecuteResponse, PublishedRetrieverResponse, ResourceScope, ResourceType,
    RetrieverModelOutput, RetrieverPagination, TaxonomyPathNode, Value,
};

use serde_json::json;

pub use door::Proof;
pub use host::PageHost;
pub use routes::{config, router, search, verify};
pub use template::template;

use super::{
    collections, documents,
    publishing::{self, Published},
    retrievers::{self, Answered, Execute, RETRIEVERS, Source},
    taxonomies::{self, TAXONOMIES},
};
use crate::{
    app::App,
    auth::{Caller, Read, Scope},
    db::Record,
    error::{ApiError, Result, Violation},
    front,
    limits::{self, quota},
    list, usage,
};

/// Members that every result has.
const IDS: [&str; 2] = ["document_id", "collection_id"];

/// An active publication, ready to run.
pub struct Open {
    pub published: PublishedRetrieverResponse,
    pub retriever: Arc<Record<RetrieverModelOutput>>,
    scope: Scope<Read>,
}

/// The publication of this name if it is open for this visitor.
///
/// # Errors
/// 404 for what does not exist for strangers, 401 for what is locked.
pub async fn open(app: &App, public_name: &str, proof: &Proof) -> Result<Open> {
    let Published {
        org_id,
        namespace_id,
        data,
        ..
    } = door::enter(app, public_name, proof).await?;
    let published = data.0;
    let retriever = RETRIEVERS
        .known(app.db(), &namespace_id, &published.retriever_id)
        .await?;
    let scope = Scope::internal(stranger(&org_id, &published.retriever_id), namespace_id);
    Ok(Open {
        published,
        retriever,
        scope,
    })
}

/// What is wrong with a search is its owner's to know, by the names of stages and collections; strangers learn that something is.
fn for_strangers(
    public_name: &str,
    warnings: &[String],
    degraded: &[DegradedEntry],
) -> Vec<String> {
    let reasons = degraded.iter().map(|entry| &entry.reason);
    for warning in warnings.iter().chain(reasons) {
        tracing::warn!(public_name, warning, "a public search warned");
    }
    let some = !warnings.is_empty() || !degraded.is_empty();
    let told = some.then(|| "the results may not be all there are".to_owned());
    told.into_iter().collect()
}

/// Searches of a page run as a caller that may read this one retriever and nothing else.
fn stranger(org_id: &str, retriever_id: &str) -> Caller {
    let scope = ResourceScope {
        resource_type: ResourceType::Retriever,
        resource_id: retriever_id.to_owned(),
        operations: None,
    };
    let key = APIKeyModel {
        internal_id: org_id.to_owned(),
        organization_id: Some(org_id.to_owned()),
        key_type: APIKeyType::Retriever,
        name: "public page".into(),
        permissions: vec![Permission::Read],
        scopes: vec![scope],
        ..Default::default()
    };
    Caller::internal(key)
}

/// Whether an input says something.
fn is_said(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

/// Whether any of them does.
fn is_asked(inputs: &Object) -> bool {
    inputs.values().any(is_said)
}

/// Whether nobody searches anew: what is behind the first page of results, and a page that was not asked anything.
fn looks_on(ask: &Execute) -> bool {
    let filters = ask.filters.as_ref();
    let is_asked = is_asked(&ask.inputs) || filters.is_some_and(|filters| !filters.is_empty());
    let is_behind = match &ask.pagination {
        None => false,
        Some(RetrieverPagination::Offset(one)) => one.page_number > 1,
        Some(RetrieverPagination::Cursor(one)) => one.cursor.is_some(),
        Some(RetrieverPagination::Scroll(one)) => one.scroll_id.is_some(),
        Some(RetrieverPagination::Keyset(one)) => one.after.is_some(),
    };
    is_behind || !is_asked
}

impl Open {
    /// A tab of an app: its retriever, cut down to what the tab exposes.
    ///
    /// # Errors
    /// The retriever does not exist.
    pub async fn of_tab(
        app: &App,
        org_id: &str,
        namespace_id: String,
        retriever_id: &str,
        (app_id, tab): (&str, &PageTab),
    ) -> Result<Self> {
        let retriever = RETRIEVERS
            .known(app.db(), &namespace_id, retriever_id)
            .await?;
        let published = PublishedRetrieverResponse {
            public_id: format!("{app_id} {}", tab.tab_id),
            retriever_id: retriever_id.to_owned(),
            display_config: tab.display_config.clone(),
            ..Default::default()
        };
        let scope = Scope::internal(stranger(org_id, retriever_id), namespace_id);
        Ok(Self {
            published,
            retriever,
            scope,
        })
    }

    /// Whose publication it is.
    pub fn org_id(&self) -> &str {
        &self.scope.caller.org_id
    }

    /// The namespace that its retriever is in.
    pub fn namespace_id(&self) -> &str {
        &self.scope.namespace_id
    }

    /// Runs the retriever and cuts every document down to what is exposed.
    ///
    /// # Errors
    /// As an execution.
    pub async fn execute(
        &self,
        app: &App,
        mut ask: Execute,
    ) -> Result<(PublicExecuteResponse, Answered)> {
        // What a page looks up beside an item was let in with the item.
        if !ask.unnoted {
            self.take(app)?;
        }
        self.check_filters(ask.filters.as_ref())?;
        ask.expand.clear();
        ask.looks_on = looks_on(&ask);
        // What an owner tries out is no search of visitors.
        if !publishing::is_preview(&self.published) {
            ask.public_id.clone_from(&self.published.public_id);
        }
        ask.vectors = false;
        // A sentence that becomes a filter is one on these alone, too.
        let exposed = &self.published.display_config.exposed_fields;
        ask.shown = Some(exposed.as_slice().into());
        ask.counted.retain(|field| self.shows(&json!(field)));
        ask.limit = self.window(&ask);
        ask.pagination = self.without_score(retrievers::without_position(ask.pagination));
        // Only what is exposed is told.
        let inputs = std::mem::take(&mut ask.highlights).then(|| ask.inputs.clone());
        let is_search = !ask.unnoted && !publishing::is_preview(&self.published);
        let mut answered = retrievers::answer(app, &self.scope, &self.retriever, ask).await?;
        // Strangers' searches are the owner's to pay for, but those that are answered from memory.
        if answered.mark.source != Source::Kept && is_search {
            usage::count_public(app, self.org_id(), &self.published.retriever_id);
        }
        let mut shown = self.cut(&answered.answer);
        if let Some(inputs) = inputs {
            shown.highlights = retrievers::highlights(&inputs, &shown.documents);
        }
        let beside = (
            &shown.pagination,
            &shown.facets,
            &shown.status,
            &shown.warnings,
            &shown.highlights,
        );
        answered.mark.tag = retrievers::tag_of(&shown.documents, &beside);
        Ok((shown, answered))
    }

    /// What strangers are shown of an answer: that something is missing, never what.
    fn cut(&self, answer: &ExecuteRetrieverResponse) -> PublicExecuteResponse {
        let is_shown = |facet: &&Object| facet.get("key").is_some_and(|key| self.shows(key));
        let documents = answer.documents.iter();
        PublicExecuteResponse {
            execution_id: answer.execution_id.clone(),
            status: answer.status.clone(),
            documents: documents.map(|one| self.show_result(one)).collect(),
            pagination: self.hide_score(retrievers::hide_position(answer.pagination.clone())),
            facets: answer.facets.iter().filter(is_shown).cloned().collect(),
            warnings: for_strangers(
                &self.published.public_name,
                &answer.warnings,
                &answer.degraded,
            ),
            highlights: Object::new(),
        }
    }

    /// The places of a taxonomy that the retriever's stages look into; none for any other taxonomy. Counts as a search.
    ///
    /// # Errors
    /// The page's limit; the store or the database does not answer.
    pub async fn tree(
        &self,
        app: &App,
        taxonomy_id: &str,
    ) -> Result<Option<Vec<TaxonomyPathNode>>> {
        let retriever = &self.retriever.data.0;
        let stages = retrievers::stage_inputs(&retriever.stages);
        let plan = retrievers::compile(&stages, &retriever.input_schema)?;
        for named in plan.taxonomies() {
            let found = TAXONOMIES.known(app.db(), &self.scope.namespace_id, &named);
            match found.await {
                Ok(found) if found.id == taxonomy_id => {
                    self.take(app)?;
                    // It reads as much as a search, and takes its turn and its share of the budget as one.
                    quota::check_spend(app, self.org_id()).await?;
                    let _turn = app.turns.take().await?;
                    let places = taxonomies::nodes::of(app, &self.scope.namespace_id, &found);
                    return places.await.map(Some);
                }
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Takes one search of the page's limit and of the visitor's.
    fn take(&self, app: &App) -> Result<()> {
        let limit = &self.published.rate_limit_config;
        limits::page::take_page(app, &self.published.public_id, limit, front::address())
    }

    /// A condition on a field tells what is in it: visitors may ask about what they are shown.
    fn check_filters(&self, filters: Option<&Object>) -> Result<()> {
        let Some(sent) = filters.filter(|filters| !filters.is_empty()) else {
            return Ok(());
        };
        let filter = list::parse_filter(&Value::Object(sent.clone()), "filters")?;
        let mut faults = Vec::new();
        filter.for_each_condition(&mut |condition| {
            let field = &condition.field;
            if !self.shows(&field.as_str().into()) {
                let message = format!("'{field}' is not a field of this page");
                let path = ["filters", field];
                faults.push(Violation::body(
                    &path,
                    "invalid_filter",
                    message,
                    json!(field),
                ));
            }
        });
        if faults.is_empty() {
            return Ok(());
        }
        Err(ApiError::Validation(faults))
    }

    /// Whether a field is exposed, or lies in one that is.
    fn shows(&self, field: &Value) -> bool {
        let Some(field) = field.as_str() else {
            return false;
        };
        let exposed = &self.published.display_config.exposed_fields;
        let inside = |whole: &str| {
            field
                .strip_prefix(whole)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        IDS.contains(&field) || exposed.iter().any(|whole| inside(whole))
    }

    /// How many results one answer has: what was asked for, up to what the owner allows.
    fn window(&self, ask: &Execute) -> Option<i64> {
        // A page of any method has at most so many rows.
        let most = self.published.rate_limit_config.max_results_per_query;
        let sized = match &ask.pagination {
            None => Some(most.min(500)),
            Some(RetrieverPagination::Offset(one)) => Some(one.page_size),
            Some(RetrieverPagination::Cursor(one)) => Some(one.limit),
            Some(RetrieverPagination::Scroll(one)) => Some(one.limit),
            Some(RetrieverPagination::Keyset(one)) => Some(one.limit),
        };
        ask.limit.or(sized).map(|asked| asked.min(most))
    }

    /// Ids, exposed fields, and the address of the picture that stands for the document.
    fn show(&self, document: &Object) -> Object {
        let exposed = &self.published.display_config.exposed_fields;
        let mut shown = publishing::exposed(exposed, document);
        for member in IDS {
            if let Some(value) = document.get(member) {
                shown.insert(member.into(), value.clone());
            }
        }
        // An owner who wants no pictures of results shows those alone whose field is exposed.
        let components = self.published.display_config.components.as_ref();
        let card = components.and_then(|components| components.result_card.as_ref());
        let all = card.is_none_or(|card| card.show_thumbnail);
        let is_exposed = |blob: &Value| blob.get("field").is_some_and(|name| self.shows(name));
        if let Some(thumbnail) = thumbnail(document, all, is_exposed) {
            let whole = publishing::whole_of(exposed, document);
            if let Some(whole) = whole.filter(|whole| thumbnail != *whole) {
                shown.insert("thumbnail_full_url".into(), whole.into());
            }
            shown.insert("thumbnail_url".into(), thumbnail);
            // Whether its fields are exposed or not: how wide a picture is, everybody sees who sees it.
            if let Some([width, height]) = size(document) {
                shown.insert("thumbnail_width".into(), width.into());
                shown.insert("thumbnail_height".into(), height.into());
            }
        }
        shown
    }
}

/// The presigned address of a document's thumbnail, else of a picture, of all its files or of those that are exposed: one that
/// is exposed before the others.
fn thumbnail(document: &Object, all: bool, is_exposed: impl Fn(&Value) -> bool) -> Option<Value> {
    let blobs = document.get("document_blobs")?.as_array()?;
    let is = |blob: &Value, member: &str, wanted: &str| {
        blob.get(member).and_then(Value::as_str) == Some(wanted)
    };
    let shown = blobs.iter().filter(|blob| all || is_exposed(blob));
    let able = shown.filter(|blob| is(blob, "role", "thumbnail") || is(blob, "type", "image"));
    let chosen = able.min_by_key(|blob| (!is(blob, "role", "thumbnail"), !is_exposed(blob)))?;
    chosen.get("presigned_url").cloned()
}

/// Width and height of the picture, or the film, that a document was made of: its thumbnail has their ratio. Of what a document
/// says for itself these may be the measures of anything.
fn size(document: &Object) -> Option<[u32; 2]> {
    let kind = document.get("_internal")?.get("mime_type")?.as_str()?;
    if !kind.starts_with("image/") && !kind.starts_with("video/") {
        return None;
    }
    let side = |name: &str| {
        let side = document.get(name).and_then(Value::as_u64);
        let side = side.and_then(|side| u32::try_from(side).ok());
        side.filter(|side| *side > 0)
    };
    Some([side("width")?, side("height")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_that_are_not_shown_stand_for_nothing() {
        let blob = |field: &str, role: &str, kind: &str| json!({"field": field, "role": role, "type": kind, "presigned_url": format!("/{field}")});
        let document = json!({"document_blobs": [blob("scan", "source", "image"), blob("cover", "thumbnail", "image"), blob("text", "source", "text")]});
        let document = document.as_object().unwrap();
        let of = |name: &'static str| move |blob: &Value| blob["field"] == name;
        let shown = |document, all, name| thumbnail(document, all, of(name));
        assert_eq!(shown(document, true, "scan"), Some(json!("/cover")));
        assert_eq!(shown(document, false, "scan"), Some(json!("/scan")));
        assert_eq!(shown(document, false, "text"), None);
        // What everybody may see stands before what nobody is told of.
        let document = json!({"document_blobs": [blob("passport", "source", "image"), blob("photo", "source", "image")]});
        let document = document.as_object().unwrap();
        assert_eq!(shown(document, true, "photo"), Some(json!("/photo")));
        assert_eq!(shown(document, true, "text"), Some(json!("/passport")));
    }

    #[test]
    fn a_picture_tells_its_size_and_a_table_does_not() {
        let document = |kind: &str, width: Value| {
            let document = json!({"_internal": {"mime_type": kind}, "width": width, "height": 300});
            document.as_object().cloned().unwrap()
        };
        let of = |kind, width| size(&document(kind, width));
        assert_eq!(of("image/png", json!(400)), Some([400, 300]));
        assert_eq!(of("application/json", json!(400)), None);
        assert_eq!(of("image/png", json!(-4)), None);
        assert_eq!(size(&Object::new()), None);
    }

    #[test]
    fn who_looks_on_has_not_searched() {
        let ask = |inputs: Value, page_number: i64| Execute {
            inputs: inputs.as_object().cloned().unwrap(),
            pagination: Some(RetrieverPagination::Offset(
                loupe_wire::OffsetPaginationParams {
                    page_number,
                    ..Default::default()
                },
            )),
            ..Default::default()
        };
        assert!(!looks_on(&ask(json!({"query": "sea"}), 1)));
        assert!(looks_on(&ask(json!({"query": "sea"}), 2)));
        assert!(looks_on(&ask(json!({"query": " ", "tags": []}), 1)));
        let mut chosen = ask(json!({}), 1);
        assert!(looks_on(&chosen));
        chosen.filters = json!({"tags": "sea"}).as_object().cloned();
        assert!(!looks_on(&chosen));
    }
}
