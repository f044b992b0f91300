//! One cluster: its picture, its groups, what each execution found.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{goes_on, method, path_of, picture, runs::runs};
use crate::{
    api::{Answer, Api},
    load::{Load, Query, navigator},
    page::documents::{by_ids, called},
    part::{schema::Form, *},
    record::Record,
    route::param,
    session::use_session,
    text,
};

const TABS: &[(&str, &str)] = &[("", "Groups"), ("executions", "Executions")];

const COLUMNS: &[Column] = &[
    Column("Group", ""),
    Column("Documents", "num"),
    Column("Words", ""),
    Column("For instance", ""),
    Column("", "actions"),
];

const PROMOTE: &str = "clusters/promote";

/// Documents of a picture: more than that are no longer told apart.
const POINTS: usize = 2000;

/// Documents that stand for a group.
const INSTANCES: usize = 3;

pub fn cluster() -> AnyView {
    let session = use_session();
    let (ns, id, tab, run) = (
        param("ns"),
        param("cluster"),
        Query::new("tab"),
        Query::new("run"),
    );
    let api = Signal::derive(move || session.api_in(ns.get()));
    let path = Signal::derive(move || format!("/v1/clusters/{}", text::escape(&id.get())));
    let load = Load::of(move || api.get(), move || path.get());
    load.poll_while(goes_on);
    let rows = Rows::new(load);
    provide_context(rows);
    let title = Signal::derive(move || match load.good() {
        Some(one) => one.text("cluster_name"),
        None => id.get(),
    });
    let go = navigator();
    let removed = Callback::new(move |()| go(&format!("/ns/{}/clusters", ns.get_untracked())));
    let gather = move |_| {
        let said = rows.runner("The documents are being gathered");
        let Some(one) = load.good() else { return };
        said(
            api.get_untracked()
                .post(&format!("{}/execute", path_of(&one)), &json!({})),
        );
    };
    let at = Signal::derive(move || format!("/console/ns/{}/clusters/{}", ns.get(), id.get()));
    // The run that ended last, or the one that is chosen: the picture is made anew with it.
    let shown = Memo::new(move |_| {
        let chosen = run.value.get();
        match chosen.is_empty() {
            true => load
                .good()
                .and_then(|one| one.opt("last_run_id"))
                .unwrap_or_default(),
            false => chosen,
        }
    });
    let busy = Memo::new(move |_| load.good().is_some_and(|one| goes_on(&one)));
    view! {
        <Head title text="Documents gathered by what they have in common.">
            {while_there(load, move || view! { <Remove what="cluster" name=title loses="Its executions go with it. What documents were told stays theirs." api path done=removed/> }.into_any())}
            <button type="button" class="btn primary" disabled=move || busy.get() || load.good().is_none() aria-busy=move || busy.get().to_string() on:click=gather><Icon name="play"/>"Gather"</button>
        </Head>
        {refusal(rows.change)}
        {loaded(load, ViewFn::from(|| view! { <div class="row about"><span class="skeleton"></span></div> }), about)}
        {while_there(load, move || view! {
            {tabs("Parts of the cluster", TABS, tab, at)}
            {move || match tab.value.with(|tab| tab == "executions") {
                true => runs(api, path),
                false => groups(api, path, shown, busy),
            }}
        }.into_any())}
    }
    .into_any()
}

fn about(one: Record) -> AnyView {
    let error = one
        .opt("error")
        .map(|error| view! { <p class="notice bad" role="alert">{error}</p> });
    view! {
        <div class="row about">
            {badge(&one.text("status"))}
            <span class="muted">{method(&one)}", gathered "{when(one.opt("last_executed_at"))}</span>
            {one.strings("feature_uris").into_iter().map(|uri| view! { <span class="tag mono">{uri}</span> }.into_any()).collect::<Vec<_>>()}
        </div>
        {error}
    }
    .into_any()
}

/// One execution with its picture.
fn found(api: Api, path: String, run: String) -> Answer {
    Box::pin(async move {
        let run = text::escape(&run);
        let mut one = api.get(&format!("{path}/executions/{run}")).await?;
        let picture = api
            .get(&format!(
                "{path}/visualization?max_points={POINTS}&run_id={run}"
            ))
            .await?;
        one.0["picture"] = picture.0;
        let groups = one.list("centroids").into_iter();
        let shown =
            groups.flat_map(|group| group.list("representative_ids").into_iter().take(INSTANCES));
        let ids = shown.map(|one| one.text("document_id")).collect();
        let known = Record(by_ids(&api, ids).await);
        for group in one.0["centroids"].as_array_mut().into_iter().flatten() {
            for one in group["representative_ids"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                let id = one["document_id"].as_str().unwrap_or_default();
                one["called"] = called(&known.record(id), id).into();
            }
        }
        // Names that somebody gave stand beside those that were found.
        let given = one.record("label_overrides");
        for group in one.0["centroids"].as_array_mut().into_iter().flatten() {
            let id = group["cluster_id"].as_str().unwrap_or_default();
            if let Some(name) = given.opt(id) {
                group["label"] = name.into();
            }
        }
        Ok(one)
    })
}

fn groups(api: Signal<Api>, path: Signal<String>, run: Memo<String>, busy: Memo<bool>) -> AnyView {
    let open = Query::new("group");
    let load = Load::settled(0, move || {
        let run = run.get();
        let _ = busy.get();
        (!run.is_empty()).then(|| found(api.get(), path.get(), run))
    });
    let rows = Rows::new(load);
    provide_context(rows);
    provide_context(open);
    let (ns, go, toasts) = (param("ns"), navigator(), expect_context::<Toasts>());
    let promote = RwSignal::new(false);
    let send = move |body: Value| {
        let mut body = body;
        let cluster = load.good().unwrap_or_default().text("cluster_id");
        body["cluster_run"] = json!({"cluster_id": cluster, "run_id": run.get_untracked()});
        api.get_untracked()
            .post("/v1/taxonomies/from-documents", &body)
    };
    let made = move |made: Record| {
        toasts.say("Every group is a node of it");
        go(&format!(
            "/ns/{}/taxonomies/{}",
            ns.get_untracked(),
            made.text("taxonomy_id")
        ));
    };
    let rename = move |body: Value| {
        let (of, label) = (rows.of.get_untracked(), Record(body).text("label"));
        let labels = json!({"labels": { of.text("cluster_id"): label }});
        let path = format!(
            "{}/executions/{}/labels",
            path.get_untracked(),
            text::escape(&run.get_untracked())
        );
        api.get_untracked().patch(&path, &labels)
    };
    let shown = move |one: Record| told(&one, open, promote);
    let inside = move || {
        match run.get().is_empty() {
        true => view! { <Empty icon="layers" title="Nothing is gathered yet" text="The groups stand here once the documents were gathered."/> }.into_any(),
        false => loaded(load, waiting(8), shown),
    }
    };
    view! {
        {inside}
        <Fill open=promote title="Make a taxonomy of the groups".to_owned() label="Create" form=Form::plain("promote") schema=PROMOTE
            start=Callback::new(|()| json!({})) send=Callback::new(send) done=Callback::new(made)/>
        <Fill open=rows.dialog("Rename") title="Rename the group".to_owned() label="Save" form=Form::plain("rename") schema="clusters/rename"
            start=Callback::new(move |()| json!({"label": rows.of.get().text("label")})) send=Callback::new(rename) done=Callback::new(move |_| load.reload())/>
    }
    .into_any()
}

fn told(one: &Record, open: Query, promote: RwSignal<bool>) -> AnyView {
    let groups = one.list("centroids");
    let metrics = one.record("metrics");
    let figure = |name: &str| {
        metrics
            .float(name)
            .map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"))
    };
    let reasons = one.strings("input_reconciliation_reasons");
    let reasons = (!reasons.is_empty()).then(|| view! {
        <div class="notice"><strong>"Mind this"</strong><ul>{reasons.into_iter().map(|one| view! { <li>{one}</li> }.into_any()).collect::<Vec<_>>()}</ul></div>
    });
    let (picture, all) = (one.record("picture"), groups.clone());
    let drawn = move || {
        open.value
            .with(|open| picture::picture(&picture, &all, open))
    };
    let rows = groups
        .iter()
        .enumerate()
        .map(|(rank, group)| row(rank, group));
    let rows = rows.collect();
    let drift = metrics.record("drift").float("distance");
    let drift = drift.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
    view! {
        <dl class="stats">
            {stat("Groups", text::count(one.int("num_clusters").unwrap_or(0)).into_any())}
            {stat("Documents", text::count(one.int("num_points").unwrap_or(0)).into_any())}
            {stat("Apart from each other (silhouette)", figure("silhouette_score").into_any())}
            {stat("Moved since the last time", drift.into_any())}
        </dl>
        {reasons}
        <section class="card" aria-label="Picture of the documents">{drawn}</section>
        <div class="row between"><h2>"Groups"</h2>
            <div class="row">
                {move || (!open.value.with(String::is_empty)).then(|| view! { <button type="button" class="btn" on:click=move |_| open.set("")>"Show all groups"</button> })}
                <button type="button" class="btn" on:click=move |_| promote.set(true)>"Make a taxonomy of them"</button>
            </div></div>
        {table("Groups", COLUMNS, rows, Signal::stored(false))}
    }
    .into_any()
}

fn row(rank: usize, group: &Record) -> AnyView {
    let (rows, open): (Rows, Query) = (expect_context(), expect_context());
    let id = group.text("cluster_id");
    let label = group.first(&["label", "cluster_id"]);
    let instances = group
        .list("representative_ids")
        .into_iter()
        .take(INSTANCES)
        .map(|one| {
            let (href, id) = (picture::document_of(&one), one.text("document_id"));
            view! { <a class="instance" title=id href=format!("/console{href}")>{one.first(&["called", "document_id"])}</a> }.into_any()
        });
    let key = match rank {
        rank if rank < 18 => format!("key s{}", rank % 6 + 1),
        _ => "key s0".to_owned(),
    };
    let head = view! {
        <th scope="row"><span class="row nowrap"><span class=key></span><span>{label.clone()}<span class="sub mono">{id.clone()}</span></span></span></th>
    };
    let show = press("Show", &label, Box::new(move || open.set(&id)));
    line(vec![
        head.into_any(),
        number(group.int("num_members")),
        tags(group.strings("keywords").into_iter().take(6).collect()),
        cell("text-cell", instances.collect::<Vec<_>>().into_any()),
        cell(
            "actions",
            view! { {show}{rows.open("Rename", &label, group)} }.into_any(),
        ),
    ])
}
