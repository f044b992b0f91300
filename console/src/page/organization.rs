//! The organization: its name, its plan, what it may use and what it uses.

mod plans;

use leptos::prelude::*;
use serde_json::json;

use self::plans::Plans;
use super::key_usage::{KINDS, parts, usage_path};
use crate::{
    load::{Change, Load},
    part::{
        chart::{Bar, chart, meter},
        *,
    },
    record::Record,
    session::use_session,
    text,
};

/// What a quota counts, as the server names it, and as people do.
const QUOTAS: [(&str, &str); 8] = [
    ("namespaces", "Namespaces"),
    ("buckets", "Buckets"),
    ("collections", "Collections"),
    ("documents", "Documents"),
    ("retrievers", "Retrievers"),
    ("taxonomies", "Taxonomies"),
    ("clusters", "Clusters"),
    ("api_keys", "API keys, but the protected one"),
];

/// Keys that the chart has room for.
const BARS: usize = 8;

pub fn organization() -> AnyView {
    let session = use_session();
    let about = Load::of(move || session.api(), || "/v1/organizations".to_owned());
    let used = Load::of(
        move || session.api(),
        || "/v1/organizations/quotas".to_owned(),
    );
    let keys = Load::of(move || session.api(), usage_path);
    // Another plan has other limits.
    Effect::new(move |before: Option<Option<String>>| {
        let plan = about.good().map(|org| org.text("account_type"));
        if before
            .flatten()
            .is_some_and(|before| plan.as_ref() != Some(&before))
        {
            used.reload();
        }
        plan
    });
    let (rename, choose) = (RwSignal::new(false), RwSignal::new(false));
    let rates = move || session.me.get().map(|me| rates(&me.record("rate_limits")));
    view! {
        <Head title="Plan and usage".to_owned() text="What this organization may use, and what it uses.">
            <button type="button" class="btn" disabled=move || about.good().is_none() on:click=move |_| choose.set(true)>"Choose a plan"</button>
            <button type="button" class="btn" disabled=move || about.good().is_none() on:click=move |_| rename.set(true)>"Change the settings"</button>
        </Head>
        <div class="stack plan-room">{loaded(about, waiting(3), plan)}</div>
        <div class="halves">
            <section class="card stack" aria-labelledby="quotas"><h2 id="quotas">"Quotas"</h2>{loaded(used, lines(QUOTAS.len()), quotas)}</section>
            <section class="card stack" aria-labelledby="rates"><h2 id="rates">"Limits on calls"</h2>{rates}</section>
        </div>
        <section class="card stack" aria-labelledby="by-key"><h2 id="by-key">"Requests by key, last 7 days"</h2>
            <div class="chart-room">{loaded(keys, lines(5), by_key_chart)}</div></section>
        <Settings open=rename about/>
        <Plans open=choose about/>
    }
    .into_any()
}

/// Lines of nothing yet, as high as what comes.
fn lines(count: usize) -> ViewFn {
    ViewFn::from(move || {
        let all = (0..count)
            .map(|_| view! { <li class="meter"><span class="skeleton"></span></li> }.into_any());
        view! { <ul class="meters" aria-busy="true">{all.collect::<Vec<_>>()}</ul> }.into_any()
    })
}

fn plan(org: Record) -> AnyView {
    let tier = org.text("account_type");
    let choose = org.flag("requires_plan").then(|| {
        view! {
            <div class="notice warn" role="alert">
                <strong>"No plan is chosen"</strong>
                <span>"Until one is, nothing can be created, processed or searched."</span>
            </div>
        }
    });
    let mail = org.opt("billing_email").unwrap_or_else(|| "none".into());
    let id = org.text("organization_id");
    view! {
        {choose}
        <dl class="stats">
            {stat("Organization", org.text("organization_name").into_any())}
            {stat("Plan", tier.into_any())}
            <div class="stat"><dt>"Bills go to"</dt><dd class="truncate">{mail}</dd></div>
        </dl>
        <div class="uri"><span class="muted">"Created "{when(org.opt("created_at"))}</span><span class="row nowrap"><code>{id.clone()}</code><Copy text=Signal::stored(id)/></span></div>
    }
    .into_any()
}

fn rates(all: &Record) -> AnyView {
    let lines = [
        ("Requests a minute, each key", "requests_per_minute"),
        ("Requests a second, each key", "requests_per_second"),
        ("Saved up by an idle key", "burst"),
        ("At the same time", "concurrent_requests"),
    ];
    let lines = lines.into_iter().filter_map(|(label, name)| {
        let n = text::count(all.int(name)?);
        Some(view! { <dt>{label}</dt><dd class="num">{n}</dd> }.into_any())
    });
    view! { <dl class="facts wide-terms">{lines.collect::<Vec<_>>()}</dl> }.into_any()
}

/// Each quota with what is used of it and its limit, where the plan has one.
fn quotas(answer: Record) -> AnyView {
    let told = answer.list("quotas");
    let of = |name: &str| told.iter().find(|one| one.text("resource") == name);
    let all = QUOTAS.iter().filter_map(|(name, label)| {
        let one = of(name)?;
        Some(meter(
            (*label).to_owned(),
            one.int("current")?,
            one.int("limit"),
        ))
    });
    let batch = of("batch_objects").and_then(|one| one.int("limit"));
    let batch = batch.map(|most| {
        let words = format!("One batch takes at most {} objects.", text::count(most));
        view! { <p class="muted">{words}</p> }
    });
    view! { <ul class="meters">{all.collect::<Vec<_>>()}</ul>{batch} }.into_any()
}

fn by_key_chart(answer: Record) -> AnyView {
    // The busiest come first.
    let keys = answer.list("results").into_iter().take(BARS);
    let bars = keys.map(|one| (one.text("key_name"), parts(&one)));
    chart(
        "Requests by key",
        KINDS,
        bars.collect::<Vec<Bar>>(),
        (330.0, 940.0),
    )
}

#[component]
fn Settings(open: RwSignal<bool>, about: Load) -> AnyView {
    let session = use_session();
    let (name, mail) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let change = Change::new();
    Effect::new(move |_| {
        // What was written and not saved is not there when it opens again.
        open.track();
        if let Some(org) = about.good() {
            name.set(org.text("organization_name"));
            mail.set(org.text("billing_email"));
        }
    });
    let submit = Callback::new(move |()| {
        let mail = Some(mail.get_untracked().trim().to_owned()).filter(|mail| !mail.is_empty());
        let body = json!({"organization_name": name.get_untracked().trim(), "billing_email": mail});
        change.run(
            session.api().patch("/v1/organizations", &body),
            move |org| {
                open.set(false);
                // The top bar has the name, too.
                session.me.update(|me| {
                    if let Some(me) = me {
                        me.0["organization_name"] = org.text("organization_name").into();
                    }
                });
                about.reload();
            },
        );
    });
    view! {
        <Ask open title="Settings of the organization".to_owned() label="Save" change submit>
            <Field id="org-name" label="Name" value=name required=true/>
            <Field id="org-mail" label="Address for bills" value=mail kind="email"/>
        </Ask>
    }
    .into_any()
}
