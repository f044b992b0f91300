//! Documents of the page that are picked, and deleted together.

use leptos::prelude::*;
use serde_json::json;

use crate::{
    api::Api,
    load::{Change, Load},
    part::*,
    record::{Record, page},
    text,
};

/// The id of the tick for all of them.
const ALL: &str = "pick-all";

/// The picked ones of a list.
#[derive(Clone, Copy)]
pub(super) struct Picked {
    load: Load,
    ids: RwSignal<Vec<String>>,
    /// Those that the page shows.
    page: Memo<Vec<String>>,
}

impl Picked {
    pub(super) fn new(load: Load) -> Self {
        let page = Memo::new(move |_| {
            let (rows, _) = page(&load.good().unwrap_or_default());
            let ids = rows.iter().map(|one| one.text("document_id"));
            ids.collect::<Vec<_>>()
        });
        Self {
            load,
            ids: RwSignal::new(Vec::new()),
            page,
        }
    }

    /// The picked ones of the page: what is not seen is not touched.
    fn here(self) -> Vec<String> {
        let mut all = self.page.get();
        self.ids.with(|ids| all.retain(|id| ids.contains(id)));
        all
    }

    pub(super) fn has(self, id: &str) -> bool {
        self.ids.with(|ids| ids.iter().any(|one| one == id))
    }

    /// The cell that picks a document.
    pub(super) fn tick(self, id: String, name: &str) -> AnyView {
        let (said, own) = (format!("Select {name}"), id.clone());
        let on = move || self.has(&own);
        let set = move |event| {
            let on = event_target_checked(&event);
            self.ids.update(|ids| {
                ids.retain(|one| *one != id);
                if on {
                    ids.push(id.clone());
                }
            });
        };
        let tick = view! { <label class="check"><input type="checkbox" prop:checked=on on:change=set/><span class="sr-only">{said}</span></label> };
        cell("", tick.into_any())
    }

    /// How many are picked, and what can be done with them. It is not there where the list has nothing.
    pub(super) fn bar(
        self,
        api: Signal<Api>,
        base: Signal<String>,
        changed: Callback<()>,
    ) -> AnyView {
        let open = RwSignal::new(false);
        let many = Memo::new(move |_| self.here().len());
        let all = Signal::derive(move || many.get() > 0 && many.get() == self.page.with(Vec::len));
        let set = move |on: bool| {
            self.ids.set(match on {
                true => self.page.get_untracked(),
                false => Vec::new(),
            });
        };
        let told = move || match many.get() {
            0 => "None selected".to_owned(),
            many => format!("{} selected", counted(many)),
        };
        let empty = move || self.load.good().is_some() && self.page.with(Vec::is_empty);
        view! {
            <div hidden=empty>
                <div class="row">
                    <Check id=ALL label="All of this page" checked=all set/>
                    <span class="muted" role="status">{told}</span>
                    <button type="button" class="btn small" disabled=move || many.get() == 0 on:click=move |_| open.set(true)>"Delete selected"</button>
                </div>
            </div>
            {self.ask(open, many, (api, base), changed)}
        }
        .into_any()
    }

    fn ask(
        self,
        open: RwSignal<bool>,
        many: Memo<usize>,
        (api, base): (Signal<Api>, Signal<String>),
        changed: Callback<()>,
    ) -> AnyView {
        let (toasts, change) = (expect_context::<Toasts>(), Change::new());
        let title = Signal::derive(move || format!("Delete {}?", counted(many.get())));
        let submit = Callback::new(move |()| {
            let body = json!({"document_ids": untrack(|| self.here())});
            let path = format!("{}/documents/batch", base.get_untracked());
            let call = api.get_untracked().delete_all(&path, &body);
            change.run(call, move |answer| {
                // The page may be gone by now.
                let _ = changed.try_run(());
                match kept(&answer) {
                    kept if kept.is_empty() => {
                        let _ = open.try_set(false);
                        let many = answer.int("deleted_count").unwrap_or(0);
                        let many = text::counted(many, "document", "documents");
                        toasts.say(format!("Deleted {many}"));
                        // The button can no longer be pressed.
                        schema::lead(format!("#{ALL}"));
                    }
                    kept => change.refuse_as("Not all of them were deleted", kept),
                }
            });
        });
        view! {
            <Ask open title label="Delete" danger=true change submit>
                <p>"Their vectors and what was made of them go with them. This cannot be undone."</p>
            </Ask>
        }
        .into_any()
    }
}

fn counted(many: usize) -> String {
    text::counted(many as i64, "document", "documents")
}

/// The documents that were not deleted, and why; empty where all were.
fn kept(answer: &Record) -> String {
    let all = answer.list("results").into_iter();
    let all = all.filter(|one| !one.flag("success"));
    let all = all.map(|one| format!("{}: {}", one.text("document_id"), one.text("error")));
    all.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use loupe_wire::{BatchDeleteDocumentsResponse, BatchDocumentDeleteResult};

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn what_was_not_deleted_is_told() {
        let one = |id: &str, error: Option<&str>| BatchDocumentDeleteResult {
            document_id: id.into(),
            success: error.is_none(),
            error: error.map(Into::into),
        };
        let of = |results| {
            sent(&BatchDeleteDocumentsResponse {
                results,
                ..Default::default()
            })
        };
        assert_eq!(kept(&of(vec![one("doc_1", None)])), "");
        let half = of(vec![one("doc_1", None), one("doc_2", Some("not found"))]);
        assert_eq!(kept(&half), "doc_2: not found");
    }
}
