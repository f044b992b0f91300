//! What changes, as it changes: the change feed from its end on.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::{
    api::{Api, Problem},
    load::Query,
    part::*,
    record::{Record, plain},
    route::{namespace, param},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("When", ""),
    Column("What", ""),
    Column("Of", ""),
    Column("More", ""),
];

/// Events that stay on the page.
const SHOWN: usize = 200;

/// Events in an answer, the most that the server gives.
const STEP: usize = 1000;

/// Time between two looks while something happens, and the most while nothing does.
const SHORT: u32 = 3_000;
const LONG: u32 = 15_000;

/// Kinds of events by the start of their names.
const KINDS: &[&str] = &[
    "object",
    "document",
    "collection",
    "annotation",
    "cluster",
    "taxonomy",
    "trigger",
    "alert",
];

/// What is called by its name where it is told of.
const NAMED: &[&str] = &[
    "collections",
    "retrievers",
    "buckets",
    "clusters",
    "taxonomies",
];

/// What is shown, and how far the feed is read.
#[derive(Clone, Copy)]
struct Feed {
    events: RwSignal<Vec<Record>>,
    problem: RwSignal<Option<Problem>>,
    /// Whether the end of the feed was reached once.
    read: RwSignal<bool>,
    live: RwSignal<bool>,
    cursor: StoredValue<String>,
}

pub fn activity() -> AnyView {
    let session = use_session();
    let (ns, kind) = (param("ns"), Query::new("kind"));
    let feed = Feed {
        events: RwSignal::new(Vec::new()),
        problem: RwSignal::new(None),
        read: RwSignal::new(false),
        live: RwSignal::new(true),
        cursor: StoredValue::new(String::new()),
    };
    follow(session.api_in(ns.get_untracked()), feed);
    provide_context(Names::of(move || session.api_in(ns.get()), NAMED));
    let rows = move || {
        let wanted = kind.value.get();
        let all = feed.events.get().into_iter();
        let all = all.filter(|one| one.text("event_type").starts_with(&wanted));
        all.map(row).collect::<Vec<_>>()
    };
    let inside = move || {
        match (feed.read.get(), rows()) {
        (false, _) => view! { <Skeletons/> }.into_any(),
        (true, rows) if rows.is_empty() => none_match([kind].iter()).unwrap_or_else(|| view! { <Empty icon="pulse" title="Nothing has changed" text="Changes of objects, documents, collections and what works on them stand here within seconds."/> }.into_any()),
        (true, rows) => table("Activity", COLUMNS, rows, Signal::stored(false)),
    }
    };
    view! {
        <Head title="Activity".to_owned() text="What changes in this namespace, as it changes."/>
        <div class="row filters">
            <Pick query=kind label="Kind" all="Everything" options=KINDS/>
            <Check label="Live" checked=feed.live set=move |on| feed.live.set(on)/>
        </div>
        {move || feed.problem.get().map(|problem| view! { <Explain problem/> })}
        {inside}
    }
    .into_any()
}

/// Reads the feed to its end and looks there for more, as long as the page is there and somebody sees it.
fn follow(api: Api, feed: Feed) {
    spawn_local(async move {
        let mut wait = SHORT;
        loop {
            let Some(live) = feed.live.try_get_untracked() else {
                return;
            };
            if live && !document().hidden() {
                match next(&api, feed).await {
                    Some(Ok((_, true))) => continue,
                    Some(Ok((0, false))) => wait = (wait * 3 / 2).min(LONG),
                    Some(Ok(_)) => wait = SHORT,
                    Some(Err(seconds)) => wait = seconds.saturating_mul(1000).max(LONG),
                    None => return,
                }
            }
            TimeoutFuture::new(wait).await;
        }
    });
}

/// One look: how much came and whether there is more at once, or for how many seconds there is no use in asking. None
/// once the page is gone.
async fn next(api: &Api, feed: Feed) -> Option<Result<(usize, bool), u32>> {
    let cursor = feed.cursor.try_get_value()?;
    // The newest come first, and then what follows them.
    let from = match cursor.is_empty() {
        true => format!("tail={SHOWN}"),
        false => format!("cursor={}", text::escape(&cursor)),
    };
    let answer = api.get(&format!("/v1/events?limit={STEP}&{from}")).await;
    let page = match answer {
        Ok(page) => page,
        Err(problem) => {
            let rest = problem.retry_after.unwrap_or(0);
            feed.problem
                .try_set(Some(problem))
                .is_none()
                .then_some(())?;
            return Some(Err(rest));
        }
    };
    let (all, more) = (page.list("results"), page.flag("has_more"));
    let came = all.len();
    feed.problem.try_set(None).is_none().then_some(())?;
    if came > 0 {
        feed.events.try_update(|events| add(events, all))?;
    }
    if let Some(cursor) = page.opt("next_cursor") {
        feed.cursor.try_update_value(|now| *now = cursor)?;
    }
    if !more {
        feed.read.try_set(true).is_none().then_some(())?;
    }
    Some(Ok((came, more)))
}

/// The newest stand first, and the oldest go.
fn add(events: &mut Vec<Record>, new: Vec<Record>) {
    let newest = new.into_iter().rev().take(SHOWN);
    let mut all: Vec<Record> = newest.collect();
    all.append(events);
    all.truncate(SHOWN);
    *events = all;
}

/// Where the thing that changed can be looked at, below the base; what is gone cannot.
fn link(kind: &str, payload: &Record) -> Option<String> {
    let ns = namespace();
    let id = |name: &str| payload.opt(name).map(|id| text::escape(&id));
    if kind.ends_with("deleted") {
        return None;
    }
    let collection = |id: &str| format!("/console/ns/{ns}/collections/{id}");
    if let (Some(of), Some(document)) = (id("collection_id"), id("document_id")) {
        return Some(format!("{}?document={document}", collection(&of)));
    }
    let pages = [
        ("alert_id", "alerts"),
        ("trigger_id", "triggers"),
        ("batch_id", "batches"),
        ("cluster_id", "clusters"),
        ("taxonomy_id", "taxonomies"),
        ("retriever_id", "retrievers"),
        ("bucket_id", "buckets"),
        ("collection_id", "collections"),
    ];
    pages.iter().find_map(|(name, page)| {
        let found = id(name)?;
        match *page {
            // A list with the log of one beside it.
            "alerts" | "triggers" => Some(format!("/console/ns/{ns}/{page}?log={found}")),
            "batches" => Some(format!(
                "/console/ns/{ns}/batches/{}/{found}",
                id("bucket_id")?
            )),
            page => Some(format!("/console/ns/{ns}/{page}/{found}")),
        }
    })
}

/// The word for what an event of a kind is about.
fn subject(kind: &str) -> &str {
    let first = kind.split('.').next().unwrap_or_default();
    first.trim_end_matches('s')
}

/// What that was called then, where the event tells.
fn called(kind: &str, payload: &Record) -> Option<String> {
    let own = format!("{}_name", subject(kind));
    payload.opt("name").or_else(|| payload.opt(&own))
}

/// What an event is about: the id of what its kind names, or the last of its ids; and what else it tells.
fn about(kind: &str, payload: &Record) -> (String, String) {
    let own = format!("{}_name", subject(kind));
    let all = payload.members().into_iter();
    let all = all.filter(|(name, value)| {
        let is_name = name == "name" || *name == own;
        let is_one = !value.0.is_object() && !value.0.is_array() && !plain(&value.0).is_empty();
        !name.starts_with('_') && !is_name && is_one
    });
    let (ids, rest): (Vec<_>, Vec<_>) = all.partition(|(name, _)| name.ends_with("_id"));
    let named = payload.opt(&format!("{}_id", subject(kind)));
    let place = ["namespace_id", "org_id"];
    let last = ids
        .iter()
        .rev()
        .find(|(name, _)| !place.contains(&name.as_str()));
    let own = named.or_else(|| Some(plain(&last?.1.0)));
    let rest = rest.iter().take(4);
    let rest = rest.map(|(name, value)| format!("{} {}", text::words(name), plain(&value.0)));
    (own.unwrap_or_default(), rest.collect::<Vec<_>>().join(", "))
}

fn row(one: Record) -> AnyView {
    let (kind, payload) = (one.text("event_type"), one.record("payload"));
    let (what, more) = about(&kind, &payload);
    let (names, id): (Names, _) = (expect_context(), what.clone());
    let name = called(&kind, &payload);
    let called = move || name.clone().unwrap_or_else(|| names.get(&what));
    let what = match link(&kind, &payload) {
        Some(href) => view! { <a title=id href=href>{called}</a> }.into_any(),
        None => view! { <span title=id>{called}</span> }.into_any(),
    };
    line(vec![
        cell("nowrap", when(one.opt("created_at"))),
        cell(
            "",
            view! { <span class="tag">{text::words(&kind.replace('.', " "))}</span> }.into_any(),
        ),
        cell("", what),
        words("text-cell", more),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_stand_first_and_the_oldest_go() {
        let event = |n: usize| Record(json!({ "seq": n }));
        let mut all = Vec::new();
        add(&mut all, (0..150).map(event).collect());
        add(&mut all, (150..260).map(event).collect());
        assert_eq!(all.len(), SHOWN);
        assert_eq!(
            (all[0].int("seq"), all[SHOWN - 1].int("seq")),
            (Some(259), Some(60))
        );
    }

    #[test]
    fn every_kind_is_one_of_the_feed() {
        for kind in KINDS {
            let name = format!("{kind}.created");
            serde_json::from_value::<loupe_wire::WebhookEventType>(name.into()).expect("an event");
        }
    }

    #[test]
    fn an_event_is_told_by_its_own_id() {
        let payload = Record(
            json!({"namespace_id": "ns_1", "bucket_id": "bkt_1", "object_id": "obj_1", "file_count": 2, "list": [1]}),
        );
        assert_eq!(
            about("object.created", &payload),
            ("obj_1".to_owned(), "file count 2".to_owned())
        );
        assert_eq!(about("bucket.filled", &payload).0, "bkt_1");
        assert_eq!(called("bucket.filled", &payload), None);
        assert_eq!(about("resource.executed", &payload).0, "obj_1");
        assert_eq!(
            about("x", &Record::default()),
            (String::new(), String::new())
        );
    }

    #[test]
    fn what_has_a_name_is_called_by_it_and_nothing_is_not_told() {
        let payload = Record(
            json!({"cluster_id": "clu_1", "cluster_name": "By look", "status": "completed", "error": null, "note": ""}),
        );
        let kind = "cluster.execution.completed";
        assert_eq!(called(kind, &payload).as_deref(), Some("By look"));
        assert_eq!(
            about(kind, &payload),
            ("clu_1".to_owned(), "status completed".to_owned())
        );
        let payload = Record(json!({"alert_id": "alt_1", "collection_id": "", "name": "Owls"}));
        assert_eq!(called("alert.created", &payload).as_deref(), Some("Owls"));
        assert_eq!(
            about("alert.created", &payload),
            ("alt_1".to_owned(), String::new())
        );
    }
}
