use leptos::prelude::*;

use super::{Ask, Toasts};
use crate::{api::Api, load::Change};

/// A button that deletes, behind a dialog in which the name is typed: nothing of it comes back.
#[component]
pub fn Remove(
    what: &'static str,
    #[prop(into)] name: Signal<String>,
    /// What goes with it.
    loses: &'static str,
    #[prop(into)] api: Signal<Api>,
    #[prop(into)] path: Signal<String>,
    done: Callback<()>,
) -> AnyView {
    let open = RwSignal::new(false);
    view! {
        <button type="button" class="btn" on:click=move |_| open.set(true)>"Delete"</button>
        <Removal open what name loses api path done/>
    }
    .into_any()
}

/// The dialog alone: a list has one for all of its rows, which are drawn anew as they change.
#[component]
pub fn Removal(
    open: RwSignal<bool>,
    what: &'static str,
    name: Signal<String>,
    loses: &'static str,
    api: Signal<Api>,
    path: Signal<String>,
    done: Callback<()>,
) -> AnyView {
    let toasts: Toasts = expect_context();
    let (typed, change) = (RwSignal::new(String::new()), Change::new());
    Effect::new(move |_| {
        if open.get() {
            typed.set(String::new());
        }
    });
    let submit = Callback::new(move |()| {
        if typed.get_untracked().trim() != name.get_untracked() {
            change.refuse("this is not its name");
            return;
        }
        let call = api.get_untracked().delete(&path.get_untracked());
        change.run(call, move |_| {
            open.set(false);
            toasts.say(format!("The {what} is being deleted"));
            // The page may be gone by now.
            let _ = done.try_run(());
        });
    });
    view! {
        <Ask open title=format!("Delete this {what}?") label="Delete" danger=true change submit>
            <p>{loses}" This cannot be undone."</p>
            <Confirm name typed/>
        </Ask>
    }
    .into_any()
}

/// A name to be typed, so that what cannot be undone is not done by a slip.
#[component]
pub fn Confirm(#[prop(into)] name: Signal<String>, typed: RwSignal<String>) -> AnyView {
    view! {
        <div class="field">
            <label for="confirm-name">"Type "<strong>{move || name.get()}</strong>" to confirm"</label>
            <input class="input" id="confirm-name" bind:value=typed required=true autocomplete="off" spellcheck="false"/>
        </div>
    }
    .into_any()
}
