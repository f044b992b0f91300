use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use super::Icon;
use crate::{api::Problem, text};

/// Short notes at the corner, read out as they come.
#[derive(Clone, Copy, Default)]
pub struct Toasts(RwSignal<Vec<(u32, String)>>);

impl Toasts {
    pub fn say(self, text: impl Into<String>) {
        let id = self
            .0
            .with_untracked(|all| all.last().map_or(1, |(id, _)| id + 1));
        self.0.update(|all| all.push((id, text.into())));
        spawn_local(async move {
            TimeoutFuture::new(4000).await;
            let _ = self.0.try_update(|all| all.retain(|(one, _)| *one != id));
        });
    }
}

#[component]
pub fn ToastList() -> impl IntoView {
    let Toasts(all) = expect_context();
    view! {
        <div class="toasts" role="status">
            <For each=move || all.get() key=|(id, _)| *id let((_, text))><div class="toast ok">{text}</div></For>
        </div>
    }
}

/// Copies and says so.
#[component]
pub fn Copy(
    #[prop(into)] text: Signal<String>,
    #[prop(optional, into)] label: String,
) -> impl IntoView {
    let toasts: Toasts = expect_context();
    let done = RwSignal::new(false);
    let copy = move |_| {
        let promise = window()
            .navigator()
            .clipboard()
            .write_text(&text.get_untracked());
        spawn_local(async move {
            let worked = JsFuture::from(promise).await.is_ok();
            toasts.say(if worked {
                "Copied"
            } else {
                "The browser refused to copy; select the text instead"
            });
            let _ = done.try_set(worked);
            TimeoutFuture::new(2000).await;
            let _ = done.try_set(false);
        });
    };
    let bare = label.is_empty();
    let name = if bare {
        "Copy".to_owned()
    } else {
        label.clone()
    };
    view! {
        <button type="button" class=if bare { "btn ghost icon small" } else { "btn" } aria-label=name on:click=copy>
            {move || view! { <Icon name=if done.get() { "check" } else { "copy" } size=14/> }}
            {label}
        </button>
    }
}

/// A status: a dot and a word.
#[component]
pub fn Badge(#[prop(into)] status: String) -> impl IntoView {
    let class = match status.as_str() {
        "COMPLETED" | "ACTIVE" | "active" | "published" => "badge ok",
        "COMPLETED_WITH_ERRORS" | "expired" | "INTERRUPTED" | "SUSPENDED" => "badge warn",
        "FAILED" | "revoked" | "failed" => "badge bad",
        "IN_PROGRESS" | "PROCESSING" | "QUEUED" | "PENDING" | "uploading" => "badge live",
        _ => "badge",
    };
    view! { <span class=class>{text::words(&status)}</span> }
}

/// A moment, relative, with the exact one on hover.
#[component]
pub fn When(at: Option<String>) -> impl IntoView {
    match at {
        Some(at) => {
            let seconds = (js_sys::Date::now() - js_sys::Date::parse(&at)) / 1000.0;
            let (exact, short) = (
                format!("{} UTC", text::moment(&at)),
                text::ago(&at, seconds),
            );
            view! { <time datetime=at title=exact>{short}</time> }.into_any()
        }
        None => view! { <span class="muted">"never"</span> }.into_any(),
    }
}

/// What went wrong, where, and what to do about it.
#[component]
pub fn Explain(
    problem: Problem,
    #[prop(optional, into)] retry: Option<Callback<()>>,
) -> impl IntoView {
    let Problem {
        status,
        kind,
        message,
        request_id,
        retry_after,
        notes,
    } = problem;
    let lines = notes.into_iter().filter(|(_, value)| !value.is_empty());
    view! {
        <div class="notice bad" role="alert">
            <strong>{kind}{(status > 0).then(|| format!(" ({status})"))}</strong>
            <span>{message}</span>
            <ul>{lines.map(|(place, what)| view! { <li><code>{place}</code>": "{what}</li> }).collect_view()}</ul>
            {retry_after.map(|seconds| view! { <span>"Try again in "{seconds}" s."</span> })}
            {request_id.map(|id| view! { <span class="mono">"request "{id}</span> })}
            {retry.map(|retry| view! {
                <div class="row"><button type="button" class="btn small" on:click=move |_| retry.run(())>"Try again"</button></div>
            })}
        </div>
    }
}

/// Nothing here yet, and what to do about it.
#[component]
pub fn Empty(
    icon: &'static str,
    #[prop(into)] title: String,
    #[prop(into)] text: String,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    view! {
        <div class="empty">
            <span class="art"><Icon name=icon size=24/></span>
            <h2>{title}</h2>
            <p>{text}</p>
            {children.map(|children| view! { <div class="row">{children()}</div> })}
        </div>
    }
}

#[component]
pub fn Skeletons(#[prop(default = 5)] lines: usize) -> impl IntoView {
    view! {
        <div class="card stack" aria-busy="true" aria-label="Loading">
            {(0..lines).map(|_| view! { <span class="skeleton"></span> }).collect_view()}
        </div>
    }
}

/// How far something is, of one.
#[component]
pub fn Progress(
    #[prop(into)] share: Signal<f64>,
    #[prop(into)] label: String,
    #[prop(optional, into)] class: String,
) -> impl IntoView {
    view! { <progress class=format!("progress {class}") max="1" prop:value=move || share.get() aria-label=label></progress> }
}
