//! Where documents belong: taxonomies, and the tree of each.

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api},
    load::{Load, navigator},
    part::{schema::Form, *},
    record::{Record, items},
    route::{namespace, param},
    session::use_session,
    text,
};

mod applying;
pub mod one;

const COLUMNS: &[Column] = &[
    Column("Taxonomy", ""),
    Column("Kind", ""),
    Column("Nodes", "num"),
    Column("Version", "num"),
    Column("Made", ""),
    Column("", "actions"),
];

const BLANK: Blank = Blank {
    icon: "tree",
    title: "No taxonomy here",
    text: "A taxonomy tells where documents belong: its nodes are documents, and a retriever finds those of another document. The groups of a cluster can be made into one.",
    link: Some(("clusters", "To the clusters")),
};

const FORM: &str = "taxonomies/form";

const LIST: &str = "/v1/taxonomies";

/// Members of the form that every kind has.
const SHARED: &[&str] = &["retriever_id", "input_mappings"];

fn path_of(one: &Record) -> String {
    format!("{LIST}/{}", text::escape(&one.text("taxonomy_id")))
}

pub fn taxonomies() -> AnyView {
    let session = use_session();
    let ns = param("ns");
    let form = Form::plain("taxonomy");
    let Searched {
        search,
        offset,
        load,
    } = searched("/v1/taxonomies/list", move || session.api_in(ns.get()));
    let known = Load::new(move || offered(session.api_in(ns.get()), form));
    let rows = Rows::new(load);
    provide_context(rows);
    let (create, go) = (RwSignal::new(false), navigator());
    let api = move || session.api_in(ns.get_untracked());
    let fresh = || json!({"config": {"kind": "flat", "input_mappings": [{"source_type": "payload"}], "hierarchical_nodes": [{}], "fields": [{}]}});
    let made = move |made: Record| {
        let ns = ns.get_untracked();
        go(&format!("/ns/{ns}/taxonomies/{}", made.text("taxonomy_id")));
    };
    view! {
        <ListPage title="Taxonomies" text="Where documents belong, and what they take over from there." load search offset columns=COLUMNS row blank=BLANK rows
            create=Create::Dialog("Create taxonomy", create)/>
        {move || known.value.with(|known| known.as_ref().and_then(|known| known.clone().err())).map(|problem| view! { <Explain problem/> })}
        <Fill open=create title="Create a taxonomy".to_owned() label="Create" form schema=FORM start=Callback::new(move |()| fresh())
            send=Callback::new(move |body| api().post(LIST, &sent(body))) done=Callback::new(made)/>
        <Discard rows what="taxonomy" name="taxonomy_name" loses="Its versions go with it, and collections apply it no more. What documents took over stays theirs."
            delete=Callback::new(move |one: Record| api().delete(&path_of(&one)))/>
    }
    .into_any()
}

/// What the form chooses from.
fn offered(api: Api, form: Form) -> Answer {
    Box::pin(async move {
        let all = choices(api, &["collections", "retrievers", "clusters"]).await?;
        form.choices.set(all);
        Ok(Record::default())
    })
}

/// The body as the server takes it: what other kinds ask for stays here, and the fields belong to the collection of the nodes.
fn sent(mut body: Value) -> Value {
    let config = &mut body["config"];
    let kind = Record(config.clone()).text("kind");
    let own: &[&str] = match kind.as_str() {
        "levels" => &["hierarchical_nodes"],
        "path" => &["path_field", "path_separator"],
        "schema" => &["inference_collections"],
        "clusters" => &["cluster_ids"],
        _ => &["source_collection", "top_k"],
    };
    let strategy = match kind.as_str() {
        "schema" => Some("schema"),
        "clusters" => Some("cluster"),
        _ => None,
    };
    let fields = config["fields"].take();
    if let Some(members) = config.as_object_mut() {
        let own = |name: &str| own.contains(&name) || SHARED.contains(&name);
        members.retain(|name, _| own(name));
    }
    if let Some(strategy) = strategy {
        config["inference_strategy"] = strategy.into();
    }
    let is_flat = matches!(kind.as_str(), "" | "flat");
    let named = items(&fields).into_iter().map(|one| one.0);
    let named: Vec<Value> = named
        .filter(|one| one.get("field_path").is_some())
        .collect();
    if is_flat && !named.is_empty() {
        config["source_collection"]["enrichment_fields"] = named.into();
    }
    let kind = if is_flat { "flat" } else { "hierarchical" };
    config["taxonomy_type"] = kind.into();
    body
}

fn row(one: Record) -> AnyView {
    let rows: Rows = expect_context();
    let (id, title) = (one.text("taxonomy_id"), one.text("taxonomy_name"));
    let kind = one.record("config").text("taxonomy_type");
    let nodes = Some(one.list("nodes").len()).filter(|count| *count > 0);
    let ready = (!one.flag("ready")).then(|| badge("building"));
    let href = Some(format!("/console/ns/{}/taxonomies/{id}", namespace()));
    line(vec![
        match one.opt("description") {
            Some(about) => titled(href, title.clone(), about),
            None => name(href, title.clone(), id),
        },
        cell("", view! { {text::words(&kind)}" "{ready} }.into_any()),
        number(nodes.and_then(|count| i64::try_from(count).ok())),
        number(one.int("version")),
        cell("nowrap", when(one.opt("created_at"))),
        cell("actions", rows.open("Remove", &title, &one)),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{CreateTaxonomyRequest, TaxonomyConfig};

    use super::*;

    #[test]
    fn what_the_form_makes_is_a_taxonomy() {
        let body = json!({"taxonomy_name": "t", "config": {"retriever_id": "ret_1", "source_collection": {"collection_id": "col_1"},
            "input_mappings": [{"input_key": "q", "source_type": "payload", "path": "a"}], "fields": [{"field_path": "label", "target_field": "shelf"}, {}]}});
        let body = sent(body);
        assert_eq!(
            body["config"]["source_collection"]["enrichment_fields"],
            json!([{"field_path": "label", "target_field": "shelf"}])
        );
        serde_json::from_value::<CreateTaxonomyRequest>(body).expect("a taxonomy");
        let bare =
            sent(json!({"config": {"source_collection": {"collection_id": "c"}, "fields": [{}]}}));
        assert!(
            bare["config"]["source_collection"]
                .get("enrichment_fields")
                .is_none()
        );
    }

    #[test]
    fn every_kind_sends_what_is_its_own() {
        let all = json!({"source_collection": {"collection_id": "c"}, "fields": [{"field_path": "label"}], "top_k": 2, "retriever_id": "ret_1",
            "input_mappings": [{"input_key": "q", "source_type": "payload", "path": "a"}], "path_field": "place", "cluster_ids": ["clu_1"],
            "inference_collections": ["col_1"], "hierarchical_nodes": [{"collection_id": "col_1"}]});
        for (kind, own) in [
            ("flat", "source_collection"),
            ("levels", "hierarchical_nodes"),
            ("path", "path_field"),
            ("schema", "inference_collections"),
            ("clusters", "cluster_ids"),
        ] {
            let mut config = all.clone();
            config["kind"] = kind.into();
            let body = sent(json!({"taxonomy_name": "t", "config": config}));
            let sent = &body["config"];
            assert!(sent[own].is_array() || sent[own].is_object() || sent[own].is_string());
            let others = ["source_collection", "hierarchical_nodes", "path_field"];
            let mut others = others.into_iter().filter(|other| *other != own);
            assert!(others.all(|other| sent.get(other).is_none()), "{sent}");
            let inferred = sent.get("inference_strategy").is_some();
            assert_eq!(inferred, matches!(kind, "schema" | "clusters"));
            let made: CreateTaxonomyRequest = serde_json::from_value(body).expect("a taxonomy");
            let is_flat = matches!(made.config, TaxonomyConfig::Flat(_));
            assert_eq!(is_flat, kind == "flat");
        }
    }
}
