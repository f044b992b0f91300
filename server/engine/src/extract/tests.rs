//! Every file through real worker processes: this test binary, started again as the worker.

mod documents;
mod hostile;
mod large;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use bytes::Bytes;
use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, GBK, KOI8_R, SHIFT_JIS, WINDOWS_1250, WINDOWS_1251, WINDOWS_1253,
};
use serde_json::json;

use super::decode::MAX_TEXT_BYTES;
use super::worker::{AnswerHeader, JobHeader, read_frame, understand, write_frame};
use super::{
    Claim, Data, Decoded, ErrorKind, ExtractError, Extraction, Format, Picture, TextFile, Want,
    samples, worker,
};

/// Among the arguments of a worker. The test runner takes it and skips nothing of that name.
const AS_A_WORKER: &str = "--skip=as-a-worker";

fn as_a_worker() -> Vec<OsString> {
    let test = "extract::tests::a_worker_answers_until_its_socket_is_closed";
    [test, "--exact", AS_A_WORKER, "--test-threads=1"]
        .map(Into::into)
        .to_vec()
}

/// Drives one worker to its end. What it starts, as [`workers`] do, is this test again: the worker itself.
#[test]
fn a_worker_answers_until_its_socket_is_closed() {
    if std::env::args().any(|argument| argument == AS_A_WORKER) {
        worker::main();
        return;
    }
    let (mut socket, other) = UnixStream::pair().expect("a pair of sockets");
    let mut child = Command::new(std::env::current_exe().expect("a test runs from a file"))
        .args(as_a_worker())
        .stdin(Stdio::from(OwnedFd::from(other)))
        .stdout(Stdio::null())
        .spawn()
        .expect("started");
    for words in ["first", "second"] {
        let job = JobHeader {
            want: Want::Text,
            claim: named("a.txt"),
            file: None,
        };
        write_frame(&mut socket, &job, &[words.as_bytes()]).expect("sent");
        let answer: (AnswerHeader, Bytes) = read_frame(&mut socket)
            .expect("an answer")
            .expect("not the end");
        let Ok(Decoded::Text(file)) = understand(answer.0, answer.1) else {
            panic!("{words} is a text");
        };
        assert_eq!(file.pages, [words]);
    }
    drop(socket);
    assert!(child.wait().expect("ended").success());
}

fn workers() -> Extraction {
    let exe = std::env::current_exe().expect("a test runs from a file");
    Extraction::with_arguments(exe, as_a_worker(), 1)
}

fn named(name: &str) -> Claim {
    Claim {
        filename: Some(name.to_owned()),
        ..Claim::default()
    }
}

async fn text(
    extraction: &Extraction,
    name: &str,
    bytes: impl Into<Data>,
) -> Result<TextFile, ExtractError> {
    match extraction.decode(Want::Text, named(name), bytes).await? {
        Decoded::Text(file) => Ok(file),
        other => panic!("{name} is a text, not {other:?}"),
    }
}

async fn picture(
    extraction: &Extraction,
    name: &str,
    bytes: impl Into<Data>,
) -> Result<Picture, ExtractError> {
    match extraction
        .decode(
            Want::Picture {
                thumbnail: true,
                large: false,
            },
            named(name),
            bytes,
        )
        .await?
    {
        Decoded::Picture(picture) => Ok(picture),
        other => panic!("{name} is a picture, not {other:?}"),
    }
}

#[tokio::test]
async fn the_pages_and_the_title_of_a_pdf() {
    let file = text(
        &workers(),
        "two.pdf",
        samples::pdf(&["Hello first page", "And the second"]),
    )
    .await
    .expect("read");
    assert_eq!(file.format, Format::Pdf);
    assert_eq!(file.pages, ["Hello first page", "And the second"]);
    assert_eq!(file.title.as_deref(), Some("The Two Pages"));
}

#[tokio::test]
async fn a_web_page_becomes_markdown_without_its_scripts() {
    let html = "<!doctype html><html><head><title>Of Bees</title><style>p{}</style></head><body><nav>Home</nav>\
                <h1>Bees</h1><p>Bees <b>dance</b>.</p><script>alert('no')</script></body></html>";
    let file = text(&workers(), "bees.html", html).await.expect("read");
    assert_eq!(
        (file.format, file.title.as_deref()),
        (Format::Html, Some("Of Bees"))
    );
    let page = &file.pages[0];
    assert!(page.contains("Bees **dance**."), "{page}");
    assert!(!page.contains("alert") && !page.contains("Home"), "{page}");
}

#[tokio::test]
async fn texts_in_every_usual_encoding() {
    let workers = workers();
    let utf16: Vec<u8> = "\u{feff}Grüße"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (name, bytes) in [
        ("a.txt", "Grüße".as_bytes().to_vec()),
        ("b.txt", utf16),
        ("c.txt", b"Gr\xfc\xdfe".to_vec()),
    ] {
        assert_eq!(
            text(&workers, name, bytes).await.expect(name).pages,
            ["Grüße"],
            "{name}"
        );
    }
    // One letter is broken, and the end is cut off.
    let mut broken = "Grüße. Viele schöne Grüße über die Brücke für süße Bären, und Öl."
        .repeat(3)
        .into_bytes();
    broken.extend(b"\xe4 \xc3");
    let read = text(&workers, "broken.txt", broken).await.expect("read");
    assert!(read.pages[0].starts_with("Grüße. Viele"), "{read:?}");
    let markdown = text(&workers, "d.md", "# The title #\n\nbody")
        .await
        .expect("read");
    assert_eq!(
        (markdown.format, markdown.title.as_deref()),
        (Format::Markdown, Some("The title"))
    );
}

#[tokio::test]
async fn texts_of_other_alphabets_that_do_not_say_their_encoding() {
    let workers = workers();
    for (encoding, words) in [
        (
            WINDOWS_1251,
            "имя;город\nАнна;Нижний Новгород\nБорис;Петропавловск",
        ),
        (KOI8_R, "Пчёлы танцуют, чтобы показать дорогу к цветам."),
        (SHIFT_JIS, "蜂は踊る。名前と住所を書いてください。"),
        (EUC_JP, "蜂は踊る。名前と住所を書いてください。"),
        (BIG5, "蜜蜂跳舞，告訴同伴花在哪裡。"),
        (GBK, "蜜蜂跳舞，告诉同伴花在哪里。"),
        (EUC_KR, "벌은 춤을 추어 꽃이 있는 곳을 알린다."),
        (
            WINDOWS_1250,
            "Pszczoły tańczą, żeby wskazać drogę do kwiatów.",
        ),
        (
            WINDOWS_1253,
            "Οι μέλισσες χορεύουν για να δείξουν τον δρόμο.",
        ),
    ] {
        let (bytes, ..) = encoding.encode(words);
        let name = format!("{}.csv", encoding.name());
        let read = text(&workers, &name, bytes.into_owned())
            .await
            .expect("read");
        assert_eq!(read.pages, [words], "{name}");
    }
    // Too short to guess, but told.
    let claim = Claim {
        mime: Some("text/plain; charset=koi8-r".to_owned()),
        ..named("a.txt")
    };
    let (bytes, ..) = KOI8_R.encode("Ёж");
    let read = workers.decode(Want::Text, claim, bytes.into_owned()).await;
    let Ok(Decoded::Text(read)) = read else {
        panic!("a text: {read:?}");
    };
    assert_eq!(read.pages, ["Ёж"]);
}

#[tokio::test]
async fn a_turned_jpeg_stands_upright_and_tells_of_its_camera() {
    let picture = picture(&workers(), "a.jpg", samples::jpeg_with_exif())
        .await
        .expect("read");
    assert_eq!(
        (picture.width, picture.height),
        (20, 40),
        "orientation 6 is a quarter turn"
    );
    assert_eq!(picture.exif["artist"], "Ada Lovelace");
    assert_eq!(
        picture.exif["location"],
        json!({"lat": -33.5, "lon": 151.25})
    );
    assert_eq!(picture.pixels.rgb.len(), 20 * 40 * 3);
    assert_eq!(picture.mime, "image/jpeg");
}

#[tokio::test]
async fn a_picture_of_a_telephone_is_turned_once() {
    let picture = picture(&workers(), "a.heic", samples::turned_heic())
        .await
        .expect("read");
    assert_eq!((picture.width, picture.height), (32, 64));
    assert_eq!(picture.mime, "image/heic");
    assert_eq!(picture.exif["artist"], "Ada Lovelace");
    let at = |x: usize, y: usize| &picture.pixels.rgb[(y * 32 + x) * 3..][..3];
    let (above, below) = (at(16, 8), at(16, 56));
    assert!(above[0] > 180 && above[2] < 80, "red: {above:?}");
    assert!(below[2] > 180 && below[0] < 80, "blue: {below:?}");
    assert!(picture.thumbnail.is_some());
}

#[tokio::test]
async fn a_large_picture_gets_a_small_thumbnail() {
    let picture = picture(&workers(), "a.png", samples::png(2_000, 500))
        .await
        .expect("read");
    assert_eq!((picture.width, picture.height), (2_000, 500));
    assert_eq!((picture.pixels.width, picture.pixels.height), (512, 128));
    let red = u32::from_str_radix(&picture.dominant_color[1..3], 16).expect("hexadecimal");
    assert!(
        picture.dominant_color.len() == 7 && (198..=202).contains(&red),
        "{}",
        picture.dominant_color
    );
    let thumbnail = picture.thumbnail.expect("asked for");
    assert_eq!(thumbnail.content_type, "image/jpeg");
    let small = image::load_from_memory(&thumbnail.bytes).expect("a picture again");
    assert_eq!((small.width(), small.height()), (512, 128));
}

#[tokio::test]
async fn an_icon_may_hold_any_png() {
    let workers = workers();
    let picture = picture(&workers, "a.ico", samples::icon(48, 32))
        .await
        .expect("read");
    assert_eq!((picture.width, picture.height), (48, 32));
    assert_eq!(picture.mime, "image/x-icon");
    assert!(picture.dominant_color.starts_with("#c8"), "{picture:?}");
}

#[tokio::test]
async fn transparency_is_kept_in_the_thumbnail_and_white_for_the_models() {
    let picture = picture(&workers(), "a.png", samples::transparent_png())
        .await
        .expect("read");
    assert_eq!(
        picture.thumbnail.expect("asked for").content_type,
        "image/webp"
    );
    assert!(picture.pixels.rgb.iter().all(|value| *value == 255));
}

#[tokio::test]
async fn bad_files_fail_with_a_reason_and_the_next_file_is_read() {
    use ErrorKind::{Permanent, Resource};
    let workers = workers();
    let mut broken = samples::pdf(&["text"]);
    broken.truncate(200);
    let texts: Vec<(&str, Vec<u8>, ErrorKind, &str)> = vec![
        ("empty.txt", Vec::new(), Permanent, "the file is empty"),
        (
            "blank.txt",
            b" \n ".to_vec(),
            Permanent,
            "nothing but blanks",
        ),
        (
            "not.pdf",
            b"just words".to_vec(),
            Permanent,
            "claims to be a PDF but is not",
        ),
        (
            "picture.pdf",
            samples::png(4, 4),
            Permanent,
            "it looks like a PNG picture",
        ),
        ("broken.pdf", broken, Permanent, "the PDF is broken"),
        (
            "picture.txt",
            samples::png(4, 4),
            Permanent,
            "the file is not text",
        ),
        (
            "office.txt",
            b"PK\x03\x04rest".to_vec(),
            Permanent,
            "begins as an archive but cannot be unpacked",
        ),
        (
            "deep.html",
            "<div>".repeat(2_000).into_bytes(),
            Permanent,
            "nests more than 1000",
        ),
        (
            "void.html",
            b"<html><body><script>x</script></body></html>".to_vec(),
            Permanent,
            "holds no text",
        ),
        (
            "long.txt",
            vec![b'a'; MAX_TEXT_BYTES + 1],
            Resource,
            "more than 32 MiB of text",
        ),
    ];
    for (name, bytes, kind, words) in texts {
        let error = text(&workers, name, bytes).await.expect_err(name);
        assert_eq!(error.kind, kind, "{name}: {error}");
        assert!(error.message.contains(words), "{name}: {error}");
    }
    let pictures: Vec<(&str, Vec<u8>, ErrorKind, &str)> = vec![
        (
            "bomb.png",
            samples::png_claiming(10_000, 10_000),
            Resource,
            "100 megapixels",
        ),
        (
            "wide.png",
            samples::png_claiming(30_000, 10),
            Resource,
            "20000 pixels a side",
        ),
        (
            "cut.png",
            samples::png(64, 64)[..60].to_vec(),
            Permanent,
            "the picture is broken",
        ),
        (
            "text.jpg",
            b"not a picture".to_vec(),
            Permanent,
            "not a picture that can be read",
        ),
        (
            "page.jpg",
            samples::pdf(&["x"]),
            Permanent,
            "it looks like a PDF",
        ),
    ];
    for (name, bytes, kind, words) in pictures {
        let error = picture(&workers, name, bytes).await.expect_err(name);
        assert_eq!(error.kind, kind, "{name}: {error}");
        assert!(error.message.contains(words), "{name}: {error}");
    }
    assert_eq!(
        text(&workers, "a.txt", "still here")
            .await
            .expect("read")
            .pages,
        ["still here"]
    );
}

#[tokio::test]
async fn a_pdf_that_nests_without_end_costs_only_itself() {
    let workers = workers();
    let deep = format!("{}{}", "[".repeat(2_000_000), "]".repeat(2_000_000));
    let mut file = samples::pdf(&["words"]);
    let place = file
        .windows(7)
        .position(|window| window == b"/Title ")
        .expect("written there");
    file.splice(place + 7..place + 7, deep.bytes());
    let error = text(&workers, "deep.pdf", file).await.expect_err("broken");
    assert_ne!(
        error.kind,
        ErrorKind::Transient,
        "not worth a retry: {error}"
    );
    assert_eq!(
        text(&workers, "a.txt", "still here")
            .await
            .expect("read")
            .pages,
        ["still here"]
    );
}

#[tokio::test]
async fn a_pdf_that_grows_beyond_the_memory_costs_only_itself() {
    let workers = workers();
    let bomb = samples::pdf_bomb(1_200);
    assert!(bomb.len() < 2 << 20, "a bomb is small");
    let error = text(&workers, "bomb.pdf", bomb)
        .await
        .expect_err("too large");
    assert_eq!(error.kind, ErrorKind::Permanent, "{error}");
    assert!(error.message.contains("1024 MiB of memory"), "{error}");
    assert_eq!(
        text(&workers, "a.txt", "still here")
            .await
            .expect("read")
            .pages,
        ["still here"]
    );
}

#[tokio::test]
async fn a_missing_worker_is_worth_a_retry() {
    let workers = Extraction::new("/nowhere/loupe".into(), 1);
    let error = text(&workers, "a.txt", "words")
        .await
        .expect_err("nothing to start");
    assert_eq!(error.kind, ErrorKind::Transient, "{error}");
}
