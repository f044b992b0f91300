//! The list of results and what stands around it.

use leptos::prelude::*;
use loupe_wire::{FieldFormatType, Value};
use serde_json::json;

use super::beside::Text;
use super::card::Cards;
use super::form::suggestions;
use super::format::grouped;
use super::look::{Look, label};
use super::query::{DEEPEST, LAST_PAGE, Query, encode};
use super::text::{capitalized, markdown, truncate};
use crate::{Facet, HostError, Page, SearchAnswer};

/// What the search came to.
pub enum Outcome {
    /// Nothing was asked and the page waits.
    Waiting,
    /// Some input cannot be what it should.
    Refused,
    /// An answer, perhaps an empty one.
    Answer(SearchAnswer),
    /// No answer.
    Failed(HostError),
}

/// What the script needs to tell what a visitor does with results: where to, in which search, of which inputs.
#[derive(Debug, Default)]
struct Telling {
    to: Option<String>,
    execution: Option<String>,
    query: Option<String>,
    total: Option<String>,
}

impl Telling {
    fn of(cards: &Cards<'_>, outcome: &Outcome, told: bool) -> Self {
        let Outcome::Answer(answer) = outcome else {
            return Self::default();
        };
        if !told {
            return Self::default();
        }
        let inputs = cards.query.told();
        Self {
            to: Some(beacon(cards.page)),
            execution: Some(answer.execution_id.clone()).filter(|id| !id.is_empty()),
            query: Some(json!({ "inputs": inputs }).to_string()),
            total: Some(answer.total.to_string()),
        }
    }
}

/// Where a page tells what its visitors do.
pub fn beacon(page: &Page) -> String {
    let name = encode(&page.public_name);
    format!("/v1/public/retrievers/{name}/interactions/batch")
}

/// The results section; `told` lets the script tell what is done with them.
pub fn results(cards: &Cards<'_>, outcome: &Outcome, told: bool) -> AnyView {
    let inner = match outcome {
        Outcome::Waiting => {
            return view! { <section id="content" class="results-area" data-results></section> }
                .into_any();
        }
        Outcome::Refused if cards.query.has_too_many => too_many(cards.query),
        Outcome::Refused => problem(
            "Check the search",
            "One of the fields above needs another value.",
            None,
        ),
        Outcome::Failed(error) => failed(cards.query, error),
        Outcome::Answer(answer) if answer.is_nothing_yet() => unfinished(cards.query),
        Outcome::Answer(answer)
            if answer.documents.is_empty() && cards.beside.written.is_empty() =>
        {
            empty(cards, answer)
        }
        Outcome::Answer(answer) => found(cards, answer),
    };
    let telling = Telling::of(cards, outcome, told);
    let by_file = cards.query.file().map(|_| "");
    view! {
        <section id="content" class="results-area" aria-label="Results" data-results data-by-file=by_file
            data-beacon=telling.to data-execution=telling.execution data-query=telling.query
            data-total=telling.total>{inner}</section>
    }
    .into_any()
}

fn found(cards: &Cards<'_>, answer: &SearchAnswer) -> AnyView {
    let (look, query) = (cards.look, cards.query);
    let items = answer
        .documents
        .iter()
        .enumerate()
        .map(|(index, hit)| cards.view(index, hit))
        .collect_view();
    let facets = facets(cards, &answer.facets);
    let counted = !answer.documents.is_empty();
    let class = if facets.is_some() { "split" } else { "whole" };
    let heading = if query.is_empty() {
        "Browse"
    } else {
        "Results"
    };
    view! {
        <h2 class="sr">{heading}</h2>
        {written(&cards.beside.written)}
        {counted.then(|| header(cards, answer))}
        {answer.is_partial.then(|| partial(query))}
        {chips(cards)}
        <div class=class>
            {facets}
            <div>
                <ul class="results" role="list">{items}</ul>
                {paging(query, look, answer.total)}
            </div>
        </div>
    }
    .into_any()
}

/// What a language model wrote, above the documents, with the way to those that it was made of.
fn written(texts: &[Text]) -> Option<AnyView> {
    let one = |written: &Text| {
        let group = written.group.clone();
        let sources: Vec<_> = written
            .sources
            .iter()
            .map(|(href, title)| view! { <li><a href=href.clone()>{truncate(title, 80)}</a></li> })
            .collect();
        let some = !sources.is_empty();
        view! {
            {group.map(|group| view! { <h3>{group}</h3> })}
            <div class="prose" inner_html=markdown(&written.text)></div>
            {some.then(|| view! { <p class="hint">"Made of"</p><ol class="sources">{sources}</ol> })}
        }
    };
    let texts: Vec<_> = texts.iter().map(one).collect();
    (!texts.is_empty()).then(|| {
        view! {
            <section class="written" aria-label="Answer">
                <p class="hint" role="status">"Written by a language model, which can be wrong"</p>
                {texts}
            </section>
        }
        .into_any()
    })
}

/// How many there are. Where the owner shows no number, whoever hears the page is told all the same that there are new ones.
fn header(cards: &Cards<'_>, answer: &SearchAnswer) -> AnyView {
    if !cards.look.header {
        return count(cards, answer, "sr");
    }
    view! { <div class="found">{count(cards, answer, "count")}{share(cards.query)}</div> }
        .into_any()
}

fn count(cards: &Cards<'_>, answer: &SearchAnswer, class: &'static str) -> AnyView {
    let query = cards.query;
    let noun = if answer.total == 1 {
        "result"
    } else {
        "results"
    };
    let total = grouped(&answer.total.to_string());
    let words = query.words();
    if query.is_empty() {
        return view! { <p class=class role="status">{format!("{total} to browse")}</p> }
            .into_any();
    }
    let about =
        (!words.is_empty()).then(|| view! { " for "<strong>{format!("“{words}”")}</strong> });
    let by_file = query.file().map(|file| format!(" like {}", file.name));
    let like = cards.beside.like.as_ref();
    let like = like.map(|like| format!(" {}", like.said()));
    let page = (query.page > 1).then(|| format!(", page {}", query.page));
    let took = format!(" in {} ms", answer.took_ms);
    view! { <p class=class role="status">{format!("{total} {noun}")}{about}{by_file}{like}{page}<span class="took">{took}</span></p> }.into_any()
}

/// Gives the address of the results to others, with script. A file has none, and in a frame the site around it is shared.
fn share(query: &Query) -> Option<AnyView> {
    let shared = !query.is_empty() && query.file().is_none() && !query.is_framed();
    shared.then(|| {
        view! { <button class="button small scripted" type="button" data-share=query.shared()>"Share"</button> }
            .into_any()
    })
}

/// Names a value of a filter, for the script: what has the focus keeps it when the results change.
fn kept(field: &str, value: &str) -> String {
    format!("{field}={value}")
}

/// Filters in force, each a link that drops it; before them the document that results are to be like.
fn chips(cards: &Cards<'_>) -> Option<AnyView> {
    let (page, query) = (cards.page, cards.query);
    let like = cards.beside.like.as_ref().map(|like| {
        let said = like.said();
        let drop = format!("Drop: {said}");
        view! {
            <li><a class="chip on" href=like.without.clone() aria-label=drop>
                {capitalized(&said)}<span aria-hidden="true">" ×"</span>
            </a></li>
        }
    });
    let chips: Vec<_> = query
        .filters
        .iter()
        .flat_map(|(field, values)| values.iter().map(move |value| (field, value)))
        .map(|(field, value)| {
            let named = label(&page.display_config, field);
            let drop = format!("Drop the filter {named}: {value}");
            view! {
                <li><a class="chip on" href=query.without_filter(field, value) aria-label=drop data-keep=kept(field, value)>
                    {format!("{named}: {value}")}<span aria-hidden="true">" ×"</span>
                </a></li>
            }
        })
        .collect();
    let several = chips.len() > 1;
    (like.is_some() || !chips.is_empty()).then(|| view! {
        <ul class="chips" aria-label="Filters in force">
            {like}
            {chips}
            {several.then(|| view! { <li><a class="clear" href=query.without_filters()>"Clear all"</a></li> })}
        </ul>
    }.into_any())
}

fn facets(cards: &Cards<'_>, facets: &[Facet]) -> Option<AnyView> {
    let display = &cards.page.display_config;
    let groups: Vec<_> = facets.iter()
        .filter(|facet| cards.query.facets.contains(&facet.field) && !facet.values.is_empty())
        .map(|facet| {
            let truth = display.field_config.get(&facet.field)
                .filter(|config| config.format == FieldFormatType::Boolean)
                .and_then(|config| config.format_options.clone());
            let values = facet.values.iter().take(12).filter_map(|value| {
                let raw = match &value.value {
                    Value::String(text) if !text.is_empty() => text.clone(),
                    Value::Bool(_) | Value::Number(_) => value.value.to_string(),
                    _ => return None,
                };
                let chosen = cards.query.filters.get(&facet.field).is_some_and(|values| values.contains(&raw));
                let href = if chosen { cards.query.without_filter(&facet.field, &raw) } else { cards.query.with_filter(&facet.field, &raw) };
                let shown = match (&value.value, &truth) {
                    (Value::Bool(true), Some(options)) => options.true_label.clone(),
                    (Value::Bool(false), Some(options)) => options.false_label.clone(),
                    _ => raw.clone(),
                };
                let current = chosen.then_some("true");
                let kept = kept(&facet.field, &raw);
                Some(view! {
                    <li><a href=href aria-current=current rel="nofollow" data-keep=kept><span>{shown}</span><span class="n">{grouped(&value.count.to_string())}</span></a></li>
                })
            }).collect_view();
            view! { <div class="facet"><h3>{label(display, &facet.field)}</h3><ul>{values}</ul></div> }
        })
        .collect();
    let chosen = !cards.query.filters.is_empty();
    (!groups.is_empty()).then(|| view! {
        <aside class="facets" aria-label="Filters">
            <details open=chosen><summary>"Filters"</summary><div class="groups">{groups}</div></details>
        </aside>
    }.into_any())
}

/// Pages around the current one, the first and the last.
fn paging(query: &Query, look: &Look, total: u64) -> Option<AnyView> {
    let size = u64::from(look.page_size);
    let last = total.div_ceil(size).min(u64::from(DEEPEST) / size);
    let last = u32::try_from(last).unwrap_or(u32::MAX).min(LAST_PAGE);
    if last <= 1 {
        return None;
    }
    let current = query.page.min(last);
    let mut numbers: Vec<u32> =
        (current.saturating_sub(2).max(1)..=(current + 2).min(last)).collect();
    if numbers.first() != Some(&1) {
        numbers.insert(0, 1);
    }
    if numbers.last() != Some(&last) {
        numbers.push(last);
    }
    let mut before = 0;
    let items = numbers.into_iter().map(|number| {
        let gap = (number > before + 1).then(|| view! { <li class="gap" aria-hidden="true">"…"</li> });
        before = number;
        let current = (number == query.page).then_some("page");
        let named = format!("Page {number}");
        view! { {gap}<li><a href=query.at_page(number) aria-current=current aria-label=named>{number.to_string()}</a></li> }
    }).collect_view();
    let back = (current > 1)
        .then(|| view! { <li><a rel="prev" href=query.at_page(current - 1)>"Previous"</a></li> });
    let on = (current < last)
        .then(|| view! { <li><a rel="next" href=query.at_page(current + 1)>"Next"</a></li> });
    // The script puts the next page beneath this one; without it the link is the one to the next page.
    let more = (current < last).then(|| {
        view! {
            <p class="load scripted"><a class="button" href=query.at_page(current + 1) data-more=total.to_string()>"Load more"</a></p>
        }
    });
    Some(
        view! { <nav class="paging" aria-label="Pages">{more}<ul>{back}{items}{on}</ul></nav> }
            .into_any(),
    )
}

fn problem(
    title: &'static str,
    text: &'static str,
    action: Option<(String, &'static str)>,
) -> AnyView {
    view! {
        <div class="state" role="alert">
            <h2>{title}</h2>
            <p>{text}</p>
            {action.map(|(href, label)| view! { <p><a class="button retry" href=href>{label}</a></p> })}
        </div>
    }
    .into_any()
}

/// More than a search takes: nobody is shown what was found by some of it.
fn too_many(query: &Query) -> AnyView {
    view! {
        <div class="state" role="alert">
            <h2>"Too many choices"</h2>
            <p>"A search takes 50 values of a filter at most, and 200 of all. Choose fewer of them."</p>
            <p><a class="button" href=query.without_filters()>"Search without filters"</a></p>
        </div>
    }
    .into_any()
}

/// Something did not answer, or not in time: what is there is shown, and that there may be more is said.
fn partial(query: &Query) -> AnyView {
    let again = query.at_page(query.page);
    view! {
        <p class="note" role="status" data-partial="">"Something that this search needs did not answer: there may be more. "<a class="retry" href=again>"Search again"</a></p>
    }
    .into_any()
}

fn unfinished(query: &Query) -> AnyView {
    problem(
        "The search was not finished",
        "This is not an empty result: something that the search needs did not answer. Try again in a moment.",
        Some((query.at_page(query.page), "Try again")),
    )
}

fn failed(query: &Query, error: &HostError) -> AnyView {
    let again = Some((query.at_page(query.page), "Try again"));
    match error {
        HostError::Invalid(_) => problem(
            "This search cannot be run",
            "Change the search and try again. Nothing is wrong with the page.",
            None,
        ),
        HostError::Busy { .. } => problem(
            "Too many searches just now",
            "Wait a moment, then try again.",
            again,
        ),
        HostError::Timeout => problem(
            "The search took too long",
            "There may well be results. Try again, or search for something narrower.",
            again,
        ),
        HostError::Failed(_) => problem(
            "The search failed",
            "This is not an empty result: the search could not be run. Try again in a moment.",
            again,
        ),
    }
}

/// Nothing found: what was searched, and every way out.
fn empty(cards: &Cards<'_>, answer: &SearchAnswer) -> AnyView {
    let query = cards.query;
    let words = query.words();
    let beyond = answer.total > 0 && query.page > 1;
    let title = match (beyond, words.is_empty()) {
        (true, _) => "No more results on this page".to_owned(),
        (_, true) => match &cards.beside.like {
            Some(like) => format!("Nothing found {}", like.said()),
            None => "Nothing found".to_owned(),
        },
        _ => format!("Nothing found for “{words}”"),
    };
    let searched = cards.page.collections.len();
    let scope = match searched {
        _ if !query.filters.is_empty() => None,
        0 => None,
        1 => Some("The whole collection was searched.".to_owned()),
        number => Some(format!("All {number} collections were searched.")),
    };
    let filters: Vec<_> = query
        .filters
        .iter()
        .flat_map(|(field, values)| values.iter().map(move |value| (field, value)))
        .map(|(field, value)| {
            let text = format!(
                "without {}: {value}",
                label(&cards.page.display_config, field)
            );
            view! { <li><a class="chip" href=query.without_filter(field, value)>{text}</a></li> }
        })
        .collect();
    let drop = (!filters.is_empty()).then(|| {
        view! {
            <div class="ways"><p>"Search again"</p><ul class="chips">{filters}</ul></div>
        }
    });
    let first = beyond.then(
        || view! { <p><a class="button" href=query.at_page(1)>"Go to the first page"</a></p> },
    );
    let hint =
        (!words.is_empty() && !beyond).then(|| view! { <p>"Try fewer or more general words."</p> });
    view! {
        <div class="state">
            <div role="status"><h2>{title}</h2></div>
            {scope.filter(|_| !beyond).map(|scope| view! { <p>{scope}</p> })}
            {hint}
            {first}
            {drop}
            {suggestions(query)}
        </div>
    }
    .into_any()
}
