//! What surrounds every page: side bar, top bar, choice of namespace and colours.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos_router::hooks::use_location;
use serde_json::json;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::spawn_local;

use crate::{
    leave::Unsaved,
    live,
    load::{Load, navigator},
    palette::Jump,
    part::{Empty, Icon, Toasts},
    route::{outlet, param},
    session::{Session, last_namespace, remember_namespace, use_session},
    text::escape,
};

/// A page of a namespace: its piece of the address, its name, its icon.
type Link = (&'static str, &'static str, &'static str);

pub const IN_NAMESPACE: [(&str, &[Link]); 3] = [
    (
        "Data",
        &[
            ("buckets", "Buckets", "bucket"),
            ("batches", "Batches", "play"),
            ("collections", "Collections", "grid"),
            ("clusters", "Clusters", "spark"),
            ("taxonomies", "Taxonomies", "tree"),
        ],
    ),
    (
        "Search",
        &[
            ("retrievers", "Retrievers", "search"),
            ("published", "Published pages", "globe"),
            ("evaluations", "Evaluations", "chart"),
        ],
    ),
    (
        "Operate",
        &[
            ("activity", "Activity", "pulse"),
            ("triggers", "Triggers", "clock"),
            ("alerts", "Alerts", "alert"),
            ("review", "Review", "check"),
            ("snapshots", "Snapshots", "layers"),
            ("migrations", "Migrations", "out"),
            ("templates", "Templates", "copy"),
            ("configuration", "Configuration", "file"),
        ],
    ),
];

/// Pages of the organization.
pub const OF_ORGANIZATION: [Link; 11] = [
    ("organization", "Plan and usage", "home"),
    ("spending", "Spending", "chart"),
    ("users", "Users", "people"),
    ("keys", "API keys", "key"),
    ("apps", "Apps", "app"),
    ("alerts", "Organization alerts", "alert"),
    ("webhooks", "Webhooks", "link"),
    ("connections", "Connections", "plug"),
    ("secrets", "Secrets", "key"),
    ("audit", "Audit log", "log"),
    ("tasks", "Tasks", "list"),
];

#[component]
pub fn Frame() -> AnyView {
    let session = use_session();
    let path = use_location().pathname;
    let ns = param("ns");
    // The namespace in the address, else the one that was open last.
    let namespace = Memo::new(move |_| {
        Some(ns.get())
            .filter(|ns| !ns.is_empty())
            .or_else(last_namespace)
    });
    Effect::new(move |_| {
        if let Some(namespace) = namespace.get() {
            remember_namespace(&namespace);
        }
    });
    let toasts: Toasts = expect_context();
    // A reload of the page keeps the key but not who it belongs to.
    let me = Load::of(move || session.api(), || "/v1/me".to_owned());
    Effect::new(move |_| match me.value.get() {
        Some(Ok(me)) => session.me.set(Some(me)),
        Some(Err(problem)) if problem.status == 401 => {
            toasts.warn(format!("Signed out: {}", problem.message));
            session.sign_out();
        }
        _ => {}
    });
    let menu = RwSignal::new(false);
    Effect::new(move |_| {
        path.track();
        menu.set(false);
    });
    view! {
        <a class="skip" href="#main">"Skip to the content"</a>
        <div class="frame" class:menu-open=move || menu.get()>
            <Side namespace path/>
            <header class="top">
                <button type="button" class="btn ghost icon menu-button" aria-label="Menu" aria-expanded=move || menu.get().to_string()
                    aria-controls="side" on:click=move |_| menu.update(|open| *open = !*open)><Icon name="menu"/></button>
                <Namespaces session namespace/>
                <span class="grow"></span>
                <Jump namespace/>
                <Bell session/>
                <Account session/>
            </header>
            <main id="main" tabindex="-1"><div class="content stack">{outlet()}</div></main>
            <button type="button" class="veil" aria-label="Close the menu" tabindex="-1" on:click=move |_| menu.set(false)></button>
        </div>
    }
    .into_any()
}

/// Brings the link of the open page into sight where the side bar is longer than the window.
fn reveal() {
    let part = |selector: &str| {
        let found = document().query_selector(selector).ok().flatten();
        found.and_then(|found| found.dyn_into::<web_sys::HtmlElement>().ok())
    };
    let (Some(bar), Some(link)) = (part("#side"), part("#side [aria-current]")) else {
        return;
    };
    let (above, room, top) = (bar.scroll_top(), bar.client_height(), link.offset_top());
    if top < above || top + link.offset_height() > above + room {
        bar.set_scroll_top(top - room / 2);
    }
}

#[component]
fn Side(namespace: Memo<Option<String>>, path: Memo<String>) -> AnyView {
    Effect::new(move |_| {
        path.track();
        namespace.track();
        spawn_local(async {
            // The links are what they will be once everything that changes has changed.
            TimeoutFuture::new(0).await;
            reveal();
        });
    });
    let link = move |href: String, label: &'static str, icon: &'static str| {
        let here = {
            let href = href.clone();
            move || path.with(|p| p == &href || p.starts_with(&format!("{href}/")))
        };
        view! { <li><a class="side-link" href=href aria-current=move || here().then_some("page")><Icon name=icon/>{label}</a></li> }.into_any()
    };
    view! {
        <nav id="side" class="side-bar" aria-label="Console">
            <a class="brand" href="/console/namespaces"><Icon name="search" size=18/>"Loupe"</a>
            <ul class="side-list">{link("/console/namespaces".into(), "Namespaces", "layers")}</ul>
            {move || namespace.get().map(|namespace| IN_NAMESPACE.iter().map(|(group, links)| view! {
                <p class="side-group">{*group}</p>
                <ul class="side-list">{links.iter().map(|(page, label, icon)| link(format!("/console/ns/{namespace}/{page}"), label, icon)).collect::<Vec<_>>()}</ul>
            }.into_any()).collect::<Vec<_>>())}
            <p class="side-group">"Organization"</p>
            <ul class="side-list">{OF_ORGANIZATION.iter().map(|(page, label, icon)| link(format!("/console/{page}"), label, icon)).collect::<Vec<_>>()}</ul>
        </nav>
    }
    .into_any()
}

#[component]
fn Namespaces(session: Session, namespace: Memo<Option<String>>) -> AnyView {
    let all = Load::new(move || {
        session.namespaces_changed.track();
        session
            .api()
            .post("/v1/namespaces/list?limit=100", &json!({}))
    });
    let (go, unsaved) = (navigator(), expect_context::<Unsaved>());
    let before = StoredValue::new(String::new());
    let choose = move |event: leptos::ev::Event| {
        let chosen = event_target_value(&event);
        if !unsaved.may_leave() {
            let select: web_sys::HtmlSelectElement = event_target(&event);
            select.set_value(&before.get_value());
        } else if !chosen.is_empty() {
            go(&format!("/ns/{}/collections", escape(&chosen)));
        }
    };
    // What was chosen before stands there again when the page stays.
    let keep = move |event: leptos::ev::FocusEvent| {
        before.set_value(event_target_value(&event));
    };
    view! {
        <select class="select switcher" aria-label="Namespace" on:focus=keep on:change=choose>
            {move || {
                let now = namespace.get();
                let known = all.good().map(|all| all.list("results")).unwrap_or_default();
                let open = now.as_ref().is_some_and(|now| known.iter().any(|n| &n.text("namespace_id") == now || &n.text("namespace_name") == now));
                view! {
                    {(!open).then(|| view! { <option value="" selected=true>{now.clone().unwrap_or_else(|| "No namespace".into())}</option> })}
                    {known.into_iter().map(|one| {
                        let (id, name) = (one.first(&["namespace_id", "namespace_name"]), one.text("namespace_name"));
                        let selected = now.as_ref().is_some_and(|now| now == &id || now == &name);
                        view! { <option value=id selected=selected>{name}</option> }
                    }).collect_view()}
                }
            }}
        </select>
    }.into_any()
}

const UNREAD: &str = "/v1/notifications/unread/count";

/// How much nobody has read yet, as the server tells it.
#[component]
fn Bell(session: Session) -> AnyView {
    let unread = Load::of(
        move || session.api(),
        move || {
            session.notifications_changed.track();
            UNREAD.to_owned()
        },
    );
    let wanted = move || unread.value.try_get_untracked().is_some();
    live::follow(
        move || session.api(),
        UNREAD,
        wanted,
        move |one| unread.put(one),
    );
    let count = move || unread.good().and_then(|one| one.int("count")).unwrap_or(0);
    let label = move || match count() {
        0 => "Notifications".to_owned(),
        count => format!("Notifications, {count} unread"),
    };
    let badge = move || {
        let shown = match count() {
            0 => return None,
            count @ 1..100 => count.to_string(),
            _ => "99+".into(),
        };
        Some(view! { <span class="count" aria-hidden="true">{shown}</span> })
    };
    view! { <a class="btn ghost icon bell" href="/console/notifications" title=label aria-label=label><Icon name="bell"/>{badge}</a> }.into_any()
}

#[component]
fn Account(session: Session) -> AnyView {
    let who = move || {
        session.me.get().map(|me| {
            let name = me.first(&["organization_name", "organization_id"]);
            let person = me.opt("user_email").unwrap_or_else(|| me.record("key").text("name"));
            view! { <span class="who"><strong class="truncate">{name}</strong><span class="muted truncate">{person}</span></span> }
        })
    };
    let unsaved: Unsaved = expect_context();
    let sign_out = move |_| {
        if unsaved.may_leave() {
            session.sign_out();
        }
    };
    let next = move || match session.theme.get().as_str() {
        "auto" => ("light", "auto", "Colours: as the system"),
        "light" => ("dark", "sun", "Colours: light"),
        _ => ("auto", "moon", "Colours: dark"),
    };
    view! {
        {who}
        <button type="button" class="btn ghost icon" aria-label=move || next().2 title=move || next().2
            on:click=move |_| session.set_theme(next().0)>{move || view! { <Icon name=next().1/> }}</button>
        <button type="button" class="btn ghost icon" aria-label="Sign out" title="Sign out" on:click=sign_out><Icon name="out"/></button>
    }.into_any()
}

/// An address that leads nowhere.
#[component]
pub fn Lost() -> AnyView {
    view! {
        <h1>"There is no such page"</h1>
        <Empty icon="search" title="Nothing here" text="The address may be old or mistyped.">
            <a class="btn primary" href="/console/namespaces">"To the namespaces"</a>
        </Empty>
    }
    .into_any()
}
