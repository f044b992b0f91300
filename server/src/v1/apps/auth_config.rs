//! How an app lets people in, as far as its settings say it.

use loupe_wire::{AuthConfigInputMode, AuthConfigOutput};
use serde_json::json;

use super::{APPS, Hosted, bearers, check};
use crate::{
    app::App,
    db::{Json, Tx},
    error::{ApiError, Result, Violation},
    password,
};

crate::sql! {
    // Of every organization. Where there are no keys, there is no such member.
    const WITH_KEYS = "SELECT owner, id, data FROM apps WHERE CAST(data AS TEXT) LIKE '%\"api_keys\"%' ORDER BY id";
}

impl Hosted {
    pub fn is_password_protected(&self) -> bool {
        use loupe_wire::AuthConfigOutputMode::Password;
        let auth = self.auth_config.as_ref();
        auth.is_some_and(|auth| auth.mode == Password)
    }
}

/// Hashes open nothing by themselves, and are nobody's business; keys are told by their names.
pub(super) fn shown(mut auth: AuthConfigOutput) -> AuthConfigOutput {
    if auth.password_hash.is_some() {
        auth.password_hash = Some("********".into());
    }
    auth.api_keys = bearers::shown(&auth.api_keys);
    bearers::forget_saml(&mut auth);
    auth
}

/// Keeps the password of an app that a visitor came with who was let in as passwords of today are kept. A failure keeps nobody
/// out.
pub async fn renew_password(app: &App, place: (&str, &str), old: &str, typed: &str) {
    let Some(hash) = password::renewed(app, old, typed).await else {
        return;
    };
    match replace_hash(app, place, old, hash).await {
        Ok(()) => app.hosting.forget(),
        Err(error) => {
            tracing::warn!(%error, "the weak hash of an app's password could not be replaced");
        }
    }
}

/// Another hash of the same password, unless that was changed meanwhile. The app is as old as it was.
async fn replace_hash(
    app: &App,
    (org_id, app_id): (&str, &str),
    old: &str,
    hash: String,
) -> Result<()> {
    let (org_id, app_id, old) = (org_id.to_owned(), app_id.to_owned(), old.to_owned());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut hosted = APPS.hold(tx, &org_id, &app_id).await?.data.0;
                let auth = hosted.auth_config.as_mut();
                let Some(auth) = auth.filter(|auth| auth.password_hash.as_ref() == Some(&old))
                else {
                    return Ok(());
                };
                auth.password_hash = Some(hash);
                keep(tx, &org_id, &hosted).await
            })
        })
        .await
}

/// Writes an app whose owner changed nothing: it is as old as it was.
async fn keep(tx: &mut Tx, org_id: &str, hosted: &Hosted) -> Result<()> {
    let changed_at = hosted.updated_at.timestamp_micros();
    let (id, slug) = (&hosted.app_id, &hosted.slug);
    APPS.update(tx, org_id, id, slug, changed_at, hosted).await
}

/// Removes keys that were kept as they were sent, when no app was called with keys yet: they open nothing, and lie there in clear.
///
/// # Errors
/// The database does not answer.
pub async fn forget_clear_keys(app: &App) -> Result<()> {
    let rows: Vec<(String, String, Json<Hosted>)> = app.db().all(WITH_KEYS, vec![]).await?;
    let has_clear = |hosted: &Hosted| {
        let auth = hosted.auth_config.as_ref();
        auth.is_some_and(|auth| !auth.api_keys.iter().all(bearers::is_hashed))
    };
    for (org_id, app_id, _) in rows
        .into_iter()
        .filter(|(_, _, hosted)| has_clear(&hosted.0))
    {
        let work = app.db().write(move |tx| {
            Box::pin(async move {
                let mut hosted = APPS.hold(tx, &org_id, &app_id).await?.data.0;
                if let Some(auth) = &mut hosted.auth_config {
                    auth.api_keys.retain(bearers::is_hashed);
                }
                keep(tx, &org_id, &hosted).await
            })
        });
        match work.await {
            // Removed meanwhile.
            Err(error) if error.is_not_found() => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

/// The names of the modes in which people sign in.
pub fn has_sign_in(auth: Option<&AuthConfigOutput>) -> bool {
    use loupe_wire::AuthConfigOutputMode::{Clerk, SsoOidc};
    auth.is_some_and(|auth| matches!(auth.mode, Clerk | SsoOidc))
}

/// Whether people may sign in with passkeys, which only an owner who names them allows. Whoever asks for their own service wants
/// nobody who comes another way.
pub fn has_passkeys(auth: Option<&AuthConfigOutput>) -> bool {
    use loupe_wire::AuthConfigOutputMode::Clerk;
    let names = |auth: &AuthConfigOutput| {
        let mut names = auth.clerk_allowed_providers.iter();
        names.any(|name| name == check::PASSKEY)
    };
    auth.is_some_and(|auth| auth.mode == Clerk && names(auth))
}

/// A mode of sign-in that this server has not.
pub(super) fn mode_fault(message: &str, mode: AuthConfigInputMode) -> ApiError {
    let path = ["auth_config", "mode"];
    Violation::body(&path, "not_enabled", message, json!(mode)).into()
}
