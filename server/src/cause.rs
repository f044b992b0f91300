//! What something came of: the triggers and alerts that led to it, so that none fires on what it did itself, however many others
//! are in between.

use std::collections::BTreeSet;

/// Links of a chain: what that many followed each other to starts nothing more.
const MOST: usize = 8;

/// Triggers and alerts, by their ids, and how many of them followed each other at most.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    links: usize,
    ids: BTreeSet<String>,
}

impl Cause {
    /// As it is kept: the number, then the ids. People and the clock leave none.
    pub fn read(kept: Option<&str>) -> Self {
        let mut words = kept.unwrap_or_default().split(' ');
        let links = words.next().and_then(|links| links.parse().ok());
        Self {
            links: links.unwrap_or(0),
            ids: words.map(ToOwned::to_owned).collect(),
        }
    }

    /// To be kept; none of what nobody but people or the clock led to.
    pub fn text(&self) -> Option<String> {
        let ids = self.ids.iter().map(|id| format!(" {id}"));
        (!self.ids.is_empty()).then(|| self.links.to_string() + &ids.collect::<String>())
    }

    pub fn ids(&self) -> &BTreeSet<String> {
        &self.ids
    }

    /// Whether the trigger or alert may act on it: it has no part in it, and the chain is not too long.
    pub fn lets(&self, id: &str) -> bool {
        self.links < MOST && !self.ids.contains(id)
    }

    /// What comes of it through a trigger or an alert. One that tries again adds nothing.
    pub fn then(mut self, id: &str) -> Self {
        self.links += usize::from(self.ids.insert(id.to_owned()));
        self
    }

    /// What came of both.
    pub fn join(&mut self, other: &Self) {
        self.links = self.links.max(other.links);
        self.ids.extend(other.ids.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_lets_nobody_act_twice() {
        assert_eq!(Cause::default().text(), None);
        assert_eq!(Cause::read(None), Cause::default());
        let mut cause = Cause::default().then("trg_b").then("alt_a");
        assert_eq!(cause.text().as_deref(), Some("2 alt_a trg_b"));
        assert_eq!(cause.clone().then("alt_a"), cause);
        assert_eq!(Cause::read(cause.text().as_deref()), cause);
        cause.join(&Cause::default().then("trg_c"));
        assert_eq!(cause.text().as_deref(), Some("2 alt_a trg_b trg_c"));
        assert!(!cause.lets("trg_c") && cause.lets("trg_d"));
        let more = ["trg_e", "trg_f", "trg_g", "trg_h", "trg_i", "trg_j"];
        let long = more.into_iter().fold(cause, Cause::then);
        assert!(!long.lets("trg_d"));
    }
}
