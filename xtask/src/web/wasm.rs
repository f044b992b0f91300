//! The console: compiled, bound to JavaScript, put behind an index page.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use super::{
    Mode,
    bundle::Bundle,
    files_under, recreate, say,
    toolchain::{TARGET, Toolchain, run},
};

const PACKAGE: &str = "loupe-console";

/// Compiles the console and returns the folder with its bindings.
pub fn build(root: &Path, target_dir: &Path, mode: Mode) -> Result<PathBuf> {
    let toolchain = Toolchain::find(target_dir)?;
    let (profile, folder) = if mode == Mode::Dev {
        ("dev", "debug")
    } else {
        ("web", "web")
    };
    say("compiling the console (the first time takes minutes, later seconds)");
    let mut cargo = toolchain.cargo();
    cargo
        .current_dir(root)
        .env("CARGO_TARGET_DIR", target_dir)
        .args([
            "--package",
            PACKAGE,
            "--target",
            TARGET,
            "--profile",
            profile,
        ]);
    run(cargo, "cargo build of the console")?;

    say("binding it to JavaScript");
    let out = target_dir.join("bindgen");
    recreate(&out)?;
    Bindgen::new()
        .input_path(
            target_dir
                .join(TARGET)
                .join(folder)
                .join(format!("{PACKAGE}.wasm")),
        )
        .out_name("console")
        .web(true)
        .context("choosing the web output")?
        .typescript(false)
        .omit_default_module_path(true)
        .remove_name_section(mode == Mode::Release)
        .remove_producers_section(true)
        .generate(&out)
        .context("generating the bindings")?;
    Ok(out)
}

/// Adds the bindings, the starter and the page that loads them.
pub fn add(root: &Path, bindgen: &Path, bundle: &mut Bundle) -> Result<()> {
    let wasm = bundle.add("console.wasm", &fs::read(bindgen.join("console_bg.wasm"))?)?;
    let script = bundle.add(
        "console.js",
        squeeze(&fs::read_to_string(bindgen.join("console.js"))?).as_bytes(),
    )?;
    for file in files_under(&bindgen.join("snippets"))? {
        let name = file.strip_prefix(bindgen)?.to_string_lossy().into_owned();
        bundle.add_plain(&name, &fs::read(&file)?)?;
    }
    let start = include_str!("start.js")
        .replace("{script}", &script)
        .replace("{wasm}", &wasm);
    let start = bundle.add("start.js", start.as_bytes())?;
    let page = include_str!("index.html")
        .replace("{style}", bundle.name("console.css")?)
        .replace("{font}", bundle.name("inter-regular.woff2")?)
        .replace("{icon}", bundle.name("favicon.svg")?)
        .replace("{starter}", bundle.name("starter.json")?)
        .replace("{start}", &start)
        .replace("{script}", &script)
        .replace("{wasm}", &wasm)
        .replace("{forms}", &forms(&root.join("console/src/page"))?);
    bundle.add_plain("index.html", page.as_bytes())
}

/// The forms of the console as one object, by the path of their file. As data in the page they weigh nothing in the program.
fn forms(pages: &Path) -> Result<String> {
    let mut forms = serde_json::Map::new();
    for file in files_under(pages)? {
        if file.extension().is_some_and(|ending| ending == "json") {
            let name = file.strip_prefix(pages)?.with_extension("");
            let form = serde_json::from_slice(&fs::read(&file)?)
                .with_context(|| format!("reading the form {}", name.display()))?;
            forms.insert(name.to_string_lossy().into_owned(), form);
        }
    }
    // Nothing in the data may end the element that holds it.
    Ok(serde_json::to_string(&forms)?.replace("</", "<\\/"))
}

/// Drops indentation and whole-line comments of the generated bindings, which hold no multi-line strings.
fn squeeze(script: &str) -> String {
    let mut out = String::with_capacity(script.len());
    for line in script.lines().map(str::trim) {
        let comment = line.starts_with("//")
            || line.starts_with("/*")
            || line.starts_with("* ")
            || line == "*/"
            || line == "*";
        if !line.is_empty() && !comment {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}
