//! What a cluster is about: the words that its members use and others do not (TF-IDF over clusters as documents).

use std::collections::{HashMap, HashSet};

use unicode_segmentation::UnicodeSegmentation as _;

/// Characters of each text that are read.
const READ: usize = 2_000;
/// Texts of each cluster that are read, the nearest to its middle first.
const TEXTS: usize = 200;

/// The most telling words of each cluster, best first. `texts` are those of its members, nearest first.
pub fn keywords(texts: &[Vec<&str>], most: usize) -> Vec<Vec<String>> {
    let counted: Vec<HashMap<String, usize>> = texts.iter().map(|texts| count(texts)).collect();
    // In how many clusters a word is used.
    let mut spread: HashMap<&str, usize> = HashMap::new();
    for words in &counted {
        for word in words.keys() {
            *spread.entry(word).or_default() += 1;
        }
    }
    let clusters = counted.len().max(1) as f64;
    let telling = |(words, texts): (&HashMap<String, usize>, &Vec<&str>)| {
        let read = texts.len().clamp(1, TEXTS) as f64;
        let mut ranked: Vec<(f64, &String)> = words
            .iter()
            .map(|(word, members)| {
                // Of one member alone it tells of the member, unless the cluster is no larger.
                let share = *members as f64 / read;
                let rare = (1.0 + clusters / spread[word.as_str()] as f64).ln();
                (share * rare, word)
            })
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        ranked
            .into_iter()
            .take(most)
            .map(|(_, word)| word.clone())
            .collect()
    };
    counted.iter().zip(texts).map(telling).collect()
}

/// How many of the texts use each word.
fn count(texts: &[&str]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for text in texts.iter().take(TEXTS) {
        let text: String = text.chars().take(READ).collect();
        let words: HashSet<String> = text
            .unicode_words()
            .map(str::to_lowercase)
            .filter(|word| tells(word))
            .collect();
        for word in words {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

/// Numbers and the little words tell nothing.
fn tells(word: &str) -> bool {
    word.chars().count() > 2
        && word.chars().any(char::is_alphabetic)
        && !word.chars().any(|c| c.is_ascii_digit())
        && !COMMON.contains(&word)
}

/// Words that every English text uses; of other languages the spread over the clusters takes care.
const COMMON: [&str; 66] = [
    "the", "and", "for", "are", "but", "not", "you", "all", "any", "can", "had", "her", "was",
    "one", "our", "out", "has", "him", "his", "how", "its", "may", "new", "now", "old", "see",
    "two", "who", "did", "let", "she", "too", "use", "that", "with", "have", "this", "will",
    "your", "from", "they", "been", "were", "said", "each", "which", "their", "what", "about",
    "would", "there", "when", "make", "like", "into", "them", "than", "then", "some", "could",
    "other", "more", "very", "also", "such", "only",
];
