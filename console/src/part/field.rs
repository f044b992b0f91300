use leptos::prelude::*;

use crate::load::Change;

use super::Explain;

/// A line of text with its label.
#[component]
pub fn Field(
    id: &'static str,
    #[prop(into)] label: String,
    value: RwSignal<String>,
    #[prop(optional, into)] hint: String,
    #[prop(optional, into)] placeholder: String,
    #[prop(default = "text")] kind: &'static str,
    #[prop(optional)] required: bool,
) -> impl IntoView {
    let described = (!hint.is_empty()).then(|| format!("{id}-hint"));
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <input class="input" id=id type=kind bind:value=value required=required placeholder=placeholder
                autocomplete="off" spellcheck="false" aria-describedby=described.clone()/>
            {(!hint.is_empty()).then(|| view! { <span class="hint" id=described>{hint}</span> })}
        </div>
    }
}

/// Several lines, mostly JSON.
#[component]
pub fn Area(
    id: &'static str,
    #[prop(into)] label: String,
    value: RwSignal<String>,
    #[prop(optional, into)] hint: String,
    #[prop(default = 6)] rows: u32,
    #[prop(default = "textarea code")] class: &'static str,
) -> impl IntoView {
    let described = (!hint.is_empty()).then(|| format!("{id}-hint"));
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <textarea class=class id=id rows=rows bind:value=value spellcheck="false" aria-describedby=described.clone()></textarea>
            {(!hint.is_empty()).then(|| view! { <span class="hint" id=described>{hint}</span> })}
        </div>
    }
}

/// One of a few: `(value, label)`.
#[component]
pub fn Choice(
    id: &'static str,
    #[prop(into)] label: String,
    value: RwSignal<String>,
    #[prop(into)] options: Signal<Vec<(String, String)>>,
    #[prop(optional, into)] hint: String,
) -> impl IntoView {
    let described = (!hint.is_empty()).then(|| format!("{id}-hint"));
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <select class="select" id=id aria-describedby=described.clone() prop:value=move || { options.track(); value.get() }
                on:change=move |event| value.set(event_target_value(&event))>
                {move || options.get().into_iter().map(|(one, label)| {
                    let selected = value.get_untracked() == one;
                    view! { <option value=one selected=selected>{label}</option> }
                }).collect_view()}
            </select>
            {(!hint.is_empty()).then(|| view! { <span class="hint" id=described>{hint}</span> })}
        </div>
    }
}

/// Yes or no.
#[component]
pub fn Check(
    #[prop(into)] label: String,
    #[prop(into)] checked: Signal<bool>,
    set: impl Fn(bool) + 'static,
    #[prop(optional, into)] hint: String,
) -> impl IntoView {
    view! {
        <label class="check">
            <input type="checkbox" prop:checked=move || checked.get() on:change=move |event| set(event_target_checked(&event))/>
            <span>{label}{(!hint.is_empty()).then(|| view! { <span class="hint">{hint}</span> })}</span>
        </label>
    }
}

/// The end of a form: what went wrong, a way out, a way on.
#[component]
pub fn Submit(
    change: Change,
    open: RwSignal<bool>,
    #[prop(into)] label: String,
    /// What is about to happen cannot be undone.
    #[prop(optional)]
    danger: bool,
) -> impl IntoView {
    let class = if danger { "btn danger" } else { "btn primary" };
    view! {
        {move || change.problem.get().map(|problem| view! { <Explain problem/> })}
        <footer>
            <button type="button" class="btn" on:click=move |_| open.set(false)>"Cancel"</button>
            <button class=class aria-busy=move || change.busy.get().to_string() disabled=move || change.busy.get()>{label}</button>
        </footer>
    }
}
