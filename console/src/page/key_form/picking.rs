//! What a key can be held to by its id, offered by name. Whoever knows the id, or the start of it, writes that.

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::{Api, Problem},
    load::Load,
    record::{Record, items, page},
    session::use_session,
};

/// Where a kind is listed, and the members of its id and its name.
struct Listed {
    path: &'static str,
    id: &'static str,
    name: &'static str,
    /// Each namespace has its own.
    within: bool,
}

/// Namespaces that are looked into, so that a form stays a form.
const AT_MOST: usize = 20;

/// Kinds that have lists; of the others there are too many, or no ids.
fn listed(kind: &str) -> Option<Listed> {
    let (path, id, name, within) = match kind {
        "namespace" => (
            "/v1/namespaces/list",
            "namespace_id",
            "namespace_name",
            false,
        ),
        "bucket" => ("/v1/buckets/list", "bucket_id", "bucket_name", true),
        "collection" => (
            "/v1/collections/list",
            "collection_id",
            "collection_name",
            true,
        ),
        "retriever" => (
            "/v1/retrievers/list",
            "retriever_id",
            "retriever_name",
            true,
        ),
        "taxonomy" => ("/v1/taxonomies/list", "taxonomy_id", "taxonomy_name", true),
        "cluster" => ("/v1/clusters/list", "cluster_id", "cluster_name", true),
        "alert" => ("/v1/alerts/list", "alert_id", "name", true),
        "webhook" => (
            "/v1/organizations/webhooks/list",
            "webhook_id",
            "webhook_name",
            false,
        ),
        "storage_connection" => (
            "/v1/organizations/connections/list",
            "connection_id",
            "name",
            false,
        ),
        _ => return None,
    };
    Some(Listed {
        path,
        id,
        name,
        within,
    })
}

/// The ids and names of a kind.
async fn found(api: Api, kind: String) -> Result<Record, Problem> {
    let Some(of) = listed(&kind) else {
        return Ok(Record(json!([])));
    };
    let mut places = vec![api.clone()];
    if of.within {
        let spaces = api
            .post("/v1/namespaces/list?limit=100", &json!({}))
            .await?;
        let spaces = page(&spaces).0.into_iter().take(AT_MOST);
        let within = |one: Record| Api {
            namespace: one.opt("namespace_id"),
            ..api.clone()
        };
        places = spaces.map(within).collect();
    }
    let path = format!("{}?limit=100", of.path);
    let mut all: Vec<Value> = Vec::new();
    for place in places {
        let rows = page(&place.post(&path, &json!({})).await?).0;
        all.extend(rows.iter().map(|one| offered(one, &of)));
    }
    Ok(Record(all.into()))
}

fn offered(one: &Record, of: &Listed) -> Value {
    json!({"id": one.text(of.id), "name": one.text(of.name)})
}

/// What is offered for a field that is told of it by this id.
pub fn offers(id: String, kind: RwSignal<String>) -> AnyView {
    let session = use_session();
    let load = Load::new(move || found(session.api(), kind.get()));
    let options = move || {
        let all = load.good().unwrap_or_default();
        let all = items(&all.0).into_iter().map(|one| {
            view! { <option value=one.text("id")>{one.text("name")}</option> }.into_any()
        });
        all.collect::<Vec<_>>()
    };
    view! { <datalist id=id>{options}</datalist> }.into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::BucketResponse;

    use super::*;
    use crate::{page::key_form::draft::RESOURCES, record::tests::sent};

    #[test]
    fn what_is_listed_is_offered_by_its_id() {
        let bucket = BucketResponse {
            bucket_id: Some("bkt_1".into()),
            bucket_name: "films".into(),
            ..Default::default()
        };
        let of = listed("bucket").expect("buckets are listed");
        let offer = json!({"id": "bkt_1", "name": "films"});
        assert_eq!(offered(&sent(&bucket), &of), offer);
        let all = RESOURCES.into_iter().filter(|kind| listed(kind).is_some());
        assert_eq!(all.count(), 9);
    }
}
