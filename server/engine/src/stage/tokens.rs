//! Texts counted and cut in the tokens of the models that will read them.

use std::{io, sync::LazyLock};

use rustc_hash::FxHashMap;
use tiktoken_rs::{CoreBPE, O200K_BASE_PAT_STR, Rank};

/// The tokenizers that budgets are counted in.
pub(crate) const TOKENIZERS: &[&str] = &["cl100k_base", "o200k_base", "p50k_base", "r50k_base"];

/// The tokenizer of that name; its table is loaded once and kept.
pub(crate) fn tokenizer(name: &str) -> Option<&'static CoreBPE> {
    match name {
        "cl100k_base" => Some(&CL100K),
        "o200k_base" => Some(&O200K),
        "p50k_base" => Some(&P50K),
        "r50k_base" => Some(&R50K),
        _ => None,
    }
}

/// How texts are cut before they are looked up, as `tiktoken` has it.
const CL100K_PATTERN: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
const P50K_PATTERN: &str =
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";

/// Ranks of `p50k_base` that `r50k_base` has too.
const R50K_RANKS: usize = 50_256;

static CL100K: LazyLock<CoreBPE> = LazyLock::new(|| load("cl100k_base", CL100K_PATTERN));
static O200K: LazyLock<CoreBPE> = LazyLock::new(|| load("o200k_base", O200K_BASE_PAT_STR));
static P50K: LazyLock<CoreBPE> = LazyLock::new(|| load("p50k_base", P50K_PATTERN));
static R50K: LazyLock<CoreBPE> = LazyLock::new(|| load("r50k_base", P50K_PATTERN));

fn load(name: &str, pattern: &str) -> CoreBPE {
    vocabulary(name)
        .ok()
        .and_then(|tokens| CoreBPE::new(tokens, FxHashMap::default(), pattern).ok())
        .expect("vocabularies and patterns are part of the program, and a test reads each")
}

/// Tokens and their ranks: a byte with the length before each token, in the order of ranks.
fn vocabulary(name: &str) -> io::Result<FxHashMap<Vec<u8>, Rank>> {
    let (packed, most): (&[u8], usize) = match name {
        "cl100k_base" => (
            include_bytes!("../../data/vocabularies/cl100k_base.zst"),
            usize::MAX,
        ),
        "o200k_base" => (
            include_bytes!("../../data/vocabularies/o200k_base.zst"),
            usize::MAX,
        ),
        "r50k_base" => (
            include_bytes!("../../data/vocabularies/p50k_base.zst"),
            R50K_RANKS,
        ),
        _ => (
            include_bytes!("../../data/vocabularies/p50k_base.zst"),
            usize::MAX,
        ),
    };
    let bytes = zstd::decode_all(packed)?;
    let (mut tokens, mut rest) = (FxHashMap::default(), bytes.as_slice());
    let mut rank: Rank = 0;
    while let Some((length, after)) = rest.split_first() {
        if rank as usize >= most {
            break;
        }
        let cut = after.split_at_checked(usize::from(*length));
        let (token, after) = cut.ok_or(io::ErrorKind::UnexpectedEof)?;
        if !token.is_empty() {
            tokens.insert(token.to_vec(), rank);
        }
        rest = after;
        rank += 1;
    }
    Ok(tokens)
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

/// Tokens of each text that all of them are cut for: of more texts than that leaves room for, the last ones give way.
const LEAST: usize = 16;

/// The texts that are kept, and whether each was cut. Separators count, and what comes beside each text, in its tokens.
pub(crate) fn fit(
    bpe: &CoreBPE,
    texts: Vec<String>,
    beside: &[usize],
    separator: &str,
    budget: usize,
    how: Fit,
) -> Vec<Option<(String, bool)>> {
    let between = bpe.count_ordinary(separator);
    let sizes: Vec<usize> = texts.iter().map(|t| count(bpe, t, budget)).collect();
    let spaces = between * sizes.len().saturating_sub(1);
    let all: usize = sizes.iter().chain(beside).sum();
    if all + spaces <= budget {
        return texts.into_iter().map(|text| Some((text, false))).collect();
    }
    if matches!(how, Fit::Share | Fit::Each) {
        return shared(bpe, texts, (&sizes, beside, between), budget, how);
    }
    let (mut left, mut open, mut kept) = (budget, true, Vec::new());
    for (place, (text, size)) in texts.into_iter().zip(sizes).enumerate() {
        let space = if kept.is_empty() { 0 } else { between };
        let before = space + beside.get(place).copied().unwrap_or(0);
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

/// As many of the texts as get a share that says something, each cut to it: separators and marks of thousands would leave nothing
/// for any of them.
fn shared(
    bpe: &CoreBPE,
    texts: Vec<String>,
    (sizes, beside, between): (&[usize], &[usize], usize),
    budget: usize,
    how: Fit,
) -> Vec<Option<(String, bool)>> {
    let (mut several, mut least, mut taken) = (0, 0, 0);
    for (place, size) in sizes.iter().enumerate() {
        let space = if place == 0 { 0 } else { between };
        let own = space + beside.get(place).copied().unwrap_or(0);
        if several > 0 && least + taken + own + LEAST.min(*size) > budget {
            break;
        }
        (several, least, taken) = (several + 1, least + LEAST.min(*size), taken + own);
    }
    let left = budget.saturating_sub(taken);
    let all: usize = sizes.iter().take(several).sum();
    let share = (left as f64 / all.max(1) as f64).min(1.0);
    let equal = left / several.max(1);
    let one = |(place, text): (usize, String)| {
        if place >= several {
            return None;
        }
        let most = match how {
            Fit::Each => equal,
            _ => (sizes[place] as f64 * share) as usize,
        };
        let kept = cut(bpe, &text, most);
        let is_cut = kept.len() < text.len();
        (!kept.is_empty()).then_some((kept, is_cut))
    };
    texts.into_iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_more_texts_than_there_are_tokens_the_first_are_kept() {
        let bpe = tokenizer("cl100k_base").unwrap();
        for how in [Fit::Each, Fit::Share] {
            let texts = vec!["a ship sails the sea ".repeat(10); 500];
            let kept = fit(bpe, texts, &[], "\n\n", 100, how);
            let told: Vec<&str> = kept
                .iter()
                .flatten()
                .map(|(text, _)| text.as_str())
                .collect();
            assert!(kept[0].is_some() && kept[499].is_none(), "{how:?}");
            assert!(
                told.len() > 1 && told[0].starts_with("a ship"),
                "{how:?}: {told:?}"
            );
            // Joined, a text may split otherwise: by a token or two.
            let all = bpe.count_ordinary(&told.join("\n\n"));
            assert!((50..=100 + told.len()).contains(&all), "{how:?}: {all}");
            // Those that fit are all there, each with its share.
            let few = fit(
                bpe,
                vec!["a ship sails the sea ".repeat(10); 4],
                &[],
                "\n\n",
                100,
                how,
            );
            assert!(
                few.iter()
                    .all(|one| one.as_ref().is_some_and(|(_, is_cut)| *is_cut)),
                "{how:?}"
            );
        }
    }

    #[test]
    fn tokens_are_those_of_the_published_lists() {
        let text = "Für 12345 Wörter:\r\n\tfn main() { println!(\"日本語 👩‍👩‍👧\"); }   \n\nI'll GO, we've 50% off…";
        for (name, published, count) in [
            ("cl100k_base", tiktoken_rs::cl100k_base_singleton(), 100_256),
            ("o200k_base", tiktoken_rs::o200k_base_singleton(), 199_998),
            ("p50k_base", tiktoken_rs::p50k_base_singleton(), 50_280),
            ("r50k_base", tiktoken_rs::r50k_base_singleton(), 50_256),
        ] {
            let own = tokenizer(name).unwrap();
            assert_eq!(
                own.encode_ordinary(text),
                published.encode_ordinary(text),
                "{name}"
            );
            let tokens = vocabulary(name).unwrap();
            assert_eq!(tokens.len(), count, "{name}");
            for (token, rank) in tokens {
                assert_eq!(
                    published.decode_bytes(&[rank]).unwrap(),
                    token,
                    "{name} {rank}"
                );
            }
        }
    }
}
