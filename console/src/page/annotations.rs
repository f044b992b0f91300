//! What people and programs decided about one document.

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    load::Load,
    part::{schema::Form, *},
    record::{Record, only, page, plain},
    session::use_session,
    text,
};

const FORM: &str = "annotations";

/// Where one annotation is.
pub fn path_of(one: &Record) -> String {
    format!(
        "/v1/annotations/{}",
        text::escape(&one.text("annotation_id"))
    )
}

/// What a change sends of the form: what was emptied goes.
pub fn changed(body: Value) -> Value {
    let mut sent = only(Record(body), &["label", "confidence", "reasoning"]);
    for name in ["confidence", "reasoning"] {
        if sent.get(name).is_none() {
            sent[name] = Value::Null;
        }
    }
    sent
}

/// The annotations of a document, and the dialogs that make and change them.
pub fn annotations(ns: Memo<String>, collection: Memo<String>, document: Memo<String>) -> AnyView {
    let session = use_session();
    let api = move || session.api_in(ns.get_untracked());
    let about = move || json!({"document_id": document.get_untracked(), "collection_id": collection.get_untracked()});
    let load = Load::new(move || {
        let _ = (document.get(), collection.get());
        session
            .api_in(ns.get())
            .post("/v1/annotations/list?limit=100", &about())
    });
    let rows = Rows::new(load);
    let create = RwSignal::new(false);
    let saved = Callback::new(move |_| load.reload());
    let make = move |mut body: Value| {
        for (member, value) in Record(about()).members() {
            body[member] = value.0;
        }
        api().post("/v1/annotations", &body)
    };
    let patch = move |body: Value| {
        let path = path_of(&Record(body.clone()));
        api().patch(&path, &changed(body))
    };
    let list = move |answer: Record| {
        let (all, _) = page(&answer);
        if all.is_empty() {
            return view! { <p class="muted">"None."</p> }.into_any();
        }
        let all = all.into_iter().map(|one| shown(rows, one));
        view! { <ul class="notes">{all.collect::<Vec<_>>()}</ul> }.into_any()
    };
    view! {
        <section class="stack-sm">
            <div class="row between"><h3>"Annotations"</h3><button type="button" class="btn small" on:click=move |_| create.set(true)>"Annotate"</button></div>
            {loaded(load, waiting(1), list)}
        </section>
        <Fill open=create title="Annotate this document".to_owned() label="Save" form=Form::plain("annotation") schema=FORM
            start=Callback::new(|()| json!({})) send=Callback::new(make) done=saved/>
        <Fill open=rows.dialog("Change") title="Change the annotation".to_owned() label="Save" form=Form::plain("annotation-change") schema=FORM
            start=Callback::new(move |()| rows.of.get().0) send=Callback::new(patch) done=saved/>
        <Discard rows what="annotation" name="label" loses="Its versions go with it." delete=Callback::new(move |one: Record| api().delete(&path_of(&one)))/>
    }
    .into_any()
}

/// `0.92` as `92 %`.
fn share(value: &Record) -> Option<String> {
    value
        .float("confidence")
        .map(|part| format!("{:.0} %", part * 100.0))
}

/// What an earlier version had otherwise.
fn earlier(one: &Record) -> Option<String> {
    let prior = one.record("prior").members().into_iter();
    let was = prior.map(|(member, value)| {
        let value = match value.0 {
            Value::Null => "nothing".into(),
            other => plain(&other),
        };
        format!("{} was {value}", text::words(&member))
    });
    let was = was.collect::<Vec<_>>().join(", ");
    let by = one.text("edited_by");
    Some(format!(
        "Version {}: {was}; changed by {by} ",
        one.int("version")?
    ))
}

fn shown(rows: Rows, one: Record) -> AnyView {
    let label = one.text("label");
    let past = one
        .list("revisions")
        .into_iter()
        .rev()
        .filter_map(|revision| {
            let said = earlier(&revision)?;
            Some(view! { <li>{said}{when(revision.opt("edited_at"))}</li> }.into_any())
        });
    let past = past.collect::<Vec<_>>();
    let versions = (!past.is_empty()).then(|| {
        let label = format!(
            "{} earlier",
            text::counted(past.len() as i64, "version", "versions")
        );
        view! { <details class="more"><summary>{label}</summary><ul>{past}</ul></details> }
    });
    let by = format!("by {} ", one.text("actor_id"));
    view! {
        <li>
            <div class="row between">
                <span class="row"><strong>{label.clone()}</strong><span class="muted">{share(&one)}</span></span>
                <span>{rows.open("Change", &label, &one)}{rows.open("Remove", &label, &one)}</span>
            </div>
            <p>{one.text("reasoning")}</p>
            <p class="muted">{by}{when(one.opt("updated_at").or_else(|| one.opt("created_at")))}</p>
            {versions}
        </li>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::{AnnotationRevision, CreateAnnotationRequest, PatchAnnotationRequest};

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn an_earlier_version_is_told_by_what_it_had_otherwise() {
        let revision: AnnotationRevision = serde_json::from_value(json!({
            "version": 1, "prior": {"label": "a", "confidence": null}, "edited_at": "2026-11-01T00:00:00Z", "edited_by": "ann", "edited_by_type": "user"}))
        .expect("a revision");
        assert_eq!(
            earlier(&sent(&revision)).as_deref(),
            Some("Version 1: label was a, confidence was nothing; changed by ann ")
        );
        assert_eq!(
            share(&Record(json!({"confidence": 0.924}))).as_deref(),
            Some("92 %")
        );
        assert_eq!(share(&Record(json!({"confidence": null}))), None);
    }

    #[test]
    fn the_form_makes_an_annotation() {
        let body = json!({"document_id": "d", "collection_id": "c", "label": "l", "confidence": 0.5, "reasoning": "r"});
        serde_json::from_value::<CreateAnnotationRequest>(body.clone()).expect("a body");
        let change: PatchAnnotationRequest =
            serde_json::from_value(changed(body)).expect("a change");
        assert_eq!(change.confidence, Some(Some(0.5)));
        let emptied = changed(json!({"annotation_id": "a", "label": "l"}));
        assert_eq!(
            emptied,
            json!({"label": "l", "confidence": null, "reasoning": null})
        );
        let schema = schema::named(FORM).0;
        assert!(schema["properties"]["label"]["must"] == true);
    }
}
