//! The documents of an execution as points: each group a colour and a shape, its name at its middle.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use crate::{load::navigator, record::Record, route::namespace, text};

const WIDE: f64 = 920.0;
const HIGH: f64 = 420.0;
const EDGE: f64 = 16.0;

/// Groups that are told apart; the others are drawn as the rest is.
const SHOWN: usize = 18;

/// Groups whose names stand in the picture.
const NAMED: usize = 8;

/// A place in the picture of what lies at a place among the documents.
struct Scale {
    left: f64,
    top: f64,
    by: f64,
}

impl Scale {
    fn of(points: &[(f64, f64)]) -> Self {
        let least =
            |of: fn(&(f64, f64)) -> f64| points.iter().map(of).fold(f64::INFINITY, f64::min);
        let most =
            |of: fn(&(f64, f64)) -> f64| points.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        let (left, top) = (least(|p| p.0), least(|p| p.1));
        let wide = (most(|p| p.0) - left).max(1e-9);
        let high = (most(|p| p.1) - top).max(1e-9);
        let by = ((WIDE - 2.0 * EDGE) / wide).min((HIGH - 2.0 * EDGE) / high);
        Self {
            left: left - (WIDE - wide * by) / 2.0 / by,
            top: top - (HIGH - high * by) / 2.0 / by,
            by,
        }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        ((x - self.left) * self.by, (y - self.top) * self.by)
    }
}

fn position(one: &Record) -> Option<(f64, f64)> {
    let all = one.value("position")?.as_array()?;
    Some((all.first()?.as_f64()?, all.get(1)?.as_f64()?))
}

fn plain(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

/// A point as text: circles, then squares, then diamonds, each in six colours.
fn point(rank: Option<usize>, (x, y): (f64, f64), dim: bool, title: &str, at: usize) -> String {
    let series = match rank {
        Some(rank) if rank < SHOWN => format!("s{}", rank % 6 + 1),
        _ => "s0".to_owned(),
    };
    let dim = if dim { " dim" } else { "" };
    let shape = match rank.unwrap_or(0) / 6 {
        1 => format!(r#"<path d="M{:.1} {:.1}h7v7h-7z""#, x - 3.5, y - 3.5),
        2 => format!(r#"<path d="M{x:.1} {:.1}l5 5l-5 5l-5-5z""#, y - 5.0),
        _ => format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="4""#),
    };
    let end = if shape.starts_with("<path") {
        "path"
    } else {
        "circle"
    };
    format!(
        r#"{shape} class="{series}{dim}" data-at="{at}"><title>{}</title></{end}>"#,
        plain(title)
    )
}

/// The picture of `found`, the answer of the API, with the groups in the order of `groups`.
fn drawn(found: &Record, groups: &[Record], open: &str) -> String {
    let points = found.list("points");
    let places: Vec<(f64, f64)> = points.iter().filter_map(position).collect();
    let scale = Scale::of(&places);
    let rank = |id: &str| groups.iter().position(|one| one.text("cluster_id") == id);
    let told = format!(
        "{} in {}",
        text::counted(
            found.int("total_points").unwrap_or(0),
            "document",
            "documents"
        ),
        text::counted(groups.len() as i64, "group", "groups")
    );
    let mut out = format!(
        r#"<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{}">"#,
        plain(&told)
    );
    for (at, one) in points.iter().enumerate() {
        let Some(place) = position(one) else { continue };
        let id = one.text("cluster_id");
        let rank = rank(&id);
        let label = rank.map_or_else(
            || "in no group".to_owned(),
            |rank| groups[rank].first(&["label", "cluster_id"]),
        );
        let title = format!("{label}: {}", one.text("document_id"));
        out += &point(
            rank,
            scale.place(place),
            !open.is_empty() && id != open,
            &title,
            at,
        );
    }
    for one in found.list("centroids") {
        let id = one.text("cluster_id");
        let Some(rank) = rank(&id).filter(|rank| *rank < NAMED) else {
            continue;
        };
        let Some(place) = position(&one) else {
            continue;
        };
        let (x, y) = scale.place(place);
        let side = match x {
            x if x < WIDE * 0.2 => "start",
            x if x > WIDE * 0.8 => "end",
            _ => "middle",
        };
        let label: String = groups[rank]
            .first(&["label", "cluster_id"])
            .chars()
            .take(28)
            .collect();
        out += &format!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{side}">{}</text>"#,
            plain(&label)
        );
    }
    out + "</svg>"
}

/// The picture; a press on a point leads to its document.
pub fn picture(found: &Record, groups: &[Record], open: &str) -> AnyView {
    if found.list("points").is_empty() {
        return view! { <p class="muted">"Nothing is drawn: groups of values have no places."</p> }
            .into_any();
    }
    let svg = drawn(found, groups, open);
    let points = StoredValue::new(found.list("points"));
    let go = navigator();
    let follow = move |event: leptos::ev::MouseEvent| {
        let target = event
            .target()
            .and_then(|target| target.dyn_into::<web_sys::Element>().ok());
        let at = target.and_then(|target| target.get_attribute("data-at"));
        let at = at.and_then(|at| at.parse::<usize>().ok());
        if let Some(one) = at.and_then(|at| points.with_value(|all| all.get(at).cloned())) {
            go(&document_of(&one));
        }
    };
    let shown = points.with_value(Vec::len);
    let total = found.int("total_points").unwrap_or(0);
    let note = (i64::try_from(shown).unwrap_or(0) < total).then(|| {
        format!(
            "{} of {}, evenly chosen. ",
            text::count(shown as i64),
            text::counted(total, "document", "documents")
        )
    });
    view! {
        <figure class="scatter"><div inner_html=svg on:click=follow></div>
            <figcaption class="muted">{note}"By the two directions in which the documents differ most. A press on a point opens its document."</figcaption></figure>
    }
    .into_any()
}

/// The address of a document, below the base.
pub fn document_of(one: &Record) -> String {
    format!(
        "/ns/{}/collections/{}?document={}",
        namespace(),
        text::escape(&one.text("collection_id")),
        text::escape(&one.text("document_id"))
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found() -> (Record, Vec<Record>) {
        let point = |id: &str, x: f64, y: f64| json!({"document_id": id, "collection_id": "c", "cluster_id": "cl_0", "position": [x, y]});
        let found = json!({"total_points": 2, "points": [point("a", -1.0, 0.0), point("b", 3.0, 1.0)],
            "centroids": [{"cluster_id": "cl_0", "position": [1.0, 0.5]}]});
        (
            Record(found),
            vec![Record(
                json!({"cluster_id": "cl_0", "label": "<sea> & sky"}),
            )],
        )
    }

    #[test]
    fn all_points_lie_within_and_keep_their_proportions() {
        let points = [(-1.0, 0.0), (3.0, 1.0), (0.0, 0.2)];
        let scale = Scale::of(&points);
        let places = points.map(|point| scale.place(point));
        assert!(
            places
                .iter()
                .all(|(x, y)| (0.0..=WIDE).contains(x) && (0.0..=HIGH).contains(y)),
            "{places:?}"
        );
        let across = (places[1].0 - places[0].0) / (places[1].1 - places[0].1);
        assert!((across - 4.0).abs() < 1e-9);
        let alone = Scale::of(&[(2.0, 2.0)]);
        assert!(alone.place((2.0, 2.0)).0.is_finite());
    }

    #[test]
    fn names_are_text_and_other_groups_step_back() {
        let (found, groups) = found();
        let svg = drawn(&found, &groups, "");
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(
            svg.contains("&lt;sea> &amp; sky") && !svg.contains("dim"),
            "{svg}"
        );
        assert_eq!(drawn(&found, &groups, "cl_9").matches(" dim").count(), 2);
    }
}
