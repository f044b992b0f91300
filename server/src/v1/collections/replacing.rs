//! Collections that come from elsewhere: whether their extractors work here.

use loupe_wire::CollectionResponse;

use super::{cloning::as_sent, configuring};
use crate::{app::App, error::Result};

/// Whether the extractor of a stored collection can be used here, as it is told to.
///
/// # Errors
/// 422 where it cannot.
pub fn check_extractor(app: &App, collection: &CollectionResponse) -> Result<()> {
    let own = as_sent(collection.feature_extractor.clone());
    configuring::check(app, &own, false).map(drop)
}
