//! Workbooks (XLSX, XLS, XLSB, ODS) to one page for each sheet: a line for each row, cells apart by `|`.

use std::fmt::Write as _;
use std::io::Cursor;

use calamine::{
    Data, DataRef, ExcelDateTime, Reader, SheetType, Sheets, Xlsx, open_workbook_auto_from_rs,
};
use loupe_wire::Object;
use serde_json::json;

use super::{Format, Gaps, MAX_TEXT_BYTES, TextFile};
use crate::extract::{ExtractError, Result, dropped::UNREADABLE};

type Input<'a> = Cursor<&'a [u8]>;

pub fn decode(bytes: &[u8]) -> Result<TextFile> {
    let mut sheets = open_workbook_auto_from_rs(Cursor::new(bytes)).map_err(|_| broken())?;
    let names = sheets.sheet_names();
    // Charts and macros are sheets without cells.
    let known = sheets.sheets_metadata().iter();
    let with_cells: Vec<String> = known
        .filter(|sheet| sheet.typ == SheetType::WorkSheet)
        .map(|sheet| sheet.name.clone())
        .collect();
    let mut pages = Vec::with_capacity(names.len());
    let (mut length, mut gaps) = (0, Gaps::default());
    for name in &names {
        let rows = match &mut sheets {
            Sheets::Xlsx(book) => streamed(book, name)?,
            book => whole(book, name)?,
        };
        if rows.is_none() && with_cells.contains(name) {
            gaps.dropped.add_pages(UNREADABLE, 1);
        }
        let rows = rows.unwrap_or_default();
        length += rows.len();
        if length > MAX_TEXT_BYTES {
            return Err(too_large());
        }
        pages.push(if rows.is_empty() {
            String::new()
        } else {
            format!("# {name}\n\n{rows}")
        });
    }
    if pages.iter().all(String::is_empty) {
        return Err(ExtractError::permanent("the workbook holds no cells"));
    }
    let info = Object::from_iter([("sheet_names".to_owned(), json!(names))]);
    Ok(TextFile {
        format: Format::Sheets,
        title: None,
        pages,
        info,
        gaps,
    })
}

/// Cell by cell, as they stand in the file: a lone cell in the last corner costs nothing. None where there are no cells to
/// read.
fn streamed(book: &mut Xlsx<Input<'_>>, name: &str) -> Result<Option<String>> {
    let Ok(mut cells) = book.worksheet_cells_reader(name) else {
        return Ok(None);
    };
    let (mut text, mut row, mut column) = (String::new(), None, 0);
    while let Some(cell) = cells.next_cell().map_err(|_| broken())? {
        let shown = match cell.get_value() {
            DataRef::SharedString(text) => (*text).to_owned(),
            value => shown(&value.clone().into()),
        };
        if shown.is_empty() {
            continue;
        }
        let at = cell.get_position();
        if row != Some(at.0) {
            if row.is_some() {
                text.push('\n');
            }
            (row, column) = (Some(at.0), 0);
        }
        // Empty cells between two full ones keep the columns in line, within reason.
        let gap = usize::try_from(at.1.saturating_sub(column).min(64)).unwrap_or(0);
        text.push_str(&" | ".repeat(gap));
        column = at.1;
        text.push_str(&one_line(&shown));
        if text.len() > MAX_TEXT_BYTES {
            return Err(too_large());
        }
    }
    Ok(Some(text))
}

fn whole(book: &mut Sheets<Input<'_>>, name: &str) -> Result<Option<String>> {
    let Ok(range) = book.worksheet_range(name) else {
        return Ok(None);
    };
    let mut text = String::new();
    for row in range.rows() {
        let mut cells: Vec<String> = row.iter().map(|cell| one_line(&shown(cell))).collect();
        let full = cells.iter().rposition(|cell| !cell.is_empty());
        cells.truncate(full.map_or(0, |last| last + 1));
        if cells.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&cells.join(" | "));
        if text.len() > MAX_TEXT_BYTES {
            return Err(too_large());
        }
    }
    Ok(Some(text))
}

fn shown(cell: &Data) -> String {
    match cell {
        Data::Empty => String::new(),
        Data::DateTime(time) => date(*time),
        other => other.to_string(),
    }
}

/// A day, with the time where there is one; a duration stays the number that it is.
fn date(time: ExcelDateTime) -> String {
    if !time.is_datetime() {
        return time.to_string();
    }
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    let mut shown = format!("{year:04}-{month:02}-{day:02}");
    if (hour, minute, second) != (0, 0, 0) {
        // Writing into a text cannot fail.
        let _ = write!(shown, " {hour:02}:{minute:02}:{second:02}");
    }
    shown
}

fn one_line(cell: &str) -> String {
    cell.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn too_large() -> ExtractError {
    ExtractError::resource(format!(
        "the workbook holds more than {} MiB of text, which is the limit",
        MAX_TEXT_BYTES >> 20
    ))
}

fn broken() -> ExtractError {
    ExtractError::permanent("the workbook is broken: its sheets cannot be read")
}
