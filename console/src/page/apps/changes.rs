//! What one version of an app has and another has not: file by file, and inside of those that are texts.

use leptos::prelude::*;
use serde_json::Value;

use super::one::Shown;
use crate::{load::Load, part::*, record::Record, session::use_session, text};

/// Which version is looked at, beside which other one.
#[derive(Clone, Copy)]
pub struct Compared {
    shown: Shown,
    open: RwSignal<bool>,
    version: RwSignal<i64>,
    other: RwSignal<String>,
}

impl Compared {
    pub fn new(shown: Shown) -> Self {
        Self {
            shown,
            open: RwSignal::new(false),
            version: RwSignal::new(0),
            other: RwSignal::new(String::new()),
        }
    }

    /// The other versions, the newest first.
    fn others(self, version: i64) -> Vec<i64> {
        let all = self.shown.load.good().unwrap_or_default().list("results");
        let all = all.iter().filter_map(|one| one.int("version"));
        all.filter(|one| *one != version).collect()
    }

    /// The button that shows what is other in this version; there is none where it is the only one.
    pub fn button(self, version: i64, title: &str) -> Option<AnyView> {
        let others = self.others(version);
        // What it came after, or what came after it.
        let earlier = others.iter().filter(|one| **one < version).max();
        let other = earlier.or_else(|| others.iter().min())?.to_string();
        let show = move || {
            self.version.set(version);
            self.other.set(other.clone());
            self.open.set(true);
        };
        Some(press("Changes", title, Box::new(show)))
    }

    pub fn dialog(self) -> AnyView {
        let session = use_session();
        let named = |version: i64| format!("Version {version}");
        let title = Signal::derive(move || format!("Changes of {}", named(self.version.get())));
        let options = Signal::derive(move || {
            let others = self.others(self.version.get()).into_iter();
            others.map(|one| (one.to_string(), named(one))).collect()
        });
        let load = Load::of(
            move || session.api(),
            move || match self.open.get() {
                true => {
                    let (path, from) = (self.shown.path.get(), self.other.get());
                    format!("{path}/versions/{from}/diff/{}", self.version.get())
                }
                false => String::new(),
            },
        );
        view! {
            <Modal open=self.open title class="wide">
                <div class="row filters"><Choice id="compared" label="Since" value=self.other options/></div>
                {loaded(load, waiting(4), files)}
            </Modal>
        }
        .into_any()
    }
}

fn files(found: Record) -> AnyView {
    let texts = found.value("source_diff").cloned().unwrap_or_default();
    let all = found.list("files");
    let changed = all.iter().filter(|one| one.text("status") != "unchanged");
    let rows: Vec<AnyView> = changed.map(|one| file(one, &texts)).collect();
    let same = all.len().saturating_sub(rows.len()) as i64;
    let same = (same > 0).then(|| text::counted(same, "file is the same", "files are the same"));
    let list = (!rows.is_empty()).then(|| view! { <ul class="stack-sm diff">{rows}</ul> });
    view! { {list}<p class="muted">{same}</p> }.into_any()
}

/// A file that is other, to be folded out where it is a text.
fn file(one: &Record, texts: &Value) -> AnyView {
    let path = one.text("path");
    let (class, word) = match one.text("status").as_str() {
        "added" => ("badge ok", "added"),
        "removed" => ("badge bad", "removed"),
        _ => ("badge warn", "changed"),
    };
    let size = one.int("new_size").or_else(|| one.int("old_size"));
    let size = size.map(text::size);
    let lines = texts.get(&path).and_then(Value::as_str).map(changes);
    let head = view! { <code>{path.clone()}</code>" "<span class=class>{word}</span>" "<span class="muted">{size}</span> };
    match lines {
        Some(lines) => view! {
            <li><details><summary>{head}</summary><pre class="code-block" tabindex="0" aria-label=format!("Changes of {path}")>{lines}</pre></details></li>
        }
        .into_any(),
        None => view! { <li>{head}</li> }.into_any(),
    }
}

/// The lines of a text's changes, told apart by their first sign; the first two name the file.
fn changes(diff: &str) -> Vec<AnyView> {
    let line = |line: &str| {
        let line = line.to_owned();
        match line.as_bytes().first() {
            Some(b'+') => view! { <ins>{line}</ins> }.into_any(),
            Some(b'-') => view! { <del>{line}</del> }.into_any(),
            _ => view! { <span>{line}</span> }.into_any(),
        }
    };
    diff.lines().skip(2).map(line).collect()
}
