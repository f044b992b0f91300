//! What a collection is made from: processed anew, and held beside what came of it.

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::Api,
    load::{Load, navigator},
    part::{schema::Form, *},
    record::Record,
    route::namespace,
    text,
};

const MISSING: &[Column] = &[
    Column("Object", ""),
    Column("Reason", "text-cell"),
    Column("Status", ""),
];

/// The buttons, with their dialogs.
pub(super) fn tools(
    api: Signal<Api>,
    about: Load,
    base: Signal<String>,
    ns: Memo<String>,
) -> AnyView {
    let (process, compare) = (RwSignal::new(false), RwSignal::new(false));
    let unknown = move || about.good().is_none();
    let load = Load::of(
        move || api.get(),
        move || match compare.get() {
            true => format!("{}/reconciliation", base.get()),
            false => String::new(),
        },
    );
    view! {
        <button type="button" class="btn" disabled=unknown on:click=move |_| process.set(true)>"Process"</button>
        <button type="button" class="btn" disabled=unknown on:click=move |_| compare.set(true)>"Reconcile"</button>
        {ask(process, api, base, ns)}
        <Modal open=compare title="Objects and documents".to_owned() class="wide">{loaded(load, waiting(4), compared)}</Modal>
    }
    .into_any()
}

fn ask(open: RwSignal<bool>, api: Signal<Api>, base: Signal<String>, ns: Memo<String>) -> AnyView {
    let (form, toasts, go) = (
        Form::plain("process"),
        expect_context::<Toasts>(),
        navigator(),
    );
    let send = move |body: Value| {
        let path = format!("{}/trigger", base.get_untracked());
        api.get_untracked().post(&path, &body)
    };
    let done = move |made: Record| {
        toasts.say(made.text("message"));
        go(&format!("/ns/{}/batches", ns.get_untracked()));
    };
    view! {
        <Fill open title="Process all that it is made from?".to_owned() label="Process" form schema="documents/process"
            start=Callback::new(|()| json!({"dedup_strategy": "skip"})) send=Callback::new(send) done=Callback::new(done)/>
    }
    .into_any()
}

/// How many objects were made into documents, and which were not.
fn compared(one: Record) -> AnyView {
    let count = |member: &str| text::count(one.int(member).unwrap_or(0)).into_any();
    let rows = one.list("discrepancies").into_iter().map(missing);
    let rows: Vec<_> = rows.collect();
    let missing = match rows.is_empty() {
        true => view! { <p>"Every object was made into documents."</p> }.into_any(),
        false => table(
            "Objects that no document was made of",
            MISSING,
            rows,
            Signal::stored(false),
        ),
    };
    let cut = one.flag("discrepancies_truncated");
    view! {
        <div class="stack">
            <dl class="stats">
                {stat("Objects", count("source_object_count"))}
                {stat("Made into documents", count("produced_object_count"))}
                {stat("Documents now", count("document_count"))}
            </dl>
            {missing}
            {cut.then(|| view! { <p class="muted">"There are more of them."</p> })}
        </div>
    }
    .into_any()
}

fn missing(one: Record) -> AnyView {
    let id = one.text("object_id");
    let bucket = one.opt("bucket_id");
    let href =
        bucket.map(|bucket| format!("/console/ns/{}/buckets/{bucket}/objects/{id}", namespace()));
    line(vec![
        titled(href, id, String::new()),
        words("text-cell", text::words(&one.text("reason"))),
        cell("", badge(&one.text("status"))),
    ])
}
