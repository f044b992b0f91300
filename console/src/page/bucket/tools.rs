//! What a bucket is called and what tells its objects apart, and its objects sent off in batches of one size.

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::Api,
    load::{Load, navigator},
    page::collections::fields_of,
    part::{schema::Form, *},
    record::{Record, only},
    text,
};

/// What is changed of a bucket.
const SETTINGS: [&str; 3] = ["bucket_name", "description", "unique_key"];

/// Kinds of fields that a key can be made of.
const KEYS: [&str; 7] = [
    "string", "text", "integer", "float", "number", "boolean", "datetime",
];

/// The buttons, with their dialogs.
pub(super) fn tools(
    api: Signal<Api>,
    path: Signal<String>,
    about: Load,
    ns: Memo<String>,
) -> AnyView {
    let (settings, split) = (RwSignal::new(false), RwSignal::new(false));
    view! {
        <button type="button" class="btn" disabled=move || about.good().is_none() on:click=move |_| settings.set(true)>"Settings"</button>
        <button type="button" class="btn" on:click=move |_| split.set(true)>"Split into batches"</button>
        {ask_settings(settings, api, path, about)}
        {ask_split(split, api, path, ns)}
    }
    .into_any()
}

fn ask_settings(
    open: RwSignal<bool>,
    api: Signal<Api>,
    path: Signal<String>,
    about: Load,
) -> AnyView {
    let (form, toasts) = (Form::plain("bucket"), expect_context::<Toasts>());
    let own = move || untrack(|| about.good()).unwrap_or_default();
    let start = move |()| {
        let own = own();
        form.choices.set(keys(&own));
        only(own, &SETTINGS)
    };
    let send = move |body: Value| {
        let body = sent(body, own().value("unique_key").is_some());
        api.get_untracked().patch(&path.get_untracked(), &body)
    };
    let done = move |_: Record| {
        toasts.say("The bucket is changed");
        about.reload();
    };
    view! {
        <Fill open title="Settings of the bucket".to_owned() label="Save" form schema="bucket/settings"
            start=Callback::new(start) send=Callback::new(send) done=Callback::new(done)/>
    }
    .into_any()
}

/// The fields that a key can be made of, to choose from.
fn keys(about: &Record) -> Record {
    let all = fields_of(about).into_iter();
    let all = all.filter(|(_, kind)| KEYS.contains(&kind.as_str()));
    let all = all.map(|(name, kind)| json!({"id": name, "name": format!("{name} ({kind})")}));
    Record(json!({"fields": all.collect::<Vec<_>>()}))
}

/// The form as it is sent. A bucket without a key is sent none as long as no field is chosen.
fn sent(mut body: Value, has_key: bool) -> Value {
    if body["description"].is_null() {
        body["description"] = "".into();
    }
    let key = Record(body["unique_key"].clone());
    if let Some(members) = body.as_object_mut()
        && !has_key
        && key.strings("fields").is_empty()
    {
        members.shift_remove("unique_key");
    }
    body
}

fn ask_split(
    open: RwSignal<bool>,
    api: Signal<Api>,
    path: Signal<String>,
    ns: Memo<String>,
) -> AnyView {
    let (form, toasts, go) = (
        Form::plain("split"),
        expect_context::<Toasts>(),
        navigator(),
    );
    let send = move |body: Value| {
        let path = format!("{}/batches/bulk-submit", path.get_untracked());
        api.get_untracked().post(&path, &body)
    };
    let done = move |made: Record| {
        toasts.say(told(&made));
        if made.int("total_batches").unwrap_or(0) > 0 {
            go(&format!("/ns/{}/batches", ns.get_untracked()));
        }
    };
    view! {
        <Fill open title="Split the bucket into batches".to_owned() label="Submit" form schema="bucket/split"
            start=Callback::new(|()| json!({"dedup_strategy": "skip"})) send=Callback::new(send) done=Callback::new(done)/>
    }
    .into_any()
}

/// What became of the batches.
fn told(made: &Record) -> String {
    let many = |member: &str| made.int(member).unwrap_or(0);
    let objects = text::counted(many("total_objects"), "object", "objects");
    let batches = text::counted(many("total_batches"), "batch", "batches");
    match many("failed") {
        0 => format!("{objects} in {batches}"),
        failed => format!("{objects} in {batches}, {failed} not submitted"),
    }
}

#[cfg(test)]
mod tests {
    use loupe_wire::{BucketPatchRequest, BulkSubmitBatchesResponse};

    use super::*;
    use crate::record::tests::sent as answered;

    #[test]
    fn a_key_is_sent_once_it_has_a_field() {
        let of = |body: Value, has_key| -> BucketPatchRequest {
            serde_json::from_value(sent(body, has_key)).expect("a change")
        };
        let policy = json!({"bucket_name": "notes", "unique_key": {"default_policy": "upsert"}});
        let plain = of(policy, false);
        assert!(plain.unique_key.is_none());
        assert_eq!(plain.description, Some(Some(String::new())));
        let key = json!({"fields": ["sku"], "default_policy": "upsert"});
        let keyed = of(json!({"unique_key": key}), false);
        assert_eq!(keyed.unique_key.expect("a key").fields, ["sku"]);
        let emptied = of(json!({"unique_key": {"fields": []}}), true);
        assert!(emptied.unique_key.is_some());
        let bucket = json!({"bucket_schema": {"properties": {"sku": {"type": "string"}, "photo": {"type": "image"}}}});
        let keys = keys(&Record(bucket)).list("fields");
        assert_eq!(keys.len(), 1);
        assert_eq!(keys[0].text("name"), "sku (string)");
    }

    #[test]
    fn what_was_not_submitted_is_told() {
        let made = BulkSubmitBatchesResponse {
            total_objects: 3,
            total_batches: 2,
            ..Default::default()
        };
        assert_eq!(told(&answered(&made)), "3 objects in 2 batches");
        let failed = BulkSubmitBatchesResponse { failed: 1, ..made };
        assert!(told(&answered(&failed)).ends_with("1 not submitted"));
    }
}
