//! Keys of pages for those who are shown a part of the documents. The store's word for a place holds what the documents are sorted
//! by, shown or not; and one that somebody makes up asks which documents come behind it.

use loupe_engine::stage::KEY_POSITION;
use loupe_wire::{Object, RetrieverPagination, Value};

/// The request without such a word: a page is then found by its document.
pub fn without_position(mut asked: Option<RetrieverPagination>) -> Option<RetrieverPagination> {
    if let Some(RetrieverPagination::Keyset(page)) = &mut asked
        && let Some(key) = &mut page.after
    {
        key.shift_remove(KEY_POSITION);
    }
    asked
}

/// The answer without such a word.
pub fn hide_position(mut told: Object) -> Object {
    if let Some(key) = told.get_mut("after").and_then(Value::as_object_mut) {
        key.shift_remove(KEY_POSITION);
    }
    told
}
