//! Values of documents as a reader wants them.

use chrono::{DateTime, Utc};
use leptos::prelude::*;
use loupe_wire::{DisplayConfig, FieldFormatOptions, FieldFormatType as Format, Object, Value};

use super::dates;
use super::look::{Ratio, fit, get, label};
use super::media::clock;
use super::text::{Marks, domain, safe_url, truncate};

const MOST_ITEMS: usize = 12;
const MOST_MEMBERS: usize = 24;

/// Seconds of the longest recording: a month.
const LONGEST_RECORDING: f64 = 2_678_400.0;

/// The text with the words of the query marked.
pub fn marked(text: &str, marks: &Marks) -> AnyView {
    marks
        .runs(text)
        .into_iter()
        .map(|run| {
            if run.marked {
                view! { <mark>{run.text}</mark> }.into_any()
            } else {
                run.text.into_any()
            }
        })
        .collect_view()
        .into_any()
}

/// How the fields of one view are drawn.
pub struct Drawing<'a> {
    pub display: &'a DisplayConfig,
    pub marks: &'a Marks,
    pub now: DateTime<Utc>,
    /// On a card: long texts are cut.
    pub brief: bool,
}

/// A field's value, drawn by its format. None when there is nothing to see.
pub fn field(drawing: &Drawing<'_>, name: &str, value: Option<&Value>) -> Option<AnyView> {
    let value = value.filter(|value| !is_empty(value))?;
    let config = drawing.display.field_config.get(name);
    let mut options = config
        .and_then(|config| config.format_options.clone())
        .unwrap_or_default();
    if config.is_none() {
        // Nobody said that it matters how long ago it was: the day is told.
        let day = if drawing.brief { "short" } else { "" };
        day.clone_into(&mut options.date_format);
    }
    let format = config.map_or_else(|| guess(value), |config| config.format);
    if let Some(told) = by_name(drawing, name, (format, &options), value) {
        return Some(told.into_any());
    }
    Some(draw(drawing, format, value, &options))
}

/// Seconds of a recording and pages of a document as they are read, `1:02:05` and `p. 12`: numbers that the name of their field
/// tells to be one, and that the owner has not shaped.
fn by_name(
    drawing: &Drawing<'_>,
    name: &str,
    (format, options): (Format, &FieldFormatOptions),
    value: &Value,
) -> Option<String> {
    let is_bare =
        options.prefix.is_none() && options.suffix.is_none() && options.decimals.is_none();
    let number = value.as_f64().filter(|number| *number >= 0.0);
    let number = number.filter(|_| is_bare && format == Format::Number)?;
    match name.rsplit('.').next().unwrap_or(name) {
        // More is a moment since 1970.
        "start_time" | "end_time" | "duration" | "duration_seconds" | "length_seconds"
            if number < LONGEST_RECORDING =>
        {
            Some(clock(number))
        }
        "page_number" if drawing.brief => Some(format!("p. {value}")),
        _ => None,
    }
}

/// The same among facts, which each have a name: there it is said where a field that the owner configured is empty, unless
/// `show_empty` is off.
pub fn fact(drawing: &Drawing<'_>, name: &str, value: Option<&Value>) -> Option<AnyView> {
    field(drawing, name, value).or_else(|| {
        says_empty(drawing.display, name)
            .then(|| view! { <span class="none">"Not given"</span> }.into_any())
    })
}

fn says_empty(display: &DisplayConfig, name: &str) -> bool {
    let is_shown = |options: &FieldFormatOptions| options.show_empty;
    let config = display.field_config.get(name);
    config.is_some_and(|config| config.format_options.as_ref().is_none_or(is_shown))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Some fields in one line, each named for those who do not see where it stands.
pub fn line(
    drawing: &Drawing<'_>,
    class: &'static str,
    names: &[String],
    fields: &Object,
) -> Option<AnyView> {
    let cells: Vec<_> = names
        .iter()
        .filter_map(|name| Some((name, field(drawing, name, get(fields, name))?)))
        .map(|(name, value)| view! { <div><dt>{label(drawing.display, name)}</dt><dd>{value}</dd></div> })
        .collect();
    (!cells.is_empty()).then(|| view! { <dl class=class>{cells}</dl> }.into_any())
}

fn guess(value: &Value) -> Format {
    match value {
        Value::Number(_) => Format::Number,
        Value::Bool(_) => Format::Boolean,
        Value::Array(_) => Format::Array,
        Value::Object(_) => Format::Object,
        Value::String(text) if dates::is_date(text) => Format::Date,
        Value::String(text) if text.starts_with("https://") || text.starts_with("http://") => {
            Format::Url
        }
        _ => Format::Text,
    }
}

fn draw(
    drawing: &Drawing<'_>,
    format: Format,
    value: &Value,
    options: &FieldFormatOptions,
) -> AnyView {
    match format {
        Format::Number => number(value, options).into_any(),
        Format::Date => date(drawing, value, options),
        Format::Boolean => boolean(value, options).into_any(),
        Format::Url => link(value, options),
        Format::Image => image(value, options),
        Format::Array => array(value, options),
        Format::Object => object(value),
        Format::Text => {
            let most = options
                .truncate_chars
                .and_then(|most| usize::try_from(most).ok());
            let text = format!(
                "{}{}{}",
                affix(&options.prefix),
                plain(value),
                affix(&options.suffix)
            );
            let text = match most.or(drawing.brief.then_some(140)) {
                Some(most) => truncate(&text, most),
                None => text,
            };
            marked(&text, drawing.marks)
        }
    }
}

fn affix(affix: &Option<String>) -> &str {
    affix.as_deref().unwrap_or_default()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items
            .iter()
            .take(MOST_ITEMS)
            .map(plain)
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}

/// Digits in groups of three, decimals as asked or as few as needed.
fn number(value: &Value, options: &FieldFormatOptions) -> String {
    let parsed = value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok())
        .filter(|number| number.is_finite());
    let Some(number) = parsed else {
        return plain(value);
    };
    let digits = match options
        .decimals
        .and_then(|decimals| usize::try_from(decimals).ok())
    {
        Some(decimals) => format!("{number:.*}", decimals.min(12)),
        None if number.fract() == 0.0 => format!("{number:.0}"),
        None => format!("{number:.3}").trim_end_matches('0').to_owned(),
    };
    // Four digits are as often a year; an amount shows itself by its unit or its decimals.
    let bare = options.prefix.is_none() && options.suffix.is_none() && options.decimals.is_none();
    let shown = if bare && number.abs() < 10_000.0 {
        digits.replace('-', "−")
    } else {
        grouped(&digits)
    };
    format!(
        "{}{}{}",
        affix(&options.prefix),
        shown,
        affix(&options.suffix)
    )
}

/// `1234567.5` as `1,234,567.5`.
pub fn grouped(digits: &str) -> String {
    let (sign, rest) = digits
        .strip_prefix('-')
        .map_or(("", digits), |rest| ("−", rest));
    let (whole, fraction) = rest
        .split_once('.')
        .map_or((rest, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction.filter(|fraction| !fraction.is_empty()) {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

fn date(drawing: &Drawing<'_>, value: &Value, options: &FieldFormatOptions) -> AnyView {
    let Some(moment) = dates::moment(value) else {
        return plain(value).into_any();
    };
    let shown = dates::shown(moment, &options.date_format, drawing.now);
    let machine = moment.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    view! { <time datetime=machine title=dates::long(moment)>{shown}</time> }.into_any()
}

fn boolean(value: &Value, options: &FieldFormatOptions) -> String {
    let truth = value
        .as_bool()
        .unwrap_or_else(|| matches!(value.as_str(), Some("true" | "yes" | "1")));
    if truth {
        options.true_label.clone()
    } else {
        options.false_label.clone()
    }
}

fn link(value: &Value, options: &FieldFormatOptions) -> AnyView {
    let text = plain(value);
    let Some(address) = safe_url(&text) else {
        return text.into_any();
    };
    let shown = if options.show_domain {
        domain(&address).unwrap_or(text)
    } else {
        truncate(&text, 60)
    };
    let target = options.open_in_new_tab.then_some("_blank");
    view! { <a href=address target=target rel="noopener noreferrer nofollow">{shown}</a> }
        .into_any()
}

fn image(value: &Value, options: &FieldFormatOptions) -> AnyView {
    let text = plain(value);
    let Some(address) = safe_url(&text) else {
        return text.into_any();
    };
    let size = |size: Option<i64>| {
        size.and_then(|size| u32::try_from(size).ok())
            .map(|size| size.min(4000))
    };
    let (width, height) = match (size(options.width), size(options.height)) {
        (Some(width), Some(height)) => (width, height),
        (width, height) => {
            let Ratio(w, h) = options
                .aspect_ratio
                .as_deref()
                .and_then(Ratio::parse)
                .unwrap_or(Ratio(4, 3));
            match (width, height) {
                (None, Some(height)) => (height.saturating_mul(w) / h, height),
                (width, _) => {
                    let width = width.unwrap_or(240);
                    (width, width.saturating_mul(h) / w)
                }
            }
        }
    };
    let loading = if options.lazy_load { "lazy" } else { "eager" };
    let class = format!("inline-image fit-{}", fit(&options.object_fit));
    view! { <img class=class src=address alt="" width=width.to_string() height=height.to_string() loading=loading decoding="async"/> }
        .into_any()
}

fn array(value: &Value, options: &FieldFormatOptions) -> AnyView {
    let Some(items) = value.as_array() else {
        return plain(value).into_any();
    };
    let most = options
        .max_items
        .and_then(|most| usize::try_from(most).ok())
        .unwrap_or(MOST_ITEMS);
    let rest = items.len().saturating_sub(most);
    let more = (rest > 0).then(|| format!("{rest} more"));
    // The usual separator means nothing special was asked: short words then read best as tags.
    let tags =
        options.separator == ", " && items.iter().all(|item| plain(item).chars().count() <= 32);
    if tags {
        let items = items
            .iter()
            .take(most)
            .map(|item| view! { <li>{plain(item)}</li> })
            .collect_view();
        return view! { <ul class="tags">{items}{more.map(|more| view! { <li class="more">{more}</li> })}</ul> }.into_any();
    }
    let mut text = items
        .iter()
        .take(most)
        .map(plain)
        .collect::<Vec<_>>()
        .join(&options.separator);
    if let Some(more) = more {
        text.push_str(&options.separator);
        text.push_str(&more);
    }
    text.into_any()
}

fn object(value: &Value) -> AnyView {
    let Some(members) = value.as_object() else {
        return plain(value).into_any();
    };
    let rows = members.iter().take(MOST_MEMBERS)
        .map(|(name, value)| view! { <div><dt>{name.clone()}</dt><dd>{truncate(&plain(value), 300)}</dd></div> })
        .collect_view();
    view! { <dl class="members">{rows}</dl> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_configured_field_says_that_it_is_empty() {
        let display: DisplayConfig = serde_json::from_value(json!({
            "title": "Books", "inputs": [], "exposed_fields": ["title"],
            "field_config": {
                "usual": {"format": "text"},
                "labelled": {"format": "text", "format_options": {"label": "Named"}},
                "quiet": {"format": "text", "format_options": {"show_empty": false}},
            },
        }))
        .unwrap();
        let names = ["usual", "labelled", "quiet", "other"];
        let said = names.map(|name| says_empty(&display, name));
        assert_eq!(said, [true, true, false, false]);
        for nothing in [json!(null), json!(" "), json!([]), json!({})] {
            assert!(is_empty(&nothing), "{nothing}");
        }
        for something in [json!(0), json!(false), json!("-")] {
            assert!(!is_empty(&something), "{something}");
        }
    }

    #[test]
    fn numbers_read_well() {
        let options = FieldFormatOptions {
            prefix: Some("€ ".into()),
            decimals: Some(2),
            ..Default::default()
        };
        assert_eq!(number(&json!(1234567.5), &options), "€ 1,234,567.50");
        assert_eq!(number(&json!(-12000), &Default::default()), "−12,000");
        assert_eq!(
            number(&json!(1904), &Default::default()),
            "1904",
            "a year is no amount"
        );
        assert_eq!(number(&json!("abc"), &Default::default()), "abc");
    }
}
