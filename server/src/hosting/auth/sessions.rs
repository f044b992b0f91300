//! The sessions of whoever is signed in, to look at and to end one by one.

use axum::{
    http::{HeaderMap, header},
    response::Response,
};

use super::{
    Asked, hash,
    requests::cookie,
    session::{self, Cookie, place},
    store, views,
};
use crate::{
    error::{ApiError, Result},
    v1::audit,
};

/// The page of them.
pub(super) async fn page(asked: &Asked<'_>) -> Result<Response> {
    let Some(user) = session::visitor(asked.app, asked.site, asked.headers).await? else {
        return Ok(session::redirect(&views::sign_in_for("sessions", asked)));
    };
    let (db, now) = (asked.app.db(), asked.app.clock().micros());
    let all = store::list_sessions(db, &place(asked.site), &user.user_id, now).await?;
    Ok(views::sessions(asked, &all, &own(asked)))
}

/// Ends one of them. Whoever ends the session of this very browser is signed out.
pub(super) async fn end(asked: &Asked<'_>) -> Result<Response> {
    let user = session::visitor(asked.app, asked.site, asked.headers).await?;
    let user = user.ok_or_else(session::signed_out)?;
    let (place, id) = (place(asked.site), asked.text("session").to_owned());
    let (is_own, now) = (id == own(asked), asked.app.clock().micros());
    let person = asked.visitor().person(&user.user_id);
    let write = asked.app.db().write(move |tx| {
        Box::pin(async move {
            store::hold(tx, &place, &user.user_id).await?;
            if !store::end_session_of(tx, &place, &user.user_id, &id).await? {
                return Err(ApiError::not_found("session", &id));
            }
            let at = (place.app_id.as_str(), "POST /_auth/sessions/end");
            audit::signed_out(tx, &person, at, false, now).await
        })
    });
    write.await?;
    if !is_own {
        return Ok(session::redirect(&views::link("sessions", asked)));
    }
    let mut response = session::redirect(&asked.return_to());
    let cookie = Cookie::Session.set(asked.app, "");
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response)
}

/// The id of the session of this browser.
pub(super) fn own(asked: &Asked<'_>) -> String {
    let token = cookie(asked.headers, Cookie::Session.name(asked.app));
    token.map(hash).unwrap_or_default()
}

/// Browsers and systems by what they say of themselves. Who says two of them says the earlier one for itself, and the others for
/// what it takes after.
const BROWSERS: [(&str, &str); 6] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
];
const SYSTEMS: [(&str, &str); 7] = [
    ("iPhone", "an iPhone"),
    ("iPad", "an iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "a Mac"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];

/// The browser that sends a request, as a person knows it; empty where it says nothing that is known. What it says beside that is
/// not kept.
pub(super) fn browser(headers: &HeaderMap) -> String {
    let said = headers.get(header::USER_AGENT);
    let said = said.and_then(|said| said.to_str().ok()).unwrap_or_default();
    let named = |all: &[(&str, &'static str)]| {
        let found = all.iter().find(|(mark, _)| said.contains(mark));
        found.map(|(_, name)| *name)
    };
    match (named(&BROWSERS), named(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_named_as_people_know_them() {
        for (said, name) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox on Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
                "Safari on an iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
                "Chrome on Android",
            ),
            ("curl/8.14.1", ""),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, said.parse().unwrap());
            assert_eq!(browser(&headers), name, "{said}");
        }
        assert_eq!(browser(&HeaderMap::new()), "");
    }
}
