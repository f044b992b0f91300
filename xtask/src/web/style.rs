//! Style sheets: tokens, base and parts, then one sheet's own rules. The order of the files is the order of layers.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::{bundle::Bundle, files_under};

const SHARED: [&str; 2] = ["tokens.css", "base.css"];

/// Adds fonts, the icon and one bundle for every sheet in `dir` that is not shared.
pub fn add(dir: &Path, bundle: &mut Bundle) -> Result<()> {
    let mut fonts = Vec::new();
    for file in files_under(&dir.join("fonts"))? {
        if file.extension().is_some_and(|e| e == "woff2") {
            let name = file_name(&file)?;
            let hashed = bundle.add(&name, &fs::read(&file)?)?;
            fonts.push((format!("fonts/{name}"), hashed));
        }
    }
    bundle.add(
        "favicon.svg",
        &fs::read(dir.join("favicon.svg")).context("reading style/favicon.svg")?,
    )?;

    let mut common = String::new();
    for name in SHARED {
        common.push_str(&read(&dir.join(name))?);
    }
    for part in files_under(&dir.join("parts"))? {
        common.push_str(&read(&part)?);
    }
    for entry in fs::read_dir(dir)? {
        let file = entry?.path();
        let name = file_name(&file)?;
        if !name.ends_with(".css") || SHARED.contains(&name.as_str()) {
            continue;
        }
        let mut text = squeeze(&(common.clone() + &read(&file)?));
        for (path, hashed) in &fonts {
            text = text.replace(path.as_str(), hashed);
        }
        bundle.add(&name, text.as_bytes())?;
    }
    Ok(())
}

fn file_name(path: &Path) -> Result<String> {
    Ok(path
        .file_name()
        .context("a file without a name")?
        .to_string_lossy()
        .into_owned())
}

fn read(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(text + "\n")
}

/// Drops comments, indentation and empty lines. More would need to understand CSS; brotli does the rest.
fn squeeze(css: &str) -> String {
    let mut out = String::with_capacity(css.len());
    let mut rest = css;
    while let Some(start) = rest.find("/*") {
        out.push_str(&rest[..start]);
        rest = rest[start..]
            .find("*/")
            .map_or("", |end| &rest[start + end + 2..]);
    }
    out.push_str(rest);
    out.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::squeeze;

    #[test]
    fn comments_and_indentation_go_and_rules_stay() {
        assert_eq!(
            squeeze("/* a */\n  p {\n    color: red; /* why */\n  }\n\n"),
            "p {\ncolor: red;\n}"
        );
        assert_eq!(squeeze("a{} /* never closed"), "a{}");
    }
}
