//! Tells an organization of its quotas before they hold it up: once when four fifths of one are taken, and once when nothing of
//! it is left. What falls below is told of again when it is reached again.

use std::collections::BTreeMap;

use loupe_wire::{AccountTier, NotificationPriority, NotificationType};
use serde_json::json;

use super::{Notice, notify};
use crate::{
    app::App,
    error::Result,
    limits::{
        self,
        quota::{self, Resource},
    },
    v1::{organizations::settings, tasks::name_of},
};

/// Percent of a quota that are told of, the highest first.
const LEVELS: [i64; 2] = [100, 80];

/// What an organization holds of one quota.
#[derive(Debug, Clone, Copy)]
struct Fill {
    resource: Resource,
    held: i64,
    limit: i64,
}

impl Fill {
    /// The highest of the levels that is reached; 0: none.
    fn level(self) -> i64 {
        let reached =
            |level: &i64| self.held.saturating_mul(100) >= self.limit.saturating_mul(*level);
        LEVELS.into_iter().find(reached).unwrap_or(0)
    }

    fn notice(self, tier: AccountTier) -> Notice {
        let Self {
            resource,
            held,
            limit,
        } = self;
        let kind = match resource {
            Resource::ApiKeys => "API keys",
            other => other.name(),
        };
        let level = self.level();
        let holds = format!("This organization has {held} of {limit} {kind}.");
        let (priority, title, content) = match level {
            100 => (
                NotificationPriority::High,
                format!("The quota of {kind} is used up"),
                format!("{holds} More are refused until some are removed or the plan allows more."),
            ),
            _ => (
                NotificationPriority::Medium,
                format!("{level} % of the quota of {kind} are used"),
                format!("{holds} What goes beyond is refused."),
            ),
        };
        Notice {
            kind: NotificationType::QuotaAlert,
            priority,
            title,
            content,
            about: json!({
                "resource": resource.name(), "threshold": level, "current": held, "limit": limit, "tier": name_of(tier),
            }),
        }
    }
}

/// The level of each quota that has reached one.
fn levels(fills: &[Fill]) -> BTreeMap<String, i64> {
    let level = |fill: &Fill| (fill.resource.name().to_owned(), fill.level());
    let reached = fills.iter().map(level).filter(|(_, level)| *level > 0);
    reached.collect()
}

/// Looks at the quotas of every organization, and tells of what was reached since the last look. One that cannot be looked at
/// costs the others nothing.
///
/// # Errors
/// The database does not answer.
pub async fn tick(app: &App) -> Result<()> {
    for (org_id, settings) in settings::all(app.db()).await? {
        if let Err(error) = look(app, &org_id, settings.quotas).await {
            tracing::warn!(%error, org_id, "the quotas of an organization could not be looked at");
        }
    }
    Ok(())
}

async fn look(app: &App, org_id: &str, seen: BTreeMap<String, i64>) -> Result<()> {
    let tier = limits::standing(app, org_id).await?.tier;
    let fills = fills(app, org_id, tier).await?;
    if levels(&fills) == seen {
        return Ok(());
    }
    tell(app, org_id.to_owned(), tier, fills, seen).await
}

/// What an organization holds of each quota that its tier has.
async fn fills(app: &App, org_id: &str, tier: AccountTier) -> Result<Vec<Fill>> {
    let mut fills = Vec::new();
    for resource in Resource::ALL {
        let Some(limit) = resource.of(tier) else {
            continue;
        };
        if let Some(held) = quota::held(app, org_id, resource).await? {
            fills.push(Fill {
                resource,
                held,
                limit,
            });
        }
    }
    Ok(fills)
}

/// Notes what is told of in the same transaction, so that it is told once. What somebody else noted since it was `seen` may
/// be younger than these fills: the next look tells.
async fn tell(
    app: &App,
    org_id: String,
    tier: AccountTier,
    fills: Vec<Fill>,
    seen: BTreeMap<String, i64>,
) -> Result<()> {
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut settings = settings::hold(tx, &org_id).await?;
                if settings.quotas != seen {
                    return Ok(());
                }
                settings.quotas = levels(&fills);
                settings::update(tx, &org_id, &settings, now).await?;
                for fill in fills {
                    let told = seen.get(fill.resource.name()).copied().unwrap_or(0);
                    if fill.level() > told {
                        notify(tx, &org_id, fill.notice(tier), now).await?;
                    }
                }
                Ok(())
            })
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_reached_and_not_passed() {
        let level = |held, limit| {
            let resource = Resource::Documents;
            let fill = Fill {
                resource,
                held,
                limit,
            };
            fill.level()
        };
        assert_eq!([level(0, 1), level(1, 1)], [0, 100]);
        assert_eq!(
            [level(3, 5), level(4, 5), level(5, 5), level(6, 5)],
            [0, 80, 100, 100]
        );
        assert_eq!([level(7_999, 10_000), level(8_000, 10_000)], [0, 80]);
    }
}
