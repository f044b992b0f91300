//! Retrievers that a collection runs for documents as they come, and what the documents take over of the answers.

use futures::StreamExt as _;
use indexmap::IndexMap;
use loupe_engine::{
    filter::{value_at, values_at},
    stage::RunError,
    store::Document,
};
use loupe_wire::{
    CollectionResponse, EnrichmentInputMapping, InputMappingSourceSourceType as Source, Object,
    RetrieverEnrichmentConfig, RetrieverInputSchemaField, Value, WriteBackFieldMapping,
    WriteBackFieldMappingMode as Mode,
};
use serde_json::json;

use super::searching::Ready;
use crate::{
    app::App,
    auth::{Scope, Write},
    error::{ApiError, Result, Violation},
    list::parse_filter,
    v1::{documents, retrievers, taxonomies},
};

/// The member of a collection that this is about.
const MEMBER: &str = "retriever_enrichments";
/// Retrievers that one collection runs.
const MAX_RETRIEVERS: usize = 10;
/// Inputs, and fields, of one of them.
const MAX_FIELDS: usize = 50;
/// Pieces of the name of a field that is written.
const MAX_STEPS: usize = 8;
/// Documents of one answer that fields are taken from.
const TAKEN: usize = 100;
/// Bytes of a value that is taken over, as JSON: documents are kept in memory until a group of them is written.
const MAX_VALUE: usize = 64 << 10;
/// Documents that searches run for at once.
const AT_ONCE: usize = 4;
/// How long one search may take, whatever its retriever says.
const LONGEST_MS: u64 = 30_000;
/// When a retriever runs that does not say it: last.
const LAST: i64 = 4;

/// Checks what a collection is to run, and puts ids in place of names.
///
/// # Errors
/// 404 for what is not there, 403 for what is out of the key's scopes, the 422 list for inputs that the retriever does not
/// take, fields that cannot be written and filters that cannot be read.
pub(super) async fn check(
    app: &App,
    scope: &Scope<Write>,
    enrichments: Option<Vec<RetrieverEnrichmentConfig>>,
) -> Result<Option<Vec<RetrieverEnrichmentConfig>>> {
    let Some(mut enrichments) = enrichments else {
        return Ok(None);
    };
    if enrichments.len() > MAX_RETRIEVERS {
        let msg = format!("a collection runs at most {MAX_RETRIEVERS} retrievers");
        let sent = enrichments.len().into();
        return Err(fault(&[MEMBER], &[], "too_long", msg, sent));
    }
    for (place, one) in enrichments.iter_mut().enumerate() {
        let place = place.to_string();
        let base = [MEMBER, place.as_str()];
        let retriever = retrievers::known(app, scope, &one.retriever_id).await?;
        one.retriever_id.clone_from(&retriever.id);
        if one
            .execution_phase
            .is_some_and(|phase| !(1..=LAST).contains(&phase))
        {
            let input = one.execution_phase.into();
            let msg = "must be between 1 and 4";
            return Err(fault(&base, &["execution_phase"], "range", msg, input));
        }
        check_inputs_of(&base, &one.input_mappings, &retriever.input_schema)?;
        check_fields(&base, &one.write_back_fields)?;
        if let Some(filter) = &one.scroll_filters {
            parse_filter(&filter.0, "retriever_enrichments")?;
        }
    }
    Ok(Some(enrichments))
}

/// A fault at a place below the member that `base` leads to.
fn fault(
    base: &[&str],
    path: &[&str],
    kind: &str,
    msg: impl Into<String>,
    input: Value,
) -> ApiError {
    Violation::body(&[base, path].concat(), kind, msg, input).into()
}

/// Whether inputs with these names can be made of a document.
///
/// # Errors
/// The 422 list, below `base`.
pub(super) fn check_inputs_of(
    base: &[&str],
    mappings: &[EnrichmentInputMapping],
    known: &IndexMap<String, RetrieverInputSchemaField>,
) -> Result<()> {
    if mappings.is_empty() || mappings.len() > MAX_FIELDS {
        let msg = format!("map 1 to {MAX_FIELDS} inputs of the retriever");
        let sent = mappings.len().into();
        return Err(fault(base, &["input_mappings"], "value_error", msg, sent));
    }
    for (number, mapping) in mappings.iter().enumerate() {
        let number = number.to_string();
        if !known.is_empty() && !known.contains_key(&mapping.input_key) {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let msg = format!(
                "the retriever has no such input; it has: {}",
                names.join(", ")
            );
            let path = ["input_mappings", &number, "input_key"];
            let input = mapping.input_key.as_str().into();
            return Err(fault(base, &path, "value_error", msg, input));
        }
        let source = &mapping.source;
        let (member, kind, msg) = match source.source_type {
            Source::DocumentField if is_empty(source.path.as_deref()) => {
                ("path", "missing", "name the field of the document")
            }
            Source::Constant if source.value.as_ref().is_none_or(Value::is_null) => {
                ("value", "missing", "send the value")
            }
            Source::SourceBlob => {
                let msg = "files of documents cannot be inputs yet: map a field of theirs";
                ("source_type", "not_enabled", msg)
            }
            Source::DocumentField | Source::Constant => continue,
        };
        let path = ["input_mappings", &number, "source", member];
        return Err(fault(base, &path, kind, msg, Value::Null));
    }
    Ok(())
}

/// Whether what is found can be written into these fields.
///
/// # Errors
/// The 422 list, below `base`.
pub(super) fn check_fields(base: &[&str], fields: &[WriteBackFieldMapping]) -> Result<()> {
    if fields.is_empty() || fields.len() > MAX_FIELDS {
        let msg = format!("write 1 to {MAX_FIELDS} fields");
        let path = ["write_back_fields"];
        return Err(fault(base, &path, "value_error", msg, fields.len().into()));
    }
    for (number, field) in fields.iter().enumerate() {
        let number = number.to_string();
        let path = |member: &'static str| ["write_back_fields", number.as_str(), member];
        if is_empty(Some(&field.source_field)) {
            let (path, msg) = (
                path("source_field"),
                "name the field of what the retriever finds",
            );
            return Err(fault(base, &path, "missing", msg, Value::Null));
        }
        let target = field.target_field.as_str();
        let mut steps = target.split('.');
        let first = steps.clone().next().unwrap_or_default();
        if !documents::is_own(first)
            || steps.clone().count() > MAX_STEPS
            || steps.any(str::is_empty)
        {
            let msg = "a field of the document's own, its pieces between dots";
            let path = path("target_field");
            return Err(fault(base, &path, "value_error", msg, target.into()));
        }
    }
    Ok(())
}

fn is_empty(text: Option<&str>) -> bool {
    text.is_none_or(|text| text.trim().is_empty())
}

/// Runs the retrievers of a collection for documents before they are stored, one after another. A document is never lost for
/// a retriever: what goes wrong is told in the document's record.
///
/// # Errors
/// What may pass, while the documents are `tried_again`; the database does not answer.
pub async fn enrich(
    app: &App,
    scope: &Scope<Write>,
    collection: &CollectionResponse,
    documents: &mut [Document],
    tried_again: bool,
) -> Result<()> {
    let all = collection.retriever_enrichments.iter().flatten();
    let mut wanted: Vec<&RetrieverEnrichmentConfig> = all.filter(|one| one.enabled).collect();
    wanted.sort_by_key(|one| (one.execution_phase.unwrap_or(LAST), -one.priority));
    for config in wanted {
        let step = Step { app, scope, config };
        step.run(documents, tried_again).await?;
    }
    Ok(())
}

/// One retriever being run for documents.
struct Step<'a> {
    app: &'a App,
    scope: &'a Scope<Write>,
    config: &'a RetrieverEnrichmentConfig,
}

impl Step<'_> {
    async fn run(&self, documents: &mut [Document], tried_again: bool) -> Result<()> {
        let meant = self.meant(documents)?;
        if meant.is_empty() {
            return Ok(());
        }
        let id = &self.config.retriever_id;
        let ready = match Ready::of(self.app, self.scope, id, LONGEST_MS).await {
            Ok(ready) => ready,
            Err(error) if !error.is_transient() => {
                let said = json!({ "error": error.message() });
                meant
                    .iter()
                    .for_each(|(place, _)| self.note(&mut documents[*place], &said));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let searches: Vec<_> = meant
            .iter()
            .map(|(_, value)| self.search(&ready, value))
            .collect();
        let found: Vec<_> = futures::stream::iter(searches)
            .buffered(AT_ONCE)
            .collect()
            .await;
        for ((place, _), found) in meant.into_iter().zip(found) {
            let document = &mut documents[place];
            match found {
                Ok(values) => self.take(document, values),
                Err(error) => {
                    let error = retrievers::run_error(error);
                    if tried_again && error.is_transient() {
                        return Err(error);
                    }
                    self.note(document, &json!({ "error": error.message() }));
                }
            }
        }
        Ok(())
    }

    /// Places of the documents that are meant, with the documents as rows of retrievers are.
    fn meant(&self, documents: &[Document]) -> Result<Vec<(usize, Value)>> {
        let filter = self.config.scroll_filters.as_ref();
        let filter = filter.map(|filter| parse_filter(&filter.0, "scroll_filters"));
        let matcher = filter.transpose()?.map(|filter| filter.matcher());
        let rows = documents.iter().map(row).enumerate();
        let passes = |row: &Value| matcher.as_ref().is_none_or(|one| one.matches(row));
        Ok(rows.filter(|(_, row)| passes(row)).collect())
    }

    /// What a document takes over, field by field, of what the retriever finds for it: the document itself is not found.
    /// Nothing where the document has none of the fields that are asked for.
    async fn search(
        &self,
        ready: &Ready,
        document: &Value,
    ) -> Result<Vec<Option<Value>>, RunError> {
        let Some(sent) = inputs(&self.config.input_mappings, document) else {
            return Ok(Vec::new());
        };
        let found = ready.search(self.app, self.scope, &sent, None, TAKEN + 1);
        let outcome = found.await?;
        let own = document.get("document_id");
        let found = outcome.documents.into_iter().map(Value::Object);
        let others = found.filter(|one| own.is_none() || one.get("document_id") != own);
        let found: Vec<Value> = others.take(TAKEN).collect();
        let fields = self.config.write_back_fields.iter();
        Ok(fields.map(|field| value_of(field, &found)).collect())
    }

    /// Writes what was found for each field into a document, and into its record what was written.
    fn take(&self, document: &mut Document, values: Vec<Option<Value>>) {
        let mut written = Vec::new();
        for (field, value) in self.config.write_back_fields.iter().zip(values) {
            if let Some(value) = value {
                put(&mut document.payload, &field.target_field, value);
                written.push(field.target_field.as_str());
            }
        }
        if written.is_empty() {
            return;
        }
        let at = self.app.clock().now().to_rfc3339();
        self.note(document, &json!({ "enriched_fields": written, "at": at }));
        document.keywords = Some(taxonomies::keywords_with(document));
    }

    /// Puts what the retriever said into the record of a document, in place of what it said before.
    fn note(&self, document: &mut Document, said: &Value) {
        let id = self.config.retriever_id.as_str();
        let mut said = said.clone();
        said["retriever_id"] = id.into();
        let whose = ("retriever_id", id);
        documents::note_processing(document, "retriever_enrichments", whose, [said]);
    }
}

fn row(document: &Document) -> Value {
    let mut row = document.payload.clone();
    row.insert("document_id".into(), document.document_id.as_str().into());
    let collection_id = document.collection_id.as_str().into();
    row.insert("collection_id".into(), collection_id);
    row.into()
}

/// The inputs that the mappings make of a document; none where it has no field of those that are named.
pub(super) fn inputs(mappings: &[EnrichmentInputMapping], document: &Value) -> Option<Object> {
    let (mut inputs, mut named, mut there) = (Object::new(), 0, 0);
    for mapping in mappings {
        let source = &mapping.source;
        let value = match source.source_type {
            Source::Constant => source.value.clone(),
            Source::DocumentField => {
                let found = value_at(document, source.path.as_deref().unwrap_or_default());
                let found = found.filter(|value| !value.is_null());
                named += 1;
                there += usize::from(found.is_some());
                found.cloned()
            }
            // Refused when a collection is told to run it.
            Source::SourceBlob => None,
        };
        if let Some(value) = value {
            inputs.insert(mapping.input_key.clone(), value);
        }
    }
    (named == 0 || there > 0).then_some(inputs)
}

/// What a field becomes: of the first document found that has it, or of all. Nothing where that is too large to be kept.
pub(super) fn value_of(field: &WriteBackFieldMapping, found: &[Value]) -> Option<Value> {
    let each = found
        .iter()
        .flat_map(|one| values_at(one, &field.source_field));
    let mut values = each.filter(|value| !value.is_null());
    let value: Option<Value> = match field.mode {
        Mode::First => values.next().cloned(),
        Mode::AllAsArray => {
            let all: Vec<Value> = values.take(TAKEN).cloned().collect();
            (!all.is_empty()).then_some(Value::Array(all))
        }
        Mode::Concat => {
            let words = values.take(TAKEN).map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            let words: Vec<String> = words.collect();
            (!words.is_empty()).then(|| words.join(" ").into())
        }
    };
    value.filter(|value| value.to_string().len() <= MAX_VALUE)
}

/// Sets a member by its dot path, making the objects on the way.
pub(super) fn put(payload: &mut Object, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            payload.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inside = payload.entry(first).or_insert_with(|| json!({}));
            if !inside.is_object() {
                *inside = json!({});
            }
            if let Value::Object(inside) = inside {
                put(inside, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_from_the_first_that_has_them_or_from_all() {
        let found = [
            json!({"name": null}),
            json!({"name": "a", "tags": [{"t": 1}, {"t": 2}]}),
            json!({"name": "b", "long": "x".repeat(MAX_VALUE)}),
        ];
        let taken = |source: &str, mode: Mode| {
            let field = WriteBackFieldMapping {
                source_field: source.into(),
                target_field: "x".into(),
                mode,
            };
            value_of(&field, &found)
        };
        assert_eq!(taken("name", Mode::First), Some(json!("a")));
        assert_eq!(taken("name", Mode::AllAsArray), Some(json!(["a", "b"])));
        assert_eq!(taken("name", Mode::Concat), Some(json!("a b")));
        assert_eq!(taken("tags.t", Mode::Concat), Some(json!("1 2")));
        assert_eq!(taken("none", Mode::AllAsArray), None);
        assert_eq!(taken("long", Mode::First), None);
        let mut payload = Object::new();
        put(&mut payload, "a.b", json!(1));
        put(&mut payload, "a.c", json!(2));
        put(&mut payload, "a.b.d", json!(3));
        assert_eq!(
            Value::Object(payload),
            json!({"a": {"b": {"d": 3}, "c": 2}})
        );
    }
}
