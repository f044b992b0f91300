//! One figure over rows.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use loupe_wire::Value;
use serde_json::json;

use crate::filter::sort_values;
use crate::stage::parameters::Parameters;
use crate::stage::working::Row;

/// Most values that `collect` gives.
const MAX_COLLECTED: usize = 10_000;
/// Most pairs that `co_occurrence` counts: a document with a thousand values has half a million.
const MAX_PAIRS: usize = 5_000_000;

pub(super) struct Operation {
    function: String,
    field: String,
    field_b: Option<String>,
    percentile: f64,
    top_k: usize,
    pub alias: String,
}

impl Operation {
    /// The operation, or why its members do not fit its function.
    pub fn of(p: &Parameters) -> Result<Self, String> {
        let (function, field) = (p.word("function"), p.text("field"));
        if field.is_none() && function != "count" {
            return Err(format!("`{function}` needs `field`"));
        }
        if function == "correlation" && p.text("field_b").is_none() {
            return Err("`correlation` needs `field_b`".to_owned());
        }
        Ok(Self {
            function,
            field: field.unwrap_or_default(),
            field_b: p.text("field_b"),
            percentile: p.number("percentile_value").unwrap_or(50.0),
            top_k: p.count("top_k").unwrap_or(10),
            alias: p.word("alias"),
        })
    }

    /// Why these rows are too much for the figure, where they are.
    pub fn refusal(&self, rows: &[Row]) -> Option<String> {
        if self.function != "co_occurrence" {
            return None;
        }
        let pairs = |row: &Row| {
            let count = values(row, &self.field).len();
            match &self.field_b {
                Some(field) => count.saturating_mul(values(row, field).len()),
                None => count.saturating_mul(count.saturating_sub(1)) / 2,
            }
        };
        let all = rows.iter().map(pairs).fold(0, usize::saturating_add);
        (all > MAX_PAIRS).then(|| {
            format!("`co_occurrence` counts {MAX_PAIRS} pairs at most, and here are {all}; take fewer documents")
        })
    }

    /// The figure. Without a value to compute it from it is `null`, a count 0 and a list empty.
    pub fn compute(&self, rows: &[Row]) -> Value {
        match self.function.as_str() {
            "count" if self.field.is_empty() => return json!(rows.len()),
            "count" => {
                let has = |row: &&Row| !values(row, &self.field).is_empty();
                return json!(rows.iter().filter(has).count());
            }
            "co_occurrence" => return self.pairs(rows),
            "correlation" => return self.correlation(rows),
            _ => {}
        }
        let all: Vec<&Value> = rows
            .iter()
            .flat_map(|row| values(row, &self.field))
            .collect();
        let numbers: Vec<f64> = all.iter().filter_map(|v| v.as_f64()).collect();
        let among = |figure: f64| {
            if numbers.is_empty() {
                Value::Null
            } else {
                json!(figure)
            }
        };
        match self.function.as_str() {
            "count_distinct" => json!(distinct(&all).len()),
            "sum" => among(numbers.iter().sum()),
            "avg" => among(mean(&numbers)),
            "min" => best(&all, false),
            "max" => best(&all, true),
            "first" => all.first().map_or(Value::Null, |v| (*v).clone()),
            "last" => all.last().map_or(Value::Null, |v| (*v).clone()),
            "collect" => all.into_iter().take(MAX_COLLECTED).cloned().collect(),
            "collect_distinct" => distinct(&all)
                .into_iter()
                .take(MAX_COLLECTED)
                .cloned()
                .collect(),
            "percentile" => among(percentile(numbers.clone(), self.percentile)),
            "stddev" => among(variance(&numbers).sqrt()),
            "variance" => among(variance(&numbers)),
            _ => counted(&all, self.top_k),
        }
    }

    /// How often two values are in one document: of two fields, or of one with itself.
    fn pairs(&self, rows: &[Row]) -> Value {
        // Values by number: a pair of numbers is small, and there may be millions.
        let mut known: IndexMap<String, &Value> = IndexMap::new();
        let mut counts: HashMap<(usize, usize), usize> = HashMap::new();
        for row in rows {
            let mut of_a = distinct(&values(row, &self.field));
            match &self.field_b {
                Some(field) => {
                    let of_a = numbers(&mut known, &of_a);
                    let of_b = numbers(&mut known, &distinct(&values(row, field)));
                    for a in of_a {
                        for b in &of_b {
                            *counts.entry((a, *b)).or_default() += 1;
                        }
                    }
                }
                None => {
                    // The same two values are one pair, whichever came first.
                    of_a.sort_by(|a, b| sort_values(Some(a), Some(b)));
                    let of_a = numbers(&mut known, &of_a);
                    for (i, a) in of_a.iter().enumerate() {
                        for b in &of_a[i + 1..] {
                            *counts.entry((*a, *b)).or_default() += 1;
                        }
                    }
                }
            }
        }
        let text = |place: usize| known.get_index(place).map(|(text, _)| text);
        let texts = |(a, b): (usize, usize)| (text(a), text(b));
        let mut list: Vec<((usize, usize), usize)> = counts.into_iter().collect();
        list.sort_by(|(x, of_x), (y, of_y)| of_y.cmp(of_x).then_with(|| texts(*x).cmp(&texts(*y))));
        list.truncate(self.top_k);
        let told = list.into_iter().map(|((a, b), count)| {
            json!({"value": known.get_index(a).map(|(_, value)| value),
                "value_b": known.get_index(b).map(|(_, value)| value), "count": count})
        });
        told.collect()
    }

    /// Pearson's, over the documents that have a number in both fields.
    fn correlation(&self, rows: &[Row]) -> Value {
        let number = |row: &Row, field: &str| row.at(field).and_then(Value::as_f64);
        let field_b = self.field_b.as_deref().unwrap_or_default();
        let pairs: Vec<(f64, f64)> = rows
            .iter()
            .filter_map(|row| number(row, &self.field).zip(number(row, field_b)))
            .collect();
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (mean_a, mean_b) = (mean(&a), mean(&b));
        let together: f64 = pairs.iter().map(|(x, y)| (x - mean_a) * (y - mean_b)).sum();
        let spread = (variance(&a) * variance(&b)).sqrt() * pairs.len() as f64;
        if pairs.len() < 2 || spread == 0.0 {
            return Value::Null;
        }
        json!((together / spread).clamp(-1.0, 1.0))
    }
}

/// The values at a path that are something; the members of a list count each.
fn values<'a>(row: &'a Row, field: &str) -> Vec<&'a Value> {
    let found = row.all_at(field).into_iter();
    found
        .flat_map(|value| match value {
            Value::Array(items) => items.iter().collect(),
            other => vec![other],
        })
        .filter(|value| !value.is_null())
        .collect()
}

/// The numbers of values, which have one each from their first place on.
fn numbers<'a>(known: &mut IndexMap<String, &'a Value>, all: &[&'a Value]) -> Vec<usize> {
    let number = |value: &&'a Value| {
        let entry = known.entry(value.to_string());
        let place = entry.index();
        entry.or_insert(*value);
        place
    };
    all.iter().map(number).collect()
}

/// Each value once, in the order of their first places.
fn distinct<'a>(all: &[&'a Value]) -> Vec<&'a Value> {
    let mut seen = HashSet::new();
    let mut list = all.to_vec();
    list.retain(|value| seen.insert(value.to_string()));
    list
}

fn best(all: &[&Value], greatest: bool) -> Value {
    let order = |a: &&&Value, b: &&&Value| sort_values(Some(a), Some(b));
    let found = if greatest {
        all.iter().max_by(order)
    } else {
        all.iter().min_by(order)
    };
    found.map_or(Value::Null, |v| (*v).clone())
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

/// Of the whole: the documents are what is asked about, not a sample of more.
fn variance(numbers: &[f64]) -> f64 {
    let mean = mean(numbers);
    let sum: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
    sum / numbers.len().max(1) as f64
}

/// Interpolated between the two nearest values.
fn percentile(mut numbers: Vec<f64>, share: f64) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let Some(last) = numbers.len().checked_sub(1) else {
        return 0.0;
    };
    let place = share / 100.0 * last as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let (low, high) = (numbers[below.min(last)], numbers[above.min(last)]);
    low + (high - low) * place.fract()
}

/// What occurs most often, most first, ties by value.
fn counted(all: &[&Value], top_k: usize) -> Value {
    let mut counts: HashMap<String, (&Value, usize)> = HashMap::new();
    for value in all {
        counts.entry(value.to_string()).or_insert((*value, 0)).1 += 1;
    }
    let mut list: Vec<(String, (&Value, usize))> = counts.into_iter().collect();
    list.sort_by(|a, b| b.1.1.cmp(&a.1.1).then_with(|| a.0.cmp(&b.0)));
    list.truncate(top_k);
    let told = list
        .into_iter()
        .map(|(_, (value, count))| json!({"value": value, "count": count}));
    told.collect()
}
