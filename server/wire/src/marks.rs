//! Words of a query in a text: what pages and answers of the API mark.

/// A run of text, marked when it answers the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub text: String,
    pub marked: bool,
}

/// The words of a query that are worth marking.
#[derive(Debug, Clone, Default)]
pub struct Marks(Vec<String>);

impl Marks {
    /// Words of at least two letters.
    pub fn of(query: &str) -> Self {
        let mut words: Vec<String> = words(query)
            .map(|(_, word)| word.to_lowercase())
            .filter(|word| word.chars().count() >= 2)
            .take(32)
            .collect();
        words.dedup();
        // "of the sea": only when the query has nothing better do the small words count.
        let small = [
            "the", "of", "and", "or", "in", "on", "at", "to", "is", "an", "for", "with", "by",
        ];
        if words.iter().any(|word| !small.contains(&word.as_str())) {
            words.retain(|word| !small.contains(&word.as_str()));
        }
        Self(words)
    }

    fn answers(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        self.0.iter().any(|wanted| {
            word == *wanted
                || (wanted.chars().count() >= 4 && word.starts_with(wanted.as_str()))
                || (word.chars().count() >= 4
                    && wanted
                        .strip_prefix(word.as_str())
                        .is_some_and(|rest| rest.len() <= 2))
        })
    }

    /// The text in runs.
    pub fn runs(&self, text: &str) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut from = 0;
        if !self.0.is_empty() {
            for (at, word) in words(text) {
                if self.answers(word) {
                    if at > from {
                        runs.push(Run {
                            text: text[from..at].to_owned(),
                            marked: false,
                        });
                    }
                    runs.push(Run {
                        text: word.to_owned(),
                        marked: true,
                    });
                    from = at + word.len();
                }
            }
        }
        if from < text.len() {
            runs.push(Run {
                text: text[from..].to_owned(),
                marked: false,
            });
        }
        runs
    }

    /// At most `most` characters, around the first word that answers the query.
    pub fn snippet(&self, text: &str, most: usize) -> String {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let first = words(&text)
            .find(|(_, word)| self.answers(word))
            .map_or(0, |(at, _)| at);
        let before = text[..first].chars().count();
        if before + 20 < most || text.chars().count() <= most {
            return truncate(&text, most);
        }
        let skip = before.saturating_sub(most / 3);
        let tail: String = text.chars().skip(skip).collect();
        // Begin at a word.
        let tail = tail.split_once(' ').map_or(tail.as_str(), |(_, rest)| rest);
        format!("… {}", truncate(tail, most.saturating_sub(2).max(1)))
    }
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(move |word| {
            // The part lies inside the text it was split from.
            (word.as_ptr() as usize - text.as_ptr() as usize, word)
        })
}

/// At most `most` characters, cut at a word where there is one near, with an ellipsis.
pub fn truncate(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text.to_owned();
    };
    let cut = &text[..end];
    let cut = match cut.rfind(char::is_whitespace) {
        Some(space) if cut.len() - space < 24 && space > cut.len() / 2 => &cut[..space],
        _ => cut,
    };
    format!(
        "{}…",
        cut.trim_end_matches(|c: char| c.is_whitespace() || c == ',' || c == ';')
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_fall_on_whole_words_in_any_script() {
        let runs = Marks::of("Hat of größe").runs("The hat that has Größe");
        let marked: Vec<&str> = runs
            .iter()
            .filter(|run| run.marked)
            .map(|run| run.text.as_str())
            .collect();
        assert_eq!(marked, ["hat", "Größe"]);
        assert_eq!(
            runs.iter().map(|run| run.text.as_str()).collect::<String>(),
            "The hat that has Größe"
        );
    }

    #[test]
    fn a_snippet_goes_where_the_answer_is() {
        let text = format!("{} needle in the end", "hay ".repeat(100));
        let snippet = Marks::of("needle").snippet(&text, 60);
        assert!(
            snippet.starts_with("… ")
                && snippet.contains("needle")
                && snippet.chars().count() <= 62
        );
        assert_eq!(truncate("äöü äöü", 5), "äöü…");
    }
}
