//! Patterns of the contract, compiled once.

use std::sync::LazyLock;

use regex::Regex;

pub static P0: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^upl_[a-zA-Z0-9_-]+$").expect("a literal pattern that a test compiles")
});
pub static P1: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[a-zA-Z0-9_]+$").expect("a literal pattern that a test compiles")
});
pub static P2: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[a-f0-9]{64}$").expect("a literal pattern that a test compiles")
});
pub static P3: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^ray_[a-zA-Z0-9_]{3,64}$").expect("a literal pattern that a test compiles")
});
pub static P4: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[a-z0-9][a-z0-9-]*[a-z0-9]$").expect("a literal pattern that a test compiles")
});
pub static P5: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^wh_[a-fA-F0-9]{16}$").expect("a literal pattern that a test compiles")
});
pub static P6: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(change|failure|always)$").expect("a literal pattern that a test compiles")
});
pub static P7: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^col_[a-zA-Z0-9_]+$").expect("a literal pattern that a test compiles")
});
pub static P8: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^ret_[a-zA-Z0-9_]+$").expect("a literal pattern that a test compiles")
});
pub static P9: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^run_[a-zA-Z0-9]+$").expect("a literal pattern that a test compiles")
});
pub static P10: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^clust_[a-zA-Z0-9]+$").expect("a literal pattern that a test compiles")
});
pub static P11: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$")
        .expect("a literal pattern that a test compiles")
});
