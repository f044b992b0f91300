use leptos::prelude::*;

use crate::{
    load::{Change, Query},
    text,
};

use super::refusal;

/// What was refused of what a form sent last: the places of its fields, their pieces joined by dots, and what is wrong there.
#[derive(Clone, Copy)]
pub struct Faults(pub RwSignal<Vec<(String, String)>>);

impl Faults {
    pub fn new() -> Self {
        Self(RwSignal::new(Vec::new()))
    }

    /// What is wrong at a place.
    pub fn at(self, place: &str) -> Option<String> {
        let of = |all: &Vec<(String, String)>| {
            let found = all.iter().find(|(at, _)| at == place);
            found.map(|(_, what)| what.clone())
        };
        self.0.with(of)
    }

    /// Whether anything is, as those who hear the field are told.
    pub fn mark(self, place: &str) -> Option<&'static str> {
        self.at(place).map(|_| "true")
    }

    /// The same for all to see, under the id that the field names.
    pub fn told(self, place: String, id: String) -> AnyView {
        let told = move || {
            let id = id.clone();
            let what = self.at(&place)?;
            Some(view! { <span class="problem" id=id>{what}</span> })
        };
        told.into_any()
    }
}

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
    /// Where it is in what is sent, so that what is refused of it stands beside it.
    #[prop(optional)]
    place: &'static str,
) -> AnyView {
    let faults = use_context::<Faults>().filter(|_| !place.is_empty());
    let wrong = move || faults.and_then(|faults| faults.mark(place));
    let told = faults.map(|faults| faults.told(place.to_owned(), format!("{id}-fault")));
    let hinted = (!hint.is_empty()).then(|| format!("{id}-hint"));
    let described = match (&hinted, faults) {
        (hinted, None) => hinted.clone(),
        _ => Some(format!("{id}-hint {id}-fault")),
    };
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <input class="input" id=id type=kind bind:value=value required=required placeholder=placeholder
                autocomplete="off" spellcheck="false" aria-describedby=described aria-invalid=wrong/>
            {hinted.map(|id| view! { <span class="hint" id=id>{hint}</span> })}
            {told}
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
    /// Values that cannot be chosen here.
    #[prop(optional)]
    off: Vec<String>,
) -> AnyView {
    let described = (!hint.is_empty()).then(|| format!("{id}-hint"));
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <select class="select" id=id aria-describedby=described.clone() prop:value=move || { options.track(); value.get() }
                on:change=move |event| value.set(event_target_value(&event))>
                {move || options.get().into_iter().map(|(one, label)| {
                    let selected = value.get_untracked() == one;
                    let disabled = off.contains(&one);
                    view! { <option value=one selected=selected disabled=disabled>{label}</option> }.into_any()
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
    #[prop(optional, into)] id: String,
) -> AnyView {
    let id = (!id.is_empty()).then_some(id);
    view! {
        <label class="check">
            <input type="checkbox" id=id prop:checked=move || checked.get() on:change=move |event| set.run((event_target_checked(&event),))/>
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
        <footer>
            {refusal(change)}
            <button type="button" class="btn" on:click=move |_| open.set(false)>"Cancel"</button>
            <button class=class aria-busy=move || change.busy.get().to_string() disabled=move || change.busy.get()>{label}</button>
        </footer>
    }
    .into_any()
}
