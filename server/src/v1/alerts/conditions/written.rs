//! When documents of a collection were written last, whoever wrote them. Batches note it in a table; what comes through the API
//! is known by the documents alone. Those are asked once, and again only after the change feed told of something: to find the
//! newest of many, the store reads them all.

use std::collections::HashMap;

use loupe_engine::{
    filter,
    store::{Direction, ListQuery, Sort},
};
use loupe_wire::{Value, reading};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Look, collections::Meant};
use crate::{
    error::Result,
    v1::{
        documents,
        events::{self, EventRow},
    },
};

/// When a document was made, and when it was last sent under an id of its sender. What clusters and taxonomies add to a document
/// moves neither.
const WRITTEN: [&str; 2] = ["_internal.created_at", "_internal.upserted.at"];

/// Events that are read at a time, and behind how many the documents are asked instead.
const EVENTS: i64 = 500;
const FAR: i64 = 20_000;

/// What an alert remembers of a collection.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Memory {
    /// Up to which event.
    seq: i64,
    /// When something was written last, as far as is known.
    at: i64,
    /// Documents were changed since they were asked.
    changed: bool,
}

/// What the change feed tells of each collection.
#[derive(Debug, Default)]
struct News {
    /// When documents came.
    came: HashMap<String, i64>,
    /// The last event that some were changed by: sent again, or only added to.
    changed: HashMap<String, i64>,
}

impl News {
    fn note(&mut self, event: &EventRow) {
        let Some(id) = event.payload.get("collection_id").and_then(Value::as_str) else {
            return;
        };
        match event.event_type.as_str() {
            "document.created" | "collection.documents.written" => {
                let at = self.came.entry(id.to_owned()).or_default();
                *at = event.created_at.max(*at);
            }
            "document.updated" | "documents.updated.batch" => {
                self.changed.insert(id.to_owned(), event.seq);
            }
            _ => {}
        }
    }
}

/// Looks up when each of these was written to, of those that nothing was written to since a moment as far as was known; the
/// documents of those are asked of which nothing newer is known.
pub(super) async fn since(
    look: &mut Look<'_>,
    namespace_id: &str,
    since: i64,
    mut quiet: Vec<(Meant, i64)>,
) -> Result<Vec<(Meant, i64)>> {
    let newest = events::newest(look.app.db(), look.org_id).await?;
    let remembered = remembered(look, newest, &quiet);
    let from = remembered.values().map(|memory| memory.seq).min();
    let news = match from {
        Some(seq) => read(look, namespace_id, seq).await?,
        None => News::default(),
    };
    for (one, at) in &mut quiet {
        let before = remembered.get(&one.id).copied();
        let mut memory = before.unwrap_or_default();
        let came = news.came.get(&one.id).copied();
        memory.at = memory.at.max(came.unwrap_or_default());
        let changed = news.changed.get(&one.id);
        memory.changed |= changed.is_some_and(|seq| *seq > memory.seq);
        memory.seq = newest;
        if memory.at < since && (before.is_none() || memory.changed) {
            memory.at = memory.at.max(asked(look, namespace_id, one).await?);
            memory.changed = false;
        }
        look.baseline.insert(one.id.clone(), json!(memory));
        *at = memory.at.max(*at);
    }
    Ok(quiet)
}

/// What is remembered of them, but not from before more events than are read.
fn remembered(look: &Look<'_>, newest: i64, quiet: &[(Meant, i64)]) -> HashMap<String, Memory> {
    let of = |(one, _): &(Meant, i64)| {
        let memory: Memory = reading::from_value(look.baseline.get(&one.id)?).ok()?;
        let near = (0..=FAR).contains(&(newest - memory.seq));
        near.then(|| (one.id.clone(), memory))
    };
    quiet.iter().filter_map(of).collect()
}

async fn read(look: &Look<'_>, namespace_id: &str, mut seq: i64) -> Result<News> {
    let mut news = News::default();
    loop {
        let db = look.app.db();
        let events = events::list(db, look.org_id, seq, namespace_id, "", EVENTS).await?;
        let Some(last) = events.last() else {
            return Ok(news);
        };
        seq = last.seq;
        for event in &events {
            news.note(event);
        }
    }
}

/// When the newest document of a collection was written; 0 where there is none.
async fn asked(look: &Look<'_>, namespace_id: &str, one: &Meant) -> Result<i64> {
    // An event is there before its document is.
    documents::settle(look.app, namespace_id, &one.id).await?;
    let mut newest = 0;
    for field in WRITTEN {
        let query = ListQuery {
            sort: Some(Sort {
                field: field.to_owned(),
                direction: Direction::Descending,
            }),
            limit: 1,
            ..ListQuery::default()
        };
        let page = look.app.store().list(&one.reach, query).await?;
        for document in page.documents {
            let payload = Value::from(document.payload);
            let at = filter::value_at(&payload, field)
                .and_then(Value::as_str)
                .and_then(filter::moment);
            newest = newest.max(at.map_or(0, |at| at.timestamp_micros()));
        }
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Json;

    fn event(seq: i64, event_type: &str, payload: Value) -> EventRow {
        EventRow {
            seq,
            namespace_id: Some("ns_1".into()),
            event_type: event_type.into(),
            operation: "other".into(),
            payload: Json(payload.as_object().cloned().unwrap_or_default()),
            created_at: seq * 10,
            trace_id: None,
            cause: None,
        }
    }

    #[test]
    fn the_feed_tells_what_came_and_what_was_changed() {
        let mut news = News::default();
        let of = |id: &str| json!({ "collection_id": id });
        for event in [
            event(1, "document.created", of("a")),
            event(2, "collection.documents.written", of("a")),
            event(3, "documents.updated.batch", of("b")),
            event(4, "document.updated", of("b")),
            event(5, "document.deleted", of("a")),
            event(6, "collection.updated", json!({})),
        ] {
            news.note(&event);
        }
        assert_eq!(news.came, HashMap::from([("a".to_owned(), 20)]));
        assert_eq!(news.changed, HashMap::from([("b".to_owned(), 4)]));
    }
}
