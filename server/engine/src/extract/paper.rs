//! What is written in pictures, and the pages of PDFs as pictures: through tesseract and poppler.

use std::time::Duration;

use bytes::Bytes;

use super::media::{disk, folder, read, read_text, write};
use super::tools::{Limits, Tool};
use super::{Data, Extraction, Folder, Result};

const MEMORY: u64 = 2 << 30;
const READ: Limits = Limits {
    wall: Duration::from_secs(120),
    cpu_seconds: 60,
    memory_bytes: MEMORY,
    file_bytes: 16 << 20,
};
const RENDER: Limits = Limits {
    wall: Duration::from_secs(120),
    cpu_seconds: 60,
    memory_bytes: MEMORY,
    file_bytes: 64 << 20,
};

/// What is written in a picture, as far as it can be made out. The picture must be one that this server made.
///
/// # Errors
/// The reader is missing, or meets a limit.
pub async fn written(extraction: &Extraction, picture: &Bytes) -> Result<String> {
    let folder = folder()?;
    write(&folder.path().join("page.jpg"), picture).await?;
    let language = extraction.tools().languages();
    let arguments: Vec<String> = ["page.jpg", "read", "--psm", "3"]
        .into_iter()
        .chain(language.into_iter().flat_map(|language| ["-l", language]))
        .chain(["txt"])
        .map(str::to_owned)
        .collect();
    extraction
        .run(
            Tool::Tesseract,
            arguments,
            folder.path(),
            READ,
            "reading what is written in the picture",
        )
        .await?;
    let text = read_text(&folder.path().join("read.txt")).await?;
    Ok(tidy(&text))
}

/// Lines with at least one letter or number in them, without the marks between pages.
fn tidy(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A PDF on the disk, from which pages are drawn.
pub struct Sheets<'a> {
    extraction: &'a Extraction,
    folder: Folder,
    /// What the folder's file may be a link to.
    _pdf: Data,
}

impl<'a> Sheets<'a> {
    pub async fn open(extraction: &'a Extraction, pdf: &Data) -> Result<Self> {
        let folder = folder()?;
        pdf.put(&folder.path().join("input.pdf")).await?;
        Ok(Self {
            extraction,
            folder,
            _pdf: pdf.clone(),
        })
    }

    /// One page as JPEG. Several may be drawn at once.
    pub async fn page(&self, number: usize, dots_per_inch: i64) -> Result<Bytes> {
        let (number, dots) = (number.to_string(), dots_per_inch.to_string());
        let name = format!("page{number}");
        let arguments = [
            "-jpeg",
            "-r",
            &dots,
            "-f",
            &number,
            "-l",
            &number,
            "-singlefile",
            "input.pdf",
            &name,
        ];
        let arguments = arguments.map(str::to_owned).to_vec();
        self.extraction
            .run(
                Tool::Pdftoppm,
                arguments,
                self.folder.path(),
                RENDER,
                "drawing a page of the PDF",
            )
            .await?;
        let path = self.folder.path().join(format!("{name}.jpg"));
        let bytes = read(&path).await?;
        tokio::fs::remove_file(&path).await.map_err(disk)?;
        Ok(bytes.into())
    }
}
