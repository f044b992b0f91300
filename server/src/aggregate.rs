//! Figures over rows that come one by one: documents or objects, grouped, counted and summed in bounded memory.

use std::{cmp::Ordering, collections::BTreeSet};

use chrono::{DateTime, Datelike, Duration, NaiveDate, Timelike, Utc};
use indexmap::IndexMap;
use loupe_engine::filter::{sort_values, value_at, values_at};
use loupe_wire::{
    AggregationFunction as Function, AggregationOperation, AggregationResult, DatePartUnit,
    DateTruncUnit, GroupByField, HavingCondition, Object, RangeBucket, Value,
};
use serde_json::json;

use crate::error::{ApiError, Result, Violation};

/// Groups told apart at once.
const GROUPS: usize = 10_000;
/// Values that `push`, `add_to_set` and `count_distinct` keep for one group.
const VALUES: usize = 10_000;

/// What to compute.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub group_by: Vec<GroupByField>,
    pub aggregations: Vec<AggregationOperation>,
    pub having: Vec<HavingCondition>,
    pub unwind: Option<String>,
    pub range_buckets: Vec<RangeBucket>,
    pub sort_by: Option<String>,
    pub sort_direction: String,
    pub limit: Option<i64>,
}

/// The figures so far.
pub struct Aggregation {
    plan: Plan,
    /// By the group's text.
    groups: IndexMap<String, Group>,
}

struct Group {
    members: Object,
    metrics: Vec<Metric>,
}

/// What one aggregation knows of one group.
#[derive(Default)]
struct Metric {
    count: i64,
    sum: f64,
    /// Whether every number so far was whole.
    fraction: bool,
    least: Option<Value>,
    most: Option<Value>,
    first: Option<Value>,
    last: Option<Value>,
    values: Vec<Value>,
    seen: BTreeSet<String>,
    /// There are more values than are kept.
    more: bool,
}

impl Plan {
    /// Whether the groups, and what they are sorted by, are what can be.
    fn check_groups(&self) -> Result<()> {
        for (index, one) in self.group_by.iter().enumerate() {
            if one.date_trunc.is_some() && one.date_part.is_some() {
                let path = ["group_by", &index.to_string(), "date_part"];
                let msg = "a group is a stretch of time (date_trunc) or a part of its name (date_part), not both";
                return Err(fault(&path, msg, Value::Null));
            }
        }
        let aliases = self.aggregations.iter().map(|one| &one.alias);
        let groups = self.group_by.iter();
        let groups = groups.map(|one| one.alias.as_ref().unwrap_or(&one.field));
        let buckets = self.range_buckets.iter().map(|one| &one.field);
        let mut names = aliases.chain(groups).chain(buckets);
        if let Some(by) = self
            .sort_by
            .as_ref()
            .filter(|by| names.all(|name| name != *by))
        {
            let msg = "results are sorted by an alias, or by what they are grouped by";
            return Err(fault(&["sort_by"], msg, by.as_str()));
        }
        Ok(())
    }
}

fn fault(path: &[&str], msg: &str, input: impl Into<Value>) -> ApiError {
    Violation::body(path, "value_error", msg, input.into()).into()
}

impl Aggregation {
    /// # Errors
    /// A plan that names what is not there, at its place in the request.
    pub fn new(plan: Plan) -> Result<Self> {
        for (index, one) in plan.aggregations.iter().enumerate() {
            let place = index.to_string();
            if source(one).is_none() && one.function != Function::Count {
                let path = ["aggregations", &place, "field"];
                return Err(fault(&path, "this function needs a field", Value::Null));
            }
            let same = |other: &&AggregationOperation| other.alias == one.alias;
            if plan.aggregations.iter().filter(same).count() > 1 {
                let path = ["aggregations", &place, "alias"];
                return Err(fault(
                    &path,
                    "two aggregations have this alias",
                    one.alias.as_str(),
                ));
            }
        }
        for (index, one) in plan.having.iter().enumerate() {
            let place = index.to_string();
            if !plan
                .aggregations
                .iter()
                .any(|other| other.alias == one.field)
            {
                let path = ["having", &place, "field"];
                return Err(fault(
                    &path,
                    "no aggregation has this alias",
                    one.field.as_str(),
                ));
            }
            if holds(&one.operator, Ordering::Equal).is_none() {
                let path = ["having", &place, "operator"];
                let msg = "an operator is eq, ne, gt, gte, lt or lte";
                return Err(fault(&path, msg, one.operator.as_str()));
            }
        }
        for (index, one) in plan.range_buckets.iter().enumerate() {
            if !one.boundaries.is_sorted_by(|low, high| low < high) {
                let path = ["range_buckets", &index.to_string(), "boundaries"];
                return Err(fault(&path, "boundaries rise", Value::Null));
            }
        }
        plan.check_groups()?;
        if !matches!(plan.sort_direction.as_str(), "asc" | "desc") {
            let direction = plan.sort_direction.as_str();
            return Err(fault(
                &["sort_direction"],
                "a direction is asc or desc",
                direction,
            ));
        }
        Ok(Self {
            plan,
            groups: IndexMap::new(),
        })
    }

    /// Takes one row.
    ///
    /// # Errors
    /// There are too many groups.
    pub fn add(&mut self, row: &Value) -> Result<()> {
        let Some(path) = self.plan.unwind.clone() else {
            return self.add_one(row);
        };
        let items: Vec<Value> = items_at(row, &path).cloned().collect();
        for item in items {
            let mut one = row.clone();
            set(&mut one, &path, item);
            self.add_one(&one)?;
        }
        Ok(())
    }

    fn add_one(&mut self, row: &Value) -> Result<()> {
        let mut members = Object::new();
        for field in &self.plan.group_by {
            let name = field.alias.as_ref().unwrap_or(&field.field);
            members.insert(name.clone(), group_value(field, row));
        }
        for bucket in &self.plan.range_buckets {
            members.insert(bucket.field.clone(), bucket_of(bucket, row));
        }
        let key = serde_json::to_string(&members).map_err(ApiError::internal)?;
        if !self.groups.contains_key(&key) && self.groups.len() == GROUPS {
            let message = format!("more than {GROUPS} groups: filter, or group by fewer values");
            return Err(ApiError::bad_request("too_many_groups", message));
        }
        let aggregations = &self.plan.aggregations;
        let group = self.groups.entry(key).or_insert_with(|| Group {
            members,
            metrics: aggregations.iter().map(|_| Metric::default()).collect(),
        });
        for (one, metric) in aggregations.iter().zip(&mut group.metrics) {
            match source(one) {
                None => metric.count += 1,
                Some(path) => {
                    for value in items_at(row, path) {
                        metric.add(one.function, value);
                    }
                }
            }
        }
        Ok(())
    }

    /// The aggregations that some group has more values of than are kept: their lists and counts are not whole.
    pub fn cut_short(&self) -> Vec<String> {
        let is_cut = |place: usize| {
            let mut groups = self.groups.values();
            groups.any(|group| group.metrics[place].more)
        };
        let named = self.plan.aggregations.iter().enumerate();
        let cut = named.filter(|(place, _)| is_cut(*place));
        cut.map(|(_, one)| one.alias.clone()).collect()
    }

    /// The groups that hold what `having` asks, sorted and cut, and how many they were before the cut.
    pub fn finish(self) -> (Vec<AggregationResult>, i64) {
        let Self { plan, groups } = self;
        let mut results: Vec<AggregationResult> = groups
            .into_values()
            .map(|group| {
                let pairs = plan.aggregations.iter().zip(group.metrics);
                let metrics =
                    pairs.map(|(one, metric)| (one.alias.clone(), metric.value(one.function)));
                AggregationResult {
                    group: group.members,
                    metrics: metrics.collect(),
                }
            })
            .filter(|result| plan.having.iter().all(|having| keeps(having, result)))
            .collect();
        let by = plan.sort_by.as_ref();
        let by = by.or_else(|| plan.aggregations.first().map(|one| &one.alias));
        if let Some(by) = by {
            let value = |one: &AggregationResult| {
                one.metrics.get(by).or_else(|| one.group.get(by)).cloned()
            };
            results.sort_by(|left, right| {
                let (left, right) = (value(left), value(right));
                let order = sort_values(left.as_ref(), right.as_ref());
                match plan.sort_direction.as_str() {
                    "asc" => order,
                    _ => order.reverse(),
                }
            });
        }
        let total = i64::try_from(results.len()).unwrap_or(i64::MAX);
        let limit = plan.limit.and_then(|limit| usize::try_from(limit).ok());
        results.truncate(limit.unwrap_or(GROUPS));
        (results, total)
    }
}

/// Every value at a path; of a list at its end, the items.
fn items_at<'r>(row: &'r Value, path: &str) -> impl Iterator<Item = &'r Value> {
    values_at(row, path)
        .into_iter()
        .flat_map(|value| match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        })
}

/// The path that an aggregation reads. `distinct_field` is for those that tell values apart.
fn source(one: &AggregationOperation) -> Option<&str> {
    let (field, distinct) = (one.field.as_deref(), one.distinct_field.as_deref());
    match one.function {
        Function::Count | Function::CountDistinct | Function::AddToSet => distinct.or(field),
        _ => field.or(distinct),
    }
}

impl Metric {
    fn add(&mut self, function: Function, value: &Value) {
        if value.is_null() {
            return;
        }
        match function {
            Function::Count => self.count += 1,
            Function::Sum | Function::Avg => {
                if let Some(number) = value.as_f64() {
                    self.count += 1;
                    self.sum += number;
                    self.fraction |= value.as_i64().is_none();
                }
            }
            Function::Min => replace(&mut self.least, value, Ordering::Less),
            Function::Max => replace(&mut self.most, value, Ordering::Greater),
            Function::First => {
                self.first.get_or_insert_with(|| value.clone());
            }
            Function::Last => self.last = Some(value.clone()),
            Function::Push if self.values.len() < VALUES => self.values.push(value.clone()),
            Function::Push => self.more = true,
            Function::AddToSet | Function::CountDistinct => self.add_distinct(function, value),
        }
    }

    fn add_distinct(&mut self, function: Function, value: &Value) {
        let text = value.to_string();
        if self.seen.contains(&text) {
            return;
        }
        if self.seen.len() >= VALUES {
            self.more = true;
            return;
        }
        self.seen.insert(text);
        if function == Function::AddToSet {
            self.values.push(value.clone());
        }
    }

    fn value(self, function: Function) -> Value {
        match function {
            Function::Count => self.count.into(),
            Function::CountDistinct => self.seen.len().into(),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "sums of whole numbers below 2^53 are whole"
            )]
            Function::Sum if !self.fraction && self.sum.abs() < 9.0e15 => (self.sum as i64).into(),
            Function::Sum => self.sum.into(),
            #[expect(clippy::cast_precision_loss, reason = "rows are far fewer than 2^52")]
            Function::Avg if self.count > 0 => (self.sum / self.count as f64).into(),
            Function::Avg => Value::Null,
            Function::Min => self.least.unwrap_or_default(),
            Function::Max => self.most.unwrap_or_default(),
            Function::First => self.first.unwrap_or_default(),
            Function::Last => self.last.unwrap_or_default(),
            Function::Push | Function::AddToSet => self.values.into(),
        }
    }
}

fn replace(held: &mut Option<Value>, value: &Value, wanted: Ordering) {
    let better = held
        .as_ref()
        .is_none_or(|held| sort_values(Some(value), Some(held)) == wanted);
    if better {
        *held = Some(value.clone());
    }
}

fn keeps(having: &HavingCondition, result: &AggregationResult) -> bool {
    let Some(value) = result.metrics.get(&having.field) else {
        return false;
    };
    let order = match (value.as_f64(), having.value.as_f64()) {
        (Some(value), Some(bound)) => value.partial_cmp(&bound).unwrap_or(Ordering::Equal),
        _ => sort_values(Some(value), Some(&having.value)),
    };
    holds(&having.operator, order).unwrap_or(false)
}

/// Whether an order is what the operator asks; none for an operator that does not exist.
fn holds(operator: &str, order: Ordering) -> Option<bool> {
    Some(match operator {
        "eq" | "==" | "=" => order.is_eq(),
        "ne" | "!=" => order.is_ne(),
        "gt" | ">" => order.is_gt(),
        "gte" | ">=" => order.is_ge(),
        "lt" | "<" => order.is_lt(),
        "lte" | "<=" => order.is_le(),
        _ => return None,
    })
}

fn group_value(field: &GroupByField, row: &Value) -> Value {
    let Some(value) = value_at(row, &field.field) else {
        return Value::Null;
    };
    if field.date_trunc.is_none() && field.date_part.is_none() {
        return value.clone();
    }
    let Some(at) = moment(value) else {
        return Value::Null;
    };
    match (field.date_trunc, field.date_part) {
        (Some(unit), _) => json!(truncated(at, unit)),
        (None, Some(unit)) => part(at, unit).into(),
        (None, None) => value.clone(),
    }
}

fn moment(value: &Value) -> Option<DateTime<Utc>> {
    let text = value.as_str()?;
    let day = || text.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0);
    let rfc = DateTime::parse_from_rfc3339(text).map(|at| at.to_utc());
    rfc.ok().or_else(|| Some(day()?.and_utc()))
}

/// The beginning of the stretch of time that a moment is in.
pub fn truncated(at: DateTime<Utc>, unit: DateTruncUnit) -> Option<DateTime<Utc>> {
    let day = at.date_naive();
    let date = match unit {
        DateTruncUnit::Year => NaiveDate::from_ymd_opt(day.year(), 1, 1)?,
        DateTruncUnit::Month => day.with_day(1)?,
        DateTruncUnit::Week => day - Duration::days(day.weekday().num_days_from_monday().into()),
        _ => day,
    };
    let time = match unit {
        DateTruncUnit::Hour => (at.hour(), 0, 0),
        DateTruncUnit::Minute => (at.hour(), at.minute(), 0),
        DateTruncUnit::Second => (at.hour(), at.minute(), at.second()),
        _ => (0, 0, 0),
    };
    Some(date.and_hms_opt(time.0, time.1, time.2)?.and_utc())
}

fn part(at: DateTime<Utc>, unit: DatePartUnit) -> i64 {
    match unit {
        DatePartUnit::Year => at.year().into(),
        DatePartUnit::Month => at.month().into(),
        DatePartUnit::Week => at.iso_week().week().into(),
        DatePartUnit::Day => at.day().into(),
        DatePartUnit::DayOfWeek => (at.weekday().num_days_from_sunday() + 1).into(),
        DatePartUnit::DayOfYear => at.ordinal().into(),
        DatePartUnit::Hour => at.hour().into(),
        DatePartUnit::Minute => at.minute().into(),
        DatePartUnit::Second => at.second().into(),
    }
}

fn bucket_of(bucket: &RangeBucket, row: &Value) -> Value {
    let number = value_at(row, &bucket.field).and_then(Value::as_f64);
    let fits = |pair: &&[f64]| number.is_some_and(|number| pair[0] <= number && number < pair[1]);
    match bucket.boundaries.windows(2).find(fits) {
        Some(pair) => format!("{}-{}", pair[0], pair[1]).into(),
        None => bucket
            .default_bucket
            .clone()
            .map_or(Value::Null, Value::from),
    }
}

/// Puts a value at a dot path, through objects alone.
fn set(row: &mut Value, path: &str, value: Value) {
    let mut at = row;
    let mut segments = path.split('.').peekable();
    while let Some(segment) = segments.next() {
        let Value::Object(members) = at else { return };
        if segments.peek().is_none() {
            members.insert(segment.into(), value);
            return;
        }
        at = members.entry(segment).or_insert_with(|| json!({}));
    }
}

macro_rules! from_request {
    ($($request:ident),*) => {
        $(impl From<loupe_wire::$request> for Plan {
            fn from(request: loupe_wire::$request) -> Self {
                Self {
                    group_by: request.group_by,
                    aggregations: request.aggregations,
                    having: request.having.unwrap_or_default(),
                    unwind: request.unwind,
                    range_buckets: request.range_buckets.unwrap_or_default(),
                    sort_by: request.sort_by,
                    sort_direction: request.sort_direction,
                    limit: request.limit,
                }
            }
        })*
    };
}

from_request!(DocumentAggregationRequest, ObjectAggregationRequest);

#[cfg(test)]
mod tests;
