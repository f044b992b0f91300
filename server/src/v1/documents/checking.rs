//! Documents against the schema of their collection: refused, or told of, as the collection says. What documents take over
//! from elsewhere as they are stored is not asked about.

use loupe_engine::{
    ingest::{Failure, ObjectOutcome},
    store::Document,
};
use loupe_wire::{CollectionResponse, CollectionResponseSchemaValidation as Mode, Object, Value};
use serde_json::json;

use super::{
    schema::{Fault, Schema},
    writing::SYSTEM,
};
use crate::error::{ApiError, Result, Violation};

/// Where a document's `_internal` keeps what is not as the schema says.
const WARNINGS: &str = "schema_warnings";

/// The schema of a collection that checks its documents.
pub(super) struct Checks {
    schema: Schema,
    is_strict: bool,
}

impl Checks {
    /// None where the collection checks nothing.
    ///
    /// # Errors
    /// A schema that was written by another version and cannot be followed.
    pub(super) fn of(collection: &CollectionResponse) -> Result<Option<Self>> {
        let is_strict = match collection.schema_validation {
            Mode::Off => return Ok(None),
            Mode::Warn => false,
            Mode::Strict => true,
        };
        let schema = schema_of(collection)?;
        Ok(Some(Self { schema, is_strict }))
    }

    /// What a collection that is strict refuses; what another one is told of.
    pub(super) fn check(&self, payload: &Object) -> Result<Vec<String>, Vec<Fault>> {
        let faults = self.schema.faults(&own(payload));
        match self.is_strict && !faults.is_empty() {
            true => Err(faults),
            false => Ok(faults.iter().map(ToString::to_string).collect()),
        }
    }

    /// Admits documents of one object, or tells why it fails; `before` of its documents came before these.
    fn failure(&self, documents: &mut [Document], before: usize) -> Option<Failure> {
        documents.iter_mut().enumerate().find_map(|(place, one)| {
            let faults = self.admit(one).err()?;
            Some(Failure {
                error: format!("document {}: {}", before + place + 1, words(&faults)),
                error_type: "permanent",
            })
        })
    }

    /// Puts into the document's record what is not as the schema says, in place of what was there.
    pub(super) fn admit(&self, document: &mut Document) -> Result<(), Vec<Fault>> {
        let warnings = self.check(&document.payload)?;
        note(document, warnings);
        Ok(())
    }
}

/// The schema that a collection has for its documents.
///
/// # Errors
/// As [`Checks::of`].
pub(super) fn schema_of(collection: &CollectionResponse) -> Result<Schema> {
    Schema::read(&collection.document_schema).map_err(|fault| {
        let place = fault.path.join(".");
        let message = format!(
            "the collection's document_schema cannot be followed: {place}: {}",
            fault.msg
        );
        ApiError::bad_request("", message)
    })
}

/// Whether a member of a document is its maker's own, by its name.
pub fn is_own(name: &str) -> bool {
    !name.starts_with('_') && !SYSTEM.contains(&name)
}

/// The members of a document that are its maker's own.
pub(super) fn own(payload: &Object) -> Object {
    let members = payload.iter().filter(|(name, _)| is_own(name));
    members
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn note(document: &mut Document, warnings: Vec<String>) {
    let record = document.payload.get_mut("_internal");
    let Some(Value::Object(internal)) = record else {
        return;
    };
    match warnings.is_empty() {
        true => internal.remove(WARNINGS),
        false => internal.insert(WARNINGS.into(), json!(warnings)),
    };
}

/// Faults as words.
pub(super) fn words(faults: &[Fault]) -> String {
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    format!("the collection's schema: {}", told.join("; "))
}

/// Faults as the 422 list, of a document at this place of the body.
pub(super) fn refusal(place: &[&str], faults: Vec<Fault>) -> ApiError {
    let violations = faults.into_iter().map(|fault| {
        let inside = fault.path.iter().map(String::as_str);
        let path: Vec<&str> = place.iter().copied().chain(inside).collect();
        let msg = format!("the collection's schema expects {}", fault.expected);
        Violation::body(&path, fault.kind, msg, fault.found)
    });
    ApiError::Validation(violations.collect())
}

/// Checks a document that is the whole body of a request.
///
/// # Errors
/// The 422 list.
pub(super) async fn admit(
    collection: &CollectionResponse,
    mut document: Document,
) -> Result<Document> {
    let Some(checks) = Checks::of(collection)? else {
        return Ok(document);
    };
    let admitted = aside(move || checks.admit(&mut document).map(|()| document)).await?;
    admitted.map_err(|faults| refusal(&[], faults))
}

/// Checks on a thread of its own what may be large, so that other requests are answered meanwhile.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(ApiError::internal)
}

/// Fails the objects that documents were made of which the collection's schema refuses; what is there of them stays.
///
/// # Errors
/// As [`Checks::of`].
pub fn hold_back(collection: &CollectionResponse, outcomes: &mut [ObjectOutcome]) -> Result<()> {
    let Some(checks) = Checks::of(collection)? else {
        return Ok(());
    };
    for outcome in outcomes {
        let Ok(documents) = &mut outcome.documents else {
            continue;
        };
        if let Some(failure) = checks.failure(documents, 0) {
            outcome.documents = Err(failure);
        }
    }
    Ok(())
}

/// Why the collection's schema refuses some documents of one object, `before` of which came before these.
///
/// # Errors
/// As [`Checks::of`].
pub fn refused(
    collection: &CollectionResponse,
    documents: &mut [Document],
    before: usize,
) -> Result<Option<Failure>> {
    let checks = Checks::of(collection)?;
    Ok(checks.and_then(|checks| checks.failure(documents, before)))
}
