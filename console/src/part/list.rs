use leptos::prelude::*;
use serde_json::json;

use super::{Empty, Icon, Rows, loaded, refusal};
use crate::{
    api::Api,
    load::{Load, Query},
    record::{Record, page},
    route::param,
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
    text: &'static str,
    #[prop(optional)] children: Option<Children>,
) -> AnyView {
    Effect::new(move |_| document().set_title(&format!("{} · Loupe", title.get())));
    view! {
        <div class="page-head">
            <div class="grow"><h1>{move || title.get()}</h1><p class="muted">{text}</p></div>
            {children.map(|children| view! { <div class="row">{children()}</div> })}
        </div>
    }
    .into_any()
}

/// The parts of a page that has several: each its word in the address below `at`, and its name.
pub fn tabs(
    label: &'static str,
    all: &'static [(&'static str, &'static str)],
    tab: Query,
    at: Signal<String>,
) -> AnyView {
    let all = all.iter().map(|(name, label)| {
        let here = move || tab.value.with(|tab| tab == name).then_some("page");
        let href = move || match *name {
            "" => at.get(),
            name => format!("{}?tab={name}", at.get()),
        };
        view! { <a href=href aria-current=here>{*label}</a> }.into_any()
    });
    view! { <nav class="tabs" aria-label=label>{all.collect::<Vec<_>>()}</nav> }.into_any()
}

/// A search box whose text lives in the address.
#[component]
pub fn SearchBox(query: Query, label: String) -> AnyView {
    view! {
        <form role="search" class="search-field" on:submit=move |event| event.prevent_default()>
            <Icon name="search"/>
            <input class="input" type="search" aria-label=label.clone() placeholder=label prop:value=move || query.value.get()
                on:change=move |event| query.set(&event_target_value(&event))/>
        </form>
    }
    .into_any()
}

/// What a list shows while there is nothing in it.
#[derive(Clone, Copy)]
pub struct Blank {
    pub icon: &'static str,
    pub title: &'static str,
    pub text: &'static str,
    /// Another page of the namespace where it can be changed: its piece of the address, and the words on the link.
    pub link: Option<(&'static str, &'static str)>,
}

/// What makes another row: a dialog, or a page of the namespace, under these words.
#[derive(Clone, Copy)]
pub enum Create {
    Dialog(&'static str, RwSignal<bool>),
    Page(&'static str, &'static str),
}

/// A page that is one list: head, search, table, and the dialog that makes another row.
#[component]
pub fn ListPage(
    title: &'static str,
    text: &'static str,
    load: Load,
    columns: &'static [Column],
    row: fn(Record) -> AnyView,
    blank: Blank,
    #[prop(optional)] search: Option<Query>,
    #[prop(optional)] offset: Option<Query>,
    #[prop(optional)] create: Option<Create>,
    /// More to do while nothing is there.
    #[prop(optional)]
    first: Option<ViewFn>,
    /// What is under way, above the list.
    #[prop(optional)]
    above: Option<ViewFn>,
    /// What rows do by themselves; a refusal of it stands above the list.
    #[prop(optional)]
    rows: Option<Rows>,
    /// The filters that hide rows, as far as an empty list is their doing.
    #[prop(optional)]
    picks: Vec<Query>,
    /// Filters beside the search.
    #[prop(optional)]
    children: Option<Children>,
) -> AnyView {
    let ns = param("ns");
    begin(create, load);
    let button = move |icon: bool| {
        let icon = icon.then(|| view! { <Icon name="plus"/> });
        create.map(|create| match create {
            Create::Dialog(label, open) => view! { <button type="button" class="btn primary" on:click=move |_| open.set(true)>{icon}{label}</button> }.into_any(),
            Create::Page(label, piece) => view! { <a class="btn primary" href=move || format!("/console/ns/{}/{piece}", ns.get())>{icon}{label}</a> }.into_any(),
        })
    };
    let empty = move || {
        if let Some(none) = none_match(search.iter().chain(&picks)) {
            return none;
        }
        let link = blank.link.map(|(piece, label)| view! { <a class="btn primary" href=format!("/console/ns/{}/{piece}", ns.get())>{label}</a> });
        let first = first.as_ref().map(|first| first.run());
        let plain = if first.is_some() { None } else { button(false) };
        view! { <Empty icon=blank.icon title=blank.title text=blank.text>{first}{plain}{link}</Empty> }.into_any()
    };
    view! {
        <Head title=title.to_owned() text>{button(true)}</Head>
        {above.map(|above| above.run())}
        {rows.map(|rows| refusal(rows.change))}
        {(search.is_some() || children.is_some()).then(|| view! {
            <div class="row filters">
                {search.map(|query| view! { <SearchBox query label=format!("Search {}", title.to_lowercase())/> })}
                {children.map(|children| children())}
            </div>
        })}
        <Listing load offset label=title columns row empty=ViewFn::from(empty)/>
    }
    .into_any()
}

/// Whoever comes to make one finds the dialog open, once what its form chooses from has come with the list.
fn begin(create: Option<Create>, load: Load) {
    if let Some(Create::Dialog(_, open)) = create {
        let asked = Query::new("create");
        Effect::new(move |_| {
            if asked.value.with(|asked| !asked.is_empty()) && load.value.with(Option::is_some) {
                open.set(true);
                asked.set("");
            }
        });
    }
}

/// What an empty list says, and offers, while one of these narrows it.
pub fn none_match<'a>(narrowing: impl Iterator<Item = &'a Query>) -> Option<AnyView> {
    let set = narrowing.copied();
    let set = set.filter(|one| one.value.with_untracked(|value| !value.is_empty()));
    let set: Vec<_> = set.collect();
    if set.is_empty() {
        return None;
    }
    let drop = move |_| set.iter().for_each(|one| one.set(""));
    Some(view! {
        <Empty icon="search" title="Nothing matches" text="Nothing here passes what you searched for and picked.">
            <button type="button" class="btn" on:click=drop>"Show everything"</button>
        </Empty>
    }
    .into_any())
}

/// Heads of columns with their classes.
type Heads = Vec<(String, &'static str)>;

/// The heads of columns, with those of `more` before the last one.
fn heads(columns: &[Column], more: Heads) -> Heads {
    let all = columns.iter();
    let all = all.map(|Column(name, class)| ((*name).to_owned(), *class));
    let mut all: Heads = all.collect();
    let at = all.len().saturating_sub(1);
    for one in more.into_iter().rev() {
        all.insert(at, one);
    }
    all
}

/// One list: skeleton, rows, nothing, refusal, pages. Rows stay while the next ones are fetched.
#[component]
pub fn Listing(
    load: Load,
    label: &'static str,
    columns: &'static [Column],
    row: fn(Record) -> AnyView,
    empty: ViewFn,
    offset: Option<Query>,
    /// Columns that come and go, before the last one: their heads and classes.
    #[prop(optional)]
    more: Option<Signal<Vec<(String, &'static str)>>>,
) -> AnyView {
    let fetching = Signal::derive(move || load.busy.get() && load.value.with(Option::is_some));
    let heads = move || heads(columns, more.map(|more| more.get()).unwrap_or_default());
    let wait = move || {
        let heads = heads();
        let lines = (0..5).map(|_| {
            let cells = heads
                .iter()
                .map(|_| cell("", view! { <span class="skeleton"></span> }.into_any()));
            line(cells.collect())
        });
        let lines = lines.collect();
        headed(label, heads, lines, fetching)
    };
    let rows = move |answer: Record| {
        if let Some(step) = nowhere(&answer) {
            return lost_namespace(step);
        }
        let (rows, total) = page(&answer);
        if rows.is_empty() && offset.is_none_or(|o| o.number() == 0) {
            return empty.run();
        }
        let shown = rows.len() as i64;
        let rows = rows.into_iter().map(row).collect();
        let pages = offset.map(|offset| pager(offset, shown, total));
        view! { {headed(label, heads(), rows, fetching)}{pages} }.into_any()
    };
    loaded(load, ViewFn::from(wait), rows)
}

/// What to do about a list that is empty because its namespace is not there.
fn nowhere(answer: &Record) -> Option<String> {
    let mut warnings = answer.list("warnings").into_iter();
    let one = warnings.find(|one| one.text("reason") == "unresolved")?;
    Some(one.text("next_step"))
}

fn lost_namespace(step: String) -> AnyView {
    view! {
        <div class="notice warn" role="alert">
            <strong>"There is no such namespace"</strong>
            <span>"It was removed, or it is of another organization. That the list is empty says nothing."</span>
            <span class="muted">{step}</span>
            <div class="row"><a class="btn small" href="/console/namespaces">"Choose a namespace"</a></div>
        </div>
    }
    .into_any()
}

/// A table, for those who see it and for those who hear it.
pub fn table(
    label: &'static str,
    columns: &[Column],
    rows: Vec<AnyView>,
    fetching: Signal<bool>,
) -> AnyView {
    headed(label, heads(columns, Vec::new()), rows, fetching)
}

fn headed(
    label: &'static str,
    heads: Heads,
    rows: Vec<AnyView>,
    fetching: Signal<bool>,
) -> AnyView {
    // On narrow windows each cell stands beneath the name of its column.
    let said = |at: usize| {
        heads
            .get(at)
            .map_or_else(String::new, |(name, _)| quoted(name))
    };
    let said: [String; NAMED] = std::array::from_fn(said);
    let [h1, h2, h3, h4, h5, h6, h7, h8, h9, h10] = said;
    let heads = heads.into_iter().map(|(name, class)| {
        let name = match name.is_empty() {
            true => view! { <span class="sr-only">"Actions"</span> }.into_any(),
            false => name.into_any(),
        };
        view! { <th scope="col" class=class>{name}</th> }.into_any()
    });
    view! {
        <div class="table-wrap" tabindex="0" role="region" aria-label=label class:refetching=move || fetching.get() aria-busy=move || fetching.get().to_string()>
            <table class="table" style=("--h1", h1) style=("--h2", h2) style=("--h3", h3) style=("--h4", h4) style=("--h5", h5)
                style=("--h6", h6) style=("--h7", h7) style=("--h8", h8) style=("--h9", h9) style=("--h10", h10)>
                <caption class="sr-only">{label}</caption>
                <thead><tr>{heads.collect::<Vec<_>>()}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

/// Columns whose names style sheets know.
const NAMED: usize = 10;

/// A name as style sheets have texts.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace(['"', '\\'], ""))
}

/// A row of cells.
pub fn line(cells: Vec<AnyView>) -> AnyView {
    view! { <tr>{cells}</tr> }.into_any()
}

/// A cell with anything in it.
pub fn cell(class: &'static str, inside: AnyView) -> AnyView {
    view! { <td class=class>{inside}</td> }.into_any()
}

/// A cell of text.
pub fn words(class: &'static str, text: String) -> AnyView {
    cell(class, text.into_any())
}

/// A cell of text over a smaller line.
pub fn two(text: String, under: String) -> AnyView {
    cell(
        "",
        view! { {text}<span class="sub">{under}</span> }.into_any(),
    )
}

/// A number, where there is one.
pub fn number(n: Option<i64>) -> AnyView {
    words("num nowrap", n.map(text::count).unwrap_or_default())
}

/// A name, and where it leads.
fn linked(href: Option<String>, name: String) -> AnyView {
    match href {
        Some(href) => view! { <a href=href>{name}</a> }.into_any(),
        None => name.into_any(),
    }
}

/// The cell that names the row, over its id.
pub fn name(href: Option<String>, name: String, id: String) -> AnyView {
    view! { <th scope="row">{linked(href, name)}<span class="sub mono">{id}</span></th> }.into_any()
}

/// The cell that names the row, over what it is.
pub fn titled(href: Option<String>, name: String, about: String) -> AnyView {
    view! { <th scope="row">{linked(href, name)}<span class="sub">{about}</span></th> }.into_any()
}

/// A picture, or a sign in its place: one that does not come is as good as none.
pub fn image(url: Option<String>, class: &'static str) -> AnyView {
    let lost = RwSignal::new(url.is_none());
    let url = url.unwrap_or_default();
    (move || match lost.get() {
        true => view! { <span class=class><Icon name="file"/></span> }.into_any(),
        false => view! { <img class=class src=url.clone() alt="" loading="lazy" on:error=move |_| lost.set(true)/> }.into_any(),
    })
    .into_any()
}

/// The cell that names the row, beside a small picture of it.
pub fn pictured(
    href: Option<String>,
    picture: Option<String>,
    name: String,
    id: String,
) -> AnyView {
    let thumb = image(picture, "thumb");
    // What has no name is called by its id: once is enough.
    let id = (id != name).then(|| view! { <span class="sub mono">{id}</span> });
    view! { <th scope="row"><span class="row nowrap">{thumb}<span class="grow">{linked(href, name)}{id}</span></span></th> }.into_any()
}

/// A cell of short words.
pub fn tags(all: Vec<String>) -> AnyView {
    let all = all
        .into_iter()
        .map(|one| view! { <span class="tag">{one}</span>" " }.into_any());
    cell("", all.collect::<Vec<_>>().into_any())
}

fn pager(offset: Query, shown: i64, total: i64) -> AnyView {
    let at = offset.number();
    if at == 0 && shown >= total {
        return ().into_any();
    }
    let turn = move |to: i64, label: &'static str, end: bool| {
        let to = if to > 0 {
            to.to_string()
        } else {
            String::new()
        };
        view! { <button type="button" class="btn small" disabled=end on:click=move |_| offset.set(&to)>{label}</button> }.into_any()
    };
    let words = match shown {
        0 => "Nothing is left on this page".to_owned(),
        _ => format!(
            "{} to {} of {}",
            text::count(at + 1),
            text::count(at + shown),
            text::count(total.max(at + shown))
        ),
    };
    view! {
        <nav class="pager" aria-label="Pages">
            <span>{words}</span>
            <span class="row">{turn(at - PAGE, "Previous", at == 0)}{turn(at + PAGE, "Next", at + shown >= total)}</span>
        </nav>
    }
    .into_any()
}

/// A list of the API: what is searched for and the page live in the address.
pub struct Searched {
    pub search: Query,
    pub offset: Query,
    pub load: Load,
}

/// Asks `path` anew whenever the address, or a signal that `api` reads, changes.
pub fn searched(path: &'static str, api: impl Fn() -> Api + 'static) -> Searched {
    let (search, offset) = (Query::new("q"), Query::new("offset"));
    let load = Load::new(move || {
        let body = match search.value.get() {
            q if q.is_empty() => json!({}),
            q => json!({"search": q}),
        };
        api().post(&format!("{path}{}", page_query(offset)), &body)
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
        offset.number()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_of_no_namespace_is_told_from_one_of_nothing() {
        let warned = json!({"results": [], "warnings": [{"resource": "namespace", "reason": "unresolved", "next_step": "send the id"}]});
        assert_eq!(nowhere(&Record(warned)).as_deref(), Some("send the id"));
        // Warnings of tolerated keys are texts.
        let other = json!({"results": [], "warnings": ["the key x is not known"]});
        assert_eq!(nowhere(&Record(other)), None);
        assert_eq!(nowhere(&Record(json!({"results": []}))), None);
    }
}
