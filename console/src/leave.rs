//! What was written and is not saved yet is not lost without a word.

use leptos::{ev, prelude::*};
use serde_json::Value;
use wasm_bindgen::JsCast;

/// Whether the open page has something that is not saved yet,
/// and the address of that page.
#[derive(Clone, Copy, Default)]
pub struct Unsaved(RwSignal<bool>, StoredValue<String>);

impl Unsaved {
    /// Shared by every page. Made before the router, which passes over links that were refused.
    pub fn provide() {
        let unsaved = Self::default();
        provide_context(unsaved);
        let unload = window_event_listener(ev::beforeunload, move |event| {
            if unsaved.0.get_untracked() {
                event.prevent_default();
            }
        });
        let click = window_event_listener(ev::click, move |event| {
            let plain = !(event.ctrl_key() || event.meta_key() || event.shift_key());
            if plain && leads_away(&event) && !unsaved.may_leave() {
                event.prevent_default();
            }
        });
        // The address has changed by then: whoever stays is led forward to where the page is.
        let back = window_event_listener(ev::popstate, move |event| {
            let away = unsaved.0.get_untracked() && here() != unsaved.1.get_value();
            if away && !unsaved.may_leave() {
                event.stop_immediate_propagation();
                let _ = window().history().and_then(|history| history.forward());
            }
        });
        on_cleanup(move || {
            unload.remove();
            click.remove();
            back.remove();
        });
    }

    /// Asks before it is lost. What may be lost asks no more.
    pub fn may_leave(self) -> bool {
        if !self.0.get_untracked() {
            return true;
        }
        let question = "What you wrote here is not saved. Leave the page and lose it?";
        let leaves = window().confirm_with_message(question).unwrap_or(true);
        if leaves {
            self.saved();
        }
        leaves
    }

    /// Whether something would be lost now.
    pub fn any(self) -> bool {
        self.0.get_untracked()
    }

    /// Nothing is lost any more.
    pub fn saved(self) {
        self.0.set(false);
    }
}

fn here() -> String {
    window().location().pathname().unwrap_or_default()
}

/// Whether a click is on a link to another page, in this tab.
fn leads_away(event: &ev::MouseEvent) -> bool {
    let Some(at) = event
        .target()
        .and_then(|at| at.dyn_into::<web_sys::Element>().ok())
    else {
        return false;
    };
    let link = at.closest("a[href]").ok().flatten();
    let Some(link) =
        link.filter(|link| !link.has_attribute("target") && !link.has_attribute("download"))
    else {
        return false;
    };
    let href = link.get_attribute("href").unwrap_or_default();
    let to = href.split(['?', '#']).next().unwrap_or_default();
    !to.is_empty() && to != here()
}

/// Watches what is being written: it is unsaved once it is not what it was before anybody touched the page. What a page
/// fills in by itself as it comes is nobody's writing.
pub fn watch(now: impl Fn() -> Value + 'static) -> Unsaved {
    let unsaved: Unsaved = expect_context();
    unsaved.1.set_value(here());
    let touched = StoredValue::new(false);
    let touch = move || {
        let _ = touched.try_set_value(true);
    };
    let all = [
        window_event_listener(ev::keydown, move |_| touch()),
        window_event_listener(ev::pointerdown, move |_| touch()),
        // Before the field itself tells what is in it: it is looked at at once.
        window_event_listener(ev::beforeinput, move |_| touch()),
    ];
    on_cleanup(move || {
        all.into_iter().for_each(|one| one.remove());
        unsaved.saved();
    });
    Effect::new(move |first: Option<Value>| {
        let now = now();
        let first = first.filter(|_| touched.get_value());
        let first = first.unwrap_or_else(|| now.clone());
        unsaved.0.set(now != first);
        first
    });
    unsaved
}
