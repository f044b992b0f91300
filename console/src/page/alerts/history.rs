//! What an alert found, look by look.

use leptos::prelude::*;

use crate::{
    api::Api,
    load::{Load, Query},
    part::*,
    record::{Record, page},
    route::namespace,
    text,
};

const LOOKS: &[Column] = &[
    Column("When", ""),
    Column("Outcome", ""),
    Column("Found", ""),
    Column("Told", ""),
    Column("Took", "num"),
];

const NO_LOOKS: Blank = Blank {
    icon: "alert",
    title: "It has not looked yet",
    text: "Every look stands here for two days, and for 90 when it fired.",
    link: None,
};

/// Shows what the alert with this id found.
pub fn act(log: Query, id: &str) -> Act {
    let id = id.to_owned();
    Act("History", Box::new(move || log.set(&id)))
}

/// What the alert in the address found, look by look.
pub fn panel(
    all: Load,
    log: Query,
    path_of: fn(&str) -> String,
    api: impl Fn() -> Api + 'static,
) -> AnyView {
    let from = Query::new("from");
    let load = Load::of(api, move || match log.value.get() {
        id if id.is_empty() => id,
        id => format!("{}/executions{}", path_of(&id), page_query(from)),
    });
    load.poll_while(|one| {
        let told = one.list("deliveries");
        told.iter()
            .any(|one| matches!(one.text("status").as_str(), "pending" | "deferred"))
    });
    let title = Signal::derive(move || {
        let id = log.value.get();
        let known = all.good().map(|all| page(&all).0).unwrap_or_default();
        let name = known.into_iter().find(|one| one.text("alert_id") == id);
        format!("History of {}", name.map_or(id, |one| one.text("name")))
    });
    view! { <Log open=log.is_named() title load columns=LOOKS row=look blank=NO_LOOKS offset=from above=ViewFn::from(|| ())/> }.into_any()
}

fn look(one: Record) -> AnyView {
    let own = one.text("collection_id");
    let ns = namespace();
    let count = one.int("match_count").unwrap_or(0);
    let found = one.list("matches").into_iter().take(5).map(|found| {
        let id = found.text("document_id");
        let score = format!(" {}", figure(found.float("score").unwrap_or(0.0)));
        // Where the document is stands with it, where the alert looks into several collections.
        let place = found.record("metadata").opt("collection_id");
        let collection = place.unwrap_or_else(|| own.clone());
        // An alert of the organization stands in no namespace: nothing says which one the collection is in.
        let shown = match collection.is_empty() || ns.is_empty() {
            true => view! { <code>{id}</code> }.into_any(),
            false => {
                let href = format!(
                    "/console/ns/{ns}/collections/{collection}?document={}",
                    text::escape(&id)
                );
                view! { <a href=href>{id}</a> }.into_any()
            }
        };
        view! { <li>{shown}{score}</li> }.into_any()
    });
    let told = one.list("deliveries").into_iter().map(|told| {
        let line = format!("{} ", told.text("channel_type"));
        view! { <li>{line}{badge(&told.text("status"))}<span class="sub">{told.text("error")}</span></li> }.into_any()
    });
    let why = one.opt("error").map(|why| failure(&one, &why));
    let why = why.map(|said| view! { <span class="sub">{said}</span> });
    let (found, told) = (found.collect::<Vec<_>>(), told.collect::<Vec<_>>());
    line(vec![
        cell("nowrap", when(one.opt("executed_at"))),
        cell("", view! { {badge(outcome(&one))}{why} }.into_any()),
        cell(
            "",
            view! { {text::count(count)}<ul class="sub-list">{found}</ul> }.into_any(),
        ),
        cell("", view! { <ul class="sub-list">{told}</ul> }.into_any()),
        words(
            "num nowrap",
            one.float("duration_ms")
                .map(text::millis)
                .unwrap_or_default(),
        ),
    ])
}

/// A score with as many digits as tell it from nothing: those of fusion by rank are small.
fn figure(score: f64) -> String {
    match score.abs() {
        0.0 | 0.1.. => format!("{score:.2}"),
        0.001.. => format!("{score:.4}"),
        _ => format!("{score:.1e}"),
    }
}

/// What came of a look.
fn outcome(one: &Record) -> &'static str {
    let found = one.int("match_count").unwrap_or(0) > 0;
    match (one.opt("error"), one.flag("triggered"), found) {
        (Some(_), ..) => "failed",
        (None, true, _) => "fired",
        (None, false, true) => "not told",
        (None, false, false) => "quiet",
    }
}

/// Why it failed, and how often those before it did.
fn failure(one: &Record, why: &str) -> String {
    match one.int("consecutive_failures").unwrap_or(1) {
        ..=1 => why.to_owned(),
        times => format!("{} in a row: {why}", text::counted(times, "time", "times")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_scores_are_told_from_none() {
        let told = [0.0, 0.0023, 0.87, 0.00002].map(figure);
        assert_eq!(told, ["0.00", "0.0023", "0.87", "2.0e-5"]);
    }

    #[test]
    fn a_look_that_failed_is_no_quiet_one() {
        for (look, said) in [
            (json!({"triggered": true, "match_count": 1}), "fired"),
            (json!({"triggered": false, "match_count": 1}), "not told"),
            (json!({"triggered": false, "match_count": 0}), "quiet"),
            (
                json!({"triggered": false, "match_count": 0, "error": "away"}),
                "failed",
            ),
        ] {
            assert_eq!(outcome(&Record(look)), said);
        }
        let said = |times: i64| failure(&Record(json!({"consecutive_failures": times})), "away");
        assert_eq!([said(1), said(3)], ["away", "3 times in a row: away"]);
    }
}
