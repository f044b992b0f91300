//! Files that visitors searched with, kept for a while: without script, other pages of the results are addresses, which name them.

use std::sync::LazyLock;
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::input::Upload;

/// What stands before the name of such a file in an address. No browser puts it there by itself.
const MARK: &str = "held:";

/// Bytes of all of them, and how long each is kept after it was last asked for.
const MOST: u64 = 32 << 20;
const KEPT: Duration = Duration::from_secs(15 * 60);

const GONE: &str = "This file is not kept any more: choose it again.";

/// By the page and a name that nobody guesses.
static HELD: LazyLock<Cache<String, Upload>> = LazyLock::new(|| {
    Cache::builder()
        .max_capacity(MOST)
        .weigher(|_, file: &Upload| u32::try_from(file.data.len()).unwrap_or(u32::MAX))
        // The newest is the one that is asked for next.
        .eviction_policy(EvictionPolicy::lru())
        .time_to_idle(KEPT)
        .build()
});

fn key(public_name: &str, name: &str) -> String {
    format!("{public_name} {name}")
}

/// Keeps a file for searches of this page, by a name of its own.
pub fn hold(public_name: &str, mut file: Upload) -> Upload {
    let name = format!("{MARK}{}", hex::encode(rand::random::<[u8; 16]>()));
    file.held = Some(name.clone());
    HELD.insert(key(public_name, &name), file.clone());
    file
}

/// The file that an address names, or why it is not there; none where it names none.
pub fn find(public_name: &str, name: &str) -> Option<Result<Upload, &'static str>> {
    if !name.starts_with(MARK) {
        return None;
    }
    Some(HELD.get(&key(public_name, name)).ok_or(GONE))
}
