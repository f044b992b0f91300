//! What files are called: to people, and where only plain letters are safe.

/// A file name's last segment as people have it, in any alphabet, without what nobody sees.
pub fn shown_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let shown: String = last.chars().filter(|c| !c.is_control()).take(255).collect();
    match shown.trim() {
        "" | "." | ".." => "file".into(),
        shown => shown.to_owned(),
    }
}

/// A file name's last segment without anything that a path, a header or a shell could misread.
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let safe: String = last
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') {
                c
            } else {
                '_'
            }
        })
        .collect();
    let safe = safe.trim_start_matches('.');
    let start = safe.len().saturating_sub(100);
    if safe.is_empty() {
        "file".into()
    } else {
        safe[start..].to_owned()
    }
}
