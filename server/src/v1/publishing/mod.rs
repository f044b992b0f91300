//! Publishing a retriever as a public search page.

mod again;
mod display;
mod filters;
mod lock;
mod media;
mod moving;
mod noted;
mod preview;
mod routes;
mod store;

use loupe_wire::{
    NamespaceOperation, Object, PublishRetrieverRequest, PublishRetrieverResponse,
    PublishedRetrieverResponse, RetrieverMetadata, RetrieverModelOutput,
    UpdatePublishedRetrieverRequest, Value,
};
use serde_json::json;

pub use lock::{hash_for_pages, renew};
pub use media::{of as media_of, original as original_of, whole as whole_of};
pub use preview::{is_preview, sweep};
pub use routes::router;
pub use store::{
    Published, count_public, delete_of, list, list_open, mark_published, open_names, relock,
};

use self::{again::Made, display::About, lock::Password};
use super::{collections, retrievers};
use crate::{
    app::App,
    auth::{Delete, Level, Scope, Write},
    clock,
    db::Tx,
    error::{ApiError, Result},
    id,
};

/// The address of a public page.
pub fn public_url(app: &App, public_name: &str) -> String {
    format!("{}/r/{public_name}", app.config().address())
}

/// `My films!` as `my-films`, at least three characters.
fn name_from(title: &str) -> String {
    let mut name = String::new();
    for character in title.to_lowercase().chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character);
        } else if !name.ends_with('-') && !name.is_empty() {
            name.push('-');
        }
    }
    name.truncate(50);
    let name = name.trim_matches('-');
    if name.len() < 3 {
        format!("search-{name}").trim_matches('-').to_owned()
    } else {
        name.to_owned()
    }
}

/// Makes sure that no other page has the name, and none of another organization had it: one that nobody asked for gives way.
async fn settle_name(
    tx: &mut Tx,
    org_id: &str,
    published: &mut PublishedRetrieverResponse,
    is_named: bool,
) -> Result<()> {
    let name = &published.public_name;
    if !store::is_taken(tx, org_id, name, &published.retriever_id).await? {
        return Ok(());
    }
    if is_named {
        let message = format!("the public name '{name}' is taken");
        return Err(ApiError::already_exists("public_name_taken", message));
    }
    published.public_name = another(name);
    Ok(())
}

/// The name with letters at its end that no other has.
fn another(name: &str) -> String {
    let own = uuid::Uuid::new_v4().simple().to_string();
    let own: String = own.chars().take(8).collect();
    let name: String = name.chars().take(41).collect();
    format!("{}-{own}", name.trim_end_matches('-'))
}

pub async fn publish(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: PublishRetrieverRequest,
) -> Result<PublishRetrieverResponse> {
    let retriever =
        retrievers::find(app, scope, identifier, NamespaceOperation::CreateRetriever).await?;
    let password =
        Password::asked(app, &scope.caller, request.password_secret_name.as_deref()).await?;
    let is_named = request.public_name.is_some();
    let published = asked(app, scope, &retriever, request).await?;
    let warnings = display::doubts(&published.display_config, &retriever);
    let now = app.clock().micros();
    let saved = save(app, scope, published, (password, is_named), now).await?;
    let public_url = public_url(app, &saved.public_name);
    Ok(PublishRetrieverResponse {
        public_id: saved.public_id,
        retriever_id: saved.retriever_id,
        short_url: public_url.clone(),
        public_url,
        public_api_key: None,
        warnings,
    })
}

/// The publication that a request asks for, completed by what the retriever says.
async fn asked(
    app: &App,
    scope: &Scope<Write>,
    retriever: &RetrieverModelOutput,
    request: PublishRetrieverRequest,
) -> Result<PublishedRetrieverResponse> {
    let id = retriever.retriever_id.clone().unwrap_or_default();
    let before = store::find(app.db(), &scope.namespace_id, &id).await?;
    let request = match before {
        Some(before) => {
            let made = Made::of(app, &before, retriever);
            again::filled(request, before, &made)
        }
        None => request,
    };
    let title = request
        .display_name
        .unwrap_or_else(|| retriever.retriever_name.clone());
    let metadata = if request.include_metadata.unwrap_or(true) {
        Some(describe(app, scope, retriever).await?)
    } else {
        None
    };
    let sent = request.display_config.or(retriever
        .display_config
        .as_ref()
        .map(retrievers::cast)
        .transpose()?);
    let mut display = match sent {
        Some(display) => display,
        None => display::generate(app, scope, retriever, &title).await?,
    };
    display::check(&display, retriever)?;
    filters::choose(app, scope, retriever, &mut display).await?;
    let now = clock::time(app.clock().micros());
    let tags = request.tags.unwrap_or_default();
    let description = request.description.flatten();
    let about = About {
        description: description.as_deref(),
        tags: &tags,
        metadata: metadata.as_ref(),
    };
    Ok(PublishedRetrieverResponse {
        retriever_id: id,
        public_id: id::new("pub_"),
        public_name: request.public_name.unwrap_or_else(|| name_from(&title)),
        display_config: display::complete(display, retriever, &about),
        description: description.or_else(|| retriever.description.clone()),
        icon_base64: said(request.icon_base64),
        rate_limit_config: request.rate_limit_config.unwrap_or_default(),
        is_active: true,
        retriever_metadata: metadata,
        tags,
        category: said(request.category),
        created_at: now,
        updated_at: now,
        ..Default::default()
    })
}

/// The category or the icon that a request gives: as a password, it is taken away by an empty one.
fn said(sent: Option<Option<String>>) -> Option<String> {
    sent.flatten().filter(|sent| !sent.is_empty())
}

/// Inserts, or replaces the publication of the same retriever: its public id and address stay.
async fn save(
    app: &App,
    scope: &Scope<Write>,
    mut published: PublishedRetrieverResponse,
    (password, is_named): (Password, bool),
    now: i64,
) -> Result<PublishedRetrieverResponse> {
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let org_id = caller.org_id.clone();
    let limit = app.config().limits.published_retrievers;
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // Deleted meanwhile, it would leave a page that nobody can take down.
                let id = &published.retriever_id;
                retrievers::RETRIEVERS.hold(tx, &namespace_id, id).await?;
                let before = store::hold(tx, &namespace_id, id).await?;
                let was = before.clone();
                // Publishing again without a name keeps the one that is there.
                if before.is_none() || is_named {
                    settle_name(tx, &org_id, &mut published, is_named).await?;
                }
                match before {
                    Some(before) => {
                        // Links and frames lead to the name: without another one it stays, and with one they are led on.
                        if !is_named {
                            published.public_name.clone_from(&before.public_name);
                        } else if published.public_name != before.public_name {
                            store::take_name(tx, &published.public_name).await?;
                            store::keep_name(tx, &org_id, &namespace_id, &before, now).await?;
                        }
                        published.public_id = before.public_id;
                        published.created_at = before.created_at;
                        // Publishing again never opens a page that was closed or paused: that takes a change that says so.
                        published.is_active = before.is_active;
                        published.password_protected = before.password_protected;
                        password
                            .apply(tx, &org_id, &namespace_id, &mut published, now)
                            .await?;
                        store::update(tx, &namespace_id, &published, now).await?;
                    }
                    None => {
                        check_room(tx, &namespace_id, limit).await?;
                        password
                            .apply(tx, &org_id, &namespace_id, &mut published, now)
                            .await?;
                        store::take_name(tx, &published.public_name).await?;
                        store::insert(tx, &org_id, &namespace_id, &published, now).await?;
                    }
                }
                noted::changed(tx, &caller, was.as_ref(), &published, now).await?;
                Ok(published)
            })
        })
        .await
}

/// Room for one more page in the namespace.
async fn check_room(tx: &mut Tx, namespace_id: &str, limit: i64) -> Result<()> {
    let count = store::count(tx, namespace_id).await?;
    if count < limit {
        return Ok(());
    }
    let what = "published_retrievers";
    Err(ApiError::quota_exceeded(what, count, limit, "configured"))
}

/// What a view-config dialog shows: stages, collections, what the retriever can do.
async fn describe(
    app: &App,
    scope: &Scope<Write>,
    retriever: &RetrieverModelOutput,
) -> Result<RetrieverMetadata> {
    let collections =
        collections::searched(app, &scope.namespace_id, &retriever.collection_ids).await?;
    let object = |value: Value| value.as_object().cloned().unwrap_or_default();
    let stages = retriever.stages.iter().map(|stage| {
        object(json!({
            "stage_name": stage.stage_name, "stage_type": stage.stage_type, "stage_id": stage.config.get("stage_id"),
        }))
    });
    let described = collections.iter().map(|collection| {
        object(json!({
            "collection_name": collection.collection_name,
            "feature_extractor": collection.feature_extractor.feature_extractor_id,
        }))
    });
    let capabilities = object(json!({"inputs": retriever.input_schema.keys().collect::<Vec<_>>()}));
    Ok(RetrieverMetadata {
        stages: stages.collect(),
        collections: described.collect(),
        capabilities,
    })
}

/// The publication of a retriever, or nothing.
pub async fn lookup<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
) -> Result<Option<PublishedRetrieverResponse>> {
    let retriever = retrievers::find(app, scope, identifier, NamespaceOperation::ReadData).await?;
    store::find(
        app.db(),
        &scope.namespace_id,
        retriever.retriever_id.as_deref().unwrap_or_default(),
    )
    .await
}

pub async fn update(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    mut request: UpdatePublishedRetrieverRequest,
) -> Result<PublishedRetrieverResponse> {
    let retriever =
        retrievers::find(app, scope, identifier, NamespaceOperation::CreateRetriever).await?;
    let password =
        Password::asked(app, &scope.caller, request.password_secret_name.as_deref()).await?;
    let mut warnings = Vec::new();
    if let Some(display) = &mut request.display_config {
        display::check(display, &retriever)?;
        filters::choose(app, scope, &retriever, display).await?;
        warnings = display::doubts(display, &retriever);
    }
    let (namespace_id, now) = (scope.namespace_id.clone(), app.clock().micros());
    let (here, caller) = (app.clone(), scope.caller.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let id = retriever.retriever_id.clone().unwrap_or_default();
                let found = store::hold(tx, &namespace_id, &id).await?;
                let mut published =
                    found.ok_or_else(|| ApiError::not_found("published_retriever", &id))?;
                let before = published.clone();
                let made = Made::of(&here, &published, &retriever);
                change(&mut published, request, &retriever, &made);
                published.updated_at = clock::time(now);
                password
                    .apply(tx, &caller.org_id, &namespace_id, &mut published, now)
                    .await?;
                store::update(tx, &namespace_id, &published, now).await?;
                noted::changed(tx, &caller, Some(&before), &published, now).await?;
                published.warnings = warnings;
                Ok(published)
            })
        })
        .await
}

/// Puts into a publication what a request says.
fn change(
    published: &mut PublishedRetrieverResponse,
    request: UpdatePublishedRetrieverRequest,
    retriever: &RetrieverModelOutput,
    made: &Made,
) {
    if let Some(tags) = request.tags {
        published.tags = tags.unwrap_or_default();
    }
    if request.icon_base64.is_some() {
        published.icon_base64 = said(request.icon_base64);
    }
    if let Some(limits) = request.rate_limit_config {
        published.rate_limit_config = limits.unwrap_or_default();
    }
    published.is_active = request.is_active.unwrap_or(published.is_active);
    if request.category.is_some() {
        published.category = said(request.category);
    }
    let about = About {
        description: published.description.as_deref(),
        tags: &published.tags,
        metadata: published.retriever_metadata.as_ref(),
    };
    let display = &mut published.display_config;
    match request.display_config {
        Some(mut sent) => {
            made.forget(&mut sent);
            *display = display::complete(sent, retriever, &about);
        }
        // The tags are among the keywords.
        None => {
            made.forget(display);
            display.seo = Some(display::told(display, retriever, &about));
        }
    }
}

pub async fn unpublish(app: &App, scope: &Scope<Delete>, identifier: &str) -> Result<()> {
    let retriever =
        retrievers::find(app, scope, identifier, NamespaceOperation::DeleteRetriever).await?;
    let id = retriever.retriever_id.unwrap_or_default();
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                match store::delete_of(tx, &namespace_id, &id).await? {
                    0 => Err(ApiError::not_found("published_retriever", &id)),
                    _ => noted::ended(tx, &caller, &id, now).await,
                }
            })
        })
        .await
}

/// What is at an address for whoever may see it: a publication, or a preview of one. Under a name that a page had before it
/// is that page, with the name that it has now.
pub async fn find_public(app: &App, public_name: &str) -> Result<Option<Published>> {
    let mut found = preview::find(app.db(), public_name, app.clock().micros()).await?;
    if found.is_none() {
        found = store::find_public(app.db(), public_name).await?;
    }
    if found.is_none() {
        found = store::find_moved(app.db(), public_name).await?;
    }
    Ok(found.map(with_icon))
}

/// The icon that a publication was given is the one of its page, unless the page names another.
fn with_icon(mut found: Published) -> Published {
    let published = &mut found.data.0;
    if published.display_config.icon_base64.is_none() {
        published
            .display_config
            .icon_base64
            .clone_from(&published.icon_base64);
    }
    found
}

/// Whether a retriever may be published under a name: one that no other page has, and none of another organization had. Links to
/// that one lead on, and they are nobody else's to take.
pub async fn is_available<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    name: &str,
) -> Result<bool> {
    let retriever = retrievers::find(app, scope, identifier, NamespaceOperation::ReadData).await?;
    let spelled = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let whole = !name.starts_with('-') && !name.ends_with('-');
    if !(3..=50).contains(&name.len()) || !whole || !name.bytes().all(spelled) {
        return Ok(false);
    }
    let id = retriever.retriever_id.unwrap_or_default();
    if let Some(holder) = store::find_public(app.db(), name).await? {
        return Ok(holder.data.retriever_id == id);
    }
    let before = store::find_moved(app.db(), name).await?;
    Ok(before.is_none_or(|before| before.org_id == scope.caller.org_id))
}

/// Members of a document that strangers may see.
pub fn exposed(fields: &[String], document: &Object) -> Object {
    let whole = Value::Object(document.clone());
    let mut shown = Object::new();
    for field in fields {
        if let Some(value) = loupe_engine::filter::value_at(&whole, field) {
            shown.insert(field.clone(), value.clone());
        }
    }
    shown
}
