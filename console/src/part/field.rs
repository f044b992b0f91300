use leptos::prelude::*;

use crate::{
    load::{Change, Query},
    text,
};

use super::refusal;

/// A line of text with its label.
#[component]
pub fn Field(
    id: &'static str,
    label: &'static str,
    value: RwSignal<String>,
    #[prop(optional)] hint: &'static str,
    #[prop(optional)] placeholder: &'static str,
    #[prop(default = "text")] kind: &'static str,
    #[prop(optional)] required: bool,
) -> AnyView {
    let described = (!hint.is_empty()).then(|| format!("{id}-hint"));
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <input class="input" id=id type=kind bind:value=value required=required placeholder=placeholder
                autocomplete="off" spellcheck="false" aria-describedby=described.clone()/>
            {(!hint.is_empty()).then(|| view! { <span class="hint" id=described>{hint}</span> })}
        </div>
    }
    .into_any()
}

/// Several lines, mostly JSON.
#[component]
pub fn Area(
    id: &'static str,
    label: &'static str,
    value: RwSignal<String>,
    #[prop(optional)] hint: &'static str,
    #[prop(default = 6)] rows: u32,
    #[prop(default = "textarea code")] class: &'static str,
) -> AnyView {
    let described = (!hint.is_empty()).then(|| format!("{id}-hint"));
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <textarea class=class id=id rows=rows bind:value=value spellcheck="false" aria-describedby=described.clone()></textarea>
            {(!hint.is_empty()).then(|| view! { <span class="hint" id=described>{hint}</span> })}
        </div>
    }
    .into_any()
}

/// One of a few: `(value, label)`.
#[component]
pub fn Choice(
    id: &'static str,
    label: &'static str,
    value: RwSignal<String>,
    #[prop(into)] options: Signal<Vec<(String, String)>>,
    #[prop(optional)] hint: &'static str,
) -> AnyView {
    let described = (!hint.is_empty()).then(|| format!("{id}-hint"));
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <select class="select" id=id aria-describedby=described.clone() prop:value=move || { options.track(); value.get() }
                on:change=move |event| value.set(event_target_value(&event))>
                {move || options.get().into_iter().map(|(one, label)| {
                    let selected = value.get_untracked() == one;
                    view! { <option value=one selected=selected>{label}</option> }.into_any()
                }).collect::<Vec<_>>()}
            </select>
            {(!hint.is_empty()).then(|| view! { <span class="hint" id=described>{hint}</span> })}
        </div>
    }
    .into_any()
}

/// A filter that lives in the address: one of a few values, or all.
#[component]
pub fn Pick(
    query: Query,
    label: &'static str,
    /// The words for no filter.
    all: &'static str,
    options: &'static [&'static str],
) -> AnyView {
    let now = query.value.get_untracked();
    let options = options.iter().map(|one| {
        let selected = *one == now;
        view! { <option value=*one selected=selected>{text::words(one.trim_start_matches("api_"))}</option> }.into_any()
    });
    view! {
        <select class="select filter" aria-label=label prop:value=move || query.value.get() on:change=move |event| query.set(&event_target_value(&event))>
            <option value="">{all}</option>{options.collect::<Vec<_>>()}
        </select>
    }
    .into_any()
}

/// Yes or no.
#[component]
pub fn Check(
    #[prop(into)] label: String,
    #[prop(into)] checked: Signal<bool>,
    #[prop(into)] set: Callback<(bool,)>,
    #[prop(optional, into)] hint: String,
) -> AnyView {
    view! {
        <label class="check">
            <input type="checkbox" prop:checked=move || checked.get() on:change=move |event| set.run((event_target_checked(&event),))/>
            <span>{label}{(!hint.is_empty()).then(|| view! { <span class="hint">{hint}</span> })}</span>
        </label>
    }
    .into_any()
}

/// The end of a form: what went wrong, a way out, a way on.
#[component]
pub fn Submit(
    change: Change,
    open: RwSignal<bool>,
    label: &'static str,
    /// What is about to happen cannot be undone.
    #[prop(optional)]
    danger: bool,
) -> AnyView {
    let class = if danger { "btn danger" } else { "btn primary" };
    view! {
        {refusal(change)}
        <footer>
            <button type="button" class="btn" on:click=move |_| open.set(false)>"Cancel"</button>
            <button class=class aria-busy=move || change.busy.get().to_string() disabled=move || change.busy.get()>{label}</button>
        </footer>
    }
    .into_any()
}
