//! What an execution holds of its server and what the server counts of it.

use std::time::Duration;

use async_trait::async_trait;

/// Things that an organization may use so much of in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metered {
    /// Tokens of language models.
    LanguageTokens,
    /// Searches of the web.
    WebSearches,
}

/// The server around an execution.
#[async_trait]
pub trait Around: Send + Sync + 'static {
    /// Gives the processor to other searches: this one waits for another machine.
    fn leave(&self);
    /// Waits until this search has a turn again.
    async fn back(&self);
    /// Counts a use before it happens; the seconds after which to come again where it would be too much.
    fn spend(&self, what: Metered, amount: u64) -> Result<(), u64>;
    /// Puts what a use came to in the place of what was counted for it, so long ago.
    fn settle(&self, what: Metered, counted: u64, used: u64, ago: Duration);
    /// Counts a call that its maker limits to so many in a time; the seconds after which to come again where it would be one too
    /// many.
    fn pace(&self, whose: &str, most: u64, time: Duration) -> Result<(), u64>;
}
