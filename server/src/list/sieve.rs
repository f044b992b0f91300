//! One page of the rows that match, however many rows there are to look through.

use std::cmp::Ordering;

use loupe_engine::filter;
use loupe_wire::Value;
use serde::Serialize;

use super::{ListParams, Page, SortKey, Walk};
use crate::error::{ApiError, Result, Violation};

/// The moment and the id of a row: where a list that is read in pieces, newest first, goes on.
pub type Mark = (i64, String);

/// Rows that are kept at least before they are put in order and those behind the page are dropped.
const SPARE: usize = 1000;

/// How far a list reaches that is sorted here: all rows before a page are kept until it is made.
const SORTED: usize = 20_000;

/// Rows come in the list's own order, whole or in pieces; only what may be on the page is kept of them.
pub struct Sieve<'p, T> {
    params: &'p ListParams,
    /// Members by which rows are sorted that do not come in the order asked for.
    sorts: &'p [SortKey],
    needle: Option<String>,
    /// Rows that may be on the page, with the values that they are sorted by.
    kept: Vec<(T, Vec<Option<Value>>)>,
    /// Rows that match so far.
    found: usize,
    /// Where the next piece begins; none behind the last one.
    mark: Option<Mark>,
}

impl<'p, T: Serialize> Sieve<'p, T> {
    /// # Errors
    /// A page of a sorted list that lies too far behind.
    pub fn new(params: &'p ListParams) -> Result<Self> {
        Self::along(params, &Walk::blind(params))
    }

    /// For rows that the database reads this way.
    ///
    /// # Errors
    /// A page of a list that is sorted here lies too far behind.
    pub fn along(params: &'p ListParams, walk: &Walk<'p>) -> Result<Self> {
        let sieve = Self {
            params,
            sorts: walk.sorts,
            needle: params.search.as_ref().map(|search| search.to_lowercase()),
            kept: Vec::new(),
            found: 0,
            mark: Some(walk.start()),
        };
        if !sieve.sorts.is_empty() && sieve.end() > SORTED {
            let msg = format!("a sorted list is read to its row {SORTED}: narrow it by filters");
            let sent = params.offset.into();
            return Err(Violation::query("offset", "less_than_equal", msg, sent).into());
        }
        Ok(sieve)
    }

    /// Rows before the page.
    fn start(&self) -> usize {
        usize::try_from(self.params.offset).unwrap_or(0)
    }

    /// Rows to the end of the page.
    fn end(&self) -> usize {
        let limit = usize::try_from(self.params.limit).unwrap_or(usize::MAX);
        self.start().saturating_add(limit)
    }

    /// Rows that match, of those that were looked at.
    pub fn found(&self) -> usize {
        self.found
    }

    /// Where to read on; none when nothing that comes could change the page.
    pub fn goes_on(&self) -> Option<Mark> {
        let is_ordered = self.sorts.is_empty();
        let is_full = is_ordered && !self.params.include_total && self.found > self.end();
        self.mark.clone().filter(|_| !is_full)
    }

    /// Looks at the next piece, each row with its mark; an empty one is the end of the list.
    ///
    /// # Errors
    /// A row that cannot be written as JSON.
    pub fn take(&mut self, rows: Vec<(T, Mark)>) -> Result<()> {
        self.mark = rows.last().map(|(_, mark)| mark.clone());
        rows.into_iter().try_for_each(|(row, _)| self.add(row))
    }

    /// Looks at one row.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn add(&mut self, row: T) -> Result<()> {
        let value = serde_json::to_value(&row).map_err(ApiError::internal)?;
        if !self.matches(&value) {
            return Ok(());
        }
        self.found += 1;
        let sorts = self.sorts;
        if sorts.is_empty() {
            // Rows stay in the order in which they come, so their places are known.
            if self.start() < self.found && self.found <= self.end() {
                self.kept.push((row, Vec::new()));
            }
            return Ok(());
        }
        let at = |sort: &SortKey| filter::value_at(&value, &sort.field).cloned();
        self.kept.push((row, sorts.iter().map(at).collect()));
        if self.kept.len() >= self.end() + SPARE {
            self.sort();
            self.kept.truncate(self.end());
        }
        Ok(())
    }

    fn matches(&self, value: &Value) -> bool {
        let needle = self.needle.as_ref();
        let filter = self.params.filter.as_ref();
        needle.is_none_or(|needle| contains_text(value, needle))
            && filter.is_none_or(|filter| filter.matches(value))
    }

    /// Rows that are the same to every key stay in the order in which they came.
    fn sort(&mut self) {
        let sorts = self.sorts;
        self.kept.sort_by(|(_, left), (_, right)| {
            let mut orders = sorts.iter().zip(left.iter().zip(right));
            let differs = orders.find_map(|(sort, (left, right))| {
                let order = compare(sort, left.as_ref(), right.as_ref());
                order.is_ne().then_some(order)
            });
            differs.unwrap_or(Ordering::Equal)
        });
    }

    /// The page, when every row that could change it was looked at.
    pub fn page(mut self) -> Page<T> {
        let params = self.params;
        let (more, found) = (self.found > self.end(), self.found);
        let mut before = 0;
        if !self.sorts.is_empty() {
            self.sort();
            before = self.start();
        }
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
        let rows = self.kept.into_iter().skip(before).take(limit);
        let results: Vec<T> = rows.map(|(row, _)| row).collect();
        let total = i64::try_from(found).unwrap_or(i64::MAX);
        let total = params.include_total.then_some(total);
        Page {
            pagination: params.pagination(results.len(), more, total),
            results,
            total,
        }
    }
}

/// Rows without the member come last in both directions.
fn compare(sort: &SortKey, left: Option<&Value>, right: Option<&Value>) -> Ordering {
    if sort.descending && left.is_some() && right.is_some() {
        filter::sort_values(right, left)
    } else {
        filter::sort_values(left, right)
    }
}

fn contains_text(value: &Value, needle: &str) -> bool {
    match value {
        Value::String(text) => text.to_lowercase().contains(needle),
        Value::Array(items) => items.iter().any(|item| contains_text(item, needle)),
        Value::Object(members) => members.values().any(|member| contains_text(member, needle)),
        _ => false,
    }
}
