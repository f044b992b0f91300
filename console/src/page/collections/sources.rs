//! What a new collection is made from: buckets or other collections, one or several.

use leptos::prelude::*;
use serde_json::{Map, Value};

use crate::{part::*, record::Record};

const KINDS: [(&str, &str); 2] = [("bucket", "Buckets"), ("collection", "Collections")];

/// Those that there are, and those that are picked.
#[derive(Clone, Copy)]
pub(super) struct Sources {
    all: StoredValue<Record>,
    kind: RwSignal<String>,
    picked: RwSignal<Vec<String>>,
}

fn id_of(kind: &str, one: &Record) -> String {
    let (id, name) = (format!("{kind}_id"), format!("{kind}_name"));
    one.first(&[id.as_str(), name.as_str()])
}

impl Sources {
    /// Begins with the first bucket of lists by the names `buckets` and `collections`.
    pub(super) fn new(all: Record) -> Self {
        let kind = match all.list("buckets").is_empty() {
            true => "collection",
            false => "bucket",
        };
        let sources = Self {
            all: StoredValue::new(all),
            kind: RwSignal::new(kind.to_owned()),
            picked: RwSignal::new(Vec::new()),
        };
        sources.begin(kind);
        sources
    }

    fn begin(self, kind: &str) {
        let first = self.offered(kind).first().map(|one| id_of(kind, one));
        self.picked.set(first.into_iter().collect());
    }

    fn offered(self, kind: &str) -> Vec<Record> {
        self.all.with_value(|all| all.list(&format!("{kind}s")))
    }

    /// Those that are picked.
    pub(super) fn chosen(self) -> Vec<Record> {
        let (kind, picked) = (self.kind.get(), self.picked.get());
        let mut all = self.offered(&kind);
        all.retain(|one| picked.contains(&id_of(&kind, one)));
        all
    }

    /// As it is sent; nothing while none is picked.
    pub(super) fn body(self) -> Option<Value> {
        let (kind, picked) = (self.kind.get_untracked(), self.picked.get_untracked());
        if picked.is_empty() {
            return None;
        }
        let mut body = Map::new();
        body.insert(format!("{kind}_ids"), picked.into());
        body.insert("type".to_owned(), kind.into());
        Some(Value::Object(body))
    }

    /// The choice between buckets and collections.
    pub(super) fn kinds(self) -> AnyView {
        Effect::new(move |before: Option<String>| {
            let kind = self.kind.get();
            if before.is_some_and(|before| before != kind) {
                self.begin(&kind);
            }
            kind
        });
        let kinds: Vec<_> = KINDS
            .iter()
            .map(|(kind, label)| ((*kind).to_owned(), (*label).to_owned()))
            .collect();
        view! { <Choice id="collection-source" label="Made from" value=self.kind options=kinds/> }
            .into_any()
    }

    /// A tick for each that can be picked.
    pub(super) fn ticks(self) -> AnyView {
        let legend = move || match self.kind.get().as_str() {
            "bucket" => "Buckets that it reads",
            _ => "Collections that it reads",
        };
        let ticks = move || {
            let kind = self.kind.get();
            let all = self.offered(&kind).into_iter();
            let all =
                all.map(|one| self.tick(id_of(&kind, &one), one.text(&format!("{kind}_name"))));
            let all: Vec<_> = all.collect();
            match all.is_empty() {
                true => view! { <span class="hint">"There is none yet."</span> }.into_any(),
                false => all.into_any(),
            }
        };
        view! { <fieldset class="group"><legend>{legend}</legend><div class="row">{ticks}</div></fieldset> }
            .into_any()
    }

    fn tick(self, id: String, label: String) -> AnyView {
        let own = id.clone();
        let checked = Signal::derive(move || self.picked.with(|all| all.contains(&own)));
        let set = move |on: bool| {
            self.picked.update(|all| {
                all.retain(|one| *one != id);
                if on {
                    all.push(id.clone());
                }
            });
        };
        view! { <Check label checked set/> }.into_any()
    }
}

#[cfg(test)]
mod tests {
    use loupe_wire::{SourceConfig, SourceType};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_picked_is_a_source() {
        let owner = Owner::new();
        owner.set();
        let of = |sources: Sources| -> SourceConfig {
            serde_json::from_value(sources.body().expect("a source")).expect("a body")
        };
        let bucket = json!({"bucket_id": "bkt_1", "bucket_name": "notes"});
        let collections = json!([{"collection_id": "col_1"}, {"collection_id": "col_2"}]);
        let both = Sources::new(Record(
            json!({"buckets": [bucket], "collections": collections}),
        ));
        assert_eq!(of(both).bucket_ids, Some(vec!["bkt_1".to_owned()]));
        let only = Sources::new(Record(json!({"buckets": [], "collections": collections})));
        only.picked.update(|all| all.push("col_2".to_owned()));
        let source = of(only);
        assert_eq!(source.r#type, SourceType::Collection);
        assert_eq!(source.collection_ids.map(|all| all.len()), Some(2));
        only.picked.set(Vec::new());
        assert!(only.body().is_none());
    }
}
