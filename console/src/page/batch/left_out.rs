//! What of a batch's objects is in no document, and why.

use leptos::prelude::*;

use super::Objects;
use crate::{load::Load, record::Record, text};

/// Reasons of the server, and how they are told.
const REASONS: &[(&str, &str)] = &[
    ("unreadable", "broken"),
    (
        "no_ocr",
        "pictures of text, which nothing here can recognize",
    ),
    (
        "ocr_limit",
        "pictures of text, beyond as many as are read of one file",
    ),
    (
        "min_text_length",
        "with less text than the collection asks for",
    ),
    (
        "max_document_pages",
        "beyond as many as the collection reads of one file",
    ),
    (
        "first_picture_only",
        "after the first, which alone is taken of such a file",
    ),
    (
        "max_video_segments",
        "beyond as many as the collection makes of one file",
    ),
    (
        "attachment_limit",
        "attached files, beyond as many as are read of one mail",
    ),
    (
        "unreadable_attachment",
        "attached files without text to read",
    ),
];

fn reason(name: &str) -> String {
    let known = REASONS.iter().find(|(known, _)| *known == name);
    known.map_or_else(|| text::words(name), |(_, told)| (*told).to_owned())
}

/// `3 pages: broken`, for each reason of a batch, or of what its task has beside.
pub fn sums(one: &Record) -> Vec<String> {
    let kinds = [("pages", "page"), ("segments", "segment")];
    let each = kinds.into_iter().flat_map(|(many, kind)| {
        let reasons = one.record(&format!("{many}_dropped_reasons")).members();
        reasons.into_iter().map(move |(name, count)| {
            let count = count.0.as_i64().unwrap_or(0);
            let counted = text::counted(count, kind, many);
            format!("{counted}: {}", reason(&name))
        })
    });
    each.collect()
}

/// A warning of a job, as the object that it is about and what is said of it.
fn warning(said: &str) -> (String, String) {
    let about = said.strip_prefix("object ");
    let (object, told) = about
        .and_then(|rest| rest.split_once(": "))
        .unwrap_or(("", said));
    let told = told.strip_prefix("left out: ").unwrap_or(told);
    let told = REASONS.iter().fold(told.to_owned(), |told, (name, words)| {
        told.replace(&format!("({name})"), &format!("({words})"))
    });
    (object.to_owned(), told)
}

/// The warnings of all jobs of a batch.
fn warnings(batch: &Record) -> Vec<(String, String)> {
    let tiers = batch.list("tier_tasks").into_iter();
    let jobs = tiers.flat_map(|tier| tier.list("extractor_jobs"));
    let all = jobs.flat_map(|job| job.strings("warnings"));
    all.map(|said| warning(&said)).collect()
}

/// Drawn anew only where it has changed: whoever reads it while the batch goes on is not interrupted.
pub(super) fn left_out(load: Load) -> AnyView {
    let what = Memo::new(move |_| {
        let batch = load.good().unwrap_or_default();
        (sums(&batch), warnings(&batch))
    });
    let Objects(objects) = expect_context();
    (move || {
        let (sums, warnings) = what.get();
        if sums.is_empty() && warnings.is_empty() {
            return None;
        }
        let sums = sums.into_iter().map(|one| view! { <li>{one}</li> }.into_any());
        let each = warnings.into_iter().map(|(id, told)| {
            // A batch over a collection has documents for objects.
            let href = id.starts_with("obj_").then(|| format!("{}/{id}", objects.get()));
            let object = match href {
                Some(href) => view! { <a class="mono" href=href>{id}</a>" " }.into_any(),
                None => view! { <span class="mono">{id}</span>" " }.into_any(),
            };
            view! { <li>{object}{told}</li> }.into_any()
        });
        let each: Vec<_> = each.collect();
        let each = (!each.is_empty()).then(|| view! {
            <details class="more"><summary>"Which objects"</summary><ul class="sub-list">{each}</ul></details>
        });
        Some(view! {
            <section class="notice warn" aria-labelledby="left-out">
                <strong id="left-out">"Left out of the documents"</strong>
                <ul>{sums.collect::<Vec<_>>()}</ul>
                {each}
            </section>
        })
    })
    .into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::{BatchModel, ExtractorJobInfo, TierTaskInfo};

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn what_is_left_out_is_told_in_words() {
        let said = "object obj_1: left out: 2 pages (unreadable), 12 links";
        let job = ExtractorJobInfo {
            warnings: vec![said.into(), "more is in the logs".into()],
            ..Default::default()
        };
        let tier = TierTaskInfo {
            extractor_jobs: vec![job],
            ..Default::default()
        };
        let batch = BatchModel {
            pages_dropped_reasons: [("unreadable".to_owned(), 2), ("new_one".to_owned(), 1)]
                .into_iter()
                .collect(),
            segments_dropped_reasons: [("max_video_segments".to_owned(), 4)].into_iter().collect(),
            tier_tasks: vec![tier],
            ..Default::default()
        };
        let batch = sent(&batch);
        let told = sums(&batch);
        assert_eq!(told[..2], ["2 pages: broken", "1 page: new one"]);
        assert!(told[2].starts_with("4 segments: beyond"), "{told:?}");
        let about = ("obj_1".to_owned(), "2 pages (broken), 12 links".to_owned());
        let rest = (String::new(), "more is in the logs".to_owned());
        assert_eq!(warnings(&batch), [about, rest]);
    }
}
