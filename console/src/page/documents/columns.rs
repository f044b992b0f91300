//! Which columns the list of documents has, kept in the address.

use leptos::prelude::*;
use serde_json::Value;

use super::text_of;
use crate::{
    load::{Load, Query},
    page::collections::fields_of,
    part::*,
    record::Record,
};

/// Columns that are no field of a document: their names in the address, which no field has, their heads and classes. They
/// are shown until something else is chosen.
const OWN: [(&str, &str, &str); 3] = [
    ("_text", "Text", ""),
    ("_files", "Files", "num"),
    ("_vectors", "Vectors", ""),
];

/// What the address says where no column is chosen.
const NONE: &str = "_";

/// A longer text is cut.
const LONGEST: usize = 220;

/// A column: its name in the address, its head and its class.
pub(super) type Shown = (String, String, &'static str);

/// The columns that there are: the own ones, then the fields of the documents.
fn offered(about: &Record) -> Vec<Shown> {
    let own = OWN.iter();
    let own = own.map(|(name, head, class)| ((*name).to_owned(), (*head).to_owned(), *class));
    let mut all: Vec<Shown> = own.collect();
    for (name, kind) in fields_of(about) {
        let known = all.iter().any(|(other, ..)| *other == name);
        if known || name.starts_with('_') || name.contains(',') {
            continue;
        }
        let class = match kind.as_str() {
            "number" | "integer" | "float" => "num",
            _ => "",
        };
        all.push((name.clone(), name, class));
    }
    all
}

fn is_shown(kept: &str, name: &str) -> bool {
    match kept {
        "" => name.starts_with('_'),
        kept => kept.split(',').any(|one| one == name),
    }
}

/// What the address says once a column is turned on or off.
fn turned(all: &[Shown], kept: &str, name: &str, on: bool) -> String {
    let mut names: Vec<&str> = all.iter().map(|(one, ..)| one.as_str()).collect();
    names.retain(|one| match *one == name {
        true => on,
        false => is_shown(kept, one),
    });
    match names.join(",").as_str() {
        "" => NONE.to_owned(),
        all if all == OWN.map(|(name, ..)| name).join(",") => String::new(),
        all => all.to_owned(),
    }
}

/// The columns that are shown.
pub(super) fn shown(columns: Query, about: Load) -> Memo<Vec<Shown>> {
    Memo::new(move |_| {
        let mut all = offered(&about.good().unwrap_or_default());
        columns
            .value
            .with(|kept| all.retain(|(name, ..)| is_shown(kept, name)));
        all
    })
}

/// What a document has in a column.
pub(super) fn cell_of(one: &Record, (name, _, class): &Shown) -> AnyView {
    match (name.as_str(), one.value(name)) {
        ("_text", _) => words("text-cell", text_of(one)),
        ("_files", _) => number(Some(one.list("document_blobs").len() as i64)),
        ("_vectors", _) | (_, Some(Value::Array(_))) => tags(one.strings(name)),
        _ if !class.is_empty() => words("num nowrap", one.text(name)),
        _ => words("text-cell", one.text(name).chars().take(LONGEST).collect()),
    }
}

/// A button, and the columns to choose from.
pub(super) fn chooser(columns: Query, about: Load) -> AnyView {
    let open = RwSignal::new(false);
    let ticks = move || {
        let all = offered(&about.good().unwrap_or_default()).into_iter();
        let all = all.map(|(name, head, _)| tick(columns, about, name, head));
        all.collect::<Vec<_>>()
    };
    view! {
        <button type="button" class="btn" on:click=move |_| open.set(true)>"Columns"</button>
        <Modal open title="Columns".to_owned()><div class="stack-sm">{ticks}</div></Modal>
    }
    .into_any()
}

fn tick(columns: Query, about: Load, name: String, label: String) -> AnyView {
    let own = name.clone();
    let checked = Signal::derive(move || columns.value.with(|kept| is_shown(kept, &own)));
    let set = move |on: bool| {
        let all = offered(&untrack(|| about.good()).unwrap_or_default());
        columns.set(&turned(&all, &columns.value.get_untracked(), &name, on));
    };
    view! { <Check label checked set/> }.into_any()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_turned_on_and_off_in_the_address() {
        let about = Record(json!({"output_schema": {"properties": {
            "year": {"type": "integer"}, "a,b": {"type": "string"}, "_own": {"type": "string"}}}}));
        let all = offered(&about);
        assert_eq!(all.len(), 4);
        assert_eq!(all[3].2, "num");
        assert!(is_shown("", "_text") && !is_shown("", "year"));
        let more = turned(&all, "", "year", true);
        assert_eq!(more, "_text,_files,_vectors,year");
        assert_eq!(turned(&all, &more, "year", false), "");
        assert_eq!(turned(&all, "year", "year", false), NONE);
        assert!(!is_shown(NONE, "_text") && !is_shown(NONE, "year"));
        assert_eq!(turned(&all, NONE, "_files", true), "_files");
    }
}
