use leptos::prelude::*;

use super::{Field, Modal, Submit, Toasts};
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
) -> impl IntoView {
    let toasts: Toasts = expect_context();
    let (open, typed) = (RwSignal::new(false), RwSignal::new(String::new()));
    let change = Change::new();
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if typed.get_untracked().trim() != name.get_untracked() {
            change.refuse("this is not its name");
            return;
        }
        let call = api.get_untracked().delete(&path.get_untracked());
        change.run(call, move |_| {
            open.set(false);
            toasts.say(format!("The {what} is being deleted"));
            done.run(());
        });
    };
    view! {
        <button type="button" class="btn" on:click=move |_| { typed.set(String::new()); open.set(true); }>"Delete"</button>
        <Modal open title=format!("Delete this {what}?")>
            <form class="form" on:submit=submit>
                <p>{loses}" This cannot be undone."</p>
                <Field id="remove-name" label=format!("Type {} to confirm", name.get()) value=typed required=true/>
                <Submit change open label="Delete" danger=true/>
            </form>
        </Modal>
    }
}
