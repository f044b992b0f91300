//! What the pages of `/_auth` have of passkeys. Browsers ask for them by a script only: until it runs, its buttons are hidden.

use super::page::{dated, escape, hidden};

/// What a page does with passkeys.
#[derive(Debug, Clone, Default)]
pub enum Passkeys {
    /// Nothing.
    #[default]
    None,
    /// Signs in with one.
    SignIn,
    /// Shows those of a person.
    Own {
        /// The passkeys.
        known: Vec<Passkey>,
        /// Whether one more may be added.
        may_add: bool,
    },
}

/// A passkey of a person.
#[derive(Debug, Clone)]
pub struct Passkey {
    /// Its name in the form.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// A line below it.
    pub about: String,
}

/// What the script fills in of what a device answers.
const SIGNED: [&str; 5] = [
    "credential",
    "client_data",
    "authenticator_data",
    "signature",
    "user_handle",
];
const MADE: [&str; 2] = ["client_data", "attestation"];

/// What went wrong on the way to a device.
const PROBLEM: &str = r#"<p class="error" role="alert" hidden></p>"#;

pub(super) fn html(passkeys: &Passkeys, return_to: &str) -> String {
    let back = hidden("return_to", return_to);
    match passkeys {
        Passkeys::None => String::new(),
        Passkeys::SignIn => {
            let fields: String = SIGNED.map(|name| hidden(name, "")).concat();
            format!(
                r#"<form method="post" action="/_auth/passkeys/sign-in" data-passkey="sign-in" hidden>{fields}{back}<button class="other">Sign in with a passkey</button>{PROBLEM}</form>"#
            )
        }
        Passkeys::Own { known, may_add } => {
            let add = if *may_add { add(&back) } else { String::new() };
            format!("{}{add}", list(known, &back))
        }
    }
}

fn add(back: &str) -> String {
    let fields: String = MADE.map(|name| hidden(name, "")).concat();
    format!(
        r#"<form method="post" action="/_auth/passkeys/add" data-passkey="add" hidden>{fields}{back}<label for="name">Name of a new one (may stay empty)</label><input id="name" name="name" autocomplete="off" maxlength="60"><button>Add a passkey</button>{PROBLEM}</form><p data-without>To add one takes a browser that has passkeys, JavaScript, and an address with https.</p>"#
    )
}

fn list(known: &[Passkey], back: &str) -> String {
    if known.is_empty() {
        return "<p>You have none here.</p>".to_owned();
    }
    let item = |one: &Passkey| {
        let (name, about) = (escape(&one.name), dated(&one.about));
        let id = hidden("credential", &one.id);
        format!(
            r#"<li><div>{name}<small>{about}</small></div><form method="post" action="/_auth/passkeys/remove">{id}{back}<button class="other" aria-label="Remove {name}">Remove</button></form></li>"#
        )
    };
    let items: String = known.iter().map(item).collect();
    format!(r#"<ul class="keys">{items}</ul>"#)
}
