//! What a template is used for: a form of what it leaves open, and the request that makes something of it.

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use super::of_template;
use crate::{
    api::{Answer, Problem},
    load::{Change, Load, navigator},
    part::{schema::Form, *},
    record::Record,
    route::param,
    session::{Session, use_session},
    text,
};

/// What is chosen from the namespace in which something is made; another namespace has other things.
const CHOSEN: [&str; 4] = ["buckets", "collection", "collections", "places"];

/// A dialog that makes something of a template, and leads there.
#[component]
pub fn Use(open: RwSignal<bool>, of: Signal<Record>) -> AnyView {
    let (session, ns, toasts): (_, _, Toasts) = (use_session(), param("ns"), expect_context());
    let (form, change, go) = (Form::plain("use"), Change::new(), navigator());
    let place = Memo::new(move |_| {
        let chosen = |value: &Value| value["namespace"].as_str().map(str::to_owned);
        form.value.with(chosen).unwrap_or_else(|| ns.get())
    });
    let known = Load::settled(0, move || {
        let (api, kinds) = (session.api_in(place.get()), of.with(chosen_from));
        open.get()
            .then(|| -> Answer { Box::pin(choices(api, kinds)) })
    });
    Effect::new(move |before: Option<String>| {
        let now = place.get();
        if before.is_some_and(|before| before != now) {
            form.value.update(forget);
        }
        now
    });
    let submit = Callback::new(move |()| {
        let (one, place) = (of.get_untracked(), place.get_untracked());
        let value = Record(form.value.get_untracked());
        let (many, single) = of_template(&one);
        change.run(make(session, one, place.clone(), value), move |made| {
            open.set(false);
            toasts.say(format!("The {single} is made"));
            let id = text::escape(&made.text(&format!("{single}_id")));
            go(&match single {
                "namespace" => format!("/ns/{id}/buckets"),
                _ => format!("/ns/{}/{many}/{id}", text::escape(&place)),
            });
        });
    });
    let title = Signal::derive(move || format!("Use {}", of.with(|one| one.text("name"))));
    // The fields come with what they choose from, and at once where that is nothing.
    let fields = move || match known.value.get().filter(|_| !known.busy.get()) {
        None => view! { <Skeletons lines=4/> }.into_any(),
        Some(Err(problem)) => view! { <Explain problem/> }.into_any(),
        Some(Ok(all)) => {
            let wanted = of.with(|one| asked(one, &all));
            form.choices.set(all);
            schema::fields(form, "", &wanted)
        }
    };
    view! {
        <Ask open title class="wide" label="Create" change submit>
            {form.value.set(json!({"namespace": ns.get_untracked()}))}
            <p class="muted">{move || of.with(|one| one.text("description"))}</p>
            {fields}
        </Ask>
    }
    .into_any()
}

fn forget(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| !CHOSEN.contains(&name.as_str()));
    }
}

/// Kinds that the form of a template chooses from.
fn chosen_from(one: &Record) -> &'static [&'static str] {
    match of_template(one).1 {
        "namespace" => &[],
        "bucket" => &["namespaces"],
        "collection" => &["namespaces", "buckets", "collections"],
        "taxonomy" => &["namespaces", "collections", "retrievers"],
        _ => &["namespaces", "collections"],
    }
}

/// Whether a collection reads something: the documents of others are written.
fn reads(one: &Record) -> bool {
    let source = one.record("configuration").record("source");
    !matches!(source.text("type").as_str(), "direct_upsert" | "none")
}

/// What a template leaves open, in its order: the name of each place, and the kind of what stands there.
fn places(one: &Record) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    open_in(&one.record("configuration").0, "", &mut found);
    if of_template(one).1 != "retriever" {
        return found;
    }
    // Collections of a retriever are counted: those up to the last one that is named.
    let number = |name: &str| name.strip_prefix("collection_")?.parse::<usize>().ok();
    let last = found.iter().filter_map(|(name, _)| number(name)).max();
    (1..=last.unwrap_or(0))
        .map(|n| (format!("collection_{n}"), "collections"))
        .collect()
}

fn open_in(value: &Value, member: &str, found: &mut Vec<(String, &'static str)>) {
    match value {
        Value::String(text) => {
            let name = text.strip_prefix("{{TEMPLATE.");
            let name = name.and_then(|name| name.strip_suffix("}}"));
            let Some(name) = name.filter(|name| found.iter().all(|(other, _)| other != name))
            else {
                return;
            };
            let kind = match member.starts_with("retriever") {
                true => "retrievers",
                false => "collections",
            };
            found.push((name.to_owned(), kind));
        }
        Value::Array(all) => all.iter().for_each(|one| open_in(one, member, found)),
        Value::Object(members) => {
            for (name, value) in members {
                open_in(value, name, found);
            }
        }
        _ => {}
    }
}

/// The form of a template.
fn asked(one: &Record, known: &Record) -> Record {
    let kind = of_template(one).1;
    let mut fields = Map::new();
    let about = match kind {
        "namespace" => "Small letters, digits, dashes and underscores.",
        _ => "",
    };
    let name = json!({"type": "string", "title": "Name", "must": true, "description": about});
    fields.insert("name".to_owned(), name);
    if kind != "namespace" {
        let place = json!({"type": "string", "title": "In the namespace", "of": "namespaces", "must": true});
        fields.insert("namespace".to_owned(), place);
    }
    let places = places(one);
    match kind {
        "collection" if reads(one) => {
            fields.insert("buckets".to_owned(), several("buckets", "Reads", known));
            let other =
                json!({"type": "string", "title": "Or reads the collection", "of": "collections"});
            fields.insert("collection".to_owned(), other);
        }
        "retriever" | "taxonomy" if !places.is_empty() => {
            let places: Map<String, Value> = places
                .into_iter()
                .map(|(name, of)| {
                    let title = text::words(&name);
                    (
                        name,
                        json!({"type": "string", "title": title, "of": of, "must": true}),
                    )
                })
                .collect();
            let places = json!({"type": "object", "plain": true, "properties": places});
            fields.insert("places".to_owned(), places);
        }
        "retriever" => {
            let over = several("collections", "Searches", known);
            fields.insert("collections".to_owned(), over);
        }
        "cluster" => {
            let over = several("collections", "Gathers", known);
            fields.insert("collections".to_owned(), over);
        }
        _ => {}
    }
    let about = json!({"type": "string", "title": "Description", "description": "That of the template, where empty."});
    fields.insert("description".to_owned(), about);
    Record(json!({"plain": true, "properties": fields}))
}

/// Any number of what the namespace holds.
fn several(of: &str, title: &str, known: &Record) -> Value {
    let none = known.value(of).is_some() && known.list(of).is_empty();
    let about = match none {
        true => format!("There are no {of} in this namespace yet."),
        false => String::new(),
    };
    json!({"type": "array", "title": title, "items": {"of": of}, "description": about})
}

/// The request that what was filled in is.
fn body(one: &Record, value: &Record) -> Value {
    let kind = of_template(one).1;
    let mut body = Map::new();
    body.insert(format!("{kind}_name"), value.text("name").into());
    if let Some(about) = value.opt("description") {
        body.insert("description".to_owned(), about.into());
    }
    let places = value.record("places");
    match kind {
        "collection" => {
            let buckets = value.strings("buckets");
            if !buckets.is_empty() {
                body.insert("bucket_ids".to_owned(), buckets.into());
            }
            if let Some(other) = value.opt("collection") {
                body.insert("collection_id".to_owned(), other.into());
            }
        }
        "retriever" => {
            let named = self::places(one);
            let named: Vec<String> = match named.is_empty() {
                true => value.strings("collections"),
                false => named.iter().map(|(name, _)| places.text(name)).collect(),
            };
            body.insert("collection_identifiers".to_owned(), named.into());
        }
        "cluster" => {
            let over = value.strings("collections");
            body.insert("collection_ids".to_owned(), over.into());
        }
        "taxonomy" => {
            let named = places.members().into_iter();
            let named: Map<String, Value> = named.map(|(name, one)| (name, one.0)).collect();
            body.insert("collection_config".to_owned(), Value::Object(named));
        }
        _ => {}
    }
    Value::Object(body)
}

/// Makes what a template is of. That of a namespace is many requests, which a manifest is, too.
fn make(session: Session, one: Record, place: String, value: Record) -> Answer {
    let (many, single) = of_template(&one);
    if single == "namespace" {
        return Box::pin(whole(session, one, value));
    }
    let id = text::escape(&one.text("template_id"));
    let path = format!("/v1/templates/{many}/{id}/instantiate");
    session.api_in(place).post(&path, &body(&one, &value))
}

/// A namespace with all that its template holds.
async fn whole(session: Session, one: Record, value: Record) -> Result<Record, Problem> {
    let text = manifest(&one, &value).to_string();
    // A namespace that is there already is left alone.
    let path = "/v1/manifest/apply?mode=create_only";
    let told = session
        .api()
        .form(path, &[("manifest_file", text.as_str())])
        .await?;
    session.namespaces_changed.update(|n| *n += 1);
    if !told.flag("success") {
        return Err(Problem {
            kind: "not_all_was_made".to_owned(),
            message: told.strings("errors").join("; "),
            ..Default::default()
        });
    }
    let made = told.list("resources").into_iter();
    let mut made = made.filter(|one| one.text("resource_type") == "namespace");
    let id = made.next().map(|one| one.text("resource_id"));
    Ok(Record(json!({ "namespace_id": id })))
}

/// The requests of a template of a namespace, which call each other by name, as a manifest.
fn manifest(one: &Record, value: &Record) -> Value {
    let mut sections = one.record("configuration").members();
    let at = sections.iter().position(|(name, _)| name == "namespace");
    let own = at.map(|at| sections.remove(at).1).unwrap_or_default();
    let mut own = own.0.as_object().cloned().unwrap_or_default();
    own.insert("name".to_owned(), value.text("name").into());
    let about = value.opt("description").or(one.opt("description"));
    if let Some(about) = about {
        own.insert("description".to_owned(), about.into());
    }
    let mut all = Map::new();
    all.insert("version".to_owned(), "1.0".into());
    all.insert("metadata".to_owned(), json!({"name": one.text("name")}));
    all.insert("namespaces".to_owned(), json!([own]));
    for (section, requests) in sections {
        let single = section.strip_suffix('s').unwrap_or(&section).to_owned();
        let requests = requests.0.as_array().cloned().unwrap_or_default();
        let requests = requests.into_iter().zip(1..).map(|(mut one, n)| {
            let called = format!("{single}_name");
            let named = one.get(&called).is_some_and(Value::is_string);
            // Clusters may have no name of their own.
            if single == "cluster" && !named {
                one[called] = format!("cluster {n}").into();
            }
            one
        });
        all.insert(section, requests.collect());
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use loupe_wire::{
        InstantiateBucketTemplateRequest, InstantiateClusterTemplateRequest,
        InstantiateCollectionTemplateRequest, InstantiateRetrieverTemplateRequest,
        InstantiateTaxonomyTemplateRequest,
    };
    use serde::de::DeserializeOwned;

    use super::*;

    fn template(kind: &str, configuration: Value) -> Record {
        Record(json!({"template_type": kind, "name": "t", "configuration": configuration}))
    }

    fn taken<T: DeserializeOwned>(one: &Record, value: Value) -> T {
        serde_json::from_value(body(one, &Record(value))).expect("a request")
    }

    fn names(one: &Record) -> Vec<String> {
        let fields = asked(one, &Record::default()).record("properties");
        fields.members().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn what_is_filled_in_is_a_request() {
        let one = template("bucket", json!({}));
        let made: InstantiateBucketTemplateRequest = taken(&one, json!({"name": "a"}));
        assert_eq!(made.bucket_name, "a");
        let one = template("collection", json!({}));
        let value = json!({"name": "a", "buckets": ["bkt_1"]});
        let made: InstantiateCollectionTemplateRequest = taken(&one, value);
        assert_eq!(
            (made.bucket_ids, made.collection_id),
            (Some(vec!["bkt_1".to_owned()]), None)
        );
        let one = template("cluster", json!({}));
        let value = json!({"name": "a", "collections": ["col_1"], "description": "d"});
        let made: InstantiateClusterTemplateRequest = taken(&one, value);
        assert_eq!(made.collection_ids, ["col_1"]);
        assert_eq!(made.description.as_deref(), Some("d"));
        let one = template("retriever", json!({}));
        let value = json!({"name": "a", "collections": ["col_1", "col_2"]});
        let made: InstantiateRetrieverTemplateRequest = taken(&one, value);
        assert_eq!(made.collection_identifiers, ["col_1", "col_2"]);
    }

    #[test]
    fn what_is_left_open_is_asked_for() {
        let stages =
            json!({"stages": [{"over": ["{{TEMPLATE.collection_2}}"], "query": "{{INPUT.q}}"}]});
        let one = template("retriever", stages);
        assert_eq!(names(&one), ["name", "namespace", "places", "description"]);
        let value =
            json!({"name": "a", "places": {"collection_2": "col_2", "collection_1": "col_1"}});
        let made: InstantiateRetrieverTemplateRequest = taken(&one, value);
        assert_eq!(made.collection_identifiers, ["col_1", "col_2"]);

        let config = json!({"config": {"retriever_id": "{{TEMPLATE.retriever}}",
            "source_collection": {"collection_id": "{{TEMPLATE.source_collection}}"}, "again": "{{TEMPLATE.retriever}}"}});
        let one = template("taxonomy", config);
        let expected = [
            ("retriever".to_owned(), "retrievers"),
            ("source_collection".to_owned(), "collections"),
        ];
        assert_eq!(places(&one), expected);
        let value =
            json!({"name": "a", "places": {"retriever": "ret_1", "source_collection": "col_1"}});
        let made: InstantiateTaxonomyTemplateRequest = taken(&one, value);
        assert_eq!(made.collection_config["retriever"], "ret_1");
    }

    #[test]
    fn a_collection_whose_documents_are_written_reads_nothing() {
        let one = template("collection", json!({"source": {"type": "direct_upsert"}}));
        assert_eq!(names(&one), ["name", "namespace", "description"]);
        let one = template("collection", json!({}));
        assert!(names(&one).contains(&"buckets".to_owned()));
        assert_eq!(
            names(&template("namespace", json!({}))),
            ["name", "description"]
        );
    }

    #[test]
    fn another_namespace_has_other_things() {
        let mut value = json!({"name": "a", "namespace": "n", "buckets": ["b"], "places": {}});
        forget(&mut value);
        assert_eq!(value, json!({"name": "a", "namespace": "n"}));
    }

    #[test]
    fn a_template_of_a_namespace_is_a_manifest() {
        let held = json!({"namespace": {"auto_create_indexes": true}, "buckets": [{"bucket_name": "b"}],
            "taxonomies": [], "clusters": [{"collection_ids": ["c"]}]});
        let one = template("namespace", held);
        let file = manifest(&one, &Record(json!({"name": "mine"})));
        assert_eq!(
            file,
            json!({"version": "1.0", "metadata": {"name": "t"}, "namespaces": [{"auto_create_indexes": true, "name": "mine"}],
                "buckets": [{"bucket_name": "b"}], "taxonomies": [],
                "clusters": [{"collection_ids": ["c"], "cluster_name": "cluster 1"}]})
        );
    }
}
