use leptos::{html, prelude::*};
use wasm_bindgen::JsCast;

use super::{Copy, Icon, Submit, toast_list};
use crate::load::Change;

/// The browser's own dialog: focus, Escape and the rest of the page are its work.
#[component]
pub fn Modal(
    open: RwSignal<bool>,
    #[prop(into)] title: Signal<String>,
    #[prop(optional)] class: &'static str,
    /// Escape does not close it, and nothing but what is in it does.
    #[prop(optional)]
    guarded: bool,
    children: ChildrenFn,
) -> AnyView {
    let node = NodeRef::<html::Dialog>::new();
    Effect::new(move |_| {
        let Some(dialog) = node.get() else { return };
        match (open.get(), dialog.open()) {
            (true, false) => drop(dialog.show_modal()),
            (false, true) => dialog.close(),
            _ => {}
        }
    });
    // Browsers tell of it a moment later, when it may have been opened again.
    let closed = move |_| {
        if node.get_untracked().is_some_and(|dialog| !dialog.open()) {
            open.set(false);
        }
    };
    let inside = move || {
        open.get().then(|| {
            let close = (!guarded).then(|| view! {
                <button type="button" class="btn ghost icon small close" aria-label="Close" on:click=move |_| open.set(false)><Icon name="close"/></button>
            });
            view! {
                <div class="body">
                    <h2>{move || title.get()}</h2>
                    {children()}
                    {toast_list(true)}
                    {close}
                </div>
            }
            .into_any()
        })
    };
    view! {
        <dialog node_ref=node class=format!("dialog {class}") aria-label=move || title.get()
            on:close=closed
            on:cancel=move |event: leptos::ev::Event| if guarded { event.prevent_default() }
            // Browsers let a second Escape through when the first was refused.
            on:keydown=move |event| if guarded && event.key() == "Escape" { event.prevent_default() }>
            {inside}
        </dialog>
    }
    .into_any()
}

/// A dialog that asks, and does what was asked for.
#[component]
pub fn Ask(
    open: RwSignal<bool>,
    #[prop(into)] title: Signal<String>,
    /// The words on the button.
    label: &'static str,
    change: Change,
    submit: Callback<()>,
    #[prop(optional)] danger: bool,
    #[prop(optional)] class: &'static str,
    children: ChildrenFn,
) -> AnyView {
    Effect::new(move |_| {
        if open.get() {
            change.problem.set(None);
        }
    });
    let children = StoredValue::new(children);
    view! {
        <Modal open title class>
            <Sheet change submit label danger open>{children.with_value(|children| children())}</Sheet>
        </Modal>
    }
    .into_any()
}

/// The form in a dialog.
#[component]
pub fn Sheet(
    change: Change,
    submit: Callback<()>,
    label: &'static str,
    open: RwSignal<bool>,
    #[prop(optional)] danger: bool,
    children: Children,
) -> AnyView {
    let send = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        submit.run(());
    };
    view! { <form class="form" on:submit=send>{children()}<Submit change open label danger/></form> }.into_any()
}

/// A secret that is shown once, under the name of what it opens: a stray key or click does not lose it, and leaving
/// without a copy takes a second thought.
#[component]
pub fn Secret(
    secret: RwSignal<Option<(String, String)>>,
    /// What it is called in a file of settings.
    #[prop(default = "LOUPE_API_KEY")]
    variable: &'static str,
    #[prop(default = "It is stored only as a hash and cannot be shown again.")] why: &'static str,
) -> AnyView {
    let (open, kept, doubt) = (
        RwSignal::new(false),
        RwSignal::new(false),
        RwSignal::new(false),
    );
    Effect::new(move |_| {
        if secret.with(Option::is_some) {
            kept.set(false);
            doubt.set(false);
            open.set(true);
        }
    });
    Effect::new(move |_| {
        if !open.get() {
            secret.set(None);
        }
    });
    let text = Signal::derive(move || secret.get().map_or_else(String::new, |(_, key)| key));
    let curl = Signal::derive(move || {
        let origin = window().location().origin().unwrap_or_default();
        format!(
            "curl -sS {origin}/v1/me -H 'Authorization: Bearer {}'",
            text.get()
        )
    });
    let save = move |_| {
        if let Some((name, key)) = secret.get_untracked() {
            let line = format!("{variable}={key}\n");
            download(&format!("{name}.env"), "text/plain", &line);
            kept.set(true);
        }
    };
    let leave = move |_| match kept.get_untracked() || doubt.get_untracked() {
        true => open.set(false),
        false => doubt.set(true),
    };
    view! {
        <Modal open title="Copy this secret now" guarded=true>
            <p>{why}</p>
            <code class="secret" tabindex="0">{move || text.get()}</code>
            <div class="row">
                <Copy text label="Copy" done=kept/>
                <button type="button" class="btn" on:click=save>"Download .env"</button>
                {(variable == "LOUPE_API_KEY").then(|| view! { <Copy text=curl label="Copy as curl" done=kept/> })}
            </div>
            <p role="status" class="muted">{move || match (kept.get(), doubt.get()) {
                (true, _) => "Copied. Keep it where secrets are kept.",
                (_, true) => "It was not copied yet: close all the same?",
                _ => "",
            }}</p>
            <footer><button type="button" class="btn primary" on:click=leave>
                {move || if doubt.get() && !kept.get() { "Close without a copy" } else { "I have stored it" }}
            </button></footer>
        </Modal>
    }
    .into_any()
}

/// Hands a text to the browser as a file.
pub fn download(name: &str, media: &str, text: &str) {
    let encoded = String::from(js_sys::encode_uri_component(text));
    let link = document().create_element("a").ok();
    let Some(link) = link.and_then(|link| link.dyn_into::<web_sys::HtmlElement>().ok()) else {
        return;
    };
    let _ = link.set_attribute("href", &format!("data:{media};charset=utf-8,{encoded}"));
    let _ = link.set_attribute("download", name);
    link.click();
}
