//! A draft becomes a retriever of its own: what is changed is read first, and the page may move to it.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{
    Draft,
    changes::{self, Changed},
    made_id,
};
use crate::{
    leave::Unsaved,
    load::{Change, navigator},
    part::*,
    record::Record,
    session::use_session,
    text,
};

pub fn dialog(
    open: RwSignal<bool>,
    draft: Draft,
    source: StoredValue<Record>,
    unsaved: Unsaved,
) -> AnyView {
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
            let made = api.post(&format!("{path}/clone"), &body?).await?;
            if moves {
                let to = json!({"retriever_id": made_id(&made)});
                if let Err(refused) = api.post(&format!("{path}/publish/move"), &to).await {
                    // Its name is free for the next try. Where nothing was heard, the page may have moved all the same.
                    if (400..500).contains(&refused.status) {
                        let copy = format!("/v1/retrievers/{}", text::escape(&made_id(&made)));
                        let _ = api.delete(&copy).await;
                    }
                    return Err(refused);
                }
            }
            Ok(made)
        };
        change.run(work, move |made| {
            if moves {
                toasts.say("The page searches with the new retriever now");
            }
            open.set(false);
            unsaved.saved();
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
        let hint = "Those who search it see the new results at once. Its addresses, its password and its limits stay.";
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
