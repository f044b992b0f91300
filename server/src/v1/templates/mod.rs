//! Templates: what a namespace, bucket, collection, retriever, taxonomy or cluster is made of, kept to make others like it. The
//! server has some of its own; those of an organization are kept of its resources, and outlive them. All kinds are one kind of
//! row, seen and removed in one way; what differs is what is kept of a resource, and what makes one.

mod built_in;
mod keeping;
mod making;
mod of_namespace;
mod requests;
mod routes;
mod slots;
mod store;

use loupe_wire::{
    AuditAction, BaseTemplateModel, CreateTemplateFromResourceRequest,
    CreateTemplateFromResourceResponse, ListTemplatesRequest, ListTemplatesResponse,
    NamespaceOperation, Object, ResourceType, TemplateScope, TemplateType, Value,
};
use serde_json::json;

pub use routes::router;
pub use store::forget_user;

use super::audit::{self, Change};
use crate::{
    app::App,
    auth::Caller,
    clock,
    error::{ApiError, Result, Violation},
    id,
    list::{ListParams, ListQuery, Page},
};

/// A list is whole: more than an organization keeps of a kind, and the server's own.
const LISTED: i64 = 1_000;
/// Bytes of a template as JSON.
const MAX_BYTES: usize = 256 << 10;
/// Characters of a description that is taken over from a resource.
const MAX_DESCRIPTION: usize = 1_000;

/// What is kept of a resource.
struct Kept {
    kind: TemplateType,
    source_id: String,
    description: Option<String>,
    configuration: Object,
    requirements: Vec<String>,
}

/// Templates are the organization's: a key whose scopes are narrower has the server's own alone, whatever namespace it names.
fn whole(caller: &Caller) -> Caller {
    Caller {
        within: None,
        ..caller.clone()
    }
}

fn allow(caller: &Caller, operation: NamespaceOperation) -> Result<()> {
    whole(caller).allow(ResourceType::Organization, &caller.org_id, operation)
}

/// Who is meant by `user`: whoever has the key.
fn user_of(caller: &Caller) -> &str {
    match caller.key.user_id.as_str() {
        "" => caller.actor(),
        user_id => user_id,
    }
}

fn fits(template: &BaseTemplateModel, asked: &ListTemplatesRequest) -> bool {
    let tags = asked.tags.as_deref().unwrap_or_default();
    template.is_active == asked.is_active
        && asked.scope.is_none_or(|scope| scope == template.scope)
        && (asked.category.is_none() || asked.category == template.category)
        && tags.iter().all(|tag| template.tags.contains(tag))
}

/// Templates of a kind: the organization's own, newest first, then the server's.
async fn list(
    app: &App,
    caller: &Caller,
    kind: TemplateType,
    request: &ListTemplatesRequest,
) -> Result<ListTemplatesResponse> {
    let query = ListQuery {
        limit: Some(LISTED),
        ..Default::default()
    };
    let params = ListParams::new(query, request)?;
    let mut all = Vec::new();
    let operation = NamespaceOperation::ReadData;
    if whole(caller).covers(ResourceType::Organization, &caller.org_id, operation) {
        all = store::list(app.db(), &caller.org_id, kind, user_of(caller)).await?;
    }
    all.extend(built_in::of(kind).cloned());
    all.retain(|one| fits(one, request));
    let results = Page::from_all(all, &params)?.results;
    Ok(ListTemplatesResponse {
        total_count: i64::try_from(results.len()).unwrap_or(i64::MAX),
        results,
    })
}

/// The server's own of a kind, for whoever asks.
fn list_built_in(kind: TemplateType, category: Option<&str>) -> Vec<BaseTemplateModel> {
    let all = built_in::of(kind);
    let wanted = all.filter(|one| category.is_none() || one.category.as_deref() == category);
    wanted.cloned().collect()
}

/// One of the server's own.
fn find_built_in(kind: TemplateType, template_id: &str) -> Result<BaseTemplateModel> {
    let found = built_in::of(kind).find(|one| one.template_id == template_id);
    found
        .cloned()
        .ok_or_else(|| ApiError::not_found("template", template_id))
}

/// A template of a kind that the caller sees.
async fn find(
    app: &App,
    caller: &Caller,
    kind: TemplateType,
    template_id: &str,
) -> Result<BaseTemplateModel> {
    if let Ok(found) = find_built_in(kind, template_id) {
        return Ok(found);
    }
    let (org_id, user_id) = (&caller.org_id, user_of(caller));
    let found = store::find(app.db(), org_id, kind, template_id, user_id).await?;
    allow(caller, NamespaceOperation::ReadData)?;
    Ok(found)
}

/// Refuses templates that would be seen beyond the organization.
fn check(request: &CreateTemplateFromResourceRequest) -> Result<()> {
    let refuse = |member: &str, kind: &str, msg: &str| {
        Err(Violation::body(&[member], kind, msg, Value::Null).into())
    };
    match request.scope {
        TemplateScope::System => {
            let msg = "templates of the system are the server's own: organization or user";
            refuse("scope", "value_error", msg)
        }
        TemplateScope::Public => {
            let msg = "templates are not shown beyond the organization: organization or user";
            refuse("scope", "not_enabled", msg)
        }
        _ if request.is_public => {
            let msg = "templates are not shown beyond the organization: leave it out";
            refuse("is_public", "not_enabled", msg)
        }
        TemplateScope::Organization | TemplateScope::User => Ok(()),
    }
}

/// The template that a resource becomes.
fn template(
    caller: &Caller,
    kept: Kept,
    request: CreateTemplateFromResourceRequest,
    now: i64,
) -> Result<BaseTemplateModel> {
    let told = request.description.or(kept.description);
    let told = told.filter(|text| !text.trim().is_empty());
    let told = told.unwrap_or_else(|| request.template_name.clone());
    let at = Some(clock::time(now));
    let template = BaseTemplateModel {
        // Ids of templates have small letters only.
        template_id: format!("tmpl_{}", id::random_base62(24).to_lowercase()),
        template_type: kept.kind,
        scope: request.scope,
        internal_id: caller.org_id.clone(),
        name: request.template_name,
        description: told.chars().take(MAX_DESCRIPTION).collect(),
        category: request.category.filter(|text| !text.is_empty()),
        configuration: kept.configuration,
        tags: request.tags,
        requirements: kept.requirements,
        created_by: Some(caller.actor().to_owned()),
        source_resource_id: Some(kept.source_id),
        created_at: at,
        updated_at: at,
        ..Default::default()
    };
    let size = json!(template).to_string().len();
    if size > MAX_BYTES {
        let message = format!("a template has at most {MAX_BYTES} bytes as JSON; this has {size}");
        return Err(ApiError::bad_request("", message));
    }
    Ok(template)
}

/// Keeps what was taken of a resource.
async fn keep(
    app: &App,
    caller: &Caller,
    kept: Kept,
    request: CreateTemplateFromResourceRequest,
) -> Result<CreateTemplateFromResourceResponse> {
    check(&request)?;
    let now = app.clock().micros();
    let template = template(caller, kept, request, now)?;
    let user_id = match template.scope {
        TemplateScope::User => user_of(caller).to_owned(),
        _ => String::new(),
    };
    let caller = caller.clone();
    let work = app.db().write(move |tx| {
        Box::pin(async move {
            store::insert(tx, &caller.org_id, &user_id, &template, now).await?;
            note(
                tx,
                &caller,
                (None, Some(template.template_id.as_str())),
                now,
            )
            .await?;
            Ok(template)
        })
    });
    let template = work.await?;
    Ok(CreateTemplateFromResourceResponse {
        template_id: template.template_id,
        template_name: template.name,
        template_type: template.template_type,
        scope: template.scope,
        source_resource_id: template.source_resource_id.unwrap_or_default(),
        created_at: template.created_at,
    })
}

/// Records a template that came or went: it is a change of the organization.
async fn note(
    tx: &mut crate::db::Tx,
    caller: &Caller,
    (before, after): (Option<&str>, Option<&str>),
    now: i64,
) -> Result<()> {
    let change = Change {
        action: AuditAction::OrganizationUpdated,
        resource: (ResourceType::Organization, &caller.org_id),
        changes: json!({ "template": { "before": before, "after": after } }),
    };
    audit::record(tx, caller, change, now).await
}

/// Removes a template of the organization; what was made of it stays.
async fn delete(app: &App, caller: &Caller, template_id: &str) -> Result<()> {
    if built_in::named(template_id).is_some() {
        let message = "this template is the server's own, and stays";
        return Err(ApiError::conflict("", message));
    }
    let (caller, id, now) = (caller.clone(), template_id.to_owned(), app.clock().micros());
    let user_id = user_of(&caller).to_owned();
    let work = app.db().write(move |tx| {
        Box::pin(async move {
            store::delete(tx, &caller.org_id, &id, &user_id).await?;
            note(tx, &caller, (Some(id.as_str()), None), now).await
        })
    });
    work.await
}
