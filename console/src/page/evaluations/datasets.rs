//! Queries and the documents that are right for them: written down, or learned from what people did.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{DATASETS, listed};
use crate::{
    api::{Answer, Api},
    load::{Load, Query},
    part::{schema::Form, *},
    record::Record,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Dataset", ""),
    Column("Queries", "num"),
    Column("Made", ""),
    Column("", "actions"),
];

const QUERIES: &[Column] = &[Column("Inputs", ""), Column("Right documents", "")];

const NO_QUERIES: Blank = Blank {
    icon: "list",
    title: "No query in it",
    text: "Nothing can be measured with this dataset.",
    link: None,
};

const WRITTEN: &str = "evaluations/dataset";
const LEARNED: &str = "evaluations/learned";

pub fn datasets(api: Signal<Api>) -> AnyView {
    let (offset, log) = (Query::new("offset"), Query::new("log"));
    let toasts: Toasts = expect_context();
    let form = Form::plain("learned");
    let load = Load::new(move || {
        let api = api.get();
        let list = listed(
            api.clone(),
            DATASETS.to_owned(),
            "datasets",
            offset.number(),
        );
        async move {
            form.choices.set(choices(api, &["retrievers"]).await?);
            list.await
        }
    });
    let (write, learn) = (RwSignal::new(false), RwSignal::new(false));
    provide_context(log);
    let made = Callback::new(move |made: Record| {
        let count = made.int("query_count").unwrap_or(0);
        let queries = text::counted(count, "query", "queries");
        toasts.say(format!("A dataset of {queries}"));
        load.reload();
    });
    let learned = move |mut body: Value| {
        let id = body
            .as_object_mut()
            .and_then(|all| all.remove("retriever_id"));
        let id = Record(json!({ "id": id })).text("id");
        let path = format!(
            "/v1/retrievers/{}/evaluations/generate-from-interactions",
            text::escape(&id)
        );
        api.get_untracked().post(&path, &body)
    };
    let buttons = move || {
        view! {
            <button type="button" class="btn" on:click=move |_| learn.set(true)><Icon name="spark"/>"Learn from what people did"</button>
            <button type="button" class="btn primary" on:click=move |_| write.set(true)><Icon name="plus"/>"Write a dataset"</button>
        }
    };
    let empty = move || {
        view! {
            <Empty icon="list" title="No dataset here" text="A dataset has queries and the documents that are right for them. Retrievers are measured by where they put those.">{buttons()}</Empty>
        }
    };
    view! {
        <div class="row between"><h2>"Datasets"</h2><div class="row">{buttons()}</div></div>
        <Listing load offset=Some(offset) label="Datasets" columns=COLUMNS row empty=ViewFn::from(empty)/>
        <Fill open=write title="Write a dataset".to_owned() label="Create" form=Form::plain("dataset") schema=WRITTEN
            start=Callback::new(|()| json!({"queries": [{"query_input": {"query": ""}}]}))
            send=Callback::new(move |body| api.get_untracked().post(DATASETS, &numbered(body))) done=made/>
        <Fill open=learn title="Learn a dataset from what people did".to_owned() label="Create" form schema=LEARNED
            start=Callback::new(|()| json!({})) send=Callback::new(learned) done=made/>
        {queries(api, log)}
    }
    .into_any()
}

/// Queries have names; those of the form are counted.
fn numbered(mut body: Value) -> Value {
    for (at, one) in body["queries"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .enumerate()
    {
        one["query_id"] = format!("query {}", at + 1).into();
    }
    body
}

fn row(one: Record) -> AnyView {
    let log: Query = expect_context();
    let title = one.text("dataset_name");
    let chosen = title.clone();
    let show = press("Queries", &title, Box::new(move || log.set(&chosen)));
    let about = one
        .opt("description")
        .unwrap_or_else(|| one.text("dataset_id"));
    line(vec![
        titled(None, title, about),
        number(one.int("query_count")),
        cell("nowrap", when(one.opt("created_at"))),
        cell("actions", show),
    ])
}

/// The queries of the dataset in the address. An answer has all of them, so a page is cut here.
fn queries(api: Signal<Api>, log: Query) -> AnyView {
    let from = Query::new("from");
    let asked = move |name: String| -> Answer {
        let (api, from) = (api.get(), from.number());
        Box::pin(async move {
            let one = api
                .get(&format!("{DATASETS}/{}", text::escape(&name)))
                .await?;
            let all = one.list("queries");
            let at = usize::try_from(from).unwrap_or(0);
            let shown: Vec<Value> = all
                .iter()
                .skip(at)
                .take(50)
                .map(|one| one.0.clone())
                .collect();
            Ok(Record(json!({"results": shown, "total": all.len()})))
        })
    };
    let load = Load::wanted(move || {
        let name = log.value.get();
        (!name.is_empty()).then(|| asked(name))
    });
    let title = Signal::derive(move || format!("Queries of {}", log.value.get()));
    view! { <Log open=log.is_named() title load columns=QUERIES row=query blank=NO_QUERIES offset=from above=ViewFn::from(|| ())/> }.into_any()
}

fn query(one: Record) -> AnyView {
    let inputs = one.record("query_input").members().into_iter();
    let inputs = inputs.map(|(name, value)| {
        view! { <div><span class="muted">{name}": "</span>{crate::record::plain(&value.0)}</div> }
            .into_any()
    });
    let scores = one.record("relevance_scores");
    let right = one.strings("relevant_documents").into_iter().map(|id| {
        let score = scores.int(&id).filter(|score| *score > 1);
        match score {
            Some(score) => format!("{id} ({score})"),
            None => id,
        }
    });
    line(vec![
        cell("text-cell", inputs.collect::<Vec<_>>().into_any()),
        tags(right.collect()),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{CreateDatasetRequest, GenerateFromInteractionsRequest};

    use super::*;

    #[test]
    fn what_the_forms_make_are_datasets() {
        let query = json!({"query_input": {"query": "a"}, "relevant_documents": ["doc_1"]});
        let body = numbered(json!({"dataset_name": "d", "queries": [query, query]}));
        let made: CreateDatasetRequest = serde_json::from_value(body).expect("a dataset");
        assert_eq!(made.queries[1].query_id, "query 2");
        for (form, members) in [(WRITTEN, 3), (LEARNED, 4)] {
            let schema = schema::named(form).record("properties");
            assert_eq!(schema.members().len(), members);
        }
        let body = json!({"dataset_name": "d", "min_interactions": 1, "lookback_days": 7});
        serde_json::from_value::<GenerateFromInteractionsRequest>(body).expect("a request");
    }
}
