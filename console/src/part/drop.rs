use js_sys::{Array, Promise, Reflect};
use leptos::prelude::*;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    DataTransfer, File, FileList, FileSystemDirectoryEntry, FileSystemEntry, FileSystemFileEntry,
};

use super::Icon;

/// A file, and where it is below what was dropped or chosen.
#[derive(Clone)]
pub struct Dropped {
    pub file: File,
    pub path: String,
}

/// A place where files are dropped, or chosen.
#[component]
pub fn DropZone(
    text: &'static str,
    /// The words on the button that chooses.
    label: &'static str,
    #[prop(optional)] accept: &'static str,
    #[prop(optional)] multiple: bool,
    /// Folders are taken too, with all that is in them.
    #[prop(optional)]
    folders: bool,
    chosen: Callback<Vec<Dropped>>,
    /// What else can be done instead.
    #[prop(optional)]
    children: Option<Children>,
) -> AnyView {
    let (over, unread) = (RwSignal::new(false), RwSignal::new(0));
    let start = move |files: Vec<Dropped>| {
        let files: Vec<_> = files.into_iter().filter(|one| !hidden(&one.path)).collect();
        if !files.is_empty() {
            chosen.run(files);
        }
    };
    let drop = move |event: leptos::ev::DragEvent| {
        event.prevent_default();
        over.set(false);
        unread.set(0);
        let Some(data) = event.data_transfer() else {
            return;
        };
        let entries = if folders { entries(&data) } else { Vec::new() };
        if entries.is_empty() {
            start(data.files().map(|list| listed(&list)).unwrap_or_default());
            return;
        }
        spawn_local(async move {
            let (files, lost) = walk(entries).await;
            // The page may be gone by now.
            if unread.try_set(lost).is_none() {
                start(files);
            }
        });
    };
    let change = move |event: leptos::ev::Event| {
        let input = event
            .target()
            .and_then(|t| t.dyn_into::<web_sys::HtmlInputElement>().ok());
        if let Some(input) = input {
            unread.set(0);
            start(input.files().map(|list| listed(&list)).unwrap_or_default());
            // The same file may be chosen again.
            input.set_value("");
        }
    };
    let folder = folders.then(|| {
        view! {
            <label class="btn" for="folder">"Choose a folder"</label>
            <input class="sr-only" id="folder" type="file" prop:webkitdirectory=true on:change=change/>
        }
    });
    view! {
        <div class="drop" class:over=move || over.get()
            on:dragover=move |event| { event.prevent_default(); over.set(true); }
            on:dragleave=move |_| over.set(false) on:drop=drop>
            <Icon name="upload" size=22/>
            <strong>{text}</strong>
            <div class="row">
                <label class="btn" for="files">{label}</label>
                <input class="sr-only" id="files" type="file" multiple=multiple accept=accept on:change=change/>
                {folder}{children.map(|children| children())}
            </div>
            <span role="status">{move || match unread.get() {
                0 => String::new(),
                lost => format!("{lost} of what was dropped could not be read"),
            }}</span>
        </div>
    }
    .into_any()
}

/// Whether a file of a folder is hidden, as what systems leave in folders is.
fn hidden(path: &str) -> bool {
    path.contains('/') && path.split('/').any(|piece| piece.starts_with('.'))
}

fn listed(list: &FileList) -> Vec<Dropped> {
    let name = JsValue::from_str("webkitRelativePath");
    let files = (0..list.length()).filter_map(|at| list.get(at));
    let files = files.map(|file| {
        let path = Reflect::get(&file, &name).ok().and_then(|p| p.as_string());
        let path = path.filter(|path| !path.is_empty());
        Dropped {
            path: path.unwrap_or_else(|| file.name()),
            file,
        }
    });
    files.collect()
}

/// What was dropped. The event's data is empty once the event is over, so this is asked before anything is waited for.
fn entries(data: &DataTransfer) -> Vec<FileSystemEntry> {
    let items = data.items();
    let all = (0..items.length()).filter_map(|at| items.get(at));
    all.filter_map(|one| one.webkit_get_as_entry().ok().flatten())
        .collect()
}

/// The files of the entries, those in folders too, by their paths; and how many entries could not be read.
async fn walk(mut open: Vec<FileSystemEntry>) -> (Vec<Dropped>, usize) {
    let (mut found, mut lost) = (Vec::new(), 0);
    while let Some(entry) = open.pop() {
        let path = entry.full_path().trim_start_matches('/').to_owned();
        if entry.is_directory() {
            match inside(entry.unchecked_ref()).await {
                Ok(more) => open.extend(more),
                Err(_) => lost += 1,
            }
        } else {
            match file_of(entry.unchecked_ref()).await {
                Ok(file) => found.push(Dropped { file, path }),
                Err(_) => lost += 1,
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    (found, lost)
}

async fn file_of(entry: &FileSystemFileEntry) -> Result<File, JsValue> {
    let file = Promise::new(&mut |resolve, reject| {
        entry.file_with_callback_and_error_callback(&resolve, reject.unchecked_ref());
    });
    JsFuture::from(file).await.map(JsCast::unchecked_into)
}

/// What is in a folder. Browsers tell it in pieces; an empty one is the last.
async fn inside(folder: &FileSystemDirectoryEntry) -> Result<Vec<FileSystemEntry>, JsValue> {
    let (reader, mut all) = (folder.create_reader(), Vec::new());
    loop {
        let mut asked = Ok(());
        let piece = Promise::new(&mut |resolve, reject| {
            asked = reader
                .read_entries_with_callback_and_error_callback(&resolve, reject.unchecked_ref());
        });
        asked?;
        let piece = Array::from(&JsFuture::from(piece).await?);
        if piece.length() == 0 {
            return Ok(all);
        }
        all.extend(piece.iter().map(JsCast::unchecked_into::<FileSystemEntry>));
    }
}

#[cfg(test)]
mod tests {
    use super::hidden;

    #[test]
    fn what_systems_leave_in_folders_is_hidden() {
        assert!(hidden("photos/.DS_Store"));
        assert!(hidden("photos/.git/config"));
        assert!(!hidden("photos/a.png"));
        // Who chooses a file by itself means it.
        assert!(!hidden(".env"));
    }
}
