//! Tables in Parquet, row by row: what of a file is in memory is a page of each column, however many rows it has. Read are
//! plain values and dictionaries, pages of both forms, compressed by snappy, gzip, zstd or not at all; lists, maps and fields
//! within fields become those of JSON.

mod column;
mod schema;
mod snappy;
mod source;
mod thrift;
mod values;

use loupe_wire::Object;

use super::media::disk;
use super::{Data, ExtractError};
use column::Column;
use schema::Schema;
use source::Source;
use thrift::Struct;

/// Bytes of the description at the end of a file.
const FOOTER: u64 = 8 << 20;
/// What one row may weigh, all rows together, and what is held of all columns.
pub(super) const ROW: usize = 4 << 20;
const ROWS: usize = 4 << 30;
const HELD: usize = 256 << 20;
/// Bytes that are read and unpacked altogether: columns may name the same place of a file again and again.
const WORK: u64 = 32 << 30;
const MARK: &[u8] = b"PAR1";

/// Why a table cannot be read.
#[derive(Debug)]
enum Fault {
    Broken(String),
    TooLarge(String),
    Disk(std::io::Error),
}

type Result<T> = std::result::Result<T, Fault>;

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<Fault> for ExtractError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Broken(why) => {
                Self::permanent(format!("the file cannot be read as Parquet: {why}"))
            }
            Fault::TooLarge(why) => Self::resource(why),
            Fault::Disk(error) => disk(error),
        }
    }
}

fn broken(why: &str) -> Fault {
    Fault::Broken(why.to_owned())
}

fn unread(why: &str) -> Fault {
    Fault::Broken(why.to_owned())
}

fn too_large(what: &str, most: impl std::fmt::Display) -> Fault {
    Fault::TooLarge(format!(
        "{what} of the Parquet file is larger than {most}, which is the limit"
    ))
}

/// A table and the place that is read.
pub(crate) struct Table<'a> {
    source: Source<'a>,
    size: u64,
    schema: Schema,
    groups: std::vec::IntoIter<Struct>,
    columns: Vec<Column>,
    /// Rows that the group has left, and what rows may weigh yet.
    left: u64,
    room: usize,
}

impl<'a> Table<'a> {
    /// # Errors
    /// It is no such table, or the disk fails.
    pub fn open(file: &'a Data) -> std::result::Result<Self, ExtractError> {
        Ok(Self::read(file)?)
    }

    fn read(file: &'a Data) -> Result<Self> {
        let (source, size) = (Source::open(file)?, file.len() as u64);
        let no_table = || broken("it does not end as such a file does");
        let end = source.read(size.checked_sub(8).ok_or_else(no_table)?, 8)?;
        let (length, mark) = end.split_at(4);
        if mark != MARK {
            return Err(no_table());
        }
        let length = length.iter().rev();
        let length = length.fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        if length > FOOTER {
            return Err(too_large("the description", FOOTER));
        }
        let begin = (size - 8).checked_sub(length).ok_or_else(no_table)?;
        let (mut about, _) = thrift::read(&source.read(begin, length)?)?;
        let schema = Schema::of(&about.list(2))?;
        Ok(Self {
            source,
            size,
            schema,
            groups: about.take_list(4).into_iter(),
            columns: Vec::new(),
            left: 0,
            room: ROWS,
        })
    }

    /// The next row; none after the last.
    ///
    /// # Errors
    /// The table is broken, or a row too large.
    pub fn row(&mut self) -> std::result::Result<Option<Object>, ExtractError> {
        Ok(self.next()?)
    }

    fn next(&mut self) -> Result<Option<Object>> {
        while self.left == 0 {
            let Some(group) = self.groups.next() else {
                return Ok(None);
            };
            self.begin(&group)?;
        }
        self.left -= 1;
        if self.room < ROW {
            return Err(too_large("the content of all rows", ROWS));
        }
        let (mut room, mut held) = (ROW, 0);
        let mut entries = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            entries.push(column.row(&self.source, &mut room)?);
            held += column.held();
            // Not behind the last one: all of them together would be held by then.
            if held > HELD {
                return Err(too_large("a page of every column together", HELD));
            }
        }
        self.room -= ROW - room;
        self.schema.row(&entries).map(Some)
    }

    fn begin(&mut self, group: &Struct) -> Result<()> {
        let chunks = group.list(1);
        if chunks.len() != self.schema.leaves.len() {
            return Err(broken("a group of rows has not every column"));
        }
        let columns = self.schema.leaves.iter().zip(chunks);
        let columns = columns.map(|(leaf, chunk)| Column::open(leaf, chunk, self.size));
        self.columns = columns.collect::<Result<_>>()?;
        self.left = group.size(3)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
