//! Limits by kind of operation: what the organization has set for each of its keys, else what its plan allows.

use loupe_wire::{BaseRateLimits, OrganizationModelResponse, RateLimitOverrides};

use super::settings::Settings;
use crate::{app::App, limits};

/// The kinds that the organization has set. They were once kept in the organization itself, all five where one was set, with
/// `sets_rates` beside them where those are what every organization begins with.
pub fn set(organization: &OrganizationModelResponse, settings: &Settings) -> RateLimitOverrides {
    let kept = &organization.rate_limits;
    if !settings.sets_rates && *kept == BaseRateLimits::default() {
        return settings.rates;
    }
    RateLimitOverrides {
        metadata: Some(kept.metadata),
        data: Some(kept.data),
        search: Some(kept.search),
        upload: Some(kept.upload),
        compute: Some(kept.compute),
    }
}

/// The organization with the limits that hold.
pub(super) fn shown(
    app: &App,
    mut organization: OrganizationModelResponse,
    settings: &Settings,
) -> OrganizationModelResponse {
    let plan = limits::rate_of(organization.account_type, app.config()).per_second;
    organization.rate_limits = held(plan, set(&organization, settings));
    organization
}

/// A kind that was not set has the plan's figure, and nothing is let through beyond it.
fn held(plan: i64, set: RateLimitOverrides) -> BaseRateLimits {
    let of = |figure: Option<i64>| figure.map_or(plan, |figure| figure.min(plan));
    BaseRateLimits {
        metadata: of(set.metadata),
        data: of(set.data),
        search: of(set.search),
        upload: of(set.upload),
        compute: of(set.compute),
    }
}

/// Sets the kinds that are sent; the others stay as they were, set or the plan's.
pub(super) fn change(
    organization: &mut OrganizationModelResponse,
    settings: &mut Settings,
    sent: &RateLimitOverrides,
) {
    let was = set(organization, settings);
    clear(organization, settings);
    settings.rates = RateLimitOverrides {
        metadata: sent.metadata.or(was.metadata),
        data: sent.data.or(was.data),
        search: sent.search.or(was.search),
        upload: sent.upload.or(was.upload),
        compute: sent.compute.or(was.compute),
    };
}

/// Takes away what was set, where and whenever it was kept.
pub(super) fn clear(organization: &mut OrganizationModelResponse, settings: &mut Settings) {
    organization.rate_limits = BaseRateLimits::default();
    settings.sets_rates = false;
    settings.rates = RateLimitOverrides::default();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(figure: i64) -> BaseRateLimits {
        BaseRateLimits {
            metadata: figure,
            data: figure,
            search: figure,
            upload: figure,
            compute: figure,
        }
    }

    #[test]
    fn what_was_kept_of_old_still_holds() {
        let fresh = OrganizationModelResponse::default();
        let old = OrganizationModelResponse {
            rate_limits: BaseRateLimits {
                search: 2,
                ..all(30)
            },
            ..fresh.clone()
        };
        let none: Settings = serde_json::from_str("{}").unwrap();
        let tens: Settings = serde_json::from_str(r#"{"sets_rates": true}"#).unwrap();
        assert_eq!(held(100, set(&fresh, &none)), all(100));
        assert_eq!(held(100, set(&fresh, &tens)), all(10));
        assert_eq!(held(100, set(&old, &none)), old.rate_limits);
        // A change writes them as they are kept today.
        let (mut changed, mut settings) = (old.clone(), none);
        let sent = RateLimitOverrides {
            data: Some(5),
            ..RateLimitOverrides::default()
        };
        change(&mut changed, &mut settings, &sent);
        let now = BaseRateLimits {
            data: 5,
            ..old.rate_limits
        };
        assert_eq!(changed.rate_limits, BaseRateLimits::default());
        assert_eq!(held(100, set(&changed, &settings)), now);
        clear(&mut changed, &mut settings);
        assert_eq!((changed, settings), (fresh, Settings::default()));
    }

    #[test]
    fn kinds_that_were_not_set_are_the_plans() {
        let (mut organization, mut settings) = Default::default();
        let one = RateLimitOverrides {
            search: Some(50),
            ..RateLimitOverrides::default()
        };
        change(&mut organization, &mut settings, &one);
        change(&mut organization, &mut settings, &Default::default());
        let kept = set(&organization, &settings);
        assert_eq!(kept, one);
        assert_eq!(
            held(100, kept),
            BaseRateLimits {
                search: 50,
                ..all(100)
            }
        );
        assert_eq!(held(10, kept), all(10));
    }
}
