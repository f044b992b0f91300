//! The evaluation of a filter on a document.

use std::cmp::Ordering;

use geo::{
    Contains as _, Coord, Distance as _, Haversine, Intersects as _, LineString, Point, Polygon,
    Rect,
};
use qdrant_rust_stemmers::{Algorithm, Stemmer};
use regex::Regex;
use serde_json::Value;

use super::{
    Condition, Filter, Operator, dynamic_input,
    order::{compare_numbers, compare_values, values_at},
    parse::compile_regex,
};

/// Most points of one polygon.
const MAX_POINTS: usize = 1_000;

/// A filter ready for many documents.
#[derive(Debug)]
pub struct Matcher(Node);

#[derive(Debug)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    None(Vec<Node>),
    Leaf { path: String, test: Test },
}

#[derive(Debug)]
enum Test {
    Equal {
        to: Value,
        fold: bool,
        negate: bool,
    },
    Member {
        of: Vec<Value>,
        fold: bool,
        negate: bool,
    },
    Order {
        than: Value,
        accept: fn(Ordering) -> bool,
    },
    Contains {
        what: Value,
        fold: bool,
    },
    Text {
        what: String,
        fold: bool,
        find: fn(&str, &str) -> bool,
    },
    Regex(Regex),
    Exists(bool),
    IsNull(bool),
    Phrase(Vec<String>),
    Words(Vec<String>),
    Inside(Shape),
    /// A value that no operator can work with, or an input that was never resolved.
    Never,
}

impl Matcher {
    pub(super) fn new(filter: &Filter) -> Self {
        fn node(filter: &Filter) -> Node {
            let list = |members: &[Filter]| members.iter().map(node).collect();
            match filter {
                Filter::All(members) => Node::All(list(members)),
                Filter::Any(members) => Node::Any(list(members)),
                Filter::None(members) => Node::None(list(members)),
                Filter::Leaf(c) => Node::Leaf {
                    path: c.field.clone(),
                    test: Test::new(c).unwrap_or(Test::Never),
                },
            }
        }
        Matcher(node(filter))
    }

    /// Whether the document satisfies the filter.
    pub fn matches(&self, document: &Value) -> bool {
        self.0.matches(document)
    }
}

impl Node {
    fn matches(&self, document: &Value) -> bool {
        match self {
            Node::All(members) => members.iter().all(|m| m.matches(document)),
            Node::Any(members) => members.iter().any(|m| m.matches(document)),
            Node::None(members) => !members.iter().any(|m| m.matches(document)),
            Node::Leaf { path, test } => test.holds(&values_at(document, path)),
        }
    }
}

impl Test {
    fn new(condition: &Condition) -> Option<Test> {
        let (value, fold) = (&condition.value, !condition.case_sensitive);
        if dynamic_input(value).is_some() {
            return None;
        }
        let order = |accept| {
            Some(Test::Order {
                than: value.clone(),
                accept,
            })
        };
        Some(match condition.operator {
            Operator::Eq => Test::Equal {
                to: value.clone(),
                fold,
                negate: false,
            },
            Operator::Ne => Test::Equal {
                to: value.clone(),
                fold,
                negate: true,
            },
            Operator::In => Test::Member {
                of: value.as_array()?.clone(),
                fold,
                negate: false,
            },
            Operator::Nin => Test::Member {
                of: value.as_array()?.clone(),
                fold,
                negate: true,
            },
            Operator::Gt => order(Ordering::is_gt)?,
            Operator::Gte => order(Ordering::is_ge)?,
            Operator::Lt => order(Ordering::is_lt)?,
            Operator::Lte => order(Ordering::is_le)?,
            Operator::Contains => Test::Contains {
                what: value.clone(),
                fold,
            },
            Operator::StartsWith
            | Operator::EndsWith
            | Operator::Text
            | Operator::Regex
            | Operator::Phrase
            | Operator::Words => Test::of_text(condition, value.as_str()?)?,
            Operator::Exists => Test::Exists(value.as_bool()?),
            Operator::IsNull => Test::IsNull(value.as_bool()?),
            Operator::GeoRadius | Operator::GeoBoundingBox | Operator::GeoPolygon => {
                Test::Inside(Shape::parse(condition.operator, value).ok()?)
            }
        })
    }

    /// What is asked of texts; none for an operator that asks something else.
    fn of_text(condition: &Condition, what: &str) -> Option<Test> {
        let fold = !condition.case_sensitive;
        let folded = || match fold {
            true => what.to_lowercase(),
            false => what.to_owned(),
        };
        match condition.operator {
            Operator::StartsWith => Some(Test::Text {
                what: folded(),
                fold,
                find: |s, w| s.starts_with(w),
            }),
            Operator::EndsWith => Some(Test::Text {
                what: folded(),
                fold,
                find: |s, w| s.ends_with(w),
            }),
            Operator::Text => Some(Test::Text {
                what: what.to_lowercase(),
                fold: true,
                find: |s, w| s.contains(w),
            }),
            Operator::Regex => compile_regex(what, condition.case_sensitive)
                .ok()
                .map(Test::Regex),
            Operator::Phrase => Some(Test::Phrase(words_of(what))),
            Operator::Words => Some(Test::Words(stems_of(what))),
            _ => None,
        }
    }

    fn holds(&self, found: &[&Value]) -> bool {
        let any = |test: &dyn Fn(&Value) -> bool| found.iter().any(|v| any_member(v, test));
        let any_text = |test: &dyn Fn(&str) -> bool| any(&|v: &Value| v.as_str().is_some_and(test));
        match self {
            Test::Equal { to, fold, negate } => equals(found, to, *fold) != *negate,
            Test::Member { of, fold, negate } => {
                of.iter().any(|to| equals(found, to, *fold)) != *negate
            }
            Test::Order { than, accept } => any(&|v| compare_values(v, than).is_some_and(accept)),
            Test::Contains { what, fold } => found.iter().any(|v| match v {
                Value::Array(items) => items.iter().any(|item| equal(item, what, *fold)),
                Value::String(text) => what
                    .as_str()
                    .is_some_and(|w| folded(text, *fold).contains(&*folded(w, *fold))),
                _ => false,
            }),
            Test::Text { what, fold, find } => any_text(&|s| find(&folded(s, *fold), what)),
            Test::Regex(regex) => any_text(&|s| regex.is_match(s)),
            Test::Exists(wanted) => found.is_empty() != *wanted,
            Test::IsNull(wanted) => found.iter().all(|v| v.is_null()) == *wanted,
            // A phrase without words, such as "!?", is nowhere.
            Test::Phrase(phrase) if phrase.is_empty() => false,
            Test::Phrase(phrase) => {
                any_text(&|s| words_of(s).windows(phrase.len()).any(|w| w == phrase))
            }
            Test::Words(stems) => any_text(&|s| {
                let present: std::collections::HashSet<String> = stems_of(s).into_iter().collect();
                stems.iter().all(|stem| present.contains(stem))
            }),
            Test::Inside(shape) => found.iter().any(|v| match v {
                // GeoJSON's [lon, lat] is one point, not two members.
                Value::Array(items) => {
                    point_of(v).is_some_and(|p| shape.contains(p))
                        || items
                            .iter()
                            .any(|i| point_of(i).is_some_and(|p| shape.contains(p)))
                }
                other => point_of(other).is_some_and(|p| shape.contains(p)),
            }),
            Test::Never => false,
        }
    }
}

fn folded(text: &str, fold: bool) -> std::borrow::Cow<'_, str> {
    if fold {
        text.to_lowercase().into()
    } else {
        text.into()
    }
}

/// The value itself, or a member of it where it is an array.
fn any_member(value: &Value, test: &dyn Fn(&Value) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| any_member(item, test)),
        other => test(other),
    }
}

fn equals(found: &[&Value], to: &Value, fold: bool) -> bool {
    if to.is_null() && found.is_empty() {
        return true;
    }
    found.iter().any(|v| {
        equal(v, to, fold)
            || matches!(v, Value::Array(items) if items.iter().any(|item| equal(item, to, fold)))
    })
}

fn equal(a: &Value, b: &Value, fold: bool) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => compare_numbers(x, y) == Some(Ordering::Equal),
        (Value::String(x), Value::String(y)) => {
            x == y || (fold && x.to_lowercase() == y.to_lowercase())
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(p, q)| equal(p, q, fold))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .all(|(k, p)| y.get(k).is_some_and(|q| equal(p, q, fold)))
        }
        _ => a == b,
    }
}

/// The words of a text: runs of letters and digits, in lower case.
pub(super) fn words_of(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn stems_of(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    words_of(text)
        .iter()
        .map(|w| stemmer.stem(w).into_owned())
        .collect()
}

/// An area on the globe.
#[derive(Debug)]
pub(super) enum Shape {
    Radius {
        center: Point,
        metres: f64,
    },
    /// One box, or two where it crosses the 180th meridian.
    Boxes(Vec<Rect>),
    Polygon(Polygon),
}

impl Shape {
    /// `{center, radius}` in metres; `{top_left, bottom_right}`; `{exterior: {points}, interiors: [{points}]}` or
    /// `{points}`. A point is `{lat, lon}` or `[lon, lat]`.
    pub(super) fn parse(operator: Operator, value: &Value) -> Result<Shape, String> {
        match operator {
            Operator::GeoRadius => {
                let center = value.get("center").and_then(point_of);
                let metres = value
                    .get("radius")
                    .and_then(Value::as_f64)
                    .filter(|r| r.is_finite() && *r >= 0.0);
                match (center, metres) {
                    (Some(center), Some(metres)) => Ok(Shape::Radius { center, metres }),
                    _ => Err(
                        "`geo_radius` takes {center: {lat, lon}, radius} with the radius in metres"
                            .to_owned(),
                    ),
                }
            }
            Operator::GeoBoundingBox => {
                let corner = |name| value.get(name).and_then(point_of);
                match (corner("top_left"), corner("bottom_right")) {
                    (Some(a), Some(b)) if a.y() >= b.y() => Ok(Shape::Boxes(boxes(a, b))),
                    _ => Err(
                        "`geo_bounding_box` takes {top_left: {lat, lon}, bottom_right: {lat, lon}}"
                            .to_owned(),
                    ),
                }
            }
            _ => polygon(value).map(Shape::Polygon),
        }
    }

    fn contains(&self, point: Point) -> bool {
        match self {
            Shape::Radius { center, metres } => Haversine.distance(*center, point) <= *metres,
            Shape::Boxes(list) => list.iter().any(|rect| rect.intersects(&point)),
            Shape::Polygon(polygon) => polygon.contains(&point),
        }
    }
}

fn boxes(top_left: Point, bottom_right: Point) -> Vec<Rect> {
    let (north, south, west, east) = (
        top_left.y(),
        bottom_right.y(),
        top_left.x(),
        bottom_right.x(),
    );
    let rect = |w, e| Rect::new(Coord { x: w, y: south }, Coord { x: e, y: north });
    if west <= east {
        vec![rect(west, east)]
    } else {
        vec![rect(west, 180.0), rect(-180.0, east)]
    }
}

fn polygon(value: &Value) -> Result<Polygon, String> {
    let says = || {
        format!(
            "`geo_polygon` takes {{exterior: {{points: [{{lat, lon}}]}}, interiors: []}} of 3 to {MAX_POINTS} points"
        )
    };
    let ring = |value: &Value| -> Option<LineString> {
        let points = value.get("points").unwrap_or(value).as_array()?;
        let points: Vec<Point> = points.iter().map(point_of).collect::<Option<_>>()?;
        (3..=MAX_POINTS)
            .contains(&points.len())
            .then(|| LineString::from(points))
    };
    let exterior = ring(value.get("exterior").unwrap_or(value)).ok_or_else(says)?;
    let interiors = match value.get("interiors") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(rings)) if rings.len() <= 100 => rings
            .iter()
            .map(ring)
            .collect::<Option<_>>()
            .ok_or_else(says)?,
        Some(_) => return Err(says()),
    };
    Ok(Polygon::new(exterior, interiors))
}

/// `{lat, lon}`, also with the long names, or GeoJSON's `[lon, lat]`.
fn point_of(value: &Value) -> Option<Point> {
    let member = |names: &[&str]| {
        names
            .iter()
            .find_map(|n| value.get(*n))
            .and_then(Value::as_f64)
    };
    let (lon, lat) = match value {
        Value::Array(pair) if pair.len() == 2 => (pair[0].as_f64()?, pair[1].as_f64()?),
        Value::Object(_) => (
            member(&["lon", "lng", "longitude"])?,
            member(&["lat", "latitude"])?,
        ),
        _ => return None,
    };
    ((-180.0..=180.0).contains(&lon) && (-90.0..=90.0).contains(&lat)).then(|| Point::new(lon, lat))
}
