//! Paths of the files in a bundle, and which of them may be.

use std::collections::{BTreeMap, BTreeSet};

use super::{BundleError, Entry, refuse};

/// Folders within folders.
const DEPTH: usize = 20;

/// Bytes of a path, and of one name in it.
const PATH: usize = 400;
const NAME: usize = 200;

/// A name for a message.
pub(super) fn shown(name: &str) -> String {
    let start: String = name.chars().take(80).collect();
    format!("{start:?}")
}

pub(super) fn is_litter(path: &str) -> bool {
    path.starts_with("__MACOSX/") || path.rsplit('/').next() == Some(".DS_Store")
}

/// Whether a path may be one of an app's files.
///
/// # Errors
/// What is wrong with it, to be read behind the path.
pub fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() || path.len() > PATH {
        return Err("has an empty or overlong path");
    }
    if path.contains(|c: char| c == '\\' || c == ':' || c.is_control()) {
        return Err("has a path with a backslash, a colon or a control character");
    }
    let names: Vec<&str> = path.split('/').collect();
    if names.len() > DEPTH {
        return Err("lies too deep in folders");
    }
    for name in names {
        if matches!(name, "" | "." | "..") {
            return Err("does not lie inside of the bundle");
        }
        if name.len() > NAME {
            return Err("has an overlong name");
        }
    }
    Ok(())
}

/// Refuses what two systems would read differently: the same name twice or in two spellings, a file that is a folder too.
///
/// # Errors
/// The two names.
pub fn check_names<'p>(paths: impl Iterator<Item = &'p str>) -> Result<(), BundleError> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut folders = BTreeSet::new();
    for path in paths {
        let lower = path.to_lowercase();
        for (at, _) in lower.match_indices('/') {
            folders.insert(lower[..at].to_owned());
        }
        if let Some(other) = seen.insert(lower, path) {
            return refuse(format!(
                "{} and {} are the same file to some systems",
                shown(other),
                shown(path)
            ));
        }
    }
    match folders.iter().find_map(|folder| seen.get(folder)) {
        Some(path) => refuse(format!("{} is a file and a folder", shown(path))),
        None => Ok(()),
    }
}

/// Whoever packs the folder instead of what is in it means the same.
pub(super) fn without_common_folder(mut entries: Vec<Entry>) -> Vec<Entry> {
    let folder = match entries.first().and_then(|entry| entry.path.split_once('/')) {
        Some((folder, _)) => format!("{folder}/"),
        None => return entries,
    };
    let common = entries.iter().all(|entry| entry.path.starts_with(&folder));
    let index = format!("{folder}index.html");
    if common && entries.iter().any(|entry| entry.path == index) {
        for entry in &mut entries {
            entry.path.drain(..folder.len());
        }
    }
    entries
}
