//! A taxonomy applied to a collection: to the documents that are there, by a task, and to those that will come.

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api},
    load::Load,
    page::demo::active,
    part::{schema::Form, *},
    record::Record,
    text,
};

const FORM: &str = "taxonomies/apply";

/// The members of an application that are asked for.
const ASKED: &[&str] = &["target_collection_id", "hierarchical_enrichment_style"];

/// The dialog, and how far the task is that it began.
pub fn dialog(open: RwSignal<bool>, load: Load, api: Signal<Api>) -> AnyView {
    let toasts: Toasts = expect_context();
    let (form, task) = (Form::plain("apply"), RwSignal::new(String::new()));
    let start = move || {
        let one = load.good().unwrap_or_default();
        form.choices.set(one.record("names"));
        json!({"kind": one.record("config").text("taxonomy_type"), "documents": "all"})
    };
    let send = move |body: Value| {
        let one = load.good().unwrap_or_default();
        begun(
            api.get_untracked(),
            one.text("taxonomy_id"),
            placed(Record(body)),
        )
    };
    let done = move |made: Record| {
        task.set(made.text("task_id"));
        toasts.say("The taxonomy is applied");
        load.reload();
    };
    let watched = Load::of(
        move || api.get(),
        move || match task.get() {
            none if none.is_empty() => none,
            id => format!("/v1/tasks/{}", text::escape(&id)),
        },
    );
    watched.poll_while(active);
    view! {
        <Fill open title="Apply the taxonomy".to_owned() label="Apply" form schema=FORM start=Callback::new(move |()| start())
            send=Callback::new(send) done=Callback::new(done)/>
        <div role="status">{move || watched.value.get().map(|answer| match answer {
            Ok(task) => told(&task),
            Err(problem) => view! { <Explain problem/> }.into_any(),
        })}</div>
    }
    .into_any()
}

/// Documents that are stored in their own collection are stored nowhere else.
fn placed(mut body: Record) -> Record {
    let own = body.value("source_collection_id") == body.value("target_collection_id");
    if let Some(members) = body.0.as_object_mut().filter(|_| own) {
        members.shift_remove("target_collection_id");
    }
    body
}

/// Documents to come are the collection's own work; those that are there are a task's.
fn begun(api: Api, id: String, body: Record) -> Answer {
    Box::pin(async move {
        let (collection, which) = (body.text("source_collection_id"), body.text("documents"));
        if which != "now" {
            let path = format!("/v1/collections/{}", text::escape(&collection));
            let held = api.get(&path).await?;
            let all = applications(&held, &id, Some(&body));
            api.patch(&path, &json!({"taxonomy_applications": all}))
                .await?;
        }
        if which == "later" {
            return Ok(Record::default());
        }
        let mut batch = json!({"source_collection_id": collection, "join_mode": "batch"});
        if let Some(target) = body.opt("target_collection_id") {
            batch["target_collection_id"] = target.into();
        }
        let path = format!("/v1/taxonomies/{}/execute", text::escape(&id));
        api.post(&path, &batch).await
    })
}

/// What a collection applies, with this taxonomy once into the place that is asked for; without it where none is.
fn applications(held: &Record, id: &str, asked: Option<&Record>) -> Vec<Value> {
    let target = |one: &Record| one.opt("target_collection_id");
    let mut all = held.list("taxonomy_applications");
    all.retain(|one| {
        one.text("taxonomy_id") != id || asked.is_some_and(|asked| target(asked) != target(one))
    });
    let mut all: Vec<Value> = all.into_iter().map(|one| one.0).collect();
    if let Some(asked) = asked {
        let mut one = json!({"taxonomy_id": id});
        for name in ASKED {
            if let Some(value) = asked.opt(name) {
                one[*name] = value.into();
            }
        }
        all.push(one);
    }
    all
}

/// How far the task is, or what came of it.
fn told(task: &Record) -> AnyView {
    let done = task.list("outputs").into_iter().next().unwrap_or_default();
    let n = |name: &str| text::count(done.int(name).unwrap_or(0));
    let words = (!active(task)).then(|| {
        let (found, all) = (n("enriched"), n("processed_docs"));
        format!("{found} of {all} documents found their node")
    });
    let reason = done
        .opt("first_error")
        .map(|reason| view! { <p class="notice warn">{reason}</p> });
    view! { <p class="row">{badge(&task.text("status"))}<span class="muted">{words}</span></p>{reason} }
        .into_any()
}

/// The collections that apply it to what comes, each with a button that ends that.
pub fn applied(rows: Rows, api: Signal<Api>, one: &Record) -> Option<AnyView> {
    let id = one.text("taxonomy_id");
    let all = one.list("applied").into_iter().map(|held| {
        let (id, name) = (id.clone(), held.text("collection_name"));
        let stop = rows.call(
            "Stop for",
            &name,
            "Documents to come take over nothing more",
            move || {
                let path = format!(
                    "/v1/collections/{}",
                    text::escape(&held.text("collection_id"))
                );
                let left = applications(&held, &id, None);
                api.get_untracked()
                    .patch(&path, &json!({"taxonomy_applications": left}))
            },
        );
        view! { <span class="row">{name}{stop}</span> }.into_any()
    });
    let all: Vec<_> = all.collect();
    (!all.is_empty()).then(|| fact("Applied to what comes to".to_owned(), all.into_any()))
}

#[cfg(test)]
mod tests {
    use loupe_wire::{ExecuteTaxonomyRequest, UpdateCollectionRequest};

    use super::*;

    #[test]
    fn a_collection_applies_a_taxonomy_once_into_each_place() {
        let held = Record(json!({"taxonomy_applications": [
            {"taxonomy_id": "other"}, {"taxonomy_id": "t"}, {"taxonomy_id": "t", "target_collection_id": "shelf"},
        ]}));
        let asked = placed(Record(json!({
            "source_collection_id": "c", "target_collection_id": "c", "hierarchical_enrichment_style": "best_match",
        })));
        let all = applications(&held, "t", Some(&asked));
        assert_eq!(all.len(), 3);
        assert_eq!(
            all[2],
            json!({"taxonomy_id": "t", "hierarchical_enrichment_style": "best_match"})
        );
        serde_json::from_value::<UpdateCollectionRequest>(json!({"taxonomy_applications": all}))
            .expect("a collection");
        assert_eq!(
            applications(&held, "t", None),
            [json!({"taxonomy_id": "other"})]
        );
    }

    #[test]
    fn what_a_task_is_asked_for_is_taken() {
        let body = json!({"source_collection_id": "c", "join_mode": "batch", "target_collection_id": "shelf"});
        serde_json::from_value::<ExecuteTaxonomyRequest>(body).expect("an execution");
    }
}
