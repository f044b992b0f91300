//! Who is signed in, what was chosen. The key lives in this tab's storage and nowhere else.

use gloo_storage::{LocalStorage, SessionStorage, Storage};
use leptos::prelude::*;

use crate::{api::Api, record::Record};

const KEY: &str = "loupe.key";
const NAMESPACE: &str = "loupe.namespace";
const THEME: &str = "loupe.theme";

/// Shared by every page.
#[derive(Clone, Copy)]
pub struct Session {
    key: RwSignal<Option<String>>,
    pub me: RwSignal<Option<Record>>,
    /// Rings when the list of namespaces changed.
    pub namespaces_changed: RwSignal<u32>,
    /// Rings when a notification was read or removed.
    pub notifications_changed: RwSignal<u32>,
    pub theme: RwSignal<String>,
}

impl Session {
    pub fn restore() -> Self {
        // The starter reads the raw word before the first paint, so it is stored raw.
        let theme = LocalStorage::raw()
            .get_item(THEME)
            .ok()
            .flatten()
            .unwrap_or_else(|| "auto".into());
        Self {
            key: RwSignal::new(SessionStorage::get(KEY).ok()),
            me: RwSignal::new(None),
            namespaces_changed: RwSignal::new(0),
            notifications_changed: RwSignal::new(0),
            theme: RwSignal::new(theme),
        }
    }

    pub fn signed_in(&self) -> bool {
        self.key.with(Option::is_some)
    }

    pub fn sign_in(&self, key: String, me: Record) {
        // A refused storage costs the next reload, not this session.
        let _ = SessionStorage::set(KEY, &key);
        // Another key may see other events, or another feed.
        self.me.set(Some(me));
        self.key.set(Some(key));
    }

    pub fn sign_out(&self) {
        SessionStorage::delete(KEY);
        self.me.set(None);
        self.key.set(None);
    }

    /// Calls that belong to the organization.
    pub fn api(&self) -> Api {
        Api {
            key: self.key.get_untracked().unwrap_or_default(),
            namespace: None,
        }
    }

    /// Calls within a namespace.
    pub fn api_in(&self, namespace: String) -> Api {
        Api {
            namespace: Some(namespace),
            ..self.api()
        }
    }

    pub fn set_theme(&self, theme: &str) {
        let _ = LocalStorage::raw().set_item(THEME, theme);
        if let Some(root) = document().document_element() {
            let _ = match theme {
                "auto" => root.remove_attribute("data-theme"),
                chosen => root.set_attribute("data-theme", chosen),
            };
        }
        self.theme.set(theme.to_owned());
    }
}

pub fn use_session() -> Session {
    expect_context()
}

/// The namespace that was open last.
pub fn last_namespace() -> Option<String> {
    SessionStorage::get(NAMESPACE).ok()
}

pub fn remember_namespace(namespace: &str) {
    let _ = SessionStorage::set(NAMESPACE, namespace);
}
