//! The documents of a collection as files: asked for, watched and fetched.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use serde_json::{Value, json};
use wasm_bindgen_futures::spawn_local;

use super::demo::{active, progress};
use crate::{
    api::{Answer, Api},
    load::{Load, Query},
    part::{schema::Form, *},
    record::Record,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Export", ""),
    Column("Status", ""),
    Column("Documents", "num"),
    Column("Size", "num"),
    Column("Written", ""),
    Column("", "actions many"),
];

const FORM: &str = "exports";

/// The tab of the collection where exports are.
pub const TAB: &str = "exports";

/// Exports of a namespace that are looked through for those of one collection.
const LOOKED: u32 = 200;

/// Files that have a link each.
const LINKED: usize = 12;

/// Milliseconds that a dialog waits for the file; what takes longer is watched in the list.
const PATIENCE: u32 = 1500;

/// The exports of a collection: which there are, and the dialog that asks for another.
#[derive(Clone, Copy)]
pub struct Exports {
    api: Signal<Api>,
    /// The collection.
    about: Load,
    load: Load,
    pub open: RwSignal<bool>,
}

impl Exports {
    pub fn new(api: Signal<Api>, about: Load, tab: Query) -> Self {
        let load = Load::settled(0, move || {
            let id = about.good().map(|one| one.text("collection_id"));
            let is_here = tab.value.with(|tab| tab == TAB);
            id.filter(|_| is_here).map(|id| list(api.get(), id))
        });
        load.poll_while(active);
        Self {
            api,
            about,
            load,
            open: RwSignal::new(false),
        }
    }

    /// What there is by now.
    pub fn list(self) -> AnyView {
        let empty = move || {
            view! {
                <Empty icon="upload" title="No export of the last day" text="An export writes the documents into files to download, or into a storage of your own. Its files stay for a day.">
                    <button type="button" class="btn primary" on:click=move |_| self.open.set(true)>"Export"</button>
                </Empty>
            }
        };
        view! { <Listing load=self.load offset=None label="Exports" columns=COLUMNS row empty=ViewFn::from(empty)/> }.into_any()
    }

    pub fn dialog(self, base: Signal<String>, tab: Query) -> AnyView {
        let toasts: Toasts = expect_context();
        let form = Form::plain("export");
        // Whether the file is waited for, and whether the dialog went before it came.
        let (waits, left) = (RwSignal::new(false), RwSignal::new(false));
        let send = move |body: Value| -> Answer {
            let path = format!("{}/export", base.get_untracked());
            let call = self.api.get_untracked().post(&path, &sent(body));
            waits.set(true);
            left.set(false);
            spawn_local(async move {
                TimeoutFuture::new(PATIENCE).await;
                // The page may be gone by now.
                if waits.try_get_untracked() == Some(true) {
                    left.set(true);
                    self.open.set(false);
                    toasts.say("The export is being written");
                    self.show(tab);
                }
            });
            Box::pin(async move {
                let answer = call.await;
                let _ = waits.try_set(false);
                // The dialog that would tell is gone by then.
                if let (Err(problem), Some(true)) = (&answer, left.try_get_untracked()) {
                    toasts.warn(format!("The export is not written: {}", problem.message));
                }
                answer
            })
        };
        let done = move |made: Record| {
            if made.value("download_url").is_some() {
                toasts.say("The export is ready");
            }
            match left.get_untracked() {
                true => self.load.reload(),
                false => self.show(tab),
            }
        };
        let start = move || {
            let about = self.about.good().unwrap_or_default();
            offer(self.api.get_untracked(), form, &about);
            json!({"format": "parquet"})
        };
        view! {
            <Fill open=self.open title="Export the documents".to_owned() label="Export" form schema=FORM start=Callback::new(move |()| start())
                send=Callback::new(send) done=Callback::new(done)/>
        }
        .into_any()
    }

    fn show(self, tab: Query) {
        tab.set(TAB);
        self.load.reload();
    }
}

/// The collection's exports among those of its namespace.
fn list(api: Api, id: String) -> Answer {
    Box::pin(async move {
        let path = format!("/v1/tasks/list?limit={LOOKED}");
        let body = json!({"task_type": "api_collections_export"});
        let mut answer = api.post(&path, &body).await?;
        let mut found = answer.list("results");
        found.retain(|one| {
            let of = one.list("inputs").into_iter().next().unwrap_or_default();
            of.text("collection_id") == id
        });
        answer.0["results"] = found.into_iter().map(|one| one.0).collect();
        Ok(answer)
    })
}

/// What the form chooses from: the fields of the documents at once, connections once they are known.
fn offer(api: Api, form: Form, about: &Record) {
    let fields = about.record("output_schema").record("properties").members();
    let fields = fields.into_iter();
    let fields: Value = fields
        .map(|(name, _)| json!({"id": name, "name": name}))
        .collect();
    form.choices.set(Record(json!({ "fields": fields })));
    spawn_local(async move {
        // Whoever may not see connections exports without them.
        let Ok(mut all) = choices(api, &["connections"]).await else {
            return;
        };
        all.0["fields"] = fields;
        let _ = form.choices.try_set(all);
        let _ = form.shape.try_update(|n| *n += 1);
    });
}

/// The body as the server takes it.
fn sent(mut body: Value) -> Value {
    let tars = body["format"] == "webdataset";
    if let Some(members) = body.as_object_mut() {
        members.retain(|name, value| match name.as_str() {
            "select_fields" => value.as_array().is_some_and(|all| !all.is_empty()),
            "destination" => value.get("connection_id").is_some(),
            "include_media" | "samples_per_shard" => tars,
            _ => true,
        });
    }
    body
}

fn row(task: Record) -> AnyView {
    let made = task.list("outputs").into_iter().next().unwrap_or_default();
    let kind = made
        .opt("format")
        .map_or_else(|| "Export".to_owned(), |format| format.to_uppercase());
    let bar = progress(&task).filter(|_| active(&task)).map(|(share, under)| {
        view! { <Progress share label="Progress of the export"/><span class="sub">{under}</span> }
    });
    let state = view! { {badge(&task.text("status"))}<span class="sub cut">{task.text("error")}</span>{bar} };
    let there = made.record("destination").text("prefix");
    let written = made.opt("exported_at").map(|at| when(Some(at)));
    line(vec![
        name(None, kind, task.text("task_id")),
        cell("", state.into_any()),
        number(made.int("document_count")),
        words(
            "num nowrap",
            made.int("file_size_bytes")
                .map(text::size)
                .unwrap_or_default(),
        ),
        cell(
            "",
            view! { {written}<span class="sub cut">{there}</span> }.into_any(),
        ),
        cell("actions many", links(&made)),
    ])
}

/// The files, each with its link.
fn links(made: &Record) -> AnyView {
    let mut files: Vec<(String, String)> = Vec::new();
    for shard in made.list("shards") {
        files.push((shard.text("filename"), shard.text("download_url")));
    }
    if files.is_empty() {
        files.extend(made.opt("download_url").map(|url| ("Download".into(), url)));
        let vectors = made.opt("vectors_download_url");
        files.extend(vectors.map(|url| ("Vectors".into(), url)));
    }
    let more = files.len().saturating_sub(LINKED);
    let more = (more > 0).then(|| view! { <span class="sub">{format!("and {more} more")}</span> });
    let all = files.into_iter().take(LINKED).map(|(label, url)| {
        view! { <a class="btn small" href=url download="">{label}</a>" " }.into_any()
    });
    view! { {all.collect::<Vec<_>>()}{more} }.into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::CollectionExportRequest;

    use super::*;

    #[test]
    fn what_is_sent_is_taken() {
        let body = json!({"format": "csv", "select_fields": [], "destination": {"prefix": "x"}, "samples_per_shard": 10,
            "filters": {"category": "birds"}, "sample_size": 5});
        let body = sent(body);
        assert_eq!(
            body,
            json!({"format": "csv", "filters": {"category": "birds"}, "sample_size": 5})
        );
        serde_json::from_value::<CollectionExportRequest>(body).expect("an export");
        let body = sent(
            json!({"format": "webdataset", "include_media": true, "samples_per_shard": 10,
            "destination": {"connection_id": "conn_1", "prefix": "s3://b/f"}, "select_fields": ["title"]}),
        );
        let request: CollectionExportRequest = serde_json::from_value(body).expect("an export");
        assert!(request.include_media && request.destination.is_some());
        let formats = schema::named(FORM).record("properties").record("format");
        for format in formats.strings("enum") {
            serde_json::from_value::<CollectionExportRequest>(json!({ "format": format }))
                .expect("a format");
        }
    }
}
