//! How an app lets people in, as far as its settings say it.

use loupe_wire::{AuthConfigInputMode, AuthConfigOutput};
use serde_json::json;

use super::Hosted;
use crate::error::{ApiError, Violation};

impl Hosted {
    pub fn is_password_protected(&self) -> bool {
        use loupe_wire::AuthConfigOutputMode::Password;
        let auth = self.auth_config.as_ref();
        auth.is_some_and(|auth| auth.mode == Password)
    }
}

/// Hashes open nothing by themselves, and are nobody's business.
pub(super) fn shown(mut auth: AuthConfigOutput) -> AuthConfigOutput {
    if auth.password_hash.is_some() {
        auth.password_hash = Some("********".into());
    }
    auth
}

/// The names of the modes in which people sign in.
pub fn has_sign_in(auth: Option<&AuthConfigOutput>) -> bool {
    use loupe_wire::AuthConfigOutputMode::{Clerk, SsoOidc};
    auth.is_some_and(|auth| matches!(auth.mode, Clerk | SsoOidc))
}

/// A fault of the mode of sign-in.
pub(super) fn mode_fault(message: &str, mode: AuthConfigInputMode) -> ApiError {
    let path = ["auth_config", "mode"];
    Violation::body(&path, "value_error", message, json!(mode)).into()
}
