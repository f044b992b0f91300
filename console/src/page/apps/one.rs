//! One app: its versions, its people, who may come in and what visitors may call.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{
    FORM, access::access, domains::domains, log::log, outside, path_of, people::people, state,
    versions::versions, visits::visits, who,
};
use crate::{
    api::{Answer, Api},
    load::{Load, Query, navigator},
    part::{schema::Form, *},
    record::{Record, only},
    route::param,
    session::use_session,
};

const TABS: &[(&str, &str)] = &[
    ("", "Versions"),
    ("people", "People"),
    ("access", "Sign-in and API"),
    ("domains", "Domains"),
    ("visits", "Visits"),
    ("log", "Log"),
];

/// The app of the page, with its versions as the rows of a list.
#[derive(Clone, Copy)]
pub struct Shown {
    pub load: Load,
    pub path: Signal<String>,
}

pub fn app() -> AnyView {
    let session = use_session();
    let (id, tab) = (param("app"), Query::new("tab"));
    let path = Signal::derive(move || path_of(&id.get()));
    let load = Load::new(move || about(session.api(), path.get()));
    let shown = Shown { load, path };
    let one = move || load.good().unwrap_or_default();
    let title = Signal::derive(move || match one().record("meta").opt("title") {
        Some(title) => title,
        None => id.get(),
    });
    let slug = Signal::derive(move || one().text("slug"));
    let api = Signal::derive(move || session.api());
    let go = navigator();
    let removed = Callback::new(move |()| go("/apps"));
    let settings = RwSignal::new(false);
    let at = Signal::derive(move || format!("/console/apps/{}", id.get()));
    let part = move || match tab.value.get().as_str() {
        "people" => people(shown),
        "access" => access(shown),
        "domains" => domains(shown),
        "visits" => visits(shown),
        "log" => log(shown),
        _ => versions(shown),
    };
    view! {
        <Head title text="A front end of yours, on an origin of its own.">
            {while_there(load, move || view! {
                <Remove what="app" name=slug loses="Its versions, its people and their sessions go with it, and its address answers no more." api path done=removed/>
                <button type="button" class="btn" disabled=move || load.good().is_none() on:click=move |_| settings.set(true)>"Settings"</button>
                <a class="btn primary" href=move || one().text("url") target="_blank" rel="noopener"><Icon name="link"/>"Open"</a>
            }.into_any())}
        </Head>
        {loaded(load, ViewFn::from(|| view! { <div class="row about"><span class="skeleton"></span></div> }), facts)}
        {while_there(load, move || view! { {tabs("Parts of the app", TABS, tab, at)} {part} }.into_any())}
        {change(shown, settings)}
    }
    .into_any()
}

fn about(api: Api, path: String) -> Answer {
    Box::pin(async move {
        let mut one = api.get(&path).await?;
        let versions = api.get(&format!("{path}/versions")).await?;
        one.0["results"] = versions.value("versions").cloned().unwrap_or_default();
        Ok(one)
    })
}

fn facts(one: Record) -> AnyView {
    let url = one.text("url");
    let warnings = one.strings("warnings").into_iter();
    let warnings = warnings.map(|words| view! { <p class="notice warn">{words}</p> }.into_any());
    view! {
        <div class="row about">
            {state(&one)}
            {outside(url.clone(), url)}
            <span class="muted">"for "{who(&one)}</span>
        </div>
        {warnings.collect::<Vec<_>>()}
    }
    .into_any()
}

/// Its name, its address, whether visitors reach it.
fn change(shown: Shown, open: RwSignal<bool>) -> AnyView {
    let session = use_session();
    let form = Form::plain("app-settings");
    // What can be chosen is asked for once somebody wants to choose.
    let namespaces = Load::new(move || -> Answer {
        match open.get() {
            true => super::namespaces(session.api()),
            false => Box::pin(std::future::pending()),
        }
    });
    Effect::new(move |_| {
        if let Some(all) = namespaces.good() {
            form.choices.set(all);
            form.shape.update(|n| *n += 1);
        }
    });
    let send = move |body| {
        let one = shown.load.good().unwrap_or_default();
        save(session.api(), shown.path.get_untracked(), &one, body)
    };
    view! {
        <Fill open title="Settings".to_owned() label="Save" form schema=FORM start=Callback::new(move |()| settled(shown.load.good().unwrap_or_default()))
            send=Callback::new(send) done=Callback::new(move |_| shown.load.reload())/>
    }
    .into_any()
}

/// What the form begins with.
fn settled(one: Record) -> Value {
    let namespace = one.opt("namespace_id");
    let mut body = one.0;
    if let Some(namespace) = namespace {
        body["namespace"] = namespace.into();
    }
    body
}

/// What of the form is sent. A page that visitors see already is told to them anew when its words changed.
fn save(api: Api, path: String, before: &Record, body: Value) -> Answer {
    let on = body.get("is_active").cloned().unwrap_or(json!(true));
    let mut sent = only(Record(body), &["meta", "slug", "namespace"]);
    sent["is_active"] = on;
    // One that is gone keeps nothing else from being changed.
    if before.value("namespace_id") == sent.get("namespace")
        && let Some(sent) = sent.as_object_mut()
    {
        sent.remove("namespace");
    }
    let words = before.value("meta") != sent.get("meta");
    if words && before.int("version").is_some_and(|version| version > 0) {
        sent["publish"] = true.into();
    }
    super::save(api, Some(path), sent)
}
