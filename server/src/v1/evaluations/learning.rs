//! What interactions say of documents: how much each was worth to those who asked a query.

use indexmap::IndexMap;
use loupe_wire::{InteractionResponse, InteractionType, Object, Value, reading};

use crate::{
    app::App,
    error::{Result, Violation},
    list::Window,
    v1::{
        interactions::{self, Wanted},
        retrievers,
    },
};

/// Interactions that are looked at, the newest first.
const MOST: i64 = 50_000;

/// Interactions of one read.
const PAGE: i64 = 5_000;

/// How much an act says for a document: 3 for what is done to keep or to buy it, 2 for what is done with interest, 1 for
/// looking at it, 0 for what says nothing about it.
pub const fn grade(kind: InteractionType) -> i64 {
    use InteractionType as Kind;
    match kind {
        Kind::Purchase | Kind::PositiveFeedback | Kind::Download | Kind::AddToProject => 3,
        Kind::AddToCart
        | Kind::Wishlist
        | Kind::LongView
        | Kind::Share
        | Kind::Bookmark
        | Kind::Save
        | Kind::Play => 2,
        Kind::Click | Kind::View | Kind::Dwell => 1,
        _ => 0,
    }
}

/// One query that people asked, and what they did with its results.
#[derive(Debug, Clone, Default)]
pub struct Judgement {
    pub inputs: Object,
    /// Positive interactions.
    pub interactions: i64,
    /// The best that was done with each document.
    pub relevance: IndexMap<String, i64>,
}

/// The bits of the kinds that speak for a document: those of these names, or those that do by themselves.
pub fn positive(names: Option<&[String]>) -> Result<i64> {
    let Some(names) = names else {
        return Ok(EVERY
            .into_iter()
            .filter(|kind| grade(*kind) > 0)
            .map(interactions::bit)
            .sum());
    };
    let mut bits = 0;
    for name in names {
        let kind: InteractionType =
            reading::from_value(&Value::from(name.clone())).map_err(|_| {
                let msg = "this is no type of interaction";
                Violation::body(
                    &["positive_interaction_types"],
                    "enum",
                    msg,
                    name.clone().into(),
                )
            })?;
        bits |= interactions::bit(kind);
    }
    Ok(bits)
}

/// The kinds that may speak for a document.
const EVERY: [InteractionType; 14] = [
    InteractionType::View,
    InteractionType::Click,
    InteractionType::Dwell,
    InteractionType::PositiveFeedback,
    InteractionType::Purchase,
    InteractionType::AddToCart,
    InteractionType::Wishlist,
    InteractionType::LongView,
    InteractionType::Share,
    InteractionType::Bookmark,
    InteractionType::Play,
    InteractionType::Download,
    InteractionType::Save,
    InteractionType::AddToProject,
];

/// Interactions with the retriever's results since a moment, newest first.
pub async fn recent(
    app: &App,
    namespace_id: &str,
    retriever_id: &str,
    kinds: i64,
    since: i64,
) -> Result<Vec<InteractionResponse>> {
    let wanted = Wanted {
        retriever_id: retriever_id.to_owned(),
        kinds,
        ..Default::default()
    };
    let (mut all, mut window) = (Vec::new(), Window::first(PAGE));
    for _ in 0..MOST / PAGE {
        let page = interactions::stored(app.db(), namespace_id, &wanted, window.clone()).await?;
        if let Some((_, (at, id))) = page.last() {
            (window.at, window.id) = (*at, id.clone());
        }
        let whole = i64::try_from(page.len()).unwrap_or(0) == PAGE;
        let before = all.len();
        let fresh = |one: &InteractionResponse| {
            one.occurred_at
                .is_some_and(|at| at.timestamp_micros() >= since)
        };
        let page = page.into_iter().map(|(one, _)| one);
        all.extend(page.filter(fresh));
        // They come in the order in which they were told: a page of old ones is the end.
        if !whole || all.len() == before {
            break;
        }
    }
    Ok(all)
}

/// What people asked since a moment and what was right for it, the most frequent first. A document that more people found
/// wrong than right is left out.
pub async fn judgements(
    app: &App,
    namespace_id: &str,
    retriever_id: &str,
    kinds: i64,
    since: i64,
) -> Result<Vec<Judgement>> {
    let against = interactions::bit(InteractionType::NegativeFeedback);
    let acts = asked(app, namespace_id, retriever_id, kinds | against, since).await?;
    Ok(gather(acts, kinds))
}

/// What was done since a moment and tells its query, with the query's inputs, the newest first; no kinds are all of them.
pub async fn asked(
    app: &App,
    namespace_id: &str,
    retriever_id: &str,
    kinds: i64,
    since: i64,
) -> Result<Vec<(InteractionResponse, Object)>> {
    let acts = recent(app, namespace_id, retriever_id, kinds, since).await?;
    let executions: Vec<&str> = acts
        .iter()
        .filter(|act| act.query_snapshot.is_none())
        .filter_map(|act| act.execution_id.as_deref())
        .collect();
    let known =
        retrievers::inputs_of_executions(app, namespace_id, retriever_id, &executions, since)
            .await?;
    let inputs = |act: &InteractionResponse| {
        let snapshot = act.query_snapshot.as_ref().map(interactions::inputs_of);
        let inputs = snapshot.or_else(|| known.get(act.execution_id.as_deref()?).cloned());
        inputs.filter(|inputs| !inputs.is_empty())
    };
    let told = acts.into_iter().filter_map(|act| {
        let inputs = inputs(&act)?;
        Some((act, inputs))
    });
    Ok(told.collect())
}

/// One document of one query.
#[derive(Default)]
struct Opinion {
    best: i64,
    pro: u32,
    con: u32,
}

fn gather(acts: Vec<(InteractionResponse, Object)>, kinds: i64) -> Vec<Judgement> {
    let mut queries: IndexMap<String, (Object, i64, IndexMap<String, Opinion>)> = IndexMap::new();
    for (act, inputs) in acts {
        let query = queries
            .entry(name(&inputs))
            .or_insert_with(|| (inputs, 0, IndexMap::new()));
        let opinion = query.2.entry(act.feature_id).or_default();
        for kind in act.interaction_type {
            if interactions::bit(kind) & kinds != 0 {
                query.1 += 1;
                opinion.pro += 1;
                // Whoever counts a kind as positive that says nothing by itself means that it says something.
                opinion.best = opinion.best.max(grade(kind).max(1));
            } else if kind == InteractionType::NegativeFeedback {
                opinion.con += 1;
            }
        }
    }
    let mut judged: Vec<Judgement> = queries
        .into_values()
        .map(|(inputs, interactions, opinions)| Judgement {
            inputs,
            interactions,
            relevance: opinions
                .into_iter()
                .filter(|(_, one)| one.best > 0 && one.pro > one.con)
                .map(|(id, one)| (id, one.best))
                .collect(),
        })
        .collect();
    judged.sort_by_key(|one| std::cmp::Reverse(one.interactions));
    judged
}

/// The same for inputs that ask the same: members in one order, texts without their case and outer blanks.
pub fn name(inputs: &Object) -> String {
    let mut members: Vec<(&String, String)> = inputs
        .iter()
        .map(|(name, value)| {
            let text = value.as_str().map(|text| text.trim().to_lowercase());
            (name, text.unwrap_or_else(|| value.to_string()))
        })
        .collect();
    members.sort();
    serde_json::to_string(&members).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_that_speaks_for_a_document_counts_by_itself() {
        let all: Vec<i64> = (0..22).map(|bit| 1 << bit).collect();
        let bits = positive(None).unwrap();
        assert_eq!(
            all.iter().filter(|bit| bits & **bit != 0).count(),
            EVERY.len()
        );
        assert!(EVERY.into_iter().all(|kind| grade(kind) > 0));
        assert_eq!(
            grade(InteractionType::Impression) + grade(InteractionType::NegativeFeedback),
            0
        );
    }

    #[test]
    fn acts_are_gathered_by_query_and_document() {
        use InteractionType::{Click, NegativeFeedback, Purchase};
        let act = |query: Value, document: &str, kinds: &[InteractionType]| {
            let act = InteractionResponse {
                feature_id: document.into(),
                interaction_type: kinds.to_vec(),
                ..Default::default()
            };
            (act, query.as_object().cloned().unwrap())
        };
        let acts = vec![
            act(json!({"query": "whales"}), "a", &[Click]),
            act(json!({"query": " Whales "}), "a", &[Click, Purchase]),
            act(json!({"query": "whales"}), "b", &[Click]),
            act(json!({"query": "whales"}), "b", &[NegativeFeedback]),
            act(json!({"query": "ships"}), "c", &[Click]),
        ];
        let judged = gather(acts, positive(None).unwrap());
        assert_eq!(judged.len(), 2);
        assert_eq!(
            (judged[0].interactions, &judged[0].inputs["query"]),
            (4, &json!("whales"))
        );
        assert_eq!(judged[0].relevance, IndexMap::from([("a".to_owned(), 3)]));
        assert_eq!(judged[1].relevance, IndexMap::from([("c".to_owned(), 1)]));
    }
}
