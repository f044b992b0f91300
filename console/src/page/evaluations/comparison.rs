//! Two retrievers over one dataset, figure beside figure.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{figures, goes_on, listed, names, share};
use crate::{
    api::{Answer, Api},
    load::{Change, Load, Query},
    part::{chart::versus, *},
    record::Record,
    text,
};

/// What is chosen, all of it in the address.
#[derive(Clone, Copy)]
struct Chosen {
    dataset: Query,
    pair: [Query; 2],
    k: Query,
}

pub fn comparison(api: Signal<Api>) -> AnyView {
    let chosen = Chosen {
        dataset: Query::new("dataset"),
        pair: [Query::new("one"), Query::new("other")],
        k: Query::new("k"),
    };
    let known = Load::new(move || known(api.get()));
    let load = Load::new(move || {
        let names = chosen.pair.map(|one| one.value.get());
        newest(api.get(), chosen.dataset.value.get(), names)
    });
    load.poll_while(|one| one.flag("goes_on"));
    let shown = move |known: Record| {
        if known.list("datasets").is_empty() || known.list("retrievers").len() < 2 {
            return view! { <Empty icon="chart" title="Nothing to compare yet" text="A comparison takes a dataset and two retrievers of this namespace."/> }.into_any();
        }
        let pick = |query, label, of: &str| select(query, label, known.list(of));
        let [one, other] = chosen.pair;
        view! {
            <div class="row filters">
                {pick(chosen.dataset, "Dataset", "datasets")}
                {pick(one, "One retriever", "retrievers")}
                {pick(other, "Another retriever", "retrievers")}
            </div>
            {loaded(load, waiting(6), move |found| side_by_side(api, chosen, load, &known, &found))}
        }
        .into_any()
    };
    loaded(known, waiting(6), shown)
}

/// Datasets and retrievers to choose from.
fn known(api: Api) -> Answer {
    Box::pin(async move {
        let datasets = names(api.clone()).await?;
        let datasets: Vec<Value> = datasets.into_iter().map(|one| one.0).collect();
        let mut all = choices(api, &["retrievers"]).await?;
        all.0["datasets"] = datasets.into();
        Ok(all)
    })
}

/// The newest evaluation of each that is completed, why the last one failed if it did, and whether one of them goes on.
fn newest(api: Api, dataset: String, names: [String; 2]) -> Answer {
    Box::pin(async move {
        let (mut found, mut why, mut moving) = (Vec::new(), Vec::new(), false);
        let ready = !dataset.is_empty() && names.iter().all(|name| !name.is_empty());
        for name in names.iter().filter(|_| ready) {
            let path = format!(
                "/v1/retrievers/{}/evaluations?dataset_name={}",
                text::escape(name),
                text::escape(&dataset)
            );
            let all = listed(api.clone(), path, "evaluations", 0)
                .await?
                .list("results");
            moving |= all.first().is_some_and(goes_on);
            why.push(reason(&all));
            let done = all
                .into_iter()
                .find(|one| one.text("status") == "completed");
            found.push(done.unwrap_or_default().0);
        }
        Ok(Record(
            json!({"found": found, "why": why, "goes_on": moving, "ready": ready}),
        ))
    })
}

/// Why the last of the evaluations failed; nothing where it did not.
fn reason(all: &[Record]) -> String {
    let last = all.first().filter(|one| one.text("status") == "failed");
    last.map_or_else(String::new, |one| one.text("error_message"))
}

/// A choice that lives in the address.
fn select(query: Query, label: &'static str, all: Vec<Record>) -> AnyView {
    let now = query.value.get_untracked();
    let options = all.into_iter().map(|one| {
        let (id, name) = (one.text("id"), one.text("name"));
        let selected = id == now;
        view! { <option value=id selected=selected>{name}</option> }.into_any()
    });
    view! {
        <select class="select filter" aria-label=label on:change=move |event| query.set(&event_target_value(&event))>
            <option value="">{label}</option>{options.collect::<Vec<_>>()}
        </select>
    }
    .into_any()
}

fn side_by_side(
    api: Signal<Api>,
    chosen: Chosen,
    load: Load,
    known: &Record,
    found: &Record,
) -> AnyView {
    if !found.flag("ready") {
        return view! { <Empty icon="chart" title="Choose what is compared" text="A dataset, and two retrievers that were asked its queries or are asked now."/> }.into_any();
    }
    if found.flag("goes_on") {
        return view! { <div class="notice" role="status"><strong>"Being measured"</strong><span>"The queries are asked now. This takes as long as that many searches."</span></div> }.into_any();
    }
    let pair = found.list("found");
    let names = chosen.pair.map(|one| {
        let id = one.value.get_untracked();
        let all = known.list("retrievers");
        let named = all.into_iter().find(|one| one.text("id") == id);
        named.map_or(id, |one| one.text("name"))
    });
    let failed = names.iter().zip(found.strings("why"));
    let failed = failed
        .filter(|(_, why)| !why.is_empty())
        .map(|(name, why)| {
            let said = format!("The last evaluation of {name} failed: {why}");
            view! { <p class="notice warn" role="status">{said}</p> }.into_any()
        });
    let mut all: Vec<_> = failed.collect();
    all.push(measured(api, chosen, load, names, &pair));
    all.into_any()
}

/// The figures of both, or a way to get at them.
fn measured(
    api: Signal<Api>,
    chosen: Chosen,
    load: Load,
    names: [String; 2],
    pair: &[Record],
) -> AnyView {
    let absent: Vec<usize> = (0..2).filter(|at| pair[*at].0.is_null()).collect();
    if !absent.is_empty() {
        return measure(api, chosen, load, &names, absent);
    }
    let cuts: Vec<String> = pair[0]
        .record("metrics_by_k")
        .members()
        .into_iter()
        .map(|(k, _)| k)
        .collect();
    let cuts: Vec<String> = cuts
        .into_iter()
        .filter(|k| !figures(&pair[1], k).is_empty())
        .collect();
    let Some(last) = cuts.last().cloned() else {
        return measure(api, chosen, load, &names, vec![0, 1]);
    };
    let k = Some(chosen.k.value.get())
        .filter(|k| cuts.contains(k))
        .unwrap_or(last);
    let both = |name: &str, value: f64| {
        let other = figures(&pair[1], &k)
            .into_iter()
            .find(|(other, _)| other == name)?;
        Some((name.to_owned(), [value, other.1]))
    };
    let rows: Vec<_> = figures(&pair[0], &k)
        .into_iter()
        .filter_map(|(name, value)| both(&name, value))
        .collect();
    let at = cuts.into_iter().map(|cut| {
        let selected = cut == k;
        let label = match cut.as_str() {
            "1" => "The first result".to_owned(),
            cut => format!("The first {cut} results"),
        };
        view! { <option value=cut selected=selected>{label}</option> }.into_any()
    });
    view! {
        <div class="row between">
            <p role="status">{sentence(&names, &rows)}</p>
            <div class="row">
                <select class="select filter" aria-label="Results that are looked at" on:change=move |event| chosen.k.set(&event_target_value(&event))>{at.collect::<Vec<_>>()}</select>
                {again(api, chosen, load, vec![0, 1], "Measure both again")}
            </div>
        </div>
        <section class="card">{versus("Two retrievers compared", names, rows, (360.0, 920.0))}</section>
        <p class="muted">{format!("Measured over {} and {}.", pair[0].int("evaluated_queries").unwrap_or(0), text::counted(pair[1].int("evaluated_queries").unwrap_or(0), "query", "queries"))}</p>
    }
    .into_any()
}

/// What the bars say, by the figure that weighs places.
fn sentence([one, other]: &[String; 2], rows: &[(String, [f64; 2])]) -> String {
    let Some((name, [first, second])) = rows.first() else {
        return "They have no figure in common.".to_owned();
    };
    let difference = second - first;
    if difference.abs() < 0.0005 {
        return format!(
            "{one} and {other} are alike: {name} is {} for both.",
            share(*first)
        );
    }
    let (better, worse, by) = match difference > 0.0 {
        true => (other, one, difference),
        false => (one, other, -difference),
    };
    format!(
        "{better} puts right documents higher than {worse}: {name} is {} better.",
        share(by)
    )
}

fn measure(
    api: Signal<Api>,
    chosen: Chosen,
    load: Load,
    names: &[String; 2],
    absent: Vec<usize>,
) -> AnyView {
    let missing: Vec<_> = absent.iter().map(|at| names[*at].clone()).collect();
    let title = format!(
        "{} was not measured with this dataset",
        missing.join(" and ")
    );
    view! {
        <div class="notice warn" role="status">
            <strong>{title}</strong>
            <span>"Every query of the dataset is asked once."</span>
            <div class="row">{again(api, chosen, load, absent, "Measure now")}</div>
        </div>
    }
    .into_any()
}

/// Begins the evaluations of these of the two.
fn again(
    api: Signal<Api>,
    chosen: Chosen,
    load: Load,
    of: Vec<usize>,
    label: &'static str,
) -> AnyView {
    let change = Change::new();
    let begin = move |_| {
        let (api, of) = (api.get_untracked(), of.clone());
        let names = chosen.pair.map(|one| one.value.get_untracked());
        let body = json!({"dataset_name": chosen.dataset.value.get_untracked()});
        let work = async move {
            for at in of {
                let path = format!("/v1/retrievers/{}/evaluations", text::escape(&names[at]));
                api.post(&path, &body).await?;
            }
            Ok(Record::default())
        };
        change.run(work, move |_| load.reload());
    };
    view! {
        <button type="button" class="btn small" aria-busy=move || change.busy.get().to_string() on:click=begin>{label}</button>
        {refusal(change)}
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::{EvaluationRecord, EvaluationStatus};

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn only_the_last_evaluation_says_why_it_failed() {
        let one = |status| {
            sent(&EvaluationRecord {
                status,
                error_message: Some("no query could be measured".into()),
                ..Default::default()
            })
        };
        let failed = one(EvaluationStatus::Failed);
        let completed = one(EvaluationStatus::Completed);
        let why = reason(&[failed.clone(), completed.clone()]);
        assert_eq!(why, "no query could be measured");
        assert_eq!(reason(&[completed, failed]), "");
        assert_eq!(reason(&[]), "");
    }

    #[test]
    fn the_better_one_is_named() {
        let names = ["a".to_owned(), "b".to_owned()];
        let row = |pair| [("ndcg".to_owned(), pair)];
        assert_eq!(
            sentence(&names, &row([0.5, 0.75])),
            "b puts right documents higher than a: ndcg is 0.250 better."
        );
        assert!(sentence(&names, &row([0.5, 0.25])).starts_with("a puts"));
        assert!(sentence(&names, &row([0.5, 0.5])).contains("alike"));
        assert!(!sentence(&names, &[]).is_empty());
    }
}
