//! What is done with a batch once it has ended: what failed is tried again, or all of it runs again.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::Shown;
use crate::{
    load::{Change, Load},
    part::*,
    record::Record,
};

const FINDINGS: &[Column] = &[
    Column("Chunks", ""),
    Column("Number", "num"),
    Column("Failed tries", "num"),
];

const BALANCE: &[Column] = &[
    Column("Tier", ""),
    Column("Came in", "num"),
    Column("Processed", "num"),
    Column("Passed over", "num"),
    Column("Failed", "num"),
    Column("Lost", "num"),
];

/// The choice that passes over nothing.
const FORCE: &str = "force";

const AGAIN: &str = "The batch runs again";

impl Shown {
    /// Has the server do something with the batch, says so and looks again.
    pub(super) fn call(self, change: Change, piece: &str, body: &Value, said: &'static str) {
        self.call_and(change, piece, body, said, || ());
    }

    fn call_and(
        self,
        change: Change,
        piece: &str,
        body: &Value,
        said: &'static str,
        then: impl FnOnce() + 'static,
    ) {
        let path = format!("{}/{piece}", self.path.get_untracked());
        let call = self.api.get_untracked().post(&path, body);
        change.run(call, move |_| {
            then();
            self.toasts.say(said);
            self.load.reload();
        });
    }
}

/// The buttons for what failed and for all of it, with their questions.
pub(super) fn again(shown: Shown) -> AnyView {
    let (retry, rerun) = (RwSignal::new(false), RwSignal::new(false));
    let failed = Memo::new(move |_| {
        let batch = shown.load.good();
        batch.is_some_and(|batch| batch.int("failed_object_count").unwrap_or(0) > 0)
    });
    view! {
        <Show when=move || failed.get()>
            <button type="button" class="btn" on:click=move |_| retry.set(true)>"Retry what failed"</button>
        </Show>
        <button type="button" class="btn" on:click=move |_| rerun.set(true)>"Run again"</button>
        {ask_retry(shown, retry)}
        {ask_rerun(shown, rerun)}
    }
    .into_any()
}

fn ask_retry(shown: Shown, open: RwSignal<bool>) -> AnyView {
    let (change, mode) = (Change::new(), RwSignal::new("all".to_owned()));
    let submit = Callback::new(move |()| {
        let body = json!({"retry_mode": mode.get_untracked()});
        let said = "What failed is tried again";
        shown.call_and(change, "retry", &body, said, move || open.set(false));
    });
    let modes = vec![
        ("all".to_owned(), "All that failed".to_owned()),
        (
            "transient_only".to_owned(),
            "Those that failed for a passing reason".to_owned(),
        ),
    ];
    view! {
        <Ask open title="Retry what failed?".to_owned() label="Retry" change submit>
            <Choice id="retry-mode" label="Objects" value=mode options=modes.clone()
                hint="An object that was at fault fails again until it is mended."/>
        </Ask>
    }
    .into_any()
}

fn ask_rerun(shown: Shown, open: RwSignal<bool>) -> AnyView {
    let (change, from) = (Change::new(), RwSignal::new(String::new()));
    let tiers = Memo::new(move |_| {
        let batch = shown.load.good().unwrap_or_default();
        batch.int("total_tiers").unwrap_or(1).max(1)
    });
    let options = Signal::derive(move || beginnings(tiers.get()));
    let submit = Callback::new(move |()| {
        let (piece, said) = rerun(&from.get_untracked());
        shown.call_and(change, &piece, &json!({}), said, move || open.set(false));
    });
    view! {
        <Ask open title="Run this batch again?".to_owned() label="Run again" change submit>
            <Choice id="from-tier" label="What" value=from options
                hint="Documents that are made again replace those that are there. What is unchanged is passed over, unless you choose everything or the batch was made to pass over nothing."/>
        </Ask>
    }
    .into_any()
}

/// What is called where the batch begins again there, and what is said of it.
fn rerun(from: &str) -> (String, &'static str) {
    match from {
        "" => ("resubmit".to_owned(), AGAIN),
        FORCE => (
            "submit?force=true".to_owned(),
            "All of the batch is made again",
        ),
        tier => (format!("resubmit?from_tier={tier}"), AGAIN),
    }
}

/// Where a batch of so many tiers can begin again.
fn beginnings(tiers: i64) -> Vec<(String, String)> {
    let mut all = vec![(String::new(), "Only what did not finish".to_owned())];
    all.extend((0..tiers).map(|tier| {
        let label = format!("All that came as far as tier {}", tier + 1);
        (tier.to_string(), label)
    }));
    all.push((
        FORCE.to_owned(),
        "Everything, also what is unchanged".to_owned(),
    ));
    all
}

/// A button, and what stands in the way of the batch.
pub(super) fn diagnosis(shown: Shown) -> AnyView {
    let open = RwSignal::new(false);
    let of = move |piece: &'static str| {
        Load::of(
            move || shown.api.get(),
            move || match open.get() {
                true => format!("{}/{piece}", shown.path.get()),
                false => String::new(),
            },
        )
    };
    let (load, audit) = (of("diagnose"), of("audit"));
    view! {
        <button type="button" class="btn" on:click=move |_| open.set(true)>"Diagnose"</button>
        <Modal open title="Diagnosis".to_owned() class="wide">
            {loaded(load, waiting(4), found)}
            {loaded(audit, waiting(2), balance)}
        </Modal>
    }
    .into_any()
}

/// Where the objects of each tier are, so that none goes missing unseen.
fn balance(one: Record) -> AnyView {
    let rows = one.list("tiers").into_iter().map(|tier| {
        let count = |member: &str| number(Some(tier.int(member).unwrap_or(0)));
        let name = format!("Tier {}", tier.int("tier_num").unwrap_or(0) + 1);
        line(vec![
            titled(None, name, String::new()),
            count("submitted"),
            count("processed"),
            count("skipped"),
            count("failed"),
            count("lost"),
        ])
    });
    table(
        "Objects by tier",
        BALANCE,
        rows.collect(),
        Signal::stored(false),
    )
}

fn found(one: Record) -> AnyView {
    let findings = one.list("findings").into_iter().map(|finding| {
        view! { <li><strong>{finding.text("message")}</strong><p class="muted">{finding.text("recommendation")}</p></li> }.into_any()
    });
    let findings: Vec<_> = findings.collect();
    let findings = match findings.is_empty() {
        true => view! { <p>"Nothing is out of order."</p> }.into_any(),
        false => view! { <ul class="notes">{findings}</ul> }.into_any(),
    };
    let chunks = one.list("chunks").into_iter().map(|chunk| {
        line(vec![
            cell("", badge(&chunk.text("status"))),
            number(chunk.int("count")),
            number(chunk.int("most_failed_tries")),
        ])
    });
    let chunks: Vec<_> = chunks.collect();
    let chunks = (!chunks.is_empty())
        .then(|| table("Pieces of work", FINDINGS, chunks, Signal::stored(false)));
    let error = one
        .opt("first_error")
        .map(|error| view! { <p class="notice warn">"The first error: "{error}</p> }.into_any());
    view! { <div class="stack"><div class="row">{badge(&one.text("health"))}</div>{error}{findings}{chunks}</div> }
        .into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::{RetryBatchRequest, RetryBatchRequestRetryMode};

    use super::*;

    #[test]
    fn a_batch_can_begin_again_at_each_of_its_tiers() {
        let all = beginnings(2);
        assert_eq!(all.len(), 4);
        assert_eq!(all[0].0, "");
        assert_eq!(all[2].0, "1");
        assert!(all[2].1.ends_with("tier 2"));
        let called: Vec<_> = all.iter().map(|(from, _)| rerun(from).0).collect();
        assert_eq!(called[0], "resubmit");
        assert_eq!(called[2], "resubmit?from_tier=1");
        assert_eq!(called[3], "submit?force=true");
    }

    #[test]
    fn what_is_asked_for_is_a_request() {
        let body = json!({"retry_mode": "transient_only"});
        let asked: RetryBatchRequest = serde_json::from_value(body).expect("a body");
        assert_eq!(asked.retry_mode, RetryBatchRequestRetryMode::TransientOnly);
    }
}
