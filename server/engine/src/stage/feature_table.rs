//! The parameters of `feature_search`: their table, their short forms, and what a feature's name looks like.

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use super::group::MODES;
use super::schema::{Kind, Member, inside, member, problem, required};
use super::{Definition, StageProblem, decompose, learned, shipped};
use crate::template::is_template;

const SEARCH: &[Member] = &[
    required(
        "feature_uri",
        Kind::Text,
        "The feature to search, such as loupe://text_extractor@v1/all_minilm_l6_v2_v1, or the name of a vector index",
    ),
    required("query", Kind::Query, "What is searched for"),
    member(
        "top_k",
        Kind::Integer(1, 5000),
        "100",
        "Most documents that this search finds",
    ),
    member(
        "min_score",
        Kind::Number(0.0, 1.0),
        "",
        "Similarity below which documents are left out; not for keywords",
    ),
    member(
        "weight",
        Kind::Number(0.0, 1.0),
        "1.0",
        "Its weight beside the other searches",
    ),
    member(
        "lexical",
        Kind::Boolean,
        "false",
        "Whether the query's words are searched for as well",
    ),
    member(
        "optional",
        Kind::Boolean,
        "false",
        "Whether the others go on without it when it has no query or fails",
    ),
    member(
        "on_empty",
        Kind::Choice(&["error", "skip", "random"]),
        r#""error""#,
        "What an empty query does",
    ),
    member(
        "filters",
        Kind::Filter,
        "",
        "Conditions for this search alone",
    ),
    member("pre_filters", Kind::Filter, "", "The same as `filters`"),
    member(
        "collection_identifiers",
        Kind::Texts,
        "[]",
        "Ids or names of the collections searched; all where not given",
    ),
    member(
        "query_preprocessing",
        Kind::Object(decompose::MEMBERS),
        "",
        "How a long text is cut into parts that are searched with one by one; what the stage says where not given",
    ),
];

const FACET: &[Member] = &[
    required(
        "key",
        Kind::Text,
        "Dot path of the field whose values are counted",
    ),
    member("limit", Kind::Integer(1, 1000), "10", "Most values"),
    member(
        "exact",
        Kind::Boolean,
        "false",
        "Accepted; counts are exact",
    ),
];

const GROUP_BY: &[Member] = &[
    required(
        "field",
        Kind::Text,
        "Dot path of the field that a group shares",
    ),
    member(
        "max_per_group",
        Kind::Integer(1, 100),
        "1",
        "Most documents of one group",
    ),
    member("limit", Kind::Integer(1, 500), "25", "Most groups"),
    member(
        "output_mode",
        Kind::Choice(MODES),
        r#""all""#,
        "first: the best document of each group; all: one row a group; flatten: the documents of all groups",
    ),
];

pub(crate) static DEFINITION: Definition = Definition {
    id: "feature_search",
    aliases: &["feature_filter"],
    category: StageCategory::Filter,
    icon: "search",
    about: "Finds documents by similarity to a text, picture, vector or document, and by keywords",
    members: MEMBERS,
};

/// Its parameters, which other stages that search take, too.
pub(crate) const MEMBERS: &[Member] = &[
    member(
        "searches",
        Kind::Objects(SEARCH, 10),
        "[]",
        "What is searched; several are fused",
    ),
    member(
        "final_top_k",
        Kind::Integer(1, 5000),
        "25",
        "Most documents that the stage gives",
    ),
    member(
        "fusion",
        Kind::Choice(&["rrf", "dbsf", "weighted", "max", "learned"]),
        r#""rrf""#,
        "How several searches become one ranking",
    ),
    member("filters", Kind::Filter, "", "Conditions for every search"),
    member("pre_filters", Kind::Filter, "", "The same as `filters`"),
    member(
        "facets",
        Kind::Objects(FACET, 20),
        "[]",
        "Fields whose values are counted over the documents that satisfy the filters",
    ),
    member(
        "group_by",
        Kind::Object(GROUP_BY),
        "",
        "Gathers documents that share a field's value",
    ),
    member(
        "collection_identifiers",
        Kind::Texts,
        "[]",
        "Ids or names of the collections searched; all where not given",
    ),
    member(
        "hard_timeout_ms",
        Kind::Integer(1, i64::MAX),
        "",
        "The stage gives nothing when the store takes longer",
    ),
    member(
        "interactive",
        Kind::Boolean,
        "false",
        "Whether somebody waits: `hard_timeout_ms` is 2000 where not given",
    ),
    member(
        "degrade_retry",
        Kind::Boolean,
        "false",
        "Whether a search that took longer than `hard_timeout_ms` is asked once more, for `final_top_k` documents of each list",
    ),
    member(
        "auto_preprocess",
        Kind::Boolean,
        "true",
        "Whether a text longer than a part (1000 characters) is cut as `query_preprocessing` would, where nothing says how",
    ),
    member(
        "cache_behavior",
        Kind::Choice(&["auto", "disabled", "aggressive"]),
        r#""auto""#,
        "Whether rows are kept for the same question until a document or a definition changes; disabled: not",
    ),
    member(
        "cache_ttl_seconds",
        Kind::Integer(0, 31_536_000),
        "",
        "How long they are kept at most; a minute where not given, and never longer",
    ),
    member(
        "learning_config",
        Kind::Object(LEARNING),
        "",
        "How `learned` fusion weighs what people did with earlier answers",
    ),
    member(
        "query_preprocessing",
        Kind::Object(decompose::MEMBERS),
        "",
        "How long texts are cut into parts that are searched with one by one, in every search",
    ),
];

/// Members of `learning_config`.
const LEARNING: &[Member] = &[
    member(
        "algorithm",
        Kind::Choice(&["thompson_sampling", "epsilon_greedy", "ucb"]),
        "",
        "How other weights are tried out; none are where not given",
    ),
    member(
        "context_features",
        Kind::Texts,
        "[]",
        "Inputs that make questions alike: acts of the same values are learned from where there are enough",
    ),
    member(
        "demographic_features",
        Kind::Texts,
        "[]",
        "Inputs that make people alike, beside `context_features`",
    ),
    member(
        "fallback_strategy",
        Kind::Choice(&["hierarchical", "global"]),
        r#""hierarchical""#,
        "With too few alike, hierarchical: those of the same context, then all; global: all",
    ),
    member(
        "min_interactions",
        Kind::Integer(1, 100),
        "5",
        "Interactions below which the lists are fused by their ranks",
    ),
    member(
        "reward_signal",
        Kind::Text,
        r#""click""#,
        "The kind of interaction that is rewarded",
    ),
    member(
        "reward_map",
        Kind::Map,
        "{}",
        "Rewards by kind of interaction, in place of `reward_signal`",
    ),
    member(
        "max_reward_per_interaction",
        Kind::Number(0.1, 100.0),
        "5.0",
        "Most that one interaction counts",
    ),
    member(
        "prior_alpha",
        Kind::Number(0.1, 1e6),
        "1.0",
        "Evidence that every list starts with",
    ),
    member(
        "prior_beta",
        Kind::Number(0.1, 1e6),
        "1.0",
        "Evidence against every list at the start, for `algorithm`",
    ),
    member(
        "decay_factor",
        Kind::Number(0.9, 1.0),
        "0.995",
        "What is left of an interaction's weight after a day",
    ),
    member(
        "decay_window_days",
        Kind::Integer(1, 3650),
        "365",
        "Days after which an interaction counts no more",
    ),
    member(
        "min_weight",
        Kind::Number(0.0, 0.5),
        "0.05",
        "Least weight of a list",
    ),
    member(
        "max_weight",
        Kind::Number(0.5, 1.0),
        "0.95",
        "Most weight of a list",
    ),
    member(
        "exploration_bonus",
        Kind::Number(0.1, 10.0),
        "1.0",
        "How much `algorithm` tries out at first",
    ),
    member(
        "exploration_decay",
        Kind::Number(0.9, 1.0),
        "0.99",
        "What is left of that after each interaction",
    ),
    member(
        "exploration_floor",
        Kind::Number(0.0, 5.0),
        "0.1",
        "Least that is tried out",
    ),
    member(
        "rollout_pct",
        Kind::Number(0.0, 100.0),
        "100.0",
        "Share of the questions that are answered by what was learned",
    ),
    member(
        "shadow_mode",
        Kind::Boolean,
        "false",
        "Whether weights are told, and not used",
    ),
    member(
        "circuit_breaker_timeout_ms",
        Kind::Integer(1, 30_000),
        "1000",
        "Milliseconds after which an answer does not wait for what was learned",
    ),
    shipped::DATASET,
    shipped::OF_LISTS,
];

/// The short form of one search (`feature_uri`, `query` beside `final_top_k`) becomes a list of one; a query that is a
/// text becomes the mode `text`.
pub(crate) fn normalize(parameters: &mut Object) {
    if !parameters.contains_key("searches") && parameters.contains_key("feature_uri") {
        const OF_THE_SEARCH: [&str; 8] = [
            "feature_uri",
            "query",
            "top_k",
            "min_score",
            "weight",
            "lexical",
            "optional",
            "on_empty",
        ];
        let mut search = Object::new();
        for name in OF_THE_SEARCH {
            if let Some(value) = parameters.shift_remove(name) {
                search.insert(name.to_owned(), value);
            }
        }
        parameters.insert("searches".into(), json!([search]));
    }
    let searches = parameters.get_mut("searches").and_then(Value::as_array_mut);
    for search in searches.into_iter().flatten() {
        if let Some(query) = search.get_mut("query") {
            if query.is_string() {
                *query = json!({"input_mode": "text", "value": query.take()});
            } else if let Some(object) = query.as_object_mut() {
                object.entry("input_mode").or_insert_with(|| json!("text"));
            }
        }
    }
}

/// What the table cannot say.
pub(crate) fn check(parameters: &Object, loc: &[String], out: &mut Vec<StageProblem>) {
    let place = inside(loc, "searches");
    let searches = parameters
        .get("searches")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if searches.is_empty() {
        out.push(problem(
            place.clone(),
            "missing",
            "a search stage has 1 to 10 searches".into(),
        ));
    }
    for (i, search) in searches.iter().enumerate() {
        let uri = search
            .get("feature_uri")
            .and_then(Value::as_str)
            .unwrap_or("ok");
        if !is_template(uri) && !is_feature(uri) {
            let msg = format!(
                "`{uri}` is neither loupe://extractor@version/output nor the name of a vector index"
            );
            out.push(problem(
                inside(&inside(&place, &i.to_string()), "feature_uri"),
                "invalid_feature_uri",
                msg,
            ));
        }
        let here = inside(&place, &i.to_string());
        check_preprocessing(search.get("query_preprocessing"), uri, &here, out);
        check_preprocessing(parameters.get("query_preprocessing"), uri, loc, out);
    }
    let names: Vec<String> = (0..searches.len())
        .flat_map(|i| ["", "_lexical", "_random"].map(|kind| format!("search_{i}{kind}")))
        .collect();
    shipped::check(parameters.get("learning_config"), Some(&names), loc, out);
    learned::check(parameters.get("learning_config"), loc, out);
}

/// The parts of a query are searched by the feature of the search.
fn check_preprocessing(
    given: Option<&Value>,
    uri: &str,
    loc: &[String],
    out: &mut Vec<StageProblem>,
) {
    let other = given.and_then(|given| given.get("feature_uri")?.as_str());
    let is_other = |other: &&str| *other != uri && !is_template(other) && !is_template(uri);
    if let Some(other) = other.filter(is_other) {
        let msg = format!("parts of a query are searched by `{uri}`, not by `{other}`");
        let loc = inside(&inside(loc, "query_preprocessing"), "feature_uri");
        out.push(problem(loc, "invalid_feature_uri", msg));
    }
}

fn is_feature(uri: &str) -> bool {
    let word = |s: &str, more: &str| {
        !s.is_empty()
            && s.chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.' || more.contains(c))
    };
    match uri.strip_prefix("loupe://") {
        None => !uri.contains("://") && word(uri, "-@"),
        Some(rest) => {
            let mut parts = rest.split('/');
            let head = parts.next().and_then(|h| h.split_once('@'));
            head.is_some_and(|(name, version)| word(name, "-") && word(version, ""))
                && parts.all(|p| word(p, "-@"))
        }
    }
}
