//! One object: its fields, its files, and what was made of it.

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use super::{
    bucket::{refused, start},
    documents::name_of,
};
use crate::{
    api::{Answer, Api},
    load::{Change, Load, navigator},
    part::*,
    record::{Record, items, plain},
    route::{namespace, param},
    session::use_session,
    text,
};

/// What is shown apart from the object's own fields.
const APART: &[&str] = &[
    "object_id",
    "bucket_id",
    "key_prefix",
    "blobs",
    "source_details",
    "edges",
    "status",
    "error",
    "created_at",
    "updated_at",
    "document_count",
    "consistency",
];

/// Documents that are named of each collection.
const NAMED: usize = 3;

pub fn object() -> AnyView {
    let session = use_session();
    let (ns, bucket, id) = (param("ns"), param("bucket"), param("object"));
    let api = Signal::derive(move || session.api_in(ns.get()));
    let of = Signal::derive(move || format!("/v1/buckets/{}", text::escape(&bucket.get())));
    let path = Signal::derive(move || format!("{}/objects/{}", of.get(), text::escape(&id.get())));
    let load = Load::of(
        move || api.get(),
        move || format!("{}?return_presigned_urls=true", path.get()),
    );
    load.poll_while(moves);
    let state = Memo::new(move |_| {
        load.good()
            .map(|one| (one.text("status"), one.int("document_count")))
    });
    let made = Load::new(move || {
        let (known, call) = (state.get().is_some(), made(api.get(), id.get()));
        async move {
            match known {
                true => call.await,
                false => std::future::pending().await,
            }
        }
    });
    let change = Change::new();
    let go = navigator();
    let home = move || {
        format!(
            "/ns/{}/buckets/{}",
            ns.get_untracked(),
            bucket.get_untracked()
        )
    };
    let removed = Callback::new(move |()| go(&home()));
    let process = move |_| {
        // What is unchanged would be passed over otherwise.
        let body = json!({"object_ids": [id.get_untracked()], "dedup_strategy": "force"});
        let path = format!("{}/batches", of.get_untracked());
        let (ns, bucket) = (ns.get_untracked(), bucket.get_untracked());
        change.run(start(api.get_untracked(), path, body), move |batch| {
            go(&text::batch(&ns, &bucket, &batch.text("batch_id")));
        });
    };
    let title = Signal::derive(move || load.good().map_or_else(|| id.get(), |one| title(&one)));
    view! {
        <Head title text="One object of a bucket, and the documents that were made of it.">
            <a class="btn" href=move || format!("/console/ns/{}/buckets/{}", ns.get(), bucket.get())>"The bucket"</a>
            {while_there(load, move || view! {
            <Remove what="object" name=title loses="Its files and the documents made of it go with it." api path done=removed/>
            <button type="button" class="btn primary" on:click=process aria-busy=move || change.busy.get().to_string()><Icon name="play"/>"Process again"</button>
            }.into_any())}
        </Head>
        {refused(change, ns, bucket)}
        {loaded(load, waiting(8), facts)}
        <h2>"Made of it"</h2>
        {loaded(made, waiting(3), move |tree| results(&tree, &bucket.get()))}
    }
    .into_any()
}

/// Whether it is being worked on.
fn moves(one: &Record) -> bool {
    matches!(
        one.text("status").as_str(),
        "QUEUED" | "PROCESSING" | "IN_PROGRESS"
    )
}

/// What an object is called: by its first file that has a name.
pub fn title(one: &Record) -> String {
    let files = one.list("blobs");
    let named = files
        .iter()
        .find_map(|blob| blob.record("details").opt("filename"));
    named.unwrap_or_else(|| one.text("object_id"))
}

fn facts(one: Record) -> AnyView {
    let id = one.text("object_id");
    let shown = id.clone();
    let error = one
        .opt("error")
        .map(|error| view! { <span class="sub">{error}</span> });
    let mut lines = vec![
        fact(
            "Id".to_owned(),
            view! { <span class="row nowrap"><code>{shown}</code><Copy text=Signal::stored(id)/></span> }.into_any(),
        ),
        fact(
            "Status".to_owned(),
            view! { {badge(&one.text("status"))}{error} }.into_any(),
        ),
        fact("Created".to_owned(), when(one.opt("created_at"))),
        fact("Changed".to_owned(), when(one.opt("updated_at"))),
    ];
    if let Some(prefix) = one.opt("key_prefix") {
        lines.push(fact("Key prefix".to_owned(), prefix.into_any()));
    }
    let own = one.members().into_iter();
    let own = own.filter(|(name, _)| !APART.contains(&name.as_str()));
    lines.extend(own.map(|(name, value)| fact(name, plain(&value.0).into_any())));
    let files: Vec<_> = one.list("blobs").into_iter().map(file).collect();
    let files = match files.is_empty() {
        true => view! { <p class="muted">"It has no file."</p> }.into_any(),
        false => view! { <div class="blobs">{files}</div> }.into_any(),
    };
    let raw = text::pretty(&one.0);
    view! {
        <div class="halves">
            <section class="card stack-sm" aria-labelledby="facts"><h2 id="facts">"Fields"</h2><dl class="facts">{lines}</dl></section>
            <section class="card stack-sm" aria-labelledby="blobs"><h2 id="blobs">"Files"</h2>{files}</section>
        </div>
        <details class="more"><summary>"All of it as JSON"</summary><pre class="code-block" tabindex="0">{raw}</pre></details>
    }
    .into_any()
}

/// A file, to be seen or heard where the browser can.
fn file(one: Record) -> AnyView {
    let details = one.record("details");
    let name = details
        .opt("filename")
        .unwrap_or_else(|| one.text("property"));
    let size = details.int("size_bytes").map(text::size);
    let about = [one.opt("property"), details.opt("mime_type"), size];
    let about = about.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let Some(url) = one.opt("presigned_url") else {
        return view! { <figure><figcaption>{name}" "{about}</figcaption></figure> }.into_any();
    };
    let (href, said) = (url.clone(), name.clone());
    let seen = match one.text("type").as_str() {
        "image" => Some(view! { <img src=url alt=said loading="lazy"/> }.into_any()),
        "video" => Some(
            view! { <video src=url controls=true preload="metadata" aria-label=said></video> }
                .into_any(),
        ),
        "audio" => Some(
            view! { <audio src=url controls=true preload="metadata" aria-label=said></audio> }
                .into_any(),
        ),
        _ => None,
    };
    view! { <figure>{seen}<figcaption><a href=href target="_blank" rel="noopener">{name}</a>" "{about}</figcaption></figure> }.into_any()
}

/// The filter for documents that were made of an object.
fn made_of(id: &str) -> Value {
    json!({"field": "_internal.lineage.root_object_id", "operator": "eq", "value": id})
}

/// The collections that hold something of the object, each below the one that it was made from, and the first documents of
/// each as `first`.
fn made(api: Api, id: String) -> Answer {
    Box::pin(async move {
        let path = format!("/v1/objects/{}/decomposition-tree", text::escape(&id));
        let mut tree = api.get(&path).await?;
        let mut first = Map::new();
        for collection in collections(&tree.list("nodes")) {
            let path = format!(
                "/v1/collections/{}/documents/list?limit={NAMED}",
                text::escape(&collection)
            );
            let documents = api.post(&path, &json!({"filters": made_of(&id)})).await?;
            first.insert(collection, documents.record("results").0);
        }
        tree.0["first"] = Value::Object(first);
        Ok(tree)
    })
}

fn collections(nodes: &[Record]) -> Vec<String> {
    let each = nodes.iter().flat_map(|node| {
        let own = std::iter::once(node.text("collection_id"));
        own.chain(collections(&node.list("children")))
    });
    each.collect()
}

/// The batches that wrote the documents.
fn batches(tree: &Record) -> Vec<String> {
    let mut all = Vec::new();
    for (_, documents) in tree.record("first").members() {
        for document in items(&documents.0) {
            let batch = document.record("_internal").opt("batch_id");
            if let Some(id) = batch.filter(|id| !all.contains(id)) {
                all.push(id);
            }
        }
    }
    all
}

fn results(tree: &Record, bucket: &str) -> AnyView {
    let nodes = tree.list("nodes");
    if nodes.is_empty() {
        return view! { <Empty icon="layers" title="Nothing was made of it yet" text="Process it, and the documents that collections make of it stand here."/> }.into_any();
    }
    let ns = namespace();
    let batches = batches(tree).into_iter().map(|id| {
        let href = format!("/console{}", text::batch(&ns, bucket, &id));
        view! { <li><a class="mono" href=href>{id}</a></li> }.into_any()
    });
    let batches: Vec<_> = batches.collect();
    let none = batches
        .is_empty()
        .then(|| view! { <p class="muted">"No batch wrote them."</p> });
    view! {
        <div class="halves">
            <section class="card stack-sm" aria-labelledby="documents"><h3 id="documents">"Documents by collection"</h3>{branch(nodes, tree, &ns)}</section>
            <section class="card stack-sm" aria-labelledby="batches"><h3 id="batches">"Batches that wrote them"</h3>{none}<ul class="sub-list">{batches}</ul></section>
        </div>
    }
    .into_any()
}

fn branch(nodes: Vec<Record>, tree: &Record, ns: &str) -> AnyView {
    let each = nodes.into_iter().map(|node| {
        let collection = node.text("collection_id");
        let page = format!("/console/ns/{ns}/collections/{collection}");
        let count = node.int("document_count").unwrap_or(0);
        let filter = made_of(&tree.text("object_id")).to_string();
        let all = format!("{page}?filter={}", text::escape(&filter));
        let first = tree
            .record("first")
            .list(&collection)
            .into_iter()
            .map(|one| {
                let id = one.text("document_id");
                let name = name_of(&one).unwrap_or_else(|| id.clone());
                view! { <li><a href=format!("{page}?document={id}")>{name}</a></li> }.into_any()
            });
        let first: Vec<_> = first.collect();
        let children = node.list("children");
        let under = (!children.is_empty()).then(|| branch(children, tree, ns));
        view! {
            <li class="leaf">
                <a href=all>{node.first(&["collection_name", "collection_id"])}</a>
                <span class="sub">{text::counted(count, "document", "documents")}</span>
                <ul class="sub-list">{first}</ul>
                {under}
            </li>
        }
        .into_any()
    });
    view! { <ul class="tree">{each.collect::<Vec<_>>()}</ul> }.into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::{
        BlobModel, DecompositionNode, DecompositionTreeResponse, ObjectResponse, TaskStatusEnum,
    };

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn an_object_is_called_by_its_file() {
        let blob: BlobModel = serde_json::from_value(
            json!({"property": "photo", "type": "image", "details": {"filename": "owl.png"}}),
        )
        .expect("a blob");
        let mut one = ObjectResponse {
            object_id: Some("obj_1".into()),
            status: TaskStatusEnum::Processing,
            blobs: vec![blob],
            ..Default::default()
        };
        assert_eq!(title(&sent(&one)), "owl.png");
        assert!(moves(&sent(&one)));
        one.blobs.clear();
        one.status = TaskStatusEnum::Pending;
        assert_eq!(title(&sent(&one)), "obj_1");
        assert!(!moves(&sent(&one)));
    }

    #[test]
    fn every_collection_of_the_tree_and_every_batch_is_found() {
        let node = |id: &str, children| DecompositionNode {
            collection_id: id.into(),
            children,
            ..Default::default()
        };
        let mut tree = sent(&DecompositionTreeResponse {
            object_id: "obj_1".into(),
            nodes: vec![node("scenes", vec![node("faces", Vec::new())])],
            ..Default::default()
        });
        assert_eq!(collections(&tree.list("nodes")), ["scenes", "faces"]);
        let of = |batch: &str| json!({"_internal": {"batch_id": batch}});
        tree.0["first"] =
            json!({"scenes": [of("btch_1"), of("btch_1")], "faces": [of("btch_2"), {}]});
        assert_eq!(batches(&tree), ["btch_1", "btch_2"]);
    }
}
