//! The web build: WebAssembly, style sheets and fonts in, hashed and compressed files out.

mod bundle;
mod style;
mod toolchain;
mod wasm;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use bundle::Bundle;

/// How much work goes into the files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Small: optimised, compressed, held to the budget.
    Release,
    /// Quick: as the compiler leaves it.
    Dev,
}

/// What decides the output. A change in any of these makes a new build.
const INPUTS: [&str; 8] = [
    "console",
    "server/wire",
    "style",
    "sdk-js/dist",
    "sdk-js/examples",
    "xtask/src",
    "Cargo.toml",
    "Cargo.lock",
];

/// Builds `dist/web`, or says that it is up to date.
pub fn build(mode: Mode) -> Result<()> {
    let started = Instant::now();
    let root = workspace_root()?;
    let out = root.join("dist/web");
    let stamp_file = root.join("dist/web.stamp");
    let stamp = stamp(&root, mode)?;
    if out.join("manifest.json").exists()
        && fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp)
    {
        say("dist/web is up to date");
        return Ok(());
    }

    let target = target_dir(&root);
    let built = wasm::build(&root, &target, mode)?;

    // Built beside and moved at the end: a failed build leaves the last good one in place.
    let fresh = root.join("dist/web.new");
    recreate(&fresh)?;
    let mut bundle = Bundle::new(&fresh, mode);
    style::add(&root.join("style"), &mut bundle)?;
    add_scripts(&root.join("sdk-js/dist"), &mut bundle)?;
    add_starter(&root.join("sdk-js/examples/starter"), &mut bundle)?;
    wasm::add(&root, &built, &mut bundle)?;
    bundle.finish()?;

    if out.exists() {
        fs::remove_dir_all(&out).context("removing the old dist/web")?;
    }
    fs::rename(&fresh, &out).context("moving the new dist/web into place")?;
    fs::write(&stamp_file, stamp)?;
    say(&format!(
        "dist/web written in {:.1} s",
        started.elapsed().as_secs_f32()
    ));
    Ok(())
}

/// Scripts that another build left for us, under their own names.
fn add_scripts(dir: &Path, bundle: &mut Bundle) -> Result<()> {
    // By name: what the tests and the client are compiled to lies there, too.
    for name in ["embed.js", "search.js"] {
        bundle.add(name, &fs::read(dir.join(name))?)?;
    }
    Ok(())
}

/// The files of the starter as the API takes them, so that the console deploys it with one call.
fn add_starter(dir: &Path, bundle: &mut Bundle) -> Result<()> {
    let mut files = BTreeMap::new();
    for file in files_under(dir)? {
        let name = file.strip_prefix(dir)?.to_string_lossy().into_owned();
        files.insert(name, fs::read_to_string(&file)?);
    }
    bundle.add("starter.json", &serde_json::to_vec(&files)?)?;
    Ok(())
}

fn workspace_root() -> Result<PathBuf> {
    // Asked at run time: clones that share a target folder share this program, too.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").context("run as `cargo xtask`")?;
    Ok(Path::new(&manifest)
        .parent()
        .context("xtask has no parent folder")?
        .to_path_buf())
}

/// The wasm build never shares a folder with the host build: another compiler would throw its work away.
fn target_dir(root: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root.join(dir).join("web"),
        None => root.join("target/web"),
    }
}

fn recreate(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))
}

fn stamp(root: &Path, mode: Mode) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(if mode == Mode::Dev { "dev" } else { "release" });
    for input in INPUTS {
        for file in files_under(&root.join(input))? {
            hash.update(file.to_string_lossy().as_bytes());
            hash.update(fs::read(&file)?);
        }
    }
    Ok(hex::encode(hash.finalize()))
}

/// Every file below `path` in a fixed order; nothing when it does not exist.
fn files_under(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut found = Vec::new();
    if path.is_dir() {
        for entry in fs::read_dir(path).with_context(|| format!("reading {}", path.display()))? {
            found.extend(files_under(&entry?.path())?);
        }
    }
    found.sort();
    Ok(found)
}

fn say(line: &str) {
    println!("web: {line}");
}
