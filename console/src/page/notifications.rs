mod preferences;

use leptos::prelude::*;
use serde_json::json;

use crate::{
    load::{Load, Query},
    part::*,
    record::Record,
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Notification", ""),
    Column("Priority", ""),
    Column("When", ""),
    Column("", "actions"),
];

const BLANK: Blank = Blank {
    icon: "bell",
    title: "No notification",
    text: "Batches that end, triggers that stop and receivers that do not answer are told here, for 90 days.",
    link: None,
};

const READ: &[&str] = &["unread", "read"];
const PRIORITIES: &[&str] = &["critical", "high", "medium", "low"];

/// What this server tells of; the other kinds of the interface are never sent by it.
const KINDS: &[&str] = &[
    "pipeline_success",
    "pipeline_failure",
    "system_alert",
    "billing_alert",
    "quota_alert",
    "custom",
];

pub fn notifications() -> AnyView {
    let session = use_session();
    let (read, kind, priority, offset) = (
        Query::new("read"),
        Query::new("type"),
        Query::new("priority"),
        Query::new("offset"),
    );
    let load = Load::new(move || {
        let mut body = json!({});
        for (member, query) in [("notification_type", kind), ("priority", priority)] {
            if !query.value.with(String::is_empty) {
                body[member] = query.value.get().into();
            }
        }
        match read.value.get().as_str() {
            "" => {}
            word => body["read"] = (word == "read").into(),
        }
        let path = format!("/v1/notifications/list{}", page_query(offset));
        session.api().post(&path, &body)
    });
    let rows = Rows::new(load);
    provide_context(rows);
    let all = rows.runner("Everything is marked as read");
    let ways = RwSignal::new(false);
    let read_all = move |_| all(session.api().post("/v1/notifications/read/all", &json!({})));
    view! {
        <ListPage title="Notifications" text="What happened on this server that you should know." load offset columns=COLUMNS row blank=BLANK rows
            picks=vec![read, kind, priority]>
            <Pick query=read label="Read" all="Read and unread" options=READ/>
            <Pick query=kind label="Kind" all="Every kind" options=KINDS/>
            <Pick query=priority label="Priority" all="Every priority" options=PRIORITIES/>
            <button type="button" class="btn" on:click=read_all>"Mark all as read"</button>
            <button type="button" class="btn" on:click=move |_| ways.set(true)>"Preferences"</button>
        </ListPage>
        {preferences::preferences(ways)}
    }
    .into_any()
}

/// Where to look at what it is about, and the words on the link.
fn about(one: &Record) -> Option<(String, &'static str)> {
    let about = one.record("metadata");
    let ns = about.text("namespace_id");
    let within = |piece: String| format!("/console/ns/{ns}/{piece}");
    if let Some(batch) = about.opt("batch_id") {
        let at = text::batch(&ns, &about.text("bucket_id"), &batch);
        return Some((format!("/console{at}"), "Open the batch"));
    }
    if let Some(id) = about.opt("webhook_id") {
        return Some((format!("/console/webhooks?log={id}"), "Open its log"));
    }
    if let Some(id) = about.opt("alert_id") {
        // One without a namespace is the organization's.
        let href = match ns.is_empty() {
            true => format!("/console/alerts?log={id}"),
            false => within(format!("alerts?log={id}")),
        };
        return Some((href, "Open the alert"));
    }
    if let Some(id) = about.opt("cluster_id") {
        return Some((within(format!("clusters/{id}")), "Open the cluster"));
    }
    if let Some(id) = about.opt("taxonomy_id") {
        return Some((within(format!("taxonomies/{id}")), "Open the taxonomy"));
    }
    if let (Some(_), Some(bucket)) = (about.opt("sync_config_id"), about.opt("bucket_id")) {
        return Some((
            within(format!("buckets/{bucket}?tab=syncs")),
            "Open the syncs",
        ));
    }
    if about.opt("snapshot_id").is_some() {
        return Some((within("snapshots".to_owned()), "Open the snapshots"));
    }
    let id = about.opt("trigger_id")?;
    Some((within(format!("triggers?log={id}")), "Open its history"))
}

fn row(one: Record) -> AnyView {
    let (session, rows): (_, Rows) = (use_session(), expect_context());
    let (id, title, unread) = (one.text("id"), one.text("title"), !one.flag("read"));
    let path = format!("/v1/notifications/{}", text::escape(&id));
    let mark = {
        let path = path.clone();
        move || session.api().post(&format!("{path}/read"), &json!({}))
    };
    let read = unread.then(|| rows.call("Mark as read", &title, "Marked as read", mark.clone()));
    let remove = rows.call("Remove", &title, "The notification is removed", move || {
        session.api().delete(&path)
    });
    let follow = rows.runner("Marked as read");
    let link = about(&one).map(|(href, label)| {
        // Who goes and looks has read it.
        let go = move |_| {
            if unread {
                follow(mark());
            }
        };
        view! { <a href=href on:click=go>{label}</a> }
    });
    let dot = unread.then(|| view! { <span class="dot" role="img" aria-label="Unread"></span> });
    let mailed = one.record("delivery_status").opt("email");
    let mailed = mailed.map(
        |state| view! { <span class="sub">{format!("E-mail: {}", text::words(&state))}</span> },
    );
    let said = view! {
        <th scope="row" class="note">{dot}{title}<span class="sub">{one.text("content")}" "{link}</span>{mailed}</th>
    };
    let priority = one.text("priority");
    line(vec![
        said.into_any(),
        cell("", badge(&priority)),
        cell("nowrap", when(one.opt("created_at"))),
        cell("actions", view! { {read}{remove} }.into_any()),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{Notification, NotificationPriority, NotificationType};

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn a_notification_leads_to_what_it_is_about() {
        let with = |metadata: serde_json::Value| {
            let metadata = metadata.as_object().cloned().expect("an object");
            about(&sent(&Notification {
                metadata: metadata.into_iter().collect(),
                ..Default::default()
            }))
        };
        let (href, _) =
            with(json!({"namespace_id": "ns_1", "bucket_id": "bkt_1", "batch_id": "btch_1"}))
                .expect("a batch");
        assert_eq!(href, "/console/ns/ns_1/batches/bkt_1/btch_1");
        let of_documents = json!({"namespace_id": "ns_1", "bucket_id": "", "batch_id": "btch_1"});
        let (href, _) = with(of_documents).expect("a batch of documents");
        assert_eq!(href, "/console/ns/ns_1/batches/btch_1");
        let (href, _) = with(json!({"webhook_id": "wh_1"})).expect("a webhook");
        assert_eq!(href, "/console/webhooks?log=wh_1");
        let (href, _) =
            with(json!({"namespace_id": "ns_1", "trigger_id": "trg_1"})).expect("a trigger");
        assert_eq!(href, "/console/ns/ns_1/triggers?log=trg_1");
        for (metadata, page) in [
            (
                json!({"namespace_id": "ns_1", "alert_id": "alt_1"}),
                "/console/ns/ns_1/alerts?log=alt_1",
            ),
            (
                json!({"namespace_id": null, "alert_id": "alt_1"}),
                "/console/alerts?log=alt_1",
            ),
            (
                json!({"namespace_id": "ns_1", "cluster_id": "clu_1"}),
                "/console/ns/ns_1/clusters/clu_1",
            ),
            (
                json!({"namespace_id": "ns_1", "taxonomy_id": "tax_1", "collection_id": "col_1"}),
                "/console/ns/ns_1/taxonomies/tax_1",
            ),
            (
                json!({"namespace_id": "ns_1", "bucket_id": "bkt_1", "sync_config_id": "sync_1"}),
                "/console/ns/ns_1/buckets/bkt_1?tab=syncs",
            ),
            (
                json!({"namespace_id": "ns_1", "snapshot_id": "snap_1"}),
                "/console/ns/ns_1/snapshots",
            ),
        ] {
            assert_eq!(with(metadata).expect("a page").0, page);
        }
        assert_eq!(with(json!({})), None);
    }

    #[test]
    fn every_filter_offered_exists() {
        for kind in KINDS {
            serde_json::from_value::<NotificationType>((*kind).into()).expect("a kind");
        }
        for priority in PRIORITIES {
            serde_json::from_value::<NotificationPriority>((*priority).into()).expect("a priority");
        }
    }
}
