//! Files that are too large to be sent from process to process: the worker reads them itself.

use std::io::{Seek, SeekFrom, Write};

use super::super::Folder;
use super::*;

const HOLE: u64 = 201 << 20;

/// A PDF with a hole before its table of contents: long, and nothing on the disk.
async fn long_pdf() -> Data {
    let pdf = samples::pdf(&["Hello first page"]);
    let mark = b"startxref\n";
    let place = pdf.windows(mark.len()).rposition(|word| word == mark);
    let place = place.expect("every PDF ends so") + mark.len();
    let number = std::str::from_utf8(&pdf[place..]).expect("words");
    let start = number.lines().next().expect("a number");
    let start: usize = start.parse().expect("a number");
    let folder = Folder::new().expect("a folder");
    let mut file = std::fs::File::create(folder.path().join("long.pdf")).expect("a file");
    file.write_all(&pdf[..start]).expect("written");
    file.seek(SeekFrom::Current(HOLE as i64)).expect("a hole");
    file.write_all(&pdf[start..place]).expect("written");
    writeln!(file, "{}\n%%EOF", start as u64 + HOLE).expect("written");
    Data::on_disk(&folder, "long.pdf").await.expect("there")
}

#[tokio::test]
async fn a_file_of_more_than_200_mib_is_read_by_the_worker_itself() {
    let pdf = long_pdf().await;
    assert!(pdf.len() > 200 << 20);
    let workers = workers();
    let read = text(&workers, "long.pdf", pdf.clone()).await.expect("read");
    assert_eq!(read.pages, ["Hello first page"]);
    let after = text(&workers, "a.txt", "still here").await.expect("read");
    assert_eq!(after.pages, ["still here"]);
    let error = text(&workers.with_largest(200 << 20), "long.pdf", pdf).await;
    let error = error.expect_err("too large");
    assert_eq!(error.kind, ErrorKind::Resource);
    assert_eq!(
        error.message,
        "the file has 201 MiB; at most 200 MiB are read"
    );
}

#[tokio::test]
async fn a_file_that_is_gone_is_worth_a_retry() {
    let folder = Folder::new().expect("a folder");
    let path = folder.path().join("a.txt");
    std::fs::write(&path, "words").expect("written");
    let data = Data::on_disk(&folder, "a.txt").await.expect("there");
    std::fs::remove_file(path).expect("removed");
    let error = text(&workers(), "a.txt", data).await.expect_err("gone");
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(!error.message.contains("/tmp"), "{error}");
}
