//! What keys lead through: what a row offers besides the buttons that there is room for, and tabs.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::rows::Act;

/// A button that opens a menu of what else can be done. The browser shows it above everything, and closes it at Escape and
/// at a click elsewhere; arrows lead through it.
pub fn menu(id: &str, name: &str, acts: Vec<Act>) -> AnyView {
    let (own, said) = (format!("more-{id}"), format!("More for {name}"));
    let open = RwSignal::new(false);
    let items = acts.into_iter().map(|Act(label, on)| {
        // The button has the focus again before a dialog opens, which gives it back when it closes.
        view! { <button type="button" role="menuitem" tabindex="-1" on:click=move |event| { hide(&event); on(); }>{label}</button> }
            .into_any()
    });
    let items = items.collect::<Vec<_>>();
    let toggled = move |event: leptos::ev::Event| {
        let Some(shown) = menu_of(&event) else { return };
        let is_open = shown.matches(":popover-open").unwrap_or(false);
        // The row may be gone by now.
        let _ = open.try_set(is_open);
        if is_open {
            focus(shown.first_element_child());
        }
    };
    view! {
        <span class="with-menu">
            <button type="button" class="btn small" aria-label=said.clone() aria-haspopup="menu" aria-expanded=move || open.get().to_string()
                popovertarget=own.clone()>"More"</button>
            <div class="menu" id=own popover="auto" role="menu" aria-label=said on:toggle=toggled on:keydown=move |event| step(&event)>{items}</div>
        </span>
    }
    .into_any()
}

/// The menu that something happened in.
fn menu_of(event: &web_sys::Event) -> Option<web_sys::HtmlElement> {
    around(event, "[popover]")?.dyn_into().ok()
}

/// What something happened in.
fn around(event: &web_sys::Event, what: &str) -> Option<web_sys::Element> {
    let at = event.target()?.dyn_into::<web_sys::Element>().ok()?;
    at.closest(what).ok()?
}

fn hide(event: &web_sys::Event) {
    if let Some(shown) = menu_of(event) {
        let _ = shown.hide_popover();
    }
}

/// Leads on by the keys that menus have.
fn step(event: &web_sys::KeyboardEvent) {
    match event.key().as_str() {
        // It goes on from the button.
        "Tab" => hide(event),
        _ => walk(event, "[popover]", ["ArrowUp", "ArrowDown"]),
    }
}

/// Leads from one of a row to the one before or after it by these keys, and to the first and the last.
fn walk(event: &web_sys::KeyboardEvent, row: &str, [back, on]: [&str; 2]) {
    let (Some(here), Some(row)) = (document().active_element(), around(event, row)) else {
        return;
    };
    // With another key beside them they are the browser's.
    if event.alt_key() || event.ctrl_key() || event.meta_key() {
        return;
    }
    let to = match event.key().as_str() {
        key if key == on => here
            .next_element_sibling()
            .or_else(|| row.first_element_child()),
        key if key == back => here
            .previous_element_sibling()
            .or_else(|| row.last_element_child()),
        "Home" => row.first_element_child(),
        "End" => row.last_element_child(),
        _ => return,
    };
    event.prevent_default();
    focus(to);
}

/// Tabs over the panel of that id, one of them shown: arrows lead through them, and what has the focus is shown when it is
/// pressed, for a panel may have to be asked for.
pub fn tab_list(
    label: &'static str,
    panel: &'static str,
    all: &'static [(&'static str, &'static str)],
    tab: RwSignal<&'static str>,
    show: Callback<&'static str>,
) -> AnyView {
    let all = all.iter().map(|&(name, label)| {
        let chosen = move || tab.get() == name;
        view! {
            <button type="button" role="tab" id=format!("{panel}-{name}") aria-controls=panel aria-selected=move || chosen().to_string()
                tabindex=move || if chosen() { "0" } else { "-1" } on:click=move |_| show.run(name)>{label}</button>
        }
        .into_any()
    });
    view! {
        <div class="tabs" role="tablist" aria-label=label on:keydown=move |event| walk(&event, "[role=tablist]", ["ArrowLeft", "ArrowRight"])>
            {all.collect::<Vec<_>>()}
        </div>
    }
    .into_any()
}

fn focus(to: Option<web_sys::Element>) {
    if let Some(to) = to.and_then(|one| one.dyn_into::<web_sys::HtmlElement>().ok()) {
        let _ = to.focus();
    }
}
