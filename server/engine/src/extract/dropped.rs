//! What of an object is in none of its documents, counted by reason: the batch tells of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A page that its reader cannot make out.
pub const UNREADABLE: &str = "unreadable";
/// A page that is a picture, where nothing reads writing.
pub const NO_OCR: &str = "no_ocr";
/// A page that is a picture, after as many as are read of one file.
pub const OCR_LIMIT: &str = "ocr_limit";
/// A page with fewer characters than the parameter of that name.
pub const MIN_TEXT_LENGTH: &str = "min_text_length";
/// A page beyond the parameter of that name.
pub const MAX_DOCUMENT_PAGES: &str = "max_document_pages";
/// A page of a scan, or a frame of a picture that moves, after the first one of its file.
pub const FIRST_PICTURE_ONLY: &str = "first_picture_only";
/// A segment beyond the parameter of that name.
pub const MAX_VIDEO_SEGMENTS: &str = "max_video_segments";
/// A mail of a mailbox, after as many as are read of one.
pub const MAIL_LIMIT: &str = "mail_limit";
/// A file attached to a mail, after as many as are read of one mail.
pub const ATTACHMENT_LIMIT: &str = "attachment_limit";
/// A file attached to a mail of which no text can be read.
pub const UNREADABLE_ATTACHMENT: &str = "unreadable_attachment";
/// Segments of a film that have no picture, such as those in front of its first key picture.
pub const UNSEEN: &str = "pictures of segments";
/// Addresses of a site after as many pages as are asked for, or as can be read in time.
pub const UNVISITED: &str = "addresses of the site";

type Counts = BTreeMap<String, i64>;

/// What is left out. Only what is counted has an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dropped {
    pub pages: Counts,
    pub segments: Counts,
    /// What is neither, by its name: `thumbnails`, `links`.
    pub others: Counts,
}

impl Dropped {
    pub fn add_pages(&mut self, reason: &str, count: usize) {
        add(&mut self.pages, reason, count);
    }

    pub fn add_segments(&mut self, reason: &str, count: usize) {
        add(&mut self.segments, reason, count);
    }

    pub fn add_others(&mut self, name: &str, count: usize) {
        add(&mut self.others, name, count);
    }

    /// With what another left out.
    pub fn add(&mut self, other: &Self) {
        for (mine, its) in [
            (&mut self.pages, &other.pages),
            (&mut self.segments, &other.segments),
            (&mut self.others, &other.others),
        ] {
            for (reason, count) in its {
                *mine.entry(reason.clone()).or_default() += count;
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.segments.is_empty() && self.others.is_empty()
    }

    /// For people, such as `left out: 3 pages (unreadable), 12 links`.
    pub fn told(&self) -> String {
        let counted = |what: &'static str, counts: &Counts| -> Vec<String> {
            let one = |(reason, count): (&String, &i64)| format!("{count} {what} ({reason})");
            counts.iter().map(one).collect()
        };
        let mut told = counted("pages", &self.pages);
        told.extend(counted("segments", &self.segments));
        let others = self.others.iter();
        told.extend(others.map(|(name, count)| format!("{count} {name}")));
        format!("left out: {}", told.join(", "))
    }
}

fn add(counts: &mut Counts, reason: &str, count: usize) {
    if count > 0 {
        *counts.entry(reason.to_owned()).or_default() += i64::try_from(count).unwrap_or(i64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_by_reason() {
        let mut dropped = Dropped::default();
        dropped.add_pages(UNREADABLE, 0);
        assert!(dropped.is_empty(), "nothing is no entry: {dropped:?}");
        dropped.add_pages(UNREADABLE, 2);
        let mut more = Dropped::default();
        more.add_pages(UNREADABLE, 1);
        more.add_segments(MAX_VIDEO_SEGMENTS, 4);
        more.add_others("links", 12);
        dropped.add(&more);
        assert_eq!(
            dropped.told(),
            "left out: 3 pages (unreadable), 4 segments (max_video_segments), 12 links"
        );
    }
}
