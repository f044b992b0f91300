use leptos::prelude::*;
use loupe_wire::{PublishedRetrieverListResponse, PublishedRetrieverResponse};

use super::publish::Address;
use crate::{
    load::{Load, Query, param},
    part::*,
    session::use_session,
};

#[component]
pub fn Published() -> impl IntoView {
    let session = use_session();
    let ns = param("ns");
    let offset = Query::new("offset");
    let load = Load::new(move || {
        let (api, path) = (session.api_in(ns.get()), format!("/v1/retrievers/published?limit=50&offset={}", offset.value.get().parse::<i64>().unwrap_or(0)));
        async move { api.get::<PublishedRetrieverListResponse>(&path).await.map(|all| (all.results, all.total)) }
    });
    let empty = move || view! {
        <Empty icon="globe" title="No page yet" text="Publish a retriever and everyone who has the address can search it, without an account.">
            <a class="btn primary" href=format!("/console/ns/{}/retrievers", ns.get_untracked())>"To the retrievers"</a>
        </Empty>
    }.into_any();
    view! {
        <Head title="Published pages" text="Retrievers that everyone can search."/>
        <Listing load offset label="Published pages" empty=empty.into() row=move |one| row(ns.get_untracked(), one)
            columns=vec![Column("Title", ""), Column("Address", ""), Column("State", ""), Column("Published", "")]/>
    }
}

fn row(ns: String, one: PublishedRetrieverResponse) -> AnyView {
    view! {
        <tr>
            <th scope="row"><a href=format!("/console/ns/{ns}/retrievers/{}", one.retriever_id)>{one.display_config.title}</a><span class="sub mono">{one.public_id}</span></th>
            <td><Address name=one.public_name/></td>
            <td><Badge status=if one.is_active { "published" } else { "inactive" }/></td>
            <td class="nowrap"><When at=Some(one.created_at)/></td>
        </tr>
    }
    .into_any()
}
