//! Limits by kind of operation: what the organization has set for each of its keys, else what its plan allows.

use loupe_wire::{BaseRateLimits, OrganizationModelResponse, RateLimitOverrides};

use super::settings::Settings;
use crate::{app::App, limits};

/// The organization with the limits that hold. Stored are those that were set, and what every one begins with where none were.
pub fn shown(
    app: &App,
    mut organization: OrganizationModelResponse,
    settings: &Settings,
) -> OrganizationModelResponse {
    // Before it was kept whether they were set, they were where they differed.
    let set = settings.sets_rates || organization.rate_limits != BaseRateLimits::default();
    if !set {
        let tier = organization.account_type;
        organization.rate_limits = all(limits::rate_of(tier, app.config()).per_second);
    }
    organization
}

const fn all(figure: i64) -> BaseRateLimits {
    BaseRateLimits {
        metadata: figure,
        data: figure,
        search: figure,
        upload: figure,
        compute: figure,
    }
}

/// A kind that is not sent keeps its figure.
pub fn changed(was: &BaseRateLimits, sent: &RateLimitOverrides) -> BaseRateLimits {
    BaseRateLimits {
        metadata: sent.metadata.unwrap_or(was.metadata),
        data: sent.data.unwrap_or(was.data),
        search: sent.search.unwrap_or(was.search),
        upload: sent.upload.unwrap_or(was.upload),
        compute: sent.compute.unwrap_or(was.compute),
    }
}
