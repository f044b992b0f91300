//! The own account of whoever is signed in: what they are called, and their password. Its pages work without a script.

use axum::{http::StatusCode, response::Response};

use super::{
    Asked, Failed, flow, password,
    session::{self, place},
    store::{self, User},
    views,
};
use crate::{
    error::{ApiError, Result},
    mail,
};

/// Letters of a name.
const NAME: usize = 100;

/// The name that somebody typed; none where nothing is left of it.
pub(super) fn name(typed: &str) -> Option<String> {
    let letters = typed.trim().chars().filter(|letter| !letter.is_control());
    let name: String = letters.take(NAME).collect();
    (!name.is_empty()).then_some(name)
}

async fn signed_in(asked: &Asked<'_>) -> Result<User> {
    let user = session::visitor(asked.app, asked.site, asked.headers).await?;
    user.ok_or_else(session::signed_out)
}

/// The account: its name, its sessions, and the ways to the rest.
pub(super) async fn page(asked: &Asked<'_>) -> Result<Response> {
    let Some(user) = session::visitor(asked.app, asked.site, asked.headers).await? else {
        return Ok(session::redirect(&views::sign_in_for("account", asked)));
    };
    let (db, now) = (asked.app.db(), asked.app.clock().micros());
    let all = store::list_sessions(db, &place(asked.site), &user.user_id, now).await?;
    Ok(views::account(asked, &user, &all))
}

/// Calls the person something else. What a provider says of the name counts no more then.
pub(super) async fn rename(asked: &Asked<'_>) -> Result<Response> {
    let user = signed_in(asked).await?;
    let (place, now, name) = (
        place(asked.site),
        asked.app.clock().micros(),
        name(asked.text("name")),
    );
    let write = asked.app.db().write(move |tx| {
        Box::pin(async move {
            let held = store::hold(tx, &place, &user.user_id).await?;
            let mut held = held.ok_or_else(session::signed_out)?;
            held.profile.is_named = name.is_some();
            held.profile.name = name;
            store::update(tx, &place, &held, now).await?;
            Ok(())
        })
    });
    write.await?;
    Ok(session::redirect(&views::link("account", asked)))
}

/// The page on which a password is changed.
pub(super) async fn password_page(asked: &Asked<'_>) -> Result<Response> {
    let Some(user) = session::visitor(asked.app, asked.site, asked.headers).await? else {
        return Ok(session::redirect(&views::sign_in_for("password", asked)));
    };
    Ok(views::password(asked, &user, StatusCode::OK, None))
}

/// A new password for whoever knows the old one; every other session is over.
pub(super) async fn change_password(asked: &Asked<'_>) -> Result<Response> {
    flow::by_mail(asked)?;
    let (app, user) = (asked.app, signed_in(asked).await?);
    let refused = |status, why: &str| views::password(asked, &user, status, Some(why.to_owned()));
    let Some(old) = user.profile.password.clone() else {
        return Ok(refused(
            StatusCode::CONFLICT,
            "This account has no password yet.",
        ));
    };
    // A browser that was left open is no way to guess what opens other ones.
    let (throttle, app_id) = (&app.hosting.auth.throttle, asked.site.app_id());
    let is_known = session::is_known(asked, &user.email);
    let counted = throttle.begin(app, app_id, &user.email, is_known).await?;
    let typed = |name: &str| asked.form.get(name).map_or("", String::as_str);
    let hashing = &app.passwords.hashing;
    if !hashing.verify(typed("current"), Some(&old)).await? {
        let page = refused(StatusCode::UNAUTHORIZED, "The present password is wrong.");
        let user_id = Some(user.user_id.clone());
        return Ok(Failed::mark(page, user_id, "password_wrong"));
    }
    counted.was_right(app).await?;
    if let Some(fault) = password::fault(typed("password"), &user.email) {
        return Ok(refused(StatusCode::UNPROCESSABLE_ENTITY, &fault));
    }
    let hashed = hashing.hash(typed("password")).await?;
    let changed = keep(asked, &user, &old, hashed).await?;
    let name = &asked.site.hosted.page().meta.title;
    let (subject, text) = flow::changed_mail(name, &asked.site.home);
    mail::send(app, &changed.email, &subject, text);
    session::begin(asked, &changed, &views::link("account", asked)).await
}

/// Keeps the hash of a new password in place of `old`, and ends every session.
async fn keep(asked: &Asked<'_>, user: &User, old: &str, hashed: String) -> Result<User> {
    let (place, now) = (place(asked.site), asked.app.clock().micros());
    let (user_id, old) = (user.user_id.clone(), old.to_owned());
    let write = asked.app.db().write(move |tx| {
        Box::pin(async move {
            let held = store::hold(tx, &place, &user_id).await?;
            let same = |held: &User| held.profile.password.as_ref() == Some(&old);
            let Some(mut held) = held.filter(same) else {
                let message = "Your password was changed at this very moment. Sign in again.";
                return Err(ApiError::conflict("changed_meanwhile", message));
            };
            held.profile.password = Some(hashed);
            store::update(tx, &place, &held, now).await?;
            store::end_sessions(tx, &place, &user_id).await?;
            store::end_tokens(tx, &place, flow::RESET, &user_id).await?;
            Ok(held)
        })
    });
    write.await
}
