//! What came of asking about a manifest, as people read it.

use leptos::prelude::*;

use super::{TEXT, asked};
use crate::{
    part::*,
    record::{Record, plain},
    text,
};

const FAULTS: &[Column] = &[Column("Where", ""), Column("What", "text-cell")];

const ADVICE: &[Column] = &[
    Column("Where", ""),
    Column("Weight", ""),
    Column("What", "text-cell"),
    Column("Rule", ""),
];

const KINDS: &[Column] = &[
    Column("Kind", ""),
    Column("Added", "num"),
    Column("Changed", "num"),
    Column("Cannot be changed", "num"),
    Column("As the text says", "num"),
    Column("Not in the text", "num"),
];

const ITEMS: &[Column] = &[
    Column("Resource", ""),
    Column("Kind", ""),
    Column("What", ""),
    Column("Why", "text-cell"),
];

/// How a count of something is told, where there is any: the words for one, and for many.
type Told = (i64, &'static str, &'static str);

fn joined(all: &[Told]) -> String {
    let some = all.iter().filter(|(n, ..)| *n > 0);
    let some = some.map(|(n, one, many)| text::counted(*n, one, many));
    some.collect::<Vec<_>>().join(", ")
}

/// What is described, in a line.
fn described(checked: &Record) -> String {
    let all = checked.record("resources").members().into_iter();
    let all = all.map(|(section, n)| text::counted_as(n.0.as_i64().unwrap_or(0), &section));
    let all: Vec<String> = all.collect();
    match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.join(", "),
    }
}

/// The class of a notice, and what came of it in a sentence.
pub fn sentence(found: &Record) -> (&'static str, String) {
    let (checked, told) = (found.record("checked"), found.record("told"));
    let faults = checked.list("errors").len() as i64;
    match found.text("of").as_str() {
        asked::APPLY => applied(&told),
        _ if faults > 0 => {
            let errors = text::counted(faults, "error", "errors");
            ("notice bad", format!("{errors}: it cannot be applied."))
        }
        asked::LINT => ("notice ok", advised(&told)),
        asked::DIFF => compared(found),
        _ => (
            "notice ok",
            format!("It can be applied. It describes {}.", described(&checked)),
        ),
    }
}

fn advised(told: &Record) -> String {
    let summary = told.record("summary");
    let n = |name: &str| summary.int(name).unwrap_or(0);
    let all = joined(&[
        (n("warning"), "warning", "warnings"),
        (n("info"), "hint", "hints"),
    ]);
    match all.is_empty() {
        true => "Nothing could be better.".to_owned(),
        false => format!("It can be applied. {all}."),
    }
}

fn compared(found: &Record) -> (&'static str, String) {
    let all = asked::counts(found);
    let sum = |at: usize| all.iter().map(|(_, counts)| counts[at]).sum::<i64>();
    let refused = sum(2);
    let class = match refused {
        0 => "notice ok",
        _ => "notice warn",
    };
    let told = joined(&[
        (sum(0), "is added", "are added"),
        (sum(1), "is changed", "are changed"),
        (refused, "cannot be changed", "cannot be changed"),
        (sum(3), "is as the text says", "are as the text says"),
    ]);
    let told = match told.is_empty() {
        true => "The text describes nothing.".to_owned(),
        false => format!("{told}."),
    };
    (class, told)
}

fn applied(told: &Record) -> (&'static str, String) {
    let n = |name: &str| told.int(name).unwrap_or(0);
    let done = joined(&[
        (n("created_count"), "is made", "are made"),
        (n("updated_count"), "is changed", "are changed"),
    ]);
    let done = match done.is_empty() {
        true => "nothing was made or changed".to_owned(),
        false => done,
    };
    match told.flag("success") {
        true => ("notice ok", format!("Applied: {done}.")),
        false => (
            "notice bad",
            format!("Applied in part: {done}. The same text again goes on from there."),
        ),
    }
}

/// Everything below the sentence.
pub fn outcome(found: &Record) -> AnyView {
    let told = found.record("told");
    match found.text("of").as_str() {
        asked::APPLY => results(&told),
        asked::LINT => advice(&told),
        asked::DIFF if found.record("checked").flag("valid") => comparison(found),
        _ => faults(&found.record("checked")),
    }
}

/// A place in the text, and the way to its line.
fn at(said: &str) -> AnyView {
    let (line, path) = asked::place_of(said);
    let lead = line.map(|line| {
        let label = format!("Line {line}");
        view! { <button type="button" class="btn small" on:click=move |_| to_line(TEXT, line)>{label}</button> }
    });
    let path = (!path.is_empty()).then(|| view! { <code class="sub">{path}</code> });
    cell("", view! { {lead}{path} }.into_any())
}

/// What is wrong, and what could be better.
fn faults(checked: &Record) -> AnyView {
    let rows = |sentences: Vec<String>| {
        let all = sentences.into_iter().map(|sentence| {
            let (place, rest) = asked::split(&sentence);
            line(vec![at(place), words("text-cell", rest.to_owned())])
        });
        all.collect::<Vec<AnyView>>()
    };
    let (errors, warnings) = (checked.strings("errors"), checked.strings("warnings"));
    let errors = (!errors.is_empty()).then(|| {
        let rows = rows(errors);
        view! { <h3>"Errors"</h3>{table("Errors of the text", FAULTS, rows, Signal::stored(false))} }
    });
    let warnings = (!warnings.is_empty()).then(|| {
        let rows = rows(warnings);
        view! { <h3>"Warnings"</h3>{table("Warnings about the text", FAULTS, rows, Signal::stored(false))} }
    });
    let missing = checked.strings("missing_secrets");
    let missing = (!missing.is_empty()).then(|| {
        let all = missing.join(", ");
        view! { <p class="notice warn"><span>"Secrets that are not there yet: "<code>{all}</code>". "<a href="/console/secrets">"To the secrets"</a></span></p> }
    });
    view! { {errors}{missing}{warnings} }.into_any()
}

fn advice(told: &Record) -> AnyView {
    let all = told.list("results");
    if all.is_empty() {
        return ().into_any();
    }
    let rows = all.into_iter().map(|one| {
        let class = match one.text("severity").as_str() {
            "error" => "badge bad",
            "warning" => "badge warn",
            _ => "badge",
        };
        let weight = match one.text("severity").as_str() {
            "info" => "hint".to_owned(),
            severity => severity.to_owned(),
        };
        let example = one.opt("fix_example");
        let example =
            example.map(|example| view! { <pre class="sub"><code>{example}</code></pre> });
        let what = view! { {one.text("message")}<span class="sub">{one.text("suggestion")}</span>{example} };
        line(vec![
            at(&one.text("location")),
            cell("", view! { <span class=class>{weight}</span> }.into_any()),
            cell("text-cell", what.into_any()),
            cell("nowrap", view! { <code>{one.text("code")}</code> }.into_any()),
        ])
    });
    table(
        "What could be better",
        ADVICE,
        rows.collect(),
        Signal::stored(false),
    )
}

/// What would be done, kind by kind and one by one.
fn comparison(found: &Record) -> AnyView {
    let counts = asked::counts(found).into_iter().map(|(section, counts)| {
        let mut cells = vec![words("", text::words(&section))];
        cells.extend(counts.map(|n| number(Some(n))));
        line(cells)
    });
    let rows = asked::items(found).into_iter().map(|one| {
        let (class, word) = match one.text("action").as_str() {
            "create" => ("badge ok", "added"),
            "update" => ("badge warn", "changed"),
            "conflict" => ("badge bad", "cannot be changed"),
            _ => ("badge", "not in the text"),
        };
        resource(&one, class, word.to_owned(), one.text("details"))
    });
    let rows: Vec<AnyView> = rows.collect();
    let items = (!rows.is_empty()).then(|| {
        view! { <h3>"One by one"</h3>{table("What would change, one by one", ITEMS, rows, Signal::stored(false))} }
    });
    view! {
        {table("What would change, by kind", KINDS, counts.collect(), Signal::stored(false))}
        {items}
        <p class="muted">"Nothing is removed: what is not in the text stays as it is."</p>
    }
    .into_any()
}

/// What became of each resource.
fn results(told: &Record) -> AnyView {
    let rows = told.list("resources").into_iter().map(|one| {
        let status = one.text("status");
        let class = match status.as_str() {
            "created" | "updated" => "badge ok",
            "failed" => "badge bad",
            "pending" | "skipped" | "drifted" => "badge warn",
            _ => "badge",
        };
        let why = match one.first(&["error", "pending_reason"]) {
            none if none.is_empty() => one.strings("drift").join(", "),
            why => why,
        };
        let word = match status.as_str() {
            "exists" => "as the text says".to_owned(),
            status => text::words(status),
        };
        resource(&one, class, word, why)
    });
    table(
        "What became of each",
        ITEMS,
        rows.collect(),
        Signal::stored(false),
    )
}

fn resource(one: &Record, class: &'static str, word: String, why: String) -> AnyView {
    line(vec![
        view! { <th scope="row">{one.text("name")}</th> }.into_any(),
        words("", text::words(&one.text("resource_type"))),
        cell("", view! { <span class=class>{word}</span> }.into_any()),
        words("text-cell", why),
    ])
}

/// What an apply makes and changes, by name.
pub fn plan(found: &Record) -> AnyView {
    let items = asked::items(found);
    let part = |title: &'static str, action: &str| {
        let all = items.iter().filter(|one| one.text("action") == action);
        let all = all.map(|one| {
            let kind = text::words(&one.text("resource_type"));
            let about = one.opt("details").map(|about| format!(": {about}"));
            view! { <li>{kind}" "<strong>{one.text("name")}</strong>{about}</li> }.into_any()
        });
        let all: Vec<AnyView> = all.collect();
        (!all.is_empty()).then(|| view! { <div class="stack-sm"><h3>{title}</h3><ul class="sub-list">{all}</ul></div> }.into_any())
    };
    view! {
        {part("Is made", "create")}
        {part("Is changed", "update")}
        {part("Cannot be changed in place, and fails", "conflict")}
    }
    .into_any()
}

/// The whole text of an answer that is one.
pub fn whole(one: &Record) -> String {
    plain(&one.0)
}

#[cfg(test)]
mod tests {
    use loupe_wire::{ApplyResult, LintResponse, ValidateResult};
    use serde_json::json;

    use super::*;
    use crate::record::tests::sent;

    fn found(of: &str, checked: &ValidateResult, told: Record) -> Record {
        Record(json!({"of": of, "text": "", "checked": sent(checked).0, "told": told.0}))
    }

    #[test]
    fn what_came_of_it_is_told_in_a_sentence() {
        let mut valid = ValidateResult {
            valid: true,
            ..Default::default()
        };
        valid.resources.insert("buckets".into(), 1);
        valid.resources.insert("taxonomies".into(), 2);
        let (class, said) = sentence(&found(asked::VALIDATE, &valid, Record::default()));
        assert_eq!(class, "notice ok");
        assert_eq!(
            said,
            "It can be applied. It describes 1 bucket, 2 taxonomies."
        );
        let faulty = ValidateResult {
            errors: vec!["line 1: no".into()],
            ..Default::default()
        };
        for of in [asked::VALIDATE, asked::LINT, asked::DIFF] {
            let (class, said) = sentence(&found(of, &faulty, Record::default()));
            assert_eq!(
                (class, said.as_str()),
                ("notice bad", "1 error: it cannot be applied.")
            );
        }
        let mut lint = LintResponse {
            valid: true,
            ..Default::default()
        };
        lint.summary.insert("info".into(), 2);
        let (_, said) = sentence(&found(asked::LINT, &valid, sent(&lint)));
        assert_eq!(said, "It can be applied. 2 hints.");
    }

    #[test]
    fn what_was_applied_in_part_says_so() {
        let whole = ApplyResult {
            success: true,
            created_count: 2,
            updated_count: 1,
            ..Default::default()
        };
        let valid = ValidateResult::default();
        let (_, said) = sentence(&found(asked::APPLY, &valid, sent(&whole)));
        assert_eq!(said, "Applied: 2 are made, 1 is changed.");
        let part = ApplyResult {
            failed_count: 1,
            ..Default::default()
        };
        let (class, said) = sentence(&found(asked::APPLY, &valid, sent(&part)));
        assert_eq!(class, "notice bad");
        assert!(said.starts_with("Applied in part: nothing was made or changed."));
    }

    #[test]
    fn a_comparison_says_how_many_are_what() {
        let mut valid = ValidateResult {
            valid: true,
            ..Default::default()
        };
        valid.resources.insert("buckets".into(), 3);
        let told = Record(
            json!({"to_create": [{"resource_type": "bucket", "name": "a", "action": "create"}],
            "differences": [{"resource_type": "bucket", "name": "b", "action": "conflict"}]}),
        );
        let (class, said) = sentence(&found(asked::DIFF, &valid, told));
        assert_eq!(class, "notice warn");
        assert_eq!(
            said,
            "1 is added, 1 cannot be changed, 1 is as the text says."
        );
    }
}
