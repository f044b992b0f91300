//! What a page of results says beside them: what they are like, and what a language model wrote of them.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::card::title;
use super::expose;
use super::look::Look;
use super::query::{Query, encode};
use super::results::Outcome;
use crate::{Hit, Host, Page, Visitor, Written};

/// How long results wait for the names of what stands beside them.
const PATIENCE: Duration = Duration::from_secs(1);

/// Documents that are named as sources, of one text and of all.
const SOURCES: usize = 20;
const MOST_SOURCES: usize = 60;

/// What stands beside results.
#[derive(Debug, Default)]
pub struct Beside {
    pub like: Option<Like>,
    pub written: Vec<Text>,
}

/// The document that a search asks for the like of.
#[derive(Debug)]
pub struct Like {
    /// What it is called, where that is known.
    title: Option<String>,
    /// The address of the same search without it.
    pub without: String,
}

impl Beside {
    /// What stands beside an answer. Nothing does beside what is none.
    pub async fn of(
        host: &dyn Host,
        page: &Page,
        visitor: &Visitor,
        look: &Look,
        query: &Query,
        outcome: &Outcome,
    ) -> Self {
        let Outcome::Answer(answer) = outcome else {
            return Self::default();
        };
        let reference = query.reference();
        let like = reference.map(|input| input.value().to_owned());
        let told = answer
            .written
            .iter()
            .flat_map(|one| one.sources.iter().take(SOURCES));
        let ids = told.take(MOST_SOURCES).chain(&like);
        let ids: HashSet<String> = ids.cloned().collect();
        let found = named(host, page, visitor, ids.into_iter().collect()).await;
        let called = |id: &String| found.get(id).map(|hit| title(look, hit));
        let source = |id: &String| {
            let path = format!("{}/item/{}", query.home, encode(id));
            Some((path, called(id)?))
        };
        let text = |one: &Written| Text {
            text: one.text.clone(),
            group: one.group.clone(),
            sources: one.sources.iter().filter_map(source).collect(),
        };
        Self {
            like: reference.map(|input| Like {
                title: like.as_ref().and_then(called),
                without: query.without_input(&input.name),
            }),
            written: answer.written.iter().map(text).collect(),
        }
    }
}

impl Like {
    /// In words, after what was found.
    pub fn said(&self) -> String {
        let title = self.title.as_deref();
        title.map_or_else(
            || "like one result".to_owned(),
            |title| format!("like {title}"),
        )
    }
}

/// A text of a language model, with the addresses and names of what it was made of.
#[derive(Debug)]
pub struct Text {
    pub text: String,
    pub group: Option<String>,
    pub sources: Vec<(String, String)>,
}

/// The documents of these ids, by id; those that are not there in time are left out.
async fn named(
    host: &dyn Host,
    page: &Page,
    visitor: &Visitor,
    ids: Vec<String>,
) -> HashMap<String, Hit> {
    if ids.is_empty() {
        return HashMap::new();
    }
    let asked = host.named(&page.public_name, visitor, &ids);
    let found = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            tracing::warn!(%error, public_name = page.public_name, "documents beside results could not be read");
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    let exposed = found.into_iter().map(|mut hit| {
        expose(page, &mut hit);
        (hit.document_id.clone(), hit)
    });
    exposed.collect()
}
