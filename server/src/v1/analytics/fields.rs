//! The fields that searches filter on.

use std::collections::HashMap;

use loupe_wire::{
    CompoundIndexPattern, FieldPerformanceMetrics, FieldQueryMetrics, RecommendationCoverage,
};

use super::{searches::took, store::Search};
use crate::figures::{Sorted, count};

/// Milliseconds from which a search is slow.
const SLOW: f64 = 500.0;

/// The searches that filter on each field, the most frequent first.
pub(super) struct Fields<'a>(Vec<(&'a str, Vec<&'a Search>)>);

impl<'a> Fields<'a> {
    pub fn new(searches: &'a [Search]) -> Self {
        let mut by_field: HashMap<&str, Vec<&Search>> = HashMap::new();
        for search in searches {
            for field in search.fields() {
                by_field.entry(field).or_default().push(search);
            }
        }
        let mut all: Vec<_> = by_field.into_iter().collect();
        all.sort_by(|(a, first), (b, second)| (second.len(), a).cmp(&(first.len(), b)));
        Self(all)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn most_queried(&self) -> Vec<FieldQueryMetrics> {
        let told = self.0.iter().map(|(field, searches)| {
            let times = took(searches.iter().copied());
            FieldQueryMetrics {
                field_name: (*field).to_owned(),
                query_count: count(searches.len()),
                avg_latency_ms: times.mean(),
                p95_latency_ms: times.percentile(0.95),
            }
        });
        told.collect()
    }

    /// Those that searches spent most time with first.
    pub fn performance(&self) -> Vec<FieldPerformanceMetrics> {
        let told = self.0.iter().map(|(field, searches)| {
            let times = took(searches.iter().copied());
            FieldPerformanceMetrics {
                field_name: (*field).to_owned(),
                usage_count: count(searches.len()),
                avg_latency_ms: times.mean(),
                p50_latency_ms: times.percentile(0.5),
                p95_latency_ms: times.percentile(0.95),
                p99_latency_ms: times.percentile(0.99),
                max_latency_ms: times.max(),
                index_priority_score: priority(&times),
            }
        });
        let mut told: Vec<_> = told.collect();
        told.sort_by(|a, b| b.index_priority_score.total_cmp(&a.index_priority_score));
        told
    }
}

/// The time that the searches took together, in seconds.
fn priority(times: &Sorted) -> f64 {
    times.mean() * times.len() as f64 / 1e3
}

/// Fields that are filtered on together, the most frequent first.
pub(super) fn together(searches: &[Search]) -> Vec<CompoundIndexPattern> {
    let mut by_fields: HashMap<&str, Vec<&Search>> = HashMap::new();
    for search in searches.iter().filter(|one| one.fields().count() > 1) {
        by_fields.entry(&search.fields).or_default().push(search);
    }
    let told = by_fields.into_iter().map(|(fields, searches)| {
        let times = took(searches.iter().copied());
        CompoundIndexPattern {
            field_combination: fields.lines().map(ToOwned::to_owned).collect(),
            combination_count: count(searches.len()),
            avg_latency_ms: times.mean(),
            p95_latency_ms: times.percentile(0.95),
        }
    });
    let mut told: Vec<_> = told.collect();
    told.sort_by(|a, b| {
        (b.combination_count, &a.field_combination)
            .cmp(&(a.combination_count, &b.field_combination))
    });
    told
}

/// The searches that the figures are made of.
pub(super) fn coverage(searches: &[Search]) -> RecommendationCoverage {
    let slow = |one: &Search| one.milliseconds() >= SLOW;
    let filtered = |one: &Search| !one.fields.is_empty();
    // What came from memory was not filtered again.
    let searches: Vec<&Search> = searches.iter().filter(|one| !one.cached).collect();
    let of =
        |wanted: &dyn Fn(&Search) -> bool| count(searches.iter().filter(|one| wanted(one)).count());
    RecommendationCoverage {
        total_queries: count(searches.len()),
        filtered_queries: of(&filtered),
        slow_queries: of(&slow),
        slow_filtered_queries: of(&|one| slow(one) && filtered(one)),
        threshold_ms: SLOW,
    }
}
