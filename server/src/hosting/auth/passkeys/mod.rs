//! Passkeys: people sign in with what unlocks their device. A passkey is of one host and one app, is added by whoever signed in
//! a short time ago, and proves with each use that somebody was there and unlocked the device.

mod cbor;
mod proof;
pub(super) mod store;

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use loupe_wire::{AuditAction, ResourceType};
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::store::{About, Passkey};
use super::{
    Asked, Failed, hash,
    requests::cookie,
    session::{self, Cookie, place},
    store::{self as people, NewToken, Place, User},
    views,
};
use crate::{
    app::App,
    clock,
    db::{self, Tx},
    error::{ApiError, Result},
    hosting::Site,
    id,
    json::Json,
    mail,
    v1::{
        apps,
        audit::{self, Change},
    },
};

/// How long a device may take to answer.
const CHALLENGE: i64 = 5 * 60 * 1_000_000;

/// Passkeys of one person.
const MOST: usize = 10;

/// Whoever signed in longer ago than this signs in again to add one: a browser that was left open adds none.
const FRESH: i64 = 3_600 * 1_000_000;

/// Letters of a name.
const NAME: usize = 60;

/// What a challenge is for.
const SIGN_IN: &str = "passkey";
const ADD: &str = "passkey-new";

const WRONG: &str =
    "This passkey does not open an account here. Sign in another way, or try another passkey.";

/// The browser that a challenge was given to: the hash of a cookie.
#[derive(Debug, Serialize, Deserialize)]
struct Given {
    browser: String,
}

/// Somebody who is signed in.
struct Session {
    token_hash: String,
    is_fresh: bool,
    user: User,
}

fn allowed(asked: &Asked<'_>) -> Result<()> {
    if apps::has_passkeys(asked.site.hosted.auth_config.as_ref()) {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "provider_not_allowed",
        "This app is not signed in to with passkeys.",
    ))
}

/// The host that passkeys made here are of.
pub(super) fn host(site: &Site) -> String {
    let origin = url::Url::parse(&site.origin).ok();
    let host = origin.as_ref().and_then(url::Url::host_str);
    host.unwrap_or_default().to_owned()
}

/// Bytes that were sent in base64url.
fn bytes(asked: &Asked<'_>, name: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(asked.text(name)).unwrap_or_default()
}

/// The id of the passkey that is meant; empty, as no passkey's is, where what was sent is none.
fn credential(asked: &Asked<'_>) -> String {
    URL_SAFE_NO_PAD.encode(bytes(asked, "credential"))
}

async fn session_of(asked: &Asked<'_>) -> Result<Option<Session>> {
    let app = asked.app;
    let Some(token) = cookie(asked.headers, Cookie::Session.name(app)) else {
        return Ok(None);
    };
    let (token_hash, now) = (hash(token), app.clock().micros());
    let found = people::find_session(app.db(), &place(asked.site), &token_hash, now).await?;
    Ok(found.map(|open| Session {
        token_hash,
        is_fresh: now - open.began_at <= FRESH,
        user: open.user,
    }))
}

/// Who is signed in, for what nobody else may do.
async fn signed_in(asked: &Asked<'_>) -> Result<Session> {
    let found = session_of(asked).await?;
    found.ok_or_else(|| ApiError::unauthenticated("sign_in_required", "Sign in to this app first."))
}

fn fresh(session: &Session) -> Result<()> {
    if session.is_fresh {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "sign_in_again",
        "You signed in a while ago. Sign in again to add a passkey.",
    ))
}

/// What a browser asks its device for.
pub(super) async fn options(asked: &Asked<'_>) -> Result<Response> {
    allowed(asked)?;
    asked.app.hosting.auth.throttle.challenge(asked.app)?;
    match asked.text("for") {
        "add" => options_to_add(asked).await,
        _ => options_to_sign_in(asked).await,
    }
}

/// Nothing in them depends on who it is: nobody has said that yet.
async fn options_to_sign_in(asked: &Asked<'_>) -> Result<Response> {
    let app = asked.app;
    // Two tabs of a browser are one browser.
    let known = cookie(asked.headers, Cookie::Passkey.name(app))
        .filter(|one| one.len() == 43 && one.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let browser = known.map_or_else(|| id::random_base62(43), ToOwned::to_owned);
    let challenge = give(asked, SIGN_IN, "", hash(&browser)).await?;
    let told = json!({
        "challenge": challenge,
        "rpId": host(asked.site),
        "userVerification": "required",
        "timeout": CHALLENGE / 1_000,
    });
    let mut response = Json(told).into_response();
    let cookie = Cookie::Passkey.set(app, &browser);
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response)
}

async fn options_to_add(asked: &Asked<'_>) -> Result<Response> {
    let session = signed_in(asked).await?;
    fresh(&session)?;
    let user = &session.user;
    let known = store::list(asked.app.db(), &place(asked.site), &user.user_id).await?;
    few(&known)?;
    let challenge = give(asked, ADD, &user.user_id, session.token_hash).await?;
    let known = known.iter().map(|one| &one.credential_id);
    let known: Vec<_> = known
        .map(|id| json!({"type": "public-key", "id": id}))
        .collect();
    let kinds = proof::ALGORITHMS.map(|kind| json!({"type": "public-key", "alg": kind}));
    Ok(Json(json!({
        "challenge": challenge,
        "rp": {"id": host(asked.site), "name": asked.site.hosted.page().meta.title},
        "user": {
            "id": URL_SAFE_NO_PAD.encode(&user.user_id),
            "name": user.shown_email(),
            "displayName": user.profile.name.as_deref().unwrap_or(user.shown_email()),
        },
        "pubKeyCredParams": kinds,
        "excludeCredentials": known,
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": true,
            "userVerification": "required",
        },
        "attestation": "none",
        "timeout": CHALLENGE / 1_000,
    }))
    .into_response())
}

fn few(known: &[Passkey]) -> Result<()> {
    if known.len() < MOST {
        return Ok(());
    }
    let message = format!("There are {MOST} passkeys already: remove one of them first.");
    Err(ApiError::conflict("too_many_passkeys", message))
}

/// A new challenge for a browser.
async fn give(
    asked: &Asked<'_>,
    kind: &'static str,
    user_id: &str,
    browser: String,
) -> Result<String> {
    let challenge = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
    let (place, now) = (place(asked.site), asked.app.clock().micros());
    let (token_hash, user_id) = (hash(&challenge), user_id.to_owned());
    let write = asked.app.db().write(move |tx| {
        Box::pin(async move {
            let token = NewToken {
                kind,
                hash: &token_hash,
                user_id: &user_id,
                expires_at: now + CHALLENGE,
                data: &Given { browser },
            };
            people::insert_token(tx, &place, &token).await
        })
    });
    write.await?;
    Ok(challenge)
}

/// Whose challenge this is, if this browser was given it; it is over then, whatever comes of it.
async fn take(
    asked: &Asked<'_>,
    kind: &'static str,
    challenge: &str,
    browser: Option<String>,
) -> Result<Option<String>> {
    let (place, now) = (place(asked.site), asked.app.clock().micros());
    let token_hash = hash(challenge);
    let taken: Option<(String, Given)> = asked
        .app
        .db()
        .write(move |tx| {
            Box::pin(async move { people::take_token(tx, &place, kind, &token_hash, now).await })
        })
        .await?;
    let (Some((user_id, given)), Some(browser)) = (taken, browser) else {
        return Ok(None);
    };
    Ok((given.browser == browser).then_some(user_id))
}

/// Signs in whoever has a passkey. A passkey that is not known is answered as a proof that is none.
pub(super) async fn sign_in(asked: &Asked<'_>) -> Result<Response> {
    allowed(asked)?;
    let app = asked.app;
    app.hosting.auth.throttle.address(app).await?;
    let refused = |user_id, code| {
        let page = views::sign_in(asked, StatusCode::UNAUTHORIZED, Some(WRONG.into()));
        Ok(Failed::mark(page, user_id, code))
    };
    let said = bytes(asked, "client_data");
    let challenge = match proof::challenge(&said, "webauthn.get", &asked.site.origin) {
        Ok(challenge) => challenge,
        Err(cause) => return refused(None, told_of(cause)),
    };
    let here = cookie(asked.headers, Cookie::Passkey.name(app)).map(hash);
    if take(asked, SIGN_IN, &challenge, here).await?.is_none() {
        let why = "This took too long, or began in another browser. Try again.".to_owned();
        let page = views::sign_in(asked, StatusCode::UNAUTHORIZED, Some(why));
        return Ok(Failed::mark(page, None, "flow_invalid"));
    }
    let id = credential(asked);
    let Some(passkey) = store::find(app.db(), &place(asked.site), &id).await? else {
        return refused(None, "passkey_unknown");
    };
    let count = match proven(asked, &passkey, &said) {
        Ok(count) => count,
        Err(cause) => return refused(Some(passkey.user_id), told_of(cause)),
    };
    match used(asked, passkey.clone(), count).await? {
        Ok(user) => session::begin(asked, &user, &asked.return_to()).await,
        Err(code) => refused(Some(passkey.user_id), code),
    }
}

/// Tells the server's log why; the audit log has one word for it.
fn told_of(cause: proof::Fault) -> &'static str {
    tracing::info!(cause, "a passkey was refused");
    "passkey_wrong"
}

/// How often the device of the passkey has signed, if this is its proof.
fn proven(
    asked: &Asked<'_>,
    passkey: &Passkey,
    said: &[u8],
) -> std::result::Result<i64, proof::Fault> {
    let host = host(asked.site);
    if passkey.data.host != host {
        return Err("the passkey is of another host");
    }
    if bytes(asked, "user_handle") != passkey.user_id.as_bytes() {
        return Err("the passkey is of somebody else");
    }
    let key = URL_SAFE_NO_PAD.decode(&passkey.data.key);
    let key = key.map_err(|_| "the key that was kept cannot be read")?;
    let (told, signature) = (
        bytes(asked, "authenticator_data"),
        bytes(asked, "signature"),
    );
    let signed = proof::Signed {
        said,
        told: &told,
        signature: &signature,
    };
    proof::signed(&key, &signed, &host)
}

/// Whose the passkey is, or why it opens nothing after all.
async fn used(
    asked: &Asked<'_>,
    passkey: Passkey,
    count: i64,
) -> Result<std::result::Result<User, &'static str>> {
    let (place, now) = (place(asked.site), asked.app.clock().micros());
    asked
        .app
        .db()
        .write(move |tx| Box::pin(async move { used_in(tx, &place, &passkey, count, now).await }))
        .await
}

async fn used_in(
    tx: &mut Tx,
    place: &Place,
    passkey: &Passkey,
    count: i64,
    now: i64,
) -> Result<std::result::Result<User, &'static str>> {
    let user = people::hold(tx, place, &passkey.user_id).await?;
    let found = store::find_in(tx, place, &passkey.credential_id).await?;
    let found = found.filter(|found| found.user_id == passkey.user_id);
    let (Some(user), Some(found)) = (user, found) else {
        return Ok(Err("passkey_unknown"));
    };
    // A device that counts never counts back: what does is a copy of it.
    if (count > 0 || found.sign_count > 0) && count <= found.sign_count {
        tracing::warn!(user_id = %user.user_id, "a passkey counts back: it may be a copy");
        return Ok(Err("passkey_copied"));
    }
    store::update(tx, place, &found, count, now).await?;
    Ok(Ok(user))
}

/// The passkeys of whoever is signed in.
pub(super) async fn page(asked: &Asked<'_>) -> Result<Response> {
    allowed(asked)?;
    let Some(session) = session_of(asked).await? else {
        return Ok(session::redirect(&views::sign_in_for("passkeys", asked)));
    };
    let place = place(asked.site);
    let known = store::list(asked.app.db(), &place, &session.user.user_id).await?;
    let may_add = session.is_fresh && few(&known).is_ok();
    Ok(views::passkeys(asked, &known, session.is_fresh, may_add))
}

/// Keeps what a device made.
pub(super) async fn add(asked: &Asked<'_>) -> Result<Response> {
    allowed(asked)?;
    let app = asked.app;
    app.hosting.auth.throttle.address(app).await?;
    let session = signed_in(asked).await?;
    fresh(&session)?;
    let unusable = |cause: proof::Fault| {
        let message = "This device made no passkey that can be used here. Try another one.";
        ApiError::bad_request(told_of(cause), message)
    };
    let said = bytes(asked, "client_data");
    let challenge = proof::challenge(&said, "webauthn.create", &asked.site.origin);
    let challenge = challenge.map_err(unusable)?;
    let given = take(asked, ADD, &challenge, Some(session.token_hash)).await?;
    if given.as_ref() != Some(&session.user.user_id) {
        let message = "This took too long, or began in another browser. Begin again.";
        return Err(ApiError::bad_request("flow_invalid", message));
    }
    let host = host(asked.site);
    let made = proof::made(&bytes(asked, "attestation"), &host).map_err(unusable)?;
    let now = app.clock().micros();
    let passkey = Passkey {
        credential_id: made.id,
        user_id: session.user.user_id.clone(),
        created_at: now,
        used_at: 0,
        sign_count: made.count,
        data: db::Json(About {
            name: name(asked.text("name"), now),
            host,
            key: URL_SAFE_NO_PAD.encode(&made.key),
        }),
    };
    let (throttle, app_id) = (&app.hosting.auth.throttle, asked.site.app_id());
    let user_id = &session.user.user_id;
    throttle.passkey(app, app_id, user_id).await?;
    keep(asked, passkey, now).await?;
    tell(app, asked.site, &session.user);
    Ok(session::redirect(&views::link("passkeys", asked)))
}

/// What a passkey is called: as its owner says, or by the day.
fn name(sent: &str, now: i64) -> String {
    let sent = sent.chars().filter(|letter| !letter.is_control());
    let sent: String = sent.take(NAME).collect();
    if sent.is_empty() {
        return format!("Passkey of {}", day(now));
    }
    sent
}

/// A day as pages name it.
pub(super) fn day(micros: i64) -> String {
    clock::time(micros).format("%Y-%m-%d").to_string()
}

async fn keep(asked: &Asked<'_>, passkey: Passkey, now: i64) -> Result<()> {
    let place = place(asked.site);
    let person = asked.visitor().person(&passkey.user_id);
    asked
        .app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                if people::hold(tx, &place, &passkey.user_id).await?.is_none() {
                    return Err(ApiError::not_found("user", &passkey.user_id));
                }
                few(&store::list_in(tx, &place, &passkey.user_id).await?)?;
                if !store::insert(tx, &place, &passkey).await? {
                    let message = "This passkey is known here already.";
                    return Err(ApiError::conflict("passkey_taken", message));
                }
                let change = change(&passkey.user_id, &place.app_id, "added");
                audit::record(tx, &person, change, now).await
            })
        })
        .await
}

/// What the audit log tells of a passkey that came or went; nothing that was typed is in it.
fn change<'a>(user_id: &'a str, app_id: &str, what: &str) -> Change<'a> {
    Change {
        action: AuditAction::UserUpdated,
        resource: (ResourceType::User, user_id),
        changes: json!({"passkey": what, "app_id": app_id}),
    }
}

/// Whoever has a new passkey is told so, each time: no mails that others ask for keep this one back.
fn tell(app: &App, site: &Site, user: &User) {
    if !user.has_proven() {
        return;
    }
    let (title, home) = (&site.hosted.page().meta.title, &site.home);
    let text = format!(
        "A passkey was added to your account of {title}: it signs you in from now on. If that was not you, remove it at\n\n{home}/_auth/passkeys\n\nand choose a new password at\n\n{home}/_auth/forgot\n"
    );
    let subject = format!("A passkey of {title} was added");
    mail::send(app, &user.email, &subject, text);
}

/// Removes a passkey of whoever is signed in; sessions that began with it go on.
pub(super) async fn remove(asked: &Asked<'_>) -> Result<Response> {
    allowed(asked)?;
    let user_id = signed_in(asked).await?.user.user_id;
    let (place, now) = (place(asked.site), asked.app.clock().micros());
    let id = credential(asked);
    let person = asked.visitor().person(&user_id);
    asked
        .app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                people::hold(tx, &place, &user_id).await?;
                if !store::delete(tx, &place, &user_id, &id).await? {
                    return Err(ApiError::not_found("passkey", &id));
                }
                let change = change(&user_id, &place.app_id, "removed");
                audit::record(tx, &person, change, now).await
            })
        })
        .await?;
    Ok(session::redirect(&views::link("passkeys", asked)))
}
