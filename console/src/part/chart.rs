//! Bars, for those who see them, with the same numbers as a table for those who do not.

use leptos::prelude::*;

use super::{Column, line, table, words};
use crate::text;

/// How figures are written, and the least that the axis reaches.
#[derive(Clone, Copy)]
pub struct Unit(pub fn(i64) -> String, pub i64);

/// Things that are counted.
const COUNT: Unit = Unit(text::count, 4);

/// Millionths of a dollar; the axis reaches a cent.
pub const MONEY: Unit = Unit(|n| text::dollars(n as f64 / 1e6), 10_000);

/// One bar: what it stands for, and its parts from the ground up.
pub type Bar = (String, Vec<i64>);

const HEIGHT: f64 = 180.0;
const LEFT: f64 = 48.0;
const GROUND: f64 = 156.0;

/// The room that a name takes at least, a day of the year.
const NAMED: f64 = 40.0;

/// The least round number that is not below `n`, whose half is round, too: 1, 2 or 4 with zeros.
fn ceiling(n: i64) -> i64 {
    let mut step = 1;
    loop {
        for round in [step, 2 * step, 4 * step] {
            if round >= n {
                return round;
            }
        }
        step *= 10;
    }
}

fn plain(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

/// The picture, as text: a typed view of so many small elements would weigh more than the page around it.
fn picture(label: &str, names: &[&str], bars: &[Bar], wide: f64, unit: Unit) -> String {
    let most = bars
        .iter()
        .map(|(_, parts)| parts.iter().sum::<i64>())
        .max();
    let top = ceiling(most.unwrap_or(0).max(unit.1));
    let high = |n: i64| (GROUND - 12.0) * n as f64 / top as f64;
    let mut out = opened(label, &summary(names, bars, unit), wide);
    for n in [0, top / 2, top] {
        let y = GROUND - high(n);
        out += &format!(
            r#"<path class="grid" d="M{LEFT} {y}H{wide}"/><text x="{}" y="{}" text-anchor="end">{}</text>"#,
            LEFT - 8.0,
            y + 4.0,
            unit.0(n),
        );
    }
    let room = (wide - LEFT) / bars.len().max(1) as f64;
    let thick = (room * 0.62).min(56.0);
    // Where bars stand close, only some are named, the last one always.
    let every = (NAMED / room).ceil().max(1.0);
    for (at, (name, parts)) in bars.iter().enumerate() {
        let middle = LEFT + room * (at as f64 + 0.5);
        let mut ground = GROUND;
        for (series, n) in parts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let tall = high(*n).max(1.0);
            ground -= tall;
            out += &format!(
                r#"<rect class="s{}" x="{:.1}" y="{ground:.1}" width="{thick:.1}" height="{tall:.1}" rx="2"/>"#,
                series + 1,
                middle - thick / 2.0,
            );
        }
        if (bars.len() - 1 - at).is_multiple_of(every as usize) {
            out += &named(name, middle, room * every);
        }
    }
    out + "</svg>"
}

/// The start of a picture, with what it says for those who do not see it.
fn opened(label: &str, told: &str, wide: f64) -> String {
    format!(
        r#"<svg viewBox="0 0 {wide} {HEIGHT}" role="img" aria-labelledby="chart-title chart-text"><title id="chart-title">{}</title><desc id="chart-text">{}</desc>"#,
        plain(label),
        plain(told),
    )
}

/// A name below its bars. What does not fit there is in the table.
fn named(name: &str, middle: f64, room: f64) -> String {
    let short: String = name.chars().take((room / 7.5) as usize).collect();
    format!(
        r#"<text x="{middle:.1}" y="{}" text-anchor="middle">{}</text>"#,
        HEIGHT - 6.0,
        plain(&short),
    )
}

/// As wide as the window is beside `around`, so that letters keep their size, and at most `most`.
fn wide((around, most): (f64, f64)) -> f64 {
    let window = window().inner_width().ok().and_then(|width| width.as_f64());
    let window = window.unwrap_or(800.0);
    let around = if window < 860.0 { 60.0 } else { around };
    (window - around).clamp(240.0, most)
}

/// The chart in a sentence.
fn summary(names: &[&str], bars: &[Bar], unit: Unit) -> String {
    let totals = names.iter().enumerate().map(|(at, name)| {
        let sum: i64 = bars.iter().filter_map(|(_, parts)| parts.get(at)).sum();
        format!("{} {name}", unit.0(sum))
    });
    format!(
        "{}; in all {}",
        text::counted(bars.len() as i64, "bar", "bars"),
        totals.collect::<Vec<_>>().join(", ")
    )
}

/// Stacked bars with their legend and their table, in the room that is beside the rest of the page, and at most so wide.
pub fn chart(
    label: &'static str,
    names: &'static [&'static str],
    bars: Vec<Bar>,
    room: (f64, f64),
) -> AnyView {
    chart_of(label, names, bars, room, COUNT)
}

/// The same of something else than counts.
pub fn chart_of(
    label: &'static str,
    names: &'static [&'static str],
    bars: Vec<Bar>,
    room: (f64, f64),
    unit: Unit,
) -> AnyView {
    const COLUMNS: [Column; 4] = [
        Column("", ""),
        Column("", "num"),
        Column("", "num"),
        Column("", "num"),
    ];
    let svg = picture(label, names, &bars, wide(room).round(), unit);
    let legend = names.iter().enumerate().map(|(at, name)| {
        view! { <li><span class=format!("key s{}", at + 1)></span>{*name}</li> }.into_any()
    });
    let mut columns = COLUMNS[..=names.len().min(3)].to_vec();
    columns[0].0 = "Of";
    for (column, name) in columns.iter_mut().skip(1).zip(names) {
        column.0 = name;
    }
    let rows = bars.into_iter().map(|(name, parts)| {
        let mut cells = vec![words("", name)];
        let parts = parts.into_iter();
        cells.extend(parts.map(|n| words("num nowrap", unit.0(n))));
        line(cells)
    });
    let rows = table(label, &columns, rows.collect(), Signal::stored(false));
    view! {
        <figure class="chart">
            <ul class="legend">{legend.collect::<Vec<_>>()}</ul>
            <div inner_html=svg></div>
            <details><summary>"As a table"</summary>{rows}</details>
        </figure>
    }
    .into_any()
}

/// How high the bars beside a number are, and how far apart.
const SPARK: (f64, f64) = (18.0, 6.0);

/// A few bars beside the number that they add up to. They say nothing that is not said elsewhere.
pub fn spark(counts: &[i64]) -> AnyView {
    let svg = sparks(counts);
    view! { <span class="spark" aria-hidden="true" inner_html=svg></span> }.into_any()
}

fn sparks(counts: &[i64]) -> String {
    let (high, step) = SPARK;
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let wide = step * counts.len() as f64;
    let mut out = format!(r#"<svg viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">"#);
    for (at, n) in counts.iter().enumerate() {
        // What was nothing keeps its place.
        let tall = (high * *n as f64 / most as f64).max(1.0);
        out += &format!(
            r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{tall:.1}" rx="1"/>"#,
            step * at as f64,
            high - tall,
            step - 2.0,
        );
    }
    out + "</svg>"
}

/// Shares of one, of two things side by side, with their legend and their table.
pub fn versus(
    label: &'static str,
    names: [String; 2],
    rows: Vec<(String, [f64; 2])>,
    room: (f64, f64),
) -> AnyView {
    const COLUMNS: [Column; 4] = [
        Column("Of", ""),
        Column("One", "num"),
        Column("Other", "num"),
        Column("Difference", "num"),
    ];
    let svg = pairs(label, &names, &rows, wide(room).round());
    // As the columns of the table call them.
    let legend = ["One", "Other"].iter().zip(names).enumerate();
    let legend = legend.map(|(at, (which, name))| {
        view! { <li><span class=format!("key s{}", at + 1)></span>{*which}": "{name}</li> }
            .into_any()
    });
    let rows = rows.into_iter().map(|(name, [one, other])| {
        line(vec![
            words("", name),
            words("num", format!("{one:.3}")),
            words("num", format!("{other:.3}")),
            words("num", text::signed(other - one)),
        ])
    });
    let rows = table(label, &COLUMNS, rows.collect(), Signal::stored(false));
    view! {
        <figure class="chart">
            <ul class="legend">{legend.collect::<Vec<_>>()}</ul>
            <div inner_html=svg></div>
            {rows}
        </figure>
    }
    .into_any()
}

fn pairs(label: &str, names: &[String; 2], rows: &[(String, [f64; 2])], wide: f64) -> String {
    let told = rows.iter().map(|(name, [one, other])| {
        format!(
            "{name}: {one:.2} of {}, {other:.2} of {}",
            names[0], names[1]
        )
    });
    let told = told.collect::<Vec<_>>().join("; ");
    let mut out = opened(label, &told, wide);
    let high = |share: f64| (GROUND - 12.0) * share.clamp(0.0, 1.0);
    for share in [0.0, 0.5, 1.0] {
        let y = GROUND - high(share);
        out += &format!(
            r#"<path class="grid" d="M{LEFT} {y}H{wide}"/><text x="{}" y="{}" text-anchor="end">{share}</text>"#,
            LEFT - 8.0,
            y + 4.0,
        );
    }
    let room = (wide - LEFT) / rows.len().max(1) as f64;
    let thick = (room * 0.34).min(40.0);
    for (at, (name, pair)) in rows.iter().enumerate() {
        let middle = LEFT + room * (at as f64 + 0.5);
        for (series, value) in pair.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            let tall = high(*value).max(1.0);
            out += &format!(
                r#"<rect class="s{}" x="{:.1}" y="{:.1}" width="{thick:.1}" height="{tall:.1}" rx="2"/>"#,
                series + 1,
                middle + (thick + 2.0) * (series as f64 - 1.0) + 1.0,
                GROUND - tall,
            );
        }
        out += &named(name, middle, room);
    }
    out + "</svg>"
}

/// How much of a limit is used, as a bar with words; a limit that does not exist has no bar.
pub fn meter(label: String, used: i64, limit: Option<i64>) -> AnyView {
    let (share, words) = match limit {
        Some(limit) => (
            Some(used as f64 / limit.max(1) as f64),
            format!("{} of {}", text::count(used), text::count(limit)),
        ),
        None => (None, format!("{}, no limit", text::count(used))),
    };
    self::share(label, words, share)
}

/// A part of a whole as a bar with words, told apart by colour from four fifths on.
pub fn share(label: String, words: String, part: Option<f64>) -> AnyView {
    let class = match part.unwrap_or(0.0) {
        part if part >= 0.95 => "progress bad",
        part if part >= 0.8 => "progress warn",
        _ => "progress",
    };
    let said = format!("{label}: {words}");
    let bar = part.map(|part| view! { <progress class=class max="1" value=part.min(1.0).to_string() aria-label=said></progress> });
    view! { <li class="meter"><span class="row between"><span>{label}</span><span class="muted num">{words}</span></span>{bar}</li> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_ends_at_a_round_number() {
        assert_eq!([1, 7, 20, 21, 999].map(ceiling), [1, 10, 20, 40, 1000]);
    }

    #[test]
    fn names_are_text_in_the_picture_and_zero_has_no_bar() {
        let bars = [("<b>&\"".to_owned(), vec![3, 0])];
        let svg = picture("Requests", &["search", "other"], &bars, 400.0, COUNT);
        assert!(svg.contains("&lt;b>&amp;&quot;"), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 1);
        assert!(svg.contains("in all 3 search, 0 other"));
        let bars = [("11-20".to_owned(), vec![31_000])];
        let svg = picture("Spending", &["search"], &bars, 400.0, MONEY);
        assert!(svg.contains("in all $0.03 search"), "{svg}");
        assert!(svg.contains(">$0.04<") && svg.contains(">$0.02<"), "{svg}");
    }

    #[test]
    fn bars_that_stand_close_are_not_all_named() {
        let bars = (10..24).map(|day| (format!("11-{day}"), vec![1]));
        let bars = bars.collect::<Vec<Bar>>();
        let near = picture("Requests", &["search"], &bars, 330.0, COUNT);
        assert!(
            near.contains(">11-23<") && near.contains(">11-21<"),
            "{near}"
        );
        assert!(!near.contains(">11-22<"), "{near}");
        let far = picture("Requests", &["search"], &bars, 940.0, COUNT);
        assert!(far.contains(">11-22<") && far.contains(">11-10<"), "{far}");
    }
}
