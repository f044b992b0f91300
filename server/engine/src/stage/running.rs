//! A plan run: its stages in order, each told, and the page cut from what they leave.

use std::time::Instant;

use futures::future::BoxFuture;
use indexmap::IndexMap;
use loupe_wire::{Object, StageCategory, StageStatistics};

use super::execution::{self, Execution};
use super::plan::{Outcome, Plan, Run, StageEvent, Step};
use super::working::{Row, Working};
use super::{RunError, facets, page};

/// Why an execution gave no answer, and what its stages told until then.
#[derive(Debug)]
pub struct Failure {
    pub error: RunError,
    /// Without documents.
    pub so_far: Box<Outcome>,
}

impl Plan {
    /// Runs the stages and cuts the page.
    pub async fn run(&self, run: Run) -> Result<Outcome, RunError> {
        self.run_told(run).await.map_err(|failure| failure.error)
    }

    /// The same, with what the stages told where one of them fails.
    pub fn run_told(&self, run: Run) -> BoxFuture<'_, Result<Outcome, Failure>> {
        let set = Working::Unread {
            filter: run.filter.clone(),
            sort: None,
        };
        self.run_from(run, set)
    }

    /// The same over one row that is there already, in place of what the collections hold.
    pub async fn run_on(&self, run: Run, row: Object) -> Result<Outcome, RunError> {
        let set = Working::Rows(vec![Row { value: row.into() }]);
        let ended = self.run_from(run, set).await;
        ended.map_err(|failure| failure.error)
    }

    /// Of an erased type: all stages would otherwise be compiled once more for every piece of the crates that wait for them.
    fn run_from(&self, run: Run, set: Working) -> BoxFuture<'_, Result<Outcome, Failure>> {
        Box::pin(async move {
            let mut at = Execution::new(run);
            let mut statistics = IndexMap::new();
            match self.run_steps(&mut at, set, &mut statistics).await {
                Ok((cut, timed_out)) => Ok(at.finish(cut, statistics, timed_out)),
                Err(error) => {
                    let so_far = at.finish(page::Cut::default(), statistics, false);
                    let so_far = Box::new(so_far);
                    Err(Failure { error, so_far })
                }
            }
        })
    }

    /// The page, and whether the time ran out before all stages had run.
    async fn run_steps(
        &self,
        at: &mut Execution,
        mut set: Working,
        statistics: &mut IndexMap<String, StageStatistics>,
    ) -> Result<(page::Cut, bool), RunError> {
        let default = self.default_page(&at.context);
        let size = page::size(&at.run.pagination, at.run.limit, default)?;
        let mut timed_out = false;
        for index in 0..self.steps.len() {
            (set, timed_out) = self.step(at, index, set, size, statistics).await?;
            if timed_out {
                // Documents nobody has searched are no answer to a search, nor those that a condition was still to be asked of.
                let is_asked = |step: &Step| {
                    step.definition.category == StageCategory::Filter
                        || step.filters.before.is_some()
                        || step.filters.after.is_some()
                };
                let is_unsearched = matches!(set, Working::Unread { .. });
                if is_unsearched || self.steps[index..].iter().any(is_asked) {
                    set = Working::Rows(Vec::new());
                }
                break;
            }
        }
        facets::of_found(at, &set);
        let cut = page::cut(at, set, size, &|| self.fingerprint(&at.run)).await?;
        if cut.moved {
            let told = "the documents have changed since the page before: one may be missing here, or be told twice";
            at.warn(told.to_owned());
        }
        Ok((cut, timed_out))
    }

    /// What one stage leaves, and whether the time ran out in it. It is told, also where it fails.
    async fn step(
        &self,
        at: &mut Execution,
        index: usize,
        set: Working,
        size: usize,
        statistics: &mut IndexMap<String, StageStatistics>,
    ) -> Result<(Working, bool), RunError> {
        let step = &self.steps[index];
        at.tell(self.event(index), None).await;
        let (started, input) = (Instant::now(), set.len() as u64);
        at.begin(step);
        // Kept only where the stage may leave no rows behind.
        let kept = (step.lenient || at.run.max_time_ms.is_some()).then(|| set.clone());
        let kept = || kept.unwrap_or(Working::Rows(Vec::new()));
        let (mut error, mut timed_out) = (None, false);
        let left = match at.bounded(step, set).await {
            Ok(Some(after)) => Ok(after),
            Ok(None) => {
                timed_out = true;
                error = Some(at.out_of_time(&self.steps[index..]));
                Ok(kept())
            }
            Err(e) if step.lenient => {
                error = Some(at.left_out(step, &e));
                Ok(kept())
            }
            Err(e) => {
                error = Some(e.told());
                Err(e)
            }
        };
        let counted = at.report.output.take();
        let output = left
            .as_ref()
            .map_or(0, |set| counted.unwrap_or(set.len() as u64));
        let told = at.statistics(input, output, started.elapsed(), error);
        let mut event = self.event(index);
        event.error.clone_from(&told.error);
        event.statistics = Some(told.clone());
        at.tell(event, left.as_ref().ok().map(|set| (set, size)))
            .await;
        execution::record(statistics, &step.name, told);
        let set = left?;
        at.note(step, &set);
        at.expose(step, &set, input, output);
        Ok((set, timed_out))
    }

    fn event(&self, index: usize) -> StageEvent {
        StageEvent {
            name: self.steps[index].name.clone(),
            index,
            total: self.steps.len(),
            statistics: None,
            documents: Vec::new(),
            error: None,
        }
    }
}
