//! E-mail and password: signing in and up, links in mails, forgotten passwords. Known and unknown addresses get the same
//! answers, after the same work.

use axum::{
    http::{StatusCode, header},
    response::Response,
};
use loupe_wire::Object;
use serde::{Deserialize, Serialize};

use super::{
    Asked, Failed, account,
    arriving::{Arriving, is_closed},
    hash, password, provider,
    requests::{address, cookie},
    session::{self, Cookie, place},
    store::{self, NewToken, Profile, User},
    views,
};
use crate::{
    db::Tx,
    error::{ApiError, Result},
    id, mail,
    password::hashing::is_outdated,
};

/// How long a link in a mail opens something.
const LINK: i64 = 30 * 60 * 1_000_000;

const SIGN_UP: &str = "sign-up";
/// What a link does that changes a password.
pub(super) const RESET: &str = "reset";
/// A link that made an account, for as long as somebody may follow it once more.
const DONE: &str = "signed-up";

/// What a link says that makes an account.
#[derive(Debug, Serialize, Deserialize)]
struct Wanted {
    email: String,
    name: String,
    password: String,
    /// Hash of the cookie of the browser that asked.
    browser: String,
    return_to: String,
}

/// What a link says that changes a password.
#[derive(Debug, Serialize, Deserialize)]
struct Forgotten {
    email: String,
    return_to: String,
}

const WRONG: &str = "This e-mail or password is wrong.";
const OVER: &str = "This link was used already, or is too old. Ask for a new one.";

/// Whether the app has passwords.
pub(super) fn by_mail(asked: &Asked<'_>) -> Result<()> {
    if provider::ways(asked.app, asked.site.hosted.auth_config.as_ref()).by_mail {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "provider_not_allowed",
        "This app is not signed in to with a password.",
    ))
}

pub(super) async fn sign_in(asked: &Asked<'_>) -> Result<Response> {
    by_mail(asked)?;
    let known = &asked.app.hosting.auth;
    let wrong = |user_id, code| {
        let page = views::sign_in(asked, StatusCode::UNAUTHORIZED, Some(WRONG.into()));
        Failed::mark(page, user_id, code)
    };
    let Some(email) = address(asked.text("email")) else {
        known.throttle.address(asked.app).await?;
        return Ok(wrong(None, "user_unknown"));
    };
    let is_known = session::is_known(asked, &email);
    let app_id = asked.site.app_id();
    let counted = known
        .throttle
        .begin(asked.app, app_id, &email, is_known)
        .await?;
    let user = store::by_email(asked.app.db(), &place(asked.site), &email).await?;
    let kept = user
        .as_ref()
        .and_then(|user| user.profile.password.as_deref());
    // As it was typed: blanks at its ends belong to it.
    let typed = asked.form.get("password").map_or("", String::as_str);
    let right = asked.app.passwords.hashing.verify(typed, kept).await?;
    match user {
        Some(user) if right => {
            counted.was_right(asked.app).await?;
            let user = renew_hash(asked, user, typed).await?;
            session::begin(asked, &user, &asked.return_to()).await
        }
        Some(user) => Ok(wrong(Some(user.user_id), "password_wrong")),
        None => Ok(wrong(None, "user_unknown")),
    }
}

/// Whoever comes with a password whose hash is weaker than those of today gets one of today. The password is the same: no
/// session is over.
async fn renew_hash(asked: &Asked<'_>, user: User, typed: &str) -> Result<User> {
    let (app, weak) = (asked.app, user.profile.password.clone());
    if !weak.as_deref().is_some_and(is_outdated) {
        return Ok(user);
    }
    // Where too many wait, the next time is soon enough.
    let Ok(hashed) = app.passwords.hashing.hash(typed).await else {
        return Ok(user);
    };
    let (place, now) = (place(asked.site), app.clock().micros());
    let user_id = user.user_id.clone();
    let renewed = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let held = store::hold(tx, &place, &user_id).await?;
                // A password that was changed meanwhile stays.
                let Some(mut held) = held.filter(|held| held.profile.password == weak) else {
                    return Ok(None);
                };
                held.profile.password = Some(hashed);
                store::update(tx, &place, &held, now).await?;
                Ok(Some(held))
            })
        })
        .await?;
    Ok(renewed.unwrap_or(user))
}

pub(super) async fn sign_up(asked: &Asked<'_>) -> Result<Response> {
    by_mail(asked)?;
    let known = &asked.app.hosting.auth;
    known.throttle.address(asked.app).await?;
    let refused = |why: String| {
        Ok(views::sign_up(
            asked,
            StatusCode::UNPROCESSABLE_ENTITY,
            Some(why),
        ))
    };
    let Some(email) = address(asked.text("email")) else {
        return refused("This is no e-mail address.".into());
    };
    let typed = asked.form.get("password").map_or("", String::as_str);
    if let Some(fault) = password::fault(typed, &email) {
        return refused(fault);
    }
    known
        .throttle
        .mail(asked.app, asked.site.app_id(), &email)
        .await?;
    let hashed = asked.app.passwords.hashing.hash(typed).await?;
    let (token, browser) = (id::random_base62(43), id::random_base62(43));
    let wanted = Wanted {
        email: email.clone(),
        name: account::name(asked.text("name")).unwrap_or_default(),
        password: hashed,
        browser: hash(&browser),
        return_to: asked.return_to(),
    };
    let (place, now, token_hash) = (place(asked.site), asked.app.clock().micros(), hash(&token));
    let (address, is_closed) = (email.clone(), is_closed(asked));
    let finds = asked
        .app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let exists = store::by_email_in(tx, &place, &address).await?.is_some();
                let invited = store::invited(tx, &place, &address).await?.is_some();
                let token = NewToken {
                    kind: SIGN_UP,
                    hash: &token_hash,
                    user_id: "",
                    expires_at: now + LINK,
                    data: &wanted,
                };
                store::insert_token(tx, &place, &token).await?;
                Ok(match exists {
                    true => Finds::Account,
                    false if is_closed && !invited => Finds::Closed,
                    false => Finds::Way,
                })
            })
        })
        .await?;
    let name = &asked.site.hosted.page().meta.title;
    let text = sign_up_mail(name, &asked.site.home, &finds, &token);
    mail::send(asked.app, &email, &format!("Your account of {name}"), text);
    let mut response = views::mail_sent(asked, &email);
    let cookie = Cookie::Flow.set(asked.app, &browser);
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response)
}

/// What whoever asks for an account finds.
enum Finds {
    /// A link that makes it.
    Way,
    /// One that is there.
    Account,
    /// That only those have one who were invited.
    Closed,
}

/// What is mailed to whoever asked for an account: the page says the same to all of them.
fn sign_up_mail(name: &str, home: &str, finds: &Finds, token: &str) -> String {
    let asked = format!("Somebody asked for an account of {name} with this address.");
    match finds {
        Finds::Account => format!(
            "{asked} You have one already: sign in, or choose a new password, at\n\n{home}/_auth/sign-in\n\nIf that was not you, nothing has to be done.\n"
        ),
        Finds::Way => format!(
            "{asked} If that was you, confirm it within 30 minutes:\n\n{home}/_auth/verify?token={token}\n\nIf not, nothing has to be done.\n"
        ),
        Finds::Closed => format!(
            "{asked} Only people who were invited have one, and this address was not: ask whoever runs {name} for an invitation.\n\nIf that was not you, nothing has to be done.\n"
        ),
    }
}

/// Whether the account of this link was made, a short time ago.
async fn is_done(asked: &Asked<'_>, token_hash: &str) -> Result<bool> {
    let (db, now) = (asked.app.db(), asked.app.clock().micros());
    let place = place(asked.site);
    let found: Option<Object> = store::find_token(db, &place, DONE, token_hash, now).await?;
    Ok(found.is_some())
}

/// Where a link leads that makes an account.
pub(super) async fn verify_page(asked: &Asked<'_>) -> Result<Response> {
    let sent = asked.query.get("token").map_or("", |token| token.trim());
    Ok(match is_done(asked, &hash(sent)).await? {
        true => views::verified(asked),
        false => views::verify(asked, StatusCode::OK, None),
    })
}

/// Makes the account that a link asks for, in the browser that asked, or for whoever knows the password.
pub(super) async fn verify(asked: &Asked<'_>) -> Result<Response> {
    by_mail(asked)?;
    let (app, known) = (asked.app, &asked.app.hosting.auth);
    known.throttle.address(app).await?;
    let (place, now) = (place(asked.site), app.clock().micros());
    let token_hash = hash(asked.text("token"));
    let over = || {
        let page = views::verify(asked, StatusCode::GONE, Some(OVER.into()));
        Failed::mark(page, None, "link_over")
    };
    let found: Option<Wanted> =
        store::find_token(app.db(), &place, SIGN_UP, &token_hash, now).await?;
    let Some(wanted) = found else {
        return Ok(match is_done(asked, &token_hash).await? {
            true => views::verified(asked),
            false => over(),
        });
    };
    let here = cookie(asked.headers, Cookie::Flow.name(app)).map(hash);
    if here.as_deref() != Some(wanted.browser.as_str()) {
        let typed = asked.form.get("password").map_or("", String::as_str);
        let hashing = &app.passwords.hashing;
        if !hashing.verify(typed, Some(&wanted.password)).await? {
            let why = "Enter the password that you chose for the account.".to_owned();
            let page = views::verify(asked, StatusCode::UNAUTHORIZED, Some(why));
            return Ok(Failed::mark(page, None, "password_wrong"));
        }
    }
    let return_to = wanted.return_to.clone();
    let arriving = Arriving::of(asked);
    let made = app
        .db()
        .write(move |tx| Box::pin(async move { open(tx, &arriving, &token_hash, now).await }))
        .await?;
    match made {
        Some(user) => session::begin(asked, &user, &return_to).await,
        None => Ok(over()),
    }
}

/// Opens the account that a link asks for, once; none where the link is over, the address has an account, or an invitation was
/// taken back.
async fn open(
    tx: &mut Tx,
    arriving: &Arriving,
    token_hash: &str,
    now: i64,
) -> Result<Option<User>> {
    let place = &arriving.place;
    let taken: Option<(String, Wanted)> =
        store::take_token(tx, place, SIGN_UP, token_hash, now).await?;
    let Some((_, wanted)) = taken else {
        return Ok(None);
    };
    // Somebody with this address came meanwhile, or was there all the time.
    if store::by_email_in(tx, place, &wanted.email)
        .await?
        .is_some()
    {
        return Ok(None);
    }
    let profile = Profile {
        name: (!wanted.name.is_empty()).then_some(wanted.name),
        password: Some(wanted.password),
        ..Default::default()
    };
    let made = arriving.admit(tx, Some(wanted.email), profile, now).await?;
    if let Some(user) = &made {
        // Whoever follows the link once more is told what became of it.
        let done = NewToken {
            kind: DONE,
            hash: token_hash,
            user_id: &user.user_id,
            expires_at: now + LINK,
            data: &Object::new(),
        };
        store::insert_token(tx, place, &done).await?;
    }
    Ok(made)
}

pub(super) async fn forgot(asked: &Asked<'_>) -> Result<Response> {
    by_mail(asked)?;
    let known = &asked.app.hosting.auth;
    known.throttle.address(asked.app).await?;
    let Some(email) = address(asked.text("email")) else {
        let why = Some("This is no e-mail address.".to_owned());
        return Ok(views::forgot(asked, StatusCode::UNPROCESSABLE_ENTITY, why));
    };
    known
        .throttle
        .mail(asked.app, asked.site.app_id(), &email)
        .await?;
    let (place, now, token) = (
        place(asked.site),
        asked.app.clock().micros(),
        id::random_base62(43),
    );
    let (token_hash, address) = (hash(&token), email.clone());
    let return_to = asked.return_to();
    let exists = asked
        .app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let user = store::by_email_in(tx, &place, &address).await?;
                let data = Forgotten {
                    email: address,
                    return_to,
                };
                let user_id = user.map(|user| user.user_id);
                let token = NewToken {
                    kind: RESET,
                    hash: &token_hash,
                    user_id: user_id.as_deref().unwrap_or_default(),
                    expires_at: now + LINK,
                    data: &data,
                };
                store::insert_token(tx, &place, &token).await?;
                Ok(user_id.is_some())
            })
        })
        .await?;
    if exists {
        let name = &asked.site.hosted.page().meta.title;
        let text = format!(
            "Somebody asked for a new password of your account of {name}. If that was you, choose it within 30 minutes:\n\n{}/_auth/reset?token={token}\n\nIf not, nothing has to be done.\n",
            asked.site.home
        );
        mail::send(asked.app, &email, &format!("Your password of {name}"), text);
    }
    Ok(views::mail_sent(asked, &email))
}

/// A new password, once, by a link; every session of before is over.
pub(super) async fn reset(asked: &Asked<'_>) -> Result<Response> {
    by_mail(asked)?;
    let (app, known) = (asked.app, &asked.app.hosting.auth);
    known.throttle.address(app).await?;
    let (place, now) = (place(asked.site), app.clock().micros());
    let token_hash = hash(asked.text("token"));
    let over = || {
        let page = views::reset(asked, StatusCode::GONE, Some(OVER.into()));
        Failed::mark(page, None, "link_over")
    };
    let found: Option<Forgotten> =
        store::find_token(app.db(), &place, RESET, &token_hash, now).await?;
    let Some(found) = found else {
        return Ok(over());
    };
    let typed = asked.form.get("password").map_or("", String::as_str);
    if let Some(fault) = password::fault(typed, &found.email) {
        return Ok(views::reset(
            asked,
            StatusCode::UNPROCESSABLE_ENTITY,
            Some(fault),
        ));
    }
    let hashed = app.passwords.hashing.hash(typed).await?;
    let email = found.email.clone();
    let changed = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let known = store::by_email_in(tx, &place, &email).await?;
                let user_id = known.map(|user| user.user_id).unwrap_or_default();
                let held = store::hold(tx, &place, &user_id).await?;
                let taken: Option<(String, Forgotten)> =
                    store::take_token(tx, &place, RESET, &token_hash, now).await?;
                let (Some(mut user), Some(_)) = (held, taken) else {
                    return Ok(None);
                };
                user.profile.password = Some(hashed);
                store::update(tx, &place, &user, now).await?;
                store::end_sessions(tx, &place, &user.user_id).await?;
                store::end_tokens(tx, &place, RESET, &user.user_id).await?;
                Ok(Some(user))
            })
        })
        .await?;
    let Some(user) = changed else {
        return Ok(over());
    };
    let name = &asked.site.hosted.page().meta.title;
    let (subject, text) = changed_mail(name, &asked.site.home);
    mail::send(app, &user.email, &subject, text);
    session::begin(asked, &user, &found.return_to).await
}

/// What is mailed to whoever has another password now: subject and text.
pub(super) fn changed_mail(name: &str, home: &str) -> (String, String) {
    let text = format!(
        "The password of your account of {name} was changed, and every other session is over. If that was not you, ask for a new one at\n\n{home}/_auth/forgot\n"
    );
    (format!("Your password of {name} was changed"), text)
}
