use leptos::prelude::*;
use leptos_router::hooks::use_navigate;
use serde_json::json;

use super::upload::Upload;
use crate::{
    load::{Change, Load, Query, param},
    part::*,
    record::{Record, page},
    session::use_session,
    text,
};

#[component]
pub fn Bucket() -> impl IntoView {
    let session = use_session();
    let (ns, bucket) = (param("ns"), param("bucket"));
    let offset = Query::new("offset");
    let api = Signal::derive(move || session.api_in(ns.get()));
    let about = Load::<Record>::new(move || {
        api.get()
            .get(&format!("/v1/buckets/{}", text::escape(&bucket.get())))
    });
    let objects = Load::new(move || {
        let (api, path) = (
            api.get(),
            format!(
                "/v1/buckets/{}/objects/list{}",
                text::escape(&bucket.get()),
                page_query(offset)
            ),
        );
        async move {
            api.post(&path, &json!({"return_presigned_urls": true}))
                .await
                .map(page)
        }
    });
    let refresh = Callback::new(move |()| {
        about.reload();
        objects.reload();
    });
    let change = Change::new();
    let go = StoredValue::new_local(use_navigate());
    let path = Signal::derive(move || format!("/v1/buckets/{}", text::escape(&bucket.get())));
    let removed = Callback::new(move |()| {
        let list = format!("/ns/{}/buckets", ns.get_untracked());
        go.with_value(|go| go(&list, Default::default()));
    });
    // Without ids a batch takes every object of the bucket; what was processed unchanged is skipped by the server.
    let process = move |_| {
        let (api, bucket, ns) = (
            api.get_untracked(),
            bucket.get_untracked(),
            ns.get_untracked(),
        );
        let path = format!("/v1/buckets/{}/batches", text::escape(&bucket));
        let work = async move {
            let batch = api.post(&path, &json!({})).await?;
            api.post(
                &format!("{path}/{}/submit", text::escape(&batch.text("batch_id"))),
                &json!({}),
            )
            .await?;
            Ok(batch)
        };
        let open = move |batch: Record| {
            let id = batch.text("batch_id");
            go.with_value(|go| {
                go(
                    &format!("/ns/{ns}/batches/{bucket}/{id}"),
                    Default::default(),
                )
            });
        };
        change.run(work, open);
    };
    let title = Signal::derive(move || {
        about
            .good()
            .map_or_else(|| bucket.get(), |b| b.text("bucket_name"))
    });
    let empty = || {
        view! { <Empty icon="file" title="No object yet" text="Drop files above; each becomes an object of this bucket."/> }.into_any()
    };
    view! {
        <Head title text="Drop files in, then process them into documents of the collections over this bucket.">
            <Remove what="bucket" name=title loses="Its objects, their files and their documents go with it." api path done=removed/>
            <button type="button" class="btn primary" on:click=process aria-busy=move || change.busy.get().to_string()><Icon name="play"/>"Process"</button>
        </Head>
        {move || change.problem.get().map(|problem| view! { <Explain problem/> })}
        {move || match about.value.get() {
            Some(Err(problem)) => view! { <Explain problem retry=Callback::new(move |()| about.reload())/> }.into_any(),
            Some(Ok(about)) => facts(about).into_any(),
            None => view! { <Skeletons lines=2/> }.into_any(),
        }}
        <Upload api bucket schema=Signal::derive(move || about.good().map(|b| b.record("bucket_schema"))) done=refresh/>
        <Listing load=objects offset label="Objects" empty=empty.into() row=Callback::from(row)
            columns=vec![Column("Object", ""), Column("Files", ""), Column("Status", ""), Column("Created", "")]/>
    }
}

fn facts(about: Record) -> impl IntoView {
    let fields = about.record("bucket_schema").record("properties").members();
    let fields = fields
        .iter()
        .map(|(name, f)| format!("{name}: {}", f.text("type")))
        .collect::<Vec<_>>();
    view! {
        <div class="row">
            <span class="muted">{text::count(about.int("object_count").unwrap_or(0))}" objects, "{text::size(about.int("total_size_bytes").unwrap_or(0))}</span>
            {fields.into_iter().map(|f| view! { <span class="tag">{f}</span> }).collect_view()}
        </div>
    }
}

fn row(one: Record) -> AnyView {
    let blobs = one.list("blobs");
    let name = blobs
        .iter()
        .find_map(|b| b.record("details").opt("filename"));
    let id = one.text("object_id");
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
    let thumb = match picture {
        Some(url) => {
            view! { <img class="thumb" src=url alt="" loading="lazy" width="44" height="44"/> }
                .into_any()
        }
        None => view! { <span class="thumb"><Icon name="file"/></span> }.into_any(),
    };
    view! {
        <tr>
            <th scope="row"><span class="row nowrap">{thumb}<span class="grow">{name.clone().unwrap_or_else(|| id.clone())}<span class="sub mono">{id.clone()}</span></span></span></th>
            <td>{files.map(|f| view! { <span class="tag">{f}</span>" " }).collect_view()}</td>
            <td><Badge status=one.text("status")/>{one.opt("error").map(|error| view! { <span class="sub">{error}</span> })}</td>
            <td class="nowrap"><When at=one.opt("created_at")/></td>
        </tr>
    }
    .into_any()
}
