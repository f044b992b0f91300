//! Searches counted by time, and what people typed.

use std::collections::{BTreeMap, HashMap, HashSet};

use loupe_wire::{DateTruncUnit, Object, Value};
use serde_json::json;

use super::{
    bucket,
    retrievers::Acts,
    store::{Act, Search},
};
use crate::figures::{Sorted, count, ratio};

/// Queries of a list.
const LISTED: usize = 20;

/// A query that is followed by a longer one this soon was not finished, in microseconds.
const TYPING: i64 = 5_000_000;

/// Searches that one is compared with: more within so short a time are of other people.
const TOGETHER: usize = 100;

/// How long searches took, in milliseconds.
pub(super) fn took<'a>(searches: impl IntoIterator<Item = &'a Search>) -> Sorted {
    Sorted::new(searches.into_iter().map(Search::milliseconds).collect())
}

pub(super) fn object(value: Value) -> Object {
    match value {
        Value::Object(members) => members,
        _ => Object::new(),
    }
}

/// By stretches of time, the oldest first; those in which nothing was asked are left out.
pub(super) fn over_time(searches: &[Search], unit: DateTruncUnit) -> Vec<Object> {
    let mut stretches: BTreeMap<_, Vec<&Search>> = BTreeMap::new();
    for search in searches {
        let at = bucket(search.created_at, unit);
        stretches.entry(at).or_default().push(search);
    }
    let told = stretches.into_iter().map(|(at, searches)| {
        let mut told = figures(searches);
        told.insert("time_bucket".into(), json!(at));
        told
    });
    told.collect()
}

/// Counts and times of some searches: of none that only leads on from another, which the store leaves out.
pub(super) fn figures<'a>(searches: impl IntoIterator<Item = &'a Search>) -> Object {
    let searches: Vec<&Search> = searches.into_iter().collect();
    let times = took(searches.iter().copied());
    let of = |wanted: fn(&Search) -> bool| count(searches.iter().filter(|one| wanted(one)).count());
    object(json!({
        "execution_count": searches.len(),
        "zero_result_count": of(|one| one.returned == 0),
        "cache_hit_count": of(|one| one.cached),
        "avg_latency_ms": times.mean(),
        "p50_latency_ms": times.percentile(0.5),
        "p95_latency_ms": times.percentile(0.95),
        "p99_latency_ms": times.percentile(0.99),
        "max_latency_ms": times.max(),
    }))
}

/// What was typed, as people mean it: capitals and blanks aside, and without what was asked while the words were not
/// finished. The searches are told newest first.
fn finished(searches: &[Search]) -> Vec<(String, &Search)> {
    let (mut finished, mut seen) = (Vec::new(), Vec::<(String, i64)>::new());
    for search in searches {
        let words: Vec<&str> = search.query.split_whitespace().collect();
        let query = words.join(" ").to_lowercase();
        if query.is_empty() {
            continue;
        }
        let is_begun = seen
            .iter()
            .rev()
            .take(TOGETHER)
            .take_while(|(_, at)| at - search.created_at <= TYPING)
            .any(|(longer, _)| longer.len() > query.len() && longer.starts_with(&query));
        seen.push((query.clone(), search.created_at));
        if !is_begun {
            finished.push((query, search));
        }
    }
    finished
}

/// The queries with how often they were asked and how many documents they found at last: all of them, and those that found
/// nothing, the most frequent first.
pub(super) fn queries(searches: &[Search]) -> (Vec<Value>, Vec<Value>) {
    struct Asked {
        times: i64,
        returned: i64,
        at: i64,
    }
    let mut asked: HashMap<String, Asked> = HashMap::new();
    for (query, search) in finished(searches) {
        let newest = Asked {
            times: 0,
            returned: search.returned,
            at: search.created_at,
        };
        asked.entry(query).or_insert(newest).times += 1;
    }
    let mut all: Vec<(String, Asked)> = asked.into_iter().collect();
    all.sort_by(|(a, first), (b, second)| (second.times, a).cmp(&(first.times, b)));
    let told = |(query, asked): &(String, Asked)| {
        json!({
            "query": query, "count": asked.times, "results": asked.returned, "last_asked_at": crate::clock::time(asked.at),
        })
    };
    let empty = all.iter().filter(|(_, asked)| asked.returned == 0);
    let empty = empty.take(LISTED).map(told).collect();
    (all.iter().take(LISTED).map(told).collect(), empty)
}

/// What people did with the answers to so many searches.
pub(super) fn acts(acts: &Acts, searches: usize) -> Object {
    let clicked = acts
        .clicks
        .iter()
        .filter_map(|act| act.told.execution_id.as_deref());
    let clicked: HashSet<&str> = clicked.collect();
    let places = places(&acts.clicks);
    object(json!({
        "clicks": acts.kinds.get("click").unwrap_or(&0),
        "click_through_rate": ratio(clicked.len() as f64, searches as f64).min(1.0),
        "avg_click_position": (!places.is_empty()).then(|| places.mean()),
        "interactions": acts.kinds,
    }))
}

/// The places that were clicked on, from 1.
pub(super) fn places(clicks: &[Act]) -> Sorted {
    Sorted::new(
        clicks
            .iter()
            .map(|act| act.told.position as f64 + 1.0)
            .collect(),
    )
}
