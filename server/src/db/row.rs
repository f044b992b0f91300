//! What both databases answer: rows of cells, read by types that know nothing of either.
//!
//! Rows are fetched by one function for each database and read afterwards; decoding in the driver would compile its whole
//! fetching anew for every type.

use loupe_wire::reading;
use serde::de::DeserializeOwned;

use crate::error::{ApiError, Result};

/// A value of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Int(i64),
    Real(f64),
    /// Text, and JSON as its text.
    Text(String),
    Bytes(Vec<u8>),
}

/// The rows of one answer, cell after cell.
#[derive(Debug, Default)]
pub struct Rows {
    pub(super) names: Vec<String>,
    pub(super) cells: Vec<Cell>,
}

/// One row, read from the left or by name.
pub struct Cells<'a> {
    names: &'a [String],
    cells: &'a mut [Cell],
    next: usize,
}

/// A type that a row is read as: a tuple, or a struct made by [`row!`](crate::row).
pub trait Row: Sized + Send + 'static {
    /// # Errors
    /// A column that is missing or holds another type.
    fn read(cells: Cells<'_>) -> Result<Self>;
}

/// A type that a cell is read as.
pub trait FromCell: Sized {
    /// Answers nothing when the cell holds another type.
    fn from_cell(cell: Cell) -> Option<Self>;
}

/// A value that is kept as JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Json<T>(pub T);

impl<T> std::ops::Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for Json<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl Rows {
    pub(super) fn read<T: Row>(mut self) -> Result<Vec<T>> {
        let Self { names, cells } = &mut self;
        cells
            .chunks_exact_mut(names.len().max(1))
            .map(|cells| {
                T::read(Cells {
                    names,
                    cells,
                    next: 0,
                })
            })
            .collect()
    }
}

impl Cells<'_> {
    /// The next column.
    pub fn take<T: FromCell>(&mut self) -> Result<T> {
        let at = self.next;
        self.next += 1;
        self.at(at)
    }

    /// The column of this name.
    pub fn named<T: FromCell>(&mut self, name: &str) -> Result<T> {
        let at = self.names.iter().position(|column| column == name);
        self.at(at.unwrap_or(usize::MAX))
    }

    fn at<T: FromCell>(&mut self, at: usize) -> Result<T> {
        let cell = self
            .cells
            .get_mut(at)
            .map(|cell| std::mem::replace(cell, Cell::Null));
        cell.and_then(T::from_cell).ok_or_else(|| {
            let name = self.names.get(at).map_or("missing", String::as_str);
            ApiError::internal(format!("a column cannot be read: {name}"))
        })
    }
}

macro_rules! from_cell {
    ($($type:ty: $($case:pat => $value:expr),+;)*) => {
        $(impl FromCell for $type {
            fn from_cell(cell: Cell) -> Option<Self> {
                match cell {
                    $($case => Some($value),)+
                    _ => None,
                }
            }
        })*
    };
}

from_cell! {
    i64: Cell::Int(value) => value;
    f64: Cell::Real(value) => value, Cell::Int(value) => value as Self;
    String: Cell::Text(value) => value;
    bool: Cell::Int(value) => value != 0;
    Vec<u8>: Cell::Bytes(value) => value;
}

impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Null => Some(None),
            cell => T::from_cell(cell).map(Some),
        }
    }
}

impl<T: DeserializeOwned> FromCell for Json<T> {
    fn from_cell(cell: Cell) -> Option<Self> {
        let Cell::Text(text) = cell else {
            return None;
        };
        let read = reading::from_str(&text);
        if let Err(error) = &read {
            tracing::error!(%error, model = std::any::type_name::<T>(), "stored json cannot be read");
        }
        read.ok().map(Self)
    }
}

macro_rules! tuples {
    ($(($($type:ident),+))*) => {
        $(impl<$($type: FromCell + Send + 'static),+> Row for ($($type,)+) {
            fn read(mut cells: Cells<'_>) -> Result<Self> {
                Ok(($(cells.take::<$type>()?,)+))
            }
        })*
    };
}

tuples! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) (A, B, C, D, E, F, G) }

/// Declares structs that rows are read as: every field is the column of its name.
#[macro_export]
macro_rules! row {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$about:meta])* $seen:vis $field:ident: $type:ty),* $(,)? })*) => {
        $($(#[$meta])* $vis struct $name { $($(#[$about])* $seen $field: $type),* }
        impl $crate::db::Row for $name {
            fn read(mut cells: $crate::db::Cells<'_>) -> $crate::error::Result<Self> {
                Ok(Self { $($field: cells.named(stringify!($field))?),* })
            }
        })*
    };
}
