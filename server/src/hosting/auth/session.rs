//! Sessions: an opaque cookie of this host alone, new at every sign-in, over after a week without a visit or a month.

use std::{sync::Arc, time::Duration};

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use loupe_wire::AppEndUser;
use moka::sync::Cache;
use serde_json::json;

use super::{
    Asked, hash,
    requests::cookie,
    sessions,
    store::{self, Open, Place, SignedIn, User},
};
use crate::{
    app::App,
    error::{ApiError, Result},
    hosting::{Site, is_secure},
    id,
    json::Json,
    limits::tries,
    v1::{apps, audit},
};

const DAY: i64 = 86_400_000_000;
const IDLE: i64 = 7 * DAY;
const LONGEST: i64 = 30 * DAY;

/// A session that was seen within this time is not written again.
const SEEN: i64 = 3_600_000_000;

/// How long a session that nobody uses stays in memory.
const UNUSED: Duration = Duration::from_secs(300);

/// People that one page may list.
const LISTED: i64 = 1_000;

/// How many there are, listed or not.
const TOTAL: HeaderName = HeaderName::from_static("x-total-count");

/// The cookies of an app. With TLS their names bind them to the host: no neighbour can plant one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cookie {
    Session,
    /// The browser that began something, for ten minutes.
    Flow,
    /// A browser that somebody signed in from before.
    Known,
    /// The browser that is asked for a passkey.
    Passkey,
}

impl Cookie {
    pub fn name(self, app: &App) -> &'static str {
        match (self, is_secure(app)) {
            (Self::Session, true) => "__Host-loupe_app",
            (Self::Session, false) => "loupe_app",
            (Self::Flow, true) => "__Host-loupe_flow",
            (Self::Flow, false) => "loupe_flow",
            (Self::Known, true) => "__Host-loupe_known",
            (Self::Known, false) => "loupe_known",
            (Self::Passkey, true) => "__Host-loupe_passkey",
            (Self::Passkey, false) => "loupe_passkey",
        }
    }

    const fn seconds(self) -> i64 {
        match self {
            Self::Session => 30 * 86_400,
            Self::Flow | Self::Passkey => 3_600,
            Self::Known => 365 * 86_400,
        }
    }

    /// The header that sets it; an empty value takes it away.
    pub fn set(self, app: &App, value: &str) -> HeaderValue {
        let age = if value.is_empty() { 0 } else { self.seconds() };
        let secure = if is_secure(app) { "; Secure" } else { "" };
        let name = self.name(app);
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age}{secure}");
        // Values are base62, hex or base64.
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
    }
}

pub(super) fn place(site: &Site) -> Place {
    Place {
        org_id: site.org_id.clone(),
        app_id: site.app_id().to_owned(),
    }
}

/// Who sends the request; nobody without a session.
///
/// # Errors
/// The database does not answer.
pub async fn visitor(app: &App, site: &Site, headers: &HeaderMap) -> Result<Option<User>> {
    let open = session(app, site, headers).await?;
    Ok(open.map(|open| open.user.clone()))
}

/// The session of the request.
async fn session(app: &App, site: &Site, headers: &HeaderMap) -> Result<Option<Arc<Open>>> {
    if !apps::has_sign_in(site.hosted.auth_config.as_ref()) {
        return Ok(None);
    }
    let Some(token) = cookie(headers, Cookie::Session.name(app)) else {
        return Ok(None);
    };
    let (token_hash, now) = (hash(token), app.clock().micros());
    let Some(open) = open(app, site, &token_hash, now).await? else {
        return Ok(None);
    };
    if now - open.seen_at > SEEN {
        let until = (now + IDLE).min(open.began_at + LONGEST);
        let place = place(site);
        let write = app.db().write(move |tx| {
            Box::pin(async move { store::see_session(tx, &place, &token_hash, now, until).await })
        });
        write.await?;
    }
    Ok(Some(open))
}

/// What a way in is called where people read of it.
fn called(way: &str) -> &str {
    match way {
        "POST /_auth/passkeys/sign-in" => "passkey",
        way => way
            .strip_prefix("GET /_auth/callback/")
            .unwrap_or("password"),
    }
}

/// Sessions by the hashes of their tokens, each with its app and the number of changes of people when it was read. Where other
/// processes change them, none is kept: who was signed out there is signed out here with the next request.
pub(super) struct Kept(Cache<String, (u64, String, Arc<Open>)>);

impl Default for Kept {
    fn default() -> Self {
        let kept = Cache::builder().max_capacity(10_000).time_to_idle(UNUSED);
        Self(kept.build())
    }
}

/// The session of this token, from memory while nobody signed in or out since.
async fn open(app: &App, site: &Site, token_hash: &str, now: i64) -> Result<Option<Arc<Open>>> {
    let (kept, changes) = (&app.hosting.auth.sessions.0, app.db().people());
    if let Some((read_at, app_id, open)) = kept.get(token_hash)
        && Some(read_at) == changes
        && app_id == site.app_id()
        && open.expires_at > now
    {
        return Ok(Some(open));
    }
    let found = store::find_session(app.db(), &place(site), token_hash, now).await?;
    let found = found.map(Arc::new);
    if let (Some(changes), Some(open)) = (changes, &found) {
        let told = (changes, site.app_id().to_owned(), open.clone());
        kept.insert(token_hash.to_owned(), told);
    }
    Ok(found)
}

/// Signs a browser in: the session it had is over, and the new one leads to `to`. Whoever proved who they are with a password
/// that was changed meanwhile has proven nothing.
pub(super) async fn begin(asked: &Asked<'_>, user: &User, to: &str) -> Result<Response> {
    let app = asked.app;
    // 62^43 is more than 256 bits.
    let token = id::random_base62(43);
    let (place, now) = (place(asked.site), app.clock().micros());
    let old = cookie(asked.headers, Cookie::Session.name(app)).map(hash);
    let (token_hash, known) = (hash(&token), user.clone());
    let browser = sessions::browser(asked.headers);
    let (person, way) = (asked.visitor().person(&user.user_id), asked.way);
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let held = store::hold(tx, &place, &known.user_id).await?;
                let same = |held: &User| held.profile.password == known.profile.password;
                let Some(mut held) = held.filter(same) else {
                    let message = "Your account was changed at this very moment. Sign in again.";
                    return Err(ApiError::conflict("changed_meanwhile", message));
                };
                held.profile.signed_in = Some(SignedIn {
                    at: now,
                    way: called(way).to_owned(),
                });
                store::update(tx, &place, &held, now).await?;
                if let Some(old) = old {
                    store::end_session(tx, &place, &old).await?;
                }
                let session = store::NewSession {
                    token_hash: &token_hash,
                    user_id: &known.user_id,
                    browser: &browser,
                    way: called(way),
                    expires_at: now + IDLE,
                };
                store::insert_session(tx, &place, &session, now).await?;
                audit::signed_in(tx, &person, (&place.app_id, way), now).await
            })
        })
        .await?;
    let mut response = redirect(to);
    let headers = response.headers_mut();
    headers.append(header::SET_COOKIE, Cookie::Session.set(app, &token));
    headers.append(header::SET_COOKIE, Cookie::Flow.set(app, ""));
    let known = known_browser(app, asked.site, &user.email)?;
    headers.append(header::SET_COOKIE, Cookie::Known.set(app, &known));
    Ok(response)
}

/// Says that somebody signed in from this browser before; only this server can write it.
fn known_browser(app: &App, site: &Site, email: &str) -> Result<String> {
    app.vault()
        .seal(&["known browser", site.app_id(), email], "1")
}

/// Whether this person signed in from this browser before.
pub(super) fn is_known(asked: &Asked<'_>, email: &str) -> bool {
    let sealed = cookie(asked.headers, Cookie::Known.name(asked.app));
    let place = ["known browser", asked.site.app_id(), email];
    sealed.is_some_and(|sealed| asked.app.vault().opens(&place, sealed))
}

pub(super) fn redirect(to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(header::LOCATION, to);
    response
}

/// As pages of the app see the person that looks at them.
fn told(open: &Open) -> AppEndUser {
    let role = open.user.profile.role.clone();
    AppEndUser {
        role: (!role.is_empty()).then_some(role),
        signed_in_with: (!open.way.is_empty()).then(|| open.way.clone()),
        ..told_to_others(open.user.clone())
    }
}

/// As pages of the app see somebody else. What the owner made of them is nobody's business.
fn told_to_others(user: User) -> AppEndUser {
    AppEndUser {
        email: user.shown_email().to_owned(),
        email_verified: (!user.has_proven()).then_some(false),
        id: user.user_id,
        name: user.profile.name,
        avatar_url: user.profile.avatar_url,
        ..Default::default()
    }
}

/// Whether somebody is signed in, and who: never an error, so that a page can ask without knowing.
pub(super) async fn tell(asked: &Asked<'_>) -> Result<Response> {
    let open = session(asked.app, asked.site, asked.headers).await?;
    let user = open.as_deref().map(told);
    let told = json!({ "is_signed_in": user.is_some(), "user": user });
    Ok(Json(told).into_response())
}

pub(super) fn signed_out() -> ApiError {
    ApiError::unauthenticated("sign_in_required", "sign in to this app first")
}

/// The person that is signed in.
pub(super) async fn me(asked: &Asked<'_>) -> Result<Response> {
    let open = session(asked.app, asked.site, asked.headers).await?;
    let open = open.ok_or_else(signed_out)?;
    Ok(Json(told(&open)).into_response())
}

/// Everybody who signed in to this app, for those who did; the owner may close this, or open it to some.
pub(super) async fn people(asked: &Asked<'_>) -> Result<Response> {
    let user = visitor(asked.app, asked.site, asked.headers).await?;
    let user = user.ok_or_else(signed_out)?;
    let said = apps::variable(&asked.site.hosted, apps::check::LIST_USERS);
    if !may_list(said.unwrap_or_default(), &user.profile.role) {
        return Err(ApiError::forbidden(
            "users_not_listed",
            "the owner of this app does not let its users see each other",
        ));
    }
    let (db, place) = (asked.app.db(), place(asked.site));
    let (users, total) = store::list(db, &place, (LISTED, 0)).await?;
    // The list itself has no room for how many there are.
    let told: Vec<AppEndUser> = users.into_iter().map(told_to_others).collect();
    let mut response = Json(told).into_response();
    response.headers_mut().insert(TOTAL, total.into());
    Ok(response)
}

/// Whether somebody of this role sees who else comes: everybody does, unless the owner says nobody, or of which roles. What means
/// nothing here was meant to close it.
fn may_list(said: &str, role: &str) -> bool {
    let said = said.trim();
    match said.split_once(':') {
        None => said.is_empty() || said.eq_ignore_ascii_case("on"),
        Some((word, roles)) if word.trim_end().eq_ignore_ascii_case("role") => {
            let mut roles = roles.split(',').map(str::trim);
            roles.any(|one| !one.is_empty() && one == role)
        }
        Some(_) => false,
    }
}

/// Ends the session, or with `everywhere` all sessions of the person.
pub(super) async fn sign_out(asked: &Asked<'_>) -> Result<Response> {
    let app = asked.app;
    let everywhere = asked.text("everywhere") == "true";
    if let Some(token) = cookie(asked.headers, Cookie::Session.name(app)) {
        let user = visitor(app, asked.site, asked.headers).await?;
        let (place, token_hash, now) = (place(asked.site), hash(token), app.clock().micros());
        let person = user.map(|user| asked.visitor().person(&user.user_id));
        let work = app.db().write(move |tx| {
            Box::pin(async move {
                // The cookie of a session that is over ends nothing that anybody has to know of.
                let Some(person) = person else {
                    return store::end_session(tx, &place, &token_hash).await;
                };
                match everywhere {
                    true => store::end_sessions(tx, &place, &person.key.user_id).await?,
                    false => store::end_session(tx, &place, &token_hash).await?,
                }
                let at = (place.app_id.as_str(), "POST /_auth/sign-out");
                audit::signed_out(tx, &person, at, everywhere, now).await
            })
        });
        work.await?;
    }
    let is_form = asked.headers.get(header::CONTENT_TYPE).is_some_and(|kind| {
        kind.as_bytes()
            .starts_with(b"application/x-www-form-urlencoded")
    });
    let mut response = if is_form {
        redirect(&asked.return_to())
    } else {
        StatusCode::NO_CONTENT.into_response()
    };
    let cookie = Cookie::Session.set(app, "");
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Removes what is over: sessions, tokens, and what visitors did long ago.
///
/// # Errors
/// The database does not answer.
pub async fn sweep(app: &App) -> Result<()> {
    let now = app.clock().micros();
    app.db()
        .write(move |tx| Box::pin(async move { store::sweep(tx, now).await }))
        .await?;
    tries::sweep(app).await
}

#[cfg(test)]
mod tests {
    use super::may_list;

    #[test]
    fn who_may_list_is_what_the_owner_said_and_nobody_by_mistake() {
        for (said, open) in [
            ("", true),
            (" on ", true),
            ("On", true),
            ("off", false),
            ("OFF", false),
            ("no", false),
            ("role:editor", true),
            ("Role: curator, editor", true),
            ("role:curator,", false),
            ("roles:editor", false),
            ("editor", false),
        ] {
            assert_eq!(may_list(said, "editor"), open, "{said}");
        }
        for said in ["role:", "role:,", "role:editor,", "role: "] {
            assert!(!may_list(said, ""), "{said}");
        }
    }
}
