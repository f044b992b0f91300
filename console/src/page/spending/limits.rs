//! What the organization lets itself spend, and what a workload would cost before it runs.

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    load::Load,
    part::{chart::share, schema::Form, *},
    record::{Record, only},
    session::use_session,
    text,
};

const CAPS: &str = "/v1/organizations/billing/spending-caps";
const ESTIMATE: &str = "/v1/organizations/billing/estimate";

/// The names of the forms.
const FORM: &str = "spending/limits";
const WORKLOAD: &str = "spending/estimate";

/// The form, as it stands.
fn filled(caps: &Record) -> Value {
    let percents = caps.strings("spending_alert_thresholds");
    json!({
        "budget": caps.float("monthly_spending_budget_usd"), "quiet": !caps.flag("spending_alerts_enabled"), "thresholds": percents,
        "cap": caps.float("hard_spending_cap_usd"), "stops": caps.flag("hard_cap_enabled"),
    })
}

fn cents(usd: Option<f64>) -> Option<i64> {
    usd.map(|usd| (usd * 100.0).round() as i64)
}

/// What of the form is sent. A word that is no number goes along, and the server says what is wrong with it.
fn sent(form: &Record) -> Value {
    let percents = form.strings("thresholds").into_iter();
    let percents = percents.map(|one| {
        one.parse::<i64>()
            .map_or_else(|_| Value::from(one), Value::from)
    });
    let amount = |name: &str| match form.value(name) {
        Some(Value::String(word)) => Value::from(word.as_str()),
        _ => json!(cents(form.float(name))),
    };
    json!({
        "monthly_spending_budget": amount("budget"), "spending_alerts_enabled": !form.flag("quiet"),
        "spending_alert_thresholds": percents.collect::<Vec<Value>>(),
        "hard_spending_cap": amount("cap"), "hard_cap_enabled": form.flag("stops"),
    })
}

/// Limits, and the dialog that changes them.
pub fn limits() -> AnyView {
    let session = use_session();
    let load = Load::of(move || session.api(), || CAPS.to_owned());
    let open = RwSignal::new(false);
    let start = move || load.good().map(|caps| filled(&caps)).unwrap_or_default();
    let send = move |body: Value| session.api().post(CAPS, &sent(&Record(body)));
    let toasts: Toasts = expect_context();
    let done = move |_| {
        toasts.say("The limits hold from the next request on");
        load.reload();
    };
    view! {
        <div class="row between"><h2 id="limits">"Limits"</h2>
            <button type="button" class="btn" disabled=move || load.good().is_none() on:click=move |_| open.set(true)>"Change the limits"</button></div>
        {loaded(load, waiting(3), shown)}
        <Fill open title="Limits of spending".to_owned() label="Save" form=Form::plain("limits") schema=FORM
            start=Callback::new(move |()| start()) send=Callback::new(send) done=Callback::new(done)/>
    }
    .into_any()
}

fn shown(caps: Record) -> AnyView {
    let spent = caps.float("current_spending_usd").unwrap_or(0.0);
    let usd = |name: &str| caps.float(name);
    let part = |label: &str, limit: f64| {
        let words = format!("{} of {}", text::dollars(spent), text::dollars(limit));
        let part = if limit > 0.0 { spent / limit } else { 1.0 };
        share(label.to_owned(), words, Some(part))
    };
    let stop = usd("hard_spending_cap_usd").filter(|_| caps.flag("hard_cap_enabled"));
    let budget = usd("monthly_spending_budget_usd");
    let percent = |name: &str| caps.strings(name).join(" %, ");
    let told = match (caps.flag("spending_alerts_enabled"), budget) {
        (true, Some(_)) => format!(
            "You are told at {} % of the budget.",
            percent("spending_alert_thresholds")
        ),
        (false, Some(_)) => "Nobody is told of what is spent of the budget.".to_owned(),
        (_, None) => "There is no budget.".to_owned(),
    };
    let sent = percent("spending_alerts_sent");
    let sent = (!sent.is_empty()).then(|| format!(" Told of this month: {sent} %."));
    let end = match stop {
        Some(_) => "Beyond the cap, whatever costs something is refused.",
        None => "Nothing stops spending.",
    };
    view! {
        <ul class="meters free">{budget.map(|limit| part("Budget", limit))}{stop.map(|limit| part("Cap", limit))}</ul>
        <p class="muted">{told}{sent}" "{end}</p>
    }
    .into_any()
}

/// The body of an estimate: one kind of files, with the one figure that counts for it.
fn workload(form: Value) -> Value {
    let mut item = only(
        Record(form.clone()),
        &["mime_type", "count", "minutes", "pages", "tokens"],
    );
    if let Some(members) = item.as_object_mut() {
        // Figures of another kind were emptied when the kind was chosen.
        members.retain(|_, value| !value.is_object());
    }
    let mut body = Map::new();
    body.insert("items".to_owned(), json!([item]));
    body.insert("full_res".to_owned(), (form["full_res"] == true).into());
    Value::Object(body)
}

/// What a workload would cost.
pub fn estimate() -> AnyView {
    let session = use_session();
    let (open, found) = (RwSignal::new(false), RwSignal::new(None::<Record>));
    let send = move |body: Value| session.api().post(ESTIMATE, &workload(body));
    let told = move || {
        let words = match found.get() {
            Some(found) => worth(&found),
            None => "Tell how much there is to process, and what it costs stands here.".to_owned(),
        };
        view! { <p class="muted">{words}</p> }.into_any()
    };
    view! {
        <div class="row between"><h2 id="estimate">"Estimate"</h2>
            <button type="button" class="btn" on:click=move |_| open.set(true)>"Estimate a workload"</button></div>
        <div role="status">{told}</div>
        <Fill open title="What would it cost?".to_owned() label="Estimate" form=Form::plain("estimate") schema=WORKLOAD
            start=Callback::new(|()| json!({"mime_type": "image/*"})) send=Callback::new(send) done=Callback::new(move |one| found.set(Some(one)))/>
    }
    .into_any()
}

/// An estimate in a sentence or two.
fn worth(found: &Record) -> String {
    let usd = |name: &str| text::dollars(found.float(name).unwrap_or(0.0));
    let what = found.list("line_items").into_iter().map(|one| {
        let quantity = one.int("quantity").unwrap_or(0);
        format!(
            "{} × {}",
            text::count(quantity),
            text::words(&one.text("unit"))
        )
    });
    let mut out = format!(
        "{}: {}.",
        what.collect::<Vec<_>>().join(", "),
        usd("total_usd")
    );
    out += &format!(
        " The rest of this month's pool covers {}",
        usd("allowance_covered_usd")
    );
    match found.float("estimated_overage_usd").unwrap_or(0.0) {
        over if over > 0.0 => out + &format!("; {} are beyond it.", text::dollars(over)),
        _ => out + ".",
    }
}

#[cfg(test)]
mod tests {
    use loupe_wire::{EstimateRequest, SpendingCapsResponse, UpdateSpendingCapsRequest};

    use super::*;
    use crate::record::tests;

    #[test]
    fn limits_survive_the_form() {
        let caps = SpendingCapsResponse {
            monthly_spending_budget_usd: Some(50.25),
            spending_alert_thresholds: vec![80, 95],
            spending_alerts_enabled: true,
            ..Default::default()
        };
        let form = filled(&tests::sent(&caps));
        let body = sent(&Record(form));
        assert_eq!(body["monthly_spending_budget"], 5025);
        assert_eq!(body["spending_alert_thresholds"], json!([80, 95]));
        assert_eq!(body["hard_spending_cap"], Value::Null);
        let request: UpdateSpendingCapsRequest = serde_json::from_value(body).expect("a body");
        assert_eq!(request.spending_alerts_enabled, Some(Some(true)));
        assert_eq!(request.hard_cap_enabled, Some(Some(false)));
    }

    #[test]
    fn what_is_no_number_is_left_to_the_server() {
        let form = json!({"budget": "much", "thresholds": ["80", "all"]});
        let body = sent(&Record(form));
        assert_eq!(body["monthly_spending_budget"], "much");
        assert_eq!(body["spending_alert_thresholds"], json!([80, "all"]));
    }

    #[test]
    fn a_workload_has_the_figure_of_its_kind() {
        let form = json!({"mime_type": "video/*", "count": {}, "minutes": 600, "full_res": true});
        let body = workload(form);
        assert_eq!(
            body["items"],
            json!([{"mime_type": "video/*", "minutes": 600}])
        );
        let request: EstimateRequest = serde_json::from_value(body).expect("a body");
        assert!(request.full_res);
    }

    #[test]
    fn an_estimate_is_told_with_what_the_pool_covers() {
        let found = json!({"line_items": [{"unit": "image", "quantity": 10_000.0}], "total_usd": 10.0, "allowance_covered_usd": 8.0,
            "estimated_overage_usd": 2.0});
        assert_eq!(
            worth(&Record(found)),
            "10,000 × image: $10.00. The rest of this month's pool covers $8.00; $2.00 are beyond it."
        );
    }
}
