//! The pages of `/_auth`.

use axum::{http::StatusCode, response::Response};
use loupe_hosted::auth::{Field, Page, Passkey, Passkeys, Session};

use super::{
    Asked, arriving,
    passkeys::{self, store},
    provider, sessions, store as people,
};
use crate::v1::apps;

fn email(value: &str) -> Field {
    Field {
        name: "email",
        label: "E-mail",
        kind: "email",
        autocomplete: "username",
        value: value.to_owned(),
        hint: "",
    }
}

fn name(value: &str) -> Field {
    Field {
        name: "name",
        label: "Name (may stay empty)",
        kind: "text",
        autocomplete: "name",
        value: value.to_owned(),
        hint: "",
    }
}

fn old_password() -> Field {
    Field {
        name: "password",
        label: "Password",
        kind: "password",
        autocomplete: "current-password",
        value: String::new(),
        hint: "",
    }
}

fn new_password() -> Field {
    Field {
        autocomplete: "new-password",
        hint: "At least 8 characters. A few words that belong to nothing are good.",
        ..old_password()
    }
}

fn token(asked: &Asked<'_>) -> Field {
    let sent = asked.form.get("token").or_else(|| asked.query.get("token"));
    Field {
        name: "token",
        label: "",
        kind: "hidden",
        autocomplete: "off",
        value: sent.cloned().unwrap_or_default(),
        hint: "",
    }
}

pub(super) fn link(page: &str, asked: &Asked<'_>) -> String {
    link_back(page, &asked.return_to())
}

pub(super) fn link_back(page: &str, return_to: &str) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("return_to", return_to)
        .finish();
    format!("/_auth/{page}?{query}")
}

/// What is said where nobody makes an account who was not invited.
const BY_INVITATION: &str = "Only people who were invited have an account here. Use the address that you were invited with.";

/// What the owner calls the service of the app's own.
fn label<'a>(asked: &'a Asked<'_>) -> Option<&'a str> {
    apps::variable(&asked.site.hosted, apps::check::OIDC_LABEL)
}

/// What is said where no way in that the owner allows is set up.
const NO_WAY: &str = "Nobody can sign in at the moment.";

pub(super) fn sign_in(asked: &Asked<'_>, status: StatusCode, error: Option<String>) -> Response {
    let ways = provider::ways(asked.app, asked.site.hosted.auth_config.as_ref());
    let by_mail = ways.by_mail;
    let has_passkeys = apps::has_passkeys(asked.site.hosted.auth_config.as_ref());
    let email = Field {
        autocomplete: if has_passkeys {
            "username webauthn"
        } else {
            "username"
        },
        ..email(asked.text("email"))
    };
    let is_closed = ways.is_none() && !has_passkeys;
    let page = Page {
        title: "Sign in".into(),
        text: if is_closed {
            NO_WAY.into()
        } else {
            String::new()
        },
        error,
        providers: ways.providers(label(asked)),
        action: by_mail.then_some("/_auth/sign-in"),
        fields: vec![email, old_password()],
        button: "Sign in",
        links: if by_mail {
            vec![
                (link("sign-up", asked), "Make an account"),
                (link("forgot", asked), "Forgot your password?"),
            ]
        } else {
            Vec::new()
        },
        return_to: asked.return_to(),
        passkeys: if has_passkeys {
            Passkeys::SignIn
        } else {
            Passkeys::None
        },
        ..Default::default()
    };
    asked.page(status, &page)
}

/// Where somebody signs in who then goes on to a page of their own.
pub(super) fn sign_in_for(page: &str, asked: &Asked<'_>) -> String {
    link_back("sign-in", &link(page, asked))
}

/// The sessions of whoever is signed in; that of this browser is `own`.
pub(super) fn sessions(asked: &Asked<'_>, all: &[people::Session], own: &str) -> Response {
    let mut links = vec![(asked.return_to(), "Back to the app")];
    if provider::ways(asked.app, asked.site.hosted.auth_config.as_ref()).by_mail {
        links.push((link("forgot", asked), "Choose a new password"));
    }
    let page = Page {
        title: "Sessions".into(),
        text: "Where you are signed in. End what you do not know.".into(),
        sessions: listed(all, own),
        links,
        return_to: asked.return_to(),
        ..Default::default()
    };
    asked.page(StatusCode::OK, &page)
}

/// Sessions as their person sees them.
fn listed(all: &[people::Session], own: &str) -> Vec<Session> {
    let told = |one: &people::Session| {
        let name = match one.browser.as_str() {
            "" => "A browser",
            name => name,
        };
        let is_here = one.token_hash == own;
        let (began, seen) = (passkeys::day(one.created_at), passkeys::day(one.seen_at));
        let way = with(&one.way);
        let about = match is_here {
            true => format!("This browser, signed in {began}{way}"),
            false => format!("Signed in {began}{way}, last seen {seen}"),
        };
        Session {
            id: one.token_hash.clone(),
            name: name.to_owned(),
            about,
        }
    };
    all.iter().map(told).collect()
}

/// The account of whoever is signed in.
pub(super) fn account(asked: &Asked<'_>, user: &people::User, all: &[people::Session]) -> Response {
    let auth = asked.site.hosted.auth_config.as_ref();
    let mut links = vec![(asked.return_to(), "Back to the app")];
    if provider::ways(asked.app, auth).by_mail {
        links.push((link("password", asked), "Password"));
    }
    if apps::has_passkeys(auth) {
        links.push((link("passkeys", asked), "Passkeys"));
    }
    let page = Page {
        title: "Your account".into(),
        text: user.shown_email().to_owned(),
        action: Some("/_auth/account"),
        fields: vec![name(user.profile.name.as_deref().unwrap_or_default())],
        button: "Save",
        sessions: listed(all, &sessions::own(asked)),
        links,
        return_to: asked.return_to(),
        ..Default::default()
    };
    asked.page(StatusCode::OK, &page)
}

/// Where the password of an account is changed.
pub(super) fn password(
    asked: &Asked<'_>,
    user: &people::User,
    status: StatusCode,
    error: Option<String>,
) -> Response {
    let has_one = user.profile.password.is_some();
    let current = Field {
        name: "current",
        label: "Present password",
        ..old_password()
    };
    let new = Field {
        label: "New password",
        ..new_password()
    };
    let mut links = vec![(link("account", asked), "Your account")];
    if user.has_proven() {
        let words = if has_one {
            "Forgot your password?"
        } else {
            "Choose one by mail"
        };
        links.push((link("forgot", asked), words));
    }
    let page = Page {
        title: "Password".into(),
        text: match has_one {
            true => "A new password ends every other session.".into(),
            false => "You sign in without a password.".into(),
        },
        error,
        action: has_one.then_some("/_auth/password"),
        fields: vec![current, new],
        button: "Keep the new password",
        links,
        return_to: asked.return_to(),
        ..Default::default()
    };
    asked.page(status, &page)
}

/// What a session began with, as its person reads of it.
fn with(way: &str) -> &'static str {
    match way {
        "password" => " with the password",
        "passkey" => " with a passkey",
        "google" => " with Google",
        "github" => " with GitHub",
        "oidc" => " with single sign-on",
        _ => "",
    }
}

/// The passkeys of whoever is signed in.
pub(super) fn passkeys(
    asked: &Asked<'_>,
    known: &[store::Passkey],
    is_fresh: bool,
    may_add: bool,
) -> Response {
    let host = passkeys::host(asked.site);
    let mut links = vec![(asked.return_to(), "Back to the app")];
    if !is_fresh {
        let again = sign_in_for("passkeys", asked);
        links.insert(0, (again, "Sign in again to add a passkey"));
    }
    let page = Page {
        title: "Passkeys".into(),
        text: "A passkey signs you in with what unlocks your device, such as a finger, a face or a PIN.".into(),
        passkeys: Passkeys::Own {
            known: known.iter().map(|one| told(one, &host)).collect(),
            may_add,
        },
        links,
        return_to: asked.return_to(),
        ..Default::default()
    };
    asked.page(StatusCode::OK, &page)
}

fn told(one: &store::Passkey, host: &str) -> Passkey {
    let mut about = format!("Added {}", passkeys::day(one.created_at));
    if one.used_at > 0 {
        about.push_str(&format!(", last used {}", passkeys::day(one.used_at)));
    }
    if one.data.host != host {
        about.push_str(&format!(", for {}", one.data.host));
    }
    Passkey {
        id: one.credential_id.clone(),
        name: one.data.name.clone(),
        about,
    }
}

pub(super) fn sign_up(asked: &Asked<'_>, status: StatusCode, error: Option<String>) -> Response {
    let ways = provider::ways(asked.app, asked.site.hosted.auth_config.as_ref());
    let page = Page {
        title: "Make an account".into(),
        text: match ways.is_none() {
            true => NO_WAY.into(),
            false if arriving::is_closed(asked) => BY_INVITATION.into(),
            false => String::new(),
        },
        error,
        providers: ways.providers(label(asked)),
        action: ways.by_mail.then_some("/_auth/sign-up"),
        fields: vec![
            name(asked.text("name")),
            email(asked.text("email")),
            new_password(),
        ],
        button: "Make an account",
        links: vec![(link("sign-in", asked), "I have an account")],
        return_to: asked.return_to(),
        ..Default::default()
    };
    asked.page(status, &page)
}

/// The same words whether there is an account or not.
pub(super) fn mail_sent(asked: &Asked<'_>, email: &str) -> Response {
    let page = Page {
        title: "Look into your mail".into(),
        text: format!("We sent a message to {email}. Follow the link in it within 30 minutes."),
        links: vec![(link("sign-in", asked), "Sign in")],
        ..Default::default()
    };
    asked.page(StatusCode::OK, &page)
}

pub(super) fn forgot(asked: &Asked<'_>, status: StatusCode, error: Option<String>) -> Response {
    let page = Page {
        title: "Forgot your password?".into(),
        text: "We send you a link with which you choose a new one.".into(),
        error,
        action: Some("/_auth/forgot"),
        fields: vec![email(asked.text("email"))],
        button: "Send the link",
        links: vec![(link("sign-in", asked), "Sign in")],
        return_to: asked.return_to(),
        ..Default::default()
    };
    asked.page(status, &page)
}

/// A link that is over leads on to another: a form would be filled in for nothing.
fn is_over(status: StatusCode) -> bool {
    status == StatusCode::GONE
}

pub(super) fn reset(asked: &Asked<'_>, status: StatusCode, error: Option<String>) -> Response {
    let links = match is_over(status) {
        true => vec![
            (link("forgot", asked), "Ask for a new link"),
            (link("sign-in", asked), "Sign in"),
        ],
        false => Vec::new(),
    };
    let page = Page {
        title: "Choose a new password".into(),
        error,
        action: (!is_over(status)).then_some("/_auth/reset"),
        fields: vec![token(asked), new_password()],
        button: "Keep the new password",
        links,
        return_to: asked.return_to(),
        ..Default::default()
    };
    asked.page(status, &page)
}

/// In another browser than the one that asked for the account, the password is asked for: whoever only has the mail did
/// not choose it.
pub(super) fn verify(asked: &Asked<'_>, status: StatusCode, error: Option<String>) -> Response {
    let mut fields = vec![token(asked)];
    let begun_here =
        super::requests::cookie(asked.headers, super::session::Cookie::Flow.name(asked.app));
    if begun_here.is_none() || error.is_some() {
        fields.push(old_password());
    }
    let links = match is_over(status) {
        true => vec![
            (link("sign-up", asked), "Make an account"),
            (link("sign-in", asked), "Sign in"),
        ],
        false => Vec::new(),
    };
    let page = Page {
        title: "Confirm your address".into(),
        text: "If you did not ask for an account, close this page: nothing happens.".into(),
        error,
        links,
        action: (!is_over(status)).then_some("/_auth/verify"),
        fields,
        button: "Confirm and sign in",
        return_to: asked.return_to(),
        ..Default::default()
    };
    asked.page(status, &page)
}

/// Whether what is posted there is a form that can be shown again from what was sent.
pub(super) fn has_form(path: &str) -> bool {
    matches!(
        path,
        "/sign-in" | "/sign-up" | "/forgot" | "/reset" | "/verify"
    )
}

/// That form once more, as it was filled in but for passwords.
pub(super) fn again(asked: &Asked<'_>, path: &str, status: StatusCode, error: String) -> Response {
    let error = Some(error);
    match path {
        "/sign-up" => sign_up(asked, status, error),
        "/forgot" => forgot(asked, status, error),
        "/reset" => reset(asked, status, error),
        "/verify" => verify(asked, status, error),
        _ => sign_in(asked, status, error),
    }
}

/// What whoever follows the link of an account once more is told.
pub(super) fn verified(asked: &Asked<'_>) -> Response {
    let page = Page {
        title: "Your address is confirmed already".into(),
        text: "The account is there: sign in.".into(),
        links: vec![
            (link("sign-in", asked), "Sign in"),
            ("/".into(), "To the app"),
        ],
        ..Default::default()
    };
    asked.page(StatusCode::OK, &page)
}

/// Where a popup ends.
pub(super) fn done(asked: &Asked<'_>) -> Response {
    let page = Page {
        title: "You are signed in".into(),
        text: "You can close this window.".into(),
        links: vec![("/".into(), "To the app")],
        done: true,
        ..Default::default()
    };
    asked.page(StatusCode::OK, &page)
}
