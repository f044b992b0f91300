//! Annotations that nobody has looked at yet, the least certain first: accepted, corrected or rejected, by keys, too.

use leptos::{ev::KeyboardEvent, html, prelude::*};
use serde_json::{Value, json};

use super::{
    annotations::{changed, path_of},
    documents::{by_ids, called, picture_of},
};
use crate::{
    api::{Answer, Api},
    load::{Load, Query},
    part::{schema::Form, *},
    record::{Record, page},
    route::{namespace, param},
    session::{Session, use_session},
    text,
};

const COLUMNS: &[Column] = &[
    Column("Label", ""),
    Column("Confidence", "num"),
    Column("Document", ""),
    Column("By", ""),
    Column("", "actions many"),
];

const BLANK: Blank = Blank {
    icon: "check",
    title: "Nothing to review",
    text: "What people and programs say of documents waits here until somebody accepts, corrects or rejects it.",
    link: None,
};

/// The mirror of annotations: it can be asked what was noted of them.
const SIGNAL: &str = "/v1/collections/loupe_document_annotations/documents/list";

const FORM: &str = "annotations";

/// What may have come of a review; kept in the annotation's metadata.
const STATES: &[&str] = &["accepted", "corrected", "rejected"];

/// What the buttons of rows need.
#[derive(Clone, Copy)]
struct Queue {
    rows: Rows,
    ns: Memo<String>,
    session: Session,
    toasts: Toasts,
    /// Something was decided: the focus goes back to the list, whose row is gone.
    acted: StoredValue<bool>,
}

impl Queue {
    fn accept(self, one: &Record) {
        self.act(one, "accepted", "It is accepted");
    }

    fn reject(self, one: &Record) {
        self.act(one, "rejected", "It is rejected");
    }

    fn act(self, one: &Record, state: &str, said: &'static str) {
        let call = self.patch(one, decided(one, state));
        self.rows.change.run(call, move |_| {
            self.acted.set_value(true);
            self.toasts.say(said);
            self.rows.reload();
        });
    }

    fn correct(self, one: &Record) {
        self.rows.of.set(one.clone());
        self.rows.dialog("Correct").set(true);
    }

    fn patch(self, one: &Record, body: Value) -> Answer {
        let api = self.session.api_in(self.ns.get_untracked());
        api.patch(&path_of(one), &body)
    }
}

pub fn review() -> AnyView {
    let (session, ns) = (use_session(), param("ns"));
    let (state, label, offset) = (Query::new("state"), Query::new("q"), Query::new("offset"));
    let load = Load::new(move || {
        let body = asked(&state.value.get(), &label.value.get());
        let path = format!("{SIGNAL}{}", page_query(offset));
        let api = session.api_in(ns.get());
        listed(api, path, body)
    });
    let queue = Queue {
        rows: Rows::new(load),
        ns,
        session,
        toasts: expect_context(),
        acted: StoredValue::new(false),
    };
    provide_context(queue);
    let list = NodeRef::<html::Div>::new();
    Effect::new(move |_| {
        load.value.track();
        if let (true, Some(list)) = (queue.acted.get_value(), list.get()) {
            queue.acted.set_value(false);
            let _ = list.focus();
        }
    });
    let correct = move |body: Value| {
        let one = queue.rows.of.get_untracked();
        queue.patch(&one, corrected(&one, body))
    };
    let done = move |_| {
        queue.acted.set_value(true);
        load.reload();
    };
    let empty = move || view! { <Empty icon=BLANK.icon title=BLANK.title text=BLANK.text/> };
    view! {
        <Head title="Review".to_owned() text="What people and programs say of documents, the least certain first."/>
        {refusal(queue.rows.change)}
        <div class="row filters">
            <SearchBox query=label label="Label".to_owned()/>
            <Pick query=state label="What came of it" all="To review" options=STATES/>
        </div>
        <p class="muted">"While the list has the focus, A accepts the first one, C corrects it and R rejects it."</p>
        <div node_ref=list class="stack" role="group" aria-label="Annotations, by keys A, C and R" tabindex="-1" on:keydown=move |event| press_key(queue, load, &event)>
            <Listing load offset=Some(offset) label="Annotations" columns=COLUMNS row empty=ViewFn::from(empty)/>
        </div>
        <Fill open=queue.rows.dialog("Correct") title="Correct the annotation".to_owned() label="Save" form=Form::plain("review") schema=FORM
            start=Callback::new(move |()| queue.rows.of.get().0) send=Callback::new(correct) done=Callback::new(done)/>
    }
    .into_any()
}

/// The annotations, with their documents: rows show what these are called, which is asked for once.
fn listed(api: Api, path: String, body: Value) -> Answer {
    Box::pin(async move {
        let mut answer = api.post(&path, &body).await?;
        let ids = page(&answer).0.into_iter();
        let ids = ids.map(|one| one.text("annotated_document_id")).collect();
        let known = Record(by_ids(&api, ids).await);
        for one in answer.0["results"].as_array_mut().into_iter().flatten() {
            let id = one["annotated_document_id"].as_str().unwrap_or_default();
            one["document"] = known.record(id).0;
        }
        Ok(answer)
    })
}

/// What is asked for: what nobody has reviewed, or what came of it.
fn asked(state: &str, label: &str) -> Value {
    let review = match state {
        "" => json!({"field": "metadata.review", "operator": "is_null", "value": true}),
        state => json!({"field": "metadata.review", "operator": "eq", "value": state}),
    };
    let mut all = vec![review];
    if !label.is_empty() {
        all.push(json!({"field": "label", "operator": "text", "value": label}));
    }
    json!({"filters": {"AND": all}, "sort": {"field": "confidence", "direction": "asc"}})
}

/// The change that notes what came of a review, beside what was noted before.
fn decided(one: &Record, state: &str) -> Value {
    let mut metadata = one.record("metadata").0;
    if !metadata.is_object() {
        metadata = json!({});
    }
    metadata["review"] = state.into();
    json!({ "metadata": metadata })
}

/// The same with what is right.
fn corrected(one: &Record, body: Value) -> Value {
    let mut change = changed(body);
    change["metadata"] = decided(one, "corrected")["metadata"].clone();
    change
}

/// A single letter is a decision about the first one, unless it is part of a command.
fn press_key(queue: Queue, load: Load, event: &KeyboardEvent) {
    if event.ctrl_key() || event.meta_key() || event.alt_key() || event.repeat() {
        return;
    }
    // What is shown may be decided already, and a button of a row is of that row.
    let is_busy = load.busy.get_untracked() || queue.rows.change.busy.get_untracked();
    let at: web_sys::Element = event_target(event);
    if is_busy || at.matches("a, button").unwrap_or(false) {
        return;
    }
    let act = match event.key().to_lowercase().as_str() {
        "a" => Queue::accept,
        "c" => Queue::correct,
        "r" => Queue::reject,
        _ => return,
    };
    let first = load.value.get_untracked().and_then(Result::ok);
    if let Some(first) = first.and_then(|all| page(&all).0.into_iter().next()) {
        event.prevent_default();
        act(queue, &first);
    }
}

fn row(one: Record) -> AnyView {
    let queue: Queue = expect_context();
    let label = one.text("label");
    let document = one.text("annotated_document_id");
    let about = one.record("document");
    let title = called(&about, &document);
    let href = format!(
        "/console/ns/{}/collections/{}?document={}",
        namespace(),
        text::escape(&one.text("annotated_collection_id")),
        text::escape(&document)
    );
    let confidence = one.float("confidence");
    let confidence = confidence.map(|part| format!("{:.0} %", part * 100.0));
    let button = |verb: &'static str, act: fn(Queue, &Record)| {
        let of = one.clone();
        let said = format!("{label} of {title}");
        press(verb, &said, Box::new(move || act(queue, &of)))
    };
    let buttons = view! { {button("Accept", Queue::accept)}{button("Correct", Queue::correct)}{button("Reject", Queue::reject)} };
    let picture = picture_of(&about).map(|url| image(Some(url), "thumb"));
    let link = view! { <span class="row nowrap">{picture}<span class="grow"><a href=href>{title.clone()}</a><span class="sub mono">{document.clone()}</span></span></span> };
    line(vec![
        titled(None, label.clone(), one.text("reasoning")),
        words("num nowrap", confidence.unwrap_or_default()),
        cell("text-cell", link.into_any()),
        cell(
            "cut",
            view! { {one.text("actor_id")}<span class="sub">{when(one.opt("updated_at"))}</span> }
                .into_any(),
        ),
        cell("actions many", buttons.into_any()),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{ListDocumentsRequest, PatchAnnotationRequest};

    use super::*;

    #[test]
    fn what_is_asked_for_is_a_list_of_documents() {
        for (state, label) in [("", ""), ("accepted", "relevant")] {
            let body = asked(state, label);
            let conditions = body["filters"]["AND"].as_array().map(Vec::len);
            assert_eq!(conditions, Some(1 + usize::from(!label.is_empty())));
            serde_json::from_value::<ListDocumentsRequest>(body).expect("a body");
        }
    }

    #[test]
    fn a_decision_keeps_what_was_noted_before() {
        let one = Record(json!({"label": "a", "metadata": {"round": 1}}));
        let change = decided(&one, "accepted");
        assert_eq!(
            change,
            json!({"metadata": {"round": 1, "review": "accepted"}})
        );
        serde_json::from_value::<PatchAnnotationRequest>(change).expect("a change");
        let body = json!({"label": "b", "confidence": 0.9, "annotated_document_id": "d"});
        let change = corrected(&Record(json!({"label": "a"})), body);
        assert_eq!(
            change,
            json!({"label": "b", "confidence": 0.9, "reasoning": null, "metadata": {"review": "corrected"}})
        );
    }
}
