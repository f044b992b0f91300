//! The score of a result: what stages rank documents by. A field of that name is one as any other, and told where it is exposed.

use loupe_wire::{Object, RetrieverPagination, Value};

use super::Open;

const SCORE: &str = "score";

/// Stages that give the documents that they leave a score.
const RANKING: [&str; 7] = [
    "feature_search",
    "feature_filter",
    "query_expand",
    "agent_search",
    "rerank",
    "maxsim_rerank",
    "cross_compare",
];

impl Open {
    /// Whether the score of a result is that of a search.
    fn is_ranked(&self) -> bool {
        let ranks = |id: &Value| id.as_str().is_some_and(|id| RANKING.contains(&id));
        let mut stages = self.retriever.stages.iter();
        stages.any(|stage| stage.config.get("stage_id").is_some_and(ranks))
    }

    /// A result, with its score.
    pub(super) fn show_result(&self, document: &Object) -> Object {
        let mut shown = self.show(document);
        if let Some(score) = document.get(SCORE).filter(|_| self.is_ranked()) {
            shown.insert(SCORE.to_owned(), score.clone());
        }
        shown
    }

    /// The page that is asked for: what goes on behind a score tells who has a higher one.
    pub(super) fn without_score(
        &self,
        mut asked: Option<RetrieverPagination>,
    ) -> Option<RetrieverPagination> {
        if let Some(RetrieverPagination::Keyset(page)) = &mut asked
            && let Some(key) = &mut page.after
            && !self.is_ranked()
        {
            key.shift_remove(SCORE);
        }
        asked
    }

    /// What the next page comes behind, as strangers are told.
    pub(super) fn hide_score(&self, mut told: Object) -> Object {
        if let Some(key) = told.get_mut("after").and_then(Value::as_object_mut)
            && !self.is_ranked()
        {
            key.shift_remove(SCORE);
        }
        told
    }
}
