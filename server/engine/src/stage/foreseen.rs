//! What memory and other machines have to do with a stage, as far as that is known before it runs.

use loupe_wire::Value;

use super::parameters::Parameters;
use super::plan::Step;
use super::{Configured, decision, kept};

/// Milliseconds of a question to a language model, and of a call of another machine: nobody knows better before they are asked.
const LANGUAGE_MS: f64 = 1_000.0;
const CALL_MS: f64 = 200.0;
/// Documents that stages which call other machines work on at most.
const MOST_CALLS: u64 = 100;
/// Documents of one question of `llm_filter`, and questions that are asked at once.
const TOGETHER: u64 = 10;
const AT_ONCE: u64 = 3;

/// Whether what a stage gives may come from memory; `is_unread` where no stage before it has read documents.
pub(super) fn is_remembered(step: &Step, p: &Parameters, is_unread: bool) -> bool {
    let keeps = kept::time_of(p).is_some();
    match step.definition.id {
        "feature_search" => is_unread && keeps && !kept::is_of_the_moment(&step.parameters),
        "rerank" => keeps,
        "document_enrich" => keeps && step.inner.is_none() && p.text("retriever_id").is_none(),
        _ => false,
    }
}

/// Whether a stage leaves it to those behind it to read the documents.
pub(super) fn leaves_unread(step: &Step) -> bool {
    let takes_nulls_last = || step.parameters.get("nulls_last") != Some(&Value::Bool(false));
    step.filters.after.is_none()
        && match step.definition.id {
            "attribute_filter" => true,
            "sort_attribute" => takes_nulls_last(),
            _ => false,
        }
}

/// Milliseconds that a stage waits for other machines.
pub(super) fn waits_ms(step: &Step, p: &Parameters, input: u64, configured: Configured) -> f64 {
    let number = |name: &str| p.count(name).unwrap_or(1).max(1) as u64;
    let rounds = |count: u64, at_once: u64| count.div_ceil(at_once) as f64;
    let asked = input.min(MOST_CALLS);
    match step.definition.id {
        "llm_filter" => LANGUAGE_MS * rounds(input.div_ceil(TOGETHER), AT_ONCE),
        "llm_enrich" => LANGUAGE_MS * rounds(input, number("batch_size")),
        "summarize" if p.text("group_by").is_none() => LANGUAGE_MS,
        "summarize" => LANGUAGE_MS * rounds(input.isqrt(), AT_ONCE),
        "agent_search" => LANGUAGE_MS * number("max_iterations") as f64,
        // An agent asks for something and then answers.
        "agentic_enrich" => LANGUAGE_MS * 2.0 * rounds(asked, number("max_concurrency")),
        "rerank" if decision::is_asked(p) => {
            let read = input.min(number("max_candidates"));
            LANGUAGE_MS * rounds(read, number("batch_size"))
        }
        "attribute_filter" if p.text("natural_language").is_some() => LANGUAGE_MS,
        "query_expand" if configured.language => LANGUAGE_MS,
        "api_call" => CALL_MS * rounds(asked, 5),
        "web_scrape" => CALL_MS * rounds(asked, number("batch_size")),
        "sql_lookup" | "external_web_search" | "external_reverse_image" => CALL_MS,
        _ => 0.0,
    }
}
