//! Files and folders from the desk to a bucket. Each can be sent again or be left out.

mod queue;

use js_sys::Promise;
use leptos::{html, prelude::*};
use wasm_bindgen::{JsCast, prelude::Closure};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, File, ProgressEvent, XmlHttpRequest};

use self::queue::{Queue, Sending, State, Sums, Target};
use crate::{
    api::{Api, Problem},
    part::{DropZone, Dropped, Explain, Icon, Progress, Toasts, badge},
    record::Record,
    text,
};

/// Files that are listed. Of more than these, those that have arrived leave the list.
const LISTED: usize = 100;

#[component]
pub fn Upload(
    #[prop(into)] api: Signal<Api>,
    #[prop(into)] bucket: Signal<String>,
    #[prop(into)] schema: Signal<Option<Record>>,
    /// Called when every chosen file has ended.
    done: Callback<()>,
) -> AnyView {
    let toasts: Toasts = expect_context();
    let target = Signal::derive(move || Target {
        api: api.get(),
        bucket: bucket.get(),
        schema: schema.get(),
    });
    let ended = move |sums: Sums| {
        match sums.failed {
            0 => toasts.say(sums.told()),
            _ => toasts.warn(sums.told()),
        }
        done.run(());
    };
    let queue = Queue::new(target, Callback::new(ended));
    let start = Callback::new(move |files: Vec<Dropped>| queue.add(files));
    let any = Memo::new(move |_| queue.sums.with(|sums| sums.files > 0));
    let list = NodeRef::new();
    // The last file that is left out leaves the keyboard where it is.
    let reach = move || match any.get() {
        true => "0",
        false => "-1",
    };
    view! {
        <div class="stack-sm">
            <DropZone text="Drop files or folders here" label="Choose files" multiple=true folders=true chosen=start/>
            <Show when=move || any.get()>{total(queue, list)}</Show>
            <ul class="file-list" aria-label="Files on their way" node_ref=list tabindex=reach>
                <For each=move || queue.files.with(|all| all.iter().take(LISTED).copied().collect::<Vec<_>>())
                    key=|one| one.number children=move |one| line(queue, list, one)/>
            </ul>
        </div>
    }
    .into_any()
}

/// Where the keyboard is once the button that was pressed is gone.
type List = NodeRef<html::Ul>;

fn focus(list: List) {
    if let Some(list) = list.get_untracked() {
        let _ = list.focus();
    }
}

/// How far all files are, and what can be done about those that failed.
fn total(queue: Queue, list: List) -> AnyView {
    let failed = Memo::new(move |_| queue.sums.with(|sums| sums.failed > 1));
    let more = move || {
        let more = queue.files.with(Vec::len).saturating_sub(LISTED);
        (more > 0).then(|| format!(", the first {LISTED} are listed"))
    };
    let again = move |_| {
        queue.again(queue.failed());
        focus(list);
    };
    view! {
        <div class="row between">
            <span class="muted">{move || queue.sums.get().told()}{more}</span>
            <Show when=move || failed.get()>
                <button type="button" class="btn small" on:click=again>"Try all that failed again"</button>
            </Show>
        </div>
        <Progress share=Signal::derive(move || queue.share()) label="Progress of all files"/>
    }
    .into_any()
}

fn line(queue: Queue, list: List, one: Sending) -> AnyView {
    let name = one.file.with_value(|file| file.path.clone());
    let removes = format!("Leave out {name}");
    let remove = move |_| {
        queue.remove(one);
        focus(list);
    };
    let leave = move || {
        let left = one.state.with(|state| !matches!(state, State::Done(_)));
        left.then(|| view! {
            <button type="button" class="btn ghost icon small" aria-label=removes.clone() on:click=remove><Icon name="close" size=14/></button>
        })
    };
    let state = move || match one.state.get() {
        State::Waiting => badge("waiting"),
        State::Moving => badge("uploading"),
        State::Done(note) => badge(note),
        State::Failed(_) => badge("failed"),
    };
    let again = Callback::new(move |()| {
        queue.again(vec![one]);
        focus(list);
    });
    let problem = move || match one.state.get() {
        State::Failed(problem) => {
            Some(view! { <div class="problem"><Explain problem retry=again/></div> })
        }
        _ => None,
    };
    view! {
        <li>
            <span class="truncate">{name.clone()}" "<span class="muted">{text::size(one.size)}</span></span>
            <Progress share=one.share label=format!("Upload of {name}")/>
            <span class="row nowrap">{state}{leave}</span>
            {problem}
        </li>
    }
    .into_any()
}

fn refused() -> Problem {
    Problem::local("the browser refused to send the file")
}

fn request() -> Result<XmlHttpRequest, Problem> {
    XmlHttpRequest::new().map_err(|_| refused())
}

/// PUT with progress, which `fetch` does not tell.
pub async fn put(url: &str, media: &str, file: &File, share: RwSignal<f64>) -> Result<(), Problem> {
    let headers = [("Content-Type".to_owned(), media.to_owned())];
    let whole = Told {
        share,
        from: 0.0,
        long: 1.0,
    };
    carry(&request()?, url, &headers, file, whole).await
}

/// Where progress is told, and which part of the whole some bytes are.
#[derive(Clone, Copy)]
struct Told {
    share: RwSignal<f64>,
    from: f64,
    long: f64,
}

impl Told {
    /// So much of these bytes has moved.
    fn tell(self, moved: f64) {
        let _ = self.share.try_set(0.95 * (self.from + self.long * moved));
    }
}

/// The same by a request that somebody else may stop, of any bytes with any headers.
async fn carry(
    request: &XmlHttpRequest,
    url: &str,
    headers: &[(String, String)],
    bytes: &Blob,
    told: Told,
) -> Result<(), Problem> {
    let refused = |_| refused();
    request.open("PUT", url).map_err(refused)?;
    for (name, value) in headers {
        request.set_request_header(name, value).map_err(refused)?;
    }
    let moved = Closure::<dyn FnMut(ProgressEvent)>::new(move |event: ProgressEvent| {
        if event.length_computable() {
            told.tell(event.loaded() / event.total());
        }
    });
    if let Ok(upload) = request.upload() {
        upload.set_onprogress(Some(moved.as_ref().unchecked_ref()));
    }
    let ended = Promise::new(&mut |resolve, _| {
        request.set_onloadend(Some(&resolve));
    });
    request.send_with_opt_blob(Some(bytes)).map_err(refused)?;
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
