//! What the channels of an alert name: webhooks of the organization, the bucket and the collection of a batch. What there
//! is not is refused when it is named, not when the alert fires.

use loupe_wire::{
    AlertNotificationConfig, DedupStrategy, NamespaceOperation, NotificationChannelConfig,
    ResourceType, Value, reading,
};

use super::{
    Place,
    channels::{Kind, fault},
    delivery::subscription,
};
use crate::{
    app::App,
    error::{Result, Violation},
    v1::{buckets::BUCKETS, collections::COLLECTIONS, webhooks::WEBHOOKS},
};

/// Checks what channels name. What the alert named `before` was there when it was named: an alert whose webhook was removed
/// can be changed still.
///
/// # Errors
/// 404 for what the organization does not have, 422 for a batch that no alert can make.
pub(super) async fn check(
    app: &App,
    place: &Place,
    channels: &[NotificationChannelConfig],
    before: &[NotificationChannelConfig],
) -> Result<()> {
    for (number, channel) in channels.iter().enumerate() {
        match Kind::read(&channel.channel_type) {
            Some(Kind::Message(_)) => {
                let named = webhook_of(channel);
                let is_known = |old: &NotificationChannelConfig| webhook_of(old) == named;
                if let Some(id) = named
                    && !before.iter().any(is_known)
                {
                    WEBHOOKS.find(app.db(), &place.caller.org_id, id).await?;
                }
            }
            Some(Kind::Batch) => check_batch(app, place, number, channel, before).await?,
            None => {}
        }
    }
    Ok(())
}

/// Channels have templates of their own.
///
/// # Errors
/// 422 for one that would be named from elsewhere.
pub(super) fn check_template(config: &AlertNotificationConfig) -> Result<()> {
    match &config.template_id {
        Some(id) => {
            let msg = "channels have their own: payload_template, blocks_template, body_template";
            let path = ["notification_config", "template_id"];
            Err(Violation::body(&path, "not_enabled", msg, id.as_str().into()).into())
        }
        None => Ok(()),
    }
}

/// The webhook that a channel names. Those with an address of their own are delivered there, whatever they call themselves.
fn webhook_of(channel: &NotificationChannelConfig) -> Option<&str> {
    let id = match &channel.config {
        Some(config) => subscription(channel, config),
        None => channel.channel_id.as_deref(),
    };
    id.filter(|id| !id.is_empty())
}

/// A member of what the channel is set to.
fn text<'c>(channel: &'c NotificationChannelConfig, name: &str) -> Option<&'c str> {
    let config = channel.config.as_ref()?;
    config.get(name).and_then(Value::as_str)
}

async fn check_batch(
    app: &App,
    place: &Place,
    number: usize,
    channel: &NotificationChannelConfig,
    before: &[NotificationChannelConfig],
) -> Result<()> {
    let Some(namespace_id) = &place.namespace_id else {
        let msg = "a batch is of one namespace: make the alert there";
        let input = channel.channel_type.as_str().into();
        return Err(fault(number, &["channel_type"], "value_error", msg, input));
    };
    let config = channel.config.as_ref();
    if let Some(dedup) = config.and_then(|config| config.get("dedup_strategy"))
        && !dedup.is_null()
        && reading::from_value::<DedupStrategy>(dedup).is_err()
    {
        let msg = "objects are taken up by skip, replace or force";
        let path = ["config", "dedup_strategy"];
        return Err(fault(number, &path, "enum", msg, dedup.clone()));
    }
    let names = |one: &NotificationChannelConfig| {
        let name = |member| text(one, member).map(ToOwned::to_owned);
        (name("bucket_id"), name("collection_id"))
    };
    let named = names(channel);
    if before.iter().any(|old| names(old) == named) {
        return Ok(());
    }
    if let (Some(bucket), Some(collection)) = named {
        let bucket = BUCKETS.find(app.db(), namespace_id, &bucket).await?;
        let operation = NamespaceOperation::ExecuteJob;
        place
            .caller
            .allow(ResourceType::Bucket, &bucket.id, operation)?;
        COLLECTIONS
            .find(app.db(), namespace_id, &collection)
            .await?;
    }
    Ok(())
}
