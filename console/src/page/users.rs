use leptos::prelude::*;
use serde_json::json;

use super::keys::{end, found, keys_path};
use crate::{
    api::Problem,
    load::{Change, Load, Query},
    part::*,
    record::{Record, page},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Name", ""),
    Column("Role", ""),
    Column("Status", ""),
    Column("Last call", ""),
    Column("Since", ""),
    Column("", "actions"),
];

const BLANK: Blank = Blank {
    icon: "people",
    title: "No user here",
    text: "Users hold keys. Whoever is added here gets a key from you, and signs in with it.",
    link: None,
};

const ROLES: &[&str] = &["admin", "member", "viewer"];
const STATES: &[&str] = &["active", "suspended", "pending"];

/// What a role is for. It is told, not enforced: keys say what their holder may do.
fn effect(role: &str) -> &'static str {
    match role {
        "admin" => "Admin: looks after users, keys and settings",
        "viewer" => "Viewer: comes to look",
        _ => "Member: works with data and searches",
    }
}

const ROLE_HINT: &str = "Says what somebody is here for. What they may do is said by their keys.";

fn user_path(email: &str) -> String {
    format!("/v1/organizations/users/{}", text::escape(email))
}

/// The user in question, for the dialogs.
#[derive(Clone, Copy)]
struct Asked {
    user: RwSignal<Record>,
    change: RwSignal<bool>,
    suspend: RwSignal<bool>,
    remove: RwSignal<bool>,
}

pub fn users() -> AnyView {
    let session = use_session();
    let (role, status, offset) = (
        Query::new("role"),
        Query::new("status"),
        Query::new("offset"),
    );
    let load = Load::of(
        move || session.api(),
        move || {
            // A row shows whether it is the reader's own: drawn before that is known, it would move.
            if session.me.with(Option::is_none) {
                return String::new();
            }
            let mut path = format!("/v1/organizations/users?limit=50&skip={}", offset.number());
            for (name, query) in [("role", role), ("status", status)] {
                query.value.with(|value| {
                    if !value.is_empty() {
                        path += &format!("&{name}={}", text::escape(value));
                    }
                });
            }
            path
        },
    );
    let create = RwSignal::new(false);
    let asked = Asked {
        user: RwSignal::new(Record::default()),
        change: RwSignal::new(false),
        suspend: RwSignal::new(false),
        remove: RwSignal::new(false),
    };
    provide_context(asked);
    view! {
        <ListPage title="Users" text="People of this organization. What they may do is said by the keys that they hold." load offset columns=COLUMNS row blank=BLANK
            create=Create::Dialog("Add user", create) picks=vec![role, status]>
            <Pick query=role label="Role" all="Every role" options=ROLES/>
            <Pick query=status label="Status" all="Every status" options=STATES/>
        </ListPage>
        <Add open=create load/>
        <Edit asked load/>
        <Suspend asked load/>
        <Gone asked load/>
    }
    .into_any()
}

fn row(one: Record) -> AnyView {
    let session = use_session();
    let asked: Asked = expect_context();
    let email = one.text("email");
    let me = session
        .me
        .with(|me| me.as_ref().is_some_and(|me| me.text("user_email") == email));
    let who = one.text("user_name");
    let active = one.text("status") != "suspended";
    let button = |label: &'static str, open: RwSignal<bool>| {
        let (user, said) = (one.clone(), format!("{label} {who}"));
        let ask = move |_| {
            asked.user.set(user.clone());
            open.set(true);
        };
        view! { <button type="button" class="btn small" aria-label=said on:click=ask>{label}</button>" " }.into_any()
    };
    let keys = format!("/console/keys?user={}", text::escape(&email));
    // Nobody locks themselves out by a slip.
    let suspend =
        (!me).then(|| button(if active { "Suspend" } else { "Take back" }, asked.suspend));
    let remove = (!me).then(|| button("Remove", asked.remove));
    let buttons = view! { <a class="btn small" href=keys aria-label=format!("Keys of {who}")>"Keys"</a>" "{button("Change", asked.change)}{suspend}{remove} };
    line(vec![
        name(
            None,
            format!("{who}{}", if me { " (you)" } else { "" }),
            email,
        ),
        words("", one.text("role")),
        cell("", badge(&one.text("status"))),
        cell("nowrap", when(one.opt("last_login_at"))),
        cell("nowrap", when(one.opt("created_at"))),
        cell("actions", buttons.into_any()),
    ])
}

fn roles() -> Vec<(String, String)> {
    ROLES
        .iter()
        .map(|role| (role.to_string(), effect(role).to_owned()))
        .collect()
}

#[component]
fn Add(open: RwSignal<bool>, load: Load) -> AnyView {
    let session = use_session();
    let toasts: Toasts = expect_context();
    let (name, email) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let role = RwSignal::new("member".to_owned());
    let change = Change::new();
    let submit = Callback::new(move |()| {
        let body = json!({"user_name": name.get_untracked().trim(), "email": email.get_untracked().trim(), "role": role.get_untracked()});
        change.run(
            session.api().post("/v1/organizations/users", &body),
            move |made| {
                open.set(false);
                name.set(String::new());
                email.set(String::new());
                toasts.say(format!(
                    "{} was added; make a key for them next",
                    made.text("user_name")
                ));
                load.reload();
            },
        );
    });
    view! {
        <Ask open title="Add a user".to_owned() label="Add user" change submit>
            <Field id="user-name" label="Name" value=name required=true/>
            <Field id="user-email" label="E-mail address" value=email kind="email" required=true hint="Loupe sends no mail: hand over a key yourself."/>
            <Choice id="user-role" label="Role" value=role options=roles() hint=ROLE_HINT/>
        </Ask>
    }
    .into_any()
}

#[component]
fn Edit(asked: Asked, load: Load) -> AnyView {
    let session = use_session();
    let (name, role) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let change = Change::new();
    Effect::new(move |_| {
        let user = asked.user.get();
        name.set(user.text("user_name"));
        role.set(user.text("role"));
    });
    let submit = Callback::new(move |()| {
        let path = user_path(&asked.user.get_untracked().text("email"));
        let body = json!({"user_name": name.get_untracked().trim(), "role": role.get_untracked()});
        change.run(session.api().patch(&path, &body), move |_| {
            asked.change.set(false);
            load.reload();
        });
    });
    let title = Signal::derive(move || format!("Change {}", asked.user.get().text("user_name")));
    view! {
        <Ask open=asked.change title label="Save" change submit>
            <Field id="edit-name" label="Name" value=name required=true/>
            <Choice id="edit-role" label="Role" value=role options=roles() hint=ROLE_HINT/>
        </Ask>
    }
    .into_any()
}

/// Suspends, after saying which keys die of it; or takes a suspended user back.
#[component]
fn Suspend(asked: Asked, load: Load) -> AnyView {
    let session = use_session();
    let toasts: Toasts = expect_context();
    let change = Change::new();
    let back = Signal::derive(move || asked.user.get().text("status") == "suspended");
    let keys = Load::of(
        move || session.api(),
        move || match asked.suspend.get() {
            true => keys_path(&asked.user.get().text("email")),
            false => String::new(),
        },
    );
    let submit = Callback::new(move |()| {
        let user = asked.user.get_untracked();
        let status = if back.get_untracked() {
            "active"
        } else {
            "suspended"
        };
        let call = session
            .api()
            .patch(&user_path(&user.text("email")), &json!({"status": status}));
        change.run(call, move |_| {
            asked.suspend.set(false);
            toasts.say(format!("{} is {status}", user.text("user_name")));
            load.reload();
        });
    });
    let title = Signal::derive(move || {
        let name = asked.user.get().text("user_name");
        if back.get() {
            format!("Take {name} back?")
        } else {
            format!("Suspend {name}?")
        }
    });
    let body = move || {
        if back.get() {
            return view! { <p>"The user may hold keys again. The keys of before stay revoked: make new ones."</p> }.into_any();
        }
        loaded(keys, waiting(2), dying)
    };
    view! { <Ask open=asked.suspend title label="Confirm" danger=true change submit>{body}</Ask> }
        .into_any()
}

/// Removes a user once the address was typed: what went with the user does not come back. Where live apps have such keys in them,
/// that is told first.
#[component]
fn Gone(asked: Asked, load: Load) -> AnyView {
    let session = use_session();
    let toasts: Toasts = expect_context();
    let (change, typed) = (Change::new(), RwSignal::new(String::new()));
    let refused = RwSignal::new(None::<Problem>);
    let open = asked.remove;
    let email = Signal::derive(move || asked.user.get().text("email"));
    Effect::new(move |_| {
        if open.get() {
            refused.set(None);
            typed.set(String::new());
        }
    });
    let submit = Callback::new(move |()| {
        let (email, force) = (
            email.get_untracked(),
            refused.with_untracked(Option::is_some),
        );
        if typed.get_untracked().trim() != email {
            change.refuse("this is not the address");
            return;
        }
        let path = format!("{}?force={force}", user_path(&email));
        change.run(end(session.api(), path, refused), move |answer| {
            if !answer.flag("kept") {
                open.set(false);
                toasts.say(format!("{email} is removed"));
                load.reload();
            }
        });
    });
    let title = Signal::derive(move || format!("Remove {}?", asked.user.get().text("user_name")));
    view! {
        <Ask open title label="Remove" danger=true change submit>
            <p>"The keys of this user are revoked for good, at once. What the user made stays, and the address is free again. This cannot be undone."</p>
            {move || refused.get().map(|problem| view! {
                <div class="notice warn" role="alert">
                    <strong>"Live apps have keys of this user in them: they stop working"</strong>
                    <ul>{found(&problem)}</ul>
                </div>
            }.into_any())}
            <Confirm name=email typed/>
        </Ask>
    }
    .into_any()
}

/// The keys that a suspension ends.
fn dying(answer: Record) -> AnyView {
    let (mut keys, _) = page(&answer);
    keys.retain(|key| key.text("status") == "active");
    if keys.is_empty() {
        return view! { <p>"This user holds no key. Until taken back, none can be made."</p> }
            .into_any();
    }
    let lines = keys.iter().map(|key| {
        view! { <li><strong>{key.text("name")}</strong>", last used "{when(key.opt("last_used_at"))}</li> }.into_any()
    });
    view! {
        <div class="notice bad">
            <strong>{format!("{} revoked for good, at once:", if keys.len() == 1 { "This key is".into() } else { format!("These {} keys are", keys.len()) })}</strong>
            <ul>{lines.collect::<Vec<_>>()}</ul>
            <span>"Taking the user back does not bring them back."</span>
        </div>
    }
    .into_any()
}
