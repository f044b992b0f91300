//! The folder that the server embeds: content-hashed names, compressed twins, a manifest and a budget.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::{Mode, say};

/// Largest size after brotli, by ending of the logical name. One entry per line of the promise.
const BUDGETS: [(&str, usize); 4] = [
    ("embed.js", 2 * 1024),
    ("console.js", 10 * 1024),
    ("search.js", 10 * 1024),
    (".css", 15 * 1024),
];

/// What every public page fetches beside itself, and its largest size: of the 30 KB that are promised before pictures, the rest
/// is for the page's own text.
const PUBLIC: [&str; 2] = ["public.css", "search.js"];
const MOST_PUBLIC: usize = 22 * 1024;

/// Files already small: compressing them again only costs.
const COMPRESSED: [&str; 2] = ["woff2", "png"];

/// Collects files into one folder.
pub struct Bundle {
    dir: PathBuf,
    mode: Mode,
    names: BTreeMap<String, String>,
    /// After brotli, by logical name.
    sizes: BTreeMap<String, usize>,
    over: Vec<String>,
}

impl Bundle {
    pub fn new(dir: &Path, mode: Mode) -> Self {
        Self {
            dir: dir.to_path_buf(),
            mode,
            names: BTreeMap::new(),
            sizes: BTreeMap::new(),
            over: Vec::new(),
        }
    }

    /// Writes `bytes` as `name` with its hash in the file name and returns that file name.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Result<String> {
        let digest = hex::encode(Sha256::digest(bytes));
        let hashed = match name.rsplit_once('.') {
            Some((stem, ending)) => format!("{stem}-{}.{ending}", &digest[..12]),
            None => format!("{name}-{}", &digest[..12]),
        };
        self.write(name, &hashed, bytes)?;
        Ok(hashed)
    }

    /// Writes files that name each other into a folder of their own, called by the hash of all: none of them is ever
    /// served beside those of another build.
    pub fn add_together(&mut self, files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
        let mut hash = Sha256::new();
        for (name, bytes) in files {
            hash.update(name);
            hash.update(bytes);
        }
        let folder = &hex::encode(hash.finalize())[..12];
        for (name, bytes) in files {
            self.write(name, &format!("{folder}/{name}"), bytes)?;
        }
        Ok(())
    }

    /// Says how much is fetched together, and holds it to a limit where there is one. Builds that pack nothing have no sizes.
    pub fn weigh(&mut self, what: &str, files: &[String], most: Option<usize>) {
        if self.mode == Mode::Dev {
            return;
        }
        let known = |name: &String| self.sizes.get(name).copied();
        if let Some(absent) = files.iter().find(|name| known(name).is_none()) {
            self.over.push(format!("{what}: {absent} is not there"));
            return;
        }
        let sum = files.iter().filter_map(known).sum();
        let limit = most.map_or_else(String::new, |most| format!(" of {:.0} KB", kb(most)));
        let told = format!("{what}: {:.1} KB brotli{limit}", kb(sum));
        say(&told);
        if most.is_some_and(|most| sum > most) {
            self.over.push(told);
        }
    }

    /// Writes `bytes` under its plain name: the page that is asked for by name, and what it imports by path.
    pub fn add_plain(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write(name, name, bytes)
    }

    /// The hashed name of a file added before.
    pub fn name(&self, logical: &str) -> Result<&str> {
        self.names
            .get(logical)
            .map(String::as_str)
            .with_context(|| format!("{logical} is not in the bundle"))
    }

    fn write(&mut self, logical: &str, file: &str, bytes: &[u8]) -> Result<()> {
        let path = self.dir.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, bytes).with_context(|| format!("writing {file}"))?;
        self.names.insert(logical.to_owned(), file.to_owned());
        let done = Path::new(logical)
            .extension()
            .is_some_and(|e| COMPRESSED.iter().any(|c| e == *c));
        if done {
            return Ok(());
        }
        // The server carries these packed only.
        let small = brotli(bytes, if self.mode == Mode::Dev { 1 } else { 11 })?;
        fs::write(twin(&path, "br"), &small)?;
        if self.mode == Mode::Dev {
            return Ok(());
        }
        self.sizes.insert(logical.to_owned(), small.len());
        let budget = BUDGETS
            .iter()
            .find(|(name, _)| logical.ends_with(name))
            .map(|(_, most)| *most);
        let limit = budget
            .map(|most| format!(" of {:.0} KB", kb(most)))
            .unwrap_or_default();
        say(&format!(
            "{logical}: {:.1} KB, {:.1} KB brotli{limit}",
            kb(bytes.len()),
            kb(small.len())
        ));
        if budget.is_some_and(|most| small.len() > most) {
            self.over
                .push(format!("{logical} is {:.1} KB{limit}", kb(small.len())));
        }
        Ok(())
    }

    /// Writes the manifest; fails when a file is over its budget.
    pub fn finish(mut self) -> Result<()> {
        let public = PUBLIC.map(str::to_owned);
        // Builds without the SDK have no script.
        if public.iter().all(|name| self.names.contains_key(name)) {
            self.weigh("files of a public page", &public, Some(MOST_PUBLIC));
        }
        if !self.over.is_empty() {
            bail!("over the size budget: {}", self.over.join("; "));
        }
        fs::write(
            self.dir.join("manifest.json"),
            serde_json::to_vec_pretty(&self.names)?,
        )?;
        Ok(())
    }
}

fn twin(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn brotli(bytes: &[u8], quality: i32) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let params = brotli::enc::BrotliEncoderParams {
        quality,
        lgwin: 22,
        lgblock: 21,
        size_hint: bytes.len(),
        ..Default::default()
    };
    brotli::BrotliCompress(&mut &bytes[..], &mut out, &params)
        .context("compressing with brotli")?;
    Ok(out)
}

fn kb(bytes: usize) -> f64 {
    bytes as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("loupe-bundle-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary folder");
        dir
    }

    #[test]
    fn names_follow_the_content_and_twins_decompress_to_it() {
        let dir = scratch("names");
        let mut bundle = Bundle::new(&dir, Mode::Release);
        let one = bundle.add("a.css", b"p{}").expect("added");
        let two = bundle.add("b.css", b"q{}").expect("added");
        assert_ne!(one.trim_start_matches("a-"), two.trim_start_matches("b-"));
        let mut back = Vec::new();
        let packed = fs::read(dir.join(format!("{one}.br"))).expect("a brotli twin");
        brotli::BrotliDecompress(&mut &packed[..], &mut back).expect("valid brotli");
        assert_eq!(back, b"p{}");
        bundle.finish().expect("within budget");
        let manifest: BTreeMap<String, String> =
            serde_json::from_slice(&fs::read(dir.join("manifest.json")).expect("a manifest"))
                .expect("json");
        assert_eq!(manifest["a.css"], one);
        fs::remove_dir_all(dir).ok();
    }

    /// Digests do not compress.
    fn noise() -> String {
        let all = (0..900u32).map(|n| hex::encode(Sha256::digest(n.to_le_bytes())));
        all.collect()
    }

    #[test]
    fn what_is_fetched_together_is_weighed_together() {
        let dir = scratch("together");
        let mut bundle = Bundle::new(&dir, Mode::Release);
        let files = ["one.wasm", "two.wasm"].map(|name| (name.to_owned(), noise().into_bytes()));
        bundle.add_together(&files.into()).expect("added");
        let folder = |name: &str| bundle.name(name).expect("a name").to_owned();
        let (one, two) = (folder("one.wasm"), folder("two.wasm"));
        assert_eq!(
            one.split_once('/').map(|of| of.0),
            two.split_once('/').map(|of| of.0)
        );
        assert!(dir.join(format!("{one}.br")).exists());
        let both = ["one.wasm".to_owned(), "two.wasm".to_owned()];
        bundle.weigh("one", &both[..1], Some(40 * 1024));
        assert!(bundle.over.is_empty());
        bundle.weigh("both", &both, Some(40 * 1024));
        bundle.weigh("a third", &["three.wasm".to_owned()], None);
        let error = bundle.finish().expect_err("too large").to_string();
        assert!(error.contains("both"), "{error}");
        assert!(error.contains("three.wasm is not there"), "{error}");
        fs::remove_dir_all(dir).ok();
    }

    #[test]
    fn a_file_over_its_budget_fails_the_build() {
        let dir = scratch("budget");
        let mut bundle = Bundle::new(&dir, Mode::Release);
        let noise = noise();
        bundle.add("huge.css", noise.as_bytes()).expect("added");
        bundle.add("search.js", noise.as_bytes()).expect("added");
        let error = bundle.finish().expect_err("too large").to_string();
        assert!(error.contains("huge.css"), "{error}");
        assert!(error.contains("search.js is "), "{error}");
        fs::remove_dir_all(dir).ok();
    }

    #[test]
    fn a_public_page_has_a_budget_of_its_own() {
        let dir = scratch("public");
        let noise = noise();
        // Two characters of it are a byte: each file is within its own budget.
        let (style, script) = (&noise[..29_000], &noise[29_000..48_600]);
        let mut bundle = Bundle::new(&dir, Mode::Release);
        let add = |bundle: &mut Bundle, name: &str, text: &str| {
            bundle.add(name, text.as_bytes()).expect("added");
        };
        add(&mut bundle, "public.css", style);
        add(&mut bundle, "search.js", "1");
        bundle.finish().expect("within budget");
        let mut bundle = Bundle::new(&dir, Mode::Release);
        add(&mut bundle, "public.css", style);
        add(&mut bundle, "search.js", script);
        let error = bundle.finish().expect_err("too large").to_string();
        assert!(error.contains("files of a public page"), "{error}");
        assert!(!error.contains(" is "), "{error}");
        fs::remove_dir_all(dir).ok();
    }
}
