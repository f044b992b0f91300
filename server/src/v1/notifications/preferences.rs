//! Which notifications reach people, and how: by type, in the console and by e-mail.

use indexmap::IndexMap;
use loupe_wire::{
    AuditAction, NotificationPreferencesResponse, NotificationType, Object, ResourceType,
    UpdatePreferencesRequest, Value,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::name_of;
use crate::{
    app::App,
    auth::Caller,
    error::{ApiError, Result, Violation},
    v1::{
        audit::{self, Change},
        organizations::settings,
    },
};

/// Every type, in the order of the interface.
const TYPES: [NotificationType; 13] = [
    NotificationType::PipelineSuccess,
    NotificationType::PipelineFailure,
    NotificationType::FeatureExtractionSuccess,
    NotificationType::FeatureExtractionFailure,
    NotificationType::SystemAlert,
    NotificationType::BillingAlert,
    NotificationType::QuotaAlert,
    NotificationType::AuditAlert,
    NotificationType::MaintenanceAlert,
    NotificationType::Custom,
    NotificationType::OnboardingNudge,
    NotificationType::EngagementNudge,
    NotificationType::FeatureTip,
];

/// Where notifications of one type go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    pub in_app: bool,
    /// To the organization's `notifications_email`.
    pub email: bool,
}

impl Default for Channels {
    fn default() -> Self {
        Self {
            in_app: true,
            email: false,
        }
    }
}

/// By type; those not named are as at first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Preferences(IndexMap<String, Channels>);

impl Preferences {
    /// Where notifications of a type go.
    pub fn of(&self, kind: NotificationType) -> Channels {
        self.0.get(&name_of(kind)).copied().unwrap_or_default()
    }

    fn read(sent: &Object) -> Result<Self> {
        let known: Vec<String> = TYPES.into_iter().map(name_of).collect();
        let mut read = IndexMap::new();
        for (kind, channels) in sent {
            if !known.contains(kind) {
                let msg = format!("no type of notification; there are {}", known.join(", "));
                return Err(fault(&[kind], "enum", msg, channels));
            }
            read.insert(kind.clone(), channels_of(kind, channels)?);
        }
        Ok(Self(read))
    }

    fn told(&self) -> NotificationPreferencesResponse {
        let told = |kind: NotificationType| (name_of(kind), json!(self.of(kind)));
        NotificationPreferencesResponse {
            preferences: TYPES.into_iter().map(told).collect(),
        }
    }
}

fn fault(path: &[&str], kind: &str, msg: impl Into<String>, input: &Value) -> ApiError {
    let path: Vec<&str> = ["preferences"].iter().chain(path).copied().collect();
    Violation::body(&path, kind, msg, input.clone()).into()
}

fn channels_of(kind: &str, sent: &Value) -> Result<Channels> {
    let Value::Object(sent) = sent else {
        let msg = "channels are an object such as {\"in_app\": true, \"email\": false}";
        return Err(fault(&[kind], "dict_type", msg, sent));
    };
    let mut channels = Channels::default();
    for (name, value) in sent {
        let channel = match name.as_str() {
            "in_app" => &mut channels.in_app,
            "email" => &mut channels.email,
            _ => {
                let msg = "no channel; there are in_app and email";
                return Err(fault(&[kind, name], "enum", msg, value));
            }
        };
        let Value::Bool(is_on) = value else {
            return Err(fault(&[kind, name], "bool_type", "true or false", value));
        };
        *channel = *is_on;
    }
    Ok(channels)
}

/// What the organization has set, for every type.
///
/// # Errors
/// The database does not answer.
pub async fn get(app: &App, caller: &Caller) -> Result<NotificationPreferencesResponse> {
    let settings = settings::find(app.db(), &caller.org_id).await?;
    Ok(settings.notifications.told())
}

/// Replaces what the organization has set.
///
/// # Errors
/// The 422 list for a type or a channel that there is not.
pub async fn update(
    app: &App,
    caller: &Caller,
    request: UpdatePreferencesRequest,
) -> Result<NotificationPreferencesResponse> {
    let preferences = Preferences::read(&request.preferences)?;
    let (caller, now) = (caller.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut settings = settings::hold(tx, &caller.org_id).await?;
                let before = std::mem::replace(&mut settings.notifications, preferences);
                settings::update(tx, &caller.org_id, &settings, now).await?;
                let change = Change {
                    action: AuditAction::OrganizationUpdated,
                    resource: (ResourceType::Organization, &caller.org_id),
                    changes: json!({
                        "notifications": { "before": before, "after": settings.notifications },
                    }),
                };
                audit::record(tx, &caller, change, now).await?;
                Ok(settings.notifications.told())
            })
        })
        .await
}
