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

/// An archive whose bytes were changed behind the library's back.
fn changed(make: impl FnOnce(&mut ZipWriter<File>), change: impl FnOnce(&mut Vec<u8>)) -> File {
    let mut writer = ZipWriter::new(tempfile::tempfile().unwrap());
    make(&mut writer);
    let mut archive = writer.finish().unwrap();
    let mut bytes = Vec::new();
    archive.rewind().unwrap();
    archive.read_to_end(&mut bytes).unwrap();
    change(&mut bytes);
    let mut other = tempfile::tempfile().unwrap();
    other.write_all(&bytes).unwrap();
    other
}

#[test]
fn two_files_of_one_name_are_refused() {
    let make = |writer: &mut ZipWriter<File>| {
        file(writer, "index.html", b"what a scanner sees");
        file(writer, "index.htmm", b"what is served");
    };
    let twins = changed(make, |bytes| {
        let other = b"index.htmm";
        while let Some(at) = bytes.windows(other.len()).position(|one| one == other) {
            bytes[at + other.len() - 1] = b'l';
        }
    });
    let refused = refusal(Bundle::open(twins, Limits::default()));
    assert!(refused.contains("same file twice"), "{refused}");
}

/// As the best known bomb: archives within archives are encrypted there, and files are as large as a 32-bit number says.
#[test]
fn what_is_encrypted_or_enormous_is_refused_at_once() {
    let began = std::time::Instant::now();
    let page = |writer: &mut ZipWriter<File>| file(writer, "index.html", b"a page");
    // In its entry the flags lie behind two versions, the size at 24.
    let entry = |bytes: &[u8]| {
        bytes
            .windows(4)
            .rposition(|one| one == b"PK\x01\x02")
            .unwrap()
    };
    let locked = changed(page, |bytes| {
        let at = entry(bytes) + 8;
        bytes[at] |= 1;
    });
    let refused = refusal(Bundle::open(locked, Limits::default()));
    assert!(refused.contains("encrypted"), "{refused}");
    let enormous = changed(page, |bytes| {
        let at = entry(bytes) + 24;
        bytes[at..at + 4].copy_from_slice(&(u32::MAX - 1).to_le_bytes());
    });
    let refused = refusal(Bundle::open(enormous, Limits::default()));
    assert!(refused.contains("larger than"), "{refused}");
    assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
}

/// The same, torn where its first file's bytes are: whoever unpacks that notices.
fn torn(make: impl FnOnce(&mut ZipWriter<File>)) -> Result<Bundle, BundleError> {
    let mut writer = ZipWriter::new(tempfile::tempfile().unwrap());
    make(&mut writer);
    let mut archive = writer.finish().unwrap();
    // Behind the file's head and its name.
    archive.seek(SeekFrom::Start(100)).unwrap();
    archive.write_all(&[0xff; 1000]).unwrap();
    Bundle::open(archive, Limits::default())
}

#[test]
fn bombs_are_refused_before_they_are_unpacked() {
    let small = torn(|writer| {
        let stored = SimpleFileOptions::default();
        let stored = stored.compression_method(zip::CompressionMethod::Stored);
        writer.start_file("index.html", stored).unwrap();
        writer.write_all(&[0; 4000]).unwrap();
    });
    assert!(small.unwrap().read(0).is_err());
    let big = torn(|writer| {
        let zeros = vec![0; 1 << 20];
        writer
            .start_file("zeros.bin", SimpleFileOptions::default())
            .unwrap();
        for _ in 0..26 {
            writer.write_all(&zeros).unwrap();
        }
    });
    assert!(refusal(big).contains("larger than"));
    let tight = torn(|writer| {
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
        let began = std::time::Instant::now();
        let refused = refusal(Bundle::open(many, Limits::default()));
        assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
        assert!(refused.contains("more than 5000 files"), "{refused}");
        // Their list is not looked at: here there is none, and that is not what is wrong.
        let bare = of_empty_files(0, said);
        let refused = refusal(Bundle::open(bare, Limits::default()));
        assert!(refused.contains("more than 5000 files"), "{refused}");
    }
    let bare = refusal(Bundle::open(of_empty_files(0, 60), Limits::default()));
    assert!(!bare.contains("5000"), "{bare}");
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
