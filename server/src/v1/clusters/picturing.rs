//! Pictures that lie as the ones before: so that who looks again finds what was there where it was.

use std::collections::HashMap;

use loupe_engine::cluster::aligned;
use loupe_wire::{ClusterModel, LayoutStability, LayoutStabilityApplied};

use super::{computing::Computed, members::Members, store::Run};

/// Lays the picture of an execution as it is asked for, by the execution or else by the cluster, and says what was done and
/// why not what was asked for.
pub fn lay(run: &mut Run, model: &ClusterModel, computed: &mut Computed, was: Option<&Members>) {
    let own = model
        .vector_config
        .as_ref()
        .and_then(|one| one.layout_stability);
    let asked = run.request.layout_stability.or(own).unwrap_or_default();
    let done = match asked {
        LayoutStability::None => Ok(LayoutStabilityApplied::None),
        LayoutStability::Transform => Err(
            "no layout is kept that new documents could be put into; align lays the picture onto the one before",
        ),
        LayoutStability::Align => align(computed, was).map(|()| LayoutStabilityApplied::Aligned),
    };
    let result = &mut run.result;
    result.layout_stability_applied = Some(done.unwrap_or(LayoutStabilityApplied::None));
    result.layout_stability_reason = done.err().map(Into::into);
}

/// Lays the picture onto that of the execution before.
fn align(computed: &mut Computed, was: Option<&Members>) -> Result<(), &'static str> {
    match computed.picture.first().map(Vec::len) {
        Some(2) => {}
        Some(_) => return Err("pictures of two dimensions are aligned, this one has three"),
        None => return Err("the execution has no picture"),
    }
    let Some(was) = was else {
        return Err("there is no execution before");
    };
    let drawn = was.members.iter().filter(|one| one.at.len() == 2);
    let places: HashMap<(&str, &str), &[f32]> = drawn
        .map(|one| {
            let id = (one.collection_id.as_str(), one.document_id.as_str());
            (id, one.at.as_slice())
        })
        .collect();
    let before: Vec<Option<&[f32]>> = computed
        .gathered
        .points
        .iter()
        .map(|point| {
            let id = (point.collection_id.as_str(), point.document_id.as_str());
            places.get(&id).copied()
        })
        .collect();
    match aligned(&mut computed.picture, &before) {
        true => Ok(()),
        false => Err("fewer than three of the documents are in a picture of the execution before"),
    }
}
