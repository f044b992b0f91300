//! What is known of a storage, read beside its list.

use std::collections::VecDeque;

use super::store::{self, Known, Place};
use crate::{app::App, error::Result};

/// What is known of a storage, a window at a time.
pub struct Memory<'m> {
    app: &'m App,
    place: Place,
    after: String,
    window: VecDeque<Known>,
    ended: bool,
}

/// Files that are handed out at once: what becomes of them is one transaction.
const MOST: usize = 100;

/// What was known up to a file: files before it that are gone, and the file itself.
#[derive(Default)]
pub struct Before {
    pub gone: Vec<Known>,
    pub same: Option<Known>,
    /// There may be others before the file.
    pub more: bool,
}

impl<'m> Memory<'m> {
    pub fn new(app: &'m App, place: Place) -> Self {
        Self {
            app,
            place,
            after: String::new(),
            window: VecDeque::new(),
            ended: false,
        }
    }

    async fn fill(&mut self) -> Result<()> {
        if self.window.is_empty() && !self.ended {
            let rows = store::known(self.app.db(), &self.place, &self.after).await?;
            self.ended = rows.len() < store::KNOWN_AT_ONCE;
            if let Some(last) = rows.last() {
                self.after.clone_from(&last.path);
            }
            self.window.extend(rows);
        }
        Ok(())
    }

    /// Some of what was known up to a file; all of it when there is no more.
    pub async fn up_to(&mut self, path: &str) -> Result<Before> {
        let mut before = Before::default();
        loop {
            if before.gone.len() == MOST {
                before.more = true;
                return Ok(before);
            }
            self.fill().await?;
            let Some(next) = self.window.pop_front_if(|next| next.path.as_str() <= path) else {
                return Ok(before);
            };
            if next.path == path {
                before.same = Some(next);
                return Ok(before);
            }
            before.gone.push(next);
        }
    }

    /// Some of what was not handed out yet; nothing when that was all.
    pub async fn rest(&mut self) -> Result<Vec<Known>> {
        self.fill().await?;
        let some = self.window.len().min(MOST);
        Ok(self.window.drain(..some).collect())
    }
}
