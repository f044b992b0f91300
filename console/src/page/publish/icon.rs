//! The icon of a page: a small picture that is part of its configuration.

use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{File, HtmlInputElement};

use crate::part::*;

/// What a page's icon may be.
const KINDS: &str =
    "image/png,image/jpeg,image/gif,image/webp,image/svg+xml,image/x-icon,image/vnd.microsoft.icon";

/// In base64 that is as much as the server takes.
const MOST_BYTES: f64 = 220_000.0;

const ID: &str = "page-icon";
const PLACE: &str = "display_config.icon_base64";

/// The icon, to choose and to take away.
pub fn form(icon: RwSignal<String>) -> AnyView {
    let (faults, toasts) = (expect_context::<Faults>(), expect_context::<Toasts>());
    let choose = move |event: leptos::ev::Event| {
        let input: HtmlInputElement = event_target(&event);
        let file = input.files().and_then(|files| files.get(0));
        // The same file may be chosen again.
        input.set_value("");
        let Some(file) = file else { return };
        faults
            .0
            .update(|all| all.retain(|(place, _)| place != PLACE));
        match fault(&file.type_(), file.size()) {
            Some(what) => refuse(faults, what),
            None => read(icon, faults, toasts, file),
        }
    };
    let remove = move |_| {
        icon.set(String::new());
        schema::lead(format!("#{ID}"));
    };
    let chosen = move || {
        let source = shown(&icon.get())?;
        Some(view! {
            <img class="thumb" style:object-fit="contain" src=source alt="The icon as it is" width="44" height="44"/>
            <button type="button" class="btn" on:click=remove>"Remove the icon"</button>
        })
    };
    view! {
        <div class="field" role="group" aria-label="Icon">
            <span class="label">"Icon"</span>
            <div class="row">
                <label class="btn" for=ID>"Choose an icon"</label>
                <input class="sr-only" id=ID type="file" accept=KINDS aria-describedby="page-icon-hint page-icon-fault"
                    aria-invalid=move || faults.mark(PLACE) on:change=choose/>
                {chosen}
            </div>
            <span class="hint" id="page-icon-hint">
                "In the browser's tab, and before the title where there is no logo. PNG, JPEG, GIF, WebP, SVG or ICO, 220 KB at most."
            </span>
            {faults.told(PLACE.to_owned(), "page-icon-fault".to_owned())}
        </div>
    }
    .into_any()
}

/// Why a file is no icon.
fn fault(kind: &str, bytes: f64) -> Option<&'static str> {
    if !KINDS.split(',').any(|known| known == kind) {
        return Some("the file is no picture of these kinds");
    }
    (bytes > MOST_BYTES).then_some("an icon has 220 KB at most")
}

fn refuse(faults: Faults, what: &str) {
    let fault = (PLACE.to_owned(), what.to_owned());
    // The page may be gone by now.
    let _ = faults.0.try_update(|all| all.push(fault));
}

fn read(icon: RwSignal<String>, faults: Faults, toasts: Toasts, file: File) {
    spawn_local(async move {
        match data_url(&file).await {
            Some(text) => {
                let _ = icon.try_set(text);
                toasts.say("The icon is chosen");
            }
            None => refuse(faults, "the file could not be read"),
        }
    });
}

/// An icon as an address: one that came without saying what it is begins as its kind does.
fn shown(icon: &str) -> Option<String> {
    let kind = match icon.chars().next()? {
        _ if icon.starts_with("data:") => return Some(icon.to_owned()),
        // An angle bracket.
        'P' => "svg+xml",
        _ => "png",
    };
    Some(format!("data:image/{kind};base64,{icon}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_icon_is_a_small_picture() {
        assert_eq!(fault("image/svg+xml", 900.0), None);
        assert!(fault("image/png", 300_000.0).is_some_and(|what| what.contains("220 KB")));
        assert!(fault("application/pdf", 9.0).is_some_and(|what| what.contains("no picture")));
        assert!(fault("", 9.0).is_some());
    }

    #[test]
    fn an_icon_is_shown_whatever_it_says_of_itself() {
        assert_eq!(shown(""), None);
        let whole = "data:image/gif;base64,R0lGODlh";
        assert_eq!(shown(whole).as_deref(), Some(whole));
        let png = shown("iVBORw0KGgo=");
        assert_eq!(png.as_deref(), Some("data:image/png;base64,iVBORw0KGgo="));
        let svg = shown("PHN2Zy8+");
        assert_eq!(svg.as_deref(), Some("data:image/svg+xml;base64,PHN2Zy8+"));
    }
}
