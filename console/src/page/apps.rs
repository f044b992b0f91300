//! Front ends of one's own, each on an origin of its own.

pub mod access;
pub mod changes;
pub mod deploys;
pub mod domains;
pub mod log;
pub mod one;
pub mod people;
pub mod versions;
pub mod visits;

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api},
    load::{Load, Query, navigator},
    part::{schema::Form, *},
    record::Record,
    session::{last_namespace, use_session},
    text,
};

const COLUMNS: &[Column] = &[
    Column("App", ""),
    Column("Address", ""),
    Column("Who may come in", ""),
    Column("Version", "num"),
    Column("Status", ""),
    Column("Changed", ""),
];

const BLANK: Blank = Blank {
    icon: "app",
    title: "No app yet",
    text: "An app is a front end that you built, or the starter: it gets an address of its own, sign-in for its visitors, and searches without a key in the browser.",
    link: None,
};

/// The form of an app: what it is called, where it is.
pub const FORM: &str = "apps";

pub fn path_of(id: &str) -> String {
    format!("/v1/apps/{}", text::escape(id))
}

pub fn apps() -> AnyView {
    let session = use_session();
    let (search, offset) = (Query::new("q"), Query::new("offset"));
    let form = Form::plain("app");
    let load = Load::new(move || {
        let path = format!("/v1/apps{}{}", page_query(offset), search.query("search"));
        list(session.api(), path, form)
    });
    let create = RwSignal::new(false);
    let go = navigator();
    let fresh = || json!({"auth_config": {"mode": "clerk", "clerk_allowed_providers": ["email"]}, "namespace": last_namespace()});
    let send = move |body| save(session.api(), None, body);
    let made = move |made: Record| go(&format!("/apps/{}", text::escape(&made.text("app_id"))));
    view! {
        <ListPage title="Apps" text="Front ends of yours, each on an origin of its own, with sign-in and search for their visitors." load search offset
            columns=COLUMNS row blank=BLANK create=Create::Dialog("Create app", create)/>
        <Fill open=create title="Create an app".to_owned() label="Create" form schema=FORM start=Callback::new(move |()| fresh())
            send=Callback::new(send) done=Callback::new(made)/>
    }
    .into_any()
}

/// The apps, once the namespaces to choose from are known.
fn list(api: Api, path: String, form: Form) -> Answer {
    Box::pin(async move {
        form.choices.set(namespaces(api.clone()).await?);
        api.get(&path).await
    })
}

/// The namespaces that a form may choose from.
pub fn namespaces(api: Api) -> Answer {
    Box::pin(async move {
        let answer = api.post("/v1/namespaces/list?limit=100", &json!({}));
        let all =
            answer.await?.list("results").into_iter().map(
                |one| json!({"id": one.text("namespace_id"), "name": one.text("namespace_name")}),
            );
        Ok(Record(json!({"namespaces": all.collect::<Vec<_>>()})))
    })
}

/// Makes an app, or changes the one at `path`. Its namespace is told beside the body.
pub fn save(api: Api, path: Option<String>, mut body: Value) -> Answer {
    let namespace = body.as_object_mut().and_then(|all| all.remove("namespace"));
    let namespace = namespace.and_then(|one| one.as_str().map(ToOwned::to_owned));
    let api = Api { namespace, ..api };
    match path {
        Some(path) => api.patch(&path, &body),
        None => api.post("/v1/apps", &body),
    }
}

/// Who may come in, in a sentence.
pub fn who(one: &Record) -> String {
    let auth = one.record("auth_config");
    let names = auth.strings("clerk_allowed_providers");
    let named = |name: &str| match name {
        "google" | "oauth_google" => "Google",
        "github" | "oauth_github" => "GitHub",
        "oidc" => "single sign-on",
        "passkey" => "passkeys",
        _ => "e-mail and password",
    };
    let names: Vec<_> = names.iter().map(|name| named(name)).collect();
    match auth.text("mode").as_str() {
        "clerk" if names.is_empty() => "people who sign in".to_owned(),
        "clerk" => format!("people who sign in with {}", names.join(", ")),
        "sso_oidc" => {
            let issuer = auth.text("oidc_issuer");
            let host = issuer.split('/').nth(2).unwrap_or_default();
            format!("people who sign in at {host}")
        }
        "password" => "whoever knows the password".to_owned(),
        "jwt" => "everybody, its API for tokens of your own service".to_owned(),
        "api_key" => "everybody, its API for whoever has a key".to_owned(),
        _ => "everybody".to_owned(),
    }
}

/// Whether visitors get anything.
pub fn state(one: &Record) -> AnyView {
    badge(match (one.flag("is_active"), one.int("version")) {
        (false, _) => "off",
        (_, None | Some(0)) => "empty",
        _ => "active",
    })
}

/// A link to another origin.
pub fn outside(url: String, label: String) -> AnyView {
    view! { <a href=url target="_blank" rel="noopener">{label}</a> }.into_any()
}

fn row(one: Record) -> AnyView {
    let (id, url) = (one.text("app_id"), one.text("url"));
    let href = format!("/console/apps/{}", text::escape(&id));
    let host = url.split('/').nth(2).unwrap_or_default().to_owned();
    line(vec![
        name(Some(href), one.record("meta").text("title"), id),
        cell("", outside(url, host)),
        words("", who(&one)),
        number(one.int("version")),
        cell("", state(&one)),
        cell("nowrap", when(one.opt("updated_at"))),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{AppListItem, CreateAppRequest, UpdateAppRequest};

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn what_the_form_makes_is_an_app() {
        let schema = schema::named(FORM).0;
        let modes = schema["properties"]["auth_config"]["properties"]["mode"]["enum"].clone();
        for mode in modes.as_array().expect("modes") {
            let body = json!({"meta": {"title": "Films"}, "slug": "films", "auth_config": {"mode": mode}, "is_active": false});
            serde_json::from_value::<CreateAppRequest>(body.clone()).expect("a body");
            serde_json::from_value::<UpdateAppRequest>(body).expect("a change");
        }
    }

    #[test]
    fn who_may_come_in_is_told() {
        let of = |auth: Value| {
            let one: AppListItem = serde_json::from_value(json!({
                "app_id": "a", "slug": "films", "url": "http://films.localhost", "meta": {"title": "Films"}, "is_active": true,
                "version": 1, "template": "generic", "custom_domains": [], "auth_config": auth}))
            .expect("an app");
            who(&sent(&one))
        };
        assert_eq!(of(Value::Null), "everybody");
        assert_eq!(
            of(json!({"mode": "clerk", "clerk_allowed_providers": ["email", "github", "passkey"]})),
            "people who sign in with e-mail and password, GitHub, passkeys"
        );
        assert_eq!(
            of(json!({"mode": "sso_oidc", "oidc_issuer": "https://login.example.com/a"})),
            "people who sign in at login.example.com"
        );
        let keys = json!([{"name": "shop"}]);
        assert_eq!(
            of(json!({"mode": "api_key", "api_keys": keys})),
            "everybody, its API for whoever has a key"
        );
    }
}
