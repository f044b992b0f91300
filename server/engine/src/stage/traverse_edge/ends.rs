//! The ends of links: what documents of a step name and are known by, and which of them lead to a document.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use loupe_wire::{Object, Value};
use serde_json::json;

use super::{Statement, Via, Walk};
use crate::stage::working::Row;

/// What documents name or are known by, as text, and the collection, by id or name, that is meant; none for any.
type Key = (String, Option<String>);

/// Documents of a step, by their places, that one key leads from.
struct Group<T> {
    /// In rising order, each once.
    places: Vec<(usize, T)>,
    /// Those before lead to as many as they may.
    free: Cell<usize>,
}

impl<T> Default for Group<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Cell::new(0),
        }
    }
}

impl<T> Group<T> {
    /// Of several statements of one document the first counts.
    fn add(&mut self, place: usize, told: T) {
        if self.places.last().is_none_or(|(last, _)| *last != place) {
            self.places.push((place, told));
        }
    }

    /// The first that may lead to one more. Who is full stays full and is not looked at again: thousands may have the key.
    fn first(&self, led: &[usize], fan_out: usize) -> Option<&(usize, T)> {
        let mut rest = self.places.iter().skip(self.free.get());
        let found = rest.position(|(place, _)| led[*place] < fan_out);
        self.free
            .set(found.map_or(self.places.len(), |more| self.free.get() + more));
        self.places.get(self.free.get())
    }
}

/// What the documents of one step are linked by.
#[derive(Default)]
pub(super) struct Ends {
    /// By what they name: with the words of the document that does, and the number of the statement among its own.
    named: HashMap<Key, Group<(usize, Statement)>>,
    pub named_values: Vec<Value>,
    /// By what they are known by.
    known: HashMap<Key, Group<()>>,
    pub known_values: Vec<Value>,
}

/// What the documents name and are known by.
pub(super) fn ends(walk: &Walk, from: &[Row]) -> Ends {
    let mut ends = Ends::default();
    // Whoever names them may mean a link to them or from them; a field means only the first.
    let asked_back = walk.back || matches!(walk.via, Via::Edges(_));
    let (mut named, mut known) = (HashSet::new(), HashSet::new());
    for (place, row) in from.iter().enumerate() {
        for (number, mut said) in walk.statements(row).into_iter().enumerate() {
            if walk.follows(said.outward) {
                let text = said.key.to_string();
                if named.insert(text.clone()) {
                    ends.named_values.push(said.key.clone());
                }
                let key = (text, said.collection.take());
                ends.named
                    .entry(key)
                    .or_default()
                    .add(place, (number, said));
            }
        }
        let collections = walk.collections(row);
        for name in walk.names(row).into_iter().filter(|_| asked_back) {
            let text = name.to_string();
            if known.insert(text.clone()) {
                ends.known_values.push(name.clone());
            }
            for collection in &collections {
                let key = (text.clone(), collection.clone());
                ends.known.entry(key).or_default().add(place, ());
            }
        }
    }
    ends
}

/// The documents that are linked, in the order of those that lead to them, each with how it was come to; and how many
/// more were linked with documents that lead to as many as they may.
pub(super) fn attach(
    walk: &Walk,
    from: &[Row],
    ends: &Ends,
    found: Vec<Row>,
    depth: usize,
    seen: &HashSet<String>,
) -> (Vec<Row>, usize) {
    let mut led = vec![0; from.len()];
    let mut left_out = 0;
    let mut out: Vec<(usize, Row)> = Vec::new();
    for mut row in found.into_iter().filter(|row| !seen.contains(row.id())) {
        let (is_linked, link) = link(walk, ends, &led, &row);
        let Some((place, told)) = link else {
            left_out += usize::from(is_linked);
            continue;
        };
        led[place] += 1;
        let mut edge = Object::from_iter([
            ("depth".to_owned(), json!(depth)),
            ("from_document_id".to_owned(), json!(from[place].id())),
        ]);
        edge.extend(told);
        row.set(&walk.output, Value::Object(edge));
        out.push((place, row));
    }
    out.sort_by_key(|(place, _)| *place);
    (out.into_iter().map(|(_, row)| row).collect(), left_out)
}

/// Whether documents of the step lead to this one, and the first of them that may lead to one more, with what is told of
/// the link.
fn link(walk: &Walk, ends: &Ends, led: &[usize], row: &Row) -> (bool, Option<(usize, Object)>) {
    let mut is_linked = false;
    // What they name it by comes before what it says of them, each in the order in which it is said.
    let mut best: Option<((usize, usize, usize), &Object, bool)> = None;
    let own = walk.statements(row);
    let collections = walk.collections(row);
    for (number, name) in walk.names(row).into_iter().enumerate() {
        let text = name.to_string();
        for collection in &collections {
            let Some(group) = ends.named.get(&(text.clone(), collection.clone())) else {
                continue;
            };
            is_linked = true;
            if let Some((place, (order, said))) = group.first(led, walk.fan_out) {
                let rank = (*place, number, *order);
                if best.as_ref().is_none_or(|best| rank < best.0) {
                    best = Some((rank, &said.told, said.outward));
                }
            }
        }
    }
    let said = own.iter().enumerate();
    for (order, said) in said.filter(|(_, said)| walk.follows(!said.outward)) {
        let key = (said.key.to_string(), said.collection.clone());
        let Some(group) = ends.known.get(&key) else {
            continue;
        };
        is_linked = true;
        if let Some((place, ())) = group.first(led, walk.fan_out) {
            let rank = (*place, usize::MAX, order);
            if best.as_ref().is_none_or(|best| rank < best.0) {
                best = Some((rank, &said.told, !said.outward));
            }
        }
    }
    let told = best.map(|((place, ..), said, outward)| {
        let word = if outward { "out" } else { "in" };
        let mut told = Object::from_iter([("direction".to_owned(), json!(word))]);
        told.extend(said.clone());
        (place, told)
    });
    (is_linked, told)
}
