//! The console: compiled, bound to JavaScript, put behind an index page.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, ensure};
use wasm_bindgen_cli_support::Bindgen;

use super::{
    Mode,
    bundle::Bundle,
    files_under, recreate, say,
    toolchain::{TARGET, Toolchain, run},
};

const PACKAGE: &str = "loupe-console";

/// The most that a visitor fetches, after brotli, before any one page of the console is there.
const FIRST_LOAD: usize = 350 * 1024;

/// The script that fetches pieces.
const PIECES: &str = "pieces.js";

/// The program in pieces: one that comes first, and those that are fetched with the first of their pages.
pub struct Built {
    /// Where all files are.
    dir: PathBuf,
    /// The files of each piece.
    pieces: BTreeMap<String, Vec<String>>,
}

/// Compiles the console, cuts it where its pages are fetched later, and binds it to JavaScript.
pub fn build(root: &Path, target_dir: &Path, mode: Mode) -> Result<Built> {
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
            // By its relocations the program is cut into pieces.
            "--",
            "-Clink-args=--emit-relocs",
        ]);
    run(cargo, "cargo build of the console")?;

    let whole = target_dir
        .join(TARGET)
        .join(folder)
        .join(format!("{PACKAGE}.wasm"));
    let dir = target_dir.join("bindgen");
    recreate(&dir)?;
    let pieces = cut(&fs::read(&whole)?, &dir)?;

    say("binding it to JavaScript");
    let main = dir.join("main.wasm");
    Bindgen::new()
        .input_path(&main)
        .out_name("console")
        .web(true)
        .context("choosing the web output")?
        .typescript(false)
        .omit_default_module_path(true)
        // The pieces take the first one's table of functions from its exports.
        .keep_lld_exports(true)
        .remove_name_section(mode == Mode::Release)
        .remove_producers_section(true)
        .generate(&dir)
        .context("generating the bindings")?;
    fs::remove_file(main)?;
    Ok(Built { dir, pieces })
}

/// Cuts the program into pieces below `dir` and tells the files of each.
fn cut(whole: &[u8], dir: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let main = dir.join("main.wasm");
    let link = format!("./{PIECES}");
    let mut options = wasm_split_cli_support::Options::new(whole);
    options.output_dir = dir;
    options.main_out_path = &main;
    options.link_name = &link;
    options.main_module = "./console.js";
    let made = wasm_split_cli_support::transform(options)
        .map_err(|fault| anyhow!("cutting the program: {fault:#}"))?;
    ensure!(!made.prefetch_map.is_empty(), "the program has no pieces");
    let files = |stems: Vec<String>| stems.iter().map(|stem| format!("{stem}.wasm")).collect();
    let all = made.prefetch_map.into_iter();
    Ok(all.map(|(piece, stems)| (piece, files(stems))).collect())
}

/// Adds the bindings, the pieces, the starter and the page that loads them.
pub fn add(root: &Path, built: &Built, bundle: &mut Bundle) -> Result<()> {
    let mut files = BTreeMap::new();
    for file in files_under(&built.dir)? {
        let name = file.strip_prefix(&built.dir)?.to_string_lossy();
        let (name, bytes) = (name.replace("console_bg.", "console."), fs::read(&file)?);
        let bytes = match name.rsplit('.').next() {
            Some("js") => squeeze(&String::from_utf8(bytes)?).into_bytes(),
            Some("wasm") => bare(&bytes).with_context(|| format!("reading {name}"))?,
            _ => bytes,
        };
        files.insert(name, bytes);
    }
    bundle.add_together(&files)?;
    for (piece, of) in &built.pieces {
        let mut all = vec!["console.wasm".to_owned()];
        all.extend(of.iter().cloned());
        bundle.weigh(
            &format!("the first page of {piece}"),
            &all,
            Some(FIRST_LOAD),
        );
    }
    let all: Vec<_> = files
        .into_keys()
        .filter(|name| name.ends_with(".wasm"))
        .collect();
    bundle.weigh("all pieces", &all, None);
    let (wasm, script) = (
        bundle.name("console.wasm")?.to_owned(),
        bundle.name("console.js")?.to_owned(),
    );
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

/// A module without what only people and tools read: names and the like.
fn bare(module: &[u8]) -> Result<Vec<u8>> {
    const HEAD: usize = 8;
    let mut out = module.get(..HEAD).context("no module")?.to_vec();
    let mut rest = &module[HEAD..];
    while let [kind, after @ ..] = rest {
        let (size, length) = number(after).context("a section without a size")?;
        let end = 1 + length + size;
        let section = rest.get(..end).context("a section that ends early")?;
        if *kind != 0 {
            out.extend_from_slice(section);
        }
        rest = &rest[end..];
    }
    Ok(out)
}

/// A number as modules write it, seven bits at a time, and how long it is.
fn number(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tools_read_goes() {
        let head = b"\0asm\x01\0\0\0";
        let kept = [1, 3, 9, 9, 9];
        let long = [&[10, 0x81, 0x01][..], &[7; 129]].concat();
        let name = [0, 2, 1, b'n'];
        let module = [&head[..], &name, &kept, &long, &name].concat();
        assert_eq!(
            bare(&module).expect("a module"),
            [&head[..], &kept, &long].concat()
        );
        assert!(bare(&module[..module.len() - 1]).is_err());
        assert!(bare(b"\0asm").is_err());
    }
}
