//! The plans of the rate card, and choosing one of them.

use leptos::prelude::*;
use serde_json::json;

use crate::{
    load::{Change, Load},
    part::*,
    record::{Record, plain},
    session::use_session,
    text,
};

const CARD: &str = "/v1/billing/pricing";
const CHOOSE: &str = "/v1/organizations/billing/subscribe";

#[component]
pub fn Plans(open: RwSignal<bool>, about: Load) -> AnyView {
    let (session, toasts): (_, Toasts) = (use_session(), expect_context());
    let (change, chosen) = (Change::new(), RwSignal::new(String::new()));
    let now = move || about.good().map_or_else(String::new, |org| current(&org));
    let card = Load::of(
        move || session.api(),
        move || match open.get() {
            true => CARD.to_owned(),
            false => String::new(),
        },
    );
    Effect::new(move |_| {
        if open.get() {
            chosen.set(untrack(now));
        }
    });
    let submit = Callback::new(move |()| {
        let plan = chosen.get_untracked();
        if plan.is_empty() {
            change.refuse("choose one of the plans");
            return;
        }
        let api = session.api();
        let call = async move {
            api.post(CHOOSE, &json!({ "plan": plan })).await?;
            // Limits on calls are those of the plan.
            api.get("/v1/me").await
        };
        change.run(call, move |me| {
            open.set(false);
            session.me.set(Some(me));
            about.reload();
            toasts.say("The plan holds from now on");
        });
    });
    let options = move |card: Record| {
        let all = card.list("managed_plans").into_iter();
        let all = all.map(|one| option(one, chosen, &untrack(now)));
        view! { <fieldset><legend class="sr-only">"Plans"</legend><div class="options">{all.collect::<Vec<_>>()}</div></fieldset> }.into_any()
    };
    view! {
        <Ask open title="Choose a plan".to_owned() label="Choose" change submit class="wide">
            {loaded(card, waiting(4), options)}
            <p class="muted">"It holds at once, and nothing is paid here. What is there beyond the limits of a smaller plan stays; more of it cannot be made."</p>
        </Ask>
    }
    .into_any()
}

/// The plan that the organization is on; none until one is chosen.
fn current(org: &Record) -> String {
    match org.flag("requires_plan") {
        true => String::new(),
        false => org.text("account_type"),
    }
}

fn option(one: Record, chosen: RwSignal<String>, now: &str) -> AnyView {
    let tier = one.text("tier");
    let title = match tier == now {
        true => format!("{}, as now", one.text("name")),
        false => one.text("name"),
    };
    let on = {
        let tier = tier.clone();
        move || chosen.with(|chosen| *chosen == tier)
    };
    let told = told(&one).into_iter();
    let told = told.map(|line| view! { <span class="hint">{line}</span> }.into_any());
    let told = told.collect::<Vec<_>>();
    view! {
        <label class="check option">
            <input type="radio" name="plan" prop:checked=on on:change=move |_| chosen.set(tier.clone())/>
            <span>{title}{told}</span>
        </label>
    }
    .into_any()
}

/// What a plan includes, in lines.
fn told(one: &Record) -> Vec<String> {
    let pool = one.float("usage_pool_usd").unwrap_or(0.0);
    let pool = match pool > 0.0 {
        true => format!("{} of use a month", text::dollars(pool)),
        false => "Use by contract".to_owned(),
    };
    let limits = one.record("resource_limits").members().into_iter();
    let limits = limits.map(|(name, n)| match (n.0.as_i64(), name.as_str()) {
        (Some(n), "api_keys") => text::counted(n, "API key", "API keys"),
        (Some(n), "batch_objects") => text::counted(n, "object a batch", "objects a batch"),
        (Some(n), name) => text::counted_as(n, name),
        (None, name) => format!("{} {}", plain(&n.0), text::words(name)),
    });
    let limits = match limits.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "No limit on what there is".to_owned(),
        some => format!("Up to {some}"),
    };
    let rates = one.record("rate_limits");
    let rate = rates.int("requests_per_minute");
    let rate = rate.map(|rate| format!("{} requests a minute, each key", text::count(rate)));
    [Some(pool), Some(limits), rate]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use loupe_wire::PlanDefinitionResponse;

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn a_plan_is_told_in_lines() {
        let mut one = PlanDefinitionResponse {
            tier: "build".into(),
            usage_pool_usd: Some(10.0),
            ..Default::default()
        };
        let limits = [
            ("namespaces", 1),
            ("documents", 10_000),
            ("api_keys", 2),
            ("batch_objects", 100),
        ];
        let limits = limits.map(|(name, n)| (name.to_owned(), n.into()));
        one.resource_limits = limits.into_iter().collect();
        one.rate_limits
            .insert("requests_per_minute".to_owned(), 60.into());
        assert_eq!(
            told(&sent(&one)),
            [
                "$10.00 of use a month",
                "Up to 1 namespace, 10,000 documents, 2 API keys, 100 objects a batch",
                "60 requests a minute, each key"
            ]
        );
        let free = told(&Record::default());
        assert_eq!(free, ["Use by contract", "No limit on what there is"]);
    }

    #[test]
    fn no_plan_is_marked_before_one_was_chosen() {
        let org = |needs: bool| Record(json!({"account_type": "build", "requires_plan": needs}));
        assert_eq!(current(&org(true)), "");
        assert_eq!(current(&org(false)), "build");
    }
}
