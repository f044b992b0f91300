//! When a trigger fires: its `schedule_config`, read and checked, and the next moment of it.

use chrono::{DateTime, TimeZone, Utc};
use croner::Cron;
use loupe_wire::{Object, TriggerType, Value, reading};
use serde::Deserialize;

use super::metric::{Compare, Figure};
use crate::error::{ApiError, Result, Violation};

/// Shortest and longest pause of an interval, in seconds: a year at most.
const SHORTEST: i64 = 1;
const LONGEST: i64 = 31_536_000;

/// How often a condition is looked at unless it says so, in seconds.
const CHECKED: i64 = 300;

/// How events begin that tell the collection which they are of.
const OF_COLLECTIONS: [&str; 7] = [
    "alert.execution.completed",
    "alert.triggered",
    "annotation.",
    "collection.",
    "document.",
    "documents.",
    "resource.",
];

/// A schedule that can be followed.
#[derive(Debug, Clone)]
pub enum Schedule {
    Cron(Box<(Cron, chrono_tz::Tz)>),
    Interval {
        seconds: i64,
        at_once: bool,
    },
    Event {
        /// Any of them counts.
        event_types: Vec<String>,
        threshold: i64,
        collection_id: Option<String>,
        cooldown: i64,
        /// A batch that ended counts as its documents, not once.
        by_documents: bool,
    },
    Condition(Condition),
}

/// Something that is measured now and then.
#[derive(Debug, Clone)]
pub struct Condition {
    pub kind: Measured,
    pub threshold: f64,
    /// `relative` or `absolute`, of a volume.
    pub absolute: bool,
    /// What is measured, and how it is held against the threshold, of a metric.
    pub figure: Option<(Figure, Compare)>,
    /// None: what the action is for.
    pub collection_id: Option<String>,
    pub every: i64,
    pub cooldown: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// Cosine distance between the mean vector now and at the last firing.
    Drift,
    /// Documents now against those at the last firing.
    Volume,
    /// A figure against the threshold.
    Metric,
}

#[derive(Deserialize)]
struct CronConfig {
    cron_expression: Option<String>,
    /// The older name; what is kept has both.
    cron: Option<String>,
    #[serde(default)]
    timezone: Option<String>,
}

#[derive(Deserialize)]
struct IntervalConfig {
    interval_seconds: i64,
    #[serde(default)]
    start_immediately: bool,
}

#[derive(Deserialize)]
struct EventConfig {
    event_type: String,
    event_threshold: Option<i64>,
    collection_id: Option<String>,
    cooldown_seconds: Option<i64>,
    #[serde(default)]
    count_documents: bool,
}

#[derive(Deserialize)]
struct ConditionConfig {
    condition_type: Measured,
    threshold: f64,
    metric: Option<String>,
    operator: Option<Compare>,
    check_interval_seconds: Option<i64>,
    collection_id: Option<String>,
    cooldown_seconds: Option<i64>,
}

/// The name that the interface stores a cron expression under.
pub fn normal(kind: TriggerType, config: &mut Object) {
    if kind == TriggerType::Cron
        && !config.contains_key("cron_expression")
        && let Some(cron) = config.get("cron").cloned()
    {
        config.insert("cron_expression".into(), cron);
    }
}

/// Refuses members that a schedule of this kind does not have: they would change nothing.
///
/// # Errors
/// The 422 list.
pub fn check_members(kind: TriggerType, config: &Object) -> Result<()> {
    let members: &[&str] = match kind {
        TriggerType::Cron => &["cron_expression", "cron", "timezone"],
        TriggerType::Interval => &["interval_seconds", "start_immediately"],
        TriggerType::Event => &[
            "event_type",
            "event_threshold",
            "collection_id",
            "cooldown_seconds",
            "count_documents",
        ],
        TriggerType::Conditional => &[
            "condition_type",
            "threshold",
            "metric",
            "operator",
            "check_interval_seconds",
            "collection_id",
            "cooldown_seconds",
        ],
    };
    let mut sent = config.iter();
    match sent.find(|(name, _)| !members.contains(&name.as_str())) {
        Some((name, value)) => {
            let accepted = members.join(", ");
            let msg = format!("extra inputs are not permitted; accepted keys: {accepted}");
            let path = ["schedule_config", name.as_str()];
            Err(Violation::body(&path, "extra_forbidden", msg, value.clone()).into())
        }
        None => Ok(()),
    }
}

/// Refuses a collection for events that tell of none: not one of them would be counted.
///
/// # Errors
/// The 422 list.
pub fn check_of_collection(event_types: &[String], collection_id: &str) -> Result<()> {
    let is_of_none = |one: &&String| {
        let mut begins = OF_COLLECTIONS.iter();
        !begins.any(|begin| one.starts_with(begin))
    };
    match event_types.iter().find(is_of_none) {
        Some(event_type) => {
            let msg = format!("{event_type} is of no collection: leave it out");
            Err(fault("collection_id", msg, collection_id.into()))
        }
        None => Ok(()),
    }
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// The 422 list for what cannot be followed; `invalid_cron` for an expression that says no moment.
    pub fn read(kind: TriggerType, config: &Object) -> Result<Self> {
        match kind {
            TriggerType::Cron => cron(read(config)?),
            TriggerType::Interval => {
                let config: IntervalConfig = read(config)?;
                let seconds = config.interval_seconds;
                bounded("interval_seconds", seconds, SHORTEST, LONGEST)?;
                Ok(Self::Interval {
                    seconds,
                    at_once: config.start_immediately,
                })
            }
            TriggerType::Event => {
                let config: EventConfig = read(config)?;
                let threshold = config.event_threshold.unwrap_or(1);
                bounded("event_threshold", threshold, 1, 1_000_000_000)?;
                let cooldown = config.cooldown_seconds.unwrap_or(0);
                bounded("cooldown_seconds", cooldown, 0, LONGEST)?;
                Ok(Self::Event {
                    event_types: event_types(&config.event_type)?,
                    threshold,
                    collection_id: config.collection_id,
                    cooldown,
                    by_documents: config.count_documents,
                })
            }
            TriggerType::Conditional => condition(read(config)?).map(Self::Condition),
        }
    }

    /// The next moment in microseconds, after `now`; none for what waits for events.
    ///
    /// # Errors
    /// A cron expression that never comes again.
    pub fn next(&self, now: i64) -> Result<Option<i64>> {
        match self {
            Self::Cron(both) => {
                let (cron, zone) = both.as_ref();
                let here = moment(now).with_timezone(zone);
                let next = cron
                    .find_next_occurrence(&here, false)
                    .map_err(|error| never(cron.as_str(), &error.to_string()))?;
                Ok(Some(next.timestamp_micros()))
            }
            Self::Interval { seconds, .. } => Ok(Some(now + seconds * 1_000_000)),
            Self::Event { .. } => Ok(None),
            Self::Condition(condition) => Ok(Some(now + condition.every * 1_000_000)),
        }
    }

    /// The first moment of a schedule that begins now.
    ///
    /// # Errors
    /// As [`Schedule::next`].
    pub fn first(&self, now: i64) -> Result<Option<i64>> {
        match self {
            Self::Interval { at_once: true, .. } | Self::Condition(_) => Ok(Some(now)),
            _ => self.next(now),
        }
    }
}

fn moment(micros: i64) -> DateTime<Utc> {
    Utc.timestamp_micros(micros)
        .single()
        .unwrap_or(DateTime::UNIX_EPOCH)
}

fn cron(config: CronConfig) -> Result<Schedule> {
    let Some(expression) = config.cron_expression.or(config.cron) else {
        let msg = "a cron schedule has a cron_expression";
        return Err(fault("cron_expression", msg, Value::Null));
    };
    let cron: Cron = expression
        .trim()
        .parse()
        .map_err(|error: croner::errors::CronError| never(&expression, &error.to_string()))?;
    let zone = config.timezone.as_deref().unwrap_or("UTC");
    let Ok(zone) = zone.parse::<chrono_tz::Tz>() else {
        let msg = "this is no time zone such as Europe/Vienna";
        return Err(fault("timezone", msg, zone.into()));
    };
    Ok(Schedule::Cron(Box::new((cron, zone))))
}

fn never(expression: &str, why: &str) -> ApiError {
    let message = format!("the cron expression says no moment: {why}");
    let path = ["schedule_config", "cron_expression"];
    Violation::body(&path, "invalid_cron", message, expression.into()).into()
}

fn condition(config: ConditionConfig) -> Result<Condition> {
    let every = config.check_interval_seconds.unwrap_or(CHECKED);
    bounded("check_interval_seconds", every, 10, LONGEST)?;
    let cooldown = config.cooldown_seconds.unwrap_or(0);
    bounded("cooldown_seconds", cooldown, 0, LONGEST)?;
    let figure = figure(&config)?;
    // A figure may be held against anything; a change is one by more than nothing.
    if !(config.threshold.is_finite() && (figure.is_some() || config.threshold > 0.0)) {
        let msg = "a threshold is a number above 0";
        return Err(fault("threshold", msg, config.threshold.into()));
    }
    let absolute = match (config.condition_type, config.metric.as_deref()) {
        (Measured::Volume, Some("absolute")) => true,
        (Measured::Metric, _)
        | (Measured::Volume, None | Some("relative"))
        | (Measured::Drift, None | Some("cosine")) => false,
        (_, Some(metric)) => {
            let msg = "a volume is measured relative or absolute, a drift by cosine";
            return Err(fault("metric", msg, metric.into()));
        }
    };
    Ok(Condition {
        kind: config.condition_type,
        threshold: config.threshold,
        absolute,
        figure,
        collection_id: config.collection_id,
        every,
        cooldown,
    })
}

/// What a metric measures, and how it is held against the threshold: at least it, unless it says so.
fn figure(config: &ConditionConfig) -> Result<Option<(Figure, Compare)>> {
    if config.condition_type != Measured::Metric {
        return match config.operator {
            Some(_) => {
                let msg = "only a metric is compared otherwise: what changed, changed by at least the threshold";
                Err(fault("operator", msg, Value::Null))
            }
            None => Ok(None),
        };
    }
    let named = Value::from(config.metric.clone());
    let Ok(figure) = reading::from_value::<Figure>(&named) else {
        let msg = format!("a metric is one of {}", Figure::names());
        return Err(fault("metric", msg, named));
    };
    Ok(Some((figure, config.operator.unwrap_or(Compare::Gte))))
}

/// The feed's words for an event: its own name, or those that an older name stands for, however something was added.
fn event_types(sent: &str) -> Result<Vec<String>> {
    let names = match sent {
        "documents_added" => &["collection.documents.written", "document.created"][..],
        "objects_added" => &["object.created", "objects.created.batch"],
        _ => &[sent],
    };
    if sent.starts_with("trigger.") {
        let msg =
            "triggers do not fire on what triggers do: they would fire each other without end";
        return Err(fault("event_type", msg, sent.into()));
    }
    let is_known = |name: &&str| {
        reading::from_value::<loupe_wire::WebhookEventType>(&Value::from(*name)).is_ok()
    };
    if !names.iter().all(is_known) {
        let msg = "this is no event of the change feed";
        return Err(fault("event_type", msg, sent.into()));
    }
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}

fn read<T: serde::de::DeserializeOwned>(config: &Object) -> Result<T> {
    reading::from_value(&Value::Object(config.clone())).map_err(|error| {
        let msg = format!("this is no schedule of the kind: {error}");
        Violation::body(
            &["schedule_config"],
            "value_error",
            msg,
            config.clone().into(),
        )
        .into()
    })
}

fn bounded(member: &str, number: i64, least: i64, most: i64) -> Result<()> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    let msg = format!("must be between {least} and {most}");
    Err(fault(member, msg, number.into()))
}

fn fault(member: &str, msg: impl Into<String>, input: Value) -> ApiError {
    Violation::body(&["schedule_config", member], "value_error", msg, input).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn micros(text: &str) -> i64 {
        text.parse::<DateTime<Utc>>().unwrap().timestamp_micros()
    }

    fn schedule(kind: TriggerType, config: Value) -> Result<Schedule> {
        Schedule::read(kind, config.as_object().unwrap())
    }

    #[test]
    fn cron_goes_by_the_clock_of_its_place() {
        let nine = json!({"cron_expression": "0 9 * * 1-5", "timezone": "Europe/Vienna"});
        let nine = schedule(TriggerType::Cron, nine).unwrap();
        // A Friday evening in winter: Monday at nine there is eight of UTC.
        let next = nine.next(micros("2026-11-20T20:00:00Z")).unwrap();
        assert_eq!(next, Some(micros("2026-11-23T08:00:00Z")));
        // In summer it is seven.
        let next = nine.next(micros("2026-07-01T08:00:00Z")).unwrap();
        assert_eq!(next, Some(micros("2026-07-02T07:00:00Z")));
        let every = schedule(TriggerType::Cron, json!({"cron": "*/5 * * * *"})).unwrap();
        let next = every.next(micros("2026-01-01T00:05:00Z")).unwrap();
        assert_eq!(next, Some(micros("2026-01-01T00:10:00Z")));
    }

    #[test]
    fn an_older_name_stands_for_every_way_of_adding() {
        for (sent, names) in [
            (
                "documents_added",
                &["collection.documents.written", "document.created"][..],
            ),
            (
                "objects_added",
                &["object.created", "objects.created.batch"],
            ),
            ("object.created", &["object.created"]),
        ] {
            assert_eq!(event_types(sent).unwrap(), names);
        }
    }

    #[test]
    fn a_metric_is_held_against_any_number() {
        for config in [
            json!({"condition_type": "metric", "metric": "error_rate", "threshold": 0}),
            json!({"condition_type": "metric", "metric": "silhouette_score", "threshold": -0.1, "operator": "lt"}),
            json!({"condition_type": "drift", "threshold": 0.1}),
        ] {
            let read = schedule(TriggerType::Conditional, config.clone());
            assert!(read.is_ok(), "{config}");
        }
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        for (kind, config) in [
            (TriggerType::Cron, json!({"cron": "61 * * * *"})),
            (TriggerType::Cron, json!({"cron": "0 0 30 2 *"})),
            (
                TriggerType::Cron,
                json!({"cron": "0 9 * * *", "timezone": "Middle/Earth"}),
            ),
            (TriggerType::Cron, json!({})),
            (TriggerType::Interval, json!({"interval_seconds": 0})),
            (TriggerType::Interval, json!({"interval_seconds": "often"})),
            (TriggerType::Event, json!({"event_type": "moon.full"})),
            (TriggerType::Event, json!({"event_type": "trigger.fired"})),
            (
                TriggerType::Event,
                json!({"event_type": "object.created", "event_threshold": 0}),
            ),
            (
                TriggerType::Conditional,
                json!({"condition_type": "mood", "threshold": 1, "collection_id": "c"}),
            ),
            (
                TriggerType::Conditional,
                json!({"condition_type": "volume", "threshold": -1, "collection_id": "c"}),
            ),
            (
                TriggerType::Conditional,
                json!({"condition_type": "drift", "threshold": 0.1, "metric": "euclid", "collection_id": "c"}),
            ),
            (
                TriggerType::Conditional,
                json!({"condition_type": "metric", "threshold": 0.1}),
            ),
            (
                TriggerType::Conditional,
                json!({"condition_type": "metric", "threshold": 0.1, "metric": "mood"}),
            ),
            (
                TriggerType::Conditional,
                json!({"condition_type": "volume", "threshold": 0.1, "operator": "lt"}),
            ),
        ] {
            let read = schedule(kind, config.clone()).and_then(|read| read.next(0));
            assert!(read.is_err(), "{config}");
        }
    }
}
