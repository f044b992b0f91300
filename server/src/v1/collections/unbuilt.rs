//! Members of collections that this version does not act on: that is said, not passed over. What asks for nothing is taken.

use loupe_wire::{
    CreateCollectionRequest, UpdateCollectionRequest, UpdateCollectionRequestSchemaValidation,
    Value,
};

use crate::error::{Result, Violation};

/// Of several members the first that is sent is refused.
fn refuse(members: &[(&str, bool, &str)]) -> Result<()> {
    match members.iter().find(|(_, is_sent, _)| *is_sent) {
        Some((member, _, msg)) => {
            Err(Violation::body(&[*member], "not_enabled", *msg, Value::Null).into())
        }
        None => Ok(()),
    }
}

const ENRICHMENTS: &str = "documents are not enriched by retrievers yet: apply a taxonomy, or write the fields with the documents API";
const SCHEDULE: &str = "collections have no schedule of their own yet: make a trigger with the action collection_trigger";

fn holds<T>(list: Option<&Vec<T>>) -> bool {
    list.is_some_and(|list| !list.is_empty())
}

/// # Errors
/// 422 for what a new collection would not do.
pub(super) fn check_new(request: &CreateCollectionRequest) -> Result<()> {
    refuse(&[
        (
            "features",
            holds(request.features.as_ref()),
            "a collection is not made from names of features yet: name the feature_extractor",
        ),
        (
            "retriever_enrichments",
            holds(request.retriever_enrichments.as_ref()),
            ENRICHMENTS,
        ),
        (
            "retriever_transform",
            request.retriever_transform.is_some(),
            "objects are not transformed by a retriever yet: name a feature_extractor",
        ),
        ("schedule", request.schedule.is_some(), SCHEDULE),
    ])
}

/// # Errors
/// 422 for what a collection would not do from then on.
pub(super) fn check_change(request: &UpdateCollectionRequest) -> Result<()> {
    use UpdateCollectionRequestSchemaValidation::{Off, Strict, Warn};
    let validates = match request.schema_validation {
        Some(Strict | Warn) => true,
        Some(Off) | None => false,
    };
    let tiering = request.tiering.as_ref();
    let checks = "documents are not checked against a schema of their own yet";
    refuse(&[
        (
            "retriever_enrichments",
            holds(request.retriever_enrichments.as_ref()),
            ENRICHMENTS,
        ),
        ("schedule", request.schedule.is_some(), SCHEDULE),
        (
            "document_schema",
            request
                .document_schema
                .as_ref()
                .is_some_and(|schema| !schema.is_empty()),
            checks,
        ),
        ("schema_validation", validates, checks),
        (
            "index_map",
            request
                .index_map
                .as_ref()
                .is_some_and(|map| !map.is_empty()),
            "vector indexes cannot be named anew yet: clone the collection",
        ),
        (
            "tiering",
            tiering.is_some_and(|one| one.enabled == Some(true) || one.idle_days.is_some()),
            "collections are not put away by themselves yet: PATCH …/lifecycle does it",
        ),
    ])
}
