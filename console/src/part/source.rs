//! A text whose lines are numbered, so that what is said of a line is found there.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlTextAreaElement;

/// Lines above the one that is led to.
const ABOVE: usize = 3;

/// Several lines beside their numbers; those that something is wrong with are marked.
#[component]
pub fn Source(
    id: &'static str,
    label: &'static str,
    value: RwSignal<String>,
    /// Lines that something is wrong with, counted from 1.
    marked: Signal<Vec<usize>>,
    hint: &'static str,
    #[prop(default = 18)] rows: u32,
) -> AnyView {
    let about = format!("{id}-hint");
    let many = Memo::new(move |_| value.with(|text| text.split('\n').count()));
    let lines = move || marked.with(|marked| numbers(many.get(), marked));
    let wrong = move || (!marked.with(Vec::is_empty)).then_some("true");
    let follow = move |_| {
        let beside = document().get_element_by_id(&beside(id));
        if let (Some(area), Some(beside)) = (area(id), beside) {
            beside.set_scroll_top(area.scroll_top());
        }
    };
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <div class="source">
                <div class="numbers" id=beside(id) aria-hidden="true" inner_html=lines></div>
                <textarea class="textarea code" id=id rows=rows bind:value=value spellcheck="false" aria-describedby=about.clone()
                    aria-invalid=wrong on:scroll=follow></textarea>
            </div>
            <span class="hint" id=about>{hint}</span>
        </div>
    }
    .into_any()
}

/// The id of the numbers.
fn beside(id: &str) -> String {
    format!("{id}-lines")
}

fn area(id: &str) -> Option<HtmlTextAreaElement> {
    document().get_element_by_id(id)?.dyn_into().ok()
}

/// The numbers as text: a view of each would weigh more than the text.
fn numbers(many: usize, marked: &[usize]) -> String {
    let line = |n: usize| match marked.contains(&n) {
        true => format!("<b>{n}</b>\n"),
        false => format!("{n}\n"),
    };
    (1..=many).map(line).collect()
}

/// Where a line, counted from 1, begins and ends, in the units in which browsers count.
fn span_of(text: &str, line: usize) -> (u32, u32) {
    let long = |line: &str| line.encode_utf16().count();
    let mut all = text.split('\n');
    let before = all.by_ref().take(line.saturating_sub(1));
    let start: usize = before.map(|line| long(line) + 1).sum();
    let end = start + all.next().map_or(0, long);
    let unit = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    (unit(start), unit(end))
}

/// Leads to a line of the text with this id, and marks it.
pub fn to_line(id: &str, line: usize) {
    let Some(area) = area(id) else { return };
    let text = area.value();
    let (start, end) = span_of(&text, line);
    let _ = area.focus();
    let _ = area.set_selection_range(start, end);
    // Browsers bring what is marked into sight only when somebody types.
    let high = f64::from(area.scroll_height()) / text.split('\n').count() as f64;
    area.set_scroll_top((high * line.saturating_sub(ABOVE + 1) as f64) as i32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_as_browsers_count() {
        let text = "a: ü\nb: 😀\n\nc";
        assert_eq!(span_of(text, 1), (0, 4));
        assert_eq!(span_of(text, 2), (5, 10));
        assert_eq!(span_of(text, 3), (11, 11));
        assert_eq!(span_of(text, 4), (12, 13));
        assert_eq!(span_of("", 1), (0, 0));
    }

    #[test]
    fn lines_with_a_fault_are_marked() {
        assert_eq!(numbers(3, &[2]), "1\n<b>2</b>\n3\n");
    }
}
