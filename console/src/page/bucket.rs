mod tools;

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{lineage::lineage, object, syncs::syncs, upload::Upload};
use crate::{
    api::{Api, Problem},
    load::{Change, Load, Query, navigator},
    part::*,
    record::Record,
    route::{namespace, param},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Object", ""),
    Column("Files", ""),
    Column("Status", ""),
    Column("Created", ""),
];

const STATES: &[&str] = &[
    "DRAFT",
    "COMPLETED",
    "FAILED",
    "ARCHIVED",
    "SUSPENDED",
    "DEACTIVATED",
];

const TABS: &[(&str, &str)] = &[("", "Objects"), ("syncs", "Syncs"), ("lineage", "Lineage")];

pub fn bucket() -> AnyView {
    let session = use_session();
    let (ns, bucket) = (param("ns"), param("bucket"));
    let tab = Query::new("tab");
    let api = Signal::derive(move || session.api_in(ns.get()));
    let path = Signal::derive(move || format!("/v1/buckets/{}", text::escape(&bucket.get())));
    let about = Load::of(move || api.get(), move || path.get());
    let change = Change::new();
    let go = navigator();
    let removed = Callback::new(move |()| go(&format!("/ns/{}/buckets", ns.get_untracked())));
    let fresh = RwSignal::new(0u32);
    let process = move |_| {
        let (bucket, ns) = (bucket.get_untracked(), ns.get_untracked());
        let work = process_all(api.get_untracked(), path.get_untracked());
        let open = move |batch: Record| {
            go(&text::batch(&ns, &bucket, &batch.text("batch_id")));
        };
        change.run(work, open);
    };
    let title = Signal::derive(move || {
        about
            .good()
            .map_or_else(|| bucket.get(), |b| b.text("bucket_name"))
    });
    let at = Signal::derive(move || format!("/console/ns/{}/buckets/{}", ns.get(), bucket.get()));
    view! {
        <Head title text="Drop files in, then process them into documents of the collections over this bucket.">
            {while_there(about, move || view! {
                {tools::tools(api, path, about, ns)}
                <Remove what="bucket" name=title loses="Its objects, their files and their documents go with it." api path done=removed/>
                <button type="button" class="btn primary" on:click=process aria-busy=move || change.busy.get().to_string()><Icon name="play"/>"Process"</button>
            }.into_any())}
        </Head>
        {refused(change, ns, bucket)}
        {loaded(about, ViewFn::from(|| view! { <div class="row about"><span class="skeleton"></span></div> }), facts)}
        {tabs("Parts of the bucket", TABS, tab, at)}
        {way_in(api, (ns, bucket), tab, about, fresh)}
        {move || match tab.value.get().as_str() {
            "syncs" => syncs(api, path),
            "lineage" => lineage(api, bucket),
            _ => objects(api, path, fresh),
        }}
    }
    .into_any()
}

/// The way in. It is only hidden beside the other parts: what is on its way and what failed stays. Another bucket has its
/// own.
fn way_in(
    api: Signal<Api>,
    (ns, bucket): (Memo<String>, Memo<String>),
    tab: Query,
    about: Load,
    fresh: RwSignal<u32>,
) -> AnyView {
    let refresh = Callback::new(move |()| {
        about.reload();
        let _ = fresh.try_update(|n| *n += 1);
    });
    let schema = Signal::derive(move || about.good().map(|b| b.record("bucket_schema")));
    let elsewhere = move || {
        let tab = tab.value.get();
        matches!(tab.as_str(), "syncs" | "lineage")
    };
    (move || {
        ns.track();
        bucket.track();
        view! { <div hidden=elsewhere><Upload api bucket schema done=refresh/></div> }
    })
    .into_any()
}

/// What is in the bucket, asked for again whenever `fresh` changes.
fn objects(api: Signal<Api>, path: Signal<String>, fresh: RwSignal<u32>) -> AnyView {
    let (search, status, offset) = (Query::new("q"), Query::new("status"), Query::new("offset"));
    let load = Load::new(move || {
        fresh.track();
        let path = format!("{}/objects/list{}", path.get(), page_query(offset));
        api.get()
            .post(&path, &asked(&search.value.get(), &status.value.get()))
    });
    let empty = move || {
        none_match([search, status].iter()).unwrap_or_else(|| {
            view! { <Empty icon="file" title="No object yet" text="Drop files above; each becomes an object of this bucket."/> }.into_any()
        })
    };
    view! {
        <div class="row filters">
            <SearchBox query=search label="Search objects".to_owned()/>
            <Pick query=status label="Status" all="Every status" options=STATES/>
        </div>
        <Listing load offset=Some(offset) label="Objects" empty=ViewFn::from(empty) row columns=COLUMNS/>
    }
    .into_any()
}

/// The body of the list for what is searched for and picked.
fn asked(search: &str, status: &str) -> Value {
    let mut body = json!({"return_presigned_urls": true});
    if !search.is_empty() {
        body["search"] = search.into();
    }
    if !status.is_empty() {
        body["filters"] = json!({"field": "status", "operator": "eq", "value": status});
    }
    body
}

/// Processes every object of the bucket. Where there is none, no batch is made: its draft would stay.
async fn process_all(api: Api, bucket: String) -> Result<Record, Problem> {
    if api.get(&bucket).await?.int("object_count") == Some(0) {
        let why = "the bucket holds no objects yet, so nothing was started";
        return Err(Problem::local(why));
    }
    start(api, format!("{bucket}/batches"), json!({})).await
}

/// Makes a batch and submits it. Without ids it takes every object of the bucket; what was processed unchanged is skipped
/// by the server unless it is forced. What refuses the submission names the batch, which is there already.
pub async fn start(api: Api, path: String, body: Value) -> Result<Record, Problem> {
    let batch = api.post(&path, &body).await?;
    let id = batch.text("batch_id");
    let submit = format!("{path}/{}/submit", text::escape(&id));
    let asked = api.post(&submit, &json!({})).await;
    asked.map(|_| batch).map_err(|problem| Problem {
        details: Box::new(json!({ DRAFT: id })),
        ..problem
    })
}

/// Where a refusal names the batch that waits for another try.
const DRAFT: &str = "draft_batch_id";

/// What was refused; with the way to the batch where one was made and not submitted.
pub fn refused(change: Change, ns: Memo<String>, bucket: Memo<String>) -> AnyView {
    let draft = move || {
        let id = Record(*change.problem.get()?.details).opt(DRAFT)?;
        // Of the page that it was refused on, whatever the address is by now.
        let (ns, bucket) = (ns.get_untracked(), bucket.get_untracked());
        let href = format!("/console{}", text::batch(&ns, &bucket, &id));
        let said = "The batch was made and waits as a draft. ";
        Some(view! { <p class="notice warn">{said}<a href=href>"Open the batch"</a></p> })
    };
    view! { {refusal(change)}{draft} }.into_any()
}

fn facts(about: Record) -> AnyView {
    let fields = about.record("bucket_schema").record("properties").members();
    let fields = fields
        .iter()
        .map(|(name, f)| format!("{name}: {}", f.text("type")))
        .collect::<Vec<_>>();
    view! {
        <div class="row about">
            <span class="muted">{text::counted(about.int("object_count").unwrap_or(0), "object", "objects")}", "{text::size(about.int("total_size_bytes").unwrap_or(0))}</span>
            {fields.into_iter().map(|f| view! { <span class="tag">{f}</span> }.into_any()).collect::<Vec<_>>()}
        </div>
    }
    .into_any()
}

fn row(one: Record) -> AnyView {
    let blobs = one.list("blobs");
    let (id, bucket) = (one.text("object_id"), one.text("bucket_id"));
    let href = format!("/console/ns/{}/buckets/{bucket}/objects/{id}", namespace());
    let picture = blobs
        .iter()
        .find(|b| b.text("type") == "image")
        .and_then(|b| b.opt("presigned_url"));
    let files = blobs.iter().map(|b| {
        let size = b
            .record("details")
            .int("size_bytes")
            .map(text::size)
            .unwrap_or_default();
        format!("{} ({}) {size}", b.text("property"), b.text("type"))
    });
    let error = one
        .opt("error")
        .map(|error| view! { <span class="sub">{error}</span> });
    line(vec![
        pictured(Some(href), picture, object::title(&one), id),
        tags(files.collect()),
        cell("", view! { {badge(&one.text("status"))}{error} }.into_any()),
        cell("nowrap", when(one.opt("created_at"))),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{ListObjectsRequest, TaskStatusEnum};

    use super::*;

    #[test]
    fn what_can_be_picked_is_known_to_the_server() {
        for status in STATES {
            let body = asked("owl", status);
            let known = serde_json::from_value::<TaskStatusEnum>((*status).into());
            assert_ne!(known.expect("a status"), TaskStatusEnum::Unknown);
            let body: ListObjectsRequest = serde_json::from_value(body).expect("a body");
            assert!(body.filters.is_some() && body.search.is_some());
        }
        assert_eq!(asked("", ""), json!({"return_presigned_urls": true}));
    }
}
