//! What was deployed to an app in the last week, and what was told of each deploy.

use leptos::prelude::*;

use super::one::Shown;
use crate::{load::Load, part::*, record::Record, session::use_session};

const COLUMNS: &[Column] = &[
    Column("Deploy", ""),
    Column("Status", ""),
    Column("For", ""),
    Column("Made version", "num"),
    Column("Asked for", ""),
];

/// As far back, and as many, as the list goes.
const ASKED: &str = "log_type=deploys&hours=168&limit=50";

pub fn deploys(shown: Shown) -> AnyView {
    let session = use_session();
    let path = move || format!("{}/logs?{ASKED}", shown.path.get());
    let load = Load::of(move || session.api(), path);
    let empty = move || view! { <Empty icon="app" title="No deploy in a week" text="What is deployed stands here for a week, with its log, also when it failed."/> };
    view! { <Listing load label="Deploys" columns=COLUMNS row empty=ViewFn::from(empty) offset=None/> }
        .into_any()
}

/// What was told of a deploy, line by line.
fn log(one: &Record) -> String {
    let lines = one.list("lines").into_iter();
    let lines: Vec<String> = lines.map(|line| line.text("message")).collect();
    lines.join("\n")
}

fn row(one: Record) -> AnyView {
    let told = view! {
        {one.text("message")}
        <details>
            <summary>"Log"</summary>
            <pre class="code-block" tabindex="0">{log(&one)}</pre>
        </details>
    };
    line(vec![
        cell("text-cell", told.into_any()),
        cell("", badge(&one.text("status"))),
        words("", one.text("environment")),
        number(one.int("version")),
        cell("nowrap", when(one.opt("timestamp"))),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_is_told_line_by_line() {
        let one = json!({"lines": [{"message": "queued"}, {"message": "failed: no index.html"}]});
        assert_eq!(log(&Record(one)), "queued\nfailed: no index.html");
    }
}
