//! The demo: one button, a real namespace with a published page.

use leptos::prelude::*;
use serde_json::json;

use crate::{
    api::Problem,
    load::{Change, Load},
    part::{Explain, Icon, Progress, badge, loaded, refusal, tint},
    record::Record,
    session::use_session,
    text,
};

/// Whether a task or a batch still moves.
pub fn active(one: &Record) -> bool {
    matches!(
        one.text("status").as_str(),
        "PENDING" | "QUEUED" | "IN_PROGRESS" | "PROCESSING"
    )
}

/// Share done and a line about it, from a task's `additional_data.progress`.
pub fn progress(task: &Record) -> Option<(f64, String)> {
    let progress = task.record("additional_data").record("progress");
    let number = |name: &str| progress.float(name);
    let share = number("percent")
        .map(|percent| percent / 100.0)
        .or_else(|| Some(number("processed")? / number("total")?))?;
    let stage = text::words(&progress.text("stage"));
    let counts = number("total").filter(|total| *total > 0.0).map(|total| {
        format!(
            "{} of {}",
            text::count(number("processed").unwrap_or(0.0) as i64),
            text::count(total as i64)
        )
    });
    let line = [Some(stage).filter(|s| !s.is_empty()), counts]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ");
    Some((share.clamp(0.0, 1.0), line))
}

/// Starts the demo. What it answers goes to the page, which stays when the list behind this button is no longer empty.
#[component]
pub fn Demo(made: RwSignal<Option<Record>>) -> AnyView {
    let session = use_session();
    let change = Change::new();
    let start = move |_| {
        change.run(
            session.api().post("/v1/quickstart/demo", &json!({})),
            move |answer| {
                session.namespaces_changed.update(|n| *n += 1);
                made.set(Some(answer));
            },
        );
    };
    view! {
        <button type="button" class="btn primary" on:click=start aria-busy=move || change.busy.get().to_string()><Icon name="spark"/>"Load the demo"</button>
        {refusal(change)}
    }
    .into_any()
}

/// How far the demo is, and where it can be seen.
#[component]
pub fn Running(answer: Record) -> AnyView {
    let session = use_session();
    let (task, namespace, retriever) = (
        answer.text("task_id"),
        answer.text("namespace_id"),
        answer.text("retriever_id"),
    );
    let page = answer
        .opt("public_name")
        .map_or_else(|| answer.text("public_url"), |name| format!("/r/{name}"));
    let load = Load::of(move || session.api(), move || format!("/v1/tasks/{task}"));
    load.poll_while(active);
    let links = StoredValue::new((namespace, retriever, page));
    view! {
        <div class="card stack demo" aria-live="polite">
            {loaded(load, ViewFn::from(|| view! { <span class="skeleton"></span> }), move |task| state(task, links))}
        </div>
    }
    .into_any()
}

fn state(task: Record, links: StoredValue<(String, String, String)>) -> AnyView {
    let (share, line) =
        progress(&task).unwrap_or((if active(&task) { 0.0 } else { 1.0 }, String::new()));
    let done = !active(&task);
    let worked = task.text("status").starts_with("COMPLETED");
    let (namespace, retriever, page) = links.get_value();
    view! {
        <div class="row between"><strong>"The demo"</strong>{badge(&task.text("status"))}</div>
        <Progress share=if done { 1.0 } else { share } label="Progress of the demo" class=tint(&task.text("status"))/>
        <p class="muted">{line}</p>
        {task.opt("error").map(|error| view! { <Explain problem=Problem::local(error)/> })}
        {(done && worked).then(|| view! {
            <div class="row">
                <a class="btn primary" href=page target="_blank" rel="noopener"><Icon name="globe"/>"Open the search page"</a>
                <a class="btn" href=format!("/console/ns/{namespace}/collections")>"Look at the documents"</a>
                <a class="btn" href=format!("/console/ns/{namespace}/retrievers/{retriever}")>"Try the retriever"</a>
            </div>
        })}
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::{TaskResponse, TaskStatusEnum};

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn a_task_tells_how_far_it_is() {
        let progress_of = json!({"progress": {"processed": 30, "total": 120, "percent": 25.0, "stage": "embed_text"}});
        let task = TaskResponse {
            status: TaskStatusEnum::InProgress,
            additional_data: progress_of.as_object().cloned(),
            ..Default::default()
        };
        assert!(active(&sent(&task)));
        assert_eq!(
            progress(&sent(&task)),
            Some((0.25, "embed text, 30 of 120".to_owned()))
        );
        let ended = TaskResponse {
            status: TaskStatusEnum::Completed,
            ..Default::default()
        };
        assert!(!active(&sent(&ended)));
        assert_eq!(progress(&sent(&ended)), None);
    }
}
