//! How good retrievers are: datasets of queries with the documents that are right for them, and two retrievers side by side.

use leptos::prelude::*;
use serde_json::json;

use crate::{
    api::{Answer, Api},
    load::Query,
    part::*,
    record::Record,
    route::param,
    session::use_session,
};

pub mod comparison;
pub mod datasets;
pub mod runs;

const TABS: &[(&str, &str)] = &[("", "Datasets"), ("comparison", "Comparison")];

/// The figures, in the order in which they are told.
const FIGURES: &[&str] = &["ndcg", "map", "mrr", "precision", "recall", "f1"];

const DATASETS: &str = "/v1/retrievers/evaluations/datasets";

pub fn evaluations() -> AnyView {
    let session = use_session();
    let (ns, tab) = (param("ns"), Query::new("tab"));
    let api = Signal::derive(move || session.api_in(ns.get()));
    let at = Signal::derive(move || format!("/console/ns/{}/evaluations", ns.get()));
    view! {
        <Head title="Evaluations".to_owned() text="Queries whose right documents are known, and how well retrievers find them."/>
        {tabs("Parts of the evaluations", TABS, tab, at)}
        {move || match tab.value.with(|tab| tab == "comparison") {
            true => comparison::comparison(api),
            false => datasets::datasets(api),
        }}
    }
    .into_any()
}

/// A list that counts pages, as one that counts rows.
fn listed(api: Api, path: String, member: &'static str, offset: i64) -> Answer {
    let glue = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{glue}page={}&page_size=50", offset / 50 + 1);
    Box::pin(async move {
        let answer = api.get(&path).await?;
        let rows = answer.record(member).0;
        Ok(Record(
            json!({"results": rows, "total": answer.int("total")}),
        ))
    })
}

/// The names of the datasets, as a form chooses from them.
async fn names(api: Api) -> Result<Vec<Record>, crate::api::Problem> {
    let all = listed(api, DATASETS.to_owned(), "datasets", 0).await?;
    let name = |one: Record| one.text("dataset_name");
    let all = all.list("results").into_iter().map(name);
    Ok(all
        .map(|name| Record(json!({"id": name, "name": name})))
        .collect())
}

/// Whether an evaluation is still to end.
fn goes_on(one: &Record) -> bool {
    matches!(one.text("status").as_str(), "pending" | "in_progress")
}

/// A share, of one.
fn share(value: f64) -> String {
    format!("{value:.3}")
}

/// The figures at `k`, in their order.
fn figures(one: &Record, k: &str) -> Vec<(String, f64)> {
    let all = one.record("metrics_by_k").record(k);
    let known = FIGURES.iter();
    known
        .filter_map(|name| Some(((*name).to_owned(), all.float(name)?)))
        .collect()
}
