use leptos::prelude::*;

use super::publish::Address;
use crate::{
    load::{Load, Query, param},
    part::*,
    record::{Record, page},
    session::use_session,
};

#[component]
pub fn Published() -> impl IntoView {
    let session = use_session();
    let ns = param("ns");
    let offset = Query::new("offset");
    let load = Load::new(move || {
        let (api, path) = (
            session.api_in(ns.get()),
            format!(
                "/v1/retrievers/published?limit=50&offset={}",
                offset.value.get().parse::<i64>().unwrap_or(0)
            ),
        );
        async move { api.get(&path).await.map(page) }
    });
    let empty = move || {
        view! {
        <Empty icon="globe" title="No page yet" text="Publish a retriever and everyone who has the address can search it, without an account.">
            <a class="btn primary" href=format!("/console/ns/{}/retrievers", ns.get_untracked())>"To the retrievers"</a>
        </Empty>
    }.into_any()
    };
    view! {
        <Head title="Published pages" text="Retrievers that everyone can search."/>
        <Listing load offset label="Published pages" empty=empty.into() row=Callback::from(move |one| row(ns.get_untracked(), one))
            columns=vec![Column("Title", ""), Column("Address", ""), Column("State", ""), Column("Published", "")]/>
    }
}

fn row(ns: String, one: Record) -> AnyView {
    view! {
        <tr>
            <th scope="row"><a href=format!("/console/ns/{ns}/retrievers/{}", one.text("retriever_id"))>{one.record("display_config").text("title")}</a><span class="sub mono">{one.text("public_id")}</span></th>
            <td><Address name=one.text("public_name")/></td>
            <td><Badge status=if one.flag("is_active") { "published" } else { "inactive" }/></td>
            <td class="nowrap"><When at=one.opt("created_at")/></td>
        </tr>
    }
    .into_any()
}
