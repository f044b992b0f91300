//! A draft becomes a retriever of its own: what is changed is read first, and the page may move to it.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{
    Draft,
    changes::{self, Changed},
    made_id,
};
use crate::{
    api::{Api, Problem},
    load::{Change, navigator},
    part::*,
    record::{Record, only},
    session::use_session,
    text,
};

pub fn dialog(open: RwSignal<bool>, draft: Draft, source: StoredValue<Record>) -> AnyView {
    let (session, go, toasts) = (use_session(), navigator(), expect_context::<Toasts>());
    let (change, moves) = (Change::new(), RwSignal::new(false));
    let published = source.with_value(|one| one.flag("is_published"));
    let id = source.with_value(|one| one.first(&["retriever_id", "retriever_name"]));
    let submit = Callback::new(move |()| {
        let ns = draft.ns.get_untracked();
        let (api, body) = (session.api_in(ns.clone()), untrack(|| draft.body()));
        let (id, moves) = (id.clone(), moves.get_untracked());
        let work = async move {
            let path = format!("/v1/retrievers/{}", text::escape(&id));
            let page = match moves {
                true => Some(movable(&api, &path).await?),
                false => None,
            };
            let made = api.post(&format!("{path}/clone"), &body?).await?;
            if let Some(page) = page {
                let to = format!("/v1/retrievers/{}", text::escape(&made_id(&made)));
                move_page(&api, &page, &path, &to).await?;
            }
            Ok(made)
        };
        change.run(work, move |made| {
            if moves {
                toasts.say("The page searches with the new retriever now");
            }
            open.set(false);
            go(&format!("/ns/{ns}/retrievers/{}", made_id(&made)));
        });
    });
    let list = move || {
        let Ok(now) = draft.editor.value() else {
            return view! { <p class="notice bad" role="alert">"The stages are not JSON."</p> }
                .into_any();
        };
        let all = source.with_value(|source| changes::of(source, &now));
        let lines = all.iter().map(stage).collect::<Vec<_>>();
        view! { <p>{changes::told(&all)}</p><ul class="notes">{lines}</ul> }.into_any()
    };
    let page = move || {
        let hint = "Those who search it see the new results at once; the page is gone for a moment between.";
        published.then(|| view! { <Check label="Move the published page to it" hint checked=moves set=move |on| moves.set(on)/> })
    };
    view! {
        <Ask open title="Save as a new retriever".to_owned() label="Save" class="wide" change submit>
            <Field id="copy-name" label="Name" value=draft.name required=true/>
            {list}
            {page()}
        </Ask>
    }
    .into_any()
}

/// What became of a stage, value by value.
fn stage(one: &Changed) -> AnyView {
    let value = |value: &Option<Value>| match value {
        Some(value) => view! { <code>{value.to_string()}</code> }.into_any(),
        None => view! { <span class="muted">"nothing"</span> }.into_any(),
    };
    let values = one.values.iter().map(|(place, before, now)| {
        view! { <li><span class="muted">{place.clone()}": "</span><del>{value(before)}</del>" → "<ins>{value(now)}</ins></li> }.into_any()
    });
    let class = match one.what.as_str() {
        "added" => "badge ok",
        "taken out" => "badge bad",
        _ => "badge warn",
    };
    view! {
        <li><span class="row"><strong>{one.name.clone()}</strong><span class=class>{one.what.clone()}</span></span>
            <ul class="sub-list">{values.collect::<Vec<_>>()}</ul></li>
    }
    .into_any()
}

/// The page of the retriever at `path`, if it may move: a password is nobody's to read, so it cannot go along.
async fn movable(api: &Api, path: &str) -> Result<Record, Problem> {
    let page = api.get(&format!("{path}/publish")).await?;
    match page.flag("password_protected") {
        true => Err(Problem::local(
            "the page has a password, which cannot go along: save without moving it, then publish anew",
        )),
        false => Ok(page),
    }
}

/// Publishes the page of the retriever at `from` for the one at `to`. A name belongs to one page at a time, so it is taken
/// down first; where it cannot be put up again, it is put back.
async fn move_page(api: &Api, page: &Record, from: &str, to: &str) -> Result<(), Problem> {
    let (from, to) = (format!("{from}/publish"), format!("{to}/publish"));
    let body = sent(page);
    api.delete(&from).await?;
    let mut at = &to;
    let moved = api.post(&to, &body).await;
    if moved.is_err() {
        at = &from;
        api.post(&from, &body).await?;
    }
    if !page.flag("is_active") {
        api.patch(at, &json!({"is_active": false})).await?;
    }
    moved.map(|_| ())
}

/// The page as a request has it.
fn sent(page: &Record) -> Value {
    let mut body = only(
        page.clone(),
        &[
            "public_name",
            "description",
            "icon_base64",
            "display_config",
            "rate_limit_config",
            "tags",
            "category",
        ],
    );
    body["display_name"] = page.record("display_config").text("title").into();
    body
}

#[cfg(test)]
mod tests {
    use loupe_wire::{PublishRetrieverRequest, PublishedRetrieverResponse};

    use super::*;
    use crate::record::tests::sent as told;

    #[test]
    fn a_page_is_published_as_it_was() {
        let page = PublishedRetrieverResponse {
            public_name: "films".into(),
            tags: vec!["a".into()],
            ..Default::default()
        };
        let body = sent(&told(&page));
        let asked: PublishRetrieverRequest = serde_json::from_value(body).expect("a request");
        assert_eq!(asked.public_name.as_deref(), Some("films"));
        assert_eq!(asked.tags, Some(vec!["a".into()]));
    }
}
