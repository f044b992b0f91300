//! Members of collections that this version does not act on: that is said, not passed over. What asks for nothing is taken.

use loupe_wire::{CreateCollectionRequest, UpdateCollectionRequest, Value};

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
            "retriever_transform",
            request.retriever_transform.is_some(),
            "objects are not transformed by a retriever yet: name a feature_extractor",
        ),
    ])
}

/// # Errors
/// 422 for what a collection would not do from then on.
pub(super) fn check_change(request: &UpdateCollectionRequest) -> Result<()> {
    let tiering = request.tiering.as_ref();
    refuse(&[
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
