//! How an app lets people in, as far as its settings say it.

use loupe_wire::{AuthConfigInputMode, AuthConfigOutput};
use serde_json::json;

use super::{APPS, Hosted, bearers, check};
use crate::{
    app::App,
    error::{ApiError, Result, Violation},
    password,
};

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
                let changed_at = hosted.updated_at.timestamp_micros();
                APPS.update(tx, &org_id, &app_id, &hosted.slug, changed_at, &hosted)
                    .await
            })
        })
        .await
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

/// A fault of the mode of sign-in.
pub(super) fn mode_fault(message: &str, mode: AuthConfigInputMode) -> ApiError {
    let path = ["auth_config", "mode"];
    Violation::body(&path, "value_error", message, json!(mode)).into()
}
