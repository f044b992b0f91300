//! The ranked lists of a search, asked of the store within the stage's time.

use std::time::Duration;

use futures::future::{join_all, try_join_all};
use loupe_wire::StageParamsFeatureSearch;

use super::RunError;
use super::execution::Execution;
use crate::store::{DocStore, Hit, Reach, SearchQuery};

/// Milliseconds that a search may take for somebody who waits, where the stage sets no limit.
const INTERACTIVE_MS: i64 = 2_000;

/// One ranked list to ask the store for; several asks where collections keep the feature in different indexes.
pub(super) struct Job {
    /// The number of its search.
    pub search: usize,
    pub name: String,
    pub weight: f64,
    pub limit: usize,
    pub asks: Vec<(Reach, SearchQuery)>,
}

impl Job {
    /// Asks for no more than so many documents.
    fn narrow(&mut self, most: usize) {
        self.limit = self.limit.min(most);
        for (_, query) in &mut self.asks {
            query.limit = query.limit.min(most);
        }
    }
}

/// Milliseconds that the store may take.
fn most_ms(p: &StageParamsFeatureSearch) -> Option<i64> {
    let interactive = p.interactive.then_some(INTERACTIVE_MS);
    p.hard_timeout_ms.or(interactive)
}

/// What the store gives for every list, all asked at once; nothing where it takes longer than the stage lets it.
pub(super) async fn found(
    at: &mut Execution,
    p: &StageParamsFeatureSearch,
    jobs: &mut [Job],
) -> Vec<Result<Vec<Hit>, RunError>> {
    let store = at.run.store.clone();
    let Some(ms) = most_ms(p) else {
        return all(&*store, jobs).await;
    };
    let limit = Duration::from_millis(ms.max(1) as u64);
    let first = tokio::time::timeout(limit, all(&*store, jobs)).await;
    if let Ok(found) = first {
        return found;
    }
    let (stage, mut reason) = (
        at.stage.clone(),
        format!("the search took longer than {ms} ms"),
    );
    if p.degrade_retry {
        let most = p.final_top_k.max(1) as usize;
        jobs.iter_mut().for_each(|job| job.narrow(most));
        let second = tokio::time::timeout(limit, all(&*store, jobs)).await;
        if let Ok(found) = second {
            reason +=
                &format!("; asked once more for {most} documents of each list, it gave these");
            at.degrade("stage", &stage, &reason, "raise hard_timeout_ms");
            return found;
        }
        reason += &format!(", and once more for {most} documents of each list");
    }
    at.degrade(
        "stage",
        &stage,
        &reason,
        "ask again, or raise hard_timeout_ms",
    );
    Vec::new()
}

async fn all(store: &dyn DocStore, jobs: &[Job]) -> Vec<Result<Vec<Hit>, RunError>> {
    join_all(jobs.iter().map(|job| ask(store, job))).await
}

async fn ask(store: &dyn DocStore, job: &Job) -> Result<Vec<Hit>, RunError> {
    let answers = try_join_all(
        job.asks
            .iter()
            .map(|(reach, query)| store.search(reach, query.clone())),
    )
    .await?;
    let mut hits: Vec<Hit> = answers.into_iter().flatten().collect();
    if job.asks.len() > 1 {
        hits.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.document.document_id.cmp(&b.document.document_id))
        });
        hits.truncate(job.limit);
    }
    Ok(hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_sets_a_limit() {
        let of = |hard_timeout_ms, interactive| {
            most_ms(&StageParamsFeatureSearch {
                hard_timeout_ms,
                interactive,
                ..StageParamsFeatureSearch::default()
            })
        };
        assert_eq!(of(None, false), None);
        assert_eq!(of(None, true), Some(INTERACTIVE_MS));
        assert_eq!(of(Some(50), true), Some(50));
    }
}
