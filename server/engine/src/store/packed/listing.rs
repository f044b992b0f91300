//! Pages of a listing over several shards: first which documents, then the documents.

use std::cmp::Ordering;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::try_join_all;
use loupe_wire::{Value, reading};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::shards::{Shard, Shards};
use super::super::{Direction, ListPage, ListQuery, Reach, Result, Sort, StoreError, layout};
use super::{Access, Packed};
use crate::filter::{sort_values, value_at};

/// Where the next page begins: after this document.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Cursor {
    #[serde(rename = "a")]
    after: Uuid,
    /// The document's sort value and the field it is of; a cursor of one order is no cursor of another.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    sorted: Option<(String, Value)>,
}

impl Cursor {
    fn encode(&self) -> Result<String> {
        let bytes =
            serde_json::to_vec(self).map_err(|error| StoreError::Internal(error.to_string()))?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    fn decode(text: &str, sort: Option<&Sort>) -> Result<Self> {
        let cursor: Option<Cursor> = URL_SAFE_NO_PAD
            .decode(text)
            .ok()
            .and_then(|bytes| reading::from_slice(&bytes).ok());
        cursor
            .filter(|cursor| {
                cursor.sorted.as_ref().map(|(field, _)| field) == sort.map(|sort| &sort.field)
            })
            .ok_or_else(|| StoreError::Cursor(text.to_owned()))
    }
}

/// A document's place in the order.
#[derive(Debug, Clone)]
struct Place {
    id: Uuid,
    value: Option<Value>,
}

impl Place {
    /// Absent values come last in both directions; ties by id.
    fn order(&self, other: &Place, direction: Direction) -> Ordering {
        let absent = |value: &Option<Value>| value.as_ref().is_none_or(Value::is_null);
        let values = match (absent(&self.value), absent(&other.value)) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let order = sort_values(self.value.as_ref(), other.value.as_ref());
                if direction == Direction::Descending {
                    order.reverse()
                } else {
                    order
                }
            }
        };
        values.then_with(|| self.id.cmp(&other.id))
    }
}

/// One page.
pub async fn page<S: Shards>(
    store: &Packed<S>,
    shards: Vec<Arc<Shard>>,
    reach: &Reach,
    access: &Access,
    query: &ListQuery,
) -> Result<ListPage> {
    let cursor = query
        .cursor
        .as_deref()
        .map(|text| Cursor::decode(text, query.sort.as_ref()))
        .transpose()?;
    if query.limit == 0 {
        return Ok(ListPage::default());
    }
    // One more than the page tells whether there is a next one.
    let wanted = query.offset.saturating_add(query.limit).saturating_add(1);
    let places = match &query.sort {
        None => {
            by_id(
                store,
                &shards,
                access,
                cursor.map(|cursor| cursor.after),
                wanted,
            )
            .await?
        }
        Some(sort) => by_value(store, &shards, access, sort, cursor, wanted).await?,
    };
    let more = places.len() == wanted;
    let page: Vec<Place> = places
        .into_iter()
        .skip(query.offset)
        .take(query.limit)
        .collect();
    let next = match (more, page.last()) {
        (true, Some(last)) => {
            let value = |sort: &Sort| (sort.field.clone(), last.value.clone().unwrap_or_default());
            Some(
                Cursor {
                    after: last.id,
                    sorted: query.sort.as_ref().map(value),
                }
                .encode()?,
            )
        }
        _ => None,
    };
    let ids: Vec<Uuid> = page.iter().map(|place| place.id).collect();
    let mut found = store.fetch(&shards, reach, &ids, query.vectors).await?;
    Ok(ListPage {
        documents: ids.iter().filter_map(|id| found.remove(id)).collect(),
        next,
    })
}

async fn by_id<S: Shards>(
    store: &Packed<S>,
    shards: &[Arc<Shard>],
    access: &Access,
    after: Option<Uuid>,
    wanted: usize,
) -> Result<Vec<Place>> {
    let found = try_join_all(shards.iter().map(|shard| async {
        let mut places: Vec<Place> = Vec::new();
        store
            .each(
                shard,
                access,
                after,
                wanted.saturating_add(1),
                false,
                &mut |id, _| {
                    if Some(id) != after {
                        places.push(Place { id, value: None });
                    }
                    places.len() < wanted
                },
            )
            .await?;
        Ok::<_, StoreError>(places)
    }))
    .await?;
    let mut places: Vec<Place> = found.into_iter().flatten().collect();
    places.sort_by_key(|place| place.id);
    places.truncate(wanted);
    Ok(places)
}

/// Values of any kind have one order here, which no engine's index has: every document of the reach is looked at, but
/// only as many places as the page needs are kept.
async fn by_value<S: Shards>(
    store: &Packed<S>,
    shards: &[Arc<Shard>],
    access: &Access,
    sort: &Sort,
    cursor: Option<Cursor>,
    wanted: usize,
) -> Result<Vec<Place>> {
    let after = cursor.map(|cursor| Place {
        id: cursor.after,
        value: cursor.sorted.map(|(_, value)| value),
    });
    let order = |a: &Place, b: &Place| a.order(b, sort.direction);
    let mut places: Vec<Place> = Vec::new();
    for shard in shards {
        store
            .each(
                shard,
                access,
                None,
                usize::MAX,
                true,
                &mut |id, mut document| {
                    let value =
                        layout::viewed(&mut document, |view| value_at(view, &sort.field).cloned());
                    let place = Place { id, value };
                    if after
                        .as_ref()
                        .is_none_or(|after| order(&place, after).is_gt())
                    {
                        places.push(place);
                    }
                    if places.len() >= wanted.saturating_mul(2).max(4_096) {
                        places.sort_by(order);
                        places.truncate(wanted);
                    }
                    true
                },
            )
            .await?;
    }
    places.sort_by(order);
    places.truncate(wanted);
    Ok(places)
}
