//! Texts counted and cut in the tokens of the models that will read them.

use tiktoken_rs::CoreBPE;

/// The tokenizers that budgets are counted in.
pub(crate) const TOKENIZERS: &[&str] = &["cl100k_base", "o200k_base", "p50k_base", "r50k_base"];

/// The tokenizer of that name; its table is loaded once and kept.
pub(crate) fn tokenizer(name: &str) -> Option<&'static CoreBPE> {
    match name {
        "cl100k_base" => Some(tiktoken_rs::cl100k_base_singleton()),
        "o200k_base" => Some(tiktoken_rs::o200k_base_singleton()),
        "p50k_base" => Some(tiktoken_rs::p50k_base_singleton()),
        "r50k_base" => Some(tiktoken_rs::r50k_base_singleton()),
        _ => None,
    }
}

/// Characters that surely make no more than this many tokens.
const CHARS_A_TOKEN: usize = 64;

/// The number of tokens of a text, as far as the limit and one more: a long text is not read to its end.
pub(crate) fn count(bpe: &CoreBPE, text: &str, limit: usize) -> usize {
    let beginning = beginning(text, limit);
    let counted = bpe.count_ordinary(beginning);
    if beginning.len() < text.len() {
        counted.max(limit + 1)
    } else {
        counted
    }
}

/// The text up to so many tokens, cut where no character is.
pub(crate) fn cut(bpe: &CoreBPE, text: &str, limit: usize) -> String {
    let beginning = beginning(text, limit);
    let tokens = bpe.encode_ordinary(beginning);
    if tokens.len() <= limit && beginning.len() == text.len() {
        return text.to_owned();
    }
    let mut kept = tokens.len().min(limit);
    // A token may end inside a character: then one less.
    loop {
        match bpe.decode(&tokens[..kept]) {
            Ok(text) => return text,
            Err(_) if kept > 0 => kept -= 1,
            Err(_) => return String::new(),
        }
    }
}

fn beginning(text: &str, limit: usize) -> &str {
    let most = limit.saturating_add(1).saturating_mul(CHARS_A_TOKEN);
    &text[..text.floor_char_boundary(most.min(text.len()))]
}

/// What gives way where texts have more tokens than they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Only whole texts, from the first on.
    Whole,
    /// The first whole; the one that no longer fits is cut.
    CutLast,
    /// Each is cut by the same share.
    Share,
    /// Each is cut to the same number.
    Each,
}

/// The texts that are kept, and whether each was cut. Separators count.
pub(crate) fn fit(
    bpe: &CoreBPE,
    texts: Vec<String>,
    separator: &str,
    budget: usize,
    how: Fit,
) -> Vec<Option<(String, bool)>> {
    let between = bpe.count_ordinary(separator);
    let sizes: Vec<usize> = texts.iter().map(|t| count(bpe, t, budget)).collect();
    let room = budget.saturating_sub(between * sizes.len().saturating_sub(1));
    let all: usize = sizes.iter().sum();
    if all <= room {
        return texts.into_iter().map(|text| Some((text, false))).collect();
    }
    if matches!(how, Fit::Share | Fit::Each) {
        let share = room as f64 / all as f64;
        let equal = room / sizes.len().max(1);
        let one = |(text, size): (String, usize)| {
            let most = if how == Fit::Each {
                equal
            } else {
                (size as f64 * share) as usize
            };
            let kept = cut(bpe, &text, most);
            (!kept.is_empty()).then(|| (kept.clone(), kept.len() < text.len()))
        };
        return texts.into_iter().zip(sizes).map(one).collect();
    }
    let (mut left, mut open, mut kept) = (budget, true, Vec::new());
    for (text, size) in texts.into_iter().zip(sizes) {
        let before = if kept.is_empty() { 0 } else { between };
        if open && size + before <= left {
            left -= size + before;
            kept.push(Some((text, false)));
            continue;
        }
        let cut_here = open && how == Fit::CutLast && left > before;
        kept.push(cut_here.then(|| (cut(bpe, &text, left - before), true)));
        open = false;
    }
    kept
}
