//! Files with text: their pages are read, drawn where they are pictures, and told of where they are left out.

use futures::StreamExt;

use super::{BlobInput, Notes, blocking, claim, making::Maker};
use crate::extract::{
    Claim, Data, Decoded, ErrorKind, ExtractError, Format, Part, TextFile, Want,
    document::{self, DocumentParams, READING_DPI},
    dropped::{MAX_DOCUMENT_PAGES, MIN_TEXT_LENGTH, OCR_LIMIT, UNREADABLE},
    image, paper,
    tools::Tool,
};

type Result<T> = std::result::Result<T, ExtractError>;

/// Pages of one PDF that are drawn, for reading or for thumbnails: more are the work of hours.
const MOST_DRAWN: usize = 1_000;
/// Pages of one PDF that are drawn and read at once.
const AT_ONCE: usize = 4;

/// How a file with pages is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// The first so many pages.
    pub most: usize,
    /// Dots per inch at which pages that are pictures are drawn.
    pub dots: i64,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            most: usize::MAX,
            dots: READING_DPI,
        }
    }
}

impl Maker<'_> {
    /// The text of a file; pages of a PDF that are pictures are read where that can be done here.
    pub(super) async fn text_file(
        &self,
        blob: &BlobInput,
        how: Reading,
        notes: &mut Notes,
    ) -> Result<TextFile> {
        let decoded = self
            .extraction
            .decode(Want::Text, claim(blob), blob.bytes.clone())
            .await?;
        let Decoded::Text(mut file) = decoded else {
            return Err(ExtractError::permanent("the file is a picture, not a text"));
        };
        let beyond = shorten(&mut file, how.most);
        notes.dropped.add_pages(MAX_DOCUMENT_PAGES, beyond);
        if file.format == Format::Pdf && file.pages.iter().take(how.most).any(String::is_empty) {
            self.read_scans(&mut file, &blob.bytes, how, notes).await?;
        }
        notes.dropped.add(&file.unread());
        Ok(file)
    }

    /// Reads the pages without words. What was read, or found to be blank, is no gap any more.
    async fn read_scans(
        &self,
        file: &mut TextFile,
        pdf: &Data,
        how: Reading,
        notes: &mut Notes,
    ) -> Result<()> {
        let tools = self.extraction.tools();
        let missing = [Tool::Pdftoppm, Tool::Tesseract];
        let missing = missing.into_iter().find(|tool| !tools.has(*tool));
        if let Some(tool) = missing {
            if file.pages.iter().any(|page| !page.is_empty()) {
                return Ok(());
            }
            return Err(ExtractError::permanent(format!(
                "the PDF has no text layer: its pages are pictures, and {}",
                tool.missing()
            )));
        }
        let empty = (1..).zip(&file.pages).take(how.most);
        let empty = empty.filter(|(_, page)| page.is_empty());
        let empty: Vec<usize> = empty.map(|(number, _)| number).collect();
        let (tried, left) = empty.split_at(empty.len().min(MOST_DRAWN));
        let left = left.iter().filter(|number| file.gaps.is_at(**number));
        notes.dropped.add_pages(OCR_LIMIT, left.count());
        let read = self.read_drawn(pdf, tried, how.dots).await?;
        let mut failed = None;
        let mut numbers = Vec::new();
        for (number, written) in read {
            match written {
                Ok(text) if text.is_empty() => {}
                Ok(text) => {
                    file.pages[number - 1] = text;
                    numbers.push(number);
                }
                Err(error) => {
                    notes.dropped.add_pages(UNREADABLE, 1);
                    failed.get_or_insert(error);
                }
            }
        }
        file.gaps.pictures.clear();
        file.gaps.broken.clear();
        // A file of which nothing could be read says why.
        if let Some(error) = failed
            && file.pages.iter().all(String::is_empty)
        {
            return Err(error);
        }
        if !numbers.is_empty() {
            file.info.insert("ocr_pages".to_owned(), numbers.into());
        }
        Ok(())
    }

    /// What is written on pages, each with its number. One that cannot be drawn or read costs only itself.
    ///
    /// # Errors
    /// A failure that may pass.
    async fn read_drawn(
        &self,
        pdf: &Data,
        numbers: &[usize],
        dots: i64,
    ) -> Result<Vec<(usize, Result<String>)>> {
        let sheets = paper::Sheets::open(self.extraction, pdf).await?;
        let read = |number: usize| {
            let sheets = &sheets;
            async move {
                let drawn = match sheets.page(number, dots).await {
                    Ok(picture) => paper::written(self.extraction, &picture).await,
                    Err(error) => Err(error),
                };
                (number, drawn)
            }
        };
        let mut reading = futures::stream::iter(numbers.to_vec())
            .map(read)
            .buffered(AT_ONCE);
        let mut found = Vec::with_capacity(numbers.len());
        while let Some((number, written)) = reading.next().await {
            match written {
                Err(error) if !matches!(error.kind, ErrorKind::Permanent | ErrorKind::Resource) => {
                    return Err(error);
                }
                written => found.push((number, written)),
            }
        }
        Ok(found)
    }

    /// One part a page.
    pub(super) async fn of_pages(
        &self,
        params: &DocumentParams,
        name: String,
        blob: &BlobInput,
        file: TextFile,
        notes: &mut Notes,
    ) -> Result<Vec<Part>> {
        let is_pdf = file.format == Format::Pdf;
        let cutting = params.clone();
        let made = blocking(move || document::parts(&cutting, &name, &file)).await;
        let (mut parts, short) = made?;
        notes.dropped.add_pages(MIN_TEXT_LENGTH, short);
        let dots = params.thumbnails.filter(|_| is_pdf);
        if let Some(dots) = dots.filter(|_| self.extraction.tools().has(Tool::Pdftoppm)) {
            let undrawn = self.draw(&mut parts, &blob.bytes, dots).await;
            notes.dropped.add_others("thumbnails", undrawn);
        }
        Ok(parts)
    }

    /// Thumbnails of pages. One that cannot be drawn is left out: the text is what counts. Answers how many are.
    async fn draw(&self, parts: &mut [Part], pdf: &Data, dots: i64) -> usize {
        let Ok(sheets) = paper::Sheets::open(self.extraction, pdf).await else {
            return parts.len();
        };
        let mut undrawn = parts.len();
        for part in parts.iter_mut().take(MOST_DRAWN) {
            let number = part.fields.get("page_number").and_then(|n| n.as_u64());
            let Some(number) = number.and_then(|number| usize::try_from(number).ok()) else {
                continue;
            };
            let drawn = match sheets.page(number, dots).await {
                Ok(page) => self.picture(Claim::default(), page, true, false).await,
                Err(error) => Err(error),
            };
            match drawn {
                Ok(picture) => {
                    let thumbnail = picture.thumbnail.map(image::thumbnail_of);
                    part.generated.extend(thumbnail);
                    undrawn -= 1;
                }
                Err(error) => tracing::debug!(%error, number, "a page cannot be drawn"),
            }
        }
        undrawn
    }
}

/// Empties the pages after the first so many; answers on how many of them there was something. The others keep their
/// numbers, and the file the number of its pages.
fn shorten(file: &mut TextFile, most: usize) -> usize {
    let TextFile { pages, gaps, .. } = file;
    let beyond = (1..).zip(pages).skip(most);
    let mut emptied = 0;
    for (number, page) in beyond {
        emptied += usize::from(!page.is_empty() || gaps.is_at(number));
        page.clear();
    }
    gaps.pictures.retain(|number| *number <= most);
    gaps.broken.retain(|number| *number <= most);
    emptied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_beyond_the_first_are_counted_unless_they_are_blank() {
        let mut file = TextFile::plain("one".to_owned());
        file.pages
            .extend(["two", "", "", "five"].map(str::to_owned));
        file.gaps.pictures = vec![4];
        assert_eq!(shorten(&mut file, 1), 3, "two, four and five");
        assert_eq!(file.pages, ["one", "", "", "", ""]);
        assert!(file.unread().is_empty(), "counted once: {:?}", file.gaps);
        assert_eq!(shorten(&mut file, usize::MAX), 0);
    }
}
