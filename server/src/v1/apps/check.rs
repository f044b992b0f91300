//! What an app may be asked to be, beyond the limits of its wire types.

use loupe_wire::{
    ApiAllowRule, AuthConfigInput, AuthConfigInputMode, AuthConfigOutput, AuthConfigOutputMode,
    BuildConfig, NamespaceOperation, ResourceType, UpdateAppRequest, Value,
};
use serde::Serialize;
use serde_json::json;

use super::{Hosted, NAMESPACE, auth_config::mode_fault, bearers, store};
use crate::{
    app::App,
    auth::{self, Caller},
    db::Tx,
    error::{ApiError, Result, Violation},
    hosting::allowed::{levels, opens_something},
    password,
    v1::{namespaces, retrievers::cast, secrets},
};

/// Bytes of an app's description.
const LARGEST: usize = 1 << 20;

/// Names that people take for the server's own.
const RESERVED: [&str; 8] = [
    "www",
    "api",
    "console",
    "admin",
    "localhost",
    "mail",
    "static",
    "assets",
];

/// The variable that lets visitors see and change only what is theirs, with its one value.
pub const PRINCIPAL: &str = "LOUPE_PRINCIPAL";
const USER: &str = "user";

/// The variable that says who sees the people of an app.
pub const LIST_USERS: &str = "LOUPE_LIST_USERS";

/// The variable that says who may make an account, with the word for those who were invited.
pub const SIGN_UP: &str = "LOUPE_SIGN_UP";
const INVITED: &str = "invited";

/// The variable that says what people call the provider of the app's own, and letters of it.
pub const OIDC_LABEL: &str = "LOUPE_OIDC_LABEL";
const LABEL: usize = 60;

/// Rules of what visitors may call, and letters of each.
const RULES: usize = 50;
const PATTERN: usize = 200;

/// Names of ways to sign in.
const PROVIDERS: [(&str, &str); 9] = [
    ("google", "google"),
    ("oauth_google", "google"),
    ("github", "github"),
    ("oauth_github", "github"),
    ("email", "email"),
    ("email_password", "email"),
    ("password", "email"),
    ("oidc", "oidc"),
    (PASSKEY, PASSKEY),
];

/// A way for those who signed in another way before.
pub(super) const PASSKEY: &str = "passkey";

/// The provider that a name stands for.
pub fn provider(name: &str) -> Option<&'static str> {
    let found = PROVIDERS.iter().find(|(known, _)| *known == name);
    found.map(|(_, provider)| *provider)
}

pub(super) fn size(request: &impl Serialize) -> Result<()> {
    let written = serde_json::to_vec(request).map_err(ApiError::internal)?;
    if written.len() > LARGEST {
        let message = format!("the description of an app is larger than {LARGEST} bytes");
        return Err(ApiError::payload_too_large("", message));
    }
    Ok(())
}

/// The slug is a name of a host: two hyphens in a row are kept for previews.
pub(super) fn slug(slug: &str) -> Result<()> {
    let fault =
        |message: &str| Err(Violation::body(&["slug"], "value_error", message, slug.into()).into());
    if slug.contains("--") {
        return fault("a slug has no two hyphens in a row");
    }
    if RESERVED.contains(&slug) {
        return fault("this slug is kept for the server's own use");
    }
    Ok(())
}

/// Slugs are unique over all organizations: each is a host.
pub(super) async fn is_free(tx: &mut Tx, org_id: &str, slug: &str, app_id: &str) -> Result<()> {
    // In this order: what is given up at this moment is one or the other.
    let message = if store::is_taken(tx, slug, app_id).await? {
        format!("an app with the slug '{slug}' exists already")
    } else if store::is_kept(tx, slug, org_id).await? {
        format!("the slug '{slug}' stays with the organization whose app had it")
    } else {
        return Ok(());
    };
    Err(ApiError::already_exists("name_taken", message).with("slug", slug))
}

/// The configuration of sign-in with the password that a secret holds; an empty name takes the password of an app away.
///
/// # Errors
/// There is no such secret or the caller's scopes do not cover it, it holds no password, or another way in is asked for beside it.
pub(super) async fn with_secret(
    app: &App,
    caller: &Caller,
    sent: Option<AuthConfigInput>,
    name: Option<&str>,
    is_protected: bool,
) -> Result<Option<AuthConfigInput>> {
    let Some(name) = name else { return Ok(sent) };
    let fault = |message: &str| {
        let path = ["password_secret_name"];
        ApiError::from(Violation::body(&path, "value_error", message, name.into()))
    };
    if name.is_empty() {
        let opened = || is_protected.then(AuthConfigInput::default);
        return Ok(sent.or_else(opened));
    }
    let mut auth = sent.unwrap_or_else(|| AuthConfigInput {
        mode: AuthConfigInputMode::Password,
        ..Default::default()
    });
    if auth.mode != AuthConfigInputMode::Password || auth.password.is_some() {
        return Err(fault(
            "an app has one password: send no auth_config beside it, or one of the mode password without a password",
        ));
    }
    caller.allow(ResourceType::Secret, name, NamespaceOperation::ReadData)?;
    let value = secrets::value(app, &caller.org_id, name).await?;
    if !(8..=128).contains(&value.chars().count()) {
        return Err(fault(
            "a password has 8 to 128 letters: the secret's value has not",
        ));
    }
    auth.password = Some(value);
    Ok(Some(auth))
}

pub(super) fn build(build: Option<&BuildConfig>) -> Result<()> {
    let Some(build) = build else { return Ok(()) };
    let fault = |path: &[&str], message: &str, input: Value| {
        Err(Violation::body(path, "value_error", message, input).into())
    };
    if build.env_vars.len() > 100 {
        return fault(&["build_config"], "at most 100 variables", Value::Null);
    }
    // They would be kept for nothing, and in clear.
    if !build.secrets.is_empty() {
        let message = "this server runs no build that could use a secret: keep it among the organization's secrets";
        let path = ["build_config", "secrets"];
        return Err(Violation::body(&path, "not_enabled", message, Value::Null).into());
    }
    let principal = build.env_vars.get(PRINCIPAL).map(String::as_str);
    if let Some(other) = principal.filter(|said| !matches!(*said, "" | USER)) {
        let path = ["build_config", "env_vars", PRINCIPAL];
        let message =
            "say user, so that visitors see and change only what is theirs, or leave it out";
        return fault(&path, message, other.into());
    }
    let sign_up = build.env_vars.get(SIGN_UP).map(String::as_str);
    if let Some(other) = sign_up.filter(|said| !matches!(*said, "" | "on" | INVITED)) {
        let path = ["build_config", "env_vars", SIGN_UP];
        let message =
            "say invited, so that only people who were invited make an account, or leave it out";
        return fault(&path, message, other.into());
    }
    let label = build.env_vars.get(OIDC_LABEL).map(String::as_str);
    if let Some(long) = label.filter(|label| label.chars().count() > LABEL) {
        let path = ["build_config", "env_vars", OIDC_LABEL];
        return fault(&path, &format!("at most {LABEL} letters"), long.into());
    }
    if build.api_allow.len() > RULES {
        let path = ["build_config", "api_allow"];
        return fault(&path, &format!("at most {RULES} rules"), Value::Null);
    }
    for (number, rule) in build.api_allow.iter().enumerate() {
        let number = number.to_string();
        let path = ["build_config", "api_allow", &number];
        if let Some(message) = rule_fault(rule) {
            return fault(&path, message, json!(rule));
        }
    }
    Ok(())
}

/// Visitors have the owner's authority in the namespace of the app, as far as its rules go. Nobody does through an app what
/// the own key may not.
pub(super) async fn authority(
    app: &App,
    caller: &Caller,
    build: Option<&BuildConfig>,
    namespace_id: Option<&str>,
) -> Result<()> {
    let named = build.and_then(|build| build.env_vars.get(NAMESPACE));
    if let Some(named) = named
        && !namespaces::exists(app, caller, named).await?
    {
        return Err(ApiError::not_found("namespace", named));
    }
    let (kind, id) = match named.map(String::as_str).or(namespace_id) {
        Some(namespace) => (ResourceType::Namespace, namespace),
        None => (ResourceType::Organization, caller.org_id.as_str()),
    };
    for level in levels(build.map_or(&[], |build| &build.api_allow)) {
        if !caller.has(level) {
            let message = "visitors could do what this API key may not: name the methods of the rules, or use a key of the permission";
            return Err(ApiError::forbidden("permission_denied", message)
                .with("required_permission", json!(level)));
        }
        caller.allow(kind, id, auth::operation_of(level))?;
    }
    Ok(())
}

fn rule_fault(rule: &ApiAllowRule) -> Option<&'static str> {
    const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "*"];
    let pattern = &rule.pattern;
    if pattern.len() > PATTERN || !pattern.starts_with('/') || pattern.contains("..") {
        return Some(
            "a pattern is a path such as /retrievers/*/execute, in which * stands for one name and ** for any",
        );
    }
    let known = |method: &String| METHODS.contains(&method.to_ascii_uppercase().as_str());
    if rule.methods.len() > METHODS.len() || !rule.methods.iter().all(known) {
        return Some("methods are GET, POST, PUT, PATCH, DELETE or *");
    }
    None
}

/// The configuration of sign-in as it is kept: modes that this server has, and no password in clear.
pub(super) async fn auth(
    app: &App,
    caller: &Caller,
    sent: Option<AuthConfigInput>,
    old: Option<AuthConfigOutput>,
) -> Result<Option<AuthConfigOutput>> {
    let Some(sent) = sent else { return Ok(None) };
    let mut keys = Vec::new();
    match sent.mode {
        AuthConfigInputMode::Public | AuthConfigInputMode::Clerk => {}
        AuthConfigInputMode::Password => has_password(&sent, old.as_ref())?,
        AuthConfigInputMode::SsoOidc => has_issuer(&sent)?,
        AuthConfigInputMode::Jwt => bearers::has_address(&sent)?,
        // Those of another day open nothing later.
        AuthConfigInputMode::ApiKey => keys = bearers::kept(&sent.api_keys, old.as_ref())?,
        AuthConfigInputMode::SsoSaml => {
            let message = "this server has the modes clerk, sso_oidc, password, jwt and api_key; public is without any of them";
            return Err(mode_fault(message, sent.mode));
        }
    }
    has_providers(&sent)?;
    bearers::check(app, &sent).await?;
    issuer_is_asked(app, &sent).await?;
    if let Some(name) = &sent.oidc_client_secret_name {
        let known = old.as_ref().is_some_and(|old| {
            old.oidc_issuer == sent.oidc_issuer
                && old.oidc_client_secret_name.as_ref() == Some(name)
        });
        if !known {
            secrets::check_sender(app, caller, name).await?;
        }
    }
    let hash = match (sent.mode, &sent.password) {
        (AuthConfigInputMode::Password, Some(new)) => Some(password::hash(app, new).await?),
        (AuthConfigInputMode::Password, None) => old.and_then(|old| old.password_hash),
        // The password of another day opens nothing later.
        _ => None,
    };
    let mut kept: AuthConfigOutput = cast(&AuthConfigInput {
        password: None,
        password_hash: None,
        api_keys: keys,
        ..sent
    })?;
    kept.password_hash = hash;
    bearers::forget_saml(&mut kept);
    Ok(Some(kept))
}

/// The sign-in that a change of an app asks for, out of the request; none where it is left as it is.
pub(super) async fn changed_auth(
    app: &App,
    caller: &Caller,
    request: &mut UpdateAppRequest,
    before: &Hosted,
) -> Result<Option<Option<AuthConfigOutput>>> {
    let sent = request.auth_config.take();
    let secret = request.password_secret_name.as_deref();
    let is_protected = before.is_password_protected();
    match with_secret(app, caller, sent, secret, is_protected).await? {
        None => Ok(None),
        Some(sent) => {
            let old = before.auth_config.clone();
            auth(app, caller, Some(sent), old).await.map(Some)
        }
    }
}

/// Whether the caller may make what a change says of the API of an app.
pub(super) async fn changed_build(
    app: &App,
    caller: &Caller,
    namespace_id: Option<&String>,
    request: &UpdateAppRequest,
    before: &Hosted,
) -> Result<()> {
    let sent = request.build_config.as_ref();
    // As it stands in the request: what was kept before something was refused may stay.
    let alone = sent.map(|sent| sent.clone().of(BuildConfig::default()));
    build(alone.as_ref())?;
    let (old, old_namespace) = (before.build_config.as_ref(), before.namespace_id.as_ref());
    let new = sent.map(|sent| sent.clone().of(old.cloned().unwrap_or_default()));
    let (new, namespace) = (new.as_ref().or(old), namespace_id.or(old_namespace));
    if new == old && namespace == old_namespace {
        return Ok(());
    }
    authority(app, caller, new, namespace.map(String::as_str)).await
}

/// What a change was checked against, as far as it changes it.
pub(super) struct Seen {
    pub auth: Option<Option<AuthConfigOutput>>,
    pub build: Option<Option<BuildConfig>>,
}

impl Seen {
    /// Whether the app is still as it was.
    ///
    /// # Errors
    /// 409 where somebody else changed it meanwhile.
    pub fn is_still(&self, hosted: &Hosted) -> Result<()> {
        let auth = self.auth.as_ref();
        let build = self.build.as_ref();
        if auth.is_none_or(|auth| *auth == hosted.auth_config)
            && build.is_none_or(|build| *build == hosted.build_config)
        {
            return Ok(());
        }
        let message = "who may come in to the app was changed meanwhile: look at it and send the change again";
        Err(ApiError::conflict("changed_meanwhile", message))
    }
}

/// A provider that is named can be asked, in whatever mode.
async fn issuer_is_asked(app: &App, sent: &AuthConfigInput) -> Result<()> {
    let issuer = sent.oidc_issuer.as_ref();
    let Some(issuer) = issuer.filter(|issuer| !issuer.is_empty()) else {
        return Ok(());
    };
    has_issuer(sent)?;
    bearers::is_believed(app, "oidc_issuer", issuer).await
}

/// Whether visitors of an app see and change only what is theirs. What was kept before other words were refused was meant to
/// close something.
pub fn is_own(hosted: &Hosted) -> bool {
    super::variable(hosted, PRINCIPAL).is_some_and(|said| !said.is_empty())
}

/// Whether only those make an account who were invited.
pub fn is_by_invitation(hosted: &Hosted) -> bool {
    let said = super::variable(hosted, SIGN_UP);
    said.is_some_and(|said| !matches!(said, "" | "on"))
}

/// Variables that look like the server's own and mean nothing to it.
fn strange_variables(hosted: &Hosted) -> impl Iterator<Item = &String> {
    let names = hosted.build_config.iter();
    let names = names.flat_map(|build| build.env_vars.keys());
    names.filter(|name| {
        let known =
            [NAMESPACE, PRINCIPAL, LIST_USERS, SIGN_UP, OIDC_LABEL].contains(&name.as_str());
        name.starts_with("LOUPE_") && !known
    })
}

/// What an owner is told of settings that are kept and do nothing: rules that open nothing, variables that nobody reads, services
/// that nobody signs in with.
pub(super) fn warnings(app: &App, hosted: &Hosted) -> Vec<String> {
    let mut told = Vec::new();
    let build = hosted.build_config.iter();
    let rules = build.flat_map(|build| &build.api_allow);
    for rule in rules.filter(|rule| !opens_something(rule)) {
        let pattern = &rule.pattern;
        told.push(format!(
            "the rule {pattern} of build_config.api_allow opens nothing: there is no such operation, or visitors never have it"
        ));
    }
    let variables = strange_variables(hosted);
    told.extend(variables.map(|name| {
        format!("the variable {name} of build_config.env_vars means nothing to this server")
    }));
    let Some(auth) = &hosted.auth_config else {
        return told;
    };
    if auth.clerk_org_id.as_ref().is_some_and(|id| !id.is_empty()) {
        told.push("auth_config.clerk_org_id means nothing to this server".into());
    }
    // The other modes ask for nobody's names.
    if auth.mode != AuthConfigOutputMode::Clerk {
        return told;
    }
    let settings = &app.config().sign_in;
    for name in &auth.clerk_allowed_providers {
        let missing = match provider(name) {
            Some("google") if settings.google.is_none() => "the server has no [sign_in.google]",
            Some("github") if settings.github.is_none() => "the server has no [sign_in.github]",
            Some("oidc") if auth.oidc_issuer.is_none() => "auth_config has no oidc_issuer",
            _ => continue,
        };
        told.push(format!("nobody signs in with {name}: {missing}"));
    }
    told
}

fn has_providers(sent: &AuthConfigInput) -> Result<()> {
    for (number, name) in sent.clerk_allowed_providers.iter().enumerate() {
        if provider(name).is_none() {
            let number = number.to_string();
            let path = ["auth_config", "clerk_allowed_providers", &number];
            let message = "providers are google, github, oidc, email and passkey";
            return Err(
                Violation::body(&path, "value_error", message, name.as_str().into()).into(),
            );
        }
    }
    let names = &sent.clerk_allowed_providers;
    if !names.is_empty() && names.iter().all(|name| name == PASSKEY) {
        let path = ["auth_config", "clerk_allowed_providers"];
        let message = "passkeys are added by those who signed in another way: name one beside them";
        return Err(Violation::body(&path, "value_error", message, json!(names)).into());
    }
    Ok(())
}

/// One that is kept need not be sent again.
fn has_password(sent: &AuthConfigInput, old: Option<&AuthConfigOutput>) -> Result<()> {
    let known = old.is_some_and(|old| old.password_hash.is_some());
    if known || sent.password.is_some() {
        return Ok(());
    }
    let message = "an app of this mode needs a password, of 8 letters or more";
    let path = ["auth_config", "password"];
    Err(Violation::body(&path, "missing", message, Value::Null).into())
}

fn has_issuer(sent: &AuthConfigInput) -> Result<()> {
    for (name, value) in [
        ("oidc_issuer", &sent.oidc_issuer),
        ("oidc_client_id", &sent.oidc_client_id),
    ] {
        if value.as_ref().is_none_or(|value| value.trim().is_empty()) {
            let message = "a provider of OpenID Connect needs its issuer and a client id";
            return Err(
                Violation::body(&["auth_config", name], "missing", message, Value::Null).into(),
            );
        }
    }
    Ok(())
}
