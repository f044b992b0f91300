//! Bundles: zip archives that strangers made. Everything is checked before the first byte is unpacked, and counted again
//! while unpacking: what an archive says of itself is a claim.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom, Write},
};

use zip::{ZipArchive, ZipWriter, result::ZipResult, write::SimpleFileOptions};

/// What a bundle may hold.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Files.
    pub files: usize,
    /// Bytes of all files.
    pub total: u64,
    /// Bytes of one file.
    pub file: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files: 5_000,
            total: 200 << 20,
            file: 25 << 20,
        }
    }
}

/// Bytes of an archive that is looked at at all.
pub const LARGEST_ARCHIVE: u64 = 100 << 20;

/// How much larger than its archive a bundle may be, once it is larger than [`FREE`].
const RATIO: u64 = 100;
const FREE: u64 = 10 << 20;

/// Folders within folders.
const DEPTH: usize = 20;

/// Bytes of a path, and of one name in it.
const PATH: usize = 400;
const NAME: usize = 200;

/// Why a bundle is refused; the text is for its owner.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BundleError(String);

pub(super) fn refuse<T>(why: impl Into<String>) -> Result<T, BundleError> {
    Err(BundleError(why.into()))
}

/// Where a file lies in the archive and where it is to be served.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Path from the app's root, without a slash at the start.
    pub path: String,
    index: usize,
    size: u64,
}

/// An archive whose list of files was accepted.
pub struct Bundle {
    archive: ZipArchive<BufReader<File>>,
    entries: Vec<Entry>,
    limits: Limits,
    unpacked: u64,
}

impl Bundle {
    /// Reads the list of files and checks all of it.
    ///
    /// # Errors
    /// What is wrong with the bundle.
    pub fn open(mut file: File, limits: Limits) -> Result<Self, BundleError> {
        let size = file.metadata().map_err(unreadable)?.len();
        if size > LARGEST_ARCHIVE {
            return refuse(format!("the bundle is larger than {LARGEST_ARCHIVE} bytes"));
        }
        check_end(&mut file, size, limits.files)?;
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(unreadable)?;
        let mut entries = list(&mut archive, size, limits)?;
        entries = without_common_folder(entries);
        check_names(entries.iter().map(|entry| entry.path.as_str()))?;
        Ok(Self {
            archive,
            entries,
            limits,
            unpacked: 0,
        })
    }

    /// The files, in the order of the archive.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Begins to count for another reading of the files.
    pub fn begin(&mut self) {
        self.unpacked = 0;
    }

    /// One file, whole.
    ///
    /// # Errors
    /// It is damaged, or larger than it says.
    pub fn read(&mut self, number: usize) -> Result<Vec<u8>, BundleError> {
        let Some(entry) = self.entries.get(number) else {
            return refuse("the bundle has no such file");
        };
        let mut bytes = Vec::with_capacity(usize::try_from(entry.size).unwrap_or(0));
        let file = self.archive.by_index(entry.index).map_err(unreadable)?;
        file.take(entry.size + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > entry.size {
            return refuse(format!("{} is larger than the bundle says", entry.path));
        }
        self.unpacked += bytes.len() as u64;
        if self.unpacked > self.limits.total {
            return refuse(too_large(self.limits.total));
        }
        Ok(bytes)
    }
}

/// Files going into an archive, as they are: most of them are small already.
pub struct Packer(ZipWriter<File>);

impl Packer {
    /// An archive in this file.
    pub fn new(file: File) -> Self {
        Self(ZipWriter::new(file))
    }

    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, path: &str, bytes: &[u8]) -> ZipResult<()> {
        let options =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        self.0.start_file(path, options)?;
        Ok(self.0.write_all(bytes)?)
    }

    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> ZipResult<()> {
        self.0.finish().map(drop)
    }
}

fn unreadable(error: impl std::fmt::Display) -> BundleError {
    BundleError(format!(
        "the bundle cannot be read as a zip archive: {error}"
    ))
}

fn too_large(limit: u64) -> String {
    format!("the bundle's files are larger than {limit} bytes together")
}

/// Looks at the archive's own count before a library makes room for it: a million empty files are refused here.
fn check_end(file: &mut File, size: u64, most: usize) -> Result<(), BundleError> {
    const END: &[u8] = b"PK\x05\x06";
    const LARGE: &[u8] = b"PK\x06\x07";
    // The record, the longest comment behind it, the one of large archives before it, and what the library looks at beyond.
    let tail = size.min(22 + 65_535 + 20 + 64);
    file.seek(SeekFrom::Start(size - tail))
        .map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(tail)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    if bytes.windows(4).any(|window| window == LARGE) {
        return refuse("the bundle is an archive of the large kind (zip64): use a smaller one");
    }
    let mut found = false;
    for (at, _) in bytes
        .windows(4)
        .enumerate()
        .filter(|(_, window)| *window == END)
    {
        let Some(count) = bytes.get(at + 10..at + 12) else {
            continue;
        };
        found = true;
        if usize::from(u16::from_le_bytes([count[0], count[1]])) > most.saturating_mul(2) {
            return refuse(format!("the bundle has more than {most} files"));
        }
    }
    if !found {
        return refuse("the bundle is no zip archive, or was cut off");
    }
    Ok(())
}

/// Every file's claim, checked. Folders and what file managers leave behind are passed over.
fn list(
    archive: &mut ZipArchive<BufReader<File>>,
    size: u64,
    limits: Limits,
) -> Result<Vec<Entry>, BundleError> {
    const KIND: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    const FOLDER: u32 = 0o040_000;
    let (mut entries, mut total) = (Vec::new(), 0_u64);
    for index in 0..archive.len() {
        let file = archive.by_index_raw(index).map_err(unreadable)?;
        let Ok(name) = std::str::from_utf8(file.name_raw()) else {
            return refuse("a file of the bundle has a name that is not UTF-8");
        };
        let kind = file.unix_mode().map_or(0, |mode| mode & KIND);
        if !matches!(kind, 0 | REGULAR | FOLDER) {
            return refuse(format!("{} is a link or a device, not a file", shown(name)));
        }
        if file.encrypted() {
            return refuse(format!("{} is encrypted", shown(name)));
        }
        let path = name.trim_end_matches('/');
        check_path(path).map_err(|why| BundleError(format!("{} {why}", shown(name))))?;
        if name.ends_with('/') || kind == FOLDER || is_litter(path) {
            continue;
        }
        if entries.len() == limits.files {
            return refuse(format!("the bundle has more than {} files", limits.files));
        }
        if file.size() > limits.file {
            let most = limits.file;
            return refuse(format!("{} is larger than {most} bytes", shown(name)));
        }
        total = total.saturating_add(file.size());
        if total > limits.total {
            return refuse(too_large(limits.total));
        }
        entries.push(Entry {
            path: path.to_owned(),
            index,
            size: file.size(),
        });
    }
    if total > FREE && total / RATIO > size {
        return refuse("the bundle unpacks to more than a hundred times its size");
    }
    if entries.is_empty() {
        return refuse("the bundle has no files");
    }
    Ok(entries)
}

/// A name for a message.
fn shown(name: &str) -> String {
    let start: String = name.chars().take(80).collect();
    format!("{start:?}")
}

fn is_litter(path: &str) -> bool {
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
fn without_common_folder(mut entries: Vec<Entry>) -> Vec<Entry> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(make: impl FnOnce(&mut ZipWriter<File>)) -> Result<Bundle, BundleError> {
        let mut writer = ZipWriter::new(tempfile::tempfile().unwrap());
        make(&mut writer);
        Bundle::open(writer.finish().unwrap(), Limits::default())
    }

    fn file(writer: &mut ZipWriter<File>, name: &str, bytes: &[u8]) {
        let options = SimpleFileOptions::default();
        writer.start_file(name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }

    fn refusal(made: Result<Bundle, BundleError>) -> String {
        made.err().expect("the bundle is refused").to_string()
    }

    #[test]
    fn files_come_out_as_they_went_in() {
        let mut made = bundle(|writer| {
            writer
                .add_directory("dist", SimpleFileOptions::default())
                .unwrap();
            file(writer, "dist/index.html", b"<h1>Hi</h1>");
            file(writer, "dist/assets/a.js", b"1");
            file(writer, "__MACOSX/dist/._index.html", b"litter");
        })
        .unwrap();
        let paths: Vec<_> = made.entries().iter().map(|entry| &entry.path).collect();
        assert_eq!(paths, ["index.html", "assets/a.js"]);
        assert_eq!(made.read(0).unwrap(), b"<h1>Hi</h1>");
        assert_eq!(made.read(1).unwrap(), b"1");
    }

    #[test]
    fn names_that_leave_the_bundle_are_refused() {
        for name in [
            "../evil.html",
            "a/../../evil.html",
            "/etc/passwd",
            "a\\b.html",
            "C:/a.html",
            "a//b.html",
            "./a.html",
            "a\0b.html",
        ] {
            let made = bundle(|writer| {
                file(writer, "index.html", b"");
                file(writer, name, b"x");
            });
            assert!(made.is_err(), "{name:?} was taken");
        }
        let long = format!("{}.html", "a".repeat(300));
        assert!(bundle(|writer| file(writer, &long, b"")).is_err());
        assert!(bundle(|writer| file(writer, &format!("{}b", "a/".repeat(21)), b"")).is_err());
    }

    #[test]
    fn links_and_twins_are_refused() {
        let linked = bundle(|writer| {
            file(writer, "index.html", b"");
            writer
                .add_symlink("secret", "/etc/passwd", SimpleFileOptions::default())
                .unwrap();
        });
        assert!(refusal(linked).contains("link"));
        let twins = bundle(|writer| {
            file(writer, "Index.html", b"");
            file(writer, "index.HTML", b"");
        });
        assert!(refusal(twins).contains("same file"));
        let both = bundle(|writer| {
            file(writer, "a", b"");
            file(writer, "a/b.html", b"");
        });
        assert!(refusal(both).contains("folder"));
    }

    #[test]
    fn bombs_are_refused_before_they_are_unpacked() {
        let started = std::time::Instant::now();
        let big = bundle(|writer| {
            let zeros = vec![0; 1 << 20];
            writer
                .start_file("zeros.bin", SimpleFileOptions::default())
                .unwrap();
            for _ in 0..26 {
                writer.write_all(&zeros).unwrap();
            }
        });
        assert!(refusal(big).contains("larger than"));
        let tight = bundle(|writer| {
            let zeros = vec![0; 12 << 20];
            file(writer, "zeros.bin", &zeros);
        });
        assert!(refusal(tight).contains("hundred times"));
        let many = bundle(|writer| {
            for number in 0..12_000 {
                file(writer, &format!("{number}"), b"");
            }
        });
        assert!(refusal(many).contains("more than 5000 files"));
        assert!(started.elapsed().as_secs() < 20);
    }

    /// An archive of so many empty files, written by hand: a library would take minutes, and say how many there are.
    fn of_empty_files(count: u32, said: u16) -> File {
        let name = |number: u32| format!("{number:07}");
        let (mut local, mut central) = (Vec::new(), Vec::new());
        for number in 0..count {
            let at = u32::try_from(local.len()).unwrap();
            local.extend(b"PK\x03\x04\x0a\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0");
            local.extend(name(number).bytes());
            central.extend(b"PK\x01\x02\x0a\0\x0a\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\0\0");
            central.extend(at.to_le_bytes());
            central.extend(name(number).bytes());
        }
        let (start, length) = (local.len(), central.len());
        let mut made = tempfile::tempfile().unwrap();
        made.write_all(&local).unwrap();
        made.write_all(&central).unwrap();
        made.write_all(b"PK\x05\x06\0\0\0\0").unwrap();
        made.write_all(&[said.to_le_bytes(), said.to_le_bytes()].concat())
            .unwrap();
        for figure in [length, start] {
            let figure = u32::try_from(figure).unwrap();
            made.write_all(&figure.to_le_bytes()).unwrap();
        }
        made.write_all(&[0; 2]).unwrap();
        made
    }

    /// A million of them with `LOUPE_TEST_LONG`.
    #[test]
    fn empty_files_are_counted_before_there_is_room_for_them() {
        let few = Bundle::open(of_empty_files(3, 3), Limits::default()).unwrap();
        assert_eq!(few.entries().len(), 3);
        let long = std::env::var_os("LOUPE_TEST_LONG").is_some();
        let count = if long { 1_000_000 } else { 60_000 };
        for said in [60_000, u16::MAX] {
            let many = of_empty_files(count, said);
            let started = std::time::Instant::now();
            let refused = refusal(Bundle::open(many, Limits::default()));
            assert!(refused.contains("more than 5000 files"), "{refused}");
            assert!(started.elapsed().as_secs() < 2);
        }
        // What it says of itself is all that is read: fewer than there are.
        let hidden = Bundle::open(of_empty_files(count, 2), Limits::default());
        assert!(hidden.is_err() || hidden.is_ok_and(|made| made.entries().len() <= 2));
    }

    #[test]
    fn a_file_that_is_larger_than_it_says_is_refused() {
        let mut writer = ZipWriter::new(tempfile::tempfile().unwrap());
        file(&mut writer, "index.html", &[b'a'; 1000]);
        let mut archive = writer.finish().unwrap();
        let mut bytes = Vec::new();
        archive.rewind().unwrap();
        archive.read_to_end(&mut bytes).unwrap();
        // The size in the central directory.
        let central = bytes
            .windows(4)
            .rposition(|window| window == b"PK\x01\x02")
            .unwrap();
        bytes[central + 24..central + 28].copy_from_slice(&10_u32.to_le_bytes());
        let mut lying = tempfile::tempfile().unwrap();
        lying.write_all(&bytes).unwrap();
        let refused = Bundle::open(lying, Limits::default()).and_then(|mut made| made.read(0));
        assert!(refused.is_err());
    }

    #[test]
    fn archives_of_the_large_kind_are_refused_however_far_from_the_end() {
        let mut writer = ZipWriter::new(tempfile::tempfile().unwrap());
        file(&mut writer, "index.html", b"a page");
        let mut archive = writer.finish().unwrap();
        let mut whole = Vec::new();
        archive.rewind().unwrap();
        archive.read_to_end(&mut whole).unwrap();
        let end = whole.len() - 22;
        // The library takes an end that lies 15 bytes before the longest comment would let it.
        for behind in [0, 15] {
            let mut large = tempfile::tempfile().unwrap();
            large.write_all(&whole[..end]).unwrap();
            large.write_all(b"PK\x06\x07").unwrap();
            large.write_all(&[0; 16]).unwrap();
            large.write_all(&whole[end..end + 20]).unwrap();
            large.write_all(&[0xff; 2]).unwrap();
            large.write_all(&vec![0; 65_535 + behind]).unwrap();
            let refused = refusal(Bundle::open(large, Limits::default()));
            assert!(refused.contains("zip64"), "{behind}: {refused}");
        }
    }

    #[test]
    fn damaged_archives_are_refused_and_none_panics() {
        let mut writer = ZipWriter::new(tempfile::tempfile().unwrap());
        for number in 0..5 {
            file(
                &mut writer,
                &format!("folder/{number}.html"),
                b"some words of a page",
            );
        }
        let mut archive = writer.finish().unwrap();
        let mut whole = Vec::new();
        archive.rewind().unwrap();
        archive.read_to_end(&mut whole).unwrap();
        let seed = std::env::var("LOUPE_TEST_SEED").ok();
        let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(7_u64);
        println!("LOUPE_TEST_SEED={seed}");
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(state >> 33).unwrap()
        };
        let long = std::env::var_os("LOUPE_TEST_LONG").is_some();
        for _ in 0..if long { 50_000 } else { 5_000 } {
            let mut bytes = whole.clone();
            for _ in 0..1 + next() % 8 {
                let at = next() % bytes.len();
                bytes[at] = u8::try_from(next() % 256).unwrap();
            }
            bytes.truncate(bytes.len() - next() % 3);
            let mut broken = tempfile::tempfile().unwrap();
            broken.write_all(&bytes).unwrap();
            if let Ok(mut made) = Bundle::open(broken, Limits::default()) {
                for number in 0..made.entries().len() {
                    assert!(check_path(&made.entries()[number].path).is_ok());
                    let _ = made.read(number);
                }
            }
        }
    }
}
