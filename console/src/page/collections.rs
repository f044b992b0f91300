use leptos::prelude::*;
use leptos_router::hooks::use_navigate;
use serde_json::{Map, Value, json};

use crate::{
    api::Problem,
    load::{Change, Load, param},
    part::*,
    record::{Record, items, plain},
    session::use_session,
    text,
};

#[component]
pub fn Collections() -> impl IntoView {
    let session = use_session();
    let ns = param("ns");
    let Searched {
        search,
        offset,
        load,
    } = searched("/v1/collections/list", move || session.api_in(ns.get()));
    let create = RwSignal::new(false);
    let empty = move || {
        view! {
        <Empty icon="grid" title="No collection here" text="A collection reads a bucket with an extractor and holds the documents and vectors that come out.">
            <button type="button" class="btn primary" on:click=move |_| create.set(true)>"Create a collection"</button>
        </Empty>
    }.into_any()
    };
    view! {
        <Head title="Collections" text="Documents and vectors, made from buckets by extractors.">
            <button type="button" class="btn primary" on:click=move |_| create.set(true)><Icon name="plus"/>"Create collection"</button>
        </Head>
        <div class="row"><SearchBox query=search label="Search collections"/></div>
        <Listing load offset label="Collections" empty=empty.into() row=Callback::from(move |one| row(ns.get_untracked(), one))
            columns=vec![Column("Name", ""), Column("Extractor", ""), Column("Documents", "num"), Column("Vector indexes", "num"), Column("State", ""), Column("Created", "")]/>
        <Create open=create ns/>
    }
}

fn row(ns: String, one: Record) -> AnyView {
    let id = one.first(&["collection_id", "collection_name"]);
    let extractor = one.record("feature_extractor");
    view! {
        <tr>
            <th scope="row"><a href=format!("/console/ns/{ns}/collections/{id}")>{one.text("collection_name")}</a><span class="sub mono">{id.clone()}</span></th>
            <td>{extractor.text("feature_extractor_name")}<span class="sub">{extractor.text("version")}</span></td>
            <td class="num">{one.int("document_count").map(text::count)}</td>
            <td class="num">{text::count(one.list("vector_indexes").len() as i64)}</td>
            <td><Badge status=if one.flag("enabled") { "active" } else { "disabled" }/></td>
            <td class="nowrap"><When at=one.opt("created_at")/></td>
        </tr>
    }
    .into_any()
}

/// What the form asks the server for: buckets with their fields, extractors with their inputs.
type Sources = (Vec<Record>, Vec<Record>);

#[component]
fn Create(open: RwSignal<bool>, ns: Memo<String>) -> impl IntoView {
    let session = use_session();
    let sources = Load::<Sources>::new(move || {
        let api = session.api_in(ns.get());
        let wanted = open.get();
        async move {
            if !wanted {
                return std::future::pending().await;
            }
            let buckets = api.post("/v1/buckets/list?limit=100", &json!({})).await?;
            let extractors = api.get("/v1/collections/features/extractors").await?;
            Ok((buckets.list("results"), items(&extractors.0)))
        }
    });
    view! {
        <Modal open title="Create a collection">
            {move || match sources.value.get() {
                None => view! { <Skeletons lines=4/> }.into_any(),
                Some(Err(problem)) => view! { <Explain problem retry=Callback::new(move |()| sources.reload())/> }.into_any(),
                Some(Ok((buckets, _))) if buckets.is_empty() => view! {
                    <Empty icon="bucket" title="First a bucket" text="A collection reads one, and there is none in this namespace.">
                        <a class="btn primary" href=format!("/console/ns/{}/buckets", ns.get_untracked())>"To the buckets"</a>
                    </Empty>
                }.into_any(),
                Some(Ok(sources)) => view! { <Form open ns sources/> }.into_any(),
            }}
        </Modal>
    }
}

/// The fields of a bucket that can feed an input of a kind such as `text|string`.
fn fitting(buckets: &[Record], bucket: &str, kind: &str) -> Vec<(String, String)> {
    let found = buckets
        .iter()
        .find(|b| b.text("bucket_id") == bucket || b.text("bucket_name") == bucket);
    let fields = found
        .map(|b| b.record("bucket_schema").record("properties").members())
        .unwrap_or_default();
    let kinds: Vec<&str> = kind.split('|').map(str::trim).collect();
    let all = fields
        .into_iter()
        .map(|(name, field)| (name, field.text("type")));
    let (mut good, rest): (Vec<_>, Vec<_>) =
        all.partition(|(_, field)| kinds.contains(&field.as_str()));
    good.extend(rest);
    good.into_iter()
        .map(|(name, field)| (name.clone(), format!("{name} ({field})")))
        .collect()
}

#[component]
fn Form(open: RwSignal<bool>, ns: Memo<String>, sources: Sources) -> impl IntoView {
    let session = use_session();
    let (buckets, extractors) = sources;
    let options = buckets
        .iter()
        .map(|b| {
            (
                b.first(&["bucket_id", "bucket_name"]),
                b.text("bucket_name"),
            )
        })
        .collect::<Vec<_>>();
    let kinds = extractors
        .iter()
        .map(|e| {
            (
                e.text("feature_extractor_name"),
                format!(
                    "{} {}",
                    text::words(&e.text("feature_extractor_name")),
                    e.text("version")
                ),
            )
        })
        .collect::<Vec<_>>();
    let first = |list: &[(String, String)]| {
        RwSignal::new(list.first().map(|(id, _)| id.clone()).unwrap_or_default())
    };
    let (name, bucket, extractor) = (RwSignal::new(String::new()), first(&options), first(&kinds));
    if let Some((text, _)) = kinds.iter().find(|(name, _)| name == "text_extractor") {
        extractor.set(text.clone());
    }
    let (parameters, whole) = (RwSignal::new("{}".to_owned()), RwSignal::new(true));
    let extractors = StoredValue::new(extractors);
    let buckets = StoredValue::new(buckets);
    let chosen = Memo::new(move |_| {
        extractors.with_value(|all| {
            all.iter()
                .find(|e| e.text("feature_extractor_name") == extractor.get())
                .cloned()
        })
    });
    // One choice of a field for each input of the extractor; made anew when bucket or extractor change.
    let inputs = Memo::new(move |_| {
        let asked = chosen
            .get()
            .map(|e| e.record("expected_input_types").members())
            .unwrap_or_default();
        asked
            .into_iter()
            .filter(|(input, _)| input != "*")
            .map(|(input, kind)| {
                let fields = buckets.with_value(|all| fitting(all, &bucket.get(), &plain(&kind.0)));
                let mine = RwSignal::new(
                    fields
                        .first()
                        .map(|(name, _)| name.clone())
                        .unwrap_or_default(),
                );
                (input, mine, fields)
            })
            .collect::<Vec<_>>()
    });
    let change = Change::new();
    let go = StoredValue::new_local(use_navigate());
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let mappings: Map<String, Value> = inputs
            .get_untracked()
            .into_iter()
            .map(|(input, field, _)| (input, Value::from(field.get_untracked())))
            .filter(|(_, field)| field != "")
            .collect();
        let version = chosen
            .get_untracked()
            .map(|e| e.text("version"))
            .unwrap_or_default();
        let parameters = serde_json::from_str::<Value>(&parameters.get_untracked());
        let body = parameters.map(|parameters| json!({
            "collection_name": name.get_untracked().trim(),
            "source": {"type": "bucket", "bucket_ids": [bucket.get_untracked()]},
            "feature_extractor": {"feature_extractor_name": extractor.get_untracked(), "version": version,
                "input_mappings": mappings, "parameters": parameters, "include_all_source_fields": whole.get_untracked()},
        }));
        let ns = ns.get_untracked();
        let api = session.api_in(ns.clone());
        let work = async move {
            let body =
                body.map_err(|e| Problem::local(format!("the parameters are not JSON: {e}")))?;
            api.post("/v1/collections", &body).await
        };
        change.run(work, move |made| {
            let id = made.first(&["collection_id", "collection_name"]);
            go.with_value(|go| go(&format!("/ns/{ns}/collections/{id}"), Default::default()));
        });
    };
    view! {
        <form class="form" on:submit=submit>
            <Field id="collection-name" label="Name" value=name required=true placeholder="articles-text"/>
            <div class="form-row">
                <Choice id="collection-bucket" label="Bucket" value=bucket options/>
                <Choice id="collection-extractor" label="Extractor" value=extractor options=kinds/>
            </div>
            <p class="muted">{move || chosen.get().map(|e| e.text("description"))}</p>
            <div class="form-row">{move || inputs.get().into_iter().map(|(input, mine, fields)| {
                // Ids must be still there when the labels ask for them.
                let id = match input.as_str() { "text" => "input-text", "image" => "input-image", "pdf" => "input-pdf", _ => "input-other" };
                view! { <Choice id label=format!("Input \u{201c}{input}\u{201d} from") value=mine options=fields/> }
            }).collect_view()}</div>
            <Check label="Keep every field of the object on its documents" checked=whole set=move |on| whole.set(on)/>
            <Area id="collection-parameters" label="Parameters (JSON)" value=parameters rows=3 hint="Empty takes the extractor's own."/>
            <Submit change open label="Create"/>
        </form>
    }
}
