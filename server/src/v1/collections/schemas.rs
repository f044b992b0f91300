//! The schema of a collection, brought up to what its documents hold.

use std::collections::{BTreeSet, HashMap};

use indexmap::IndexMap;
use loupe_engine::store::ListQuery;
use loupe_wire::{
    AuditAction, BucketSchema, BucketSchemaField, BucketSchemaFieldType, CollectionResponse,
    NamespaceOperation, ResourceType, SchemaSyncRequest, SchemaSyncResponse,
    SchemaSyncSkippedResponse, SyncCollectionSchemaResponse, Value,
};
use serde_json::json;

use super::{COLLECTIONS, find, lifecycle};
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    clock,
    db::{Record, Tx},
    error::{ApiError, Result},
    v1::{
        audit::{self, Change},
        namespaces::push_event,
    },
};

/// Documents read at once.
const PAGE: usize = 500;
/// Fields that a schema takes up in one sync; documents with names in place of values would fill it.
const MOST: usize = 1_000;

type Fields = IndexMap<String, BucketSchemaField>;

/// Looks at documents and adds the fields that the schema lacks.
///
/// # Errors
/// 404; 409 while its documents are put away; the store or the database does not answer.
pub(super) async fn sync(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: SchemaSyncRequest,
) -> Result<SyncCollectionSchemaResponse> {
    let operation = NamespaceOperation::WriteData;
    let collection = find(app, scope, identifier, operation).await?;
    let id = collection.collection_id.clone().unwrap_or_default();
    if !collection.schema_sync_enabled && !request.force {
        return Ok(SyncCollectionSchemaResponse::Skipped(
            SchemaSyncSkippedResponse {
                success: true,
                skipped: true,
                reason: "schema_sync_enabled is false: send force".into(),
                collection_id: id,
                schema_version: collection.schema_version,
                last_sync: collection.last_schema_sync.map(|at| at.to_rfc3339()),
            },
        ));
    }
    lifecycle::check_here(&collection)?;
    let most = usize::try_from(request.sample_size).unwrap_or(usize::MAX);
    let (seen, sampled) = sample(app, scope, &id, most).await?;
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let (cascades, now) = (request.cascade_to_downstream, app.clock().micros());
    let mut answer = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let place = Place {
                    caller: &caller,
                    namespace_id: &namespace_id,
                    now,
                };
                place.add(tx, &id, seen, cascades).await
            })
        })
        .await?;
    answer.documents_sampled = i64::try_from(sampled).unwrap_or(i64::MAX);
    Ok(SyncCollectionSchemaResponse::Synced(answer))
}

/// The fields that so many documents have, each with the kind of its values; and how many documents were looked at.
async fn sample(
    app: &App,
    scope: &Scope<Write>,
    collection_id: &str,
    most: usize,
) -> Result<(Fields, usize)> {
    let reach = scope.reach(vec![collection_id.to_owned()]);
    let (mut seen, mut sampled, mut cursor) = (Seen::default(), 0, None);
    while sampled < most {
        let query = ListQuery {
            limit: PAGE.min(most - sampled),
            cursor,
            ..Default::default()
        };
        let page = app.store().list(&reach, query).await?;
        sampled += page.documents.len();
        for document in &page.documents {
            seen.add(&document.payload);
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok((seen.fields(), sampled))
}

/// Kinds of values by field, in the order in which the fields were met.
#[derive(Default)]
struct Seen(IndexMap<String, BTreeSet<&'static str>>);

impl Seen {
    fn add(&mut self, payload: &loupe_wire::Object) {
        for (name, value) in payload {
            if name.starts_with('_') || value.is_null() {
                continue;
            }
            if self.0.len() >= MOST && !self.0.contains_key(name) {
                continue;
            }
            self.0.entry(name.clone()).or_default().insert(kind(value));
        }
    }

    fn fields(self) -> Fields {
        let field = |kinds: BTreeSet<&'static str>| BucketSchemaField {
            r#type: common(&kinds),
            ..Default::default()
        };
        let fields = self.0.into_iter();
        fields.map(|(name, kinds)| (name, field(kinds))).collect()
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        _ => "string",
    }
}

/// What values of these kinds are together.
fn common(kinds: &BTreeSet<&'static str>) -> BucketSchemaFieldType {
    let all: Vec<&str> = kinds.iter().copied().collect();
    match all.as_slice() {
        ["boolean"] => BucketSchemaFieldType::Boolean,
        ["integer"] => BucketSchemaFieldType::Integer,
        ["number"] | ["integer", "number"] => BucketSchemaFieldType::Number,
        ["array"] => BucketSchemaFieldType::Array,
        ["object"] => BucketSchemaFieldType::Object,
        _ => BucketSchemaFieldType::String,
    }
}

/// Adds the fields that are not there; answers their names.
fn add_fields(schema: &mut Option<BucketSchema>, fields: &Fields) -> Vec<String> {
    let properties = &mut schema.get_or_insert_default().properties;
    let mut added = Vec::new();
    for (name, field) in fields {
        if !properties.contains_key(name) {
            properties.insert(name.clone(), field.clone());
            added.push(name.clone());
        }
    }
    added
}

/// Who changes what where.
struct Place<'a> {
    caller: &'a Caller,
    namespace_id: &'a str,
    now: i64,
}

impl Place<'_> {
    async fn add(
        &self,
        tx: &mut Tx,
        id: &str,
        seen: Fields,
        cascades: bool,
    ) -> Result<SchemaSyncResponse> {
        let meant = |one: &Record<CollectionResponse>| {
            one.id == id || (cascades && one.source.collection_ids.is_some())
        };
        let held = COLLECTIONS.hold_some(tx, self.namespace_id, meant).await?;
        let mut held: HashMap<String, CollectionResponse> = held
            .into_iter()
            .map(|record| (record.id, record.data.0))
            .collect();
        let gone = || ApiError::not_found("collection", id);
        let mut collection = held.remove(id).ok_or_else(gone)?;
        let previous_version = collection.schema_version;
        let fields_added = add_fields(&mut collection.output_schema, &seen);
        if !fields_added.is_empty() {
            collection.schema_version += 1;
        }
        collection.last_schema_sync = Some(clock::time(self.now));
        self.write(tx, id, &collection, &fields_added).await?;
        let total = collection.output_schema.as_ref();
        let total = total.map_or(0, |schema| schema.properties.len());
        let new: Fields = seen
            .into_iter()
            .filter(|(name, _)| fields_added.contains(name))
            .collect();
        let updated = match cascades && !new.is_empty() {
            true => self.cascade(tx, id, held, &new).await?,
            false => Vec::new(),
        };
        Ok(SchemaSyncResponse {
            success: true,
            collection_id: id.to_owned(),
            schema_version: collection.schema_version,
            previous_version,
            message: Some(match fields_added.len() {
                0 => "the schema knows every field of the documents".into(),
                number => format!("{number} fields were added"),
            }),
            fields_added,
            fields_total: i64::try_from(total).unwrap_or(i64::MAX),
            downstream_collections_updated: updated,
            ..Default::default()
        })
    }

    /// Tells the collections over this one, and those over them that take all fields along.
    async fn cascade(
        &self,
        tx: &mut Tx,
        id: &str,
        mut all: HashMap<String, CollectionResponse>,
        new: &Fields,
    ) -> Result<Vec<String>> {
        let (mut wave, mut updated) = (vec![id.to_owned()], Vec::new());
        while let Some(below) = wave.pop() {
            let reads = |one: &CollectionResponse| {
                let sources = one.source.collection_ids.as_ref();
                sources.is_some_and(|ids| ids.contains(&below))
            };
            let over: Vec<String> = all
                .iter()
                .filter(|(_, one)| reads(one))
                .map(|(id, _)| id.clone())
                .collect();
            for id in over {
                let Some(mut one) = all.remove(&id) else {
                    continue;
                };
                let mut added = add_fields(&mut one.input_schema, new);
                if one.feature_extractor.include_all_source_fields {
                    added.extend(add_fields(&mut one.output_schema, new));
                    wave.push(id.clone());
                }
                if added.is_empty() {
                    continue;
                }
                one.schema_version += 1;
                self.write(tx, &id, &one, &added).await?;
                updated.push(id);
            }
        }
        updated.sort();
        Ok(updated)
    }

    /// A sync that finds nothing new is noted, and told to nobody.
    async fn write(
        &self,
        tx: &mut Tx,
        id: &str,
        collection: &CollectionResponse,
        added: &[String],
    ) -> Result<()> {
        let (namespace_id, now) = (self.namespace_id, self.now);
        let name = &collection.collection_name;
        COLLECTIONS
            .update(tx, namespace_id, id, name, now, collection)
            .await?;
        if added.is_empty() {
            return Ok(());
        }
        let change = Change {
            action: AuditAction::CollectionUpdated,
            resource: (ResourceType::Collection, id),
            changes: json!({"fields_added": added, "schema_version": collection.schema_version}),
        };
        audit::record(tx, self.caller, change, now).await?;
        let (org_id, told) = (&self.caller.org_id, json!({ "collection_id": id }));
        push_event(tx, org_id, namespace_id, "collection.updated", told, now).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_the_kind_that_all_its_values_share() {
        let mut seen = Seen::default();
        for payload in [
            json!({"a": 1, "b": 1, "c": [1], "d": null, "_internal": {}}),
            json!({"a": 2, "b": 1.5, "c": {"x": 1}, "e": true}),
        ] {
            seen.add(payload.as_object().unwrap());
        }
        let fields = seen.fields();
        let kinds: Vec<(&str, BucketSchemaFieldType)> = fields
            .iter()
            .map(|(name, field)| (name.as_str(), field.r#type))
            .collect();
        assert_eq!(
            kinds,
            [
                ("a", BucketSchemaFieldType::Integer),
                ("b", BucketSchemaFieldType::Number),
                ("c", BucketSchemaFieldType::String),
                ("e", BucketSchemaFieldType::Boolean),
            ]
        );
    }
}
