//! How the database reads a list: piece by piece, in the order of creation, without the rows that its columns rule out. What
//! is said of a column is never more than the filter says, and what is read is looked at by the filter itself: so both
//! databases answer alike, whatever they leave out.

use std::{cmp::Ordering, collections::BTreeSet};

use loupe_engine::filter::{Condition, Filter, Operator, moment};

use super::{ListParams, Mark, SortKey};

/// The member that shows when a row was made.
const CREATED: &str = "created_at";

/// Declares the statements that read a table piece by piece, newest first and oldest first. `$1` and `$2` are whose the rows
/// are, `$3` and `$4` the mark that the piece begins behind, `$5` the last moment; what follows is said by `$rows`.
#[macro_export]
macro_rules! pieces {
    ($table:literal, $id:literal, $columns:literal, $rows:literal) => {
        $crate::sql! {
            const NEWEST = concat!("SELECT ", $columns, " FROM ", $table, " WHERE ", $rows, " AND created_at <= $3 AND (created_at < $3 OR ", $id, " > $4) AND created_at >= $5 ORDER BY created_at DESC, ", $id, " LIMIT 1000");
            const OLDEST = concat!("SELECT ", $columns, " FROM ", $table, " WHERE ", $rows, " AND created_at >= $3 AND (created_at > $3 OR ", $id, " > $4) AND created_at <= $5 ORDER BY created_at, ", $id, " LIMIT 1000");
        }
    };
}

/// A way through a list.
#[derive(Debug, Clone)]
pub struct Walk<'p> {
    filter: Option<&'p Filter>,
    is_oldest_first: bool,
    /// Members that the rows are sorted by once they are read.
    pub(super) sorts: &'p [SortKey],
    /// Between which moments the rows were made, in microseconds.
    span: Span,
}

/// The first and the last moment.
type Span = (i64, i64);

const ANY: Span = (i64::MIN, i64::MAX);

impl<'p> Walk<'p> {
    /// Of rows that show when they were made: sorted by that, they are read in their order.
    pub fn of(params: &'p ListParams) -> Self {
        let filter = params.filter.as_ref();
        let span = filter.map_or(ANY, |filter| span(filter, CREATED));
        let is_oldest_first = match params.sorts.as_slice() {
            [sort] if sort.field == CREATED => !sort.descending,
            _ => {
                return Self {
                    span,
                    ..Self::blind(params)
                };
            }
        };
        Self {
            filter,
            is_oldest_first,
            sorts: &[],
            span,
        }
    }

    /// Of rows that do not show when they were made, newest first.
    pub fn blind(params: &'p ListParams) -> Self {
        Self {
            filter: params.filter.as_ref(),
            is_oldest_first: false,
            sorts: &params.sorts,
            span: ANY,
        }
    }

    /// Of everything that matches, oldest first.
    pub fn oldest(filter: Option<&'p Filter>) -> Self {
        Self {
            filter,
            is_oldest_first: true,
            sorts: &[],
            span: filter.map_or(ANY, |filter| span(filter, CREATED)),
        }
    }

    /// The statement of the two that goes this way.
    pub const fn sql(&self, newest: &'static str, oldest: &'static str) -> &'static str {
        match self.is_oldest_first {
            true => oldest,
            false => newest,
        }
    }

    /// Where the first piece begins.
    pub fn start(&self) -> Mark {
        let at = match self.is_oldest_first {
            true => self.span.0,
            false => self.span.1,
        };
        (at, String::new())
    }

    /// The moment at which the last piece ends.
    pub const fn end(&self) -> i64 {
        match self.is_oldest_first {
            true => self.span.1,
            false => self.span.0,
        }
    }

    /// Which of two rows comes first.
    pub fn compare(&self, one: &Mark, other: &Mark) -> Ordering {
        let order = match self.is_oldest_first {
            true => one.0.cmp(&other.0),
            false => other.0.cmp(&one.0),
        };
        order.then_with(|| one.1.cmp(&other.1))
    }

    /// Texts of which the member is one; none: it may be anything.
    pub fn texts(&self, field: &str) -> Option<BTreeSet<&'p str>> {
        texts(self.filter?, field)
    }

    /// The same as an argument for `$n = '' OR $n LIKE '%|' || column || '|%'`, of columns that hold plain words.
    pub fn words(&self, field: &str) -> String {
        words(self.texts(field))
    }

    /// What the member begins with, for `$n = '' OR SUBSTR(column, 1, LENGTH($n)) = $n`; empty: it may be anything.
    pub fn beginning(&self, field: &str) -> &'p str {
        let said = self.filter.and_then(|filter| beginning(filter, field));
        said.unwrap_or_default()
    }
}

/// Words as an argument; empty: any. No word at all is no column's value.
fn words(said: Option<BTreeSet<&str>>) -> String {
    let Some(said) = said else {
        return String::new();
    };
    let ends = |word: &str| format!("{word}|");
    format!("|{}", said.into_iter().map(ends).collect::<String>())
}

fn texts<'p>(filter: &'p Filter, field: &str) -> Option<BTreeSet<&'p str>> {
    match filter {
        Filter::All(members) => {
            let said = members.iter().filter_map(|member| texts(member, field));
            said.reduce(|one, other| &one & &other)
        }
        Filter::Any(members) => members.iter().try_fold(BTreeSet::new(), |mut all, member| {
            all.extend(texts(member, field)?);
            Some(all)
        }),
        Filter::None(_) => None,
        Filter::Leaf(condition) => match condition.operator {
            _ if condition.field != field || !condition.case_sensitive => None,
            Operator::Eq => text(&condition.value).map(|text| BTreeSet::from([text])),
            Operator::In => condition.value.as_array()?.iter().map(text).collect(),
            _ => None,
        },
    }
}

/// A text that both databases can compare with.
fn text(value: &loupe_wire::Value) -> Option<&str> {
    value.as_str().filter(|text| !text.contains('\0'))
}

fn beginning<'p>(filter: &'p Filter, field: &str) -> Option<&'p str> {
    match filter {
        Filter::All(members) => {
            let said = members.iter().filter_map(|member| beginning(member, field));
            said.max_by_key(|said| said.len())
        }
        Filter::Any(members) => match members.as_slice() {
            [only] => beginning(only, field),
            _ => None,
        },
        Filter::None(_) => None,
        Filter::Leaf(condition) => match condition.operator {
            _ if condition.field != field || !condition.case_sensitive => None,
            Operator::Eq | Operator::StartsWith => text(&condition.value),
            _ => None,
        },
    }
}

fn span(filter: &Filter, field: &str) -> Span {
    match filter {
        Filter::All(members) => {
            let said = members.iter().map(|member| span(member, field));
            said.fold(ANY, |one, other| (one.0.max(other.0), one.1.min(other.1)))
        }
        Filter::Any(members) => {
            let said = members.iter().map(|member| span(member, field));
            let said = said.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
            said.unwrap_or((i64::MAX, i64::MIN))
        }
        Filter::None(_) => ANY,
        Filter::Leaf(condition) if condition.field == field => span_of(condition),
        Filter::Leaf(_) => ANY,
    }
}

fn span_of(condition: &Condition) -> Span {
    let Some(at) = condition.value.as_str().and_then(moment) else {
        return ANY;
    };
    // Rows have whole microseconds, so what lies between two of them excludes neither.
    let at = at.timestamp_micros();
    match condition.operator {
        Operator::Eq => (at, at),
        Operator::Gt | Operator::Gte => (at, i64::MAX),
        Operator::Lt | Operator::Lte => (i64::MIN, at),
        _ => ANY,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(filter: Value) -> ListParams {
        ListParams {
            filter: Some(Filter::parse(&filter).unwrap()),
            ..ListParams::default()
        }
    }

    fn leaf(field: &str, operator: &str, value: Value) -> Value {
        json!({"field": field, "operator": operator, "value": value})
    }

    #[test]
    fn words_are_what_every_match_has_one_of() {
        let failed = leaf("status", "eq", json!("FAILED"));
        let ended = leaf("status", "in", json!(["COMPLETED", "FAILED"]));
        let other = leaf("title", "eq", json!("FAILED"));
        for (filter, expected) in [
            (json!({"AND": [failed, other]}), "|FAILED|"),
            (json!({"AND": [failed, ended]}), "|FAILED|"),
            (json!({"OR": [failed, ended]}), "|COMPLETED|FAILED|"),
            (json!({"OR": [failed, other]}), ""),
            (json!({"NOT": [failed]}), ""),
            (json!({"AND": [leaf("status", "ne", json!("FAILED"))]}), ""),
            (
                json!({"AND": [leaf("status", "in", json!(["A", null]))]}),
                "",
            ),
            (json!({"AND": [leaf("status", "eq", json!("A\0"))]}), ""),
            (
                json!({"AND": [failed, leaf("status", "eq", json!("DRAFT"))]}),
                "|",
            ),
            (json!({"AND": [failed], "case_sensitive": false}), ""),
        ] {
            let params = read(filter.clone());
            assert_eq!(Walk::of(&params).words("status"), expected, "{filter}");
        }
    }

    #[test]
    fn a_beginning_is_the_longest_that_every_match_has() {
        let at = |text: &str| leaf("key_prefix", "starts_with", json!(text));
        for (filter, expected) in [
            (
                json!({"AND": [at("/a"), at("/a/b")], "case_sensitive": true}),
                "/a/b",
            ),
            (json!({"OR": [at("/a")], "case_sensitive": true}), "/a"),
            (
                json!({"OR": [at("/a"), at("/b")], "case_sensitive": true}),
                "",
            ),
            (json!({"AND": [at("/a")]}), ""),
            (json!({"key_prefix": "/a"}), "/a"),
        ] {
            let params = read(filter.clone());
            assert_eq!(
                Walk::of(&params).beginning("key_prefix"),
                expected,
                "{filter}"
            );
        }
    }

    #[test]
    fn moments_bound_a_walk_in_both_directions() {
        let at = |operator: &str, day: u32| {
            leaf("created_at", operator, json!(format!("2026-01-{day:02}")))
        };
        let day = |day: i64| 1_767_225_600_000_000 + (day - 1) * 86_400_000_000;
        for (filter, first, last) in [
            (json!({"AND": [at("gte", 3), at("lt", 5)]}), day(3), day(5)),
            (
                json!({"AND": [at("gt", 3), at("gte", 4)]}),
                day(4),
                i64::MAX,
            ),
            (json!({"OR": [at("eq", 3), at("eq", 9)]}), day(3), day(9)),
            (json!({"NOT": [at("lt", 5)]}), i64::MIN, i64::MAX),
            (
                json!({"OR": [at("lt", 5), {"title": "x"}]}),
                i64::MIN,
                i64::MAX,
            ),
        ] {
            let mut params = read(filter.clone());
            let walk = Walk::of(&params);
            assert_eq!((walk.start().0, walk.end()), (last, first), "{filter}");
            params.sorts = vec![SortKey {
                field: CREATED.into(),
                descending: false,
            }];
            let walk = Walk::of(&params);
            assert_eq!((walk.start().0, walk.end()), (first, last), "{filter}");
            assert_eq!(Walk::blind(&params).end(), i64::MIN);
        }
    }
}
