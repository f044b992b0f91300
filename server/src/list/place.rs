//! Where a page of a list begins: behind a number of rows, or behind a row. By number, rows that are added before the page
//! push some of the last one onto it, and rows that are removed pull some past it; behind a row it begins where it did.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use super::wrong_cursor;
use crate::error::Result;

/// The moment and the id of a row: where a list that is read in pieces, newest first, goes on.
pub type Mark = (i64, String);

/// What a cursor says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Rows before the page, as far as they were counted: what tells the number of the page.
    pub offset: i64,
    /// The last of them.
    pub behind: Option<Mark>,
}

impl Place {
    pub fn at(offset: i64) -> Self {
        Self {
            offset,
            behind: None,
        }
    }

    /// As a cursor.
    pub fn text(&self) -> String {
        let Self { offset, behind } = self;
        URL_SAFE_NO_PAD.encode(match behind {
            None => format!("o{offset}"),
            Some((at, id)) => format!("b{offset}.{at}.{id}"),
        })
    }

    /// The place that a cursor says.
    ///
    /// # Errors
    /// The 422 list for one that is none.
    pub fn read(cursor: &str) -> Result<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let place = text.as_deref().and_then(Self::parse);
        place
            .filter(|place| place.offset >= 0)
            .ok_or_else(|| wrong_cursor(cursor).into())
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(offset) = text.strip_prefix('o') {
            return offset.parse().ok().map(Self::at);
        }
        let (offset, mark) = text.strip_prefix('b')?.split_once('.')?;
        let (at, id) = mark.split_once('.')?;
        // No database has such a text.
        let behind = (at.parse().ok()?, id.to_owned());
        (!id.contains('\0')).then_some(Self {
            offset: offset.parse().ok()?,
            behind: Some(behind),
        })
    }
}

/// The arguments of a statement that reads one page of a list, newest first: it takes rows `created_at <= at AND (created_at <
/// at OR id > id)`.
#[derive(Debug, Clone)]
pub struct Window {
    /// One more than a page has: it tells whether there is a next one.
    pub limit: i64,
    /// Rows that are passed over.
    pub offset: i64,
    pub at: i64,
    pub id: String,
}

impl Window {
    /// So many rows from the beginning.
    pub const fn first(limit: i64) -> Self {
        Self {
            limit,
            offset: 0,
            at: i64::MAX,
            id: String::new(),
        }
    }

    pub(super) fn new(limit: i64, offset: i64, behind: Option<Mark>) -> Self {
        let first = Self::first(limit.saturating_add(1));
        match behind {
            Some((at, id)) => Self { at, id, ..first },
            None => Self { offset, ..first },
        }
    }
}

/// How many of these rows, newest first, come before a page that goes on behind one of them, or behind one that is gone.
pub(super) fn passed<T>(rows: &[(T, Mark)], behind: &Mark) -> usize {
    let (at, id) = behind;
    let found = rows.iter().position(|(_, (_, one))| one == id);
    let next = |(_, mark): &(T, Mark)| mark.0 < *at || (mark.0 == *at && mark.1 > *id);
    found.map_or_else(
        || rows.iter().position(next).unwrap_or(rows.len()),
        |place| place + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_says_what_it_was_made_of() {
        let behind = Some((1_767_225_600_000_000, "obj_1.a".to_owned()));
        for place in [Place::at(0), Place::at(7), Place { offset: 3, behind }] {
            assert_eq!(Place::read(&place.text()).unwrap(), place);
        }
        for none in [
            "", "b", "b1", "b1.2", "b-1.2.x", "bx.2.x", "b1.y.x", "b1.2.\0",
        ] {
            assert!(
                Place::read(&URL_SAFE_NO_PAD.encode(none)).is_err(),
                "{none}"
            );
        }
    }

    #[test]
    fn a_page_goes_on_behind_its_row_also_where_that_is_gone() {
        let rows: Vec<((), Mark)> = [(9, "z"), (7, "a"), (7, "b"), (7, "d"), (2, "e")]
            .into_iter()
            .map(|(at, id)| ((), (at, id.to_owned())))
            .collect();
        for (at, id, before) in [
            (7, "b", 3),
            (7, "c", 3),
            (8, "x", 1),
            (99, "", 0),
            (2, "e", 5),
            (1, "", 5),
        ] {
            assert_eq!(passed(&rows, &(at, id.to_owned())), before, "{at} {id}");
        }
    }
}
