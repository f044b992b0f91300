//! Counts beside the filters of a page: of all that is found where somebody asked something, else of all that a search may find.

use std::{sync::LazyLock, time::Duration};

use futures::future::join_all;
use loupe_engine::{filter::Filter, stage::check_inputs};
use loupe_hosted::{Facet, FacetValue};
use loupe_wire::{Object, OffsetPaginationParams, RetrieverPagination, Value};
use moka::future::Cache;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Execute, Open, collections, is_asked, retrievers};
use crate::{app::App, error::Result, list};

/// Values of a field that are counted, the most frequent ones, and letters of one: what is longer is nothing to choose.
const MOST: usize = 12;
const LETTERS: usize = 200;

/// How long a page waits for its counts. They read every document, so they are made for all visitors of half a minute.
const PATIENCE: Duration = Duration::from_secs(1);
const KEPT: Duration = Duration::from_secs(30);

/// Bytes of counts that are kept: visitors choose what is counted, and values of 200 letters are long.
const ROOM: u64 = 16 << 20;

type Key = [u8; 32];

static COUNTED: LazyLock<Cache<Key, Vec<Facet>>> = LazyLock::new(|| {
    let counted = Cache::builder().max_capacity(ROOM);
    let counted = counted.weigher(|_: &Key, counted: &Vec<Facet>| weight(counted));
    counted.time_to_live(KEPT).build()
});

/// Pages that there was no time to count: there are none for as long, whatever visitors choose, so that not every choice of
/// theirs is waited for.
static SLOW: LazyLock<Cache<Key, ()>> = LazyLock::new(|| {
    let slow = Cache::builder().max_capacity(10_000);
    slow.time_to_live(KEPT).build()
});

/// Fields with a choice whose other values are searched for beside one answer.
const MOST_CHOSEN: usize = 3;

/// What a page wants to know beside its results.
pub(super) struct Wanted {
    pub inputs: Object,
    /// The fields to count values of.
    pub fields: Vec<String>,
    /// What the visitor chose of them.
    pub chosen: Option<Value>,
}

impl Open {
    /// The filters that a page asks for, with what its answer counted, else with what is counted here. Of a field that the visitor
    /// chose values of the answer has those alone: the others are counted as if nothing of it was chosen.
    pub(super) async fn facets(&self, app: &App, told: &[Object], wanted: Wanted) -> Vec<Facet> {
        let Wanted {
            inputs,
            fields,
            chosen,
        } = &wanted;
        let mut found: Vec<Facet> = told.iter().filter_map(facet).collect();
        found.retain(|facet| fields.contains(&facet.field));
        let narrowed = fields.iter().filter(|field| is_chosen(chosen, field));
        if is_asked(inputs) {
            let others = narrowed.take(MOST_CHOSEN);
            let others = others.map(|field| self.others(app, &wanted, field));
            for facet in join_all(others).await.into_iter().flatten() {
                found.retain(|one| one.field != facet.field);
                found.push(facet);
            }
        } else {
            for field in narrowed {
                found.retain(|facet| facet.field != *field);
            }
        }
        let mut rest = fields.clone();
        rest.retain(|field| !found.iter().any(|facet| facet.field == *field));
        if !rest.is_empty() {
            found.extend(self.counts(app, inputs, &rest, chosen.as_ref()).await);
        }
        // As the owner has them.
        found.sort_by_key(|facet| fields.iter().position(|field| *field == facet.field));
        found
    }

    /// What the same search finds of a field without the visitor's choice in it; nothing where that is not to be had, or where to
    /// ask once more would cost the owner something.
    async fn others(&self, app: &App, wanted: &Wanted, field: &str) -> Option<Facet> {
        if !retrievers::asks_nobody(&self.retriever) {
            return None;
        }
        let all = but(wanted.chosen.as_ref(), field);
        let filters = (!all.is_empty()).then(|| json!({ "AND": all }));
        let ask = Execute {
            inputs: wanted.inputs.clone(),
            filters: filters.and_then(|filters| filters.as_object().cloned()),
            pagination: Some(RetrieverPagination::Offset(OffsetPaginationParams {
                page_size: 1,
                page_number: 1,
            })),
            max_time_ms: u64::try_from(PATIENCE.as_millis()).ok(),
            unnoted: true,
            counted: vec![field.to_owned()],
            ..Default::default()
        };
        let search = tokio::time::timeout(PATIENCE * 2, self.execute(app, ask));
        let (answer, _) = search.await.ok()?.ok()?;
        let found = answer.facets.iter().filter_map(facet);
        found.into_iter().find(|facet| facet.field == field)
    }

    /// The values of these fields in the documents that a search with these inputs may find, and how often each is there, within
    /// what the visitor chose of the other fields. Where more than conditions decides what is found there are none: they would
    /// tell of documents that nobody finds. A page is whole without them, and what keeps the store from counting is its owner's
    /// to know.
    async fn counts(
        &self,
        app: &App,
        inputs: &Object,
        fields: &[String],
        chosen: Option<&Value>,
    ) -> Vec<Facet> {
        let Some(admitted) = self.admitted(app, inputs) else {
            return Vec::new();
        };
        let (page, public_name) = (&self.published, &self.published.public_name);
        let here = digest(&json!([page.public_id, page.retriever_id, fields]));
        if SLOW.contains_key(&here) {
            return Vec::new();
        }
        let what = format!("{admitted:?}");
        let key = digest(&json!([
            page.public_id,
            page.retriever_id,
            fields,
            chosen,
            what
        ]));
        let counting = async {
            // It reads as much as a search, and takes its turn as one.
            let _turn = app.turns.take().await.ok()?;
            let count = self.count(app, &admitted, fields, chosen);
            match tokio::time::timeout(PATIENCE, count).await {
                Ok(Ok(counted)) => Some(counted),
                Ok(Err(error)) => {
                    tracing::warn!(%error, public_name, "the filters of a page could not be counted");
                    None
                }
                Err(_) => {
                    SLOW.insert(here, ()).await;
                    None
                }
            }
        };
        let counted = COUNTED.optionally_get_with(key, counting).await;
        counted.unwrap_or_default()
    }

    /// The documents that a search with these inputs may find, as far as conditions tell it.
    fn admitted(&self, app: &App, inputs: &Object) -> Option<Filter> {
        let schema = &self.retriever.input_schema;
        let inputs = check_inputs(schema, inputs).ok()?;
        let stages = retrievers::stage_inputs(&self.retriever.stages);
        let plan = retrievers::compile(&stages, schema).ok()?;
        plan.admitted(&inputs, app.clock().now())
    }

    async fn count(
        &self,
        app: &App,
        admitted: &Filter,
        fields: &[String],
        chosen: Option<&Value>,
    ) -> Result<Vec<Facet>> {
        let ids = &self.retriever.collection_ids;
        let searched = collections::searched(app, &self.scope.namespace_id, ids).await?;
        let here = searched
            .iter()
            .filter(|one| !collections::lifecycle::is_away(one));
        let ids: Vec<String> = here.map(|one| one.id.clone()).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let reach = self.scope.reach(ids);
        let mut counted = Vec::with_capacity(fields.len());
        for field in fields.iter().filter(|field| self.shows(&json!(field))) {
            let filter = admitted.clone().and(without(chosen, field)?);
            let values = app
                .store()
                .facet(&reach, Some(&filter), field, MOST)
                .await?;
            let values = values.into_iter().filter(|one| is_short(&one.value));
            let values = values.map(|one| FacetValue {
                value: one.value,
                count: one.count,
            });
            counted.push(Facet {
                field: field.clone(),
                values: values.collect(),
            });
        }
        Ok(counted)
    }
}

fn digest(asked: &Value) -> Key {
    Sha256::digest(asked.to_string()).into()
}

/// Bytes that counts take, about.
fn weight(counted: &[Facet]) -> u32 {
    let of_value = |one: &FacetValue| 64 + one.value.as_str().map_or(0, str::len);
    let of_field = |one: &Facet| {
        let values: usize = one.values.iter().map(of_value).sum();
        64 + one.field.len() + values
    };
    let bytes: usize = counted.iter().map(of_field).sum();
    u32::try_from(128 + bytes).unwrap_or(u32::MAX)
}

fn is_short(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.chars().count() <= LETTERS
}

fn choices(chosen: Option<&Value>) -> impl Iterator<Item = &Value> {
    let all = chosen.and_then(|chosen| chosen.get("AND")?.as_array());
    all.into_iter().flatten()
}

fn is_chosen(chosen: &Option<Value>, field: &str) -> bool {
    choices(chosen.as_ref()).any(|one| one["field"] == field)
}

fn but<'c>(chosen: Option<&'c Value>, field: &str) -> Vec<&'c Value> {
    let all = choices(chosen);
    all.filter(|one| one["field"] != field).collect()
}

/// A facet as an answer tells it.
fn facet(facet: &Object) -> Option<Facet> {
    let field = facet.get("key")?.as_str()?.to_owned();
    let values = facet.get("values")?.as_array()?;
    let value = |entry: &Value| {
        Some(FacetValue {
            value: entry.get("value")?.clone(),
            count: entry.get("count")?.as_u64()?,
        })
    };
    let values = values.iter().filter_map(value);
    Some(Facet {
        field,
        values: values.filter(|one| is_short(&one.value)).collect(),
    })
}

/// What a visitor chose, but of this field: its other values stay to be chosen.
fn without(chosen: Option<&Value>, field: &str) -> Result<Filter> {
    let others = but(chosen, field);
    if others.is_empty() {
        return Ok(Filter::All(Vec::new()));
    }
    list::parse_filter(&json!({"AND": others}), "filters")
}
