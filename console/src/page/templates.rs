//! Templates: what namespaces, buckets, collections and the like are made of, the server's own and those that were kept here.

pub mod one;
mod using;

use leptos::prelude::*;
use serde_json::{Value, json};

use self::using::Use;
use crate::{
    api::{Answer, Api},
    load::{Load, Query, navigator},
    part::{schema::Form, *},
    record::{Record, only},
    route::{namespace, param},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Template", ""),
    Column("Makes", "text-cell"),
    Column("Scope", ""),
    Column("Kept", ""),
    Column("", "actions many"),
];

const BLANK: Blank = Blank {
    icon: "copy",
    title: "No template here",
    text: "A template keeps how something is made, to make others like it in whatever namespace.",
    link: None,
};

/// The kinds, each its word in addresses, and its name.
const TABS: &[(&str, &str)] = &[
    ("", "Namespaces"),
    ("buckets", "Buckets"),
    ("collections", "Collections"),
    ("retrievers", "Retrievers"),
    ("taxonomies", "Taxonomies"),
    ("clusters", "Clusters"),
];

/// The same in the words of the API: many, and one.
const KINDS: [(&str, &str); 6] = [
    ("namespaces", "namespace"),
    ("buckets", "bucket"),
    ("collections", "collection"),
    ("retrievers", "retriever"),
    ("taxonomies", "taxonomy"),
    ("clusters", "cluster"),
];

const SCOPES: &[&str] = &["system", "organization", "user"];

const FORM: &str = "templates/keep";

/// What is sent of the form.
const KEPT: &[&str] = &["template_name", "description", "scope", "category", "tags"];

/// The kind under a tab.
fn of_tab(tab: &str) -> (&'static str, &'static str) {
    let known = KINDS.iter().find(|(many, _)| *many == tab);
    known.copied().unwrap_or(KINDS[0])
}

/// The kind that a template makes.
fn of_template(one: &Record) -> (&'static str, &'static str) {
    let kind = one.text("template_type");
    let known = KINDS.iter().find(|(_, single)| *single == kind);
    known.copied().unwrap_or(KINDS[0])
}

/// Whether it was kept here, and can be removed.
fn is_own(one: &Record) -> bool {
    matches!(one.text("scope").as_str(), "organization" | "user")
}

fn path_of(one: &Record) -> String {
    format!("/v1/templates/{}", text::escape(&one.text("template_id")))
}

/// The page of a template, below the base.
fn page_of(ns: &str, many: &str, id: &str) -> String {
    let (ns, id) = (text::escape(ns), text::escape(id));
    format!("/ns/{ns}/templates/{many}/{id}")
}

pub fn templates() -> AnyView {
    let (session, ns) = (use_session(), param("ns"));
    let (tab, search, scope) = (Query::new("tab"), Query::new("q"), Query::new("scope"));
    let kind = Memo::new(move |_| tab.value.with(|tab| of_tab(tab)));
    let load = Load::new(move || {
        let api = session.api_in(ns.get());
        list(api, kind.get().0, scope.value.get(), search.value.get())
    });
    let rows = Rows::new(load);
    provide_context(rows);
    let at = Signal::derive(move || format!("/console/ns/{}/templates", ns.get()));
    let above = move || tabs("Kinds of templates", TABS, tab, at);
    let keep = RwSignal::new(false);
    view! {
        <ListPage title="Templates" text="What things are made of: the server's own templates, and those that you keep of your own things." load search columns=COLUMNS row
            blank=BLANK rows create=Create::Dialog("Save as template", keep) above=ViewFn::from(above) picks=vec![scope]>
            <Pick query=scope label="Scope" all="Every scope" options=SCOPES/>
        </ListPage>
        {keeping(kind, keep)}
        <Use open=rows.dialog("Use") of=Signal::derive(move || rows.of.get())/>
        <Discard rows what="template" name="name" loses="What was made of it stays."
            delete=Callback::new(move |one: Record| session.api().delete(&path_of(&one)))/>
    }
    .into_any()
}

/// The templates of a kind. Their list is whole, so it is searched here.
fn list(api: Api, many: &'static str, scope: String, words: String) -> Answer {
    Box::pin(async move {
        let path = format!("/v1/templates/{many}");
        let mut answer = match many {
            "namespaces" => Record(json!({"results": api.get(&path).await?.0})),
            _ => api.post(&path, &json!({})).await?,
        };
        let mut all = answer.list("results");
        all.retain(|one| fits(one, &scope, &words));
        answer.0["total_count"] = all.len().into();
        answer.0["results"] = all.into_iter().map(|one| one.0).collect();
        Ok(answer)
    })
}

/// Whether a template has every one of the words, and the scope where one is chosen.
fn fits(one: &Record, scope: &str, words: &str) -> bool {
    let about = [
        one.text("name"),
        one.text("description"),
        one.text("category"),
        one.strings("tags").join(" "),
    ];
    let about = about.join(" ").to_lowercase();
    let words = words.to_lowercase();
    let mut words = words.split_whitespace();
    (scope.is_empty() || one.text("scope") == scope) && words.all(|word| about.contains(word))
}

/// What a template makes, in a line.
fn makes(one: &Record) -> String {
    let config = one.record("configuration");
    match one.text("template_type").as_str() {
        "namespace" => one.opt("whats_inside").unwrap_or_else(|| inside(&config)),
        "bucket" => {
            let fields = config.record("bucket_schema").record("properties");
            let names = fields.members().into_iter().map(|(name, _)| name);
            format!("objects of {}", names.collect::<Vec<_>>().join(", "))
        }
        "collection" => config
            .record("feature_extractor")
            .text("feature_extractor_name"),
        "retriever" => {
            let stages = config.list("stages").into_iter();
            let names = stages.map(|stage| stage.text("stage_name"));
            names.collect::<Vec<_>>().join(", then ")
        }
        "taxonomy" => text::words(&config.record("config").text("taxonomy_type")),
        _ => match config.record("vector_config").opt("clustering_method") {
            Some(method) => format!("groups by {}", text::words(&method)),
            None => {
                let by = config.record("attribute_config").strings("attributes");
                format!("groups by {}", by.join(", "))
            }
        },
    }
}

/// How much a namespace holds.
fn inside(config: &Record) -> String {
    let all = config.members().into_iter().filter_map(|(kind, requests)| {
        let many = requests.0.as_array()?.len();
        (many > 0).then(|| text::counted_as(many as i64, &kind))
    });
    all.collect::<Vec<_>>().join(", ")
}

fn row(one: Record) -> AnyView {
    let rows: Rows = expect_context();
    let (title, scope) = (one.text("name"), one.text("scope"));
    let (many, _) = of_template(&one);
    let page = page_of(&namespace(), many, &one.text("template_id"));
    let remove = is_own(&one).then(|| rows.open("Remove", &title, &one));
    let buttons = view! { {rows.open("Use", &title, &one)}{remove} };
    line(vec![
        titled(
            Some(format!("/console{page}")),
            title.clone(),
            one.text("description"),
        ),
        words("text-cell", makes(&one)),
        tags(vec![text::words(&scope)]),
        cell("nowrap", view! { {kept(&one)} }.into_any()),
        cell("actions many", buttons.into_any()),
    ])
}

/// When it was kept; the server's own were there before.
fn kept(one: &Record) -> Option<AnyView> {
    one.opt("created_at").map(|at| when(Some(at)))
}

/// Keeps something of the open kind as a template.
fn keeping(kind: Memo<(&'static str, &'static str)>, open: RwSignal<bool>) -> AnyView {
    let (session, ns, toasts): (_, _, Toasts) = (use_session(), param("ns"), expect_context());
    let (form, go) = (Form::plain("keep"), navigator());
    let offered = Load::new(move || resources(session.api_in(ns.get()), kind.get().0));
    Effect::new(move |_| {
        if let Some(all) = offered.good() {
            form.choices.set(all);
            form.shape.update(|n| *n += 1);
        }
    });
    let fresh = move || match kind.get() {
        ("namespaces", _) => json!({"scope": "organization", "of": ns.get()}),
        _ => json!({"scope": "organization"}),
    };
    let send = move |body: Value| {
        let (many, single) = kind.get_untracked();
        let id = text::escape(&Record(body.clone()).text("of"));
        let path = format!("/v1/templates/{many}/from-{single}/{id}");
        let api = session.api_in(ns.get_untracked());
        api.post(&path, &only(Record(body), KEPT))
    };
    let done = move |made: Record| {
        toasts.say("The template is kept");
        let id = made.text("template_id");
        go(&page_of(&ns.get_untracked(), kind.get_untracked().0, &id));
    };
    let title = Signal::derive(move || format!("Save a {} as a template", kind.get().1));
    view! {
        {move || offered.value.get().and_then(Result::err).map(|problem| view! { <Explain problem/> })}
        <Fill open title label="Save" form schema=FORM start=Callback::new(move |()| fresh()) send=Callback::new(send) done=Callback::new(done)/>
    }
    .into_any()
}

/// What there is of a kind, to choose from.
fn resources(api: Api, many: &'static str) -> Answer {
    Box::pin(async move {
        let all = choices(api, &[many]).await?;
        Ok(Record(json!({"resources": all.record(many).0})))
    })
}

#[cfg(test)]
mod tests {
    use loupe_wire::{
        BaseTemplateModel, CreateTemplateFromResourceRequest, TemplateScope, TemplateType,
    };

    use super::*;
    use crate::record::tests::sent;

    fn template(kind: TemplateType, configuration: Value) -> Record {
        let mut one = sent(&BaseTemplateModel {
            template_type: kind,
            scope: TemplateScope::Organization,
            name: "Shelves".into(),
            description: "Books by their place".into(),
            ..Default::default()
        });
        one.0["configuration"] = configuration;
        one
    }

    #[test]
    fn every_kind_has_its_tab() {
        for ((tab, _), (many, _)) in TABS.iter().zip(KINDS) {
            assert_eq!(of_tab(tab).0, many);
        }
        let one = template(TemplateType::Taxonomy, json!({}));
        assert_eq!(of_template(&one), ("taxonomies", "taxonomy"));
        assert_eq!(
            page_of("n 1", "buckets", "t"),
            "/ns/n%201/templates/buckets/t"
        );
    }

    #[test]
    fn templates_are_found_by_their_words_and_their_scope() {
        let one = template(TemplateType::Bucket, json!({}));
        assert!(fits(&one, "", "BOOKS shel"));
        assert!(fits(&one, "organization", ""));
        assert!(!fits(&one, "system", ""));
        assert!(!fits(&one, "", "films"));
        assert!(is_own(&one));
    }

    #[test]
    fn what_a_template_makes_is_told() {
        let fields = json!({"bucket_schema": {"properties": {"title": {}, "text": {}}}});
        let one = template(TemplateType::Bucket, fields);
        assert_eq!(makes(&one), "objects of title, text");
        let held =
            json!({"namespace": {}, "buckets": [{}], "collections": [{}, {}], "clusters": []});
        let one = template(TemplateType::Namespace, held);
        assert_eq!(makes(&one), "1 bucket, 2 collections");
        let stages = json!({"stages": [{"stage_name": "search"}, {"stage_name": "best"}]});
        let one = template(TemplateType::Retriever, stages);
        assert_eq!(makes(&one), "search, then best");
        let by = json!({"attribute_config": {"attributes": ["brand"]}});
        assert_eq!(
            makes(&template(TemplateType::Cluster, by)),
            "groups by brand"
        );
    }

    #[test]
    fn what_the_form_makes_is_taken() {
        let body = json!({"of": "bkt_1", "template_name": "a", "scope": "user", "tags": ["b"]});
        let body = only(Record(body), KEPT);
        let request: CreateTemplateFromResourceRequest =
            serde_json::from_value(body).expect("a body");
        assert_eq!(request.scope, TemplateScope::User);
        let fields = schema::named(FORM).record("properties");
        let missing = KEPT.iter().find(|name| fields.value(name).is_none());
        assert_eq!(missing, None);
    }
}
