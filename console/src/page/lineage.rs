//! What is made from what: buckets, the collections that read them, and those that read collections.

use leptos::prelude::*;
use serde_json::json;

use crate::{
    api::{Answer, Api},
    load::Load,
    part::*,
    record::Record,
    route::namespace,
    text,
};

/// Rows that are asked for of each kind.
const MOST: usize = 1000;

/// Levels that are drawn at most: a circle ends somewhere.
const DEEPEST: usize = 20;

/// A bucket or a collection.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    /// Its piece of the address.
    page: &'static str,
    id: String,
    name: String,
    /// How much is in it.
    count: Option<String>,
    /// What it is made from.
    from: Vec<String>,
}

/// What `id` is made from and what is made from it, however far.
pub fn lineage(api: Signal<Api>, id: Memo<String>) -> AnyView {
    let load = Load::new(move || all(api.get()));
    loaded(load, waiting(3), move |answer| graph(&answer, &id.get()))
}

fn all(api: Api) -> Answer {
    Box::pin(async move {
        let mut all = json!({});
        for kind in ["buckets", "collections"] {
            let path = format!("/v1/{kind}/list?limit={MOST}");
            all[kind] = api.post(&path, &json!({})).await?.record("results").0;
        }
        Ok(Record(all))
    })
}

fn places(all: &Record) -> Vec<Place> {
    let told = |one: &Record, member: &str, [thing, things]: [&str; 2]| {
        Some(text::counted(one.int(member)?, thing, things))
    };
    let buckets = all.list("buckets").into_iter().map(|one| Place {
        page: "buckets",
        id: one.text("bucket_id"),
        name: one.text("bucket_name"),
        count: told(&one, "object_count", ["object", "objects"]),
        from: Vec::new(),
    });
    let collections = all.list("collections").into_iter().map(|one| {
        let source = one.record("source");
        let mut from = source.strings("bucket_ids");
        from.extend(source.strings("collection_ids"));
        from.extend(source.opt("collection_id"));
        Place {
            page: "collections",
            id: one.text("collection_id"),
            name: one.text("collection_name"),
            count: told(&one, "document_count", ["document", "documents"]),
            from,
        }
    });
    buckets.chain(collections).collect()
}

/// Everything that `leads` leads to from `id`, with itself.
fn reached(all: &[Place], id: &str, leads: fn(&Place, &Place) -> bool) -> Vec<String> {
    let mut known = vec![id.to_owned()];
    let mut at = 0;
    while at < known.len() {
        let here = all.iter().find(|one| one.id == known[at]);
        let next = all
            .iter()
            .filter(|other| here.is_some_and(|here| leads(here, other)));
        for other in next {
            if !known.contains(&other.id) {
                known.push(other.id.clone());
            }
        }
        at += 1;
    }
    known
}

/// The place with all that it is made from and all that is made from it.
fn related(all: Vec<Place>, id: &str) -> Vec<Place> {
    let above = reached(&all, id, |one, other| one.from.contains(&other.id));
    let below = reached(&all, id, |one, other| other.from.contains(&one.id));
    all.into_iter()
        .filter(|one| above.contains(&one.id) || below.contains(&one.id))
        .collect()
}

/// What stands directly below a place; at the top, what is made from nothing that is shown.
fn below<'a>(shown: &'a [Place], parent: Option<&str>) -> Vec<&'a Place> {
    let known = |id: &String| shown.iter().any(|one| one.id == *id);
    let is_below = |one: &&Place| match parent {
        Some(parent) => one.from.iter().any(|from| from == parent),
        None => !one.from.iter().any(known),
    };
    shown.iter().filter(is_below).collect()
}

/// A place as it is drawn, with what stands below it. That is drawn once only, wherever else the place stands.
struct Leaf<'a> {
    place: &'a Place,
    /// Whether what is below it is drawn already.
    is_again: bool,
    under: Vec<Leaf<'a>>,
}

/// What stands below `parent`, level by level. `known` are those whose own are drawn.
fn leaves<'a>(
    shown: &'a [Place],
    parent: Option<&str>,
    known: &mut Vec<&'a str>,
    depth: usize,
) -> Vec<Leaf<'a>> {
    let mut all = Vec::new();
    for place in below(shown, parent) {
        let id = place.id.as_str();
        let leads = depth < DEEPEST && !below(shown, Some(id)).is_empty();
        let is_again = leads && known.contains(&id);
        let mut under = Vec::new();
        if leads && !is_again {
            known.push(id);
            under = leaves(shown, Some(id), known, depth + 1);
        }
        all.push(Leaf {
            place,
            is_again,
            under,
        });
    }
    all
}

/// Whether there may be more than was asked for.
fn is_cut(places: &[Place]) -> bool {
    let many = |page: &str| places.iter().filter(|one| one.page == page).count() >= MOST;
    many("buckets") || many("collections")
}

fn graph(all: &Record, id: &str) -> AnyView {
    let places = places(all);
    let cut = is_cut(&places).then(|| {
        view! { <p class="notice warn">"Only the first 1,000 buckets and collections are looked at."</p> }.into_any()
    });
    // The address may have the name.
    let here = places.iter().find(|one| one.id == id || one.name == id);
    let here = here.map_or_else(|| id.to_owned(), |one| one.id.clone());
    let shown = related(places, &here);
    if shown.len() < 2 {
        return cut.unwrap_or_else(nothing);
    }
    let leaves = leaves(&shown, None, &mut Vec::new(), 0);
    view! {
        {cut}
        <section class="card stack-sm" aria-labelledby="lineage">
            <h2 id="lineage">"Lineage"</h2>
            <p class="muted">"Each is made from the one that it stands below."</p>
            {branch(leaves, &here)}
        </section>
    }
    .into_any()
}

fn nothing() -> AnyView {
    view! {
        <Empty icon="tree" title="Nothing before it and nothing after it" text="A collection that reads this one or this bucket appears here.">
            <a class="btn primary" href=format!("/console/ns/{}/collections", namespace())>"To the collections"</a>
        </Empty>
    }
    .into_any()
}

fn branch(leaves: Vec<Leaf<'_>>, here: &str) -> AnyView {
    let all = leaves.into_iter().map(|leaf| {
        let Place { page, id, name, count, .. } = leaf.place.clone();
        let kind = page.trim_end_matches('s');
        let name = match id == here {
            true => view! { <strong aria-current="page">{name}</strong> }.into_any(),
            false => view! { <a href=format!("/console/ns/{}/{page}/{id}", namespace())>{name}</a> }.into_any(),
        };
        let again = leaf.is_again.then(|| view! { <span class="sub">"What is made from it is shown above."</span> });
        let under = (!leaf.under.is_empty()).then(|| branch(leaf.under, here));
        view! { <li class="leaf">{name}" "<span class="tag">{kind}</span><span class="sub">{count}</span>{again}{under}</li> }.into_any()
    });
    view! { <ul class="tree">{all.collect::<Vec<_>>()}</ul> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace() -> Vec<Place> {
        let all = Record(json!({
            "buckets": [{"bucket_id": "b", "bucket_name": "films", "object_count": 2}, {"bucket_id": "o", "bucket_name": "other"}],
            "collections": [
                {"collection_id": "scenes", "source": {"type": "bucket", "bucket_ids": ["b"]}, "document_count": 1000},
                {"collection_id": "faces", "source": {"type": "collection", "collection_id": "scenes"}},
                {"collection_id": "words", "source": {"type": "bucket", "bucket_ids": ["b"]}},
            ],
        }));
        places(&all)
    }

    fn ids<'a>(all: impl IntoIterator<Item = &'a Place>) -> Vec<&'a str> {
        all.into_iter().map(|one| one.id.as_str()).collect()
    }

    #[test]
    fn what_is_before_and_after_is_shown_and_nothing_beside() {
        assert_eq!(
            ids(&related(namespace(), "scenes")),
            ["b", "scenes", "faces"]
        );
        assert_eq!(ids(&related(namespace(), "words")), ["b", "words"]);
        assert_eq!(ids(&related(namespace(), "o")), ["o"]);
        let all = related(namespace(), "b");
        assert_eq!(ids(below(&all, None)), ["b"]);
        assert_eq!(ids(below(&all, Some("b"))), ["scenes", "words"]);
        assert_eq!(all[1].count.as_deref(), Some("1,000 documents"));
        // What its source is may be hidden from who looks.
        let orphans: Vec<Place> = all.into_iter().filter(|one| one.id != "b").collect();
        assert_eq!(ids(below(&orphans, None)), ["scenes", "words"]);
    }

    fn place(page: &'static str, id: &str, from: &[&str]) -> Place {
        Place {
            page,
            id: id.to_owned(),
            name: id.to_owned(),
            count: None,
            from: from.iter().map(|&one| one.to_owned()).collect(),
        }
    }

    fn count(leaves: &[Leaf<'_>]) -> usize {
        leaves.iter().map(|one| 1 + count(&one.under)).sum()
    }

    #[test]
    fn what_is_below_a_place_is_drawn_once() {
        // Each level reads both of the one before.
        let mut all = vec![place("buckets", "b", &[])];
        let mut before = vec!["b".to_owned()];
        for level in 0..15 {
            let from: Vec<_> = before.iter().map(String::as_str).collect();
            let two = ["left", "right"]
                .map(|side| place("collections", &format!("{side}{level}"), &from));
            before = two.iter().map(|one| one.id.clone()).collect();
            all.extend(two);
        }
        let drawn = leaves(&all, None, &mut Vec::new(), 0);
        assert_eq!(count(&drawn), 1 + 2 + 14 * 4);
        let (left, right) = (&drawn[0].under[0], &drawn[0].under[1]);
        assert_eq!((left.is_again, left.under.len()), (false, 2));
        assert_eq!((right.is_again, right.under.len()), (false, 2));
        assert!(
            right
                .under
                .iter()
                .all(|one| one.is_again && one.under.is_empty())
        );
    }

    #[test]
    fn a_full_list_may_be_cut() {
        let mut all: Vec<_> = (1..MOST)
            .map(|at| place("buckets", &at.to_string(), &[]))
            .collect();
        all.push(place("collections", "c", &[]));
        assert!(!is_cut(&all));
        all.push(place("buckets", "last", &[]));
        assert!(is_cut(&all));
    }
}
