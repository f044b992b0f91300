use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use super::Icon;
use crate::{
    api::Problem,
    leave::Unsaved,
    load::{Change, Load},
    record::Record,
    session::use_session,
    text,
};

/// Short notes at the corner, read out as they come; and the dialogs that lie over the page, the last one uppermost: what
/// is below it is neither in sight nor read out.
#[derive(Clone, Copy, Default)]
pub struct Toasts(
    RwSignal<Vec<(u32, String, &'static str)>>,
    RwSignal<Vec<u32>>,
);

impl Toasts {
    pub fn say(self, text: impl Into<String>) {
        self.put(text.into(), "toast ok");
    }

    /// What went wrong.
    pub fn warn(self, text: impl Into<String>) {
        self.put(text.into(), "toast bad");
    }

    fn put(self, text: String, class: &'static str) {
        let id = self
            .0
            .with_untracked(|all| all.last().map_or(1, |(id, ..)| id + 1));
        self.0.update(|all| all.push((id, text, class)));
        spawn_local(async move {
            TimeoutFuture::new(4000).await;
            let _ = self.0.try_update(|all| all.retain(|(one, ..)| *one != id));
        });
    }
}

/// The notes, in the page or in a dialog that opens over it now: they stand in the uppermost alone.
pub fn toast_list(in_dialog: bool) -> AnyView {
    let Toasts(all, dialogs) = expect_context();
    let own = in_dialog.then(|| {
        let own = dialogs.with_untracked(|open| open.last().map_or(1, |last| last + 1));
        dialogs.update(|open| open.push(own));
        on_cleanup(move || {
            let _ = dialogs.try_update(|open| open.retain(|one| *one != own));
        });
        own
    });
    let shown = move || {
        let is_here = dialogs.with(|open| open.last().copied()) == own;
        let all = if is_here { all.get() } else { Vec::new() };
        all.into_iter()
            .map(|(_, text, class)| view! { <div class=class>{text}</div> }.into_any())
            .collect::<Vec<_>>()
    };
    // What a dialog says of itself is its status.
    let role = (!in_dialog).then_some("status");
    view! { <div class="toasts" role=role aria-live="polite">{shown}</div> }.into_any()
}

/// Copies and says so.
#[component]
pub fn Copy(
    #[prop(into)] text: Signal<String>,
    #[prop(optional)] label: &'static str,
    /// Set once a copy was made.
    #[prop(optional)]
    done: Option<RwSignal<bool>>,
) -> AnyView {
    let toasts: Toasts = expect_context();
    let ticked = RwSignal::new(false);
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
            let _ = ticked.try_set(worked);
            if let Some(done) = done.filter(|_| worked) {
                let _ = done.try_set(true);
            }
            TimeoutFuture::new(2000).await;
            let _ = ticked.try_set(false);
        });
    };
    let bare = label.is_empty();
    let name = if bare { "Copy" } else { label };
    view! {
        <button type="button" class=if bare { "btn ghost icon small" } else { "btn" } aria-label=name on:click=copy>
            {move || view! { <Icon name=if ticked.get() { "check" } else { "copy" } size=14/> }}
            {label}
        </button>
    }
    .into_any()
}

/// A status: a dot and a word.
pub fn badge(status: &str) -> AnyView {
    let class = match status {
        "COMPLETED" | "ACTIVE" | "active" | "published" | "success" | "delivered" | "healthy"
        | "fired" | "complete" | "completed" | "production" => "badge ok",
        "COMPLETED_WITH_ERRORS"
        | "expired"
        | "INTERRUPTED"
        | "SUSPENDED"
        | "suspended"
        | "paused"
        | "failing"
        | "degraded"
        | "high"
        | "partial"
        | "overdue" => "badge warn",
        "FAILED" | "revoked" | "failed" | "denied" | "critical" => "badge bad",
        "IN_PROGRESS" | "PROCESSING" | "QUEUED" | "PENDING" | "uploading" | "pending"
        | "building" | "looking" | "running" | "in_progress" | "cloning" => "badge live",
        _ => "badge",
    };
    view! { <span class=class>{text::words(status)}</span> }.into_any()
}

/// A moment, relative, with the exact one on hover.
pub fn when(at: Option<String>) -> AnyView {
    match at {
        Some(at) => {
            let seconds = (js_sys::Date::now() - js_sys::Date::parse(&at)) / 1000.0;
            let (exact, short) = (text::exact(&at), text::ago(&at, seconds));
            view! { <time datetime=at title=exact>{short}</time> }.into_any()
        }
        None => view! { <span class="muted">"never"</span> }.into_any(),
    }
}

/// Details that say when to try again, or whether.
const AGAIN: [&str; 3] = ["retry_after", "retry_after_seconds", "retryable"];

/// What went wrong, where, and what to do about it.
#[component]
pub fn Explain(problem: Problem, #[prop(optional, into)] retry: Option<Callback<()>>) -> AnyView {
    let Problem {
        status,
        kind,
        message,
        request_id,
        retry_after,
        notes,
        ..
    } = problem;
    // When to try again is said below, in words.
    let lines = notes
        .into_iter()
        .filter(|(place, value)| !value.is_empty() && !AGAIN.contains(&place.as_str()));
    let lines =
        lines.map(|(place, what)| view! { <li><code>{place}</code>": "{what}</li> }.into_any());
    // What the page itself refuses was never sent: the server's words for it say nothing to people.
    let title = match (kind.as_str(), status) {
        ("invalid_input", 0) => "That did not work".to_owned(),
        _ => kind,
    };
    // A key that is refused is refused again, whatever is tried with it.
    let session = use_session();
    let over = status == 401 && session.signed_in();
    let retry = retry.filter(|_| !over);
    view! {
        <div class="notice bad" role="alert">
            <strong>{title}{(status > 0).then(|| format!(" ({status})"))}</strong>
            <span>{message}</span>
            <ul>{lines.collect::<Vec<_>>()}</ul>
            {retry_after.map(countdown)}
            {request_id.map(|id| view! { <span class="mono">"request "{id}</span> })}
            {over.then(sign_in_again)}
            {retry.map(|retry| view! {
                <div class="row"><button type="button" class="btn small" on:click=move |_| retry.run(())>"Try again"</button></div>
            })}
        </div>
    }
    .into_any()
}

/// The way out for those whose key is refused by now.
fn sign_in_again() -> AnyView {
    let (session, unsaved) = (use_session(), expect_context::<Unsaved>());
    let leave = move |_| {
        if unsaved.may_leave() {
            session.sign_out();
        }
    };
    view! {
        <span>"The key that you signed in with is refused: it was revoked, or its time is over."</span>
        <div class="row"><button type="button" class="btn small primary" on:click=leave>"Sign in again"</button></div>
    }
    .into_any()
}

/// The seconds until another try is worth it, as they pass. They are not read out one by one.
fn countdown(seconds: u32) -> AnyView {
    let left = RwSignal::new(seconds);
    spawn_local(async move {
        // The page may be gone by then.
        while left.try_get_untracked().is_some_and(|left| left > 0) {
            TimeoutFuture::new(1000).await;
            let _ = left.try_update(|left| *left -= 1);
        }
    });
    let words = move || match left.get() {
        0 => "It can be tried again now.".to_owned(),
        left => format!("Try again in {left} s."),
    };
    view! { <span aria-live="off">{words}</span> }.into_any()
}

/// What `load` brought, as `view` shows it; until then `wait`, and what went wrong instead.
pub fn loaded(
    load: Load,
    wait: ViewFn,
    view: impl Fn(Record) -> AnyView + Send + Sync + 'static,
) -> AnyView {
    shown(load, wait, Box::new(view))
}

type Shown = Box<dyn Fn(Record) -> AnyView + Send + Sync>;

fn shown(load: Load, wait: ViewFn, view: Shown) -> AnyView {
    let late = Memo::new(move |_| load.is_late());
    let late = move || {
        late.get().then(|| view! { <p class="muted" role="status">"The server does not answer right now. This is what it said last; it is asked again."</p> })
    };
    let inside = move || match load.value.get() {
        None => wait.run(),
        Some(Err(problem)) => {
            view! { <Explain problem retry=Callback::new(move |()| load.reload())/> }.into_any()
        }
        Some(Ok(one)) => view(one),
    };
    view! { {late}{inside} }.into_any()
}

/// What can be done with something, unless there is no such thing.
pub fn while_there(load: Load, inside: impl Fn() -> AnyView + Send + Sync + 'static) -> AnyView {
    let lost = Memo::new(move |_| {
        let gone = |value: &Option<Result<_, Problem>>| matches!(value, Some(Err(problem)) if problem.status == 404);
        load.value.with(gone)
    });
    (move || (!lost.get()).then(&inside)).into_any()
}

/// So many lines of nothing yet.
pub fn waiting(lines: usize) -> ViewFn {
    ViewFn::from(move || view! { <Skeletons lines/> })
}

/// What was refused, as long as it stands.
pub fn refusal(change: Change) -> AnyView {
    (move || {
        change
            .problem
            .get()
            .map(|problem| view! { <Explain problem/> })
    })
    .into_any()
}

/// A figure under its name.
pub fn stat(name: &'static str, inside: AnyView) -> AnyView {
    view! { <div class="stat"><dt>{name}</dt><dd>{inside}</dd></div> }.into_any()
}

/// A line of a list of facts.
pub fn fact(name: String, inside: AnyView) -> AnyView {
    view! { <dt>{name}</dt><dd>{inside}</dd> }.into_any()
}

/// Nothing here yet, and what to do about it.
#[component]
pub fn Empty(
    icon: &'static str,
    title: &'static str,
    text: &'static str,
    #[prop(optional)] children: Option<Children>,
) -> AnyView {
    view! {
        <div class="empty">
            <span class="art"><Icon name=icon size=24/></span>
            <h2>{title}</h2>
            <p>{text}</p>
            {children.map(|children| view! { <div class="row">{children()}</div> })}
        </div>
    }
    .into_any()
}

#[component]
pub fn Skeletons(#[prop(default = 5)] lines: usize) -> AnyView {
    view! {
        <div class="card stack" role="group" aria-busy="true" aria-label="Loading">
            {(0..lines).map(|_| view! { <span class="skeleton"></span> }.into_any()).collect::<Vec<_>>()}
        </div>
    }
    .into_any()
}

/// The colour of a bar about something that ended so.
pub fn tint(status: &str) -> &'static str {
    match status {
        "FAILED" => "bad",
        "COMPLETED_WITH_ERRORS" | "INTERRUPTED" | "CANCELED" => "warn",
        _ => "",
    }
}

/// How far something is, of one.
#[component]
pub fn Progress(
    #[prop(into)] share: Signal<f64>,
    #[prop(into)] label: String,
    #[prop(optional)] class: &'static str,
) -> AnyView {
    view! { <progress class=format!("progress {class}") max="1" prop:value=move || share.get() aria-label=label></progress> }.into_any()
}
