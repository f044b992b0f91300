//! Another collection like one: its documents come along where it is made the same way.

use leptos::prelude::*;
use serde_json::{Value, json};
use wasm_bindgen_futures::spawn_local;

use crate::{
    api::Api,
    load::{Load, navigator},
    part::{schema::Form, *},
    record::{Record, only},
};

const FORM: &str = "collections/clone";

/// What says how documents are made.
const EXTRACTOR: [&str; 6] = [
    "feature_extractor_name",
    "version",
    "parameters",
    "input_mappings",
    "field_passthrough",
    "include_all_source_fields",
];

/// The dialog that asks for it.
pub fn dialog(
    open: RwSignal<bool>,
    api: Signal<Api>,
    about: Load,
    base: Signal<String>,
    ns: Memo<String>,
) -> AnyView {
    let (form, go, toasts) = (
        Form::plain("clone"),
        navigator(),
        expect_context::<Toasts>(),
    );
    let own = move || untrack(|| about.good()).unwrap_or_default();
    let start = move || {
        let api = api.get_untracked();
        spawn_local(async move {
            if let Ok(all) = choices(api, &["buckets"]).await {
                let _ = form.choices.try_set(all);
                let _ = form.shape.try_update(|n| *n += 1);
            }
        });
        fresh(&own())
    };
    let send = move |body: Value| {
        let path = format!("{}/clone", base.get_untracked());
        api.get_untracked()
            .post(&path, &sent(&Record(body), &own()))
    };
    let done = move |made: Record| {
        toasts.say("The collection is cloned");
        let ns = ns.get_untracked();
        go(&format!(
            "/ns/{ns}/collections/{}",
            made.text("collection_id")
        ));
    };
    view! {
        <Fill open title="Clone the collection".to_owned() label="Clone" form schema=FORM start=Callback::new(move |()| start())
            send=Callback::new(send) done=Callback::new(done) note=sentence/>
    }
    .into_any()
}

/// What the form begins with: the way the collection is made, which stays in `own` to be compared with.
fn fresh(own: &Record) -> Value {
    let (source, extractor) = (own.record("source"), own.record("feature_extractor"));
    let parameters = extractor.value("parameters").or(extractor.value("params"));
    let made = json!({"bucket_ids": source.strings("bucket_ids"), "parameters": parameters});
    let mut body = made.clone();
    body["kind"] = source.text("type").into();
    body["own"] = made;
    body
}

/// Whether a member is as the collection has it.
fn is_kept(body: &Record, member: &str) -> bool {
    let none = |value: &Value| {
        let text = value.to_string();
        matches!(text.as_str(), "null" | "[]" | "{}")
    };
    let (now, own) = (&body.0[member], &body.0["own"][member]);
    now == own || (none(now) && none(own))
}

fn sentence(body: &Value) -> String {
    let body = Record(body.clone());
    match is_kept(&body, "bucket_ids") && is_kept(&body, "parameters") {
        true => "The documents are copied with their vectors, by a task.",
        false => "It begins empty, and makes its documents when its buckets are processed.",
    }
    .to_owned()
}

/// The body as the server takes it: what stays as it is is left out.
fn sent(body: &Record, own: &Record) -> Value {
    let mut sent = only(body.clone(), &["collection_name", "description"]);
    if !is_kept(body, "bucket_ids") {
        sent["source"] = json!({"type": "bucket", "bucket_ids": body.strings("bucket_ids")});
    }
    if !is_kept(body, "parameters") {
        let mut extractor = only(own.record("feature_extractor"), &EXTRACTOR);
        extractor["parameters"] = match body.value("parameters") {
            Some(parameters) => parameters.clone(),
            None => json!({}),
        };
        sent["feature_extractor"] = extractor;
    }
    sent
}

#[cfg(test)]
mod tests {
    use loupe_wire::CloneCollectionRequest;

    use super::*;

    #[test]
    fn what_stays_as_it_is_is_left_out() {
        let own = Record(json!({
            "source": {"type": "bucket", "bucket_ids": ["bkt_1"]},
            "feature_extractor": {"feature_extractor_name": "text_extractor", "version": "v1", "parameters": {"chunk_size": 500},
                "input_mappings": {"text": "plot"}, "feature_extractor_id": "text_extractor_v1"},
        }));
        let mut body = fresh(&own);
        body["collection_name"] = "next".into();
        let same = Record(body.clone());
        assert_eq!(sent(&same, &own), json!({"collection_name": "next"}));
        assert!(sentence(&body).contains("copied"));
        body["bucket_ids"] = json!(["bkt_2"]);
        body["parameters"] = json!({"chunk_size": 900});
        assert!(sentence(&body).contains("empty"));
        let other = sent(&Record(body), &own);
        assert_eq!(other["source"]["bucket_ids"], json!(["bkt_2"]));
        assert_eq!(other["feature_extractor"]["parameters"]["chunk_size"], 900);
        let request: CloneCollectionRequest = serde_json::from_value(other).expect("a clone");
        assert!(request.feature_extractor.is_some());
    }
}
