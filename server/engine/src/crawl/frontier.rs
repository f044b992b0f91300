//! Addresses that are still to be read, each once, in the order in which they were found; with a goal, those first whose
//! links sound like it.

use std::collections::HashSet;

use url::Url;

use super::{Rules, address};
use crate::embed::Encoders;

/// Addresses that wait at once: what a page with endless links leads to is forgotten.
const MOST: usize = 5_000;
/// Links of one page whose words are compared with the goal.
const COMPARED: usize = 64;

/// An address that is to be read.
#[derive(Debug, Clone)]
pub struct Next {
    pub url: Url,
    pub depth: usize,
    pub parent: Option<Url>,
    /// How near its link is to the goal.
    score: f32,
}

impl Next {
    pub fn first(url: Url) -> Self {
        Self {
            url,
            depth: 0,
            parent: None,
            score: 0.0,
        }
    }
}

pub struct Frontier<'a> {
    rules: &'a Rules,
    seen: HashSet<String>,
    open: Vec<Next>,
    /// Addresses for which there was no room.
    forgotten: usize,
    goal: Option<Vec<f32>>,
}

impl<'a> Frontier<'a> {
    pub fn new(rules: &'a Rules) -> Self {
        Self {
            rules,
            seen: HashSet::new(),
            open: Vec::new(),
            forgotten: 0,
            goal: None,
        }
    }

    /// Notes the address that the crawl begins at.
    pub fn begin(&mut self, url: &Url) {
        self.meet(&address::tidy(url.clone()));
    }

    /// Whether an address is seen for the first time.
    pub fn meet(&mut self, url: &Url) -> bool {
        self.seen.insert(url.to_string())
    }

    /// Addresses that were not read.
    pub fn left(&self) -> usize {
        self.open.len() + self.forgotten
    }

    /// The one to read next: the first found, or the nearest to the goal.
    pub fn pop(&mut self) -> Option<Next> {
        if self.open.is_empty() {
            return None;
        }
        let mut best = 0;
        if self.rules.goal.is_some() {
            for (place, next) in self.open.iter().enumerate() {
                if next.score > self.open[best].score {
                    best = place;
                }
            }
        }
        Some(self.open.remove(best))
    }

    /// Adds what links lead to, as far as it is new.
    pub async fn add(
        &mut self,
        encoders: &dyn Encoders,
        parent: &Url,
        links: Vec<(Url, String)>,
        depth: usize,
    ) {
        let room = MOST.saturating_sub(self.open.len());
        let mut links = links.into_iter();
        let new = links
            .by_ref()
            .filter(|(url, _)| self.seen.insert(url.to_string()));
        let new: Vec<(Url, String)> = new.take(room).collect();
        let rest = links.filter(|(url, _)| !self.seen.contains(url.as_str()));
        self.forgotten += rest.count();
        let scores = self.scores(encoders, &new).await;
        let next = new.into_iter().enumerate().map(|(place, (url, _))| Next {
            url,
            depth,
            parent: Some(parent.clone()),
            score: scores.get(place).copied().unwrap_or(-1.0),
        });
        self.open.extend(next);
    }

    /// How near the words of links are to the goal. Without a model that tells, all are as near.
    async fn scores(&mut self, encoders: &dyn Encoders, links: &[(Url, String)]) -> Vec<f32> {
        let Some(goal) = self.rules.goal.clone().filter(|_| !links.is_empty()) else {
            return Vec::new();
        };
        let words = |(url, text): &(Url, String)| {
            let path = url.path().replace(['/', '-', '_', '.'], " ");
            format!("{} {}", text.trim(), path.trim())
        };
        let mut texts: Vec<String> = links.iter().take(COMPARED).map(words).collect();
        if self.goal.is_none() {
            texts.push(goal);
        }
        let vectors = match encoders.text(&self.rules.model).await {
            Ok(encoder) => encoder.embed(texts).await,
            Err(error) => Err(error),
        };
        let mut vectors = match vectors {
            Ok(vectors) => vectors,
            Err(error) => {
                tracing::warn!(%error, "links cannot be compared with the goal of a crawl");
                return Vec::new();
            }
        };
        if self.goal.is_none() {
            self.goal = vectors.pop();
        }
        let goal = self.goal.as_deref().unwrap_or_default();
        let near = |vector: &Vec<f32>| vector.iter().zip(goal).map(|(a, b)| a * b).sum();
        vectors.iter().map(near).collect()
    }
}
