//! Everything that waits in memory has a bound (R-32): no source makes a channel that takes whatever comes.

use std::path::{Path, PathBuf};

/// Files that may, and why what waits there is bounded all the same.
const UNBOUNDED: &[(&str, &str)] = &[];

fn sources(folder: PathBuf, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_channel_takes_whatever_comes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in ["server/src", "server/engine/src", "hosted/src"] {
        sources(root.join(folder), &mut files);
    }
    assert!(files.len() > 200, "only {} sources", files.len());
    // That of the standard library has no bound unless it is called otherwise.
    let unbounded = r"(?m)^[^/\n]*(\bunbounded|\bmpsc::channel(::<[^\n]*>)?\(\s*\))";
    let unbounded = regex::Regex::new(unbounded).unwrap();
    assert!(unbounded.is_match("let (a, b) = mpsc::unbounded_channel();"));
    assert!(unbounded.is_match("let (a, b) = std::sync::mpsc::channel::<Vec<u8>>();"));
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.to_str().unwrap();
        let allowed = UNBOUNDED.iter().any(|(file, _)| name.ends_with(file));
        let found = unbounded.find(&text).map(|found| found.as_str());
        assert!(allowed || found.is_none(), "{name}: {found:?}");
    }
}
