//! Who may come in to an app, and what of the API its visitors reach.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{one::Shown, who};
use crate::{
    api::{Answer, Api},
    load::Change,
    part::{schema::Form, *},
    record::Record,
    session::use_session,
    text,
};

const FORM: &str = "apps/access";

const SECRETS: &str = "/v1/organizations/secrets";

pub fn access(shown: Shown) -> AnyView {
    let open = RwSignal::new(false);
    let (test, found) = (Change::new(), RwSignal::new(None::<Record>));
    let session = use_session();
    let toasts: Toasts = expect_context();
    let ask = move |_| {
        let path = format!("{}/sign-in/test", shown.path.get_untracked());
        test.run(session.api().post(&path, &json!({})), move |answer| {
            found.set(Some(answer));
        });
    };
    let send = move |body: Value| {
        let slug = shown.load.good().unwrap_or_default().text("slug");
        save(session.api(), shown.path.get_untracked(), slug, body)
    };
    let saved = move |_| {
        found.set(None);
        toasts.say("It holds from now on");
        shown.load.reload();
    };
    let start = move || {
        let one = shown.load.good().unwrap_or_default();
        let or = |name: &str, other: Value| one.value(name).cloned().unwrap_or(other);
        json!({"auth_config": or("auth_config", json!({"mode": "public"})), "build_config": or("build_config", json!({}))})
    };
    view! {
        <div class="row between">
            <h2>"Sign-in and API"</h2>
            <div class="row">
                <button type="button" class="btn" aria-busy=move || test.busy.get().to_string() on:click=ask>"Test the sign-in"</button>
                <button type="button" class="btn" on:click=move |_| open.set(true)>"Change"</button>
            </div>
        </div>
        {refusal(test)}
        {move || found.get().map(tested)}
        {loaded(shown.load, waiting(6), told)}
        <Fill open title="Sign-in and API".to_owned() label="Save" form=Form::plain("access") schema=FORM start=Callback::new(move |()| start())
            send=Callback::new(send) done=Callback::new(saved)/>
    }
    .into_any()
}

/// The settings; a secret goes where secrets are, and the settings name it.
fn save(api: Api, path: String, slug: String, mut body: Value) -> Answer {
    Box::pin(async move {
        let secret = body
            .as_object_mut()
            .and_then(|all| all.remove("client_secret"));
        if let Some(secret) = secret {
            let name = format!("{slug}-sign-in");
            let made = json!({"secret_name": name, "secret_value": secret});
            match api.post(SECRETS, &made).await {
                Err(taken) if taken.status == 409 => {
                    let path = format!("{SECRETS}/{}", text::escape(&name));
                    api.put(&path, &json!({ "secret_value": secret })).await?
                }
                made => made?,
            };
            body["auth_config"]["oidc_client_secret_name"] = name.into();
        }
        api.patch(&path, &body).await
    })
}

/// What the test found, way by way.
fn tested(answer: Record) -> AnyView {
    let lines = answer.list("providers").into_iter().map(|one| {
        let state = if one.flag("success") { "healthy" } else { "failed" };
        view! { <li><span class="row">{badge(state)}<strong>{one.text("label")}</strong></span><span>{one.text("message")}</span></li> }.into_any()
    });
    view! { <div role="status" aria-label="What the test found"><ul class="notes">{lines.collect::<Vec<_>>()}</ul></div> }.into_any()
}

/// A provider sends people back to an address that it has to know.
fn callbacks(one: &Record) -> Vec<String> {
    let auth = one.record("auth_config");
    let all = match auth.text("mode").as_str() {
        "clerk" => auth.strings("clerk_allowed_providers"),
        "sso_oidc" => vec!["oidc".to_owned()],
        _ => Vec::new(),
    };
    let url = one.text("url");
    let others = all.iter().map(|name| name.trim_start_matches("oauth_"));
    let others = others.filter(|name| matches!(*name, "google" | "github" | "oidc"));
    others
        .map(|name| format!("{url}/_auth/callback/{name}"))
        .collect()
}

fn told(one: Record) -> AnyView {
    let build = one.record("build_config");
    let rules = build.list("api_allow").into_iter().map(|rule| {
        let methods = match rule.strings("methods") {
            all if all.is_empty() => "every method".to_owned(),
            all => all.join(", "),
        };
        view! { <li><code>{rule.text("pattern")}</code>" "<span class="muted">{methods}</span></li> }.into_any()
    });
    let rules: Vec<_> = rules.collect();
    let rules = match rules.is_empty() {
        true => "reading and searching: retrievers, collections and documents".into_any(),
        false => view! { <ul class="sub-list">{rules}</ul> }.into_any(),
    };
    let variables = build.record("env_vars");
    let own = match variables.text("LOUPE_PRINCIPAL").as_str() {
        "user" => "only documents of their own",
        _ => "all documents that the rules open",
    };
    let listed = listed(&variables.text("LOUPE_LIST_USERS"));
    let callbacks = callbacks(&one).into_iter().map(|url| {
        let copied = Signal::stored(url.clone());
        view! { <span class="uri"><code>{url}</code><Copy text=copied/></span> }.into_any()
    });
    let callbacks: Vec<_> = callbacks.collect();
    let mut all = vec![fact("Who may come in".to_owned(), who(&one).into_any())];
    if !callbacks.is_empty() {
        all.push(fact(
            "The service sends back to".to_owned(),
            callbacks.into_any(),
        ));
    }
    all.push(fact("Visitors may call".to_owned(), rules));
    all.push(fact("They see and change".to_owned(), own.into_any()));
    all.push(fact(
        "They may list each other".to_owned(),
        listed.into_any(),
    ));
    view! { <dl class="facts card">{all}</dl> }.into_any()
}

/// Who may see who else comes, as the server reads the variable: what means nothing to it closes the list.
fn listed(said: &str) -> String {
    let said = said.trim();
    match said.split_once(':') {
        None if said.is_empty() || said.eq_ignore_ascii_case("on") => {
            "yes, with name and address, once signed in".to_owned()
        }
        Some((word, roles)) if word.trim_end().eq_ignore_ascii_case("role") => {
            format!("only people of the role {}", roles.trim())
        }
        _ => "no".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use loupe_wire::UpdateAppRequest;

    use super::*;

    #[test]
    fn what_the_form_makes_is_a_change() {
        let schema = schema::named(FORM).0;
        let modes = &schema["properties"]["auth_config"]["properties"]["mode"]["enum"];
        for mode in modes.as_array().expect("modes") {
            let body = json!({"auth_config": {"mode": mode, "clerk_allowed_providers": ["email"]}, "build_config": {
                "env_vars": {"LOUPE_LIST_USERS": "off"}, "api_allow": [{"methods": ["POST"], "pattern": "/retrievers/*/execute"}]}});
            serde_json::from_value::<UpdateAppRequest>(body).expect("a change");
        }
    }

    #[test]
    fn who_is_listed_is_told_as_the_server_reads_it() {
        assert!(listed("").starts_with("yes") && listed("On").starts_with("yes"));
        assert_eq!(listed("role: editor"), "only people of the role editor");
        for closed in ["off", "OFF", "roles:editor", "nobody"] {
            assert_eq!(listed(closed), "no", "{closed}");
        }
    }

    #[test]
    fn providers_are_told_where_people_come_back() {
        let one = |auth: Value| Record(json!({"url": "http://a.localhost", "auth_config": auth}));
        let clerk =
            one(json!({"mode": "clerk", "clerk_allowed_providers": ["email", "oauth_google"]}));
        assert_eq!(
            callbacks(&clerk),
            ["http://a.localhost/_auth/callback/google"]
        );
        let oidc = one(json!({"mode": "sso_oidc"}));
        assert_eq!(callbacks(&oidc), ["http://a.localhost/_auth/callback/oidc"]);
        assert!(callbacks(&one(json!({"mode": "public"}))).is_empty());
    }
}
