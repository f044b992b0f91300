//! Files from the desk to a bucket: a signed address, the bytes, the confirmation; three at a time.

use std::{cell::RefCell, collections::VecDeque, rc::Rc};

use js_sys::Promise;
use leptos::prelude::*;
use serde_json::json;
use wasm_bindgen::{JsCast, prelude::Closure};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{File, FileList, ProgressEvent, XmlHttpRequest};

use crate::{
    api::{Api, Problem},
    part::{DropZone, Explain, Progress, badge},
    record::Record,
    text,
};

const AT_ONCE: usize = 3;

/// One file on its way.
#[derive(Clone, Copy)]
struct Sending {
    share: RwSignal<f64>,
    state: RwSignal<Result<Option<String>, Problem>>,
    name: StoredValue<(String, i64)>,
}

/// The type that a file's media type stands for.
pub fn kind_of(media: &str, name: &str) -> &'static str {
    match media {
        m if m.starts_with("image/") => "image",
        m if m.starts_with("video/") => "video",
        m if m.starts_with("audio/") => "audio",
        "application/pdf" => "pdf",
        m if m.contains("spreadsheet") || m.contains("excel") => "excel",
        _ if name.to_lowercase().ends_with(".pdf") => "pdf",
        _ => "text",
    }
}

/// The field of the bucket that takes files of this kind, if one does.
pub fn property_for(schema: &Record, kind: &str) -> Option<String> {
    schema
        .record("properties")
        .members()
        .into_iter()
        .find(|(_, field)| field.text("type") == kind)
        .map(|(name, _)| name)
}

#[component]
pub fn Upload(
    #[prop(into)] api: Signal<Api>,
    #[prop(into)] bucket: Signal<String>,
    #[prop(into)] schema: Signal<Option<Record>>,
    /// Called when every chosen file has ended.
    done: Callback<()>,
) -> AnyView {
    let files = RwSignal::new(Vec::<Sending>::new());
    let start = Callback::new(move |list: FileList| {
        let queue = Rc::new(RefCell::new(VecDeque::new()));
        for file in (0..list.length()).filter_map(|i| list.get(i)) {
            let sending = Sending {
                share: RwSignal::new(0.0),
                state: RwSignal::new(Ok(None)),
                name: StoredValue::new((file.name(), file.size() as i64)),
            };
            files.update(|all| all.push(sending));
            queue.borrow_mut().push_back((file, sending));
        }
        let left = Rc::new(RefCell::new(AT_ONCE));
        for _ in 0..AT_ONCE {
            let (queue, left) = (queue.clone(), left.clone());
            let (api, bucket, schema) = (
                api.get_untracked(),
                bucket.get_untracked(),
                schema.get_untracked(),
            );
            spawn_local(async move {
                drain(queue, &api, &bucket, schema.as_ref()).await;
                *left.borrow_mut() -= 1;
                if *left.borrow() == 0 {
                    done.run(());
                }
            });
        }
    });
    view! {
        <div class="stack-sm">
            <DropZone text="Drop files here" label="Choose files" multiple=true chosen=start/>
            <ul class="file-list" aria-label="Files on their way">
                {move || files.get().into_iter().map(line).collect::<Vec<_>>()}
            </ul>
        </div>
    }
    .into_any()
}

/// Sends one file after the other until none is left.
async fn drain(
    queue: Rc<RefCell<VecDeque<(File, Sending)>>>,
    api: &Api,
    bucket: &str,
    schema: Option<&Record>,
) {
    loop {
        let Some((file, sending)) = queue.borrow_mut().pop_front() else {
            return;
        };
        let sent = send(api, bucket, schema, file, sending.share).await;
        let _ = sending.state.try_set(sent.map(Some));
    }
}

fn line(one: Sending) -> AnyView {
    let (name, size) = one.name.get_value();
    view! {
        <li>
            <span class="truncate">{name.clone()}" "<span class="muted">{text::size(size)}</span></span>
            <Progress share=one.share label=format!("Upload of {name}")/>
            {move || match one.state.get() {
                Ok(None) => view! { {badge("uploading")} }.into_any(),
                Ok(Some(note)) => view! { {badge(&note)} }.into_any(),
                Err(problem) => view! { {badge("failed")}<div class="problem"><Explain problem/></div> }.into_any(),
            }}
        </li>
    }
    .into_any()
}

/// Sends one file and says how it ended.
async fn send(
    api: &Api,
    bucket: &str,
    schema: Option<&Record>,
    file: File,
    share: RwSignal<f64>,
) -> Result<String, Problem> {
    let name = file.name();
    let kind = kind_of(&file.type_(), &name);
    let media = match file.type_() {
        media if media.is_empty() => "application/octet-stream".to_owned(),
        media => media,
    };
    let mut body =
        json!({"filename": name, "content_type": media, "file_size_bytes": file.size() as i64});
    if let Some(schema) = schema {
        let property = property_for(schema, kind).ok_or_else(|| {
            Problem::local(format!(
                "this bucket has no field of type {kind}, which this file needs"
            ))
        })?;
        body["blob_property"] = property.into();
        body["blob_type"] = kind.into();
    }
    let path = format!("/v1/buckets/{}/uploads", text::escape(bucket));
    let upload = api.post(&path, &body).await?;
    if upload.flag("is_duplicate") || upload.flag("skipped_unique_key") {
        let _ = share.try_set(1.0);
        return Ok("already there".into());
    }
    let url = upload
        .opt("presigned_url")
        .ok_or_else(|| Problem::local("the server gave no address for the bytes"))?;
    put(&url, &media, &file, share).await?;
    let path = format!("{path}/{}/confirm", text::escape(&upload.text("upload_id")));
    api.post(&path, &json!({})).await?;
    let _ = share.try_set(1.0);
    Ok("uploaded".into())
}

/// PUT with progress, which `fetch` does not tell.
pub async fn put(url: &str, media: &str, file: &File, share: RwSignal<f64>) -> Result<(), Problem> {
    let refused = |_| Problem::local("the browser refused to send the file");
    let request = XmlHttpRequest::new().map_err(refused)?;
    request.open("PUT", url).map_err(refused)?;
    request
        .set_request_header("Content-Type", media)
        .map_err(refused)?;
    let moved = Closure::<dyn FnMut(ProgressEvent)>::new(move |event: ProgressEvent| {
        if event.length_computable() {
            let _ = share.try_set(0.95 * event.loaded() / event.total());
        }
    });
    if let Ok(upload) = request.upload() {
        upload.set_onprogress(Some(moved.as_ref().unchecked_ref()));
    }
    let ended = Promise::new(&mut |resolve, _| {
        request.set_onloadend(Some(&resolve));
    });
    request.send_with_opt_blob(Some(file)).map_err(refused)?;
    JsFuture::from(ended).await.map_err(refused)?;
    match request.status().unwrap_or(0) {
        200..300 => Ok(()),
        0 => Err(Problem::local(
            "the connection broke while the file was sent",
        )),
        status => {
            let message = request.response_text().ok().flatten().unwrap_or_default();
            Err(Problem {
                status,
                kind: "upload_refused".into(),
                message,
                ..Default::default()
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use loupe_wire::BucketSchema;
    use serde_json::json;

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn a_file_goes_to_the_field_of_its_kind() {
        let schema: BucketSchema = serde_json::from_value(
            json!({"properties": {"title": {"type": "string"}, "photo": {"type": "image"}}}),
        )
        .expect("a schema");
        let schema = sent(&schema);
        assert_eq!(
            property_for(&schema, kind_of("image/png", "a.png")).as_deref(),
            Some("photo")
        );
        assert_eq!(
            property_for(&schema, kind_of("application/pdf", "a.pdf")),
            None
        );
        assert_eq!(kind_of("", "notes.md"), "text");
    }
}
