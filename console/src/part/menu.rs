//! What a row offers besides the buttons that there is room for.

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
    let at = event.target()?.dyn_into::<web_sys::Element>().ok()?;
    let found = at.closest("[popover]").ok()??;
    found.dyn_into().ok()
}

fn hide(event: &web_sys::Event) {
    if let Some(shown) = menu_of(event) {
        let _ = shown.hide_popover();
    }
}

/// Leads on by the keys that menus have.
fn step(event: &web_sys::KeyboardEvent) {
    let Some(here) = document().active_element() else {
        return;
    };
    let Some(shown) = menu_of(event) else { return };
    let to = match event.key().as_str() {
        "ArrowDown" => here
            .next_element_sibling()
            .or_else(|| shown.first_element_child()),
        "ArrowUp" => here
            .previous_element_sibling()
            .or_else(|| shown.last_element_child()),
        "Home" => shown.first_element_child(),
        "End" => shown.last_element_child(),
        // It goes on from the button.
        "Tab" => return hide(event),
        _ => return,
    };
    event.prevent_default();
    focus(to);
}

fn focus(to: Option<web_sys::Element>) {
    if let Some(to) = to.and_then(|one| one.dyn_into::<web_sys::HtmlElement>().ok()) {
        let _ = to.focus();
    }
}
