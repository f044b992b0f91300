//! The organization: its name, its plan, what it may use and what it uses.

mod plans;

use leptos::prelude::*;
use serde_json::{Value, json};

use self::plans::Plans;
use super::{
    key_usage::{KINDS, parts},
    keys::keys_path,
};
use crate::{
    api::{Api, Problem},
    load::{Change, Load},
    part::{
        chart::{Bar, chart, meter},
        *,
    },
    record::{Record, page},
    session::use_session,
    text,
};

/// What a quota counts, in small plans and in the next ones; enterprise has none. The server enforces the same figures.
const QUOTAS: [(&str, &str, i64, i64); 8] = [
    ("namespaces", "Namespaces", 1, 10),
    ("buckets", "Buckets", 5, 50),
    ("collections", "Collections", 5, 50),
    ("documents", "Documents", 10_000, 1_000_000),
    ("retrievers", "Retrievers", 3, 50),
    ("taxonomies", "Taxonomies", 2, 20),
    ("clusters", "Clusters", 1, 10),
    ("keys", "API keys in use", 2, 10),
];

/// Objects of one batch, as [`QUOTAS`].
const BATCH: (i64, i64) = (100, 10_000);

/// Namespaces and keys that are looked into, so that a page stays a page.
const AT_MOST: usize = 20;

fn limit(tier: &str, small: i64, large: i64) -> Option<i64> {
    match tier {
        "free" | "build" => Some(small),
        "pro" | "scale" | "team" => Some(large),
        _ => None,
    }
}

pub fn organization() -> AnyView {
    let session = use_session();
    let about = Load::of(move || session.api(), || "/v1/organizations".to_owned());
    let used = Load::new(move || counted(session.api()));
    let keys = Load::new(move || by_key(session.api()));
    let (rename, choose) = (RwSignal::new(false), RwSignal::new(false));
    let rates = move || session.me.get().map(|me| rates(&me.record("rate_limits")));
    let quotas = move |counts: Record| {
        let tier = about
            .good()
            .map_or_else(String::new, |org| org.text("account_type"));
        let all = QUOTAS.iter().map(|(name, label, small, large)| {
            meter(
                (*label).to_owned(),
                counts.int(name).unwrap_or(0),
                limit(&tier, *small, *large),
            )
        });
        let partly = counts
            .flag("partly")
            .then(|| view! { <p class="muted">"Of the first 20 namespaces."</p> });
        let batch = limit(&tier, BATCH.0, BATCH.1).map(|most| {
            let words = format!("One batch takes at most {} objects.", text::count(most));
            view! { <p class="muted">{words}</p> }
        });
        view! { <ul class="meters">{all.collect::<Vec<_>>()}</ul>{batch}{partly} }.into_any()
    };
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

/// How many rows a list has.
async fn total(api: &Api, path: &str) -> Result<i64, Problem> {
    let answer = api
        .post(&format!("{path}?limit=1&include_total=true"), &json!({}))
        .await?;
    Ok(page(&answer).1)
}

/// What is there of each thing that a quota counts. No operation says it in one answer, so the lists do.
async fn counted(api: Api) -> Result<Record, Problem> {
    let answer = api
        .post(
            "/v1/namespaces/list?limit=100&include_total=true",
            &json!({}),
        )
        .await?;
    let (namespaces, all) = page(&answer);
    let (mut buckets, mut collections, mut documents, mut retrievers) = (0, 0, 0, 0);
    let (mut taxonomies, mut clusters) = (0, 0);
    for one in namespaces.iter().take(AT_MOST) {
        let within = Api {
            namespace: one.opt("namespace_id"),
            ..api.clone()
        };
        buckets += total(&within, "/v1/buckets/list").await?;
        retrievers += total(&within, "/v1/retrievers/list").await?;
        taxonomies += total(&within, "/v1/taxonomies/list").await?;
        clusters += total(&within, "/v1/clusters/list").await?;
        let found = within
            .post(
                "/v1/collections/list?limit=100&include_total=true",
                &json!({}),
            )
            .await?;
        let (rows, many) = page(&found);
        collections += many;
        documents += rows
            .iter()
            .filter_map(|one| one.int("document_count"))
            .sum::<i64>();
    }
    let keys = every_key(&api).await?;
    let keys = keys.iter().filter(|key| counts(key)).count();
    Ok(Record(json!({
        "namespaces": all, "buckets": buckets, "collections": collections, "documents": documents, "retrievers": retrievers,
        "taxonomies": taxonomies, "clusters": clusters, "keys": keys, "partly": namespaces.len() > AT_MOST,
    })))
}

/// Whether the quota counts a key: one that is in use, but not the organization's own, which the server itself made.
fn counts(key: &Record) -> bool {
    key.text("status") == "active" && key.opt("created_by").as_deref() != Some("system")
}

/// The keys in use of the first users.
async fn every_key(api: &Api) -> Result<Vec<Record>, Problem> {
    let users = api.get("/v1/organizations/users?limit=50").await?;
    let mut out = Vec::new();
    for user in page(&users).0.iter().take(AT_MOST) {
        let keys = api.get(&keys_path(&user.text("email"))).await?;
        out.extend(page(&keys).0);
    }
    Ok(out)
}

/// What each key was used for within a week, the busiest first.
async fn by_key(api: Api) -> Result<Record, Problem> {
    let start = text::escape(&text::before(7.0));
    let mut all: Vec<(i64, Value)> = Vec::new();
    for key in every_key(&api).await?.iter().take(AT_MOST) {
        let path = format!(
            "/v1/organizations/api-keys/{}/usage?start={start}",
            text::escape(&key.text("key_id"))
        );
        let sum = api.get(&path).await?;
        let one = json!({"name": key.text("name"), "parts": parts(&sum)});
        all.push((sum.int("requests").unwrap_or(0), one));
    }
    all.sort_by_key(|(requests, _)| -requests);
    let all: Vec<Value> = all.into_iter().map(|(_, one)| one).take(8).collect();
    Ok(Record(json!({"results": all})))
}

fn by_key_chart(answer: Record) -> AnyView {
    let bars = answer.list("results").into_iter().map(|one| {
        let parts = one
            .list("parts")
            .into_iter()
            .map(|n| n.0.as_i64().unwrap_or(0));
        (one.text("name"), parts.collect())
    });
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{counts, limit};
    use crate::record::Record;

    #[test]
    fn a_quota_counts_the_keys_that_people_made() {
        let key = |status: &str, by: &str| Record(json!({"status": status, "created_by": by}));
        assert!(counts(&key("active", "key_1")));
        assert!(!counts(&key("expired", "key_1")));
        assert!(!counts(&key("active", "system")));
    }

    #[test]
    fn plans_have_their_limits() {
        assert_eq!(limit("free", 1, 10), Some(1));
        assert_eq!(limit("team", 1, 10), Some(10));
        assert_eq!(limit("enterprise", 1, 10), None);
    }
}
