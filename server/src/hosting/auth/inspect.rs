//! Whether people could sign in to an app, looked at for its owner before anybody tries.

use loupe_wire::{AuthConfigOutput, AuthConfigOutputMode, SignInCheck};
use secrecy::ExposeSecret;

use super::{
    keys, oidc,
    provider::{self, Service},
};
use crate::{
    app::App,
    hosting,
    v1::apps::{self, Hosted},
};

/// Every way to sign in that the app's settings allow, with what is found of it.
pub async fn inspect(app: &App, org_id: &str, hosted: &Hosted) -> Vec<SignInCheck> {
    let Some(auth) = &hosted.auth_config else {
        return Vec::new();
    };
    if apps::has_bearers(Some(auth)) {
        return vec![by_bearers(app, auth).await];
    }
    if !apps::has_sign_in(Some(auth)) {
        return Vec::new();
    }
    let url = hosting::url(app, &hosted.slug);
    let mut found = Vec::new();
    for name in wanted(app, auth) {
        let service = match name {
            "google" => Service::Google,
            "github" => Service::Github,
            "oidc" => Service::Oidc,
            "passkey" => {
                found.push(by_passkey(&url));
                continue;
            }
            _ => {
                found.push(by_mail(app));
                continue;
            }
        };
        let outcome = service_works(app, org_id, auth, service).await;
        found.push(SignInCheck {
            provider: name.to_owned(),
            label: label(name).to_owned(),
            success: outcome.is_ok(),
            message: outcome.unwrap_or_else(|why| why),
            callback_url: Some(format!("{url}/_auth/callback/{name}")),
        });
    }
    found
}

fn label(name: &str) -> &'static str {
    match name {
        "google" => "Google",
        "github" => "GitHub",
        "oidc" => "Single sign-on",
        "passkey" => "Passkey",
        "jwt" => "Tokens of your own service",
        "api_key" => "Keys",
        _ => "E-mail and password",
    }
}

/// The ways that are named; where none is, those that the server has.
fn wanted(app: &App, auth: &AuthConfigOutput) -> Vec<&'static str> {
    if auth.mode == AuthConfigOutputMode::SsoOidc {
        return vec!["oidc"];
    }
    let mut named: Vec<_> = auth
        .clerk_allowed_providers
        .iter()
        .filter_map(|name| apps::check::provider(name))
        .collect();
    named.sort_unstable();
    named.dedup();
    if !named.is_empty() {
        return named;
    }
    let ways = provider::ways(app, Some(auth));
    let others = ways.services().map(Service::name);
    ["email"].into_iter().chain(others).collect()
}

fn by_mail(app: &App) -> SignInCheck {
    let has_mail = !app.config().mail.url.expose_secret().is_empty();
    SignInCheck {
        provider: "email".into(),
        label: label("email").into(),
        success: true,
        message: if has_mail {
            "links are sent through the mail server of [mail]".into()
        } else {
            "this server has no mail server ([mail] in its settings): links are shown in its log only".into()
        },
        callback_url: None,
    }
}

/// Tokens and keys that callers bring: whether the service that signs the tokens tells its keys.
async fn by_bearers(app: &App, auth: &AuthConfigOutput) -> SignInCheck {
    let (provider, outcome) = match auth.jwt_jwks_url.as_deref() {
        Some(address) if auth.mode == AuthConfigOutputMode::Jwt => {
            let keys = keys::ask_keys(app, address).await;
            let told = keys.map(|count| format!("{address} tells its keys: {count}"));
            ("jwt", told)
        }
        _ => {
            let count = auth.api_keys.len();
            ("api_key", Ok(format!("keys that open its /api: {count}")))
        }
    };
    SignInCheck {
        provider: provider.into(),
        label: label(provider).into(),
        success: outcome.is_ok(),
        message: outcome.unwrap_or_else(|why| why),
        callback_url: None,
    }
}

/// Browsers have passkeys where nobody else reads what is sent: with TLS, and on their own machine.
fn by_passkey(url: &str) -> SignInCheck {
    let host = url::Url::parse(url).ok();
    let host = host.as_ref().and_then(url::Url::host_str);
    let is_local = host.is_some_and(|host| host.ends_with(".localhost"));
    let success = is_local || url.starts_with("https://");
    SignInCheck {
        provider: "passkey".into(),
        label: label("passkey").into(),
        success,
        message: if success {
            "people who signed in another way add passkeys at /_auth/passkeys".into()
        } else {
            "browsers have passkeys at addresses with https only".into()
        },
        callback_url: None,
    }
}

/// What another service answers, as far as it can be asked without a person.
async fn service_works(
    app: &App,
    org_id: &str,
    auth: &AuthConfigOutput,
    service: Service,
) -> std::result::Result<String, String> {
    let client = provider::client(app, (org_id, Some(auth)), service)
        .await
        .map_err(|error| match service {
            Service::Oidc => error.message(),
            _ => format!(
                "this server is not set up for it: [sign_in.{}] is missing in its settings",
                service.name()
            ),
        })?;
    if service == Service::Github {
        return Ok(format!("client {} at {}", client.client_id, client.issuer));
    }
    let endpoint = oidc::ask_description(app, &client.issuer)
        .await?
        .authorization_endpoint;
    Ok(format!(
        "{} describes itself; people are sent to {endpoint}",
        client.issuer
    ))
}
