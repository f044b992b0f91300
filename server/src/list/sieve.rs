//! One page of the rows that match, however many rows there are to look through.

use std::cmp::Ordering;

use loupe_engine::filter;
use loupe_wire::Value;
use serde::Serialize;

use super::{ListParams, Mark, Page, SortKey, Walk};
use crate::error::{ApiError, Result, Violation};

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
    /// Rows that may be on the page, with the values that they are sorted by, and their marks.
    kept: Vec<(T, Vec<Option<Value>>, Option<Mark>)>,
    /// Rows that match so far, from the beginning of the list.
    found: usize,
    /// Rows that match so far, from where rows are kept.
    passed: usize,
    /// The row that the page goes on behind: what is kept begins there.
    behind: Option<&'p Mark>,
    /// The list is gone through twice where its matches are counted and the page goes on behind a row: rows are counted first,
    /// and kept then.
    counts: bool,
    keeps: bool,
    /// Where the next piece begins; none behind the last one.
    mark: Option<Mark>,
}

impl<'p, T: Serialize> Sieve<'p, T> {
    /// For rows that are read whole, newest first, from the row that the page goes on behind.
    ///
    /// # Errors
    /// A page of a sorted list that lies too far behind.
    pub fn new(params: &'p ListParams) -> Result<Self> {
        let sieve = Self::along(params, &Walk::blind(params))?;
        Ok(Self {
            counts: true,
            keeps: true,
            ..sieve
        })
    }

    /// The same of rows that have no marks.
    ///
    /// # Errors
    /// As [`Sieve::new`].
    pub(super) fn by_number(params: &'p ListParams) -> Result<Self> {
        let sieve = Self::new(params)?;
        Ok(Self {
            behind: None,
            ..sieve
        })
    }

    /// For rows that the database reads this way.
    ///
    /// # Errors
    /// A page of a list that is sorted here lies too far behind.
    pub fn along(params: &'p ListParams, walk: &Walk<'p>) -> Result<Self> {
        // In another order than the list's own, what was told of a row says nothing of where it is now.
        let behind = params.behind.as_ref().filter(|_| walk.sorts.is_empty());
        let is_counted = behind.is_some() && params.include_total;
        let start = behind.filter(|_| !is_counted).cloned();
        let sieve = Self {
            params,
            sorts: walk.sorts,
            needle: params.search.as_ref().map(|search| search.to_lowercase()),
            kept: Vec::new(),
            found: 0,
            passed: 0,
            behind,
            counts: true,
            keeps: !is_counted,
            mark: Some(start.unwrap_or_else(|| walk.start())),
        };
        if !sieve.sorts.is_empty() && sieve.end() > SORTED {
            let msg = format!("a sorted list is read to its row {SORTED}: narrow it by filters");
            let sent = params.offset.into();
            return Err(Violation::query("offset", "less_than_equal", msg, sent).into());
        }
        Ok(sieve)
    }

    /// Rows before the page, of those that are kept.
    fn start(&self) -> usize {
        match self.behind {
            Some(_) => 0,
            None => usize::try_from(self.params.offset).unwrap_or(0),
        }
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
        let is_counted = self.params.include_total && self.counts;
        let is_full = is_ordered && !is_counted && self.passed > self.end();
        self.mark.clone().filter(|_| !is_full)
    }

    /// Looks at the next piece, each row with its mark; an empty one is the end of the list.
    ///
    /// # Errors
    /// A row that cannot be written as JSON.
    pub fn take(&mut self, rows: Vec<(T, Mark)>) -> Result<()> {
        self.mark = rows.last().map(|(_, mark)| mark.clone());
        if self.mark.is_none() && !self.keeps {
            (self.counts, self.keeps) = (false, true);
            self.mark = self.behind.cloned();
        }
        rows.into_iter()
            .try_for_each(|(row, mark)| self.add(row, Some(mark)))
    }

    /// Looks at one row that comes before the page.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub(super) fn count(&mut self, row: &T) -> Result<()> {
        let value = serde_json::to_value(row).map_err(ApiError::internal)?;
        self.found += usize::from(self.matches(&value));
        Ok(())
    }

    /// Looks at one row.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub(super) fn add(&mut self, row: T, mark: Option<Mark>) -> Result<()> {
        let value = serde_json::to_value(&row).map_err(ApiError::internal)?;
        if !self.matches(&value) {
            return Ok(());
        }
        self.found += usize::from(self.counts);
        if !self.keeps {
            return Ok(());
        }
        self.passed += 1;
        let sorts = self.sorts;
        if sorts.is_empty() {
            // Rows stay in the order in which they come, so their places are known.
            if self.start() < self.passed && self.passed <= self.end() {
                self.kept.push((row, Vec::new(), mark));
            }
            return Ok(());
        }
        let at = |sort: &SortKey| filter::value_at(&value, &sort.field).cloned();
        self.kept.push((row, sorts.iter().map(at).collect(), mark));
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
        self.kept.sort_by(|(_, left, _), (_, right, _)| {
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
        let (more, found) = (self.passed > self.end(), self.found);
        let is_ordered = self.sorts.is_empty();
        let mut before = 0;
        if !self.sorts.is_empty() {
            self.sort();
            before = self.start();
        }
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
        let rows = self.kept.into_iter().skip(before).take(limit);
        let (results, marks): (Vec<T>, Vec<_>) = rows.map(|(row, _, mark)| (row, mark)).unzip();
        let last = marks.into_iter().next_back().flatten();
        let total = i64::try_from(found).unwrap_or(i64::MAX);
        let total = params.include_total.then_some(total);
        let last = last.filter(|_| is_ordered);
        Page {
            pagination: params.pagination_behind(results.len(), more, total, last),
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
