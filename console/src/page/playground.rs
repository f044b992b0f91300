//! A retriever tried out: inputs, results, what each stage did, the same call for a shell.

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use super::{evaluations::runs::runs, executions::executions, results, searches::searches};
use crate::{
    api::Api,
    load::{Change, Load, Query, navigator},
    part::*,
    record::{Record, plain},
    route::param,
    session::use_session,
    text,
};

const PARTS: &[(&str, &str)] = &[
    ("", "Try it"),
    ("searches", "Searches"),
    ("executions", "Executions"),
    ("evaluations", "Evaluations"),
];

pub fn playground() -> AnyView {
    let session = use_session();
    let (ns, id) = (param("ns"), param("retriever"));
    let api = Signal::derive(move || session.api_in(ns.get()));
    let path = Signal::derive(move || format!("/v1/retrievers/{}", text::escape(&id.get())));
    let load = Load::of(move || api.get(), move || path.get());
    let go = navigator();
    let removed = Callback::new(move |()| go(&format!("/ns/{}/retrievers", ns.get_untracked())));
    let tab = Query::new("tab");
    let at = Signal::derive(move || format!("/console/ns/{}/retrievers/{}", ns.get(), id.get()));
    let title = Signal::derive(move || {
        load.good()
            .map_or_else(|| id.get(), |r| r.text("retriever_name"))
    });
    view! {
        <Head title text="Try it here; publish it as a page that everyone can search.">
            {while_there(load, move || view! {
                <Remove what="retriever" name=title loses="Its public page goes with it; the collections stay." api path done=removed/>
                <a class="btn" href=move || format!("/console/ns/{}/retrievers/{}/edit", ns.get(), id.get())>"Change the stages"</a>
                <a class="btn primary" href=move || format!("{}/page", at.get())><Icon name="globe"/>{move || match load.good().is_some_and(|one| one.flag("is_published")) {
                    true => "Public page",
                    false => "Publish",
                }}</a>
            }.into_any())}
        </Head>
        {tabs("Parts of the retriever", PARTS, tab, at)}
        {move || match tab.value.get().as_str() {
            "searches" => searches(api, path),
            "executions" => executions(api, path),
            "evaluations" => runs(api, path),
            _ => loaded(load, waiting(5), move |one| view! { <Trial ns one/> }.into_any()),
        }}
    }
    .into_any()
}

/// An answer under a tab.
fn shown(tab: &str, answer: Option<Record>) -> AnyView {
    let Some(answer) = answer else {
        return view! { <Empty icon="play" title="Not run yet" text="Fill in the inputs and press Run."/> }.into_any();
    };
    match tab {
        "stages" => results::stages(&answer),
        "json" => results::raw(&answer),
        _ => results::cards(answer),
    }
}

/// The plan of what would be asked, and why the documents that were found stand where they do.
#[derive(Clone, Copy)]
struct Explaining {
    /// What was asked for the documents that are shown.
    asked: RwSignal<Option<Value>>,
    plan: RwSignal<Option<Record>>,
    why: RwSignal<Option<Record>>,
    planning: Change,
    running: Change,
}

impl Explaining {
    fn new() -> Self {
        Self {
            asked: RwSignal::new(None),
            plan: RwSignal::new(None),
            why: RwSignal::new(None),
            planning: Change::new(),
            running: Change::new(),
        }
    }

    /// Other documents are shown: the ways of those before are nobody's.
    fn found(self, asked: Value) {
        self.asked.set(Some(asked));
        self.why.set(None);
    }

    /// Asks for the plan of these inputs, and once for the ways of what was found: an answer from memory has none.
    fn ask(self, api: &Api, path: &str, inputs: &Value) {
        let body = json!({"inputs": inputs});
        let plan = api.post(&format!("{path}/explain"), &body);
        self.planning.run(plan, move |got| self.plan.set(Some(got)));
        if self.why.with_untracked(Option::is_some) {
            return;
        }
        if let Some(mut body) = self.asked.get_untracked() {
            body["explain"] = json!(true);
            let ways = api.post(path, &body);
            self.running.run(ways, move |got| self.why.set(Some(got)));
        }
    }

    fn shown(self) -> AnyView {
        let told = self.asked.with(Option::is_some).then(|| {
            view! { <p class="muted">"To tell why, the same search ran once more: it costs and is recorded as any other."</p> }
        });
        view! { {refusal(self.planning)}{self.plan.get().map(results::plan)}{told}{refusal(self.running)}{self.why.get().map(|one| results::ranking(&one))} }
            .into_any()
    }
}

#[component]
fn Trial(ns: Memo<String>, one: Record) -> AnyView {
    let session = use_session();
    let id = one.first(&["retriever_id", "retriever_name"]);
    let fields = one.record("input_schema").members();
    let path = StoredValue::new(format!("/v1/retrievers/{}/execute", text::escape(&id)));
    let schema = StoredValue::new(fields.clone());
    let (values, kept) = (defaults(&fields), Query::new("inputs"));
    let (answer, change) = (RwSignal::new(None::<Record>), Change::new());
    let explaining = Explaining::new();
    let tab = RwSignal::new("results");
    let body = move || json!({"inputs": schema.with_value(|s| values.with(|v| inputs(s, v))), "return_presigned_urls": true});
    let api = move || session.api_in(ns.get_untracked());
    let ask = move || {
        let said = written(values);
        if kept.value.get_untracked() != said {
            kept.set(&said);
        }
        let asked = untrack(body);
        change.run(api().post(&path.get_value(), &asked), move |got| {
            answer.set(Some(got));
            explaining.found(asked);
        });
    };
    let run = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        ask();
    };
    if recalled(kept, values) {
        ask();
    }
    let show = Callback::new(move |name: &'static str| {
        tab.set(name);
        if name == "explain" {
            explaining.ask(&api(), &path.get_value(), &body()["inputs"]);
        }
    });
    let curl = Signal::derive(move || {
        text::curl(
            &window().location().origin().unwrap_or_default(),
            Some(&ns.get()),
            &path.get_value(),
            &body(),
        )
    });
    view! {
        <div class="split">
            <form class="card form" on:submit=run>
                <h2>"Inputs"</h2>
                {fields.into_iter().map(|(name, field)| view! { <Input name field values/> }).collect::<Vec<_>>()}
                <div class="row"><button class="btn primary" aria-busy=move || change.busy.get().to_string() disabled=move || change.busy.get()><Icon name="play"/>"Run"</button><Copy text=curl label="Copy as curl"/></div>
            </form>
            <section class="stack" aria-label="Answer">
                {tab_list("Answer", "answer", results::TABS, tab, show)}
                <div id="answer" role="tabpanel" tabindex="0" class="stack" aria-labelledby=move || format!("answer-{}", tab.get())>
                    {refusal(change)}
                    {move || answer.get().map(|a| results::warnings(&a))}
                    {move || match tab.get() {
                        "explain" => explaining.shown(),
                        tab => shown(tab, answer.get()),
                    }}
                </div>
            </section>
        </div>
    }
    .into_any()
}

/// Letters of an input that an address takes: files are not written there.
const LONG: usize = 500;

/// Takes what the address asks for, if it does: a reload, and whoever gets the address, asks the same.
fn recalled(kept: Query, values: Values) -> bool {
    let before = serde_json::from_str::<Value>(&kept.value.get_untracked());
    let before = Record(before.unwrap_or_default()).members().into_iter();
    let before = before.map(|(name, value)| (name, plain(&value.0)));
    let before: Vec<_> = before.collect();
    let is_asked = !before.is_empty();
    values.update(|all| all.extend(before));
    is_asked
}

/// What was typed, as it stands in the address.
fn written(values: Values) -> String {
    let all = values.get_untracked().into_iter();
    let all = all.filter(|(_, text)| !text.is_empty() && text.len() < LONG);
    let all: Map<String, Value> = all.map(|(name, text)| (name, text.into())).collect();
    match all.is_empty() {
        true => String::new(),
        false => Value::Object(all).to_string(),
    }
}
