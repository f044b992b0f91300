//! A retriever as a page for everyone.

use leptos::prelude::*;
use serde_json::json;

use crate::{
    load::{Change, Load},
    part::*,
    record::Record,
    session::use_session,
    text,
};

/// `My films` as `my-films`.
fn slug(name: &str) -> String {
    let mapped: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    mapped
        .split('-')
        .filter(|piece| !piece.is_empty())
        .collect::<Vec<_>>()
        .join("-")
        .chars()
        .take(50)
        .collect()
}

#[component]
pub fn Publish(
    open: RwSignal<bool>,
    ns: Memo<String>,
    retriever: Record,
    done: Callback<()>,
) -> AnyView {
    let session = use_session();
    let retriever = StoredValue::new(retriever);
    let path = StoredValue::new(retriever.with_value(|r| {
        format!(
            "/v1/retrievers/{}/publish",
            text::escape(&r.first(&["retriever_id", "retriever_name"]))
        )
    }));
    let now = Load::new(move || {
        let (api, wanted) = (session.api_in(ns.get()), open.get());
        async move {
            if !wanted {
                return std::future::pending().await;
            }
            match api.get(&path.get_value()).await {
                // Nothing published is an answer, not a fault.
                Err(problem) if problem.status == 404 => Ok(Record::default()),
                other => other,
            }
        }
    });
    let change = Change::new();
    let end = move |_| {
        change.run(
            session.api_in(ns.get_untracked()).delete(&path.get_value()),
            move |_| {
                now.reload();
                done.run(());
            },
        );
    };
    view! {
        <Modal open title="Publish as a page".to_owned()>
            {refusal(change)}
            {loaded(now, waiting(4), move |page| match page.value("public_name").is_some() {
                true => view! {
                    <p>"Everyone who has the address can search this retriever."</p>
                    <Address name=page.text("public_name")/>
                    <footer>
                        <button type="button" class="btn danger" on:click=end aria-busy=move || change.busy.get().to_string()>"Take it down"</button>
                        <button type="button" class="btn primary" on:click=move |_| open.set(false)>"Done"</button>
                    </footer>
                }.into_any(),
                false => view! { <Form open ns path retriever done=Callback::new(move |()| { now.reload(); done.run(()); })/> }.into_any(),
            })}
        </Modal>
    }
    .into_any()
}

/// The page's address: to open, to copy.
#[component]
pub fn Address(name: String) -> AnyView {
    let href = format!("/r/{name}");
    let full = format!("{}{href}", window().location().origin().unwrap_or_default());
    view! { <div class="uri"><a href=href target="_blank" rel="noopener">{full.clone()}</a><Copy text=Signal::stored(full)/></div> }.into_any()
}

#[component]
fn Form(
    open: RwSignal<bool>,
    ns: Memo<String>,
    path: StoredValue<String>,
    retriever: StoredValue<Record>,
    done: Callback<()>,
) -> AnyView {
    let session = use_session();
    let label = retriever.with_value(|r| r.text("retriever_name"));
    let (name, title) = (RwSignal::new(slug(&label)), RwSignal::new(label));
    let description = RwSignal::new(retriever.with_value(|r| r.text("description")));
    let Offer { fields, chosen } = offer(ns, retriever);
    let free = availability(ns, path, name);
    let change = Change::new();
    let submit = Callback::new(move |()| {
        // Without inputs of its own the page asks for those of the retriever.
        let mut display = json!({
            "title": title.get_untracked(),
            "inputs": [],
            "exposed_fields": chosen.get_untracked(),
        });
        let mut body =
            json!({"public_name": name.get_untracked(), "display_name": title.get_untracked()});
        let text = description.get_untracked();
        if !text.is_empty() {
            display["description"] = text.clone().into();
            body["description"] = text.into();
        }
        body["display_config"] = display;
        let call = session
            .api_in(ns.get_untracked())
            .post(&path.get_value(), &body);
        change.run(call, move |_| done.run(()));
    });
    view! {
        <Sheet change submit label="Publish" open>
            <Field id="page-name" label="Name in the address" value=name required=true hint="3 to 50 small letters, digits and dashes."/>
            <p role="status" class="muted">{move || verdict(free)}</p>
            <Field id="page-title" label="Title" value=title required=true/>
            <Field id="page-text" label="Description" value=description/>
            <fieldset class="stack-sm"><legend><strong>"Fields that visitors see"</strong></legend>
                {move || fields.get().into_iter().map(|field| {
                    let (one, same) = (field.clone(), field.clone());
                    view! { <Check label=field checked=Signal::derive(move || chosen.with(|all| all.contains(&same)))
                        set=move |on| chosen.update(|all| { all.retain(|f| *f != one); if on { all.push(one.clone()); } })/> }
                }).collect::<Vec<_>>()}
            </fieldset>
        </Sheet>
    }.into_any()
}

/// The fields that can be shown, and those that will be.
struct Offer {
    fields: RwSignal<Vec<String>>,
    chosen: RwSignal<Vec<String>>,
}

/// The fields that real documents have, so that nothing is exposed by guessing.
fn offer(ns: Memo<String>, retriever: StoredValue<Record>) -> Offer {
    const OWN: [&str; 5] = [
        "document_id",
        "collection_id",
        "document_blobs",
        "expanded",
        "vector_names",
    ];
    let session = use_session();
    let (fields, chosen) = (RwSignal::new(Vec::new()), RwSignal::new(Vec::new()));
    let known = Load::new(move || {
        let api = session.api_in(ns.get());
        let first = retriever.with_value(|r| r.strings("collection_ids").into_iter().next());
        async move {
            let Some(first) = first else {
                return Ok(Record::default());
            };
            let path = format!(
                "/v1/collections/{}/documents/list?limit=5",
                text::escape(&first)
            );
            api.post(&path, &json!({})).await
        }
    });
    Effect::new(move |_| {
        let Some(found) = known.good() else { return };
        let members = found.list("results");
        let members = members.iter().flat_map(Record::members);
        let mut names: Vec<String> = members.map(|(name, _)| name).collect();
        names.retain(|n| !n.starts_with('_') && !OWN.contains(&n.as_str()));
        names.sort();
        names.dedup();
        let inner = |n: &String| n.ends_with("_id") || n.ends_with("hash") || n.ends_with("_ms");
        chosen.set(names.iter().filter(|n| !inner(n)).cloned().collect());
        fields.set(names);
    });
    Offer { fields, chosen }
}

/// Whether the name is still free, asked while it is typed.
fn availability(ns: Memo<String>, path: StoredValue<String>, name: RwSignal<String>) -> Load {
    let session = use_session();
    Load::new(move || {
        let (api, name) = (session.api_in(ns.get()), name.get());
        let path = format!(
            "{}/availability?name={}",
            path.get_value(),
            text::escape(&name)
        );
        async move {
            // Typing is not finished with the first letter.
            gloo_timers::future::TimeoutFuture::new(300).await;
            if name.len() < 3 {
                return Ok(Record::default());
            }
            api.get(&path).await
        }
    })
}

fn verdict(free: Load) -> String {
    match free.value.get() {
        Some(Ok(answer)) if answer.flag("available") => {
            format!("/r/{} is free.", answer.text("name"))
        }
        Some(Ok(answer)) if answer.value("name").is_some() => {
            format!("/r/{} is taken.", answer.text("name"))
        }
        Some(Err(problem)) => {
            let first = problem.notes.into_iter().next();
            first.map_or(problem.message, |(_, what)| what)
        }
        _ => "Checking the name.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn names_become_addresses() {
        assert_eq!(slug("My  Films!"), "my-films");
    }
}
