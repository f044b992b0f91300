//! Documents that are alike, gathered: ways to do it, and what each found.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::template;
use crate::{
    api::{Answer, Api},
    load::{Load, navigator},
    part::{schema::Form, *},
    record::Record,
    route::{namespace, param},
    session::use_session,
    text,
};

pub mod one;
mod picture;
mod runs;

const COLUMNS: &[Column] = &[
    Column("Cluster", ""),
    Column("Of", ""),
    Column("Groups", "num"),
    Column("Documents", "num"),
    Column("Status", ""),
    Column("Last gathered", ""),
    Column("", "actions"),
];

const BLANK: Blank = Blank {
    icon: "spark",
    title: "No cluster here",
    text: "A cluster gathers the documents of collections that are alike, names the groups and draws them.",
    link: None,
};

const FORM: &str = "clusters/form";

const LIST: &str = "/v1/clusters";

fn path_of(one: &Record) -> String {
    format!("{LIST}/{}", text::escape(&one.text("cluster_id")))
}

/// Whether documents are being gathered now.
fn goes_on(one: &Record) -> bool {
    match one.text("status").as_str() {
        "QUEUED" | "IN_PROGRESS" | "PROCESSING" | "processing" | "pending" => true,
        "PENDING" => one.value("last_execution_task_id").is_some(),
        _ => false,
    }
}

pub fn clusters() -> AnyView {
    let session = use_session();
    let ns = param("ns");
    let features = RwSignal::new(Vec::new());
    let form = Form::new("cluster".to_owned(), Value::Null, features.into());
    let Searched {
        search,
        offset,
        load,
    } = searched("/v1/clusters/list", move || session.api_in(ns.get()));
    load.poll_while(goes_on);
    let known = Load::new(move || offered(session.api_in(ns.get()), form, features));
    let rows = Rows::new(load);
    provide_context(rows);
    provide_context(Around { form, ns, known });
    let create = RwSignal::new(false);
    let go = navigator();
    let api = move || session.api_in(ns.get_untracked());
    let fresh =
        || json!({"cluster_type": "vector", "vector_config": {"clustering_method": "auto"}});
    let made = move |made: Record| {
        let ns = ns.get_untracked();
        go(&format!("/ns/{ns}/clusters/{}", made.text("cluster_id")));
    };
    view! {
        <ListPage title="Clusters" text="Documents gathered by what they have in common." load search offset columns=COLUMNS row blank=BLANK rows
            create=Create::Dialog("Create cluster", create)/>
        <Fill open=create title="Create a cluster".to_owned() label="Create" form schema=FORM start=Callback::new(move |()| fresh())
            send=Callback::new(move |body| api().post(LIST, &sent(body))) done=Callback::new(made)/>
        <Discard rows what="cluster" name="cluster_name" loses="Its executions go with it. What documents were told stays theirs."
            delete=Callback::new(move |one: Record| api().delete(&path_of(&one)))/>
    }
    .into_any()
}

/// What rows need besides their buttons. `known` is asked for with them, so that collections have their names.
#[derive(Clone, Copy)]
struct Around {
    form: Form,
    ns: Memo<String>,
    known: Load,
}

/// The collections to choose from, and the features that they have.
fn offered(api: Api, form: Form, features: RwSignal<Vec<String>>) -> Answer {
    Box::pin(async move {
        let answer = api
            .post("/v1/collections/list?limit=100", &json!({}))
            .await?;
        let all = answer.list("results");
        features.set(template::uris(&all));
        let pair = |one: &Record| json!({"id": one.text("collection_id"), "name": one.text("collection_name")});
        let collections: Vec<Value> = all.iter().map(pair).collect();
        form.choices
            .set(Record(json!({ "collections": collections })));
        Ok(answer)
    })
}

/// A request has the settings of one kind alone.
fn sent(mut body: Value) -> Value {
    let other = match body["cluster_type"] == "attribute" {
        true => "vector_config",
        false => "attribute_config",
    };
    if let Some(all) = body.as_object_mut() {
        all.remove(other);
    }
    body
}

/// How documents are gathered, in words.
fn method(one: &Record) -> String {
    match one.opt("algorithm") {
        Some(name) => text::words(&name),
        None => one.strings("clustered_attributes").join(", "),
    }
}

fn row(one: Record) -> AnyView {
    let (session, rows): (_, Rows) = (use_session(), expect_context());
    let Around { form, ns, known } = expect_context();
    known.value.track();
    let (id, title) = (one.text("cluster_id"), one.text("cluster_name"));
    let of = one.strings("input_collections").into_iter();
    let of: Vec<String> = of.map(|id| form.name_of("collections", &id)).collect();
    let of = of.join(", ");
    let error = one
        .opt("error")
        .map(|error| view! { <span class="sub cut">{error}</span> });
    let path = format!("{}/execute", path_of(&one));
    let run = rows.call(
        "Gather",
        &title,
        "The documents are being gathered",
        move || session.api_in(ns.get_untracked()).post(&path, &json!({})),
    );
    let buttons = view! { {run}{rows.open("Remove", &title, &one)} };
    let status = match one.value("last_executed_at").is_some() || goes_on(&one) || error.is_some() {
        true => badge(&one.text("status")),
        false => view! { <span class="muted">"never ran"</span> }.into_any(),
    };
    let href = Some(format!("/console/ns/{}/clusters/{id}", namespace()));
    line(vec![
        match one.opt("description") {
            Some(about) => titled(href, title, about),
            None => name(href, title, id),
        },
        two(of, method(&one)),
        number(one.int("num_clusters")),
        number(one.int("num_documents_clustered")),
        cell("", view! { {status}{error} }.into_any()),
        cell("nowrap", when(one.opt("last_executed_at"))),
        cell("actions", buttons.into_any()),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::CreateClusterRequest;

    use super::*;

    #[test]
    fn what_the_form_makes_is_a_cluster() {
        let schema = schema::named(FORM).0;
        let vector = &schema["properties"]["vector_config"]["properties"];
        let methods = vector["clustering_method"]["enum"]
            .as_array()
            .expect("methods");
        for method in methods {
            let body = sent(
                json!({"cluster_name": "c", "cluster_type": "vector", "collection_ids": ["col_1"], "attribute_config": {},
                "vector_config": {"feature_uri": "own", "clustering_method": method, "algorithm_params": {"n_clusters": 2}}}),
            );
            serde_json::from_value::<CreateClusterRequest>(body).expect("a cluster");
        }
        let body = sent(
            json!({"cluster_name": "c", "cluster_type": "attribute", "collection_ids": ["col_1"],
            "vector_config": {}, "attribute_config": {"attributes": ["genre"]}}),
        );
        serde_json::from_value::<CreateClusterRequest>(body).expect("a cluster");
    }

    #[test]
    fn a_cluster_that_never_ran_does_not_go_on() {
        assert!(!goes_on(&Record(json!({"status": "PENDING"}))));
        assert!(goes_on(&Record(
            json!({"status": "PENDING", "last_execution_task_id": "t"})
        )));
    }
}
