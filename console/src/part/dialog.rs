use leptos::{html, prelude::*};

use super::{Copy, Icon};

/// The browser's own dialog: focus, Escape and the rest of the page are its work.
#[component]
pub fn Modal(
    open: RwSignal<bool>,
    #[prop(into)] title: Signal<String>,
    #[prop(optional, into)] class: String,
    /// Escape does not close it.
    #[prop(optional)]
    guarded: bool,
    children: ChildrenFn,
) -> impl IntoView {
    let node = NodeRef::<html::Dialog>::new();
    Effect::new(move |_| {
        let Some(dialog) = node.get() else { return };
        match (open.get(), dialog.open()) {
            (true, false) => drop(dialog.show_modal()),
            (false, true) => dialog.close(),
            _ => {}
        }
    });
    let children = StoredValue::new(children);
    view! {
        <dialog node_ref=node class=format!("dialog {class}") aria-label=move || title.get()
            on:close=move |_| open.set(false)
            on:cancel=move |event: leptos::ev::Event| if guarded { event.prevent_default() }>
            <Show when=move || open.get()>
                <div class="body">
                    <header>
                        <h2>{move || title.get()}</h2>
                        <Show when=move || !guarded>
                            <button type="button" class="btn ghost icon small" aria-label="Close" on:click=move |_| open.set(false)>
                                <Icon name="close"/>
                            </button>
                        </Show>
                    </header>
                    {children.with_value(|children| children())}
                </div>
            </Show>
        </dialog>
    }
}

/// A secret that is shown once: the dialog cannot be lost by a stray key or click.
#[component]
pub fn Secret(secret: RwSignal<Option<String>>) -> impl IntoView {
    let open = RwSignal::new(false);
    Effect::new(move |_| {
        if secret.with(Option::is_some) {
            open.set(true);
        }
    });
    Effect::new(move |_| {
        if !open.get() {
            secret.set(None);
        }
    });
    let text = Signal::derive(move || secret.get().unwrap_or_default());
    view! {
        <Modal open title="Copy this secret now" guarded=true>
            <p>"It is stored only as a hash and cannot be shown again."</p>
            <code class="secret">{move || text.get()}</code>
            <footer>
                <Copy text=text label="Copy"/>
                <button type="button" class="btn primary" on:click=move |_| open.set(false)>"I have stored it"</button>
            </footer>
        </Modal>
    }
}
