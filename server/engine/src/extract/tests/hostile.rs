//! S-32, R-43: broken and hostile files of every kind through real worker processes. Each is read or fails with a reason that
//! says what to do about it; nothing of it is blamed on the server, and the next file is read.

use std::time::Instant;

use rand::Rng;
use rand::rngs::StdRng;

use super::super::media::{Cut, Segment, Workshop};
use super::super::tools::{Tool, Tools};
use super::*;

fn encoded(format: image::ImageFormat) -> Vec<u8> {
    let picture = image::RgbImage::from_fn(48, 32, |x, y| {
        image::Rgb([(x * 5) as u8, (y * 7) as u8, 90])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    let picture = image::DynamicImage::ImageRgb8(picture);
    let picture = match format {
        // Icons are transparent by rule.
        image::ImageFormat::Ico => image::DynamicImage::ImageRgba8(picture.to_rgba8()),
        _ => picture,
    };
    picture
        .write_to(&mut bytes, format)
        .expect("memory takes everything");
    bytes.into_inner()
}

/// One honest file of each kind that is read, with what is wanted of it.
fn honest() -> Vec<(&'static str, Want, Vec<u8>)> {
    use image::ImageFormat::{Bmp, Gif, Ico, Jpeg, Png, Pnm, Tiff, WebP};

    let rows = "<row r=\"1\"><c r=\"A1\"><v>42</v></c><c r=\"B1\"><v>1</v></c></row>";
    let page = "<!doctype html><html><body><h1>Bees</h1><p>They <b>dance</b>.</p></body></html>";
    let mut files = vec![
        (
            "a.pdf",
            Want::Text,
            samples::pdf(&["Hello first page", "And the second"]),
        ),
        (
            "a.docx",
            Want::Text,
            samples::docx(&[&["Of Bees", "They dance."], &["More"]]),
        ),
        (
            "a.pptx",
            Want::Text,
            samples::pptx(&["Bees dance", "Wasps do not"]),
        ),
        ("a.xlsx", Want::Text, samples::xlsx(&[("Bees", rows)])),
        (
            "a.epub",
            Want::Text,
            samples::epub(&["<h1>One</h1>", "<p>Two</p>"]),
        ),
        ("a.eml", Want::Text, samples::email()),
        ("a.html", Want::Text, page.as_bytes().to_vec()),
        ("a.md", Want::Text, b"# Bees\n\nThey *dance*.".to_vec()),
    ];
    let want = Want::Picture {
        thumbnail: true,
        large: true,
    };
    let pictures = [
        ("a.png", Png),
        ("a.jpg", Jpeg),
        ("a.gif", Gif),
        ("a.webp", WebP),
        ("a.bmp", Bmp),
        ("a.tiff", Tiff),
        ("a.ico", Ico),
        ("a.ppm", Pnm),
    ];
    files.extend(pictures.map(|(name, format)| (name, want, encoded(format))));
    files.push(("exif.jpg", want, samples::jpeg_with_exif()));
    files.push(("a.heic", want, samples::turned_heic()));
    files
}

/// What becomes of a file on its way: cut off, bits turned, a hole, numbers that are too large.
fn broken(file: &[u8], random: &mut StdRng, number: usize) -> Vec<u8> {
    let mut bytes = file.to_vec();
    match number % 4 {
        0 => bytes.truncate(random.random_range(1..file.len())),
        1 => {
            for _ in 0..random.random_range(1..=16) {
                let place = random.random_range(0..bytes.len());
                bytes[place] ^= 1 << random.random_range(0..8);
            }
        }
        2 => {
            let start = random.random_range(0..bytes.len());
            let end = (start + random.random_range(1..64)).min(bytes.len());
            bytes[start..end].fill(0);
        }
        _ => {
            let start = random.random_range(0..bytes.len());
            let end = (start + 4).min(bytes.len());
            bytes[start..end].fill(0xff);
        }
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_files_of_every_kind_cost_only_themselves() {
    const EACH: usize = 32;
    let mut random = crate::hostile::random();
    let (longer, each) = crate::hostile::seconds();
    let workers = workers();
    let (mut total, mut failed, mut crashed) = (0, 0, 0);
    for (name, want, file) in honest() {
        let whole = workers.decode(want, named(name), file.clone()).await;
        assert!(whole.is_ok(), "{name} is honest: {whole:?}");
        let end = Instant::now() + each;
        for number in 0.. {
            let bytes = match number < EACH {
                true => broken(&file, &mut random, number),
                false if longer && Instant::now() < end => {
                    crate::hostile::broken(&file, &[file.as_slice()], &[], &mut random)
                }
                false => break,
            };
            total += 1;
            let read = workers.decode(want, named(name), bytes).await;
            let Err(error) = read else { continue };
            failed += 1;
            crashed += usize::from(error.message.contains("its decoder crashed"));
            assert_ne!(error.kind, ErrorKind::Transient, "{name} {number}: {error}");
            assert!(!error.message.is_empty(), "{name} {number}");
        }
    }
    println!(
        "{total} broken files: {failed} failed with a reason, {crashed} of them by a dead worker"
    );
    assert!(
        total >= 500 && failed > total / 4,
        "{failed} of {total} failed"
    );
    let after = text(&workers, "a.txt", "still here").await.expect("read");
    assert_eq!(after.pages, ["still here"]);
}

/// A sound of one second, as WAV: no program is needed to write one.
fn wav() -> Vec<u8> {
    let samples: Vec<u8> = (0..8_000_u32)
        .flat_map(|n| (((n * 440 / 8) % 2000) as i16 - 1000).to_le_bytes())
        .collect();
    let length = samples.len() as u32;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + length).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(8_000_u32.to_le_bytes());
    file.extend(16_000_u32.to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend(length.to_le_bytes());
    file.extend(samples);
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_are_read_by_programs_that_limit_themselves() {
    let tools = Tools::find();
    assert!(
        tools.media().is_ok(),
        "the tests need ffmpeg: {:?}",
        tools.media()
    );
    let extraction = workers().with_tools(tools);
    let file = wav();
    let sound = Data::from(file.clone());
    let workshop = Workshop::open(&extraction, &sound).await.expect("a sound");
    assert!(
        (workshop.facts.seconds - 1.0).abs() < 0.01,
        "{:?}",
        workshop.facts
    );
    assert_eq!(workshop.facts.audio.as_deref(), Some("pcm_s16le"));
    let segments = workshop.segments(Cut::Time(10.0)).await.expect("cut");
    assert_eq!(segments.len(), 1);
    let mut random = crate::hostile::random();
    for number in 0..24 {
        let mut bytes = broken(&file, &mut random, number);
        // Its mark decides that a file is given to ffmpeg at all.
        bytes.splice(
            ..bytes.len().min(12),
            file[..bytes.len().min(12)].iter().copied(),
        );
        if let Err(error) = Workshop::open(&extraction, &bytes.into()).await {
            assert_ne!(error.kind, ErrorKind::Transient, "{number}: {error}");
            assert!(!error.message.contains("/tmp"), "{error}");
        }
    }
    for playlist in [
        "#EXTM3U\nfile:///etc/passwd\n",
        "ffconcat version 1.0\nfile /etc/passwd\n",
    ] {
        let refused = Workshop::open(&extraction, &playlist.into()).await;
        let error = refused.err().expect("a playlist is no recording");
        assert!(error.message.contains("no sound or film"), "{error}");
    }
}

#[tokio::test]
async fn a_missing_program_is_told_by_its_package() {
    let extraction = workers();
    let error = Workshop::open(&extraction, &wav().into())
        .await
        .err()
        .expect("no ffprobe");
    assert_eq!(error.kind, ErrorKind::Permanent);
    assert_eq!(error.message, Tool::Ffprobe.missing());
}

/// A stream without an index, of eight white seconds, eight black and eight white ones, with one key picture at the beginning of
/// each.
fn stream(name: &str, more: &str) -> Data {
    let folder = tempfile::tempdir().expect("room");
    let path = folder.path().join(name);
    let picture = |color: &str| format!("color={color}:s=64x48:r=25:d=8");
    let sources = ["white", "black", "white"].map(picture);
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error"]);
    for source in &sources {
        command.args(["-f", "lavfi", "-i", source]);
    }
    let made = command
        .args(
            "-filter_complex concat=n=3 -pix_fmt yuv420p -g 200 -sc_threshold 1000000000"
                .split(' '),
        )
        .args(more.split(' '))
        .arg(&path)
        .status()
        .expect("started");
    assert!(made.success(), "the tests need ffmpeg");
    std::fs::read(path).expect("written").into()
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_without_an_index_show_each_moment_as_it_is() {
    let extraction = workers().with_tools(Tools::find());
    for (name, more) in [
        ("a.ts", "-c:v mpeg2video -f mpegts"),
        ("a.m2ts", "-c:v mpeg2video -mpegts_m2ts_mode 1 -f mpegts"),
        ("a.mpg", "-c:v mpeg2video -f mpeg"),
    ] {
        let film = stream(name, more);
        let workshop = Workshop::open(&extraction, &film).await.expect(name);
        for (start, white) in [
            (1.0, true),
            (6.0, true),
            (9.0, false),
            (14.0, false),
            (22.0, true),
        ] {
            let segment = Segment {
                start,
                end: start + 1.0,
            };
            let frame = workshop.frame(segment).await.expect(name);
            let frame = frame.unwrap_or_else(|| panic!("{name} has a picture at {start}"));
            let frame = image::load_from_memory(&frame)
                .expect("a picture")
                .to_luma8();
            let shown = frame.get_pixel(32, 24).0[0] > 128;
            assert_eq!(shown, white, "{name} at {start}");
        }
    }
}
