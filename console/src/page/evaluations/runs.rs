//! The evaluations of one retriever: begun here, and read figure by figure.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{FIGURES, goes_on, listed, names, share};
use crate::{
    api::{Answer, Api},
    load::{Load, Query},
    part::{schema::Form, *},
    record::Record,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Dataset", ""),
    Column("Status", ""),
    Column("nDCG", "num"),
    Column("Recall", "num"),
    Column("Against the one before", ""),
    Column("Begun", ""),
    Column("", "actions"),
];

const FORM: &str = "evaluations/run";

/// The evaluations of the retriever at `path`.
pub fn runs(api: Signal<Api>, path: Signal<String>) -> AnyView {
    let (offset, log) = (Query::new("offset"), Query::new("log"));
    let path = Signal::derive(move || format!("{}/evaluations", path.get()));
    let form = Form::plain("run");
    let load = Load::new(move || list(api.get(), path.get(), offset.number(), form));
    load.poll_while(goes_on);
    provide_context(log);
    let start = RwSignal::new(false);
    let begin = move |body: Value| {
        let body = numbers(body);
        api.get_untracked().post(&path.get_untracked(), &body)
    };
    let button = move || view! { <button type="button" class="btn primary" on:click=move |_| start.set(true)><Icon name="play"/>"Evaluate"</button> };
    let empty = move || {
        view! {
            <Empty icon="chart" title="Never evaluated" text="An evaluation asks this retriever every query of a dataset and measures where it puts the right documents.">{button()}</Empty>
        }
    };
    view! {
        <div class="row between"><h2>"Evaluations"</h2>{button()}</div>
        <Listing load offset=Some(offset) label="Evaluations" columns=COLUMNS row empty=ViewFn::from(empty)/>
        <Fill open=start title="Evaluate this retriever".to_owned() label="Begin" form schema=FORM
            start=Callback::new(|()| json!({})) send=Callback::new(begin) done=Callback::new(move |_| load.reload())/>
        {details(api, path, log)}
    }
    .into_any()
}

/// A page of evaluations, once everything that the form chooses from is known.
fn list(api: Api, path: String, offset: i64, form: Form) -> Answer {
    Box::pin(async move {
        let datasets = names(api.clone()).await?;
        let answer = listed(api, path, "evaluations", offset).await?;
        let done = answer.list("results").into_iter();
        let done = done
            .filter(|one| one.text("status") == "completed")
            .map(|one| {
                let at = text::moment(&one.text("created_at"));
                let name = format!("{} of {at}", one.text("dataset_name"));
                json!({"id": one.text("evaluation_id"), "name": name})
            });
        let datasets: Vec<Value> = datasets.into_iter().map(|one| one.0).collect();
        form.choices.set(Record(
            json!({"datasets": datasets, "runs": done.collect::<Value>()}),
        ));
        Ok(answer)
    })
}

/// What is ticked is text; cut-offs are numbers.
fn numbers(mut body: Value) -> Value {
    let config = &mut body["evaluation_config"];
    if let Some(all) = config.get_mut("k_values").and_then(Value::as_array_mut) {
        for one in all {
            *one = one.as_str().and_then(|k| k.parse::<i64>().ok()).into();
        }
    }
    if let Some(config) = config.as_object_mut() {
        config.retain(|_, all| !all.as_array().is_some_and(Vec::is_empty));
    }
    if body["evaluation_config"].is_null() {
        body["evaluation_config"] = json!({});
    }
    body
}

fn row(one: Record) -> AnyView {
    let log: Query = expect_context();
    let (title, id) = (one.text("dataset_name"), one.text("evaluation_id"));
    let overall = one.record("overall_metrics");
    let figure = |name: &str| words("num", overall.float(name).map(share).unwrap_or_default());
    let error = one
        .opt("error_message")
        .map(|error| view! { <span class="sub cut">{error}</span> });
    let show = press(
        "Figures",
        &title,
        Box::new({
            let id = id.clone();
            move || log.set(&id)
        }),
    );
    line(vec![
        name(None, title.clone(), id),
        cell("", view! { {badge(&one.text("status"))}{error} }.into_any()),
        figure("ndcg"),
        figure("recall"),
        cell("", verdict(&one)),
        cell("nowrap", when(one.opt("created_at"))),
        cell("actions", show),
    ])
}

/// Whether it is as good as what it was held against.
fn verdict(one: &Record) -> AnyView {
    let verdict = one.record("verdict");
    if verdict.0.is_null() {
        return view! { <span class="muted">"nothing to compare with"</span> }.into_any();
    }
    match verdict.flag("passed") {
        true => view! { <span class="badge ok">"as good or better"</span> }.into_any(),
        false => view! { <span class="badge bad">"worse"</span> }.into_any(),
    }
}

/// The evaluation in the address.
fn details(api: Signal<Api>, path: Signal<String>, log: Query) -> AnyView {
    let load = Load::of(
        move || api.get(),
        move || match log.value.get() {
            id if id.is_empty() => id,
            id => format!("{}/{}", path.get(), text::escape(&id)),
        },
    );
    load.poll_while(goes_on);
    let title = Signal::derive(move || {
        let name = load.good().map(|one| one.text("dataset_name"));
        format!("Evaluation over {}", name.unwrap_or_default())
    });
    view! { <Modal open=log.is_named() title class="side wide"><div class="stack">{loaded(load, waiting(6), told)}</div></Modal> }.into_any()
}

fn told(one: Record) -> AnyView {
    let count = |name: &str| text::count(one.int(name).unwrap_or(0)).into_any();
    let reason = one.record("verdict").opt("reason");
    let class = match one.record("verdict").flag("passed") {
        true => "notice",
        false => "notice warn",
    };
    let failed = one.list("query_results").into_iter();
    let failed = failed.filter(|one| one.value("error").is_some());
    let failed: Vec<_> = failed
        .map(|one| view! { <li><strong>{one.text("query_id")}</strong><span>{one.text("error")}</span></li> }.into_any())
        .collect();
    view! {
        <dl class="stats">
            {stat("Status", badge(&one.text("status")))}
            {stat("Queries", count("query_count"))}
            {stat("Measured", count("evaluated_queries"))}
            {stat("Passed over", count("skipped_queries"))}
        </dl>
        {one.opt("error_message").map(|error| view! { <p class="notice bad" role="alert">{error}</p> })}
        {reason.map(|reason| view! { <p class=class>{reason}</p> })}
        {by_k(&one)}
        {against(&one.record("verdict"))}
        {(!failed.is_empty()).then(|| view! { <h3>"Queries that were not measured"</h3><ul class="notes">{failed}</ul> })}
    }
    .into_any()
}

/// Every figure at every cut-off.
fn by_k(one: &Record) -> AnyView {
    let all = one.record("metrics_by_k").members();
    if all.is_empty() {
        return ().into_any();
    }
    let known = |name: &&&str| all.iter().any(|(_, at)| at.float(name).is_some());
    let names: Vec<&str> = FIGURES.iter().filter(known).copied().collect();
    let mut columns = vec![Column("First", "num")];
    columns.extend(names.iter().map(|name| Column(name, "num")));
    let rows = all.iter().map(|(k, at)| {
        let mut cells = vec![words("num", k.clone())];
        let figures = names.iter().map(|name| at.float(name).map(share));
        cells.extend(figures.map(|figure| words("num", figure.unwrap_or_default())));
        line(cells)
    });
    table("Figures", &columns, rows.collect(), Signal::stored(false))
}

const AGAINST: &[Column] = &[
    Column("Figure", ""),
    Column("Before", "num"),
    Column("Now", "num"),
    Column("Difference", "num"),
    Column("", ""),
];

/// Each figure beside what it was.
fn against(verdict: &Record) -> AnyView {
    let all = verdict.record("per_metric").members();
    if all.is_empty() {
        return ().into_any();
    }
    let rows = all.into_iter().map(|(name, one)| {
        let figure = |name: &str| words("num", one.float(name).map(share).unwrap_or_default());
        let state = one
            .flag("regressed")
            .then(|| view! { <span class="badge bad">"fell"</span> });
        line(vec![
            words("", name),
            figure("baseline"),
            figure("candidate"),
            words("num", text::signed(one.float("delta").unwrap_or(0.0))),
            cell("", state.into_any()),
        ])
    });
    let rows = rows.collect();
    view! { <h3>"Beside the one before"</h3>{table("Beside the one before", AGAINST, rows, Signal::stored(false))} }.into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::StartEvaluationRequest;

    use super::*;

    #[test]
    fn what_the_form_makes_is_a_request() {
        let config = json!({"k_values": ["1", "10"], "metrics": []});
        let body = numbers(json!({"dataset_name": "d", "evaluation_config": config}));
        assert_eq!(body["evaluation_config"], json!({"k_values": [1, 10]}));
        serde_json::from_value::<StartEvaluationRequest>(body).expect("a request");
        let bare = numbers(json!({"dataset_name": "d"}));
        serde_json::from_value::<StartEvaluationRequest>(bare).expect("a request");
        let schema = schema::named(FORM)
            .record("properties")
            .record("evaluation_config");
        let offered = schema
            .record("properties")
            .record("metrics")
            .record("items");
        for name in offered.strings("enum") {
            assert!(FIGURES.contains(&name.as_str()), "{name}");
        }
    }
}
