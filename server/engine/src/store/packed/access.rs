//! What one access may see: the reach and the filter, as a condition for each shard and what is left to evaluate.

use super::super::pushdown::{self, Span};
use super::super::shards::{Cond, Read, Shard};
use super::super::{Document, Reach, layout};
use crate::filter::{Filter, Matcher};

/// The reach and the filter of one call.
pub struct Access {
    scopes: Vec<String>,
    principal: Option<Cond>,
    pushed: Cond,
    residual: Option<Matcher>,
    span: Span,
}

impl Access {
    pub fn new(reach: &Reach, filter: Option<&Filter>) -> Self {
        let pushed = pushdown::push(filter, &reach.namespace_id);
        let residual = if pushed.exact {
            None
        } else {
            filter.map(Filter::matcher)
        };
        Self {
            scopes: layout::scopes(reach),
            principal: layout::principal(reach),
            pushed: pushed.cond,
            residual,
            span: pushdown::span(filter),
        }
    }

    /// The reach alone, in this shard. A shard that only ever held a collection of the reach needs no scope.
    pub fn reach(&self, shard: &Shard) -> Cond {
        let whole = shard
            .sole
            .as_ref()
            .is_some_and(|sole| self.scopes.contains(sole));
        let scope = if whole {
            Cond::everything()
        } else {
            Cond::Keyword {
                path: layout::SCOPE,
                any: self.scopes.clone(),
            }
        };
        match &self.principal {
            Some(principal) => scope.and(principal.clone()),
            None => scope,
        }
    }

    /// The reach and as much of the filter as an engine can decide, in this shard.
    pub fn cond(&self, shard: &Shard) -> Cond {
        self.reach(shard).and(self.pushed.clone())
    }

    /// Where the ids of what is admitted lie.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Whether the condition says all.
    pub fn is_exact(&self) -> bool {
        self.residual.is_none()
    }

    /// What a read has to bring along to be judged.
    pub fn read(&self) -> Read {
        if self.is_exact() {
            Read::IDS
        } else {
            Read::PAYLOAD
        }
    }

    /// Whether what is left of the filter lets the document through.
    pub fn admits(&self, document: &mut Document) -> bool {
        self.residual
            .as_ref()
            .is_none_or(|matcher| layout::viewed(document, |view| matcher.matches(view)))
    }
}
