//! Texts to chunks, by every strategy of `split_by`.

use std::ops::Range;

use loupe_wire::TextSplitStrategy;
use text_splitter::{ChunkConfig, MarkdownSplitter, TextSplitter};
use unicode_segmentation::UnicodeSegmentation;

use super::{ExtractError, Result};

/// A piece of a text, with where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub text: String,
    /// In characters of the whole text, pages joined.
    pub start: usize,
    pub end: usize,
    /// Counted from 1; of a text with pages.
    pub page: Option<usize>,
}

/// How a text is cut. `size` and `overlap` count what `by` names; characters for Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    pub by: TextSplitStrategy,
    pub size: usize,
    /// Less than `size`.
    pub overlap: usize,
}

/// What a text may become: with an overlap that is almost the size, each word begins a chunk of thousands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub chunks: usize,
    /// Of all chunks together.
    pub bytes: usize,
}

impl Limit {
    /// The chunks, as long as there are not too many. A single one is never too long.
    fn keep(self, chunks: impl Iterator<Item = Chunk>) -> Result<Vec<Chunk>> {
        let (mut kept, mut bytes) = (Vec::new(), 0);
        for chunk in chunks {
            bytes += chunk.text.len();
            if kept.len() == self.chunks || (bytes > self.bytes && !kept.is_empty()) {
                return Err(self.passed());
            }
            kept.push(chunk);
        }
        Ok(kept)
    }

    /// Whether a text of so many characters may pass it: the cutter takes long for each chunk, so it is asked before.
    fn may_be_passed(self, characters: usize, how: Split) -> bool {
        let step = how.size.saturating_sub(how.overlap).max(1);
        let chunks = characters.saturating_sub(how.size) / step + 1;
        chunks > self.chunks || (chunks > 1 && chunks.saturating_mul(how.size) > self.bytes)
    }

    pub fn passed(self) -> ExtractError {
        let (chunks, mebibytes) = (self.chunks, self.bytes >> 20);
        ExtractError::resource(format!(
            "there are more than {chunks} chunks, or more than {mebibytes} MiB of them: ask for larger ones, or for less \
             of each in the next"
        ))
    }
}

/// Pages of a PDF, or the one page of anything else, to chunks. Chunks of blanks are left out.
///
/// # Errors
/// There are more than the limit lets there be.
pub fn split(pages: &[String], how: Split, limit: Limit) -> Result<Vec<Chunk>> {
    if how.by == TextSplitStrategy::Pages {
        return limit.keep(by_pages(pages, how));
    }
    let (whole, starts) = join(pages);
    let counts_characters = matches!(
        how.by,
        TextSplitStrategy::Characters | TextSplitStrategy::Markdown
    );
    if counts_characters && limit.may_be_passed(whole.chars().count(), how) {
        return Err(limit.passed());
    }
    let ranges = match how.by {
        TextSplitStrategy::Characters => by_characters(&whole, how),
        TextSplitStrategy::Markdown => by_markdown(&whole, how),
        TextSplitStrategy::Words => windows(&words(&whole), how),
        TextSplitStrategy::Sentences => windows(&sentences(&whole), how),
        TextSplitStrategy::Paragraphs => windows(&paragraphs(&whole), how),
        // Time segments are refused with the parameters; there is nothing to time in a text.
        TextSplitStrategy::None | TextSplitStrategy::TimeSegments | TextSplitStrategy::Pages => {
            std::iter::once(0..whole.len()).collect()
        }
    };
    let mut counter = Counter::new(&whole);
    limit.keep(ranges.into_iter().filter_map(|range| {
        let range = trim(&whole, range)?;
        let page = (pages.len() > 1).then(|| starts.partition_point(|start| *start <= range.start));
        let start = counter.characters(range.start);
        let text = whole[range].to_owned();
        Some(Chunk {
            start,
            end: start + text.chars().count(),
            page,
            text,
        })
    }))
}

/// Byte offsets to character offsets, in one pass for rising offsets.
struct Counter<'a> {
    text: &'a str,
    byte: usize,
    characters: usize,
}

impl<'a> Counter<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            byte: 0,
            characters: 0,
        }
    }

    fn characters(&mut self, byte: usize) -> usize {
        if byte < self.byte {
            (self.byte, self.characters) = (0, 0);
        }
        self.characters += self.text[self.byte..byte].chars().count();
        self.byte = byte;
        self.characters
    }
}

const PAGE_BREAK: &str = "\n\n";

/// The pages as one text, and the byte at which each begins.
fn join(pages: &[String]) -> (String, Vec<usize>) {
    let mut whole =
        String::with_capacity(pages.iter().map(|page| page.len() + PAGE_BREAK.len()).sum());
    let mut starts = Vec::with_capacity(pages.len());
    for (index, page) in pages.iter().enumerate() {
        if index > 0 {
            whole.push_str(PAGE_BREAK);
        }
        starts.push(whole.len());
        whole.push_str(page);
    }
    (whole, starts)
}

fn by_pages(pages: &[String], how: Split) -> impl Iterator<Item = Chunk> {
    let mut starts = Vec::with_capacity(pages.len());
    let mut at = 0;
    for page in pages {
        starts.push(at);
        at += page.chars().count() + PAGE_BREAK.len();
    }
    steps(pages.len(), how)
        .into_iter()
        .filter_map(move |window| {
            let (first, start) = (window.start, starts[window.start]);
            let joined = pages[window].join(PAGE_BREAK);
            let text = joined.trim();
            if text.is_empty() {
                return None;
            }
            let start = start
                + joined[..joined.len() - joined.trim_start().len()]
                    .chars()
                    .count();
            Some(Chunk {
                start,
                end: start + text.chars().count(),
                page: Some(first + 1),
                text: text.to_owned(),
            })
        })
}

/// Windows of `size` units, each beginning `size - overlap` after the one before; the last one ends the text.
fn steps(units: usize, how: Split) -> Vec<Range<usize>> {
    let step = how.size.saturating_sub(how.overlap).max(1);
    let mut windows = Vec::new();
    let mut start = 0;
    while start < units {
        let end = (start + how.size.max(1)).min(units);
        windows.push(start..end);
        if end == units {
            break;
        }
        start += step;
    }
    windows
}

fn windows(units: &[Range<usize>], how: Split) -> Vec<Range<usize>> {
    steps(units.len(), how)
        .into_iter()
        .map(|window| units[window.start].start..units[window.end - 1].end)
        .collect()
}

fn by_characters(text: &str, how: Split) -> Vec<Range<usize>> {
    let config = ChunkConfig::new(how.size.max(1)).with_trim(false);
    let Ok(config) = config.with_overlap(how.overlap) else {
        return std::iter::once(0..text.len()).collect();
    };
    TextSplitter::new(config)
        .chunk_indices(text)
        .map(|(at, chunk)| at..at + chunk.len())
        .collect()
}

fn by_markdown(text: &str, how: Split) -> Vec<Range<usize>> {
    let config = ChunkConfig::new(how.size.max(1)).with_trim(false);
    let Ok(config) = config.with_overlap(how.overlap) else {
        return std::iter::once(0..text.len()).collect();
    };
    MarkdownSplitter::new(config)
        .chunk_indices(text)
        .map(|(at, chunk)| at..at + chunk.len())
        .collect()
}

/// Words with the punctuation that clings to them. Scripts without blanks are cut at word boundaries.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut glue = false;
    for (at, segment) in text.split_word_bound_indices() {
        let range = at..at + segment.len();
        if segment.chars().all(char::is_whitespace) {
            glue = false;
        } else if segment.chars().any(char::is_alphanumeric) {
            match words.last_mut() {
                // "(" or "$" went before: the word belongs to it.
                Some(last) if glue && last.end == range.start => last.end = range.end,
                _ => words.push(range),
            }
            glue = false;
        } else {
            match words.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => {
                    words.push(range);
                    glue = true;
                }
            }
        }
    }
    words
}

fn sentences(text: &str) -> Vec<Range<usize>> {
    text.split_sentence_bound_indices()
        .filter_map(|(at, sentence)| trim(text, at..at + sentence.len()))
        .collect()
}

/// Runs of lines between empty lines.
fn paragraphs(text: &str) -> Vec<Range<usize>> {
    let mut paragraphs = Vec::new();
    let mut open: Option<Range<usize>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        if line.trim().is_empty() {
            paragraphs.extend(open.take());
        } else {
            open = Some(open.map_or(range.start, |paragraph| paragraph.start)..range.end);
        }
    }
    paragraphs.extend(open);
    paragraphs
}

/// The range without blanks at its ends; `None` when nothing is left.
fn trim(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let piece = &text[range.clone()];
    let start = range.start + (piece.len() - piece.trim_start().len());
    let trimmed = piece.trim();
    (!trimmed.is_empty()).then(|| start..start + trimmed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit {
        chunks: 1_000,
        bytes: 1 << 20,
    };

    fn split(pages: &[String], how: Split) -> Vec<Chunk> {
        super::split(pages, how, LIMIT).unwrap()
    }

    #[test]
    fn too_many_chunks_are_refused_before_they_are_made() {
        // Every word would begin a chunk of 5000 others: 12 GB. Cutting by characters takes long, it gets a shorter text.
        for (by, words) in [
            (TextSplitStrategy::Words, 400_000),
            (TextSplitStrategy::Characters, 1_500),
        ] {
            let text = ["abcde ".repeat(words)];
            let how = Split {
                by,
                size: 5_001,
                overlap: 5_000,
            };
            let refused = super::split(&text, how, LIMIT).unwrap_err();
            assert!(refused.message.contains("1000 chunks"), "{refused}");
        }
        let whole = Split {
            by: TextSplitStrategy::None,
            size: 1,
            overlap: 0,
        };
        let text = "abcde ".repeat(400_000);
        assert_eq!(split(&[text], whole).len(), 1, "one is never too long");
    }

    fn cut(text: &str, by: TextSplitStrategy, size: usize, overlap: usize) -> Vec<String> {
        split(&[text.to_owned()], Split { by, size, overlap })
            .into_iter()
            .map(|chunk| chunk.text)
            .collect()
    }

    #[test]
    fn words_overlap_and_keep_their_punctuation() {
        let chunks = cut(
            "One, two (three) four. Five",
            TextSplitStrategy::Words,
            3,
            1,
        );
        assert_eq!(chunks, ["One, two (three)", "(three) four. Five"]);
    }

    #[test]
    fn words_of_scripts_without_blanks() {
        let chunks = cut("我们喜欢搜索引擎", TextSplitStrategy::Words, 2, 0);
        assert!(chunks.len() > 1, "{chunks:?}");
        assert_eq!(chunks.concat(), "我们喜欢搜索引擎");
    }

    #[test]
    fn sentences_by_twos_with_one_shared() {
        let chunks = cut(
            "Ä is first. B is second! Is C third? D ends.",
            TextSplitStrategy::Sentences,
            2,
            1,
        );
        assert_eq!(
            chunks,
            [
                "Ä is first. B is second!",
                "B is second! Is C third?",
                "Is C third? D ends."
            ]
        );
    }

    #[test]
    fn paragraphs_end_at_empty_lines() {
        let chunks = cut("a\nb\n\n \nc\n\n\nd", TextSplitStrategy::Paragraphs, 1, 0);
        assert_eq!(chunks, ["a\nb", "c", "d"]);
    }

    #[test]
    fn characters_never_exceed_the_size_and_cut_no_character() {
        let text = "Grüße aus Köln 🌍🌍🌍 und noch viel mehr Text, der nicht in ein Stück passt. "
            .repeat(20);
        let chunks = split(
            std::slice::from_ref(&text),
            Split {
                by: TextSplitStrategy::Characters,
                size: 50,
                overlap: 10,
            },
        );
        assert!(chunks.len() > 20);
        let characters: Vec<char> = text.chars().collect();
        for chunk in &chunks {
            assert!(chunk.text.chars().count() <= 50);
            let at: String = characters[chunk.start..chunk.end].iter().collect();
            assert_eq!(at, chunk.text, "the offsets are those of the text");
        }
        assert!(
            chunks.windows(2).any(|pair| pair[1].start < pair[0].end),
            "some neighbours overlap"
        );
    }

    #[test]
    fn a_size_of_one_character_cuts_between_characters() {
        assert_eq!(
            cut("äöü", TextSplitStrategy::Characters, 1, 0),
            ["ä", "ö", "ü"]
        );
    }

    #[test]
    fn markdown_keeps_a_section_together() {
        let chunks = cut(
            "# One\n\nfirst text\n\n# Two\n\nsecond text\n",
            TextSplitStrategy::Markdown,
            22,
            0,
        );
        assert_eq!(chunks, ["# One\n\nfirst text", "# Two\n\nsecond text"]);
    }

    #[test]
    fn pages_keep_their_numbers_and_empty_ones_are_left_out() {
        let pages = ["one".to_owned(), "  ".to_owned(), "three".to_owned()];
        let chunks = split(
            &pages,
            Split {
                by: TextSplitStrategy::Pages,
                size: 1,
                overlap: 0,
            },
        );
        let seen: Vec<_> = chunks
            .iter()
            .map(|chunk| (chunk.page, chunk.text.as_str()))
            .collect();
        assert_eq!(seen, [(Some(1), "one"), (Some(3), "three")]);
    }

    #[test]
    fn a_chunk_of_a_paged_text_knows_the_page_it_begins_on() {
        let pages = ["First page. It ends.".to_owned(), "Second page.".to_owned()];
        let chunks = split(
            &pages,
            Split {
                by: TextSplitStrategy::Sentences,
                size: 1,
                overlap: 0,
            },
        );
        assert_eq!(
            chunks.iter().map(|chunk| chunk.page).collect::<Vec<_>>(),
            [Some(1), Some(1), Some(2)]
        );
    }

    #[test]
    fn none_gives_one_trimmed_chunk_and_blanks_none() {
        assert_eq!(
            cut("  all of it \n", TextSplitStrategy::None, 1, 0),
            ["all of it"]
        );
        assert!(cut(" \n\t", TextSplitStrategy::None, 1, 0).is_empty());
    }
}
