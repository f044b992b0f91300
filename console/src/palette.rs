//! The way to everything by a few letters: pages, what is there by its name, anything by its id. One key opens it.

use std::time::Duration;

use gloo_storage::{LocalStorage, Storage};
use leptos::{html, prelude::*};
use serde_json::{Value, json};
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::spawn_local;

use crate::{
    api::Answer,
    frame::{IN_NAMESPACE, OF_ORGANIZATION},
    leave::Unsaved,
    load::{Load, navigator},
    part::{Check, Icon, Modal, Skeletons},
    record::{Record, items},
    route::{self, Page},
    session::{Session, use_session},
    text::{batch, escape},
};

/// Where it is noted that the single key is not wanted.
const SINGLE: &str = "loupe.single_key";

/// Milliseconds of rest before names are asked for, and how many places are offered.
const REST: u32 = 200;
const AT_MOST: usize = 10;

/// After the first page, what was not asked for may be fetched.
const AT_REST: Duration = Duration::from_secs(4);

/// What is found by its name: the word in the address, the member of its id, and what it is called.
const KINDS: [(&str, &str, &str); 5] = [
    ("collections", "collection", "Collection"),
    ("retrievers", "retriever", "Retriever"),
    ("buckets", "bucket", "Bucket"),
    ("taxonomies", "taxonomy", "Taxonomy"),
    ("clusters", "cluster", "Cluster"),
];

/// Ids whose page can be told from the id, by their start: what stands before the id in the address.
const IDS: [(&str, &str); 6] = [
    ("col_", "collections/"),
    ("ret_", "retrievers/"),
    ("bkt_", "buckets/"),
    ("tax_", "taxonomies/"),
    ("clust_", "clusters/"),
    ("alt_", "alerts?log="),
];

/// What can be made from here: its words, and its page. A dialog opens with its page.
const MADE: [(&str, &str); 6] = [
    ("Create bucket", "buckets?create=1"),
    ("Create collection", "collections?create=1"),
    ("Create retriever", "new-retriever"),
    ("Create cluster", "clusters?create=1"),
    ("Create trigger", "triggers?create=1"),
    ("Create alert", "alerts?create=1"),
];

/// What can be done at once.
const DONE: [(&str, &str); 4] = [
    ("Colours: as the system", "!auto"),
    ("Colours: light", "!light"),
    ("Colours: dark", "!dark"),
    ("Sign out", "!out"),
];

/// What the palette is about.
#[derive(Clone, Copy)]
struct Around {
    open: RwSignal<bool>,
    namespace: Memo<Option<String>>,
    /// Whether a key without Ctrl opens it.
    single: RwSignal<bool>,
}

/// A place to go to, or a thing to do at once.
#[derive(Clone, PartialEq, Debug)]
struct Entry {
    label: String,
    about: String,
    /// An address below the base, or what is done at once behind an exclamation mark.
    to: String,
}

impl Entry {
    fn new(label: &str, about: &str, to: String) -> Self {
        Self {
            label: label.to_owned(),
            about: about.to_owned(),
            to,
        }
    }
}

/// The button in the top bar and the dialog that it opens. What is in the dialog comes after the first page, or when it is
/// wanted.
#[component]
pub fn Jump(namespace: Memo<Option<String>>) -> AnyView {
    let open = RwSignal::new(false);
    let refused = LocalStorage::raw().get_item(SINGLE).ok().flatten();
    let single = RwSignal::new(refused.as_deref() != Some("off"));
    provide_context(Around {
        open,
        namespace,
        single,
    });
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        if calls(&event, single.get_untracked()) && !in_dialog() {
            event.prevent_default();
            open.set(true);
        }
    });
    on_cleanup(move || keys.remove());
    let inside = RwSignal::new(None::<Page>);
    let fetch = move || {
        if inside
            .try_get_untracked()
            .is_some_and(|page| page.is_none())
        {
            spawn_local(async move {
                let _ = inside.try_set(Some(route::palette().await));
            });
        }
    };
    Effect::new(move |_| {
        if open.get() {
            fetch();
        }
    });
    // Letters that are typed before it is there would be lost, so it comes when the first page has long been.
    set_timeout(fetch, AT_REST);
    let shown = move || match inside.get() {
        None => view! { <Skeletons lines=3/> }.into_any(),
        Some(page) => untrack(page),
    };
    view! {
        <button type="button" class="btn jump-button" aria-label="Search or jump to" aria-keyshortcuts="Control+K" on:click=move |_| open.set(true)>
            <Icon name="search"/><span class="jump-words">"Search or jump to…"</span><kbd>"Ctrl K"</kbd>
        </button>
        <Modal open title="Search or jump to".to_owned() class="jump">{shown}</Modal>
    }
    .into_any()
}

/// A dialog that is open is finished first: some hold what is shown once.
fn in_dialog() -> bool {
    let open = document().query_selector("dialog[open]");
    open.is_ok_and(|found| found.is_some())
}

/// Whether a key calls for the palette: Ctrl or Cmd with K anywhere, a question mark where nobody types.
fn calls(event: &web_sys::KeyboardEvent, single: bool) -> bool {
    let key = event.key();
    if event.alt_key() || event.repeat() {
        return false;
    }
    if event.ctrl_key() || event.meta_key() {
        return !event.shift_key() && key.eq_ignore_ascii_case("k");
    }
    let at = event.target();
    let at = at.and_then(|at| at.dyn_into::<web_sys::Element>().ok());
    let typing = at.is_some_and(|at| at.matches("input, textarea, select").unwrap_or(false));
    single && key == "?" && !typing
}

/// What the dialog shows.
pub fn inside() -> AnyView {
    let Around {
        open, namespace, ..
    } = expect_context();
    let (session, unsaved) = (use_session(), expect_context::<Unsaved>());
    let go = navigator();
    let (typed, at) = (RwSignal::new(String::new()), RwSignal::new(0usize));
    let named = Load::settled(REST, move || {
        let words = typed.get().trim().to_owned();
        Some(by_name(session, namespace.get(), words))
    });
    let all = Memo::new(move |_| {
        let words = typed.get();
        let mut all = known(namespace.get().as_deref(), words.trim());
        // What was found for the words before these may not fit them.
        let named = named.good().map(|found| read(&found)).unwrap_or_default();
        all.extend(named.into_iter().filter(|one| fits(&one.label, &words)));
        all.truncate(AT_MOST);
        all
    });
    Effect::new(move |_| {
        typed.track();
        at.set(0);
    });
    // Names come a moment after the pages, below them: what somebody marked meanwhile stays marked.
    Effect::new(move |_| {
        if at.get_untracked() >= all.with(Vec::len) {
            at.set(0);
        }
    });
    let choose = move |n: usize| {
        let to = all.with_untracked(|all| all.get(n).map(|one| one.to.clone()));
        let Some(to) = to else { return };
        open.set(false);
        match to.strip_prefix('!') {
            None => go(&to),
            Some(what) => act(what, session, unsaved),
        }
    };
    let keys = move |event: web_sys::KeyboardEvent| pressed(&event, all, at, choose);
    let field = NodeRef::<html::Input>::new();
    Effect::new(move |_| {
        if let Some(field) = field.get() {
            let _ = field.focus();
        }
    });
    let some = move || all.with(|all| !all.is_empty());
    let active = move || some().then(|| format!("jump-{}", at.get()));
    let list = move || match some() {
        true => offered(all, at, choose),
        false => view! { <p class="muted">"Nothing has that name or id."</p> }.into_any(),
    };
    let told = move || match all.with(Vec::len) {
        1 => "1 place".to_owned(),
        many => format!("{many} places"),
    };
    view! {
        <input class="input" node_ref=field autofocus=true role="combobox" aria-label="Page, name or id" aria-autocomplete="list" aria-controls="jump-list"
            aria-expanded=move || some().to_string() aria-activedescendant=active placeholder="A page, a name or an id such as col_…"
            autocomplete="off" spellcheck="false" bind:value=typed on:keydown=keys/>
        {list}
        <p role="status" class="sr-only">{told}</p>
        {help()}
    }
    .into_any()
}

/// Does what needs no page.
fn act(what: &str, session: Session, unsaved: Unsaved) {
    match what {
        "out" if unsaved.may_leave() => session.sign_out(),
        "out" => {}
        theme => session.set_theme(theme),
    }
}

/// Arrows mark another place, Enter goes to the one that is marked.
fn pressed(
    event: &web_sys::KeyboardEvent,
    all: Memo<Vec<Entry>>,
    at: RwSignal<usize>,
    choose: impl Fn(usize),
) {
    let many = all.with_untracked(Vec::len);
    // A key that ends the writing of a sign is none of ours.
    if event.is_composing() || many == 0 {
        return;
    }
    match event.key().as_str() {
        "ArrowDown" => at.update(|at| *at = (*at + 1) % many),
        "ArrowUp" => at.update(|at| *at = (*at + many - 1) % many),
        "Enter" => choose(at.get_untracked()),
        _ => return,
    }
    event.prevent_default();
}

/// The places, of which one is marked.
fn offered(
    all: Memo<Vec<Entry>>,
    at: RwSignal<usize>,
    choose: impl Fn(usize) + Copy + Send + Sync + 'static,
) -> AnyView {
    let each = all.get().into_iter().enumerate().map(|(n, one)| {
        let marked = move || (at.get() == n).to_string();
        view! {
            <li id=format!("jump-{n}") role="option" aria-selected=marked on:click=move |_| choose(n)>
                <span class="truncate">{one.label}</span><span class="muted truncate">{one.about}</span>
            </li>
        }
        .into_any()
    });
    let each = each.collect::<Vec<_>>();
    view! { <ul id="jump-list" class="jump-list" role="listbox" aria-label="Places">{each}</ul> }
        .into_any()
}

/// Which keys there are, and that one of them can be switched off.
fn help() -> AnyView {
    let Around { single, .. } = expect_context();
    let set = move |on: bool| {
        let _ = LocalStorage::raw().set_item(SINGLE, if on { "on" } else { "off" });
        single.set(on);
    };
    view! {
        <p class="muted keys"><kbd>"↑"</kbd><kbd>"↓"</kbd>" choose, "<kbd>"Enter"</kbd>" goes there, "<kbd>"Esc"</kbd>" closes, "<kbd>"Ctrl K"</kbd>" opens this anywhere."</p>
        <p class="muted keys">"In a draft "<kbd>"Alt"</kbd>" with "<kbd>"↑"</kbd>" or "<kbd>"↓"</kbd>" moves a stage. In the review "<kbd>"A"</kbd>" accepts the first one, "<kbd>"C"</kbd>" corrects it, "<kbd>"R"</kbd>" rejects it."</p>
        <Check label="The question mark opens it, too" checked=single set/>
    }
    .into_any()
}

/// Whether every word is in the text.
fn fits(text: &str, words: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = words.split_whitespace();
    words.all(|word| text.contains(&word.to_lowercase()))
}

/// What can be told without asking: the page of an id, and pages by their names.
fn known(namespace: Option<&str>, words: &str) -> Vec<Entry> {
    let mut all: Vec<Entry> = by_id(namespace, words).into_iter().collect();
    let mut page = |label: &str, group: &str, to: String| {
        if fits(label, words) {
            all.push(Entry::new(label, group, to));
        }
    };
    if let Some(namespace) = namespace {
        for (group, links) in IN_NAMESPACE {
            for (piece, label, _) in links {
                page(label, group, format!("/ns/{}/{piece}", escape(namespace)));
            }
        }
    }
    for (piece, label, _) in OF_ORGANIZATION {
        page(label, "Organization", format!("/{piece}"));
    }
    page("Namespaces", "Organization", "/namespaces".to_owned());
    page("Notifications", "Organization", "/notifications".to_owned());
    // What is done stands below where one goes: nobody signs out by a slip.
    if let Some(namespace) = namespace {
        for (label, piece) in MADE {
            page(
                label,
                "Action",
                format!("/ns/{}/{piece}", escape(namespace)),
            );
        }
    }
    page("Create key", "Action", "/keys?create=1".to_owned());
    for (label, to) in DONE {
        page(label, "Action", to.to_owned());
    }
    all
}

/// The page of an id that tells its own kind.
fn by_id(namespace: Option<&str>, id: &str) -> Option<Entry> {
    if id.len() <= 6 || id.contains(char::is_whitespace) {
        return None;
    }
    let to = if id.starts_with("ns_") {
        format!("/ns/{}/collections", escape(id))
    } else if id.starts_with("app_") {
        format!("/apps/{}", escape(id))
    } else if id.starts_with("key_") {
        format!("/keys?key={}", escape(id))
    } else {
        let (_, piece) = IDS.iter().find(|(start, _)| id.starts_with(start))?;
        format!("/ns/{}/{piece}{}", escape(namespace?), escape(id))
    };
    Some(Entry::new(id, "By its id", to))
}

/// Asks for what has these words in its name. A list that this key may not read offers nothing.
fn by_name(session: Session, namespace: Option<String>, words: String) -> Answer {
    Box::pin(async move {
        let mut found: Vec<Value> = Vec::new();
        // A single letter is in every name.
        if words.chars().nth(1).is_none() {
            return Ok(Record(json!({ "results": found })));
        }
        let body = json!({ "search": words });
        let spaces = session
            .api()
            .post("/v1/namespaces/list?limit=5", &body)
            .await;
        for one in spaces.map(|all| all.list("results")).unwrap_or_default() {
            let id = one.first(&["namespace_id", "namespace_name"]);
            let to = format!("/ns/{}/collections", escape(&id));
            let name = one.text("namespace_name");
            found.push(json!({"label": name, "about": "Namespace", "to": to}));
        }
        let Some(namespace) = namespace else {
            return Ok(Record(json!({ "results": found })));
        };
        let (space, api) = (escape(&namespace), session.api_in(namespace.clone()));
        if words.starts_with("btch_") {
            let one = api.get(&format!("/v1/batches/{}", escape(&words))).await;
            if let Ok(one) = one {
                let (bucket, id) = (one.text("bucket_id"), one.text("batch_id"));
                let to = batch(&namespace, &bucket, &id);
                found.push(json!({"label": id, "about": "Batch", "to": to}));
            }
        }
        if words.starts_with("doc_") {
            let one = api.get(&format!("/v1/documents/{}", escape(&words))).await;
            if let Ok(one) = one {
                let (of, id) = (one.text("collection_id"), one.text("document_id"));
                let to = format!(
                    "/ns/{space}/collections/{}?document={}",
                    escape(&of),
                    escape(&id)
                );
                found.push(json!({"label": id, "about": "Document", "to": to}));
            }
        }
        for (piece, member, about) in KINDS {
            let path = format!("/v1/{piece}/list?limit=5");
            let answer = api.post(&path, &body).await;
            for one in answer.map(|all| all.list("results")).unwrap_or_default() {
                let id = one.text(&format!("{member}_id"));
                let name = one.first(&[&format!("{member}_name"), "name"]);
                let to = format!("/ns/{space}/{piece}/{}", escape(&id));
                found.push(json!({"label": name, "about": about, "to": to}));
            }
        }
        Ok(Record(json!({ "results": found })))
    })
}

fn read(found: &Record) -> Vec<Entry> {
    let all = found.value("results").map(items).unwrap_or_default();
    let all = all.iter();
    all.map(|one| Entry::new(&one.text("label"), &one.text("about"), one.text("to")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(all: &[Entry]) -> Vec<&str> {
        all.iter().map(|one| one.label.as_str()).collect()
    }

    #[test]
    fn pages_are_found_by_pieces_of_their_words() {
        let all = known(Some("ns_1"), "aud LOG");
        assert_eq!(labels(&all), ["Audit log"]);
        assert_eq!(all[0].to, "/audit");
        let all = known(Some("ns_1"), "pages");
        assert_eq!(all[0].to, "/ns/ns_1/published");
        assert!(known(None, "buckets").is_empty());
        assert!(known(Some("ns_1"), "").len() > AT_MOST);
    }

    #[test]
    fn an_id_leads_to_its_page_in_the_open_namespace() {
        let to = |namespace, id| by_id(namespace, id).map(|one| one.to);
        let space = Some("ns_1");
        assert_eq!(
            to(space, "col_0a1b2c").as_deref(),
            Some("/ns/ns_1/collections/col_0a1b2c")
        );
        assert_eq!(
            to(space, "clust_0a1b2c").as_deref(),
            Some("/ns/ns_1/clusters/clust_0a1b2c")
        );
        assert_eq!(
            to(space, "alt_0a1b2c").as_deref(),
            Some("/ns/ns_1/alerts?log=alt_0a1b2c")
        );
        assert_eq!(
            to(None, "key_0a1b2c").as_deref(),
            Some("/keys?key=key_0a1b2c")
        );
        assert_eq!(to(None, "app_0a1b2c").as_deref(), Some("/apps/app_0a1b2c"));
        assert_eq!(
            to(None, "ns_0a1b2c").as_deref(),
            Some("/ns/ns_0a1b2c/collections")
        );
        // Without a namespace there is no page of a collection, and words are no ids.
        assert_eq!(to(None, "col_0a1b2c"), None);
        assert_eq!(to(space, "col_"), None);
        assert_eq!(to(space, "col_ of birds"), None);
    }

    #[test]
    fn what_was_found_is_offered_as_it_is() {
        let found = json!({"results": [{"label": "birds", "about": "Collection", "to": "/ns/n/collections/c"}]});
        let all = read(&Record(found));
        assert_eq!(labels(&all), ["birds"]);
        assert!(read(&Record::default()).is_empty());
    }
}
