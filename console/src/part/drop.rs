use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::FileList;

use super::Icon;

/// A place where files are dropped, or chosen.
#[component]
pub fn DropZone(
    text: &'static str,
    /// The words on the button that chooses.
    label: &'static str,
    #[prop(optional)] accept: &'static str,
    #[prop(optional)] multiple: bool,
    chosen: Callback<FileList>,
    /// What else can be done instead.
    #[prop(optional)]
    children: Option<Children>,
) -> AnyView {
    let over = RwSignal::new(false);
    let start = move |list: Option<FileList>| {
        if let Some(list) = list.filter(|list| list.length() > 0) {
            chosen.run(list);
        }
    };
    let drop = move |event: leptos::ev::DragEvent| {
        event.prevent_default();
        over.set(false);
        start(event.data_transfer().and_then(|data| data.files()));
    };
    let change = move |event: leptos::ev::Event| {
        let input = event
            .target()
            .and_then(|t| t.dyn_into::<web_sys::HtmlInputElement>().ok());
        if let Some(input) = input {
            start(input.files());
            // The same file may be chosen again.
            input.set_value("");
        }
    };
    view! {
        <div class="drop" class:over=move || over.get()
            on:dragover=move |event| { event.prevent_default(); over.set(true); }
            on:dragleave=move |_| over.set(false) on:drop=drop>
            <Icon name="upload" size=22/>
            <strong>{text}</strong>
            <div class="row"><label class="btn" for="files">{label}</label>{children.map(|children| children())}</div>
            <input class="sr-only" id="files" type="file" multiple=multiple accept=accept on:change=change/>
        </div>
    }
    .into_any()
}
