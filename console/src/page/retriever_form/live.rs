//! The draft, run while it is written.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{Draft, inputs_of};
use crate::{load::Load, page::results, part::*, record::Record, session::use_session};

/// Time without a change after which the draft is run.
const REST: u32 = 400;

/// Whether each run of a stage asks something outside of the server, which may cost money.
fn costly(kind: &str) -> bool {
    const OUTSIDE: [&str; 8] = [
        "llm_",
        "agent",
        "external_",
        "summarize",
        "query_expand",
        "api_call",
        "web_scrape",
        "sql_lookup",
    ];
    OUTSIDE.iter().any(|start| kind.starts_with(start))
}

pub fn live(draft: Draft) -> AnyView {
    let schema = Memo::new(move |_| inputs_of(draft.lines.get()));
    let values: Values = defaults(&Record(schema.get_untracked()).members());
    let tab = RwSignal::new("results");
    let explains = Memo::new(move |_| tab.get() == "explain");
    let wanted = Memo::new(move |_| {
        let mut body = body(draft, &Record(schema.get()), values)?;
        body["explain"] = explains.get().into();
        Some(body)
    });
    // None until somebody says otherwise.
    let auto = RwSignal::new(None::<bool>);
    let runs_itself = Memo::new(move |_| {
        auto.get()
            .unwrap_or_else(|| !draft.editor.kinds().iter().any(|kind| costly(kind)))
    });
    let asked = RwSignal::new(0u32);
    let session = use_session();
    let load = Load::settled(REST, move || {
        let by_hand = asked.get() > 0;
        let body = match runs_itself.get() {
            true => wanted.get(),
            false if by_hand => wanted.get_untracked(),
            false => None,
        };
        let api = session.api_in(draft.ns.get_untracked());
        Some(api.post("/v1/retrievers/execute?return_presigned_urls=true", &body?))
    });
    Effect::new(move |_| {
        if let Some(answer) = load.good() {
            draft
                .editor
                .ran
                .set(answer.record("stage_statistics").record("stages"));
        }
    });
    let fields = move || {
        let all = Record(schema.get()).members().into_iter();
        all.map(|(name, field)| view! { <Input name field values/> })
            .collect::<Vec<_>>()
    };
    let run = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        asked.update(|n| *n += 1);
    };
    view! {
        <section class="card stack-sm live" aria-labelledby="live-head">
            <div class="row between"><h2 id="live-head">"Try the draft"</h2>
                <Check label="Run as I type" checked=Signal::derive(move || runs_itself.get()) set=move |on| auto.set(Some(on))/></div>
            <form class="stack-sm" on:submit=run>
                {fields}
                <div><button class="btn" aria-busy=move || load.busy.get().to_string()><Icon name="play"/>"Run"</button></div>
            </form>
            {tab_list("Answer of the draft", "live", results::TABS, tab, Callback::new(move |name| tab.set(name)))}
            <div id="live" role="tabpanel" tabindex="0" class="stack-sm" aria-labelledby=move || format!("live-{}", tab.get())>
                {move || shown(load, tab.get(), wanted.with(Option::is_some))}
            </div>
        </section>
    }
    .into_any()
}

/// The call, once there is all that it needs.
fn body(draft: Draft, schema: &Record, values: Values) -> Option<Value> {
    let fields = schema.members();
    let inputs = values.with(|values| inputs(&fields, values));
    let missing = fields
        .iter()
        .any(|(name, field)| field.flag("required") && !inputs.contains_key(name));
    let stages = draft.editor.value().ok()?;
    let empty = stages.as_array().is_none_or(Vec::is_empty);
    let chosen = draft.chosen.get();
    (!missing && !empty && !chosen.is_empty()).then(|| {
        json!({
            "collection_identifiers": chosen, "input_schema": schema.0, "stages": stages, "inputs": inputs,
        })
    })
}

fn shown(load: Load, tab: &'static str, ready: bool) -> AnyView {
    match load.value.get() {
        Some(Err(problem)) => view! { <Explain problem/> }.into_any(),
        Some(Ok(answer)) => {
            let inside = match tab {
                "stages" => results::stages(&answer),
                "json" => results::raw(&answer),
                "explain" if answer.record("diagnostics").value("ranking").is_none() => {
                    view! { <p class="muted">"Press Run to see why each document stands where it does."</p> }.into_any()
                }
                "explain" => results::ranking(&answer),
                _ => results::cards(answer.clone()),
            };
            view! { {results::warnings(&answer)}{inside} }.into_any()
        }
        None if ready => view! { <p class="muted">"Press Run to see what is found."</p> }.into_any(),
        None => view! { <p class="muted">"Fill in what the search asks for; choose collections and stages if there are none."</p> }.into_any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_others_waits_to_be_run() {
        for kind in ["llm_filter", "agent_search", "agentic_enrich", "api_call"] {
            assert!(costly(kind), "{kind}");
        }
        for kind in ["feature_search", "limit", "rerank"] {
            assert!(!costly(kind), "{kind}");
        }
    }
}
