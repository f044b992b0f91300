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
