//! What pages are made of.

pub mod chart;
mod dialog;
mod drop;
mod field;
mod fill;
mod icon;
mod inputs;
mod list;
mod menu;
mod remove;
mod rows;
pub mod schema;
mod show;
mod source;
pub mod stages;

pub use dialog::{Ask, Modal, Secret, Sheet, download};
pub use drop::{DropZone, Dropped};
pub use field::{Area, Check, Choice, Faults, Field, Pick, Submit};
pub use fill::{Fill, Names, choices};
pub use icon::Icon;
pub use inputs::{Input, Values, data_url, defaults, inputs};
pub use list::{
    Blank, Column, Create, Head, ListPage, Listing, SearchBox, Searched, cell, image, line, name,
    none_match, number, page_query, pictured, searched, table, tabs, tags, titled, two, words,
};
pub use menu::{menu, tab_list};
pub use remove::{Confirm, Removal, Remove};
pub use rows::{Act, Discard, Log, Rows, press};
pub use show::{
    Copy, Empty, Explain, Progress, Skeletons, Toasts, badge, fact, loaded, refusal, stat, tint,
    toast_list, waiting, when, while_there,
};
pub use source::{Source, to_line};
