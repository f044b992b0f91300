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

/// The ways to sign in that are allowed beside each other.
const WAYS: &str = "clerk_allowed_providers";

/// The variable that says who may list people. In the form its roles have a field of their own, under a name that means nothing
/// to the server.
const LIST: &str = "LOUPE_LIST_USERS";
const ROLES: &str = "LOUPE_LIST_ROLES";

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
    let start = move || started(&shown.load.good().unwrap_or_default());
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

/// The settings as the form has them.
fn started(one: &Record) -> Value {
    let part = |name: &str| match one.value(name) {
        Some(held) if held.is_object() => Record(held.clone()),
        _ => Record(json!({})),
    };
    let (mut auth, mut build) = (part("auth_config"), part("build_config"));
    if auth.opt("mode").is_none() {
        auth.0["mode"] = "public".into();
    }
    let ways = ways(&auth);
    if let Some(members) = auth.0.as_object_mut() {
        members.remove(WAYS);
    }
    // Elsewhere they say nothing.
    if auth.text("mode") == "clerk" {
        auth.0[WAYS] = json!(ways);
    }
    let said = build.record("env_vars").text(LIST);
    match (roles(&said), listed(&said)) {
        (Some(roles), _) => {
            build.0["env_vars"][LIST] = "role".into();
            build.0["env_vars"][ROLES] = roles.into();
        }
        (None, None) => build.0["env_vars"][LIST] = "off".into(),
        // What holds without a word.
        (None, Some(_)) if !said.is_empty() => build.0["env_vars"][LIST] = "".into(),
        _ => {}
    }
    json!({"auth_config": auth.0, "build_config": build.0})
}

/// Ways by the names that the form has for them. Where none is named, the server allows a service of the app's own with the others.
fn ways(auth: &Record) -> Vec<String> {
    let names = auth.strings(WAYS).into_iter();
    let names: Vec<String> = names
        .map(|name| match name.as_str() {
            "email_password" | "password" => "email".to_owned(),
            other => other.trim_start_matches("oauth_").to_owned(),
        })
        .collect();
    match names.is_empty() && auth.opt("oidc_issuer").is_some() {
        true => ["email", "google", "github", "oidc"]
            .map(str::to_owned)
            .into(),
        false => names,
    }
}

/// What the form made, as the settings have it: what it did not ask for opens no way in.
fn settings(body: &mut Value) {
    let auth = Record(body["auth_config"].clone());
    let own = auth.strings(WAYS).iter().any(|way| way == "oidc");
    if auth.text("mode") == "clerk" && !own {
        for name in [
            "oidc_issuer",
            "oidc_client_id",
            "oidc_client_secret_name",
            "oidc_scopes",
        ] {
            take(&mut body["auth_config"], name);
        }
        take(body, "client_secret");
    }
    // What is not sent stays as it is: what the form has nothing of is said to be none.
    for (name, nothing) in [("api_allow", json!([])), ("env_vars", json!({}))] {
        let named = &mut body["build_config"][name];
        if named.is_null() {
            *named = nothing;
        }
    }
    let variables = &mut body["build_config"]["env_vars"];
    let roles = take(variables, ROLES);
    if variables.get(LIST).is_some_and(|said| said == "role") {
        let roles = roles.as_ref().and_then(Value::as_str).unwrap_or_default();
        variables[LIST] = format!("role:{roles}").into();
    }
}

/// A member, which is there no longer.
fn take(of: &mut Value, name: &str) -> Option<Value> {
    of.as_object_mut().and_then(|all| all.remove(name))
}

/// The settings; a secret goes where secrets are, and the settings name it.
fn save(api: Api, path: String, slug: String, mut body: Value) -> Answer {
    settings(&mut body);
    Box::pin(async move {
        if let Some(secret) = take(&mut body, "client_secret") {
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
    let listed = listed(&variables.text(LIST));
    let mode = one.record("auth_config").text("mode");
    let signs_in = matches!(mode.as_str(), "clerk" | "sso_oidc");
    let warning = (signs_in && listed.is_some()).then(|| {
        view! { <p class="notice warn">"Visitors are told the names and e-mail addresses of other people of this app. Close the list under Change if they should not be."</p> }
    });
    let listed = listed.unwrap_or_else(|| "no".to_owned());
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
    if signs_in {
        let new = match variables.text("LOUPE_SIGN_UP").as_str() {
            "" | "on" => "everybody",
            _ => "only people who were invited",
        };
        all.push(fact("May make an account".to_owned(), new.into_any()));
    }
    all.push(fact("Visitors may call".to_owned(), rules));
    all.push(fact("They see and change".to_owned(), own.into_any()));
    all.push(fact(
        "They may list each other".to_owned(),
        listed.into_any(),
    ));
    view! { {warning}<dl class="facts card">{all}</dl> }.into_any()
}

/// Who may see who else comes, as the server reads the variable: what means nothing to it closes the list.
fn listed(said: &str) -> Option<String> {
    let open = said.trim().is_empty() || said.trim().eq_ignore_ascii_case("on");
    match roles(said) {
        Some(roles) => Some(format!("only people of the role {roles}")),
        None => open.then(|| "yes, with name and address, once signed in".to_owned()),
    }
}

/// The roles that may, where only some may.
fn roles(said: &str) -> Option<&str> {
    let (word, roles) = said.split_once(':')?;
    let named = word.trim().eq_ignore_ascii_case("role");
    named.then(|| roles.trim())
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
        for open in ["", "On"] {
            assert!(listed(open).is_some_and(|told| told.starts_with("yes")));
        }
        let some = listed("role: editor");
        assert_eq!(some.as_deref(), Some("only people of the role editor"));
        for closed in ["off", "OFF", "roles:editor", "nobody"] {
            assert_eq!(listed(closed), None, "{closed}");
        }
    }

    #[test]
    fn roles_that_may_list_have_a_field_of_their_own() {
        let of = |said: &str| json!({"build_config": {"env_vars": {"LOUPE_LIST_USERS": said}}});
        let mut body = started(&Record(of("Role: editor, curator")));
        let variables = &mut body["build_config"]["env_vars"];
        assert_eq!(variables[ROLES], "editor, curator");
        variables[ROLES] = "editor".into();
        settings(&mut body);
        let kept = &of("role:editor")["build_config"]["env_vars"];
        assert_eq!(&body["build_config"]["env_vars"], kept);
        // What closes the list is told as that.
        let body = started(&Record(of("nobody")));
        assert_eq!(body["build_config"]["env_vars"][LIST], "off");
        let mut open = started(&Record(json!({"build_config": {}})));
        settings(&mut open);
        // What nobody filled in is taken away.
        let build = &open["build_config"];
        assert_eq!(
            (&build["env_vars"], &build["api_allow"]),
            (&json!({}), &json!([]))
        );
    }

    #[test]
    fn a_service_of_ones_own_stands_beside_the_others() {
        let of = |ways: Value| {
            let auth = json!({"mode": "clerk", "clerk_allowed_providers": ways, "oidc_issuer": "https://a.example",
                "oidc_client_id": "club", "oidc_scopes": []});
            Record(json!({ "auth_config": auth }))
        };
        let mut body = started(&of(json!([])));
        let ways = json!(["email", "google", "github", "oidc"]);
        assert_eq!(body["auth_config"][WAYS], ways);
        settings(&mut body);
        assert_eq!(body["auth_config"]["oidc_client_id"], "club");
        // Whoever takes it out takes its settings along.
        let mut body = started(&of(json!(["oauth_google", "email_password"])));
        assert_eq!(body["auth_config"][WAYS], json!(["google", "email"]));
        settings(&mut body);
        let left = json!({"mode": "clerk", "clerk_allowed_providers": ["google", "email"]});
        assert_eq!(body["auth_config"], left);
        // Elsewhere the list means nothing, and asks for nothing.
        let other = json!({"mode": "sso_oidc", "clerk_allowed_providers": ["oidc"]});
        let begun = started(&Record(json!({ "auth_config": other })));
        assert_eq!(begun["auth_config"], json!({"mode": "sso_oidc"}));
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
