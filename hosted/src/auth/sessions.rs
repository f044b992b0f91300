//! What the pages of `/_auth` show of a person's sessions: each can be ended by itself, without a script.

use super::page::{dated, escape, hidden};

/// A session of a person.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its name in the form.
    pub id: String,
    /// The browser, as far as it is known.
    pub name: String,
    /// A line below it.
    pub about: String,
}

/// The sessions, and a button that ends them all.
pub(super) fn html(all: &[Session], return_to: &str) -> String {
    if all.is_empty() {
        return String::new();
    }
    let back = hidden("return_to", return_to);
    let item = |one: &Session| {
        let (name, about) = (escape(&one.name), escape(&one.about));
        let (id, shown) = (hidden("session", &one.id), dated(&one.about));
        format!(
            r#"<li><div>{name}<small>{shown}</small></div><form method="post" action="/_auth/sessions/end">{id}{back}<button class="other" aria-label="End {name}, {about}">End</button></form></li>"#
        )
    };
    let items: String = all.iter().map(item).collect();
    let everywhere = hidden("everywhere", "true");
    format!(
        r#"<ul class="keys">{items}</ul><form method="post" action="/_auth/sign-out">{everywhere}{back}<button class="other">Sign out everywhere</button></form>"#
    )
}
