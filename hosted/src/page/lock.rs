//! Pages with a password: what a visitor sees who has not given it, and the way in.

use std::sync::Arc;

use axum::Form;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use leptos::prelude::*;
use serde::Deserialize;

use super::query::encode;
use super::reply::{self, Cache};
use super::shell::{Document, stating};
use super::{is_plausible, nothing, trouble};
use crate::{Host, HostError, Unlock};

/// The longest password that is looked at.
const LONGEST: usize = 1024;

/// Why the form is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Nobody has tried yet.
    First,
    /// What was tried is not the password.
    Wrong,
    /// Too much was tried: the seconds until another try.
    TooOften(u64),
}

/// What was filled in.
#[derive(Debug, Deserialize)]
pub struct Attempt {
    #[serde(default)]
    password: String,
    /// Where the visitor was going.
    #[serde(default)]
    to: String,
}

/// The form, and nothing of what is behind it.
pub fn locked(host: &dyn Host, public_name: &str, to: &str, asked: Asked) -> Response {
    let status = match asked {
        Asked::TooOften(_) => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::FORBIDDEN,
    };
    let document = form(host, public_name, to, asked);
    reply::page(status, document, Cache::Never, &HeaderMap::new())
}

fn form(host: &dyn Host, public_name: &str, to: &str, asked: Asked) -> Document {
    let action = format!("/r/{}/unlock", encode(public_name));
    let to = to.to_owned();
    let fault = match asked {
        Asked::First => None,
        Asked::Wrong => Some("This is not the password of this page.".to_owned()),
        Asked::TooOften(wait) => Some(format!(
            "Too many wrong passwords. Wait {wait} s, then try again."
        )),
    };
    stating(host, "This page is protected", move || {
        let described = fault.as_ref().map(|_| "password-note");
        let fault = fault.map(|text| {
            view! { <p class="note bad" id="password-note" role="alert">{text}</p> }
        });
        view! {
            <p>"A password is needed to see it."</p>
            <form class="unlock" method="post" action=action>
                <label for="password">"Password"</label>
                <input class="entry" type="password" id="password" name="password" required=true maxlength=LONGEST.to_string()
                    autocomplete="current-password" autofocus=true aria-describedby=described/>
                <input type="hidden" name="to" value=to/>
                <button class="button primary" type="submit">"Open"</button>
                {fault}
            </form>
        }
        .into_any()
    })
}

/// Tries a password; a right one leads to where the visitor was going.
pub async fn unlock(
    State(host): State<Arc<dyn Host>>,
    Path(public_name): Path<String>,
    Form(attempt): Form<Attempt>,
) -> Response {
    if !is_plausible(&public_name) {
        return nothing(&*host);
    }
    let home = format!("/r/{}", encode(&public_name));
    let to = if leads_into(&attempt.to, &home) {
        attempt.to
    } else {
        home
    };
    if attempt.password.is_empty() || attempt.password.len() > LONGEST {
        return locked(&*host, &public_name, &to, Asked::Wrong);
    }
    match host.unlock(&public_name, &attempt.password).await {
        Ok(Unlock::Cookie(cookie)) => enter(&to, Some(&cookie)),
        Ok(Unlock::Open) => enter(&to, None),
        Ok(Unlock::Wrong) => locked(&*host, &public_name, &to, Asked::Wrong),
        Ok(Unlock::Nothing) => nothing(&*host),
        Err(HostError::Busy { retry_after_s }) => {
            let mut reply = locked(&*host, &public_name, &to, Asked::TooOften(retry_after_s));
            reply
                .headers_mut()
                .insert(header::RETRY_AFTER, retry_after_s.into());
            reply
        }
        Err(error) => {
            tracing::error!(%error, public_name, "a password could not be tried");
            trouble(&*host)
        }
    }
}

/// Whether the address is one of this page: nobody is sent elsewhere from here.
fn leads_into(address: &str, home: &str) -> bool {
    let rest = address.strip_prefix(home);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        && address.len() <= 4096
        && !address.contains("..")
        && address
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

fn enter(to: &str, cookie: Option<&str>) -> Response {
    let mut reply = StatusCode::SEE_OTHER.into_response();
    let headers = reply.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, text) in [(header::LOCATION, Some(to)), (header::SET_COOKIE, cookie)] {
        // Both are of characters that headers hold: the address was looked at, the cookie is the server's.
        if let Some(Ok(value)) = text.map(HeaderValue::from_str) {
            headers.insert(name, value);
        }
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::leads_into;

    #[test]
    fn a_visitor_stays_on_the_page() {
        for good in [
            "/r/books",
            "/r/books?query=sea&page=2",
            "/r/books/item/doc_1",
        ] {
            assert!(leads_into(good, "/r/books"), "{good}");
        }
        for bad in [
            "",
            "/",
            "/r/bookshop",
            "//evil.example",
            "https://evil.example/r/books",
            "/r/books/../../x",
            "/r/books\\x",
            "/r/books\r\nX: y",
        ] {
            assert!(!leads_into(bad, "/r/books"), "{bad}");
        }
    }
}
