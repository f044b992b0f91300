//! What pages are made of.

mod dialog;
mod field;
mod icon;
mod list;
mod remove;
mod show;

pub use dialog::{Modal, Secret};
pub use field::{Area, Check, Choice, Field, Submit};
pub use icon::Icon;
pub use list::{Column, Head, Listing, SearchBox, Searched, page_query, searched};
pub use remove::Remove;
pub use show::{Badge, Copy, Empty, Explain, Progress, Skeletons, ToastList, Toasts, When};
