use leptos::prelude::*;
use serde_json::json;

use super::{Explain, Icon};
use crate::{
    api::Api,
    load::{Load, Query},
    record::{Page, Record, page},
    text,
};

/// A column: its head and its class.
#[derive(Clone, Copy)]
pub struct Column(pub &'static str, pub &'static str);

const PAGE: i64 = 50;

/// The top of a page: what it is, what can be done.
#[component]
pub fn Head(
    #[prop(into)] title: Signal<String>,
    #[prop(into)] text: String,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    Effect::new(move |_| document().set_title(&format!("{} · Loupe", title.get())));
    view! {
        <div class="page-head">
            <div class="grow"><h1>{move || title.get()}</h1><p class="muted">{text}</p></div>
            {children.map(|children| view! { <div class="row">{children()}</div> })}
        </div>
    }
}

/// A search box whose text lives in the address.
#[component]
pub fn SearchBox(query: Query, #[prop(into)] label: String) -> impl IntoView {
    view! {
        <form role="search" class="search-field" on:submit=move |event| event.prevent_default()>
            <Icon name="search"/>
            <input class="input" type="search" aria-label=label.clone() placeholder=label prop:value=move || query.value.get()
                on:change=move |event| query.set(&event_target_value(&event))/>
        </form>
    }
}

/// One list: skeleton, rows, nothing, refusal, pages. Rows stay while the next ones are fetched.
#[component]
pub fn Listing(
    load: Load<Page>,
    #[prop(into)] label: String,
    columns: Vec<Column>,
    #[prop(into)] row: Callback<(Record,), AnyView>,
    empty: ViewFn,
    #[prop(optional)] offset: Option<Query>,
) -> impl IntoView {
    let width = columns.len();
    let heads = StoredValue::new(columns);
    let label = StoredValue::new(label);
    let table = move |rows: AnyView, busy: bool| {
        view! {
            <div class="table-wrap" tabindex="0" role="region" aria-label=label.get_value() aria-busy=busy.to_string()
                class:refetching=move || load.busy.get() && load.value.with(Option::is_some)>
                <table class="table">
                    <caption class="sr-only">{label.get_value()}</caption>
                    <thead><tr>{heads.with_value(|heads| heads.iter().map(|Column(name, class)| view! {
                        <th scope="col" class=*class>{match *name { "" => view! { <span class="sr-only">"Actions"</span> }.into_any(), name => name.into_any() }}</th>
                    }).collect_view())}</tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        }
    };
    move || match load.value.get() {
        None => {
            let lines = (0..5).map(|_| view! { <tr>{(0..width).map(|_| view! { <td><span class="skeleton"></span></td> }).collect_view()}</tr> });
            table(lines.collect_view().into_any(), true).into_any()
        }
        Some(Err(problem)) => {
            view! { <Explain problem retry=Callback::new(move |()| load.reload())/> }.into_any()
        }
        Some(Ok((rows, _))) if rows.is_empty() && offset.is_none_or(|o| o.number() == 0) => {
            empty.run()
        }
        Some(Ok((rows, total))) => {
            let shown = rows.len() as i64;
            let rows = rows.into_iter().map(|one| row.run((one,))).collect_view();
            view! { {table(rows.into_any(), false)} {offset.map(|offset| pager(offset, shown, total))} }.into_any()
        }
    }
}

fn pager(offset: Query, shown: i64, total: i64) -> AnyView {
    let at = offset.number();
    if at == 0 && shown >= total {
        return ().into_any();
    }
    let back = move |_| {
        offset.set(&if at > PAGE {
            (at - PAGE).to_string()
        } else {
            String::new()
        })
    };
    let on = move |_| offset.set(&(at + PAGE).to_string());
    view! {
        <nav class="pager" aria-label="Pages">
            <span>{format!("{} to {} of {}", text::count(if shown == 0 { 0 } else { at + 1 }), text::count(at + shown), text::count(total.max(at + shown)))}</span>
            <span class="row">
                <button type="button" class="btn small" disabled={at == 0} on:click=back>"Previous"</button>
                <button type="button" class="btn small" disabled={at + shown >= total} on:click=on>"Next"</button>
            </span>
        </nav>
    }
    .into_any()
}

/// A list of the API: what is searched for and the page live in the address.
pub struct Searched {
    pub search: Query,
    pub offset: Query,
    pub load: Load<Page>,
}

/// Asks `path` anew whenever the address, or a signal that `api` reads, changes.
pub fn searched(path: &'static str, api: impl Fn() -> Api + 'static) -> Searched {
    let (search, offset) = (Query::new("q"), Query::new("offset"));
    let load = Load::new(move || {
        let (api, path) = (api(), format!("{path}{}", page_query(offset)));
        let body = match search.value.get() {
            q if q.is_empty() => json!({}),
            q => json!({"search": q}),
        };
        async move { api.post(&path, &body).await.map(page) }
    });
    Searched {
        search,
        offset,
        load,
    }
}

/// The query of a list call.
pub fn page_query(offset: Query) -> String {
    format!(
        "?limit={PAGE}&offset={}&include_total=true",
        offset.value.with(|v| v.parse::<i64>().unwrap_or(0))
    )
}
