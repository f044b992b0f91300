//! Named places between two durable steps, where a test lets the process panic or die. A release has none of it.
//!
//! `FAILPOINTS` names a folder. A file in it with the name of a place arms that place: its words, `panic` or `abort`, are
//! taken one by one, each by whoever comes there next.

/// A place between two durable steps: `fail_point!("batch.after_docstore_flush")`.
#[macro_export]
macro_rules! fail_point {
    ($name:literal) => {
        #[cfg(debug_assertions)]
        $crate::fail::pass($name);
    };
}

#[cfg(debug_assertions)]
pub use armed::pass;

#[cfg(debug_assertions)]
mod armed {
    use std::{
        fs,
        path::{Path, PathBuf},
        sync::{LazyLock, Mutex, PoisonError},
    };

    static FOLDER: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| std::env::var_os("FAILPOINTS").map(PathBuf::from));

    /// Two that come at once take two words.
    static TURN: Mutex<()> = Mutex::new(());

    /// Does what a test wants to happen here.
    ///
    /// # Panics
    /// When a test wants it to.
    pub fn pass(name: &str) {
        let Some(folder) = &*FOLDER else { return };
        match take(&folder.join(name)).as_deref() {
            Some("panic") => panic!("the fail point {name}"),
            Some("abort") => std::process::abort(),
            _ => {}
        }
    }

    fn take(file: &Path) -> Option<String> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let armed = fs::read_to_string(file).ok()?;
        let (first, rest) = armed.split_once(' ').unwrap_or((&armed, ""));
        let taken = match rest.is_empty() {
            true => fs::remove_file(file),
            false => fs::write(file, rest),
        };
        taken.is_ok().then(|| first.to_owned())
    }
}
